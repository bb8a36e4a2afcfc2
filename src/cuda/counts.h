/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What went another way in the CUDA part than it should.
 *
 * Invariant: counters only rise, and nothing is decided by them.
 */
#ifndef SEEP_CUDA_COUNTS_H
#define SEEP_CUDA_COUNTS_H

#include <stdint.h>

/** X(SYMBOL, "words"). */
#define SEEP_CUDA_COUNTS(X)                                           \
    X(FULL, "things not recorded because the ledger was full")        \
    X(UNKNOWN, "frees of things that were not recorded")              \
    X(REPLACED, "things closed late because their free was not seen") \
    X(BUSY, "changes given up because another thread was in between") \
    X(SATURATED, "references beyond what an entry can count")         \
    X(NESTED, "calls of the driver by itself")                        \
    X(NEST_FULL, "calls not recorded: too many threads in the driver")

enum seep_cuda_count {
#define SEEP_CUDA_COUNT_VALUE(symbol, words) SEEP_CUDA_COUNT_##symbol,
    SEEP_CUDA_COUNTS(SEEP_CUDA_COUNT_VALUE)
#undef SEEP_CUDA_COUNT_VALUE
        SEEP_CUDA_COUNT_COUNT
};

uint64_t seep_cuda_count_get(enum seep_cuda_count count);
void seep_cuda_count_add(enum seep_cuda_count count);

#endif
