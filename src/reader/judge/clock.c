/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The work clock: how much of the work of a run was done by a time.
 *
 * Invariant: shares of the work ascend from 0 to 1 over the edges of the grid.
 */
#include <math.h>

#include "format/series.h"
#include "reader/judge/sites.h"

/* A bucket counts for at most so many medians: loading the weights is up to
 * half of all bytes, and not half of the work. */
#define CLIP_MEDIANS 3.0
/* But where most buckets are idle, the median is no measure of work. */
#define CLIP_BUSY 1.5 /* times what nine tenths are below */

/* Of the samples, behind the first unit: before it there is no work, by units,
 * and a leak that ran then would be start-up. */
#define UNITS_LEAST 0.25

#define LATE_FROM 0.8 /* of the time: what counts as now */
#define TENTHS 10
#define RISING_FACTOR 1.1
#define RISING_TENTHS 2

/* End of bucket @i; the run may end inside the last one. */
static double edge(const struct seep_clock *clock, uint32_t i)
{
    uint64_t tick = (uint64_t)i << clock->width_log2;

    return (double)(tick < clock->end_tick ? tick : clock->end_tick);
}

/* Sum @work up into shares, @at each edge. @return false if there was none */
static bool share_out(const double *work, uint32_t count, double *at)
{
    double sum = 0;

    at[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += work[i];
        at[i + 1] = sum;
    }
    if (!(sum > 0)) {
        return false;
    }
    for (uint32_t i = 1; i <= count; i++) {
        at[i] /= sum;
    }
    at[count] = 1;
    return true;
}

static bool by_time(struct seep_clock *clock)
{
    double work[SEEP_BUCKET_COUNT] = {0};

    for (uint32_t i = 0; i < clock->count; i++) {
        work[i] = edge(clock, i + 1) - edge(clock, i);
    }
    return share_out(work, clock->count, clock->at);
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
    most = CLIP_MEDIANS * seep_rank_median(sorted, filled); /* sorts */
    most = fmax(most, CLIP_BUSY * sorted[9 * (filled - 1) / 10]);
    for (uint32_t i = 0; i < count; i++) {
        work[i] = fmin(work[i], most);
    }
}

bool seep_clock_by_work(struct seep_clock *clock, double *work)
{
    clip(work, clock->count);
    return share_out(work, clock->count, clock->at);
}

/* A shard widens its flow when it folds next, so each has its own width. */
static bool by_bytes(struct seep_clock *clock, const struct seep_view *view)
{
    double work[SEEP_BUCKET_COUNT] = {0};

    for (uint32_t i = 0; i < view->shard_count; i++) {
        struct seep_rec_shard *shard = &view->shards[i];
        uint32_t width = seep_word_load(&shard->flow_width_log2);

        if (width > clock->width_log2) {
            continue; /* damaged: no tick of the run asks for so much */
        }
        for (uint32_t j = 0; j < SEEP_BUCKET_COUNT; j++) {
            uint32_t into = j >> (clock->width_log2 - width);
            uint64_t bytes = seep_word_load(&shard->flow[j].allocated_bytes);

            if (into < clock->count && (int64_t)bytes > 0) {
                work[into] += (double)bytes;
            }
        }
    }
    return seep_clock_by_work(clock, work);
}

struct progress {
    double tick;
    double units;
};

/* Spread the units told between two samples over the buckets between them. */
static void spread(const struct seep_clock *clock, struct progress from,
                   struct progress to, double *work)
{
    if (!(to.tick > from.tick) || !(to.units > from.units)) {
        return;
    }
    for (uint32_t i = 0; i < clock->count; i++) {
        double start = edge(clock, i) > from.tick ? edge(clock, i) : from.tick;
        double end = fmin(edge(clock, i + 1), to.tick);

        if (end > start) {
            work[i] +=
                (to.units - from.units) * (end - start) / (to.tick - from.tick);
        }
    }
}

/* False when fewer than half of the samples brought news, once the first had,
 * or the first came too late: then units are no clock. */
static bool by_units(struct seep_clock *clock, const struct seep_view *view)
{
    const struct seep_rec_header *header = view->header;
    uint32_t capacity = header->sections[SEEP_SECTION_TIMELINE].entry_count;
    double work[SEEP_BUCKET_COUNT] = {0};
    struct progress last = {0, 0};
    uint32_t samples = 0;
    uint32_t since = 0; /* the first that brought news */
    uint32_t marked = 0;

    for (uint32_t i = 0; i < capacity; i++) {
        struct seep_rec_moment *sample = &view->timeline[i];
        struct progress now = {
            (double)seep_word_load(&sample->tick),
            (double)seep_word_load(&sample->progress_units),
        };

        if (now.tick <= last.tick || now.tick > (double)clock->end_tick) {
            continue;
        }
        samples++;
        since += now.units > 0;
        if (now.units > last.units) {
            marked++;
            spread(clock, last, now, work);
        }
        last.tick = now.tick;
        last.units = now.units > last.units ? now.units : last.units;
    }
    spread(clock, last,
           (struct progress){(double)clock->end_tick, (double)clock->units},
           work);
    return share_out(work, clock->count, clock->units_at) && marked > 0 &&
           marked * 2 >= since && since >= UNITS_LEAST * samples &&
           share_out(work, clock->count, clock->at);
}

void seep_clock_init(struct seep_clock *ret_clock, const struct seep_view *view,
                     struct seep_series_grid grid)
{
    struct seep_clock clock = {.kind = SEEP_CLOCK_WALL,
                               .end_tick = grid.end_tick,
                               .width_log2 = grid.width_log2};

    clock.units = seep_word_load(&view->header->progress_units);
    clock.count = (uint32_t)(clock.end_tick >> clock.width_log2) + 1;
    if (clock.units > 0 && by_units(&clock, view)) {
        clock.kind = SEEP_CLOCK_UNITS;
    } else if (by_bytes(&clock, view)) {
        clock.kind = SEEP_CLOCK_BYTES;
    } else if (!by_time(&clock)) {
        clock.at[clock.count] = 1;
    }
    *ret_clock = clock;
}

struct seep_series_grid seep_clock_grid(const struct seep_clock *clock)
{
    return (struct seep_series_grid){clock->end_tick, clock->width_log2};
}

/* Nothing can be cut where no work was done after it. */
static void begin_at(double *at, uint32_t first, uint32_t count)
{
    double before = at[first];

    for (uint32_t i = 0; before < 1 && i <= count; i++) {
        at[i] = i > first ? (at[i] - before) / (1 - before) : 0;
    }
}

void seep_clock_begin(struct seep_clock *clock, uint64_t tick)
{
    uint32_t first = (uint32_t)(tick >> clock->width_log2);

    if (first == 0 || first >= clock->count || !(clock->at[first] < 1)) {
        return;
    }
    if (clock->units_at[clock->count] > 0) {
        clock->units -=
            (uint64_t)((double)clock->units * clock->units_at[first]);
        begin_at(clock->units_at, first, clock->count);
    }
    begin_at(clock->at, first, clock->count);
    clock->begin_tick = (uint64_t)first << clock->width_log2;
}

double seep_clock_time_at(const struct seep_clock *clock, double share)
{
    return seep_sites_seconds((double)clock->begin_tick) +
           share * seep_clock_worked_s(clock);
}

double seep_clock_worked_s(const struct seep_clock *clock)
{
    return seep_sites_seconds((double)(clock->end_tick - clock->begin_tick));
}

/* The tick by which @share of the time since the work began is over. */
static double tick_of(const struct seep_clock *clock, double share)
{
    return (double)clock->begin_tick +
           share * (double)(clock->end_tick - clock->begin_tick);
}

static double share_at(const struct seep_clock *clock, const double *at,
                       double tick)
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
        return at[i];
    }
    return at[i] + (at[i + 1] - at[i]) * (tick - start) / (end - start);
}

double seep_clock_at(const struct seep_clock *clock, double tick)
{
    return share_at(clock, clock->at, tick);
}

double seep_clock_units_in(const struct seep_clock *clock, double from_tick,
                           double to_tick)
{
    return clock->units_at[clock->count] > 0
               ? (double)clock->units *
                     (share_at(clock, clock->units_at, to_tick) -
                      share_at(clock, clock->units_at, from_tick))
               : 0;
}

double seep_clock_tick_at(const struct seep_clock *clock, double share)
{
    for (uint32_t i = (uint32_t)(clock->begin_tick >> clock->width_log2);
         i < clock->count; i++) {
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
    double late = seep_clock_at(clock, tick_of(clock, LATE_FROM));

    return (1 - late) / (1 - LATE_FROM);
}

bool seep_clock_rises(const struct seep_clock *clock)
{
    double most = 0;
    double before = 0;
    int records = 0;

    for (int k = 0; k < TENTHS; k++) {
        double share = seep_clock_at(clock, tick_of(clock, (k + 1.0) / TENTHS));
        double rate = share - before;

        if (k >= TENTHS / 2 && rate > RISING_FACTOR * most) {
            records++;
        }
        most = rate > most ? rate : most;
        before = share;
    }
    return records >= RISING_TENTHS;
}

double seep_clock_units_per_s(const struct seep_clock *clock)
{
    double seconds = seep_clock_worked_s(clock);
    double pace =
        clock->kind == SEEP_CLOCK_UNITS ? seep_clock_late_pace(clock) : 1;

    return seconds > 0 ? (double)clock->units / seconds * pace : 0;
}

void seep_clock_series(const struct seep_clock *clock, const double *values,
                       uint32_t first, struct seep_window_series *ret_series)
{
    ret_series->count = 0;
    for (uint32_t i = first; i < clock->count; i++) {
        seep_window_add(
            ret_series,
            seep_sites_bucket_end_s(i, clock->width_log2, clock->end_tick),
            values[i]);
    }
}
