/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Time series of one site: what happened in each bucket of the common grid.
 *
 * Invariants: the sum of (allocated - freed) over all buckets plus base_bytes
 * is the site's live bytes; of each bucket, allocated - born_freed is what of
 * those born in it still lives; low_bytes of every bucket up to .last is
 * filled. Buckets after .last are empty, their low is the live bytes. The sum
 * of died over all buckets is that of freed: each free is one death, of the
 * age that the block had then, also of blocks born before the series began. A
 * free that is taken back is none, nor is a block dropped by thinning.
 *
 * Threads: one at a time, who holds the site's lock.
 */
#ifndef SEEP_FORMAT_SERIES_H
#define SEEP_FORMAT_SERIES_H

#include <stdint.h>

#include "format/weight.h"
#include "seep/recording.h"

/** The narrowest width, as log2 of ticks, of which @tick is on the grid. */
uint32_t seep_series_width_for(uint64_t tick);

/** Begin a series of @site at @tick, with @live_bytes there already. */
void seep_series_start(struct seep_rec_series *series, uint32_t site,
                       uint32_t tick, uint64_t live_bytes);

/** Merge neighbours until the width is at least @width_log2. */
void seep_series_widen(struct seep_rec_series *series, uint32_t width_log2);

/** A block was allocated at @tick; @live_bytes are the site's before it. */
void seep_series_allocated(struct seep_rec_series *series, uint32_t tick,
                           uint64_t live_bytes, struct seep_weight weight);

/** A block born at @birth_tick was freed; @live_bytes are those before it. */
void seep_series_freed(struct seep_rec_series *series, uint32_t tick,
                       uint32_t birth_tick, uint64_t live_bytes,
                       struct seep_weight weight);

/** The free at @tick, which the series was told of, did not happen. */
void seep_series_restored(struct seep_rec_series *series, uint32_t tick,
                          uint32_t birth_tick, struct seep_weight weight);

/** A block is live that the series knows nothing of. */
void seep_series_found(struct seep_rec_series *series,
                       struct seep_weight weight);

/** Thinning: those born at @birth_tick weigh @before no more but @after. */
void seep_series_reweighed(struct seep_rec_series *series, uint32_t birth_tick,
                           struct seep_weight before, struct seep_weight after);

#endif
