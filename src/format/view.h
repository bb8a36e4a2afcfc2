/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A recording in memory as typed pointers: the target process's mapping, or a
 * reader's private copy. Nothing is owned.
 *
 * Invariant: of bytes that seep_check() found valid, every pointer and count
 * here stays inside them; indices read from the changing part are still to be
 * checked by who follows them.
 */
#ifndef SEEP_FORMAT_VIEW_H
#define SEEP_FORMAT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/word.h"
#include "seep/recording.h"

struct seep_view;

/**
 * What of a file that grows may be touched, a bit a page. Who has the whole of
 * it in memory, as a reader has its copy, has none of these.
 */
struct seep_view_room {
    _Atomic uint64_t *pages;
    /* Make the pages of bytes @from to @end of the file fit to be touched, and
     * at will some more up to @most. @return false: there is no room */
    bool (*reserve)(const struct seep_view *view, uint64_t from, uint64_t end,
                    uint64_t most);
};

/** The sections in their order: POOL(SYMBOL, type of an entry, pointer, size),
 * and FIXED, whose size follows from others'. */
#define SEEP_VIEW_SECTIONS(POOL, FIXED)                                  \
    FIXED(COUNTERS, _Atomic uint64_t, counters, SEEP_COUNTER_COUNT)      \
    /* heap shards, then the range shard */                              \
    POOL(SHARDS, struct seep_rec_shard, shards, shard_count)             \
    FIXED(TIMELINE, struct seep_rec_moment, timeline, SEEP_BUCKET_COUNT) \
    POOL(STRINGS, char, strings, string_bytes)                           \
    POOL(MODULES, struct seep_rec_module, modules, module_capacity)      \
    /* with entry 0, which is none, as of stacks and sites */            \
    POOL(CODES, struct seep_rec_code, codes, code_capacity)              \
    POOL(FRAMES, _Atomic uint64_t, frames, frame_capacity)               \
    POOL(STACKS, struct seep_rec_stack, stacks, stack_capacity)          \
    POOL(SITES, struct seep_rec_site, sites, site_capacity)              \
    POOL(BRIEFS, struct seep_rec_brief, briefs, brief_capacity)          \
    POOL(SERIES, struct seep_rec_series, series, series_capacity)        \
    FIXED(DEVICES, struct seep_rec_device, devices, device_count)        \
    POOL(MARKS, struct seep_rec_mark, marks, mark_capacity)              \
    FIXED(RINGS, struct seep_rec_event, rings, ring_slots)               \
    POOL(LIVE, struct seep_rec_live, live, live_capacity)

struct seep_view {
    struct seep_rec_header *header;
    const struct seep_view_room *room; /* NULL: all may be touched */
#define SEEP_VIEW_NONE(...)
#define SEEP_VIEW_POINTER(symbol, type, pointer, size) type *pointer;
    SEEP_VIEW_SECTIONS(SEEP_VIEW_POINTER, SEEP_VIEW_POINTER)
#undef SEEP_VIEW_POINTER
#define SEEP_VIEW_COUNT(symbol, type, pointer, count) uint32_t count;
    SEEP_VIEW_SECTIONS(SEEP_VIEW_COUNT, SEEP_VIEW_NONE)
#undef SEEP_VIEW_COUNT
    uint32_t device_count; /* for so many there is room in DEVICES */
    uint32_t ring_slots;
};

/** Fill @ret_view from a header that is valid, or is being created. */
void seep_view_init(struct seep_view *ret_view, void *recording);

/** May the @bytes at @at be touched? */
static inline bool seep_view_has(const struct seep_view *view,
                                 const volatile void *at, size_t bytes)
{
    uint64_t from = (uint64_t)((const volatile char *)at -
                               (const volatile char *)view->header);
    uint64_t page = from / SEEP_PAGE_BYTES;

    if (view->room == NULL) {
        return true;
    }
    for (; page <= (from + bytes - 1) / SEEP_PAGE_BYTES; page++) {
        /* Relaxed: who reserved it did so for every thread. */
        if ((seep_word_load(&view->room->pages[page / 64]) >> (page % 64) &
             1) == 0) {
            return false;
        }
    }
    return true;
}

/**
 * Make sure that the @bytes at @at, which are not none, may be touched.
 *
 * @param extent_bytes  of what grows here, from @extent on: it decides how much
 *                      is reserved at once
 * @return false: there is no room
 */
bool seep_view_reserve(const struct seep_view *view,
                       const volatile void *extent, uint64_t extent_bytes,
                       const volatile void *at, size_t bytes);

/** The same of entry @index of a section. */
bool seep_view_reserve_entry(const struct seep_view *view,
                             enum seep_section which, uint64_t index);

/**
 * The next entry of a section that only grows, of which *@used are taken.
 * @return false: there are @most, or there is no room
 */
bool seep_view_take(const struct seep_view *view, enum seep_section which,
                    _Atomic uint32_t *used, uint32_t most, uint32_t *ret_index);

/**
 * The frames of @stack, its own and those that it shares.
 *
 * @param ret_frames  room for SEEP_STACK_FRAMES_MAX
 * @return how many there are; 0: none that are published, or not damaged
 */
uint32_t seep_view_frames(const struct seep_view *view, uint32_t stack,
                          uint64_t *ret_frames);

/** Is what lives in @space memory of the host, and no file? */
bool seep_view_is_on_host(uint32_t space);

/** Are blocks of @space sampled, unless all are recorded? Of the other spaces
 * each one is. */
bool seep_view_is_sampled(uint32_t space);

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

/** An event as plain values; of a damaged ring they may be anything. */
struct seep_event {
    uint64_t address;
    uint64_t size;
    uint32_t site;
    uint32_t tick;
    enum seep_event_kind kind;
    unsigned sample_log2;
};

static inline void seep_view_count(const struct seep_view *view,
                                   unsigned counter, uint64_t amount)
{
    seep_word_fetch_add(&view->counters[counter], amount);
}

/*
 * What a sampled block stands for.
 *
 * A block of s bytes is kept with p = 1 - exp(-s / mean) and counts as s / p
 * bytes and 1 / p blocks: unbiased (Horvitz, Thompson 1952). Rounded to whole
 * bytes and to 1/65536 blocks, in a way that depends on nothing but the two
 * arguments: what was added for a block is what is taken away for it.
 */

struct seep_weight {
    uint64_t bytes;
    uint64_t count_q16;
};

/** @param sample_log2 mean interval is 2^this bytes; 0: exact */
struct seep_weight seep_weight_of(uint64_t size_bytes, unsigned sample_log2);

/** The probability p itself. */
double seep_weight_probability(uint64_t size_bytes, unsigned sample_log2);

#endif
