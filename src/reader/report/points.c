/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The course of a row: its series as points, and what no series tells of it.
 *
 * A stack that allocated once has no series, its totals say all: here it has
 * one in spite of that, so that a buffer that came and went is seen.
 *
 * Invariant: what the points tell and what is untold are together the totals
 * of the row, but in a damaged file.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "format/account.h"
#include "format/series.h"
#include "reader/report/build.h"

static void fill_point(struct seep_report_point *point,
                       const struct seep_series_bucket *bucket,
                       double start_ticks, double end_ticks)
{
    *point = (struct seep_report_point){
        .start_s = seep_sites_seconds(start_ticks),
        .width_s = seep_sites_seconds(end_ticks - start_ticks),
        .live_bytes = bucket->live_bytes,
        .low_bytes = bucket->low_bytes,
        .allocated_bytes = bucket->allocated_bytes,
        .freed_bytes = bucket->freed_bytes,
        .born_freed_bytes = bucket->born_freed_bytes,
        .born_count = (double)bucket->born_count_q16 / (double)SEEP_COUNT_ONE,
        .born_freed_count =
            (double)bucket->born_freed_count_q16 / (double)SEEP_COUNT_ONE,
    };
}

/* Nothing happened in it, and nothing looks as if it had in a damaged file. */
static bool is_flat(const struct seep_series_bucket *bucket,
                    const struct seep_series_bucket *before)
{
    return bucket->allocated_bytes == 0 && bucket->freed_bytes == 0 &&
           bucket->born_freed_bytes == 0 && bucket->born_count_q16 == 0 &&
           bucket->born_freed_count_q16 == 0 &&
           bucket->live_bytes == before->live_bytes &&
           bucket->low_bytes == before->live_bytes;
}

/* The first and the last always: they say from when and until when. */
static bool is_point(const struct seep_series_table *table, uint32_t i)
{
    return i == table->first || i == table->count - 1 ||
           !is_flat(&table->buckets[i], &table->buckets[i - 1]);
}

static void fill_points(struct seep_report_point *points,
                        const struct seep_series_table *table,
                        uint64_t end_tick)
{
    for (uint32_t i = table->first; i < table->count; i++) {
        uint64_t start = (uint64_t)i << table->width_log2;
        uint64_t end = (uint64_t)(i + 1) << table->width_log2;

        if (end > end_tick) { /* the run ended inside it, or as it began */
            end = end_tick > start ? end_tick : start + 1;
        }
        if (is_point(table, i)) {
            fill_point(points++, &table->buckets[i], (double)start,
                       (double)end);
        }
    }
}

/* What of a row comes to its table by itself. */

/* Is it known when all of it came, and went? Where the death was undone its
 * event still counts. */
static bool is_told(const struct seep_report_build *build, uint32_t index)
{
    const struct seep_rec_site *site = &build->snapshot.view.sites[index];

    return index != 0 && (seep_account_is_whole(site) ||
                          (build->report.end.judged_before &&
                           seep_word_load(&site->event_count) == 2 &&
                           seep_word_load(&site->freed_bytes) == 0));
}

static uint32_t bucket_of(const struct seep_series_table *table, uint32_t tick)
{
    uint32_t at = tick >> table->width_log2;

    return at < table->count ? at : table->count - 1;
}

static void add_death(struct seep_series_table *table, uint32_t born,
                      uint32_t died, struct seep_weight weight, uint32_t age)
{
    struct seep_series_bucket *ages = &table->buckets[bucket_of(table, age)];

    table->buckets[died].freed_bytes += weight.bytes;
    table->buckets[born].born_freed_bytes += weight.bytes;
    table->buckets[born].born_freed_count_q16 += weight.count_q16;
    ages->died_bytes += weight.bytes;
    ages->died_count_q16 += weight.count_q16;
}

/* A stack that allocated once, as a series would tell of it. */
static void add_once(struct seep_series_table *table,
                     const struct seep_rec_site *site)
{
    struct seep_weight weight = {seep_word_load(&site->allocated_bytes),
                                 seep_word_load(&site->allocated_count_q16)};
    uint32_t first = seep_word_load(&site->first_tick);
    uint32_t last = seep_word_load(&site->last_tick);
    bool is_freed = seep_word_load(&site->freed_bytes) != 0;
    uint32_t born = bucket_of(table, first);
    uint32_t died = last > first ? bucket_of(table, last) : born;

    table->first = born < table->first ? born : table->first;
    table->buckets[born].allocated_bytes += weight.bytes;
    table->buckets[born].born_count_q16 += weight.count_q16;
    if (is_freed) {
        add_death(table, born, died, weight, last > first ? last - first : 0);
    }
    for (uint32_t i = born; i < (is_freed ? died : table->count); i++) {
        table->buckets[i].live_bytes += weight.bytes;
        table->buckets[i].low_bytes += i > born ? weight.bytes : 0;
    }
}

/* Of a row of several, what lives of it is in their sum already. */
static void add_told(const struct seep_report_build *build,
                     const struct seep_site_work *work,
                     struct seep_series_table *table)
{
    for (size_t i = 0; i < work->member_count; i++) {
        const struct seep_site_member *member =
            &build->sites.members[work->member_first + i];
        const struct seep_rec_site *site =
            &build->snapshot.view.sites[member->index];

        if (member->series.kind == SEEP_SERIES_NONE &&
            is_told(build, member->index) &&
            (work->member_count == 1 ||
             seep_word_load(&site->freed_bytes) != 0)) {
            add_once(table, site);
        }
    }
}

static void read_table(const struct seep_report_build *build,
                       const struct seep_site_work *work,
                       struct seep_series_table *ret_table)
{
    if (work->member_count > 1 || seep_sites_has_series(work)) {
        seep_sites_read_series(&build->sites, work,
                               seep_clock_grid(&build->clock), ret_table);
    } else {
        seep_series_start_table(seep_clock_grid(&build->clock), ret_table);
    }
    add_told(build, work, ret_table);
}

/* What of it there is no telling of. */

/* From when to when something happened to a member, that nothing tells of.
 * @return false: all is told */
static bool find_untold(const struct seep_report_build *build,
                        const struct seep_site_member *member,
                        double *ret_from_tick, double *ret_to_tick)
{
    struct seep_rec_site *site = &build->snapshot.view.sites[member->index];
    bool has_series = member->series.kind != SEEP_SERIES_NONE;
    struct seep_series_begin begin = seep_series_begin_of(member->series);
    uint32_t begins =
        has_series ? begin.tick : seep_word_load(&site->last_tick) + 1;

    *ret_from_tick = member->first_tick;
    *ret_to_tick = begins;
    return has_series ? begin.base_bytes != 0 || begins > member->first_tick
                      : !is_told(build, member->index);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void add_sums(const struct seep_series_table *table,
                     struct seep_series_bucket *sum)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct seep_series_bucket *bucket = &table->buckets[i];

        sum->allocated_bytes += bucket->allocated_bytes;
        sum->freed_bytes += bucket->freed_bytes;
        sum->born_count_q16 += bucket->born_count_q16;
    }
}

static void add_untold(const struct seep_report_build *build,
                       const struct seep_site_work *work,
                       const struct seep_series_table *table,
                       struct seep_report_site *site)
{
    struct seep_report_untold untold = {.from_s = INFINITY};
    struct seep_series_bucket sum = {0};

    for (size_t i = 0; i < work->member_count; i++) {
        double from_tick;
        double to_tick;

        if (find_untold(build, &build->sites.members[work->member_first + i],
                        &from_tick, &to_tick)) {
            untold.from_s = fmin(untold.from_s, seep_sites_seconds(from_tick));
            untold.to_s = fmax(untold.to_s, seep_sites_seconds(to_tick));
        }
    }
    if (!(untold.from_s < untold.to_s)) {
        return;
    }
    add_sums(table, &sum);
    untold.allocated_bytes = less(site->allocated_bytes, sum.allocated_bytes);
    untold.freed_bytes = less(site->freed_bytes, sum.freed_bytes);
    untold.allocated_count =
        fmax(0, site->allocated_count -
                    (double)sum.born_count_q16 / (double)SEEP_COUNT_ONE);
    if (untold.allocated_bytes > 0 || untold.freed_bytes > 0) {
        site->untold = untold;
    }
}

static void add_temporary(const struct seep_series_table *table,
                          struct seep_report_site *site)
{
    for (uint32_t i = 0; i < table->count; i++) {
        site->died_bytes += table->buckets[i].died_bytes;
    }
    site->temporary_bytes = table->buckets[0].died_bytes;
    site->temporary_count =
        (double)table->buckets[0].died_count_q16 / (double)SEEP_COUNT_ONE;
}

/* Points from the bucket in which the series begins; none from before it. */
int seep_report_add_points(struct seep_report_build *build,
                           const struct seep_site_work *work,
                           struct seep_report_site *site)
{
    struct seep_series_table table;
    struct seep_report_point *points;
    size_t count = 0;

    read_table(build, work, &table);
    add_untold(build, work, &table, site);
    add_temporary(&table, site);
    site->has_totals_only = !seep_sites_has_series(work);
    if (site->has_totals_only &&
        site->untold.allocated_bytes == site->allocated_bytes) {
        return 0;
    }
    for (uint32_t i = table.first; i < table.count; i++) {
        count += is_point(&table, i);
    }
    points = seep_store_take(&build->course, count, sizeof(*points));
    if (points == NULL) {
        return -ENOMEM;
    }
    fill_points(points, &table, build->clock.end_tick);
    site->series = points;
    site->point_count = count;
    return 0;
}
