/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stack depot and site table; see sites.h. */
#include "record/sites.h"

#include <stdbool.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "record/claim.h"
#include "record/short_stack.h"

#define CACHE_SLOTS 262144U
#define CACHE_INDEX_BITS 20U
#define CACHE_INDEX_MASK ((UINT64_C(1) << CACHE_INDEX_BITS) - 1)
/* In place of an index: there was no room, nor will there be. The last site of
 * the largest table is never cached. */
#define CACHE_REFUSED CACHE_INDEX_MASK

/*
 * Raw addresses -> site. One word an entry, so that it is never read half
 * written: 44 bits of the hash above the site's index; with the 18 that chose
 * the entry 62 bits must agree. 0 is empty.
 */
static _Atomic uint64_t cache[CACHE_SLOTS];
static _Atomic bool cache_is_used;

void seep_sites_forget(void)
{
    if (!atomic_load_explicit(&cache_is_used, memory_order_relaxed)) {
        return;
    }
    for (uint32_t i = 0; i < CACHE_SLOTS; i++) {
        if (atomic_load_explicit(&cache[i], memory_order_relaxed) != 0) {
            atomic_store_explicit(&cache[i], 0, memory_order_relaxed);
        }
    }
}

static void publish_stack(const struct seep_view *view, uint32_t index,
                          const uint64_t *frames, uint32_t count,
                          enum seep_cut cut)
{
    struct seep_rec_stack *stack = &view->stacks[index];
    uint64_t first = atomic_fetch_add_explicit(&view->header->frames_used,
                                               count, memory_order_relaxed);

    atomic_fetch_add_explicit(&view->header->stack_count, 1,
                              memory_order_relaxed);
    if (first > view->frame_capacity || count > view->frame_capacity - first) {
        seep_view_count(view, SEEP_COUNT_STACKS_FULL, 1);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        atomic_store_explicit(&view->frames[first + i], frames[i],
                              memory_order_relaxed);
    }
    stack->cut = cut;
    stack->first_frame = first;
    /* Release: the frames and fields above; pairs with the acquire load of
     * frame_count in reader/snapshot. */
    atomic_store_explicit(&stack->frame_count, count, memory_order_release);
}

static uint32_t intern_stack(const struct seep_view *view,
                             const uint64_t *frames, uint32_t count,
                             enum seep_cut cut, uint64_t *ret_key)
{
    uint64_t key = seep_hash_words(cut, frames, count);
    uint32_t index = 0;
    bool is_new = false;

    *ret_key = key;
    if (!seep_claim_key(&view->stacks[0].key, sizeof(view->stacks[0]),
                        view->stack_capacity - 1, key, &index, &is_new)) {
        seep_view_count(view, SEEP_COUNT_STACKS_FULL, 1);
        return 0;
    }
    if (is_new) {
        publish_stack(view, index, frames, count, cut);
        seep_view_count(view, SEEP_COUNT_STACKS_CAPTURED, 1);
        seep_view_count(view, SEEP_COUNT_FRAMES_CAPTURED, count);
        seep_view_count(view, SEEP_COUNT_CUT_FIRST + (unsigned)cut, 1);
    }
    return index;
}

static uint32_t intern_site(const struct seep_view *view,
                            struct seep_place place, uint32_t stack,
                            uint64_t stack_key)
{
    uint64_t words[2] = {stack_key, place.space};
    uint64_t key = seep_hash_words(place.device, words, 2);
    uint32_t index = 0;
    bool is_new = false;

    if (!seep_claim_key(&view->sites[0].key, sizeof(view->sites[0]),
                        view->site_capacity - 1, key, &index, &is_new)) {
        seep_view_count(view, SEEP_COUNT_SITES_FULL, 1);
        return 0;
    }
    if (is_new) {
        view->sites[index].space = place.space;
        view->sites[index].device = place.device;
        view->sites[index].stack = stack;
        /* Release: place and stack; pairs with the acquire load of state in
         * reader/snapshot. */
        atomic_store_explicit(&view->sites[index].state, SEEP_PUBLISHED,
                              memory_order_release);
        atomic_fetch_add_explicit(&view->header->site_count, 1,
                                  memory_order_relaxed);
    }
    return index;
}

SEEP_COLD static uint32_t intern(const struct seep_view *view,
                                 struct seep_place place,
                                 const struct seep_sites_stack *stack,
                                 seep_sites_frame frame_of)
{
    /* In place: a hook must do with 2 KiB of stack. */
    uint64_t *frames = stack->addresses;
    uint64_t stack_key = 0;
    uint32_t count = (uint32_t)stack->count;
    uint32_t kept;
    uint32_t index;

    for (uint32_t i = 0; i < count; i++) {
        frames[i] = frame_of(view, frames[i]);
    }
    kept = seep_short_stack_make(view, frames, count, stack->cut);
    index =
        intern_stack(view, frames, kept,
                     kept < count ? SEEP_CUT_DEPTH : stack->cut, &stack_key);
    return intern_site(view, place, index, stack_key);
}

/*
 * Four lanes, each (lane ^ address) * odd: a bijection in either, so that no
 * difference is lost, and the multiplications of four frames overlap. Mixed
 * once at the end. A third of the cost of seep_hash_words() at 40 frames.
 */
static uint64_t hash_addresses(const struct seep_sites_stack *stack,
                               uint64_t seed)
{
    uint64_t lane[4] = {seed, seed + 1, seed + 2, seed + 3};
    size_t i = 0;

    for (; i + 4 <= stack->count; i += 4) {
        for (size_t j = 0; j < 4; j++) {
            lane[j] = (lane[j] ^ stack->addresses[i + j]) * SEEP_HASH_SEED;
        }
    }
    for (size_t j = 0; i < stack->count; i++, j++) {
        lane[j] = (lane[j] ^ stack->addresses[i]) * SEEP_HASH_SEED;
    }
    return seep_hash_words(stack->count, lane, 4);
}

uint32_t seep_sites_intern(const struct seep_view *view,
                           struct seep_place place,
                           const struct seep_sites_stack *stack,
                           seep_sites_frame frame_of)
{
    uint64_t hash = hash_addresses(
        stack, (uint64_t)place.space << 48 ^ (uint64_t)place.device << 52 ^
                   stack->epoch << 8 ^ (uint64_t)stack->cut);
    uint64_t tag;
    uint64_t seen;
    _Atomic uint64_t *entry;
    uint32_t site;

    entry = &cache[hash % CACHE_SLOTS];
    tag = hash & ~CACHE_INDEX_MASK;
    seen = atomic_load_explicit(entry, memory_order_relaxed);
    if (seep_likely((seen & ~CACHE_INDEX_MASK) == tag && seen != 0)) {
        site = (uint32_t)(seen & CACHE_INDEX_MASK);
        if (seep_unlikely(site == CACHE_REFUSED)) {
            seep_view_count(view, SEEP_COUNT_SITES_FULL, 1);
            site = 0;
        }
        return site;
    }
    site = intern(view, place, stack, frame_of);
    if (seep_unlikely(
            !atomic_load_explicit(&cache_is_used, memory_order_relaxed))) {
        atomic_store_explicit(&cache_is_used, true, memory_order_relaxed);
    }
    if (site != CACHE_REFUSED) {
        atomic_store_explicit(entry, tag | (site != 0 ? site : CACHE_REFUSED),
                              memory_order_relaxed);
    }
    return site;
}
