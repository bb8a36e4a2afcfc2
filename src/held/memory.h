/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The memory of a target process, from outside: of one that lives, or of one
 * that left a core file; which of its words point where, and which blocks its
 * allocators have made of it.
 *
 * Invariant: the target process is not stopped, written to or made larger: a
 * page that is absent or in swap is not touched. All that is read is hostile:
 * an address is a guess until a read of it worked, and it ends in time.
 *
 * Units: bytes. Errors: 0 or negative errno; ret_* untouched on failure.
 * Ownership: strings live as long as the memory. Threads: one at a time.
 */
#ifndef SEEP_HELD_MEMORY_H
#define SEEP_HELD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct seep_held_block;
struct seep_held_scan;

#define SEEP_HELD_PAGE_BYTES 4096U
/** Above it no program of the kernel's 48 bits has anything. */
#define SEEP_HELD_ADDRESS_END (UINT64_C(1) << 47)

struct seep_held_map {
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;
    uint64_t inode;   /* 0: of no file, or of a core */
    const char *path; /* "" if it has no name */
    bool is_readable;
    bool is_writable;
    bool is_code;
    bool is_shared;
    bool is_own;         /* of seep, in the target: its recording, libseep */
    uint8_t *no_word;    /* a bit a page: none of its words is an address */
    uint64_t **points;   /* scan.c's: by windows, where the words of pages
                            point to; NULL: not known */
    uint64_t core_bytes; /* of a core: how much of it is there, */
    uint64_t core_at;    /* and where in the file */
};

struct seep_held_thread {
    pid_t id;
    char name[32];
    uint64_t stack_pointer; /* 0: it was not to be had */
};

struct seep_held_stats {
    uint64_t read_bytes;    /* by scans */
    uint64_t absent_bytes;  /* of the last scan: no page was there, */
    uint64_t swapped_bytes; /* it is in swap, */
    uint64_t failed_bytes;  /* or it could not be read */
    uint32_t scan_count;
};

struct seep_held_memory {
    pid_t pid; /* of a core: the first thread's */
    int pagemap;
    int file;        /* /proc/PID/mem, where process_vm_readv() is refused */
    bool is_by_file; /* it is */
    struct seep_held_map *maps; /* by start */
    size_t map_count;
    struct seep_held_thread *threads;
    size_t thread_count;
    struct seep_held_stats stats;
    /* The rest is memory.c's and core.c's. */
    struct seep_held_page *pages;
    uint32_t generation;
    uint64_t present_bytes; /* of it, when it was opened: how much it is */
    uint64_t points_bytes;  /* that .points of all mappings take */
    double cpu_until_s;     /* reading ends then; 0: it does not */
    bool is_late;           /* it has ended */
    uint32_t read_count;    /* until the clock is looked at */
    uint64_t last_page;     /* of a core, and */
    uint32_t core_reads;    /* how often it was another */
    char *texts;
    uint8_t *window; /* what a scan reads into */
    const uint8_t *core;
    size_t core_bytes;
    uint64_t missing_bytes; /* of a core: memory of nobody's file, not in it */
    const char *other_file; /* of a core: that is not what the process had */
    char *nameless_path;    /* the first file whose names could not be read; */
    int nameless_error;     /* as of the wall. NULL: none */
    uint64_t recording_inode;
};

/** What is to be read, and what of it is seep's own. */
struct seep_held_source {
    pid_t pid;
    const char *core_path; /* NULL: the process itself */
    int memory_fd; /* its /proc/PID/mem, of who could open it; 0: none */
    uint64_t recording_inode; /* 0: not known */
};

/**
 * @return 0; -EACCES, -EPERM: this user may not; -ESRCH: it is gone; -ENOEXEC:
 * no core file
 */
int seep_held_memory_open(const struct seep_held_source *source,
                          struct seep_held_memory *ret_memory);
void seep_held_memory_close(struct seep_held_memory *memory);

/** Look at mappings and threads anew, and forget what was read. */
int seep_held_memory_reload(struct seep_held_memory *memory);

/** Look at mappings anew, and keep what is known of those that are as they
 * were. Forgets what was read. */
int seep_held_memory_extend(struct seep_held_memory *memory);

/** Read for so many seconds of this process's own time; 0: without end. */
void seep_held_memory_allow(struct seep_held_memory *memory, double seconds);

/** Is the time over? Then nothing more can be read. */
bool seep_held_memory_is_late(struct seep_held_memory *memory);

/** How long there still is, more than 0; 0: without end. */
double seep_held_memory_left_s(const struct seep_held_memory *memory);

/** So much was used by another process for this one. */
void seep_held_memory_spend(struct seep_held_memory *memory, double seconds);

/** Forget what was read: the process goes on. */
void seep_held_memory_forget(struct seep_held_memory *memory);

/** @return false: not all of it is there; then @to is undefined */
bool seep_held_read(struct seep_held_memory *memory, uint64_t address, void *to,
                    size_t bytes);

#define SEEP_HELD_HEADS_MOST 256U

/** The first two words of each of so many pages from @address on; of one that
 * is not there 0. */
void seep_held_read_heads(struct seep_held_memory *memory, uint64_t address,
                          size_t pages, uint64_t (*ret_heads)[2]);

/** Of what cannot be read 0. */
uint64_t seep_held_word(struct seep_held_memory *memory, uint64_t address);
int32_t seep_held_int(struct seep_held_memory *memory, uint64_t address);

/** At most @capacity - 1 bytes up to a 0. @return false if there is none */
bool seep_held_string(struct seep_held_memory *memory, uint64_t address,
                      char *text, size_t capacity);

/** The mapping that @address lies in; NULL: none. */
struct seep_held_map *seep_held_map_at(const struct seep_held_memory *memory,
                                       uint64_t address);

/** Can blocks lie in it, or what holds them? */
bool seep_held_map_is_searched(const struct seep_held_map *map);

/** Aligned words of the target, a run of whole pages of @map. */
typedef void seep_held_visitor(void *context, struct seep_held_map *map,
                               const uint64_t *words, uint64_t address,
                               size_t word_count);

/** Show @visit all pages of @map that are there and have words; with @scan but
 * those that may have what it looks for. */
void seep_held_each_page(struct seep_held_memory *memory,
                         struct seep_held_map *map, struct seep_held_scan *scan,
                         seep_held_visitor *visit, void *context);

/** The path under which a reader finds a file of the target's. */
void seep_held_path(const struct seep_held_memory *memory, const char *path,
                    char *text, size_t capacity);

/* process.c: what /proc says of a living process. */

int seep_held_process_maps(struct seep_held_memory *memory);

/** Does @pid have the file of that inode mapped to write to it, as who records
 * has the recording? Whatever that says, nobody else does.
 * @return 1 or 0, or why its mappings cannot be seen */
int seep_held_process_writes(pid_t pid, uint64_t inode);
int seep_held_process_threads(struct seep_held_memory *memory);
/** No mappings, and what was known of them. */
void seep_held_process_forget(struct seep_held_memory *memory);
/** Resident, of which no process says more than it costs the machine. */
uint64_t seep_held_process_bytes(pid_t pid);

/** What a driver maps is its device's: reading it may do something. */
bool seep_held_is_of_device(const char *path);

/* core.c */

/** Mappings and threads from the file at @path. */
int seep_held_core_open(struct seep_held_memory *memory, const char *path);
/** Pages of the file that were read need not stay in memory. */
void seep_held_core_let_go(struct seep_held_memory *memory);
void seep_held_core_close(struct seep_held_memory *memory);
/** A page that the core has not, from the file that was mapped there: the
 * kernel leaves out what nobody wrote to. @return false: none, or another file
 */
bool seep_held_core_read_page(struct seep_held_memory *memory, uint64_t page,
                              void *to);
/** Is the file @fd what the process had at @path? True where the core does not
 * have its beginning. */
bool seep_held_core_agrees(struct seep_held_memory *memory, const char *path,
                           int fd);

/*
 * scan.c: which words of a process point into some ranges, by one pass over its
 * memory.
 *
 * A word is held against the span of all ranges, then against a filter of
 * pages, then found by bisection: nearly all words end at the first.
 *
 * Errors: 0 or -ENOMEM.
 */

/** Words that are looked for: those in [start, end). */
struct seep_held_range {
    uint64_t start;
    uint64_t end;
    uint32_t owner; /* the caller's */
};

struct seep_held_hit {
    uint64_t at;    /* of the word */
    uint64_t value; /* what it is */
    uint32_t range; /* in the scan's, by start */
};

/** More hits are counted, and not kept. */
#define SEEP_HELD_HITS_MOST (UINT32_C(1) << 21)

struct seep_held_scan {
    struct seep_held_range *ranges; /* by start; they do not overlap */
    size_t range_count;
    struct seep_held_hit *hits;
    size_t hit_count;
    size_t hit_capacity;
    uint64_t lost_count; /* hits that were not kept */
    /* The rest is scan.c's. */
    uint64_t *filter;
    uint64_t base;
    uint64_t span;
    bool first_pass;
    uint64_t words_from; /* first pass: a page without a word from here */
    uint64_t words_span; /* on so far has no address */
    struct seep_held_memory *memory; /* of the pass that goes on */
    bool may_pass_over;   /* the caller's: pages that pointed elsewhere once */
    bool has_passed_over; /* some were not read */
    uint64_t *places;     /* that ranges lie in, */
    size_t place_count;   /* 0: all pages are read */
    int error;
};

/** Start from an all-zero struct; ranges may be in any order. */
int seep_held_scan_add(struct seep_held_scan *scan, uint64_t start,
                       uint64_t end, uint32_t owner);

/** Look at all that is written to in @memory. What was found before is
 * forgotten. */
int seep_held_scan_run(struct seep_held_scan *scan,
                       struct seep_held_memory *memory);

/** Ready for words by seep_held_scan_word(). */
int seep_held_scan_prepare(struct seep_held_scan *scan);

/** May page @number of @map have a word that is looked for? As far as was seen
 * of it. */
bool seep_held_scan_wants(struct seep_held_scan *scan,
                          const struct seep_held_map *map, uint64_t number);

/** What scans have found out about pages of @map. */
void seep_held_scan_forget(struct seep_held_memory *memory,
                           struct seep_held_map *map);

/** Keep of @map what was known of it, which is @before, if it only grew. */
void seep_held_scan_keep(struct seep_held_memory *memory,
                         struct seep_held_map *map,
                         struct seep_held_map *before);

/** One word, as a hit if it is one: for those who read by other ways. */
void seep_held_scan_word(struct seep_held_scan *scan, uint64_t at,
                         uint64_t value);

/** No ranges and no hits; memory is kept. */
void seep_held_scan_clear(struct seep_held_scan *scan);
void seep_held_scan_fini(struct seep_held_scan *scan);

/*
 * blocks.c: which block of memory an address lies in: of glibc's malloc, of
 * CPython's small objects, of a mapping that malloc made, of what the recording
 * knows.
 *
 * Invariant: a block is found by what lies in memory alone, so it is a guess,
 * which is checked as far as its allocator left something to check.
 *
 * Errors: 0 or -ENOMEM.
 */

/** A piece of an arena: [start, end), its first chunk, and by cell where its
 * first chunk header lies: by parts, of which there are those with a header. */
struct seep_held_arena {
    uint64_t start;
    uint64_t end;
    uint64_t first;
    uint8_t **crossings;
};

struct seep_held_addresses {
    uint64_t *values; /* open addressing; 0: empty */
    size_t capacity;  /* a power of two */
    size_t count;
};

/** A block that malloc mapped: it begins a page, and says so. */
struct seep_held_mapped {
    uint64_t start; /* of its head */
    uint64_t end;
};

/** Those of a mapping, as far as it was looked at. */
struct seep_held_mapped_of {
    uint64_t map;
    uint64_t from; /* all that begin here */
    uint64_t to;   /* up to there are known */
    uint32_t generation;
    struct seep_held_mapped *items; /* by start */
    size_t count;
};

#define SEEP_HELD_MAPPED_MAPS 64U

struct seep_held_blocks {
    struct seep_held_memory *memory;
    struct seep_held_arena *arenas; /* by start */
    size_t arena_count;
    struct seep_held_addresses idle;     /* free, though they look used */
    uint32_t wait_count;                 /* for walks that failed */
    uint64_t pool_bytes;                 /* of CPython's; 0: there is none */
    const struct seep_held_block *known; /* by address; of the recording */
    size_t known_count;
    struct seep_held_mapped_of mapped[SEEP_HELD_MAPPED_MAPS];
};

/** @return false if it was there, or there is no memory */
bool seep_held_addresses_add(struct seep_held_addresses *set, uint64_t address);
bool seep_held_addresses_has(const struct seep_held_addresses *set,
                             uint64_t address);

enum seep_held_place {
    SEEP_HELD_NO_BLOCK,
    SEEP_HELD_FREE, /* part of the allocator, or of a block that is free */
    SEEP_HELD_CHUNK,
    SEEP_HELD_POOL,
    SEEP_HELD_KNOWN,
    SEEP_HELD_MMAPPED,
    SEEP_HELD_OF_DRIVER, /* it is in no memory that is looked at */
};

/** Find the arenas of glibc, and what in them is free and does not look it. */
int seep_held_blocks_init(struct seep_held_blocks *blocks);
/** The same once more: it went on meanwhile. */
int seep_held_blocks_again(struct seep_held_blocks *blocks);
void seep_held_blocks_fini(struct seep_held_blocks *blocks);

/** The block that @address lies in. */
enum seep_held_place seep_held_block_at(struct seep_held_blocks *blocks,
                                        uint64_t address, uint64_t *ret_start,
                                        uint64_t *ret_end);

/** Of glibc's alone. */
enum seep_held_place seep_held_chunk_at(struct seep_held_blocks *blocks,
                                        uint64_t address, uint64_t *ret_start,
                                        uint64_t *ret_end);

/** A block of glibc's, [start, end); what is not used is free, or the
 * allocator's own. */
typedef void seep_held_chunk_visitor(void *context, uint64_t start,
                                     uint64_t end, bool is_used);

/** All of @arena, as they lie there, but for what there is behind all of them.
 */
void seep_held_blocks_each(const struct seep_held_blocks *blocks,
                           const struct seep_held_arena *arena,
                           seep_held_chunk_visitor *visit, void *context);

/** Blocks of one size, and a word in them. */
struct seep_held_shape {
    uint64_t bytes; /* of the block, as found */
    uint64_t offset;
};

/* pools.c: of CPython alone. */

enum seep_held_place seep_held_pool_at(struct seep_held_blocks *blocks,
                                       uint64_t address, uint64_t *ret_start,
                                       uint64_t *ret_end);
void seep_held_pools_scan(struct seep_held_blocks *blocks,
                          const struct seep_held_shape *shapes,
                          size_t shape_count, struct seep_held_scan *scan);

/** Every word at one of @shapes, of chunks and of pools, is shown to @scan. */
void seep_held_blocks_scan(struct seep_held_blocks *blocks,
                           const struct seep_held_shape *shapes,
                           size_t shape_count, struct seep_held_scan *scan);

#define SEEP_HELD_THERE_MOST 128U

/** Which of @pages pages from @address on are in memory; of a core, or where
 * nobody knows, all. @return how many are told: SEEP_HELD_THERE_MOST at most */
size_t seep_held_pages_there(const struct seep_held_memory *memory,
                             uint64_t address, size_t pages, bool *ret_there);

/** Thread control blocks in @map: words that point to themselves, twice.
 * @return how many, at most @capacity */
size_t seep_held_thread_blocks(struct seep_held_memory *memory,
                               const struct seep_held_map *map,
                               uint64_t *ret_addresses, size_t capacity);

#endif
