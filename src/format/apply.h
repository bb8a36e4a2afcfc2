/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What one event does to a recording's tables, for the fold.
 *
 * Invariant: an event that is not applied has changed nothing.
 *
 * Threads: one at a time a shard, who holds its lock.
 */
#ifndef SEEP_FORMAT_APPLY_H
#define SEEP_FORMAT_APPLY_H

#include <stdbool.h>

#include "format/fold.h"
#include "format/live.h"

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
