/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Order statistics, levels and slopes of a figure of the process, then whether
 * it drifts.
 *
 * Invariant: a slope without an error is none; a quantile is one of the values
 * given, or the mean of two.
 */
#include "reader/statistics/window.h"

#include <math.h>
#include <stdlib.h>

#define KENDALL_PAIRS (SEEP_RANK_LIMIT * (SEEP_RANK_LIMIT - 1) / 2)

const double seep_rank_t975[SEEP_RANK_FREEDOM + 1] = {
    0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double seep_rank_median(double *values, size_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof(*values), by_value);
    return count % 2 == 1 ? values[count / 2]
                          : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/*
 * P(at least that many of the pairs are in order) under no trend. The number
 * of inversions of n values is the sum of independent uniforms on 0..k-1,
 * k = 2..n, so its distribution is a chain of convolutions (Kendall 1938).
 */
static double upper_tail(size_t count, size_t inversions)
{
    double share[KENDALL_PAIRS + 1] = {1};
    double sum = 0;

    for (size_t n = 2; n <= count; n++) {
        double next[KENDALL_PAIRS + 1] = {0};
        for (size_t i = 0; i <= inversions; i++) {
            size_t first = i < n ? 0 : i - n + 1;
            for (size_t k = first; k <= i; k++) {
                next[i] += share[k] / (double)n;
            }
        }
        for (size_t i = 0; i <= inversions; i++) {
            share[i] = next[i];
        }
    }
    for (size_t i = 0; i <= inversions; i++) {
        sum += share[i];
    }
    return sum;
}

double seep_rank_kendall(const double *values, size_t count)
{
    int pairs = (int)(count * (count - 1) / 2);
    int ups = 0;
    int downs = 0;
    int score;

    for (size_t i = 1; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            ups += values[i] > values[j];
            downs += values[i] < values[j];
        }
    }
    if (ups + downs == 0) {
        return 1;
    }
    score = ups - downs;
    if ((pairs - score) % 2 != 0) {
        score--; /* ties: the next score that the table has, conservative */
    }
    return score < -pairs ? 1
                          : upper_tail(count, (size_t)((pairs - score) / 2));
}

void seep_window_add(struct seep_window_series *series, double t_s,
                     double value)
{
    size_t count = series->count;

    if (count >= SEEP_WINDOW_POINTS || !isfinite(t_s) || !isfinite(value) ||
        (count > 0 && !(t_s > series->t_s[count - 1]))) {
        return;
    }
    series->t_s[count] = t_s;
    series->value[count] = value;
    series->count++;
}

double seep_window_at(const struct seep_window_series *series, double t_s)
{
    size_t i = 0;
    double share;

    if (series->count == 0) {
        return 0;
    }
    while (i < series->count && series->t_s[i] < t_s) {
        i++;
    }
    if (i == 0 || i == series->count) {
        return series->value[i == 0 ? 0 : i - 1];
    }
    share = (t_s - series->t_s[i - 1]) / (series->t_s[i] - series->t_s[i - 1]);
    return series->value[i - 1] +
           share * (series->value[i] - series->value[i - 1]);
}

size_t
seep_window_levels_of(const struct seep_window_series *series, double from_s,
                      double to_s, size_t windows,
                      struct seep_math_level ret_levels[SEEP_WINDOW_LEVELS])
{
    return windows > SEEP_WINDOW_LEVELS
               ? 0
               : seep_math_levels(series->t_s, series->value, series->count,
                                  from_s, to_s, windows, ret_levels);
}

struct seep_window_slope
seep_window_slope_of(const struct seep_window_series *series, double from_s,
                     double to_s)
{
    struct seep_math_slope slope = seep_math_slope(series->t_s, series->value,
                                                   series->count, from_s, to_s);
    struct seep_window_slope window = {.valid = slope.levels != 0};

    if (window.valid) {
        window.growth_bytes = slope.growth;
        window.per_s = slope.per_s;
        window.error = seep_rank_t975[slope.levels - 2] * sqrt(slope.variance);
    }
    return window;
}

#define FLOOR_BYTES (1024.0 * 1024.0)
#define FLOOR_SHARE 0.005
/* Below so much of the rate that it had it has stopped. */
#define STOPPED_SHARE 0.35
#define PARTS 4
#define HALVES_S 0.55 /* of the run: what is settled, in two halves */
#define START_S 0.1   /* of the run: growth before is the start */
/* A level that is higher than all before by so much of the rise is a rise. */
#define RISE_SHARE 0.05
#define RISE_FLOORS 0.125
/* A pause of so small a chance is none: rises that come at random, k of them,
 * leave the last share g of the time free with a chance of (1 - g) to the k. */
#define PAUSE_P 0.05
#define ONE_RISE_P 0.5 /* of what happened once no rate is known */

/* Each begins later than the one before; the first is what is settled. */
static const double parts[PARTS] = {0.2, 0.5, 2.0 / 3, 0.8};

/* From when the work began to the end. */
struct run {
    double begin_s;
    double end_s;
};

static double time_at(struct run run, double share)
{
    return seep_window_time_at(run.begin_s, run.end_s, share);
}

double seep_drift_floor_bytes(double held_bytes)
{
    return fmax(FLOOR_BYTES, FLOOR_SHARE * held_bytes);
}

/* The most that it ever was between @from_s and @to_s. */
static double peak_before(const struct seep_window_series *series,
                          double from_s, double to_s)
{
    double most = -INFINITY;

    for (size_t i = 0; i < series->count; i++) {
        if (series->t_s[i] >= from_s && series->t_s[i] <= to_s) {
            most = fmax(most, series->value[i]);
        }
    }
    return most;
}

/* Its last window, by the lower quartile: what it does not fall below. */
static double level_at_end(const struct seep_window_series *series,
                           struct run run)
{
    struct seep_math_level level[SEEP_WINDOW_LEVELS];

    return seep_window_levels_of(series, time_at(run, 0.9), run.end_s, 1,
                                 level) == 1
               ? level[0].value
               : series->value[series->count - 1];
}

/* Has a later part come to so little of the rate of part @i that it is over? */
static bool stops_after(const struct seep_window_slope slopes[PARTS], size_t i)
{
    for (size_t j = i + 1; j < PARTS; j++) {
        if (slopes[j].valid && slopes[j].per_s + slopes[j].error <
                                   STOPPED_SHARE * slopes[i].per_s) {
            return true;
        }
    }
    return false;
}

static bool grows_in(const struct seep_window_series *series,
                     const struct seep_window_slope slopes[PARTS], size_t i,
                     struct run run, double floor_bytes)
{
    const struct seep_window_slope *slope = &slopes[i];
    double from_s = time_at(run, parts[i]);

    return slope->valid &&
           (slope->per_s - slope->error) * (run.end_s - from_s) > floor_bytes &&
           !stops_after(slopes, i) &&
           level_at_end(series, run) >
               peak_before(series, time_at(run, START_S), from_s);
}

static bool slows_down(const struct seep_window_series *series, struct run run)
{
    double middle_s = time_at(run, HALVES_S);
    struct seep_window_slope first =
        seep_window_slope_of(series, time_at(run, START_S), middle_s);
    struct seep_window_slope last =
        seep_window_slope_of(series, middle_s, run.end_s);

    return first.valid && last.valid &&
           first.per_s - last.per_s > hypot(first.error, last.error);
}

static void find_pause(const struct seep_window_series *series, struct run run,
                       double floor_bytes, struct seep_drift *drift)
{
    struct seep_math_level levels[SEEP_WINDOW_LEVELS];
    double start_s = time_at(run, START_S);
    size_t count = seep_window_levels_of(series, start_s, run.end_s,
                                         SEEP_WINDOW_LEVELS, levels);
    double rise = count < 2 ? 0 : levels[count - 1].value - levels[0].value;
    double least = fmax(RISE_SHARE * rise, RISE_FLOORS * floor_bytes);
    double most = count < 2 ? 0 : levels[0].value;
    double last_s = 0;
    double odds;
    int rises = 0;

    if (!(rise > floor_bytes)) {
        return;
    }
    for (size_t i = 1; i < count; i++) {
        if (levels[i].value - most > least) {
            last_s = levels[i].t_s;
            rises++;
        }
        most = fmax(most, levels[i].value);
    }
    /* What only came back to where it was is a tide. */
    if (rises == 0 || level_at_end(series, run) <=
                          peak_before(series, start_s, time_at(run, 0.5))) {
        return;
    }
    odds = rises == 1 ? ONE_RISE_P : pow(PAUSE_P, 1.0 / rises);
    drift->rise_bytes = rise;
    drift->need_s = fmax(0, (last_s - start_s) / odds + start_s - run.end_s);
    drift->may_go_on = drift->need_s > 0;
}

void seep_drift_of(const struct seep_window_series *series, double begin_s,
                   double end_s, double floor_bytes,
                   struct seep_drift *ret_drift)
{
    struct run run = {begin_s, end_s};
    struct seep_window_slope slopes[PARTS];
    struct seep_drift drift = {.known = false};
    size_t told = 0;

    for (size_t i = 0; i < PARTS; i++) {
        slopes[i] = seep_window_slope_of(series, time_at(run, parts[i]), end_s);
    }
    *ret_drift = drift;
    if (!slopes[0].valid) {
        return;
    }
    drift.known = true;
    for (size_t i = 0; i < PARTS && !drift.grows; i++) {
        drift.grows = grows_in(series, slopes, i, run, floor_bytes);
        told = drift.grows ? i : 0;
    }
    drift.fastest_bytes_per_s = slopes[0].per_s + slopes[0].error;
    for (size_t i = 1; i < PARTS; i++) {
        if (slopes[i].valid) {
            drift.fastest_bytes_per_s = fmax(drift.fastest_bytes_per_s,
                                             slopes[i].per_s + slopes[i].error);
        }
    }
    drift.from_s = time_at(run, parts[told]);
    drift.bytes_per_s =
        seep_interval_around(slopes[told].per_s, slopes[told].error);
    drift.growth_bytes = slopes[told].per_s * (end_s - drift.from_s);
    drift.last_bytes = series->value[series->count - 1];
    drift.error_bytes_per_s = slopes[0].error;
    drift.most_bytes_per_s = fmax(0, slopes[0].per_s + slopes[0].error);
    drift.slows = slows_down(series, run);
    find_pause(series, run, floor_bytes, &drift);
    *ret_drift = drift;
}
