/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The arena of the first moments; see bootstrap.h. */
#include "preload/bootstrap.h"

#include <stdatomic.h>
#include <string.h>

#define HEADER_BYTES 16U

unsigned char seep_bootstrap_arena[SEEP_BOOTSTRAP_BYTES]
    __attribute__((visibility("hidden"), aligned(4096)));

static _Atomic uint32_t used_bytes;

void *seep_bootstrap_allocate(size_t alignment, size_t size_bytes)
{
    uint32_t seen = atomic_load_explicit(&used_bytes, memory_order_relaxed);
    uint32_t start;
    uint32_t end;

    if (alignment < HEADER_BYTES) {
        alignment = HEADER_BYTES;
    }
    if (size_bytes > SEEP_BOOTSTRAP_BYTES / 2 ||
        alignment > SEEP_BOOTSTRAP_BYTES / 4) {
        return NULL;
    }
    do {
        start = (uint32_t)((seen + HEADER_BYTES + alignment - 1) &
                           ~(alignment - 1));
        end = start + (uint32_t)size_bytes;
        if (end > SEEP_BOOTSTRAP_BYTES) {
            return NULL;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &used_bytes, &seen, end, memory_order_relaxed, memory_order_relaxed));
    memcpy(&seep_bootstrap_arena[start - sizeof(size_bytes)], &size_bytes,
           sizeof(size_bytes));
    return &seep_bootstrap_arena[start];
}

size_t seep_bootstrap_size(const void *block)
{
    size_t size_bytes;

    memcpy(&size_bytes, (const unsigned char *)block - sizeof(size_bytes),
           sizeof(size_bytes));
    return size_bytes;
}
