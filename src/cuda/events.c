/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of events.h and the counters of counts.h: fixed memory. */
#include "cuda/events.h"
#include "cuda/counts.h"

_Atomic(const struct seep_cuda_events *) seep_cuda_events_table
    __attribute__((visibility("hidden")));

static _Atomic uint64_t counts[SEEP_CUDA_COUNT_COUNT];

uint64_t seep_cuda_count_get(enum seep_cuda_count count)
{
    return atomic_load_explicit(&counts[count], memory_order_relaxed);
}

void seep_cuda_count_add(enum seep_cuda_count count)
{
    atomic_fetch_add_explicit(&counts[count], 1, memory_order_relaxed);
}
