/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See balance.h. */
#include "reader/balance.h"

#include <math.h>
#include <string.h>

#include "reader/growth_parts.h"

#define BLOCKS_MIN 8    /* of the trend test: fewer reach no p of 0.001 */
#define LAST_FIFTH 0.8  /* of the run */
#define TAIL_SHARE 0.35 /* of the mean rate, to be still going on */
/* What the allocator told over so much of the settled part stands for it. */
#define TOLD_COVERAGE 0.5
#define TOLD_MIN 3
/* A free chunk of n pages lies over n - 1 whole ones on average: from two
 * pages on half of the free bytes could be given back. */
#define WHOLE_PAGES_BYTES (2.0 * SEEP_PAGE_BYTES)

struct series {
    struct seep_window_series rss;
    struct seep_window_series anonymous;
    struct seep_window_series shared;
    struct seep_window_series swap;
    struct seep_window_series cgroup;
    struct seep_window_series tracked;
    struct seep_window_series allocated;
    struct seep_window_series resident_less_active;
    struct seep_window_series active_less_allocated;
    struct seep_window_series kept;      /* by the allocator, of no block */
    struct seep_window_series overhead;  /* that, headers and rounding */
    struct seep_window_series untracked; /* anonymous + swap - tracked */
    struct seep_window_series unexplained;
    struct seep_window_series strange; /* the same, but for sampling: the
                                          allocator's word for the heap */
};

struct span {
    double from_s;
    double to_s;
};

static double positive(double value)
{
    return value > 0 ? value : 0;
}

static bool tells(const struct seep_balance_point *point)
{
    return point->resident > 0 && point->allocated >= 0;
}

static void add_told(struct series *series,
                     const struct seep_balance_point *point)
{
    double t_s = point->t_s;
    double blocks = fmin(point->allocated, positive(point->heap));

    seep_window_add(&series->allocated, t_s, point->allocated);
    seep_window_add(&series->kept, t_s,
                    positive(point->resident - point->allocated));
    seep_window_add(&series->overhead, t_s, positive(point->resident - blocks));
    if (point->active > 0) {
        seep_window_add(&series->resident_less_active, t_s,
                        positive(point->resident - point->active));
        seep_window_add(&series->active_less_allocated, t_s,
                        positive(point->active - point->allocated));
    }
}

static void add_known(struct seep_window_series *series, double t_s,
                      double value)
{
    if (value >= 0) {
        seep_window_add(series, t_s, value);
    }
}

static void add_point(struct series *series,
                      const struct seep_balance_point *point)
{
    double t_s = point->t_s;
    double tracked = positive(point->heap) + positive(point->beside);

    add_known(&series->cgroup, t_s, point->cgroup);
    add_known(&series->swap, t_s, point->swap);
    if (tells(point)) {
        add_told(series, point);
    }
    if (!(point->rss >= 0) || !(point->anonymous >= 0)) {
        return;
    }
    seep_window_add(&series->rss, t_s, point->rss);
    seep_window_add(&series->anonymous, t_s, point->anonymous);
    seep_window_add(&series->shared, t_s,
                    positive(point->rss - point->anonymous));
    seep_window_add(&series->tracked, t_s, tracked);
    seep_window_add(&series->untracked, t_s,
                    point->anonymous + positive(point->swap) - tracked);
}

/* Put @held in the place of @told, at its level: a look tells how it went on,
 * and the allocator, who is asked more rarely, how much it was. */
static void follow(struct seep_window_series *told,
                   const struct seep_window_series *held)
{
    struct seep_window_series off = {.count = 0};
    struct seep_window_series followed = {.count = 0};

    for (size_t i = 0; i < told->count; i++) {
        seep_window_add(&off, told->t_s[i],
                        told->value[i] - seep_window_at(held, told->t_s[i]));
    }
    for (size_t i = 0; i < held->count; i++) {
        seep_window_add(
            &followed, held->t_s[i],
            positive(held->value[i] + seep_window_at(&off, held->t_s[i])));
    }
    *told = followed;
}

static void add_held(struct series *series,
                     const struct seep_balance_input *input)
{
    struct seep_window_series held = {.count = 0};

    for (size_t i = 0; i < input->count; i++) {
        const struct seep_balance_point *point = &input->points[i];

        if (point->held >= 0) {
            seep_window_add(&held, point->t_s,
                            positive(point->held - positive(point->heap)));
        }
    }
    if (held.count >= 2 && held.count >= series->kept.count) {
        follow(&series->kept, &held);
        follow(&series->overhead, &held);
    }
}

/* The part of the settled run that @series tells of. */
static struct span span_of(const struct seep_window_series *series,
                           double from_s, double to_s)
{
    struct span span = {from_s, from_s};

    if (series->count > 0) {
        span.from_s = fmax(from_s, series->t_s[0]);
        span.to_s = fmin(to_s, series->t_s[series->count - 1]);
    }
    return span;
}

static bool covers(const struct seep_window_series *series, size_t least,
                   double from_s, double to_s)
{
    struct span span = span_of(series, from_s, to_s);

    return series->count >= least &&
           span.to_s - span.from_s >= TOLD_COVERAGE * (to_s - from_s);
}

/* From the first to the last time that the overhead is known, if it is. */
static void add_rest(struct series *series,
                     const struct seep_balance_input *input, bool told)
{
    struct span known = span_of(&series->overhead, 0, input->end_s);

    for (size_t i = 0; i < input->count; i++) {
        const struct seep_balance_point *point = &input->points[i];
        double outside = point->anonymous + positive(point->swap);
        double tracked = positive(point->heap) + positive(point->beside);
        double heap = told ? seep_window_at(&series->allocated, point->t_s)
                           : positive(point->heap);

        if (!(point->rss >= 0) || !(point->anonymous >= 0)) {
            continue;
        }
        seep_window_add(&series->strange, point->t_s,
                        outside - positive(point->beside) - heap);
        if (series->overhead.count == 0 ||
            (point->t_s >= known.from_s && point->t_s <= known.to_s)) {
            seep_window_add(
                &series->unexplained, point->t_s,
                positive(outside - tracked -
                         seep_window_at(&series->overhead, point->t_s)));
        }
    }
}

static struct seep_report_extent
extent_of(const struct seep_window_series *series, double from_s, double to_s)
{
    struct seep_report_extent extent = {.valid = series->count > 0};
    struct seep_window_slope slope = seep_window_slope_of(series, from_s, to_s);

    if (extent.valid) {
        extent.first_bytes = series->value[0];
        extent.last_bytes = series->value[series->count - 1];
    }
    if (slope.valid) {
        extent.slope_bytes_per_s = slope.per_s;
        extent.slope_error = slope.error;
    } else if (series->count > 1) {
        /* Too few figures for an error: then not even its sign is sure. */
        extent.slope_bytes_per_s =
            (extent.last_bytes - extent.first_bytes) /
            (series->t_s[series->count - 1] - series->t_s[0]);
        extent.slope_error = fabs(extent.slope_bytes_per_s);
    }
    return extent;
}

static void fill_memory(const struct series *series, double end_s,
                        struct seep_report_memory *memory)
{
    double from_s = SEEP_BALANCE_SETTLE * end_s;

    memory->rss = extent_of(&series->rss, from_s, end_s);
    memory->anonymous = extent_of(&series->anonymous, from_s, end_s);
    memory->shared = extent_of(&series->shared, from_s, end_s);
    memory->swap = extent_of(&series->swap, from_s, end_s);
    memory->cgroup = extent_of(&series->cgroup, from_s, end_s);
    memory->tracked = extent_of(&series->tracked, from_s, end_s);
    memory->allocator_overhead = extent_of(&series->overhead, from_s, end_s);
    memory->unexplained = extent_of(&series->unexplained, from_s, end_s);
    memory->valid = memory->rss.valid;
}

/* Mann and Kendall over the levels of 16 blocks: see growth_rank. */
static void test_trend(const struct seep_window_series *untracked,
                       double from_s, double end_s,
                       struct seep_balance_outside *outside)
{
    struct seep_window_level levels[SEEP_WINDOW_LEVELS];
    double values[SEEP_WINDOW_LEVELS];
    size_t count = seep_window_levels_of(untracked, from_s, end_s,
                                         SEEP_WINDOW_LEVELS, levels);
    size_t before = 0;
    double rate;
    double tail;

    outside->p = 1;
    if (count < BLOCKS_MIN) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = levels[i].value;
        before = levels[i].t_s < LAST_FIFTH * end_s ? i : before;
    }
    outside->known = true;
    outside->p = seep_growth_rank_kendall(values, count);
    outside->growth_bytes = levels[count - 1].value - levels[0].value;
    rate = outside->growth_bytes / (levels[count - 1].t_s - levels[0].t_s);
    if (before + 1 < count) {
        tail = (levels[count - 1].value - levels[before].value) /
               (levels[count - 1].t_s - levels[before].t_s);
        outside->going_on = tail >= TAIL_SHARE * rate &&
                            levels[count - 1].value >= levels[count - 3].value;
    }
}

static double growth_of(const struct seep_window_series *series, double from_s,
                        double end_s)
{
    return series->count == 0
               ? 0
               : seep_window_at(series, end_s) - seep_window_at(series, from_s);
}

/* Whole free pages, or holes between blocks: what the larger part is. */
static enum seep_balance_free how_free(const struct series *series,
                                       const struct seep_balance_input *input,
                                       double from_s)
{
    const struct seep_balance_point *last = NULL;
    double pages =
        growth_of(&series->resident_less_active, from_s, input->end_s);
    double holes =
        growth_of(&series->active_less_allocated, from_s, input->end_s);

    for (size_t i = 0; i < input->count; i++) {
        last = tells(&input->points[i]) ? &input->points[i] : last;
    }
    if (series->active_less_allocated.count > 0) {
        if (pages <= 0 && holes <= 0) {
            pages = positive(last->resident - last->active);
            holes = positive(last->active - last->allocated);
        }
    } else if (last != NULL && input->heap_pages_bytes > 0) {
        pages = positive(last->resident - input->heap_pages_bytes);
        holes = positive(input->heap_pages_bytes - last->allocated);
    } else if (last != NULL && last->chunks > 0) {
        double mean = (last->resident - last->allocated) / last->chunks;

        return mean >= WHOLE_PAGES_BYTES ? SEEP_BALANCE_FREE_PAGES
                                         : SEEP_BALANCE_FREE_SCATTERED;
    } else {
        return SEEP_BALANCE_FREE_UNKNOWN;
    }
    return pages >= holes ? SEEP_BALANCE_FREE_PAGES
                          : SEEP_BALANCE_FREE_SCATTERED;
}

static double rise_of(const struct seep_window_series *series, double end_s)
{
    struct seep_window_level levels[SEEP_WINDOW_LEVELS];
    size_t count = seep_window_levels_of(series, SEEP_BALANCE_STARTED * end_s,
                                         end_s, SEEP_WINDOW_SLOPE, levels);

    return count < 2 ? 0 : levels[count - 1].value - levels[0].value;
}

/* What blocks still come to at times needs its memory, so the most of the
 * last half counts: a heap that a garbage collector empties is not kept. */
static double peak_rise_of(const struct seep_window_series *series,
                           double end_s)
{
    double before = seep_window_at(series, SEEP_BALANCE_STARTED * end_s);
    double most = 0;

    for (size_t i = 0; i < series->count; i++) {
        if (series->t_s[i] >= end_s / 2) {
            most = fmax(most, series->value[i]);
        }
    }
    return most - before;
}

static void add_sum(struct seep_window_series *sum, const struct series *series)
{
    for (size_t i = 0; i < series->anonymous.count; i++) {
        double t_s = series->anonymous.t_s[i];

        seep_window_add(sum, t_s,
                        series->anonymous.value[i] +
                            seep_window_at(&series->swap, t_s));
    }
}

/* Its share of the growth, where it is known, stands for all of the growth. */
static void fill_overhead(const struct series *series, double from_s,
                          double end_s, struct seep_balance_outside *outside)
{
    struct span span = span_of(&series->kept, from_s, end_s);
    double growth = growth_of(&series->untracked, span.from_s, span.to_s);
    double kept = growth_of(&series->kept, span.from_s, span.to_s);

    outside->has_overhead = covers(&series->kept, 2, from_s, end_s);
    if (!outside->has_overhead) {
        return;
    }
    outside->overhead_bytes = series->kept.value[series->kept.count - 1];
    if (kept > 0 && growth > 0) {
        outside->overhead_growth_bytes =
            fmin(1, kept / growth) * positive(outside->growth_bytes);
    }
}

static void fill_outside(const struct series *series,
                         const struct seep_balance_input *input, bool told,
                         struct seep_balance_outside *outside)
{
    double end_s = input->end_s;
    double from_s = SEEP_BALANCE_SETTLE * end_s;
    struct seep_window_slope slope =
        seep_window_slope_of(&series->untracked, from_s, end_s);
    struct seep_window_series sum = {.count = 0};

    if (series->rss.count > 0) {
        outside->rss_bytes = series->rss.value[series->rss.count - 1];
    }
    test_trend(&series->untracked, from_s, end_s, outside);
    outside->error_bytes = input->heap_error;
    if (told) {
        struct span span = span_of(&series->allocated, from_s, end_s);
        double growth = growth_of(&series->strange, span.from_s, span.to_s) *
                        (end_s - from_s) / (span.to_s - span.from_s);

        outside->growth_bytes = fmin(outside->growth_bytes, growth);
        outside->error_bytes = 0;
    }
    outside->bytes_per_s = (struct seep_interval){
        slope.per_s, slope.per_s - slope.error, slope.per_s + slope.error};
    outside->tracked_bytes = growth_of(&series->tracked, from_s, end_s);
    fill_overhead(series, from_s, end_s, outside);
    outside->free = how_free(series, input, from_s);
    add_sum(&sum, series);
    outside->rise_bytes = rise_of(&sum, end_s);
    outside->tracked_rise_bytes = peak_rise_of(&series->tracked, end_s);
}

void seep_balance_fill(const struct seep_balance_input *input,
                       struct seep_report_memory *ret_memory,
                       struct seep_balance_outside *ret_outside)
{
    double from_s = SEEP_BALANCE_SETTLE * input->end_s;
    struct series series;
    bool told;

    memset(&series, 0, sizeof(series));
    memset(ret_outside, 0, sizeof(*ret_outside));
    for (size_t i = 0; i < input->count; i++) {
        add_point(&series, &input->points[i]);
    }
    told = covers(&series.allocated, TOLD_MIN, from_s, input->end_s);
    add_held(&series, input);
    add_rest(&series, input, told);
    fill_memory(&series, input->end_s, ret_memory);
    fill_outside(&series, input, told, ret_outside);
}
