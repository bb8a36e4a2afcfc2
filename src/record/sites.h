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

#include <stddef.h>
#include <stdint.h>

#include "format/view.h"
#include "seep/stack.h"

/** One captured stack, as addresses of this process. */
struct seep_sites_stack {
    uint64_t *addresses; /* innermost first; overwritten by an intern */
    size_t count;        /* at most SEEP_STACK_FRAMES_MAX */
    enum seep_cut cut;
    uint64_t epoch; /* of the loaded objects when it was captured */
};

/** Where the memory of a site lies. */
struct seep_place {
    enum seep_space space;
    uint32_t device; /* ordinal + 1; 0: none, or not known */
};

/** How an address becomes a frame of the recording (module and offset). */
typedef uint64_t (*seep_sites_frame)(const struct seep_view *view,
                                     uintptr_t address);

/** @return the site's index, 0 if there is no room */
uint32_t seep_sites_intern(const struct seep_view *view,
                           struct seep_place place,
                           const struct seep_sites_stack *stack,
                           seep_sites_frame frame_of);

/** Forget the cache: in a forked child, before its own recording begins. */
void seep_sites_forget(void);

#endif
