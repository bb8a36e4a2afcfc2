/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory before the next malloc is known, and where all lies that libc does
 * not know; see real.h.
 *
 * Invariant: nothing here reads what a relocation fills.
 */
#include "preload/real.h"

#include <string.h>

#include "base/compiler.h"
#include "base/own.h"
#include "base/word.h"

#define HEADER_BYTES 16U

struct seep_arena seep_arenas
    __attribute__((visibility("hidden"))) = {.low = UINTPTR_MAX};

seep_own_table seep_twins_table __attribute__((visibility("hidden")));

/* Every arena from which blocks are never taken back. */
struct bootstrap {
    unsigned char *start;
    size_t size_bytes;
    _Atomic uint32_t *used_bytes;
};

static unsigned char first_bytes[SEEP_BOOTSTRAP_FIRST_BYTES]
    __attribute__((aligned(4096)));
static _Atomic uint32_t first_used;
static seep_own_table more;
static _Atomic uint32_t more_used;

void seep_arena_widen(const void *start, size_t bytes)
{
    uintptr_t low = (uintptr_t)start;
    uintptr_t end = low + bytes;
    uintptr_t seen = seep_word_load(&seep_arenas.low);

    /* Not tested: another thread in these lines. */
    while (seen > low && !seep_word_replace(&seep_arenas.low, &seen, low)) {
    }
    seen = seep_word_load(&seep_arenas.end);
    while (seen < end && !seep_word_replace(&seep_arenas.end, &seen, end)) {
    }
}

SEEP_COLD bool seep_arena_holds(const void *block)
{
    uintptr_t at = (uintptr_t)block;
    uintptr_t mapped = (uintptr_t)seep_own_get(&more);
    uintptr_t twins = (uintptr_t)seep_own_get(&seep_twins_table);

    return at - (uintptr_t)first_bytes < sizeof(first_bytes) ||
           (mapped != 0 && at - mapped < SEEP_BOOTSTRAP_BYTES) ||
           (twins != 0 && at - twins < SEEP_TWINS_BYTES);
}

/* @return NULL: it has not so much left */
static void *carve(struct bootstrap arena, size_t alignment, size_t size_bytes)
{
    uint32_t seen = seep_word_load(arena.used_bytes);
    size_t start;
    size_t end;

    do {
        uintptr_t at = (uintptr_t)arena.start + seen + HEADER_BYTES;

        start =
            ((at + alignment - 1) & ~(alignment - 1)) - (uintptr_t)arena.start;
        end = start + size_bytes;
        if (end > arena.size_bytes) {
            return NULL;
        }
        /* Not tested: another thread in these lines. */
    } while (!seep_word_replace(arena.used_bytes, &seen, (uint32_t)end));
    memcpy(&arena.start[start - sizeof(size_bytes)], &size_bytes,
           sizeof(size_bytes));
    return &arena.start[start];
}

static void *carve_more(size_t alignment, size_t size_bytes)
{
    struct bootstrap arena = {
        .start = seep_own_make_needed(&more, SEEP_BOOTSTRAP_BYTES),
        .size_bytes = SEEP_BOOTSTRAP_BYTES,
        .used_bytes = &more_used,
    };

    if (arena.start == NULL) {
        return NULL;
    }
    seep_arena_widen(arena.start, arena.size_bytes);
    return carve(arena, alignment, size_bytes);
}

void *seep_bootstrap_allocate(size_t alignment, size_t size_bytes)
{
    struct bootstrap arena = {first_bytes, sizeof(first_bytes), &first_used};
    void *block;

    if (alignment < HEADER_BYTES) {
        alignment = HEADER_BYTES;
    }
    if (size_bytes > SEEP_BOOTSTRAP_BYTES / 2 ||
        alignment > SEEP_BOOTSTRAP_BYTES / 4) {
        return NULL;
    }
    /* As glibc does: up to a power of two. */
    while ((alignment & (alignment - 1)) != 0) {
        alignment += alignment & -alignment;
    }
    seep_arena_widen(first_bytes, sizeof(first_bytes));
    block = carve(arena, alignment, size_bytes);
    return block != NULL ? block : carve_more(alignment, size_bytes);
}
