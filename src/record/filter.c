/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The filter of recorded addresses; see filter.h. */
#include "record/filter.h"

#define CELL_FULL 15U

_Atomic uint64_t seep_filter_words[SEEP_FILTER_WORDS]
    __attribute__((visibility("hidden"), aligned(64)));

/* Add @delta to the cell of @address, unless it is full (or empty, to take
 * from). @return the value after it */
static unsigned change(uintptr_t address, int delta)
{
    uint32_t cell = seep_filter_cell(address);
    _Atomic uint64_t *word = &seep_filter_words[cell / 16];
    unsigned shift = cell % 16 * 4;
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    uint64_t next;
    unsigned count;

    do {
        count = (unsigned)(seen >> shift) & CELL_FULL;
        if (count == CELL_FULL || (count == 0 && delta < 0)) {
            return count;
        }
        next = seen + ((uint64_t)(int64_t)delta << shift);
    } while (!atomic_compare_exchange_weak_explicit(
        word, &seen, next, memory_order_relaxed, memory_order_relaxed));
    return count + (unsigned)delta;
}

bool seep_filter_add(uintptr_t address)
{
    return change(address, 1) != CELL_FULL;
}

void seep_filter_forget(uintptr_t address)
{
    change(address, -1);
}

void seep_filter_fill(bool all)
{
    for (uint32_t i = 0; i < SEEP_FILTER_WORDS; i++) {
        uint64_t word = all ? UINT64_MAX : 0;

        /* What is right already is not written: no page is touched for it. */
        if (atomic_load_explicit(&seep_filter_words[i], memory_order_relaxed) !=
            word) {
            atomic_store_explicit(&seep_filter_words[i], word,
                                  memory_order_relaxed);
        }
    }
}
