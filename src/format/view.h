/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A recording in memory as typed pointers: the worker's own mapping, or a
 * reader's private copy. Nothing is owned.
 *
 * Invariant: of bytes that seep_check() found valid, every pointer and count
 * here stays inside them; indices read from the changing part are still to be
 * checked by who follows them.
 */
#ifndef SEEP_FORMAT_VIEW_H
#define SEEP_FORMAT_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "seep/recording.h"

struct seep_view {
    struct seep_rec_header *header;
    _Atomic uint64_t *counters;
    char *strings;
    struct seep_rec_module *modules;
    struct seep_rec_code *codes;
    _Atomic uint64_t *frames;
    struct seep_rec_stack *stacks;
    struct seep_rec_site *sites;
    struct seep_rec_series *series;
    struct seep_rec_moment *timeline;
    struct seep_rec_device *devices;
    struct seep_rec_mark *marks;
    struct seep_rec_shard *shards; /* heap shards, then the range shard */
    struct seep_rec_event *rings;
    struct seep_rec_live *live;
    uint32_t string_bytes;
    uint32_t module_capacity;
    uint32_t code_capacity; /* a power of two, entry 0 not hashed */
    uint32_t frame_capacity;
    uint32_t stack_capacity; /* a power of two */
    uint32_t site_capacity;  /* a power of two, entry 0 not hashed */
    uint32_t series_capacity;
    uint32_t device_count; /* for so many there is room in DEVICES */
    uint32_t mark_capacity;
    uint32_t shard_count; /* with the range shard, the last one */
    uint32_t ring_slots;
    uint32_t live_capacity;
};

/** Fill @ret_view from a header that is valid, or is being created. */
void seep_view_init(struct seep_view *ret_view, void *recording);

/** String at @string, or "" when it lies outside STRINGS. */
const char *seep_view_string(const struct seep_view *view, seep_string string);

/**
 * Shard of a block's address; of ranges it is the last one, always. Blocks of
 * one page share it: their entries lie together (format/live.c), and a thread
 * that works in its own pages works in its own shards.
 */
uint32_t seep_view_shard_of(const struct seep_view *view, uint64_t address);

/** First entry of a shard's part of RINGS and LIVE. */
static inline struct seep_rec_event *
seep_view_ring(const struct seep_view *view, uint32_t shard)
{
    return view->rings + (size_t)shard * view->ring_slots;
}

#define SEEP_VIEW_POSITION_MASK \
    ((UINT64_C(1) << (64 - SEEP_SLOT_POSITION_SHIFT)) - 1)

/** A slot's state word, and the position that one says. */
static inline uint64_t seep_view_state(const struct seep_view *view,
                                       uint64_t position,
                                       enum seep_slot_state phase,
                                       uint32_t thread)
{
    uint64_t lap = position & ~(uint64_t)(view->ring_slots - 1);

    return lap << SEEP_SLOT_POSITION_SHIFT |
           (uint64_t)phase << SEEP_SLOT_THREAD_BITS |
           (thread & ((UINT32_C(1) << SEEP_SLOT_THREAD_BITS) - 1));
}

static inline uint64_t seep_view_position(const struct seep_view *view,
                                          uint64_t state, uint64_t near)
{
    return (state >> SEEP_SLOT_POSITION_SHIFT) |
           (near & (view->ring_slots - 1));
}

static inline enum seep_slot_state seep_view_phase(uint64_t state)
{
    return (enum seep_slot_state)((state >> SEEP_SLOT_THREAD_BITS) & 3);
}

static inline void seep_view_count(const struct seep_view *view,
                                   unsigned counter, uint64_t amount)
{
    atomic_fetch_add_explicit(&view->counters[counter], amount,
                              memory_order_relaxed);
}

#endif
