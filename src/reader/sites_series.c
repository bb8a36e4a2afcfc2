/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See sites_series.h. */
#include "reader/sites_series.h"

#include <string.h>

#include "reader/sites_clock.h"
#include "reader/snapshot.h"

#define WIDTH_MAX 31U

/* Of a damaged file a sum may be negative. */
static uint64_t not_negative(uint64_t bytes)
{
    return (int64_t)bytes < 0 ? 0 : bytes;
}

/* A bucket of the recording into the one of the table that covers it. */
static void gather(struct seep_series_bucket *into,
                   struct seep_rec_bucket *from, bool has_low)
{
    uint64_t low = seep_snapshot_load(from->low_bytes);

    into->allocated_bytes += seep_snapshot_load(from->allocated_bytes);
    into->freed_bytes += seep_snapshot_load(from->freed_bytes);
    into->born_freed_bytes += seep_snapshot_load(from->born_freed_bytes);
    into->born_count_q16 += seep_snapshot_load(from->born_count_q16);
    into->born_freed_count_q16 +=
        seep_snapshot_load(from->born_freed_count_q16);
    into->died_bytes += seep_snapshot_load(from->died_bytes);
    into->died_count_q16 += seep_snapshot_load(from->died_count_q16);
    if (has_low && low < into->low_bytes) {
        into->low_bytes = low;
    }
}

static void fill_live(struct seep_series_table *table, uint64_t base_bytes,
                      uint32_t site_first)
{
    uint64_t live = base_bytes;

    for (uint32_t i = 0; i < table->count; i++) {
        struct seep_series_bucket *bucket = &table->buckets[i];

        live += bucket->allocated_bytes - bucket->freed_bytes;
        bucket->live_bytes = i < site_first ? 0 : not_negative(live);
        /* Where nothing happened, a lower one is of an event that the worker
         * folded late: it was live already. */
        if (bucket->low_bytes > bucket->live_bytes ||
            (i > table->first && bucket->allocated_bytes == 0 &&
             bucket->freed_bytes == 0)) {
            bucket->low_bytes = bucket->live_bytes;
        }
    }
}

void seep_series_read(struct seep_rec_series *series, uint32_t site_first_tick,
                      uint64_t end_tick, struct seep_series_table *ret_table)
{
    uint32_t width = seep_snapshot_load(series->width_log2) & WIDTH_MAX;
    uint32_t last = seep_snapshot_load(series->last) % SEEP_BUCKET_COUNT;
    uint32_t first_tick = seep_snapshot_load(series->first_tick);
    uint32_t needed = seep_clock_width_for(end_tick);
    uint32_t shift = needed > width ? needed - width : 0;
    uint32_t end;

    memset(ret_table, 0, sizeof(*ret_table));
    ret_table->width_log2 = width + shift;
    end = (uint32_t)(end_tick >> ret_table->width_log2);
    end = last >> shift > end ? last >> shift : end;
    ret_table->count = end + 1;
    ret_table->first = first_tick >> ret_table->width_log2;
    if (ret_table->first >= ret_table->count) {
        ret_table->first = ret_table->count - 1;
    }
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        ret_table->buckets[i].low_bytes = UINT64_MAX;
    }
    for (uint32_t i = 0; i <= last; i++) {
        gather(&ret_table->buckets[i >> shift], &series->buckets[i],
               i >= first_tick >> width);
    }
    fill_live(ret_table, seep_snapshot_load(series->base_bytes),
              site_first_tick >> ret_table->width_log2);
}
