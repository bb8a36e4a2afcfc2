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

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "format/view.h"

struct seep_ring_event {
    uint64_t address;
    uint64_t size;
    uint32_t site;
    uint32_t tick;
    enum seep_event_kind kind;
    unsigned sample_log2;
};

/**
 * @param still_ours  asked before a slot is claimed, and again before it is
 *                    published: false in a child that was forked meanwhile by
 *                    a signal handler, and then nothing is published
 * @return false if the ring is full
 */
bool seep_ring_push(const struct seep_view *view, uint32_t shard,
                    const struct seep_ring_event *event,
                    struct seep_thread *thread, bool (*still_ours)(void));

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

#endif
