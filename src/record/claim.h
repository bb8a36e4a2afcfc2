/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Finding or claiming an entry of one of the recording's hash tables.
 *
 * Invariant: a key that was claimed stays where it is; nothing is evicted.
 */
#ifndef SEEP_RECORD_CLAIM_H
#define SEEP_RECORD_CLAIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Long, for a table that is nearly full has long runs; only what is new pays.
 */
#define SEEP_CLAIM_PROBE_LIMIT 512U

/**
 * Claim or find @key among words that lie @stride bytes apart, from @first on.
 * Entry 0 is passed: it means "none" in every table.
 *
 * @param mask  entries less one; they are a power of two
 * @param key   not 0
 * @return false: it is not there, and where it could be is full
 */
static inline bool seep_claim_key(_Atomic uint64_t *first, size_t stride,
                                  uint32_t mask, uint64_t key,
                                  uint32_t *ret_index, bool *ret_new)
{
    for (uint32_t step = 0; step < SEEP_CLAIM_PROBE_LIMIT; step++) {
        uint32_t index = ((uint32_t)key + step) & mask;
        _Atomic uint64_t *word =
            (_Atomic uint64_t *)(void *)((char *)first + index * stride);
        /* Relaxed: the key is compared and nothing is read through it. */
        uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);

        if (index == 0) {
            continue;
        }
        if (seen == 0 &&
            atomic_compare_exchange_strong_explicit(
                word, &seen, key, memory_order_relaxed, memory_order_relaxed)) {
            *ret_index = index;
            *ret_new = true;
            return true;
        }
        if (seen == key) {
            *ret_index = index;
            *ret_new = false;
            return true;
        }
    }
    return false;
}

/** Is @key there? */
static inline bool seep_claim_has(const _Atomic uint64_t *first, size_t stride,
                                  uint32_t mask, uint64_t key)
{
    for (uint32_t step = 0; step < SEEP_CLAIM_PROBE_LIMIT; step++) {
        uint32_t index = ((uint32_t)key + step) & mask;
        const _Atomic uint64_t *word =
            (const _Atomic uint64_t *)(const void *)((const char *)first +
                                                     index * stride);
        uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);

        if (index != 0 && (seen == 0 || seen == key)) {
            return seen == key;
        }
    }
    return false;
}

#endif
