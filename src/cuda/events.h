/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the CUDA part tells the recorder: the preload fills the table once, at
 * its start; while it is empty nothing is told.
 *
 * Invariant: of one key the events come in the order of what happened: it is
 * allocated after the driver gave it, freed before the driver is asked to take
 * it, restored if the driver then refused. Keys are not addresses of the
 * process: their upper byte, never 0, says what kind of thing it is, so no two
 * kinds meet, nor any of them a block of the heap.
 */
#ifndef SEEP_CUDA_EVENTS_H
#define SEEP_CUDA_EVENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "seep/recording.h"

struct seep_capture_start;
struct seep_devices_sample;

/** What freed() gives and restored() wants: the tick of the event. */
struct seep_cuda_out {
    bool recorded;
    uint32_t tick;
};

struct seep_cuda_events {
    /** @param device  ordinal, -1 if it is not known or there is none */
    void (*allocated)(const struct seep_capture_start *from,
                      enum seep_space space, int device, uint64_t key,
                      uint64_t size_bytes);
    struct seep_cuda_out (*freed)(uint64_t key);
    void (*restored)(uint64_t key, struct seep_cuda_out out);
    /** What @device has left, without what PyTorch's allocator says of itself;
     * NULL: it is not wanted, and not asked for. */
    void (*headroom)(int device, struct seep_devices_sample *sample);
    /** The driver was looked for: what it gives will soon be told, perhaps by
     * several threads at once. NULL: nobody wants to know. */
    void (*expect)(void);
};

extern _Atomic(const struct seep_cuda_events *) seep_cuda_events_table
    __attribute__((visibility("hidden")));

/** Set by the preload when its recorder is ready; NULL: tell nothing. The
 * table is never freed, and its functions never fail. */
static inline void seep_cuda_events_set(const struct seep_cuda_events *events)
{
    /* Release: whoever finds the table sees its functions; pairs with the
     * acquire in seep_cuda_events(). */
    atomic_store_explicit(&seep_cuda_events_table, events,
                          memory_order_release);
}

static inline const struct seep_cuda_events *seep_cuda_events(void)
{
    /* Acquire: pairs with the release in seep_cuda_events_set(). */
    return atomic_load_explicit(&seep_cuda_events_table, memory_order_acquire);
}

/** What the CUDA part counts, by the counters of the recording that begin with
 * CUDA_: they only rise, and nothing is decided by them. */
uint64_t seep_cuda_count(enum seep_counter counter);
void seep_cuda_count_add(enum seep_counter counter);

#endif
