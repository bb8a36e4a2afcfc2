/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Apply events to a recording: from a shard's ring to its live table, to the
 * sites' totals and series. The target process folds its own with it, a
 * reader what was pushed and not folded, in its private copy.
 *
 * Invariants: allocated - freed = live, for each site and for each bucket's
 * cohort, after every event, also when the table is thinned; the events of one
 * shard are applied in the order of their positions, each once, save the one
 * that was under way when a folder was abandoned.
 *
 * Nothing here waits, allocates or fails: what cannot be applied is counted.
 */
#ifndef SEEP_FORMAT_FOLD_H
#define SEEP_FORMAT_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "format/live.h"
#include "format/view.h"

/**
 * Blocks that were applied together with their frees, and in the order of
 * events are alive still: the peak of their site counts them. Of two sites at
 * one entry the second is not kept, and its peak may be low by what a batch of
 * events has of it.
 */
#define SEEP_FOLD_YOUNG_SITES 8U
struct seep_fold_young {
    uint64_t bytes;
    uint32_t site;
};

struct seep_fold {
    const struct seep_view *view;
    uint32_t thread; /* who folds, for the lock words; not 0 */
    uint64_t random; /* state of the coin that thinning flips */
    /* Called when a block leaves the live table; NULL: nobody asks. */
    void (*forget)(void *context, uint64_t address);
    void *context;
    /* Where a lock that is held is noted, so that a thread that abandons its
     * fold by a jump can find it: 0, or the index of a site + 1. */
    _Atomic uint32_t *held_site;
    /* Asked before every event: false in a child that a handler has forked in
     * the middle of the fold, and then the fold ends. NULL: nobody forks. */
    bool (*still_ours)(void);
    /* The site that another thread held and the fold ended at: index + 1. */
    uint32_t blocked_site;
    struct seep_fold_young young[SEEP_FOLD_YOUNG_SITES];
};

/** So many events are looked at together: a block whose free is that near is
 * told with it, and costs a third. Who leaves some unfolded has more of these.
 */
#define SEEP_FOLD_LOOKS_AT 240U

/**
 * Fold up to @limit ready events of @shard. The caller holds the shard's lock
 * (seep_fold_try_lock), or owns the memory alone.
 *
 * @return events applied; fewer than were ready when a site was held by
 *         another thread: try again later
 */
uint32_t seep_fold_shard(struct seep_fold *fold, uint32_t shard,
                         uint32_t limit);

/** Ready or claimed events of @shard that are not folded yet. */
uint32_t seep_fold_backlog(const struct seep_view *view, uint32_t shard);

/** Lock words: owner << 32 | sequence, odd while held. */
bool seep_fold_try_lock(_Atomic uint64_t *lock, uint32_t thread);
/** Release @lock if @thread is who holds it; else leave it alone. */
void seep_fold_unlock(_Atomic uint64_t *lock, uint32_t thread);

/** Take over a lock whose owner is gone: completes an interrupted move. */
void seep_fold_repair_shard(struct seep_fold *fold, uint32_t shard);

/**
 * A private copy of a recording: release every lock in it, complete what was
 * interrupted, then fold everything that is ready. Slots that are claimed and
 * not ready are passed over and counted as torn if @dead, else they end the
 * fold of their shard. The totals of a site that was locked when its process
 * died agree with its live blocks afterwards.
 *
 * @param ret_applied  events that were folded
 * @param ret_torn     slots passed over
 */
void seep_fold_private_copy(const struct seep_view *view, bool dead,
                            uint64_t *ret_applied, uint64_t *ret_torn);

/*
 * What one event does to a recording's tables (apply.c), for fold.c.
 *
 * Invariant: an event that is not applied has changed nothing, save that what
 * had to go before the site that is held has gone; told again, it does not go
 * twice. One at a time a shard, who holds its lock.
 */

/** @return false: its site is held by another thread; try again later */
bool seep_apply_event(struct seep_fold *fold, const struct seep_live *live,
                      const struct seep_event *event);

/**
 * May an allocation be told together with the free of its block? Not where a
 * coin decides first whether it counts.
 */
bool seep_apply_may_pass(const struct seep_view *view,
                         const struct seep_event *birth);

/**
 * A block came, and was freed at @death_tick before anybody looked: its site
 * is told of both at once, the live table of neither.
 *
 * @return as of seep_apply_event()
 */
bool seep_apply_pair(struct seep_fold *fold, const struct seep_live *live,
                     const struct seep_event *birth, uint32_t death_tick);

/** In the order of events it is freed now: see struct seep_fold_young. */
void seep_apply_died(struct seep_fold *fold, const struct seep_event *birth);

/** One step towards the level that a full table asks for. */
void seep_apply_thin(struct seep_fold *fold, const struct seep_live *live);

#endif
