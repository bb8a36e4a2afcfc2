/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Memory before the next malloc is known: for callers inside IFUNC resolvers,
 * and for dlsym's own while it is being asked.
 *
 * Invariant: blocks lie in one static arena, are known by their address for
 * ever, are aligned to 16 or what was asked for, remember their size, and are
 * never given to libc. Nothing here needs a relocation of this library.
 */
#ifndef SEEP_PRELOAD_BOOTSTRAP_H
#define SEEP_PRELOAD_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define SEEP_BOOTSTRAP_BYTES (4U << 20)

extern unsigned char seep_bootstrap_arena[SEEP_BOOTSTRAP_BYTES]
    __attribute__((visibility("hidden"), aligned(4096)));

SEEP_INLINE bool seep_bootstrap_owns(const void *block)
{
    return (uintptr_t)block - (uintptr_t)seep_bootstrap_arena <
           SEEP_BOOTSTRAP_BYTES;
}

/** @return NULL when the arena is spent; zeroed memory otherwise */
void *seep_bootstrap_allocate(size_t alignment, size_t size_bytes);

/** Size that a block of the arena was asked with. */
size_t seep_bootstrap_size(const void *block);

#endif
