/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Compiled rules by pc and epoch: a fixed, private, lock-free table.
 *
 * A slot is two words. The first is its key: 48 bits of pc, 16 of the epoch;
 * the second the rule, with 8 check bits of the key in it. A writer takes the
 * key to BUSY by compare and swap, writes the rule, then the new key; a reader
 * wants the same key before and after the rule, and the check bits right.
 *
 * Invariant: a rule is only ever found for the pc and the epoch it was
 * compiled in. Epochs of which one dlclose or more is under way have no cache;
 * when the 16 bits wrap, the table is emptied first.
 */
#ifndef SEEP_CAPTURE_EH_CACHE_H
#define SEEP_CAPTURE_EH_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define SEEP_CACHE_SLOTS 8192U
#define SEEP_CACHE_EMPTY UINT64_C(0)
#define SEEP_CACHE_BUSY UINT64_C(1)
#define SEEP_CACHE_CHECK_SHIFT 52U
#define SEEP_CACHE_RULE_MASK ((UINT64_C(1) << 52) - 1)

struct seep_cache_slot {
    _Atomic uint64_t key;
    _Atomic uint64_t rule;
};

extern struct seep_cache_slot seep_cache_slots[SEEP_CACHE_SLOTS];

/**
 * The epoch as the table knows it, for one walk.
 *
 * @return false: no cache for this walk
 */
bool seep_cache_open(uint64_t *ret_generation);

/** In the child of a fork: an emptying that another thread was at is done. */
void seep_cache_after_fork(void);

/** Keep @rule; refused without harm if another thread is at the slot. */
void seep_cache_put(uintptr_t pc, uint64_t generation, uint64_t rule);

static inline uint64_t seep_cache_hash(uintptr_t pc)
{
    return pc * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t seep_cache_key(uintptr_t pc, uint64_t generation)
{
    return pc << 16 | (generation & 0xffff);
}

/** The first of the two slots that @pc may lie in; the other is its pair. */
static inline uint32_t seep_cache_index(uint64_t hash)
{
    return (uint32_t)(hash >> 51);
}

/**
 * What a rule carries of whose it is: a reader who was interrupted between two
 * looks at one key may have read a rule that stood there in between, of another
 * address or of another generation of this one.
 */
static inline uint64_t seep_cache_check(uint64_t hash, uint64_t key)
{
    return (hash ^ key) & 0xfff;
}

static inline uint64_t seep_cache_read(const struct seep_cache_slot *slot,
                                       uint64_t key, uint64_t hash)
{
    uint64_t rule;

    /* Acquire: pairs with the release of the key in seep_cache_put(). */
    if (atomic_load_explicit(&slot->key, memory_order_acquire) != key) {
        return 0;
    }
    /* Acquire: pairs with the release fence after BUSY in seep_cache_put(),
     * so that with a newer rule the key that is read next is newer too. */
    rule = atomic_load_explicit(&slot->rule, memory_order_acquire);
    if (atomic_load_explicit(&slot->key, memory_order_relaxed) != key ||
        rule >> SEEP_CACHE_CHECK_SHIFT != seep_cache_check(hash, key)) {
        return 0;
    }
    return rule & SEEP_CACHE_RULE_MASK;
}

/** @return the rule of @pc, or 0 */
static inline uint64_t seep_cache_get(uintptr_t pc, uint64_t generation)
{
    uint64_t hash = seep_cache_hash(pc);
    uint64_t key = seep_cache_key(pc, generation);
    uint32_t index = seep_cache_index(hash);
    uint64_t rule;

    if (seep_unlikely(pc >> 48 != 0)) {
        return 0;
    }
    rule = seep_cache_read(&seep_cache_slots[index], key, hash);
    if (seep_likely(rule != 0)) {
        return rule;
    }
    return seep_cache_read(&seep_cache_slots[index ^ 1], key, hash);
}

#endif
