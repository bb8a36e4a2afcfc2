/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The process over time: resident memory, swap, cgroup, progress, what the
 * allocator says of itself, and what the GPUs have left; one sample a bucket of
 * the common grid.
 *
 * Invariant: whoever takes a sample is alone in it (try, never wait), makes
 * few system calls, keeps no descriptor, and never makes one again once the
 * process has restricted itself.
 */
#ifndef SEEP_RECORD_TIMELINE_H
#define SEEP_RECORD_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/view.h"

/** Forget everything, in a new recording's process. */
void seep_timeline_start(void);

/** Is a sample due at @tick? One load and one compare. */
bool seep_timeline_due(uint32_t tick);

/** Will it look at what lies in LIVE? What was folded before is seen. */
bool seep_timeline_looks_at_pages(uint32_t tick);

/** Take it, unless another thread is taking it. */
void seep_timeline_take(const struct seep_view *view, uint32_t thread,
                        uint32_t tick);

/**
 * @thread left a hook by a jump: if out of a sample, let others take the next.
 * Who jumps out of a hook may jump out of the allocator, with its lock: it is
 * not asked any more.
 */
void seep_timeline_recover(const struct seep_view *view, uint32_t thread);

/** At most once in this time: cgroup, swap, allocator. The tests build the
 * preload a second time with 0, which is at every sample. */
#ifndef SEEP_TIMELINE_EVERY_NS
#define SEEP_TIMELINE_EVERY_NS UINT64_C(10000000000)
#endif

/** What an allocator says of itself; 0: it does not tell. */
struct seep_timeline_figures {
    uint64_t allocated_bytes; /* all as in struct seep_rec_moment */
    uint64_t active_bytes;
    uint64_t resident_bytes;
    uint64_t retained_bytes;
    uint64_t free_chunks;
};

/**
 * Asks it. May take the allocator's locks.
 *
 * @return 0; -EAGAIN not here, another time perhaps; another negative errno
 *         if it need never be asked again in this process
 */
typedef int seep_timeline_ask(struct seep_timeline_figures *ret_figures);

/** From the constructor. Without this no allocator is ever asked. */
void seep_timeline_set_allocator(seep_timeline_ask *ask);

/** Is it time to ask the allocator? One load. */
bool seep_timeline_wants_allocator(void);

/**
 * Ask it, into the sample of @tick; unless another thread is in the timeline.
 * Only where this thread certainly holds no lock of the allocator.
 */
void seep_timeline_ask_allocator(const struct seep_view *view, uint32_t thread,
                                 uint32_t tick);

/** No system call from here on. */
void seep_timeline_restrict(void);

/*
 * What the GPUs have left, over time: one sample a bucket and device. Whoever
 * writes is alone in it (try, never wait); a sample that comes while another is
 * being written is left out. No system call.
 */

/** In bytes, as in struct seep_rec_device; 0: not told. */
struct seep_devices_sample {
    uint64_t free_bytes;
    uint64_t total_bytes;
    uint64_t pool_reserved_bytes;
    uint64_t pool_used_bytes;
    uint64_t graph_reserved_bytes;
    uint64_t graph_used_bytes;
    uint64_t tensor_reserved_bytes;
    uint64_t tensor_allocated_bytes;
    uint64_t held_bytes;
};

/** Forget everything, in a new recording's process. */
void seep_devices_start(void);

/** @sample is that of device @ordinal at @tick. */
void seep_devices_take(const struct seep_view *view, uint32_t ordinal,
                       uint32_t tick, const struct seep_devices_sample *sample);

#endif
