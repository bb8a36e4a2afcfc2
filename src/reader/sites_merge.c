/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The series of a row as the sum of its sites'; see sites.h. Invariant: a row
 * of one site reads as that site does, to the byte.
 */
#include "reader/sites.h"

#include <string.h>

bool seep_sites_has_series(const struct seep_site_work *work)
{
    return work->series != NULL || work->loose_count > 0;
}

/* On the grid of the run; not of a damaged file, where it may be on another. */
static bool fits(const struct seep_series_table *sum,
                 const struct seep_series_table *table)
{
    return table->width_log2 == sum->width_log2 && table->count == sum->count;
}

static void add_bucket(struct seep_series_bucket *sum,
                       const struct seep_series_bucket *bucket)
{
    sum->live_bytes += bucket->live_bytes;
    sum->low_bytes += bucket->low_bytes;
    sum->allocated_bytes += bucket->allocated_bytes;
    sum->freed_bytes += bucket->freed_bytes;
    sum->born_freed_bytes += bucket->born_freed_bytes;
    sum->born_count_q16 += bucket->born_count_q16;
    sum->born_freed_count_q16 += bucket->born_freed_count_q16;
    sum->died_bytes += bucket->died_bytes;
    sum->died_count_q16 += bucket->died_count_q16;
}

static void add_table(struct seep_series_table *sum,
                      const struct seep_series_table *table)
{
    if (!fits(sum, table)) {
        return;
    }
    sum->first = table->first < sum->first ? table->first : sum->first;
    for (uint32_t i = 0; i < sum->count; i++) {
        add_bucket(&sum->buckets[i], &table->buckets[i]);
    }
}

/* @rise: live bytes from each bucket on */
static void add_loose(struct seep_series_table *sum, uint64_t *rise,
                      const struct seep_site_loose *loose)
{
    uint32_t at = loose->birth_tick >> sum->width_log2;

    at = at < sum->count ? at : sum->count - 1;
    sum->first = at < sum->first ? at : sum->first;
    sum->buckets[at].allocated_bytes += loose->bytes;
    sum->buckets[at].born_count_q16 += loose->count_q16;
    rise[at] += loose->bytes;
}

static void raise(struct seep_series_table *sum, const uint64_t *rise)
{
    uint64_t live = 0;

    for (uint32_t i = 0; i < sum->count; i++) {
        sum->buckets[i].low_bytes += live;
        live += rise[i];
        sum->buckets[i].live_bytes += live;
        /* Of a damaged file the sums may have gone round. */
        if (sum->buckets[i].low_bytes > sum->buckets[i].live_bytes) {
            sum->buckets[i].low_bytes = sum->buckets[i].live_bytes;
        }
    }
}

static void start_sum(struct seep_series_table *sum, uint64_t end_tick)
{
    memset(sum, 0, sizeof(*sum));
    sum->width_log2 = seep_clock_width_for(end_tick);
    sum->count = (uint32_t)(end_tick >> sum->width_log2) + 1;
    sum->first = sum->count - 1;
}

void seep_sites_read_series(const struct seep_sites *sites,
                            const struct seep_site_work *work,
                            uint64_t end_tick,
                            struct seep_series_table *ret_table)
{
    uint64_t rise[SEEP_BUCKET_COUNT] = {0};

    if (work->member_count <= 1) {
        seep_series_read(work->series, work->first_tick, end_tick, ret_table);
        return;
    }
    start_sum(ret_table, end_tick);
    for (size_t i = 0; i < work->member_count; i++) {
        const struct seep_site_member *member =
            &sites->members[work->member_first + i];
        struct seep_series_table table;

        if (member->series != NULL) {
            seep_series_read(member->series, member->first_tick, end_tick,
                             &table);
            add_table(ret_table, &table);
        }
    }
    for (size_t i = 0; i < work->loose_count; i++) {
        add_loose(ret_table, rise, &sites->loose[work->loose_first + i]);
    }
    raise(ret_table, rise);
}
