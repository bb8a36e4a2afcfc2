/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The writing side of the rule cache.
 *
 * Invariant: whoever finds a slot BUSY leaves it alone, so nobody waits; a
 * thread that is gone while it wrote costs the table one slot.
 */
#include "capture/eh_cache.h"

#include <stdbool.h>

#include "capture/objects.h"

_Static_assert(SEEP_CACHE_SLOTS == 1U << 13,
               "seep_cache_index() takes 13 bits");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "the table must be lock-free");

struct seep_cache_slot seep_cache_slots[SEEP_CACHE_SLOTS]
    __attribute__((aligned(64)));

/* Twice the number of wraps of the 16 bits that the table is emptied for, plus
 * one while that is being done. */
static _Atomic uint64_t wraps;

static void clear_keys(void)
{
    for (uint32_t i = 0; i < SEEP_CACHE_SLOTS; i++) {
        atomic_store_explicit(&seep_cache_slots[i].key, SEEP_CACHE_EMPTY,
                              memory_order_relaxed);
    }
}

/* @return false: this walk goes without the table */
static SEEP_COLD bool empty(uint64_t seen, uint64_t wanted)
{
    /* Acquire: pairs with the release at the end of the emptying before. */
    if (seen % 2 != 0 || !atomic_compare_exchange_strong_explicit(
                             &wraps, &seen, seen + 1, memory_order_acquire,
                             memory_order_relaxed)) {
        return false;
    }
    clear_keys();
    /* Release: pairs with the acquire in seep_cache_open(). */
    atomic_store_explicit(&wraps, wanted, memory_order_release);
    return true;
}

bool seep_cache_open(uint64_t *ret_generation)
{
    uint64_t epoch = seep_objects_epoch();
    uint64_t wanted = epoch >> 17 << 1;
    /* Acquire: pairs with the release in empty(). */
    uint64_t seen = atomic_load_explicit(&wraps, memory_order_acquire);

    *ret_generation = epoch >> 1;
    if (epoch % 2 != 0) {
        return false;
    }
    /* Behind: another thread has seen a later epoch already. */
    return seep_likely(seen == wanted) ||
           (seen < wanted && empty(seen, wanted));
}

void seep_cache_after_fork(void)
{
    uint64_t seen = atomic_load_explicit(&wraps, memory_order_relaxed);

    if (seen % 2 != 0) {
        clear_keys();
        atomic_store_explicit(&wraps, seep_objects_epoch() >> 17 << 1,
                              memory_order_relaxed);
    }
}

/* The slot of the pair to write: one of no use if there is one. */
static struct seep_cache_slot *choose(uint64_t hash, uint64_t generation)
{
    uint32_t index = seep_cache_index(hash);

    for (uint32_t i = 0; i < 2; i++) {
        struct seep_cache_slot *slot = &seep_cache_slots[index ^ i];
        uint64_t key = atomic_load_explicit(&slot->key, memory_order_relaxed);

        if (key != SEEP_CACHE_BUSY && (key & 0xffff) != (generation & 0xffff)) {
            return slot;
        }
        if (key == SEEP_CACHE_EMPTY) {
            return slot;
        }
    }
    return &seep_cache_slots[index ^ (hash >> 50 & 1)];
}

void seep_cache_put(uintptr_t pc, uint64_t generation, uint64_t rule)
{
    uint64_t hash = seep_cache_hash(pc);
    uint64_t key = seep_cache_key(pc, generation);
    struct seep_cache_slot *slot = choose(hash, generation);
    uint64_t seen = atomic_load_explicit(&slot->key, memory_order_relaxed);

    /* Acquire: pairs with the release below of who wrote the slot before. */
    if (pc >> 48 != 0 || seen == SEEP_CACHE_BUSY ||
        !atomic_compare_exchange_strong_explicit(
            &slot->key, &seen, SEEP_CACHE_BUSY, memory_order_acquire,
            memory_order_relaxed)) {
        return;
    }
    /* Release: pairs with the acquire of the rule in seep_cache_read(). */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&slot->rule,
                          (rule & SEEP_CACHE_RULE_MASK) |
                              seep_cache_check(hash, key)
                                  << SEEP_CACHE_CHECK_SHIFT,
                          memory_order_relaxed);
    /* Release: pairs with the acquire of the key in seep_cache_read(). */
    atomic_store_explicit(&slot->key, key, memory_order_release);
}
