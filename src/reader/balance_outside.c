/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a process did that no call site tells of; see balance.h. */
#include "reader/balance_parts.h"

#include <math.h>

#include "reader/growth_parts.h"

#define BLOCKS_MIN 8    /* of the trend test: fewer reach no p of 0.001 */
#define LAST_FIFTH 0.8  /* of the run */
#define TAIL_SHARE 0.35 /* of the mean rate, to be still going on */
/* A free chunk of n pages lies over n - 1 whole ones on average: from two
 * pages on half of the free bytes could be given back. */
#define WHOLE_PAGES_BYTES (2.0 * SEEP_PAGE_BYTES)

/*
 * Upside down, so that levels are upper quartiles. While a burst is live its
 * blocks need what is kept, and it is not untracked: a moment that falls into
 * one is a dip. (By lower quartiles such dips hid 5 of 10 heaps that kept 2.2
 * MiB/s.)
 */
static void turn(const struct seep_window_series *series,
                 struct seep_window_series *ret_turned)
{
    ret_turned->count = series->count;
    for (size_t i = 0; i < series->count; i++) {
        ret_turned->t_s[i] = series->t_s[i];
        ret_turned->value[i] = -series->value[i];
    }
}

/* Mann and Kendall over the levels of 16 blocks: see growth_rank. */
static void test_trend(const struct seep_window_series *turned, double from_s,
                       double end_s, struct seep_balance_outside *outside)
{
    struct seep_window_level levels[SEEP_WINDOW_LEVELS];
    double values[SEEP_WINDOW_LEVELS];
    size_t count = seep_window_levels_of(turned, from_s, end_s,
                                         SEEP_WINDOW_LEVELS, levels);
    size_t before = 0;
    double rate;
    double tail;

    outside->p = 1;
    if (count < BLOCKS_MIN) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        levels[i].value = -levels[i].value;
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
static enum seep_balance_free how_free(const struct seep_balance_series *series,
                                       const struct seep_balance_input *input,
                                       double from_s)
{
    const struct seep_balance_point *last = NULL;
    double pages =
        growth_of(&series->resident_less_active, from_s, input->end_s);
    double holes =
        growth_of(&series->active_less_allocated, from_s, input->end_s);

    for (size_t i = 0; i < input->count; i++) {
        last = seep_balance_tells(&input->points[i]) ? &input->points[i] : last;
    }
    if (series->active_less_allocated.count > 0) {
        if (pages <= 0 && holes <= 0) {
            pages = seep_balance_positive(last->resident - last->active);
            holes = seep_balance_positive(last->active - last->allocated);
        }
    } else if (last != NULL && input->heap_pages_bytes > 0) {
        pages = seep_balance_positive(last->resident - input->heap_pages_bytes);
        holes =
            seep_balance_positive(input->heap_pages_bytes - last->allocated);
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

static void add_sum(struct seep_window_series *sum,
                    const struct seep_balance_series *series)
{
    for (size_t i = 0; i < series->anonymous.count; i++) {
        double t_s = series->anonymous.t_s[i];

        seep_window_add(sum, t_s,
                        series->anonymous.value[i] +
                            seep_window_at(&series->swap, t_s));
    }
}

/* Its share of the growth, where it is known, stands for all of the growth. */
static void fill_overhead(const struct seep_balance_series *series,
                          double from_s, double end_s,
                          struct seep_balance_outside *outside)
{
    struct seep_balance_span span =
        seep_balance_span_of(&series->kept, from_s, end_s);
    double growth = growth_of(&series->untracked, span.from_s, span.to_s);
    double kept = growth_of(&series->kept, span.from_s, span.to_s);

    outside->has_overhead =
        seep_balance_covers(&series->kept, 2, from_s, end_s);
    if (!outside->has_overhead) {
        return;
    }
    outside->overhead_bytes = series->kept.value[series->kept.count - 1];
    if (kept > 0 && growth > 0) {
        outside->overhead_growth_bytes =
            fmin(1, kept / growth) *
            seep_balance_positive(outside->growth_bytes);
    }
}

void seep_balance_fill_outside(const struct seep_balance_series *series,
                               const struct seep_balance_input *input,
                               bool told, struct seep_balance_outside *outside)
{
    double end_s = input->end_s;
    double from_s = SEEP_BALANCE_SETTLE * end_s;
    struct seep_window_series turned = {.count = 0};
    struct seep_window_series sum = {.count = 0};
    struct seep_window_slope slope;

    if (series->rss.count > 0) {
        outside->rss_bytes = series->rss.value[series->rss.count - 1];
    }
    turn(&series->untracked, &turned);
    slope = seep_window_slope_of(&turned, from_s, end_s);
    test_trend(&turned, from_s, end_s, outside);
    outside->error_bytes = input->sampled_error;
    if (told) {
        struct seep_balance_span span =
            seep_balance_span_of(&series->allocated, from_s, end_s);
        double growth = growth_of(&series->strange, span.from_s, span.to_s) *
                        (end_s - from_s) / (span.to_s - span.from_s);

        outside->growth_bytes = fmin(outside->growth_bytes, growth);
        outside->error_bytes = input->beside_error;
    }
    outside->bytes_per_s = (struct seep_interval){
        -slope.per_s, -slope.per_s - slope.error, -slope.per_s + slope.error};
    outside->tracked_bytes = growth_of(&series->tracked, from_s, end_s);
    fill_overhead(series, from_s, end_s, outside);
    outside->free = how_free(series, input, from_s);
    add_sum(&sum, series);
    outside->rise_bytes = rise_of(&sum, end_s);
    outside->tracked_rise_bytes = peak_rise_of(&series->tracked, end_s);
}
