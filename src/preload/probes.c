/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The probes, each a function of its own.
 *
 * Invariant: in an optimised build the arguments lie where a call puts them:
 * the profiler's first version reads the registers of a call, not the note.
 * Not in the caller: inlined there they would lie where the compiler likes.
 */
#include "preload/probes.h"

#ifdef SEEP_HAVE_USDT

/* No memory operands: clang would spill into the red zone for each probe. */
#define STAP_SDT_ARG_CONSTRAINT nr
#include <sys/sdt.h>

#ifdef __clang__ /* of the header's own macros, at each use */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif

SEEP_NOINLINE void seep_probes_alloc(uint64_t address, uint64_t size_bytes,
                                     uint64_t weight_bytes)
{
    STAP_PROBE3(otel_memory, alloc, address, size_bytes, weight_bytes);
}

SEEP_NOINLINE void seep_probes_free(uint64_t address)
{
    STAP_PROBE1(otel_memory, free, address);
}

#endif
