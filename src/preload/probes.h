/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Static probes (USDT) for profilers that look from outside: otel_memory, the
 * provider that OpenTelemetry's eBPF profiler reads.
 *
 *     otel_memory:alloc(address, size_bytes, weight_bytes)
 *     otel_memory:free(address)
 *
 * They fire where the sampler has decided, in the thread and below the frames
 * of the call, and cost a no-operation while nobody listens: there is no
 * semaphore, so that whatever can place an uprobe sees them.
 *
 * Invariant: the free of a block that alloc fired for fires before the block is
 * given back. A free may fire for a block that no alloc fired for: the filter
 * errs to that side, and so does a realloc that fails.
 */
#ifndef SEEP_PRELOAD_PROBES_H
#define SEEP_PRELOAD_PROBES_H

#include <stdint.h>

#include "base/compiler.h"

#ifdef SEEP_HAVE_USDT

void seep_probes_alloc(uint64_t address, uint64_t size_bytes,
                       uint64_t weight_bytes);
void seep_probes_free(uint64_t address);

#else

#define seep_probes_alloc(address, size_bytes, weight_bytes) \
    ((void)(address), (void)(size_bytes), (void)(weight_bytes))
#define seep_probes_free(address) ((void)(address))

#endif

#endif
