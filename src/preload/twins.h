/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Blocks that lie where another does, as far as the low bits of an address go.
 *
 * CPython's cache of methods finds its entries by the low 15 bits of where a
 * name lies, and keeps the name. Names that are made for one look-up come from
 * the same few addresses and push each other out; one that lay elsewhere would
 * stay. So one that is to be malloc's gets those bits of the block that Python
 * would have had, which malloc cannot be asked for.
 *
 * Invariant: a block is handed out once until it is freed, by any thread, in
 * this process or a forked child of it; it is known by its address to the hooks
 * of free and realloc, and libc never sees it. Nothing here locks or waits.
 */
#ifndef SEEP_PRELOAD_TWINS_H
#define SEEP_PRELOAD_TWINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "preload/real.h"

/** The entries of the cache are found by the remainder of this, and no more. */
#define SEEP_TWINS_SPAN_BYTES (32U << 10)

/** The most that a block may have. */
#define SEEP_TWINS_MOST_BYTES 512U

/** @return NULL: there is no room for @size_bytes at such a place */
void *seep_twins_make(const void *like, size_t size_bytes);

SEEP_INLINE bool seep_twins_own(const void *block)
{
    uintptr_t start = (uintptr_t)seep_own_get(&seep_twins_table);

    return start != 0 && (uintptr_t)block - start < SEEP_TWINS_BYTES;
}

/** @block, which they own, goes. */
void seep_twins_free(const void *block);

#endif
