/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See replay_run.h. */
#include "replay_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/judge/sites.h"
#include "reader/judge/verdict.h"
#include "replay_input.h"

static uint64_t whole(const json_t *object, const char *name, size_t i)
{
    const json_t *array = json_object_get(object, name);
    double value = json_number_value(json_array_get(array, i));

    return value >= 0 && value < 0x1p63 ? (uint64_t)value : 0;
}

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static void fill_series(const json_t *site, uint64_t end_tick,
                        struct seep_rec_series *series)
{
    uint32_t width = seep_series_width_for(end_tick);

    series->width_log2 = width;
    series->last = (uint32_t)(end_tick >> width);
    for (size_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        struct seep_rec_bucket *bucket = &series->buckets[i];

        bucket->allocated_bytes = whole(site, "allocated", i);
        bucket->freed_bytes = whole(site, "freed", i);
        bucket->low_bytes = whole(site, "low", i);
        bucket->born_count_q16 = whole(site, "born_count", i) << 16;
        bucket->born_freed_bytes = whole(site, "born_freed", i);
        bucket->born_freed_count_q16 = whole(site, "born_freed_count", i) << 16;
        bucket->died_bytes = whole(site, "died", i);
        bucket->died_count_q16 = whole(site, "died_count", i) << 16;
    }
}

static void fill_work(const json_t *site, const struct seep_clock *clock,
                      struct seep_sites *sites, struct seep_site_work *work)
{
    uint64_t old_ticks = seep_evidence_old_ticks(clock);
    double live = 0;

    for (size_t i = 0; i < work->survivor_count; i++) {
        struct seep_survivor *survivor =
            &sites->survivors[work->survivor_first + i];
        work->old_count +=
            survivor->birth + (double)old_ticks <= (double)clock->end_tick;
        survivor->birth_tick = (uint32_t)survivor->birth;
        survivor->birth = seep_clock_at(clock, survivor->birth);
        live += survivor->weight;
        work->variance += survivor->variance;
    }
    work->first_tick = (uint32_t)number(site, "first_tick");
    for (size_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        work->site.allocated_bytes += whole(site, "allocated", i);
    }
    work->site.allocated_count = number(site, "allocated_count");
    work->site.freed_count = number(site, "freed_count");
    work->event_count =
        (uint64_t)(work->site.allocated_count + work->site.freed_count);
    work->site.live_count = work->site.allocated_count - work->site.freed_count;
    work->site.live_bytes = (uint64_t)live;
    sites->live_bytes[SEEP_PLACE_HOST] += work->site.live_bytes;
}

/* The survivors of all sites in one array, as sites.c has them. */
static bool add_survivors(const json_t *site, struct seep_sites *sites,
                          struct seep_site_work *work)
{
    struct seep_survivor *own;
    struct seep_survivor *all;
    bool done = replay_read_survivors(site, &own, &work->survivor_count);
    size_t count = sites->survivor_count + work->survivor_count;

    work->survivor_first = sites->survivor_count;
    all = done ? realloc(sites->survivors, (count + 1) * sizeof(*all)) : NULL;
    if (all == NULL) {
        free(own);
        return false;
    }
    for (size_t i = 0; i < work->survivor_count; i++) {
        all[work->survivor_first + i] = own[i];
    }
    free(own);
    sites->survivors = all;
    sites->survivor_count = count;
    return true;
}

static bool read_sites(const json_t *list, const struct seep_clock *clock,
                       struct seep_rec_series *series, struct seep_sites *sites)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *site = json_array_get(list, i);
        struct seep_site_work *work = &sites->works[i];

        if (!add_survivors(site, sites, work)) {
            return false;
        }
        work->index = (uint32_t)i;
        work->touched_share = 1;
        work->grown_share = 1;
        if (json_object_get(site, "low") != NULL) {
            fill_series(site, clock->end_tick, &series[i]);
            work->series = seep_series_source_whole(&series[i]);
        }
        fill_work(site, clock, sites, work);
        sites->count++;
    }
    return true;
}

static json_t *pack_site(const struct seep_site_work *work)
{
    const struct seep_growth *growth = &work->growth;

    return json_pack(
        "{s:i, s:s, s:s, s:b, s:b, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:f}",
        "index", (int)work->index, "class", seep_class_name(work->site.class),
        "reason", work->site.class_reason, "tested", growth->tested,
        "growing_block", growth->growing_block, "has_growth",
        work->site.has_growth, "rate", growth->rate.estimate, "low",
        growth->rate.low, "high", growth->rate.high, "per_s",
        work->site.growth_bytes_per_s.estimate, "p", growth->p, "confidence",
        growth->confidence, "mature_count", growth->mature_count,
        "effective_count", growth->effective_count);
}

/* What lives of each tenth of the run, as sites.c has it. */
static void fill_windows(const struct seep_clock *clock,
                         struct seep_sites *sites)
{
    for (size_t i = 0; i < sites->count; i++) {
        struct seep_site_work *work = &sites->works[i];

        for (size_t k = 0; k < work->survivor_count; k++) {
            const struct seep_survivor *survivor =
                &sites->survivors[work->survivor_first + k];
            double share =
                (double)survivor->birth_tick / ((double)clock->end_tick + 1);

            work->site.window_bytes[(int)(fmin(0.999, share) *
                                          SEEP_GROWTH_WINDOWS)] +=
                survivor->weight;
        }
    }
}

/* Of the process: what its private memory was at the end of each bucket, the
 * mean interval of its sampling, and its call sites. */
static json_t *judge_process(const json_t *run, const struct seep_clock *clock,
                             const struct seep_sites *sites)
{
    const json_t *private = json_object_get(run, "private");
    double end_s = seep_sites_seconds((double)clock->end_tick);
    struct seep_window_series series = {.count = 0};
    struct seep_verdict_input input = {
        .works = sites->works,
        .count = sites->count,
        .duration_s = end_s,
        .too_short = seep_sites_too_short(clock),
        .sample_bytes = number(run, "sample_bytes"),
    };
    struct seep_report_verdict verdict;
    struct seep_verdict_now now;
    double last = 0;

    memcpy(input.live_bytes, sites->live_bytes, sizeof(input.live_bytes));
    for (size_t i = 0; i < json_array_size(private); i++) {
        last = json_number_value(json_array_get(private, i));
        seep_window_add(
            &series, end_s * (double)(i + 1) / (double)json_array_size(private),
            last);
    }
    seep_drift_of(&series, 0, end_s, seep_drift_floor_bytes(last),
                  &input.private_drift);
    seep_verdict_decide(&input, &verdict, &now);
    return json_pack("{s:s, s:s, s:b, s:f}", "class",
                     seep_verdict_name(verdict.class), "reason", verdict.reason,
                     "reassures", verdict.reassures, "hidden",
                     verdict.hidden_bytes_per_s * end_s);
}

json_t *replay_run(const json_t *run)
{
    const json_t *list = json_object_get(run, "sites");
    size_t count = json_array_size(list);
    struct seep_sites sites = {.works =
                                   calloc(count + 1, sizeof(*sites.works))};
    struct seep_rec_series *series = calloc(count + 1, sizeof(*series));
    struct seep_clock clock;
    json_t *row = NULL;

    if (sites.works != NULL && series != NULL && json_is_array(list) &&
        replay_read_clock(json_object_get(run, "clock"), &clock) &&
        read_sites(list, &clock, series, &sites)) {
        json_t *verdicts = json_array();

        fill_windows(&clock, &sites);
        seep_sites_judge(&sites, &clock);
        for (size_t i = 0; i < count; i++) {
            json_array_append_new(verdicts, pack_site(&sites.works[i]));
        }
        row = json_pack("{s:s, s:o}", "clock", replay_clock_name(&clock),
                        "sites", verdicts);
        json_object_set(row, "id", json_object_get(run, "id"));
        if (json_object_get(run, "private") != NULL) {
            json_object_set_new(row, "verdict",
                                judge_process(run, &clock, &sites));
        }
    }
    free(series);
    seep_sites_fini(&sites);
    return row;
}
