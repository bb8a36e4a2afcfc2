/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sites of a report in their order, and the verdict on the process. */
#include "reader/report_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/sites_series.h"

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

    if (work->series == NULL) {
        return 0;
    }
    seep_series_read(work->series, work->first_tick, end_tick, &table);
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

int seep_report_add_sites(struct seep_report_build *build)
{
    size_t limit = build->options != NULL ? build->options->site_limit : 0;
    size_t count = build->sites.count;
    struct seep_report_site *sites;

    if (limit > 0 && count > limit) {
        count = limit;
    }
    sites = seep_store_take(&build->store, count, sizeof(*sites));
    if (sites == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        int error;

        sites[i] = build->sites.works[i].site;
        error = add_points(build, &build->sites.works[i], &sites[i]);
        if (error != 0) {
            return error;
        }
    }
    build->report.sites = sites;
    build->report.site_count = count;
    build->report.site_total = build->sites.count;
    return seep_report_add_frames(build, sites, count);
}

static void decide(struct seep_report *report, enum seep_verdict_class class,
                   const char *reason)
{
    report->verdict.class = class;
    report->verdict.reason = reason;
}

static const char *const verdict_names[SEEP_VERDICT_COUNT] = {
#define VERDICT_NAME(symbol, name) name,
    SEEP_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
};

const char *seep_verdict_name(enum seep_verdict_class class)
{
    return (unsigned)class < SEEP_VERDICT_COUNT ? verdict_names[class] : "";
}

/* The sites stand in their order already, the worst first. */
static void decide_by_sites(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    const struct seep_sites *sites = &build->sites;
    uint64_t untold_bytes = 0;

    for (size_t i = 0; i < sites->count; i++) {
        const struct seep_report_site *site = &sites->works[i].site;

        if (!seep_sites_space_holds(site->space)) {
            continue;
        }
        switch (site->class) {
        case SEEP_CLASS_LEAK:
            decide(report, SEEP_VERDICT_LEAK, site->class_reason);
            return;
        case SEEP_CLASS_SUSPECT:
        case SEEP_CLASS_WARMING:
        case SEEP_CLASS_AGING:
            decide(report, SEEP_VERDICT_SUSPECT, site->class_reason);
            return;
        case SEEP_CLASS_INSUFFICIENT:
            untold_bytes += site->live_bytes;
            break;
        default:
            break;
        }
    }
    if (untold_bytes > sites->live_bytes / 2) {
        decide(report, SEEP_VERDICT_INSUFFICIENT,
               "most of what it holds is too little of each call site to tell");
        return;
    }
    decide(report, SEEP_VERDICT_STEADY, "no call site grows");
}

void seep_report_add_verdict(struct seep_report_build *build)
{
    const char *too_short = seep_sites_too_short(&build->clock);

    if (build->sites.count == 0) {
        decide(&build->report, SEEP_VERDICT_INSUFFICIENT,
               "nothing was recorded");
    } else if (too_short != NULL) {
        decide(&build->report, SEEP_VERDICT_INSUFFICIENT, too_short);
    } else {
        decide_by_sites(build);
    }
}
