/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Words that threads share and no order hangs on: relaxed loads and stores of
 * any width, and sums of the two. Words of a recording that one thread at a
 * time changes, under a lock or alone, while readers look, are such.
 *
 * Invariant: nothing here orders anything. What must be seen in order says so
 * where it is done, by its own acquire and release.
 */
#ifndef SEEP_BASE_WORD_H
#define SEEP_BASE_WORD_H

#include <stdatomic.h>
#include <stdint.h>

#define seep_word_load(word) atomic_load_explicit(word, memory_order_relaxed)
#define seep_word_store(word, value) \
    atomic_store_explicit(word, value, memory_order_relaxed)

/** One step each, whoever else writes. */
#define seep_word_fetch_add(word, amount) \
    atomic_fetch_add_explicit(word, amount, memory_order_relaxed)
#define seep_word_exchange(word, value) \
    atomic_exchange_explicit(word, value, memory_order_relaxed)
/** From *@seen to @value. @return false: *@seen is what it has instead */
#define seep_word_replace(word, seen, value) \
    atomic_compare_exchange_strong_explicit( \
        word, seen, value, memory_order_relaxed, memory_order_relaxed)

#define seep_word_copy(to, from) seep_word_store(to, seep_word_load(from))

/** Not one step: only who may write the word adds to it. */
static inline void seep_word_add(_Atomic uint64_t *word, uint64_t amount)
{
    seep_word_store(word, seep_word_load(word) + amount);
}

#endif
