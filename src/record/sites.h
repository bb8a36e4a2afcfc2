/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From a captured stack to its site: the stack depot, the site table and a
 * private cache before them.
 *
 * Invariant: a site, once given an index, keeps it; nothing is evicted. A full
 * table refuses, and the event is charged to site 0 and counted.
 *
 * Threads: any number; lock-free, bounded steps, nobody waits. A thread that
 * dies between claiming an entry and publishing it costs one site its frames.
 */
#ifndef SEEP_RECORD_SITES_H
#define SEEP_RECORD_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/view.h"
#include "seep/stack.h"

/** One captured stack, as addresses of this process. */
struct seep_sites_stack {
    uint64_t *addresses; /* innermost first; overwritten, as .count is */
    size_t count;        /* at most SEEP_STACK_FRAMES_MAX */
    enum seep_cut cut;
    uint64_t epoch; /* of the loaded objects when it was captured */
    bool is_native; /* no frame of Python is among them */
};

/** Where the memory of a site lies. */
struct seep_place {
    enum seep_space space;
    uint32_t device; /* ordinal + 1; 0: none, or not known */
};

/** How an address becomes a frame of the recording (module and offset). */
typedef uint64_t (*seep_sites_frame)(const struct seep_view *view,
                                     uintptr_t address);

/** @stack is overwritten. @return the site's index, 0 if there is no room */
uint32_t seep_sites_intern(const struct seep_view *view,
                           struct seep_place place,
                           struct seep_sites_stack *stack,
                           seep_sites_frame frame_of);

/** Forget the cache: in a forked child, before its own recording begins. */
void seep_sites_forget(void);

/*
 * Finding an entry of one of the recording's tables by its key. The entries lie
 * in the file in the order in which they came; the index is the process's own,
 * for no reader asks it.
 *
 * Invariant: who finds an index finds the entry's key and its page; an entry
 * stays what it is, nothing is evicted.
 *
 * Threads: any number; lock-free, bounded steps, nobody waits.
 */

enum seep_index_table {
    SEEP_INDEX_STACKS,
    SEEP_INDEX_SITES,
    SEEP_INDEX_CODES,
    SEEP_INDEX_COUNT
};

enum seep_index_answer {
    SEEP_INDEX_FOUND,
    SEEP_INDEX_NEW,    /* the caller fills the entry */
    SEEP_INDEX_FULL,   /* nor will there ever be room */
    SEEP_INDEX_NO_ROOM /* the disk has none; later it may */
};

/** Bytes of memory for the index of a recording with @header. */
uint64_t seep_index_bytes(const struct seep_rec_header *header);

/** Begin with @memory, zeroed. NULL: forget the last one. */
void seep_index_start(const struct seep_view *view, void *memory);

/** Find or add @key, which is not 0. Entry 0, which is none, is never given. */
enum seep_index_answer seep_index_claim(const struct seep_view *view,
                                        enum seep_index_table table,
                                        uint64_t key, uint32_t *ret_index);

/** Is @key there? */
bool seep_index_has(const struct seep_view *view, enum seep_index_table table,
                    uint64_t key);

/*
 * What is kept of a stack that is met for the first time, if it is an import's
 * or the table of sites fills up: a program that has more stacks than there is
 * room for must not fill it before it begins to leak.
 *
 * Invariant: it loses outer frames, in which stacks differ most and which say
 * least; but not the line that is the user's, nor the thread's name. A stack
 * that is in the depot already stays as it is.
 */

/** From here on each new stack is short, however empty the table is. Before
 * the first one, by the constructor. */
void seep_short_stack_always(bool always);

/**
 * An import's stack is short before anybody asks which site it is: most of an
 * import's stacks differ in frames that none of them keeps. Leaves the longest
 * form of the *@count frames, addresses as captured, in place.
 *
 * @return is it an import's? If not, nothing is changed
 */
bool seep_short_stack_import(const struct seep_view *view, uint64_t *frames,
                             size_t *count, enum seep_cut *cut);

/** Leave what is to be kept of the *@count frames, in place.
 * @param is_import  the above was true of them
 * @param cut  why it ends, becomes why what is left does */
void seep_short_stack_make(const struct seep_view *view, enum seep_space space,
                           bool is_import, uint64_t *frames, uint32_t *count,
                           enum seep_cut *cut);

#endif
