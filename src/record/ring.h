/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The ring of one shard: bounded, many producers, one folder at a time.
 *
 * A producer claims the first FREE slot at or after a hint of the tail by one
 * compare-and-swap on the slot itself, so the claim names its owner; writes
 * the event; makes it READY.
 *
 * Invariant: every position below one that was ever claimed is claimed, ready
 * or folded. So of two pushes of which one ended before the other began, the
 * first has the lower position: a free never overtakes its allocation.
 *
 * Nothing here waits. Threads: any number push; folding is format/fold.h.
 */
#ifndef SEEP_RECORD_RING_H
#define SEEP_RECORD_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/own.h"
#include "base/thread.h"
#include "base/word.h"
#include "format/view.h"

/**
 * @param still_ours  asked before a slot is claimed, and again before it is
 *                    published: false in a child that was forked meanwhile by
 *                    a signal handler, and then nothing is published
 * @return false if the ring is full
 */
bool seep_ring_push(const struct seep_view *view, uint32_t shard,
                    const struct seep_event *event, struct seep_thread *thread,
                    bool (*still_ours)(void));

/** Is it a page of the disk that the ring lacks, in its first lap? Then nobody
 * makes room by folding. */
bool seep_ring_is_short(const struct seep_view *view, uint32_t shard);

/**
 * Give up a claim that its own thread has abandoned: the slot becomes an event
 * of no kind. @return true if there was one
 */
bool seep_ring_abandon(const struct seep_view *view,
                       struct seep_thread *thread);

/**
 * The thread that blocks the ring: the one that claimed the slot at .head and
 * has not made it ready. @return its id (low 22 bits), 0 if none
 */
uint32_t seep_ring_blocker(const struct seep_view *view, uint32_t shard);

/** Void the claim at .head of @owner, which is known to be gone. */
void seep_ring_void(const struct seep_view *view, uint32_t shard,
                    uint32_t owner);

/*
 * May this address be recorded? Asked by every free, in private memory.
 *
 * Cells of four bits, sixteen in a word, count the recorded blocks that hash
 * to them: a free reads one word, and a cell is counted up and down by
 * compare-and-swap on that word. There is no bit beside a counter that could
 * be cleared for one block while another's is being set.
 *
 * Invariant: a block that was added, and not forgotten, finds its cell not 0.
 * A cell that reaches 15 stays 15: it answers "maybe" for good.
 *
 * Neighbouring blocks of a page have neighbouring cells, so that the filter is
 * as warm in the cache as the blocks are. But all pages together push half a
 * second-level cache out, the program's memory with it. So a byte for each page
 * is asked first, which counts what was added to the cells of the pages that
 * hash to it, and is 0 for nearly all: 16 KiB.
 */

#define SEEP_FILTER_CELLS_LOG2 20
#define SEEP_FILTER_WORDS (1U << (SEEP_FILTER_CELLS_LOG2 - 4))

#define SEEP_FILTER_PAGES_LOG2 14
#define SEEP_FILTER_PAGES (1U << SEEP_FILTER_PAGES_LOG2)

/* _Atomic uint64_t[SEEP_FILTER_WORDS]. While nothing is recorded there is none,
 * nor is there in exact mode, or where the process has no room for it: then
 * all of a page that has a byte may be recorded. */
extern seep_own_table seep_filter_words __attribute__((visibility("hidden")));
/* At least as many as were added to the cells of its pages and not taken from
 * them. One that reaches 255 stays 255. */
extern _Atomic uint8_t seep_filter_pages[SEEP_FILTER_PAGES]
    __attribute__((visibility("hidden"), aligned(64)));

/** Pages scatter. */
SEEP_INLINE uint64_t seep_filter_page_hash(uintptr_t address)
{
    return (uint64_t)(address >> 12) * UINT64_C(0x9e3779b97f4a7c15);
}

/** The 256 granules of 16 bytes of a page keep their order. */
SEEP_INLINE uint32_t seep_filter_cell(uint64_t page_hash, uintptr_t address)
{
    return (uint32_t)(page_hash >> (64 - SEEP_FILTER_CELLS_LOG2)) ^
           (uint32_t)((address >> 4) & 255);
}

SEEP_INLINE uint32_t seep_filter_page(uint64_t page_hash)
{
    return (uint32_t)(page_hash >> (64 - SEEP_FILTER_PAGES_LOG2));
}

/** False: the block at @address is certainly not recorded. */
SEEP_INLINE bool seep_filter_maybe(uintptr_t address)
{
    uint64_t hash = seep_filter_page_hash(address);
    const _Atomic uint64_t *words;
    uint32_t cell;
    uint64_t word;

    /* Relaxed: who frees a block got its address from who allocated it, and
     * with it, by the program's own order, what was set before. */
    if (seep_likely(
            seep_word_load(&seep_filter_pages[seep_filter_page(hash)]) == 0)) {
        return false;
    }
    words = seep_own_get(&seep_filter_words);
    if (seep_unlikely(words == NULL)) {
        return true;
    }
    cell = seep_filter_cell(hash, address);
    word = seep_word_load(&words[cell / 16]);
    return (word >> (cell % 16 * 4) & 15) != 0;
}

/** @return false if the cell stays set for good from now on */
bool seep_filter_add(uintptr_t address);
void seep_filter_forget(uintptr_t address);

/** Every address may be recorded (exact mode), or none is (a forked child). */
void seep_filter_fill(bool all);

/** A recording of samples begins: while nothing is in the filter. */
void seep_filter_start(void);

#endif
