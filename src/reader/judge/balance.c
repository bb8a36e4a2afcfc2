/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rows of the table of memory, and what grew outside call sites.
 *
 * Invariant: a part is never negative, and what is outside is said to grow by
 * the whole test only: trend, end and interval.
 */
#include "reader/judge/balance.h"

#include <math.h>
#include <string.h>

struct span {
    double from_s;
    double to_s;
};

struct series {
    struct seep_window_series rss;
    struct seep_window_series anonymous;
    struct seep_window_series shared;
    struct seep_window_series own;   /* the recording: of neither */
    struct seep_window_series files; /* that are mapped; empty if none ever */
    struct seep_window_series swap;
    struct seep_window_series mapped; /* pages of known mappings */
    struct seep_window_series beside; /* of the same times, what is tracked */
    struct seep_window_series cgroup;
    struct seep_window_series tracked;
    struct seep_window_series shown; /* tracked, as pages of mappings came */
    struct seep_window_series allocated;
    struct seep_window_series beyond; /* of that, more than is live */
    struct seep_window_series unseen; /* of that, more than it needs for it */
    struct seep_window_series resident_less_active;
    struct seep_window_series active_less_allocated;
    struct seep_window_series kept;      /* by the allocator, of no block */
    struct seep_window_series overhead;  /* that, headers and rounding */
    struct seep_window_series untracked; /* anonymous + swap - tracked */
    struct seep_window_series unexplained;
    struct seep_window_series strange; /* the same, but for sampling: the
                                          allocator's word for the heap */
};

/* Are the allocator's figures known then? */
static bool has_figures(const struct seep_balance_point *point)
{
    return point->resident > 0 && point->allocated >= 0;
}

static double tracked_of(const struct seep_balance_point *point)
{
    return seep_balance_positive(point->heap) +
           seep_balance_positive(point->beside);
}

static double private_of(const struct seep_balance_point *point)
{
    return point->anonymous + seep_balance_positive(point->swap);
}

/* What the allocator told over so much of the settled part stands for it. */
#define TOLD_COVERAGE 0.5
#define TOLD_MIN 3
/* So much of what is not tracked, and mappings are told by their pages. */
#define FILLS_SHARE 0.5

/* The part of [@from_s, @to_s] that @series tells of. */
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

bool seep_balance_covers(const struct seep_window_series *series, size_t least,
                         double from_s, double to_s)
{
    struct span span = span_of(series, from_s, to_s);

    return series->count >= least &&
           span.to_s - span.from_s >= TOLD_COVERAGE * (to_s - from_s);
}

/* So much of it may be what sampling, and blocks of before the first sample,
 * are wrong by. */
#define UNSEEN_BYTES (4.0 * 1024 * 1024)
#define UNSEEN_SHARE 0.05
#define UNSEEN_ERRORS 2.0

/* Most that the allocator needs for what is live. */
static double most_of_heap(const struct seep_balance_input *input, double heap)
{
    return seep_balance_positive(heap) *
               (1 + input->headers_share + UNSEEN_SHARE) +
           UNSEEN_BYTES + UNSEEN_ERRORS * input->sampled_error;
}

/* Blocks that the allocator says are in use, and no hook saw: of a library that
 * looks past us (RTLD_DEEPBIND). */
static double unseen_of(const struct seep_balance_input *input,
                        const struct seep_balance_point *point)
{
    return seep_balance_positive(point->allocated -
                                 most_of_heap(input, point->heap));
}

static void add_told(struct series *series,
                     const struct seep_balance_input *input,
                     const struct seep_balance_point *point)
{
    double t_s = point->t_s;
    double blocks = fmin(point->allocated, seep_balance_positive(point->heap)) +
                    unseen_of(input, point);

    seep_window_add(&series->beyond, t_s,
                    seep_balance_positive(point->allocated -
                                          seep_balance_positive(point->heap)));
    seep_window_add(&series->unseen, t_s, unseen_of(input, point));
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

static void add_point(struct series *series,
                      const struct seep_balance_input *input,
                      const struct seep_balance_point *point)
{
    double t_s = point->t_s;

    add_known(&series->cgroup, t_s, point->cgroup);
    add_known(&series->swap, t_s, point->swap);
    add_known(&series->mapped, t_s, point->mapped);
    if (has_figures(point)) {
        add_told(series, input, point);
    }
    if (!(point->rss >= 0) || !(point->anonymous >= 0)) {
        return;
    }
    seep_window_add(&series->rss, t_s, point->rss);
    seep_window_add(&series->anonymous, t_s, point->anonymous);
    seep_window_add(&series->shared, t_s,
                    seep_balance_positive(point->rss - point->anonymous -
                                          seep_balance_positive(point->own)));
    add_known(&series->own, t_s, point->own);
    seep_window_add(&series->files, t_s, point->files);
    seep_window_add(&series->beside, t_s, seep_balance_positive(point->beside));
    seep_window_add(&series->tracked, t_s, tracked_of(point));
    seep_window_add(&series->untracked, t_s,
                    private_of(point) - tracked_of(point));
}

/* Put @held in the place of @told, at its level: external samples tell how it
 * went on, and the allocator, who is asked more rarely, how much it was. */
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

/* What is held beyond live blocks, and beyond @used besides. */
static void held_beyond(const struct seep_window_series *used, double most,
                        const struct seep_balance_input *input,
                        struct seep_window_series *ret_held)
{
    ret_held->count = 0;
    for (size_t i = 0; i < input->count; i++) {
        const struct seep_balance_point *point = &input->points[i];
        double heap = seep_balance_positive(point->heap);
        double rest = point->held - heap - seep_window_at(used, point->t_s);

        if (point->held >= 0) {
            seep_window_add(
                ret_held, point->t_s,
                seep_balance_positive(
                    fmin(rest, most + most_of_heap(input, heap) - heap)));
        }
    }
}

/* Without the allocator's figures all that lies where it has its blocks is
 * taken for its own: as much as can be, the rest is of who extends the heap
 * besides. */
static void add_held(struct series *series,
                     const struct seep_balance_input *input)
{
    double most = series->unseen.count > 0 ? INFINITY : input->free_most_bytes;
    struct seep_window_series held;

    held_beyond(&series->beyond, most, input, &held);
    if (held.count < 2 || held.count < series->kept.count) {
        return;
    }
    follow(&series->kept, &held);
    held_beyond(&series->unseen, most, input, &held);
    follow(&series->overhead, &held);
}

static double growth_of(const struct seep_window_series *series, double from_s,
                        double end_s)
{
    return series->count == 0
               ? 0
               : seep_window_at(series, end_s) - seep_window_at(series, from_s);
}

/* What is to come yet, at @t_s, of the pages of mappings that are none of a new
 * mapping: what is tracked counts them from the time that it was mapped on. */
static double left_to_fill(const struct series *series, double t_s,
                           double end_s)
{
    return growth_of(&series->mapped, t_s, end_s) -
           growth_of(&series->beside, t_s, end_s);
}

/* Only where it makes a difference: mappings are looked at late. */
static void add_shown(struct series *series,
                      const struct seep_balance_input *input)
{
    double end_s = input->end_s;
    double from_s = SEEP_WINDOW_SETTLE * end_s;
    bool fills =
        seep_balance_covers(&series->mapped, TOLD_MIN, from_s, end_s) &&
        left_to_fill(series, from_s, end_s) >=
            FILLS_SHARE * fabs(growth_of(&series->untracked, from_s, end_s));

    for (size_t i = 0; i < series->tracked.count; i++) {
        double t_s = series->tracked.t_s[i];
        double left = fills ? left_to_fill(series, t_s, end_s) : 0;

        seep_window_add(&series->shown, t_s,
                        seep_balance_positive(series->tracked.value[i] -
                                              seep_balance_positive(left)));
    }
}

/* From the first to the last time that the overhead is known, if it is. */
static void add_rest(struct series *series,
                     const struct seep_balance_input *input, bool told)
{
    struct span known = span_of(&series->overhead, 0, input->end_s);

    for (size_t i = 0; i < input->count; i++) {
        const struct seep_balance_point *point = &input->points[i];
        double outside = private_of(point);
        double heap = told ? seep_window_at(&series->allocated, point->t_s) -
                                 seep_window_at(&series->unseen, point->t_s)
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
                                outside -
                                seep_window_at(&series->shown, point->t_s) -
                                seep_window_at(&series->overhead, point->t_s)));
        }
    }
}

/* What a process did that no call site tells of. */

/* Of the run: from here on what rises is reported, also when it has stopped. */
#define STARTED 0.1
#define BLOCKS_MIN 8    /* of the trend test: fewer reach no p of 0.001 */
#define LAST_FIFTH 0.8  /* of the run */
#define TAIL_SHARE 0.35 /* of the mean rate, to be still going on */
/* A free chunk of n pages lies over n - 1 whole ones on average: from two
 * pages on half of the free bytes could be given back. */
#define WHOLE_PAGES_BYTES (2.0 * SEEP_PAGE_BYTES)

/*
 * Upside down, so that levels are upper quartiles. While a burst is live its
 * blocks need what is kept, and it is not untracked: a sample that falls into
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

/* Mann and Kendall over the levels of 16 blocks. */
static void test_trend(const struct seep_window_series *turned, double from_s,
                       double end_s, struct seep_balance_outside *outside)
{
    struct seep_math_level levels[SEEP_WINDOW_LEVELS];
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
    outside->p = seep_rank_kendall(values, count);
    outside->growth_bytes = levels[count - 1].value - levels[0].value;
    rate = outside->growth_bytes / (levels[count - 1].t_s - levels[0].t_s);
    if (before + 1 < count) {
        tail = (levels[count - 1].value - levels[before].value) /
               (levels[count - 1].t_s - levels[before].t_s);
        outside->going_on = tail >= TAIL_SHARE * rate &&
                            levels[count - 1].value >= levels[count - 3].value;
    }
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
        last = has_figures(&input->points[i]) ? &input->points[i] : last;
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
    struct seep_math_level levels[SEEP_WINDOW_LEVELS];
    size_t count = seep_window_levels_of(series, STARTED * end_s, end_s,
                                         SEEP_MATH_WINDOWS, levels);

    return count < 2 ? 0 : levels[count - 1].value - levels[0].value;
}

/* What blocks still come to at times needs its memory, so the most of the
 * last half counts: a heap that a garbage collector empties is not kept. */
static double peak_rise_of(const struct seep_window_series *series,
                           double end_s)
{
    double before = seep_window_at(series, STARTED * end_s);
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

/* What @part is of the growth, by its share where both were seen. */
static double part_of(const struct seep_balance_outside *outside, double part,
                      double growth)
{
    return part > 0 && growth > 0
               ? fmin(1, part / growth) *
                     seep_balance_positive(outside->growth_bytes)
               : 0;
}

static void fill_mapped(const struct series *series, double from_s,
                        double end_s, struct seep_balance_outside *outside)
{
    struct span span = span_of(&series->mapped, from_s, end_s);
    double growth = growth_of(&series->untracked, span.from_s, span.to_s);

    if (seep_balance_covers(&series->mapped, TOLD_MIN, from_s, end_s)) {
        outside->mapped_growth_bytes = part_of(
            outside, left_to_fill(series, span.from_s, span.to_s), growth);
    }
}

/* Its share of the growth, where it is known, stands for all of the growth. */
static void fill_overhead(const struct series *series, double from_s,
                          double end_s, struct seep_balance_outside *outside)
{
    struct span span = span_of(&series->kept, from_s, end_s);
    double growth = growth_of(&series->untracked, span.from_s, span.to_s);
    double kept = growth_of(&series->kept, span.from_s, span.to_s);

    outside->has_overhead =
        seep_balance_covers(&series->kept, 2, from_s, end_s);
    if (!outside->has_overhead) {
        return;
    }
    outside->overhead_bytes = series->kept.value[series->kept.count - 1];
    outside->overhead_growth_bytes = part_of(outside, kept, growth);
}

/* @param told  the allocator's own figures stand for the heap */
static void fill_outside(const struct series *series,
                         const struct seep_balance_input *input, bool told,
                         struct seep_balance_outside *outside)
{
    double end_s = input->end_s;
    double from_s =
        seep_window_time_at(input->begin_s, end_s, SEEP_WINDOW_SETTLE);
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
        struct span span = span_of(&series->allocated, from_s, end_s);
        double growth = growth_of(&series->strange, span.from_s, span.to_s) *
                        (end_s - from_s) / (span.to_s - span.from_s);

        outside->growth_bytes = fmin(outside->growth_bytes, growth);
        outside->error_bytes = input->beside_error;
    }
    outside->bytes_per_s = seep_interval_around(-slope.per_s, slope.error);
    outside->tracked_bytes = growth_of(&series->tracked, from_s, end_s);
    fill_overhead(series, from_s, end_s, outside);
    outside->unseen_growth_bytes = growth_of(&series->unseen, from_s, end_s);
    fill_mapped(series, from_s, end_s, outside);
    outside->free = how_free(series, input, from_s);
    add_sum(&sum, series);
    outside->rise_bytes = rise_of(&sum, end_s);
    outside->tracked_rise_bytes = peak_rise_of(&series->tracked, end_s);
}

struct seep_report_extent
seep_balance_extent_of(const struct seep_window_series *series, double begin_s,
                       double end_s)
{
    double from_s = seep_window_time_at(begin_s, end_s, SEEP_WINDOW_SETTLE);
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

struct seep_report_extent
seep_balance_extent_if_any(const struct seep_window_series *series,
                           double begin_s, double end_s)
{
    struct seep_report_extent none = {.valid = false};

    for (size_t i = 0; i < series->count; i++) {
        if (series->value[i] > 0) {
            return seep_balance_extent_of(series, begin_s, end_s);
        }
    }
    return none;
}

static void fill_memory(const struct series *series,
                        const struct seep_balance_input *input,
                        struct seep_report_memory *memory)
{
    double begin_s = input->begin_s;
    double end_s = input->end_s;

    memory->rss = seep_balance_extent_of(&series->rss, begin_s, end_s);
    memory->anonymous =
        seep_balance_extent_of(&series->anonymous, begin_s, end_s);
    memory->shared = seep_balance_extent_of(&series->shared, begin_s, end_s);
    memory->own = seep_balance_extent_if_any(&series->own, begin_s, end_s);
    memory->files = seep_balance_extent_if_any(&series->files, begin_s, end_s);
    memory->swap = seep_balance_extent_of(&series->swap, begin_s, end_s);
    memory->cgroup = seep_balance_extent_of(&series->cgroup, begin_s, end_s);
    memory->tracked = seep_balance_extent_of(&series->shown, begin_s, end_s);
    memory->allocator_overhead =
        seep_balance_extent_of(&series->overhead, begin_s, end_s);
    memory->unexplained =
        seep_balance_extent_of(&series->unexplained, begin_s, end_s);
    memory->valid = memory->rss.valid;
}

/* At @t_s; below 0 where it is not known: before the first and after the last
 * figure nobody asked. */
static double part_at(const struct seep_window_series *series, double t_s)
{
    return series->count > 0 && t_s >= series->t_s[0] &&
                   t_s <= series->t_s[series->count - 1]
               ? seep_window_at(series, t_s)
               : -1;
}

#define PINNED_LEAST_BYTES (1024.0 * 1024)

void seep_balance_own_pinned(struct seep_balance_point *points, size_t count)
{
    double before = -1; /* shared, when the least was pinned that counts */

    for (size_t i = 0; i < count; i++) {
        struct seep_balance_point *point = &points[i];
        double shared =
            point->rss - point->anonymous - seep_balance_positive(point->own);

        if (!(point->rss >= 0) || !(point->anonymous >= 0)) {
            continue;
        }
        if (before < 0 || !(point->pinned >= PINNED_LEAST_BYTES)) {
            before = seep_balance_positive(shared);
        }
        point->anonymous += fmin(seep_balance_positive(point->pinned),
                                 seep_balance_positive(shared - before));
    }
}

void seep_balance_fill(const struct seep_balance_input *input,
                       struct seep_report_memory *ret_memory,
                       struct seep_balance_outside *ret_outside,
                       struct seep_balance_parts *ret_parts)
{
    double from_s =
        seep_window_time_at(input->begin_s, input->end_s, SEEP_WINDOW_SETTLE);
    struct series series;
    bool told;

    memset(&series, 0, sizeof(series));
    *ret_outside = (struct seep_balance_outside){.known = false};
    for (size_t i = 0; i < input->count; i++) {
        add_point(&series, input, &input->points[i]);
    }
    told =
        seep_balance_covers(&series.allocated, TOLD_MIN, from_s, input->end_s);
    add_held(&series, input);
    add_shown(&series, input);
    add_rest(&series, input, told);
    fill_memory(&series, input, ret_memory);
    fill_outside(&series, input, told, ret_outside);
    for (size_t i = 0; ret_parts != NULL && i < input->count; i++) {
        double t_s = input->points[i].t_s;

        ret_parts[i] = (struct seep_balance_parts){
            .tracked = part_at(&series.shown, t_s),
            .overhead = part_at(&series.overhead, t_s),
            .unexplained = part_at(&series.unexplained, t_s),
        };
    }
}
