/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A site's series as a table, from its first bucket to the end of the run.
 *
 * Invariant: whatever the recording holds, count is 1 to 128, first is below
 * it, no low is above the live bytes at the end of its bucket, and where
 * nothing was allocated or freed since the series began the two are the same.
 */
#ifndef SEEP_READER_SITES_SERIES_H
#define SEEP_READER_SITES_SERIES_H

#include <stdint.h>

#include "seep/recording.h"

struct seep_series_bucket {
    uint64_t live_bytes; /* at its end */
    uint64_t low_bytes;
    uint64_t allocated_bytes;
    uint64_t freed_bytes;
    uint64_t born_freed_bytes;
    uint64_t born_count_q16;
    uint64_t born_freed_count_q16;
    uint64_t died_bytes; /* at an age of [i, i + 1) widths, also of blocks */
    uint64_t died_count_q16; /* born before the series began */
};

struct seep_series_table {
    uint32_t width_log2; /* ticks */
    uint32_t first;      /* the series begins in it: before, only live and low,
                            and those are what it began with */
    uint32_t count;
    struct seep_series_bucket buckets[SEEP_BUCKET_COUNT];
};

/** @param end_tick  at most SEEP_SITES_TICK_MAX */
void seep_series_read(struct seep_rec_series *series, uint32_t site_first_tick,
                      uint64_t end_tick, struct seep_series_table *ret_table);

#endif
