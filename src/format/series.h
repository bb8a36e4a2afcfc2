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
 * free that is taken back is none, nor is a block dropped by thinning. So is
 * it of eras: what died in the last three of them, of those born before.
 *
 * Threads: one at a time, who holds the site's lock.
 */
#ifndef SEEP_FORMAT_SERIES_H
#define SEEP_FORMAT_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "format/view.h"
#include "seep/recording.h"

/** The narrowest width, as log2 of ticks, of which @tick is on the grid. */
uint32_t seep_series_width_for(uint64_t tick);

/**
 * The edge of the era that @tick is in: the last moment up to it that a reader
 * can go back to.
 *
 * @param final_tick  of the header: behind it there is no other edge; 0: none
 */
uint32_t seep_series_edge(uint32_t tick, uint32_t final_tick);

/** Bytes and blocks of a word of struct seep_rec_era. */
struct seep_series_died {
    float bytes;
    float blocks;
};
struct seep_series_died seep_series_died(uint64_t word);
uint64_t seep_series_died_sum(uint64_t left, uint64_t right);
/** @sign: 1, or -1 for a death that is taken back; 0 when nothing is left. */
uint64_t seep_series_died_add(uint64_t word, struct seep_weight weight,
                              float sign);

/** @word more of those born in @bucket died in the era at @edge. */
void seep_series_add_died(struct seep_rec_series *series, uint32_t edge,
                          uint32_t bucket, uint64_t word);

/** What @from says comes to @into, but for its low. */
void seep_series_add_bucket(struct seep_rec_bucket *into,
                            const struct seep_rec_bucket *from);

/** At a moment of @bucket so much was live. */
void seep_series_lower(struct seep_rec_bucket *bucket, uint64_t live_bytes);

/** Begin a series of @site at @tick, with @live_bytes there already. */
void seep_series_start(struct seep_rec_series *series, uint32_t site,
                       uint32_t tick, uint64_t live_bytes);

/** A block was allocated at @tick; @live_bytes are the site's before it. */
void seep_series_allocated(struct seep_rec_series *series, uint32_t tick,
                           uint64_t live_bytes, struct seep_weight weight);

/** When a block died: the tick, and the edge of its era. */
struct seep_series_moment {
    uint32_t tick;
    uint32_t edge;
};

/**
 * Something was born at @birth_tick and freed at @tick, with @live_bytes there
 * before and after.
 *
 * @return false, and nothing was done: the two are not both in the last bucket
 */
bool seep_series_passed(struct seep_rec_series *series, uint32_t birth_tick,
                        uint32_t tick, uint64_t live_bytes,
                        struct seep_weight weight);

/** A block born at @birth_tick was freed; @live_bytes are those before it. */
void seep_series_freed(struct seep_rec_series *series,
                       struct seep_series_moment when, uint32_t birth_tick,
                       uint64_t live_bytes, struct seep_weight weight);

/** The free at @when, which the series was told of, did not happen. */
void seep_series_restored(struct seep_rec_series *series,
                          struct seep_series_moment when, uint32_t birth_tick,
                          struct seep_weight weight);

/** Thinning: those born at @birth_tick weigh @before no more but @after. */
void seep_series_reweighed(struct seep_rec_series *series, uint32_t birth_tick,
                           struct seep_weight before, struct seep_weight after);

/*
 * The series of a site that few buckets have anything of: 512 bytes in the
 * place of 11 KiB, for most of the sites that a program has as it starts.
 *
 * Invariant: what a brief expands to is what a series that was told the same
 * would be, save for lows of buckets in which nothing happened. What does not
 * fit is refused, and has changed no sum.
 *
 * Threads: one at a time a site, who holds its lock.
 */

/** As seep_series_start(). */
void seep_brief_start(struct seep_rec_brief *brief, uint32_t site,
                      uint32_t tick, uint64_t live_bytes);

/** As the functions of the same names of a series. @return false: it does not
 * fit, expand it and tell the series */
bool seep_brief_allocated(struct seep_rec_brief *brief, uint32_t tick,
                          uint64_t live_bytes, struct seep_weight weight);
bool seep_brief_freed(struct seep_rec_brief *brief,
                      struct seep_series_moment when, uint32_t birth_tick,
                      uint64_t live_bytes, struct seep_weight weight);
bool seep_brief_restored(struct seep_rec_brief *brief,
                         struct seep_series_moment when, uint32_t birth_tick,
                         struct seep_weight weight);
bool seep_brief_reweighed(struct seep_rec_brief *brief, uint32_t birth_tick,
                          struct seep_weight before, struct seep_weight after);

/** Of the bucket at @slot; UINT32_MAX: it is not in use. */
uint32_t seep_brief_number(const struct seep_rec_brief *brief, uint32_t slot);

/** Into @series, which is all zero. */
void seep_brief_expand(const struct seep_rec_brief *brief,
                       struct seep_rec_series *series);

#endif
