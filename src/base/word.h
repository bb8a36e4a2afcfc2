/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Words of a recording that one thread at a time changes, under a lock or
 * alone, while readers look: relaxed loads and stores, and sums of the two.
 *
 * Invariant: nothing here orders anything. What must be seen in order says so
 * where it is done, by its own acquire and release.
 */
#ifndef SEEP_BASE_WORD_H
#define SEEP_BASE_WORD_H

#include <stdatomic.h>
#include <stdint.h>

static inline uint64_t seep_word_load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void seep_word_store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

/** Not one step: only who may write the word adds to it. */
static inline void seep_word_add(_Atomic uint64_t *word, uint64_t amount)
{
    seep_word_store(word, seep_word_load(word) + amount);
}

#endif
