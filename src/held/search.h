/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A search while it goes on; between search.c and its parts.
 *
 * Things of the target are nodes; a word of one that points into another is a
 * link from the one that is held up to its holder. Nodes and links are never
 * taken away, a link that turns out to hold nothing is struck out.
 *
 * Errors: 0 or -ENOMEM, or SEEP_HELD_NOTHING. Threads: one at a time.
 */
#ifndef SEEP_HELD_SEARCH_H
#define SEEP_HELD_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "held/cpython.h"
#include "held/held.h"
#include "held/image.h"
#include "held/memory.h"

#define SEEP_HELD_NOTHING UINT32_MAX
#define SEEP_HELD_ALLOCATOR                          \
    (UINT32_MAX - 1) /* nothing: what it has is free \
                      */
#define SEEP_HELD_NO_RANK UINT8_MAX

enum seep_held_node_kind {
    SEEP_HELD_RAW,    /* a block of no known type */
    SEEP_HELD_OBJECT, /* of CPython */
    SEEP_HELD_ROOT,   /* no block: it has what it has by itself */
};

/** Ranks of roots: how much of an answer each is. */
enum {
    SEEP_HELD_RANK_NAMED,    /* a module, a class, a named global */
    SEEP_HELD_RANK_NAMELESS, /* a global or thread-local without a name */
    SEEP_HELD_RANK_FRAME,    /* a variable of a function that runs */
    SEEP_HELD_RANK_RUNTIME,  /* stacks, libc's and the interpreter's own */
    SEEP_HELD_RANK_MAPPING,  /* some word in a mapping */
    SEEP_HELD_RANKS
};

struct seep_held_node {
    uint64_t key;
    uint64_t address; /* of the object; else as start */
    uint64_t start;
    uint64_t end;
    uint64_t type; /* of an object; of a C++ object its vtable; of a
                      thread-local with a name its place in the program's
                      segment, + 1 */
    uint32_t up;   /* links, by index + 1; 0: none */
    uint32_t down;
    uint32_t child;    /* that it was found by */
    uint64_t raw_word; /* of a tensor: a block without a class has it by that,
                          which counts where nothing else has it; 0: none */
    uint16_t up_count;
    uint16_t level; /* 0: not found by a scan */
    /* Objects of one type that have it in one place, as callbacks have whose
     * method they are; how many, less those of other types between them. */
    uint16_t crowd_count;
    uint32_t crowd_offset_bytes;
    uint64_t crowd_type;
    bool was_crowded; /* some were passed over */
    uint8_t kind;
    uint8_t place; /* enum seep_held_place */
    uint8_t rank;
    uint8_t words; /* enum seep_held_kind, of a root and what has a rank */
    bool is_asked;
    bool type_is_read;
    bool leads_nowhere;   /* no way from it down to a chain */
    bool is_guessed;      /* where it begins was found by pointers alone */
    bool is_of_allocator; /* what it has is free */
    bool is_moving;       /* what points to it was gone when it was looked at */
    bool is_below_lost;   /* what holds it is lost: by seep_held_find_lost() */
    const char *name;
    const char *function;
    const char *file;
};

struct seep_held_link {
    uint64_t at;    /* of the word */
    uint64_t value; /* what it was */
    uint32_t child;
    uint32_t holder;
    uint32_t next_up;   /* of the child */
    uint32_t next_down; /* of the holder */
    uint16_t cost;      /* 0: not computed */
    bool is_stale;      /* it holds nothing, */
    bool is_odd;        /* by what it says, which may be a mistake */
    bool is_chain;
    bool is_end; /* of a range before what is held, it may be */
};

struct seep_held_stack {
    uint64_t start;
    uint64_t end;
    uint64_t pointer;
    const char *thread;
};

/** What of a chain repeats: a holder of this kind, and the word in it. */
struct seep_held_repeat {
    uint64_t type;
    uint64_t bytes;
    uint64_t offset;
    uint8_t kind;
};

/** One thing on the way down to a chain. */
struct seep_held_hop {
    uint64_t word;  /* by which it has the next */
    uint64_t value; /* that it was found by */
    uint32_t node;
};

/** Of the key of a node: what it is one of. */
enum seep_held_tag {
    SEEP_HELD_TAG_BLOCK,
    SEEP_HELD_TAG_GLOBAL,
    SEEP_HELD_TAG_STACK,
    SEEP_HELD_TAG_FRAME,
    SEEP_HELD_TAG_THREAD,
    SEEP_HELD_TAG_MAP
};

#define SEEP_HELD_REPEATS_MOST 16U
#define SEEP_HELD_NAMELESS_MOST 256U
#define SEEP_HELD_CACHED_MAPS 4096U

/** Thread control blocks by mapping. */
struct seep_held_threads_of {
    uint64_t map;
    uint64_t blocks[8];
    size_t count;
};

/** How far a chunk of Python's stack of frames is in use. */
struct seep_held_top {
    uint64_t chunk;
    uint64_t top;
    uint32_t scan_count;
};

/** What of Python's stack of frames a page is in, at one time. */
struct seep_held_stack_chunk {
    uint64_t page;
    uint64_t start; /* 0: it is in none */
    uint64_t bytes;
    uint32_t generation;
};

#define SEEP_HELD_STACK_CHUNKS 256U

struct seep_held_search {
    const struct seep_held_question *question;
    struct seep_held_memory *memory;
    struct seep_store *store; /* of names: as long as the answer */
    struct seep_held_images images;
    struct seep_held_blocks blocks;
    struct seep_held_python python;
    bool has_python;
    bool has_jemalloc;
    uint64_t interpreter; /* of CPython, if that is a block; 0 */
    struct seep_held_scan scan;
    struct seep_held_scan side; /* for a look within a look */

    struct seep_held_node *nodes;
    size_t node_count;
    size_t node_capacity;
    struct seep_held_link *links;
    size_t link_count;
    size_t link_capacity;
    uint32_t *index; /* of nodes by key, + 1; 0: empty */
    size_t index_capacity;

    struct seep_held_stack *stacks;
    size_t stack_count;
    struct seep_held_threads_of *threads;
    size_t threads_count;
    uint64_t thread_local_bytes; /* of all objects, before a control block */
    struct seep_held_addresses books; /* where blocks begin in which an
                                         allocator of a device has its books */
    uint32_t nameless[SEEP_HELD_NAMELESS_MOST]; /* globals without a name */
    size_t nameless_count;
    struct seep_held_stack_chunk chunks[SEEP_HELD_STACK_CHUNKS];
    struct seep_held_top tops[64];
    size_t top_count;

    struct seep_held_hit *dropped; /* words in what is free, of one pass */
    size_t dropped_count;

    uint32_t *asked; /* nodes of the blocks */
    size_t asked_count;
    size_t *part_ends; /* among .asked, of each call site */
    size_t part_count; /* at least one */
    uint32_t *front;
    size_t front_count;
    struct seep_held_hop *hops; /* room for a way down */
    uint32_t level_count;
    uint32_t chain_count; /* times that a chain was followed at once */
    bool has_many_heads;  /* words that may be one are too many to look at */
    bool was_cut_short;
    bool was_late;  /* it was cut short by time, */
    bool is_deep;   /* or by levels alone: what else was found is all */
    bool has_first; /* all that points to the blocks was seen */
};

/* graph.c */

int seep_held_graph_init(struct seep_held_search *search);
void seep_held_graph_fini(struct seep_held_search *search);

uint64_t seep_held_node_key(uint32_t tag, uint64_t one, uint64_t other);

uint64_t seep_held_hash_text(uint64_t hash, const char *text);

/** @return its number, or SEEP_HELD_NOTHING */
uint32_t seep_held_node_find(const struct seep_held_search *search,
                             uint64_t key);
uint32_t seep_held_node_add(struct seep_held_search *search,
                            const struct seep_held_node *node);

/** How many of the blocks @count of @nodes are on a way of. */
size_t seep_held_count_below(const struct seep_held_search *search,
                             const uint32_t *nodes, size_t count);

/** Are as many who hold @node known as are kept? */
bool seep_held_is_full(const struct seep_held_node *node);

/** Is the word at @at in one of a crowd that has @child, of which enough are
 * known? Then it is passed over, which costs a read of a word. */
bool seep_held_is_of_crowd(struct seep_held_search *search, uint32_t child,
                           uint64_t at);

/** @return the link's number, or SEEP_HELD_NOTHING: it was there, or no room */
uint32_t seep_held_link_add(struct seep_held_search *search, uint32_t child,
                            uint32_t holder, uint64_t at, uint64_t value);

/**
 * Do the things that hold @asked hold only each other? It is said where all
 * their holders were looked for and none was struck out, which a head that
 * moves leaves behind; and not of a long row of raw blocks: those of a queue
 * point to each other, too, and what has the first of them was not found.
 */
bool seep_held_is_cycle(const struct seep_held_search *search, uint32_t asked);

/** A word that points to an asked block lies in what is free. */
void seep_held_note_dropped(struct seep_held_search *search,
                            const struct seep_held_hit *hit);

/** Does what was dropped stay where it was? One more pass over memory for the
 * blocks that nothing else points to; where a word has come since, what holds
 * it moves. */
int seep_held_look_again(struct seep_held_search *search);

/** Order of two hits: by place, then by value. */
int seep_held_compare_words(const void *one, const void *other);

/** Nothing points to @asked, as far as anything can be known. */
bool seep_held_is_lost(const struct seep_held_search *search, uint32_t asked);

/* lost.c */

/** Mark the blocks all of whose holders, as far as anything can be known, are
 * held by things to which nothing points; these are looked at twice more. */
int seep_held_find_lost(struct seep_held_search *search);

/* thread_local.c */

/** The thread-local of a thread in @map that contains the word @at. @return its
 * node; SEEP_HELD_NOTHING: it is none; or SEEP_HELD_ALLOCATOR */
uint32_t seep_held_resolve_thread(struct seep_held_search *search,
                                  const struct seep_held_map *map, uint64_t at);

/** The program itself, as it is mapped; "" if that is not known. */
const char *seep_held_program_path(const struct seep_held_memory *memory);

/** Is it the library of an allocator? What it has by itself are free blocks,
 * and how it finds them. */
bool seep_held_is_allocator(const char *path);

/* device.c: of what a driver gave, and a question about that */

/** Find the books of who gives it out, which name all and hold nothing. */
void seep_held_find_books(struct seep_held_search *search);

/** @node, which is new, may be an allocator by its class. */
void seep_held_mark_allocator(struct seep_held_search *search,
                              struct seep_held_node *node);

/** Was @node found to be such: an object that has all that nobody else has? */
bool seep_held_keeps_books(const struct seep_held_node *node);

/** What the word of the library at @path, or in a book (NULL), holds: see
 * seep_held_resolve(). */
uint32_t seep_held_resolve_book(struct seep_held_search *search,
                                const char *path);

/** Is it the library of an allocator of a device, or its driver? */
bool seep_held_is_of_device_allocator(const char *path);

/** Look for the node @number, too, as an int of Python has its address, where
 * that is none of the other addresses that are asked for. */
int seep_held_add_number(struct seep_held_search *search, uint32_t number);

/** Is the word @at, which is such a word, the digits of an int? */
bool seep_held_is_number(struct seep_held_search *search,
                         const struct seep_held_node *holder, uint64_t at);

/* frames.c */

int seep_held_find_stacks(struct seep_held_search *search);

/** @return the variable on a stack that @at is; SEEP_HELD_NOTHING: it is none,
 * or on no stack, as @ret_is_stack has it */
uint32_t seep_held_resolve_stack(struct seep_held_search *search,
                                 const struct seep_held_map *map, uint64_t at,
                                 bool *ret_is_stack);

/** The same of Python's stack of frames. */
uint32_t seep_held_resolve_frame(struct seep_held_search *search,
                                 const struct seep_held_map *map, uint64_t at,
                                 bool *ret_is_frame);

/* resolve.c: what contains a word */

/** A copy that lives as long as the answer; "" without memory. */
const char *seep_held_text(struct seep_held_search *search, const char *text);
/** Behind the last slash. */
const char *seep_held_file_name(const char *path);
/** A root by @key; the same word twice is the same root. */
uint32_t seep_held_root_add(struct seep_held_search *search, uint64_t key,
                            const struct seep_held_node *root);

int seep_held_resolve_init(struct seep_held_search *search);
void seep_held_resolve_fini(struct seep_held_search *search);

/** @return the node; SEEP_HELD_NOTHING: nothing that holds; or
 * SEEP_HELD_ALLOCATOR */
uint32_t seep_held_resolve(struct seep_held_search *search, uint64_t at);

/** The node of the block [start, end), made if it is new. */
uint32_t seep_held_block_node(struct seep_held_search *search, uint64_t start,
                              uint64_t end, enum seep_held_place place);

/** A word of @node that refers and does not hold? */
bool seep_held_is_weak(struct seep_held_search *search,
                       const struct seep_held_node *node, uint64_t at);

/**
 * Is the word of an entry of a table of what Python wraps, as pybind11 and
 * nanobind have them: the address of a C++ object and beside it the object of
 * Python that has it, or that and what it keeps alive? All are borrowed there,
 * or the wrapper's. It may be a mistake: a program's table could look the same.
 */
bool seep_held_is_entry(struct seep_held_search *search, uint32_t child,
                        uint32_t holder, const struct seep_held_hit *hit);

/** What the node @number has it has as part of an allocator. */
void seep_held_strike_down(struct seep_held_search *search, uint32_t number);

/** A C++ object's class, read once; kept in .type. */
void seep_held_read_class(struct seep_held_search *search,
                          struct seep_held_node *node);

/* Words in a mapping of which no rule knows the blocks. */
struct seep_held_unknown {
    uint64_t at;
    uint64_t value;
    uint32_t child;
    uint32_t mapping; /* as a root */
};

struct seep_held_unknowns {
    struct seep_held_unknown *items;
    size_t count;
};

/** What one pass came to, beside links. */
struct seep_held_level {
    uint32_t *front; /* what the next looks for */
    size_t count;
    struct seep_held_unknowns unknown;
};

/** At the clock it is looked after so many words or things. */
#define SEEP_HELD_LOOK 64U

/* chains.c */

/** What repeats in more than half of the front, or over half of the blocks:
 * their ways may have met, beside much that leads nowhere. @return how many, at
 * most SEEP_HELD_REPEATS_MOST, or 0 */
size_t seep_held_find_repeats(struct seep_held_search *search,
                              const struct seep_held_level *level,
                              struct seep_held_repeat *ret_repeats);

/** Follow a chain to its end: the front becomes all that is on it. */
int seep_held_follow_chain(struct seep_held_search *search,
                           struct seep_held_level *level,
                           const struct seep_held_repeat *repeats,
                           size_t count);

/* search.c */

/** Have words that point to the node @number looked for by @scan. */
int seep_held_add_target(const struct seep_held_search *search,
                         struct seep_held_scan *scan, uint32_t number);

/** @return @node; SEEP_HELD_NOTHING: no memory */
uint32_t seep_held_push_new(struct seep_held_search *search, uint32_t **front,
                            size_t *count, uint32_t node);

/** Have @holder looked for in the next level, if it is new. */
void seep_held_go_on_from(struct seep_held_search *search,
                          struct seep_held_level *level, uint32_t holder,
                          uint32_t child);

/** @holder has @child by the word: it is noted, and gone on from, unless it
 * borrows as seep_held_is_entry() says. */
void seep_held_take_link(struct seep_held_search *search,
                         struct seep_held_level *level, uint32_t child,
                         uint32_t holder, const struct seep_held_hit *hit);

/** Does the word hold @child as part of @holder? */
bool seep_held_is_link(struct seep_held_search *search, uint32_t child,
                       uint32_t holder, const struct seep_held_hit *hit);

/** Is it some word of which nothing is known? */
bool seep_held_is_mapping(const struct seep_held_search *search, uint32_t node);

void seep_held_sort_by_value(struct seep_held_scan *scan);

/** From the blocks of the question upwards. */
int seep_held_search_run(struct seep_held_search *search);
bool seep_held_search_is_late(struct seep_held_search *search);

/* paths.c */

/** How many of the blocks have a way by known fields up to a root of a rank not
 * above @rank. */
size_t seep_held_count_named(struct seep_held_search *search, uint8_t rank);

/** The same if fields of objects that C made are known by no rule. */
size_t seep_held_count_nearly_named(struct seep_held_search *search,
                                    uint8_t rank);

/** Strike out what holds nothing on the ways there are so far. */
int seep_held_strike(struct seep_held_search *search);

/*
 * Ways from blocks up to their roots, for groups.c, which says what they have
 * in common.
 */

#define SEEP_HELD_NO_LINK UINT32_MAX

struct seep_held_ways {
    struct seep_held_search *search;
    uint32_t *distance; /* of each node, from its root */
    uint32_t *link; /* by which it goes up; SEEP_HELD_NO_LINK: it is a root, or
                       has none */
};

/* A way in words: steps with their nodes. */
struct seep_held_told {
    struct seep_held_step step;
    uint32_t node;
    uint32_t link;
};

struct seep_held_way {
    uint32_t asked; /* the block's node */
    struct seep_held_told *steps;
    size_t count;
    size_t capacity;
    uint32_t root;
    uint32_t bad; /* a link that says something impossible; SEEP_HELD_NO_LINK:
                     none */
    bool is_live;
};

/** The ways of @count blocks, each of which has .asked. */
int seep_held_tell_all(struct seep_held_ways *ways, struct seep_held_way *all,
                       size_t count);

/** Without a root: upwards until nothing is new. */
int seep_held_tell_unrooted(struct seep_held_search *search,
                            struct seep_held_way *way, bool *ret_is_cycle);

/** Room for the ways of @search. @return -ENOMEM: there is none; to be closed
 * all the same */
int seep_held_ways_open(struct seep_held_search *search,
                        struct seep_held_ways *ret_ways);
void seep_held_ways_close(struct seep_held_ways *ways);

/* groups.c */

/** The groups of the answer, from what was found. */
int seep_held_paths(struct seep_held_search *search,
                    struct seep_held_answer *answer);

/* edges.c */

/** How the object @node has what its word @at points to, which is in the
 * buffer @buffer at @in_buffer, or itself if that is NULL.
 * @return false: it is stale */
bool seep_held_edge_of(struct seep_held_search *search,
                       const struct seep_held_node *node, uint64_t at,
                       const struct seep_held_node *buffer, uint64_t in_buffer,
                       struct seep_held_step *ret_step);

/** Is what @at of @node points to a buffer that belongs to it? */
bool seep_held_owns(struct seep_held_search *search,
                    const struct seep_held_node *node, uint64_t at);

/** Is the word @at of the buffer @buffer one by which the buffers of the object
 * @node hang together, and no item? */
bool seep_held_joins(struct seep_held_search *search,
                     const struct seep_held_node *node,
                     const struct seep_held_node *buffer, uint64_t at);

/** What may be asked of the type of @node afterwards, into a step that has
 * words. */
void seep_held_note_type(struct seep_held_search *search,
                         const struct seep_held_node *node,
                         struct seep_held_step *step);

/** Words for a node into @ret_step. */
void seep_held_describe(struct seep_held_search *search,
                        struct seep_held_node *node,
                        struct seep_held_step *ret_step);

#endif
