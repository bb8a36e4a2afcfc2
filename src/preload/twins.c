/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks that lie where another does, as far as the low bits of an address go:
 * in the first of a few spans where that place is free.
 *
 * Invariant: a bit is set for each piece of a span that is a block's, or that a
 * thread is just taking; only who set it clears it.
 */
#include "preload/twins.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* Before each block is its size (real.h). */
#define HEADER_BYTES 16U
#define PIECE_BYTES 16U
#define WORDS (SEEP_TWINS_SPAN_BYTES / PIECE_BYTES / 64)
/* One less than there is room for: where the first begins the kernel says. */
#define SPANS (SEEP_TWINS_BYTES / SEEP_TWINS_SPAN_BYTES - 1)

static_assert((HEADER_BYTES + SEEP_TWINS_MOST_BYTES) / PIECE_BYTES < 64,
              "of two words at most");

static _Atomic uint64_t taken[SPANS][WORDS];

/* The pieces of a block, in two words that follow each other. */
struct pieces {
    size_t word;
    uint64_t first;
    uint64_t second; /* mostly 0 */
};

static struct pieces pieces_of(size_t offset_bytes, size_t size_bytes)
{
    size_t start = (offset_bytes - HEADER_BYTES) / PIECE_BYTES;
    size_t end = (offset_bytes + size_bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    uint64_t all = (UINT64_C(1) << (end - start)) - 1;
    unsigned shift = start % 64;

    return (struct pieces){
        .word = start / 64,
        .first = all << shift,
        .second = shift + (end - start) > 64 ? all >> (64 - shift) : 0,
    };
}

static void give_back(_Atomic uint64_t *word, uint64_t bits)
{
    /* Pairs with take(): who has it next writes into it after this. */
    atomic_fetch_and_explicit(word, ~bits, memory_order_release);
}

/* All of @bits, or none. */
static bool take(_Atomic uint64_t *word, uint64_t bits)
{
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);

    do {
        if ((seen & bits) != 0) {
            return false;
        }
        /* Pairs with give_back(). Not tested: another thread in between. */
    } while (!atomic_compare_exchange_weak_explicit(
        word, &seen, seen | bits, memory_order_acquire, memory_order_relaxed));
    return true;
}

static bool take_pieces(_Atomic uint64_t *words, struct pieces pieces)
{
    if (!take(&words[pieces.word], pieces.first)) {
        return false;
    }
    if (pieces.second != 0 && !take(&words[pieces.word + 1], pieces.second)) {
        give_back(&words[pieces.word], pieces.first);
        return false;
    }
    return true;
}

/* At a multiple of its size, which the kernel does not align to. */
static unsigned char *first_span(unsigned char *start)
{
    return start + (-(uintptr_t)start & (SEEP_TWINS_SPAN_BYTES - 1));
}

void *seep_twins_make(const void *like, size_t size_bytes)
{
    size_t offset_bytes = (uintptr_t)like % SEEP_TWINS_SPAN_BYTES;
    unsigned char *start;
    unsigned char *block;
    struct pieces pieces;

    if (size_bytes > SEEP_TWINS_MOST_BYTES || offset_bytes < HEADER_BYTES ||
        offset_bytes % PIECE_BYTES != 0 ||
        offset_bytes + size_bytes > SEEP_TWINS_SPAN_BYTES) {
        return NULL;
    }
    start = seep_own_make(&seep_twins_table, SEEP_TWINS_BYTES);
    if (start == NULL) {
        return NULL;
    }
    seep_arena_widen(start, SEEP_TWINS_BYTES);
    block = first_span(start) + offset_bytes;
    pieces = pieces_of(offset_bytes, size_bytes);
    for (size_t i = 0; i < SPANS; i++, block += SEEP_TWINS_SPAN_BYTES) {
        if (take_pieces(taken[i], pieces)) {
            memcpy(block - sizeof(size_bytes), &size_bytes, sizeof(size_bytes));
            return block;
        }
    }
    return NULL;
}

void seep_twins_free(const void *block)
{
    size_t at_bytes = (uintptr_t)block -
                      (uintptr_t)first_span(seep_own_get(&seep_twins_table));
    struct pieces pieces =
        pieces_of(at_bytes % SEEP_TWINS_SPAN_BYTES, seep_arena_size(block));
    _Atomic uint64_t *words = taken[at_bytes / SEEP_TWINS_SPAN_BYTES];

    give_back(&words[pieces.word], pieces.first);
    if (pieces.second != 0) {
        give_back(&words[pieces.word + 1], pieces.second);
    }
}
