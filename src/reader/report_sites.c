/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sites of a report in their order, with what the user and the catalogue
 * know of them.
 *
 * Invariant: every site that may be a leak has frames, whatever limit was
 * asked for (but for MAYBE_LIMIT); where there are rules, all have: without
 * frames no rule could match them.
 */
#include "reader/report_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/sites_series.h"

#define MAYBE_LIMIT 200U

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

        if (end > end_tick && start < end_tick) {
            end = end_tick; /* the run ended inside it */
        }
        if (is_point(table, i)) {
            fill_point(points++, &table->buckets[i], (double)start,
                       (double)end);
        }
    }
}

/* Points from the bucket in which the series begins; none from before it. */
static int add_points(struct seep_report_build *build,
                      const struct seep_site_work *work,
                      struct seep_report_site *site)
{
    struct seep_series_table table;
    struct seep_report_point *points;
    uint64_t end_tick = build->clock.end_tick;
    size_t count = 0;

    if (!seep_sites_has_series(work)) {
        return 0;
    }
    seep_sites_read_series(&build->sites, work, end_tick, &table);
    for (uint32_t i = table.first; i < table.count; i++) {
        count += is_point(&table, i);
    }
    points = seep_store_take(&build->store, count, sizeof(*points));
    if (points == NULL) {
        return -ENOMEM;
    }
    fill_points(points, &table, end_tick);
    site->series = points;
    site->point_count = count;
    return 0;
}

/* A rule that was matched against some sites only would make the verdict depend
 * on how many are shown. */
static bool has_rules(const struct seep_report_options *options)
{
    return options != NULL &&
           (options->suppressions != NULL || options->known != NULL);
}

/* Those that may leak stand first already. */
static size_t count_shown(const struct seep_report_build *build)
{
    size_t limit = build->options != NULL ? build->options->site_limit : 0;
    size_t count = 0;

    if (limit == 0 || limit >= build->sites.count ||
        has_rules(build->options)) {
        return build->sites.count;
    }
    while (count < build->sites.count && count < MAYBE_LIMIT &&
           seep_class_may_leak(build->sites.works[count].site.class)) {
        count++;
    }
    return count > limit ? count : limit;
}

static int group_of(const struct seep_report_site *site)
{
    if (site->suppressed_by != NULL) {
        return 3;
    }
    return site->class == SEEP_CLASS_LEAK      ? 0
           : site->class == SEEP_CLASS_SUSPECT ? 1
                                               : 2;
}

/* Marks only ever move a site down; within a group the order stays. */
static void move_marked(struct seep_report_site *sites, size_t count,
                        struct seep_report_site *scratch)
{
    size_t next = 0;

    for (int group = 0; group <= 3; group++) {
        for (size_t i = 0; i < count; i++) {
            if (group_of(&sites[i]) == group) {
                scratch[next++] = sites[i];
            }
        }
    }
    memcpy(sites, scratch, count * sizeof(*sites));
}

int seep_report_add_sites(struct seep_report_build *build)
{
    size_t count = count_shown(build);
    struct seep_report_site *sites =
        seep_store_take(&build->store, 2 * count, sizeof(*sites));
    int error;

    if (sites == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        sites[i] = build->sites.works[i].site;
        error = add_points(build, &build->sites.works[i], &sites[i]);
        if (error != 0) {
            return error;
        }
    }
    error = seep_report_add_frames(build, sites, count);
    if (error != 0) {
        return error;
    }
    for (size_t i = 0; i < count; i++) {
        seep_report_mark_site(build->options, &sites[i]);
    }
    seep_report_mark_caches(build, sites, count);
    for (size_t i = 0; i < count; i++) {
        /* What is judged next sees the same. */
        build->sites.works[i].site = sites[i];
    }
    move_marked(sites, count, sites + count);
    build->report.sites = sites;
    build->report.site_count = count;
    build->report.site_total = build->sites.count;
    return 0;
}
