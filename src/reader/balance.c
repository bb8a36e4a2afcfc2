/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See balance.h. */
#include "reader/balance.h"

#include <math.h>
#include <string.h>

#include "reader/balance_parts.h"

/* What the allocator told over so much of the settled part stands for it. */
#define TOLD_COVERAGE 0.5
#define TOLD_MIN 3

struct seep_balance_span
seep_balance_span_of(const struct seep_window_series *series, double from_s,
                     double to_s)
{
    struct seep_balance_span span = {from_s, from_s};

    if (series->count > 0) {
        span.from_s = fmax(from_s, series->t_s[0]);
        span.to_s = fmin(to_s, series->t_s[series->count - 1]);
    }
    return span;
}

bool seep_balance_covers(const struct seep_window_series *series, size_t least,
                         double from_s, double to_s)
{
    struct seep_balance_span span = seep_balance_span_of(series, from_s, to_s);

    return series->count >= least &&
           span.to_s - span.from_s >= TOLD_COVERAGE * (to_s - from_s);
}

static void add_told(struct seep_balance_series *series,
                     const struct seep_balance_point *point)
{
    double t_s = point->t_s;
    double blocks = fmin(point->allocated, seep_balance_positive(point->heap));

    seep_window_add(&series->allocated, t_s, point->allocated);
    seep_window_add(&series->kept, t_s,
                    seep_balance_positive(point->resident - point->allocated));
    seep_window_add(&series->overhead, t_s,
                    seep_balance_positive(point->resident - blocks));
    if (point->active > 0) {
        seep_window_add(&series->resident_less_active, t_s,
                        seep_balance_positive(point->resident - point->active));
        seep_window_add(
            &series->active_less_allocated, t_s,
            seep_balance_positive(point->active - point->allocated));
    }
}

static void add_known(struct seep_window_series *series, double t_s,
                      double value)
{
    if (value >= 0) {
        seep_window_add(series, t_s, value);
    }
}

static void add_point(struct seep_balance_series *series,
                      const struct seep_balance_point *point)
{
    double t_s = point->t_s;
    double tracked = seep_balance_positive(point->heap) +
                     seep_balance_positive(point->beside);

    add_known(&series->cgroup, t_s, point->cgroup);
    add_known(&series->swap, t_s, point->swap);
    if (seep_balance_tells(point)) {
        add_told(series, point);
    }
    if (!(point->rss >= 0) || !(point->anonymous >= 0)) {
        return;
    }
    seep_window_add(&series->rss, t_s, point->rss);
    seep_window_add(&series->anonymous, t_s, point->anonymous);
    seep_window_add(&series->shared, t_s,
                    seep_balance_positive(point->rss - point->anonymous));
    seep_window_add(&series->tracked, t_s, tracked);
    seep_window_add(&series->untracked, t_s,
                    point->anonymous + seep_balance_positive(point->swap) -
                        tracked);
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
            seep_balance_positive(held->value[i] +
                                  seep_window_at(&off, held->t_s[i])));
    }
    *told = followed;
}

static void add_held(struct seep_balance_series *series,
                     const struct seep_balance_input *input)
{
    struct seep_window_series held = {.count = 0};

    for (size_t i = 0; i < input->count; i++) {
        const struct seep_balance_point *point = &input->points[i];

        if (point->held >= 0) {
            seep_window_add(
                &held, point->t_s,
                seep_balance_positive(point->held -
                                      seep_balance_positive(point->heap)));
        }
    }
    if (held.count >= 2 && held.count >= series->kept.count) {
        follow(&series->kept, &held);
        follow(&series->overhead, &held);
    }
}

/* From the first to the last time that the overhead is known, if it is. */
static void add_rest(struct seep_balance_series *series,
                     const struct seep_balance_input *input, bool told)
{
    struct seep_balance_span known =
        seep_balance_span_of(&series->overhead, 0, input->end_s);

    for (size_t i = 0; i < input->count; i++) {
        const struct seep_balance_point *point = &input->points[i];
        double outside = point->anonymous + seep_balance_positive(point->swap);
        double tracked = seep_balance_positive(point->heap) +
                         seep_balance_positive(point->beside);
        double heap = told ? seep_window_at(&series->allocated, point->t_s)
                           : seep_balance_positive(point->heap);

        if (!(point->rss >= 0) || !(point->anonymous >= 0)) {
            continue;
        }
        seep_window_add(&series->strange, point->t_s,
                        outside - seep_balance_positive(point->beside) - heap);
        if (series->overhead.count == 0 ||
            (point->t_s >= known.from_s && point->t_s <= known.to_s)) {
            seep_window_add(&series->unexplained, point->t_s,
                            seep_balance_positive(
                                outside - tracked -
                                seep_window_at(&series->overhead, point->t_s)));
        }
    }
}

struct seep_report_extent
seep_balance_extent_of(const struct seep_window_series *series, double end_s)
{
    double from_s = SEEP_BALANCE_SETTLE * end_s;
    struct seep_report_extent extent = {.valid = series->count > 0};
    struct seep_window_slope slope =
        seep_window_slope_of(series, from_s, end_s);

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

static void fill_memory(const struct seep_balance_series *series, double end_s,
                        struct seep_report_memory *memory)
{
    memory->rss = seep_balance_extent_of(&series->rss, end_s);
    memory->anonymous = seep_balance_extent_of(&series->anonymous, end_s);
    memory->shared = seep_balance_extent_of(&series->shared, end_s);
    memory->swap = seep_balance_extent_of(&series->swap, end_s);
    memory->cgroup = seep_balance_extent_of(&series->cgroup, end_s);
    memory->tracked = seep_balance_extent_of(&series->tracked, end_s);
    memory->allocator_overhead =
        seep_balance_extent_of(&series->overhead, end_s);
    memory->unexplained = seep_balance_extent_of(&series->unexplained, end_s);
    memory->valid = memory->rss.valid;
}

void seep_balance_fill(const struct seep_balance_input *input,
                       struct seep_report_memory *ret_memory,
                       struct seep_balance_outside *ret_outside)
{
    double from_s = SEEP_BALANCE_SETTLE * input->end_s;
    struct seep_balance_series series;
    bool told;

    memset(&series, 0, sizeof(series));
    memset(ret_outside, 0, sizeof(*ret_outside));
    for (size_t i = 0; i < input->count; i++) {
        add_point(&series, &input->points[i]);
    }
    told =
        seep_balance_covers(&series.allocated, TOLD_MIN, from_s, input->end_s);
    add_held(&series, input);
    add_rest(&series, input, told);
    fill_memory(&series, input->end_s, ret_memory);
    seep_balance_fill_outside(&series, input, told, ret_outside);
}
