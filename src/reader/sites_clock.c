/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See sites_clock.h. */
#include "reader/sites_clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "reader/snapshot.h"

/* A bucket counts for at most so many medians: loading the weights is up to
 * half of all bytes, and not half of the work. */
#define CLIP_MEDIANS 3.0

#define LATE_FROM 0.8 /* of the time: what counts as now */

static double least(double a, double b)
{
    return a < b ? a : b;
}

uint32_t seep_clock_width_for(uint64_t tick)
{
    uint32_t width = SEEP_FIRST_WIDTH_LOG2;

    while (tick >> width >= SEEP_BUCKET_COUNT) {
        width++;
    }
    return width;
}

/* End of bucket @i; the run may end inside the last one. */
static double edge(const struct seep_clock *clock, uint32_t i)
{
    return least((double)((uint64_t)i << clock->width_log2),
                 (double)clock->end_tick);
}

/* Sum @work up into shares. @return false if there was none */
static bool accumulate(struct seep_clock *clock, const double *work)
{
    double sum = 0;

    clock->at[0] = 0;
    for (uint32_t i = 0; i < clock->count; i++) {
        sum += work[i];
        clock->at[i + 1] = sum;
    }
    if (!(sum > 0)) {
        return false;
    }
    for (uint32_t i = 1; i <= clock->count; i++) {
        clock->at[i] /= sum;
    }
    clock->at[clock->count] = 1;
    return true;
}

static bool by_time(struct seep_clock *clock)
{
    double work[SEEP_BUCKET_COUNT] = {0};

    for (uint32_t i = 0; i < clock->count; i++) {
        work[i] = edge(clock, i + 1) - edge(clock, i);
    }
    return accumulate(clock, work);
}

static int compare(const void *a, const void *b)
{
    const double *left = a;
    const double *right = b;

    return (*left > *right) - (*left < *right);
}

static void clip(double *work, uint32_t count)
{
    double sorted[SEEP_BUCKET_COUNT];
    uint32_t filled = 0;
    double most;

    for (uint32_t i = 0; i < count; i++) {
        if (work[i] > 0) {
            sorted[filled++] = work[i];
        }
    }
    if (filled == 0) {
        return;
    }
    qsort(sorted, filled, sizeof(*sorted), compare);
    most = CLIP_MEDIANS * (sorted[(filled - 1) / 2] + sorted[filled / 2]) / 2;
    for (uint32_t i = 0; i < count; i++) {
        work[i] = least(work[i], most);
    }
}

/* A shard widens its flow when it folds next, so each has its own width. */
static bool by_bytes(struct seep_clock *clock, const struct seep_view *view)
{
    double work[SEEP_BUCKET_COUNT] = {0};

    for (uint32_t i = 0; i < view->shard_count; i++) {
        struct seep_rec_shard *shard = &view->shards[i];
        uint32_t width = seep_snapshot_load(shard->flow_width_log2);

        if (width > clock->width_log2) {
            continue; /* damaged: no tick of the run asks for so much */
        }
        for (uint32_t j = 0; j < SEEP_BUCKET_COUNT; j++) {
            uint32_t into = j >> (clock->width_log2 - width);
            uint64_t bytes = seep_snapshot_load(shard->flow[j].allocated_bytes);

            if (into < clock->count && (int64_t)bytes > 0) {
                work[into] += (double)bytes;
            }
        }
    }
    clip(work, clock->count);
    return accumulate(clock, work);
}

struct told {
    double tick;
    double units;
};

/* Spread the units told between two moments over the buckets between them. */
static void spread(const struct seep_clock *clock, struct told from,
                   struct told to, double *work)
{
    if (!(to.tick > from.tick) || !(to.units > from.units)) {
        return;
    }
    for (uint32_t i = 0; i < clock->count; i++) {
        double start = edge(clock, i) > from.tick ? edge(clock, i) : from.tick;
        double end = least(edge(clock, i + 1), to.tick);

        if (end > start) {
            work[i] +=
                (to.units - from.units) * (end - start) / (to.tick - from.tick);
        }
    }
}

/* False when fewer than half of the moments brought news: then units are no
 * clock. */
static bool by_units(struct seep_clock *clock, const struct seep_view *view)
{
    const struct seep_rec_header *header = view->header;
    uint32_t capacity = header->sections[SEEP_SECTION_TIMELINE].entry_count;
    double work[SEEP_BUCKET_COUNT] = {0};
    struct told last = {0, 0};
    uint32_t moments = 0;
    uint32_t marked = 0;

    for (uint32_t i = 0; i < capacity; i++) {
        struct seep_rec_moment *moment = &view->timeline[i];
        struct told now = {
            (double)seep_snapshot_load(moment->tick),
            (double)seep_snapshot_load(moment->progress_units),
        };

        if (now.tick <= last.tick || now.tick > (double)clock->end_tick) {
            continue;
        }
        moments++;
        if (now.units > last.units) {
            marked++;
            spread(clock, last, now, work);
        }
        last.tick = now.tick;
        last.units = now.units > last.units ? now.units : last.units;
    }
    spread(clock, last,
           (struct told){(double)clock->end_tick, (double)clock->units}, work);
    return marked > 0 && marked * 2 >= moments && accumulate(clock, work);
}

void seep_clock_init(struct seep_clock *ret_clock, const struct seep_view *view,
                     uint64_t end_tick)
{
    struct seep_clock clock = {.end_tick = end_tick, .kind = SEEP_CLOCK_WALL};

    clock.units = seep_snapshot_load(view->header->progress_units);
    clock.width_log2 = seep_clock_width_for(end_tick);
    clock.count = (uint32_t)(end_tick >> clock.width_log2) + 1;
    if (clock.units > 0 && by_units(&clock, view)) {
        clock.kind = SEEP_CLOCK_UNITS;
    } else if (by_bytes(&clock, view)) {
        clock.kind = SEEP_CLOCK_BYTES;
    } else if (!by_time(&clock)) {
        clock.at[clock.count] = 1;
    }
    *ret_clock = clock;
}

double seep_clock_at(const struct seep_clock *clock, double tick)
{
    uint32_t i;
    double start;
    double end;

    if (!(tick < (double)clock->end_tick)) {
        return 1;
    }
    if (tick <= 0) {
        return 0;
    }
    i = (uint32_t)((uint64_t)tick >> clock->width_log2);
    start = edge(clock, i);
    end = edge(clock, i + 1);
    if (!(end > start)) {
        return clock->at[i];
    }
    return clock->at[i] +
           (clock->at[i + 1] - clock->at[i]) * (tick - start) / (end - start);
}

double seep_clock_tick_at(const struct seep_clock *clock, double share)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        double before = clock->at[i];
        double after = clock->at[i + 1];

        if (after >= share) {
            double part = after > before && share > before
                              ? (share - before) / (after - before)
                              : 0;

            return edge(clock, i) +
                   part * (edge(clock, i + 1) - edge(clock, i));
        }
    }
    return (double)clock->end_tick;
}

double seep_clock_late_pace(const struct seep_clock *clock)
{
    double late = LATE_FROM * (double)clock->end_tick;

    return (1 - seep_clock_at(clock, late)) / (1 - LATE_FROM);
}

double seep_clock_units_per_s(const struct seep_clock *clock)
{
    double seconds = (double)clock->end_tick *
                     (double)(UINT64_C(1) << SEEP_TICK_LOG2_NS) / 1e9;
    double pace =
        clock->kind == SEEP_CLOCK_UNITS ? seep_clock_late_pace(clock) : 1;

    return seconds > 0 ? (double)clock->units / seconds * pace : 0;
}
