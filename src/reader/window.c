/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See window.h. */
#include "reader/window.h"

#include <math.h>

#include "reader/growth_parts.h"

#define LEVEL_VARIANCE 1.5

/* Student's t at 97.5 %, by degrees of freedom. */
static const double t975[SEEP_WINDOW_SLOPE] = {
    0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
};

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
                      struct seep_window_level ret_levels[SEEP_WINDOW_LEVELS])
{
    double values[SEEP_WINDOW_POINTS];
    double width = (to_s - from_s) / (double)windows;
    size_t filled = 0;
    size_t i = 0;

    if (!(width > 0) || !isfinite(width) || windows > SEEP_WINDOW_LEVELS) {
        return 0;
    }
    while (i < series->count && series->t_s[i] < from_s) {
        i++;
    }
    for (size_t k = 0; k < windows; k++) {
        double end = from_s + width * (double)(k + 1);
        size_t count = 0;

        for (; i < series->count &&
               (series->t_s[i] < end ||
                (k + 1 == windows && series->t_s[i] <= to_s));
             i++) {
            values[count++] = series->value[i];
        }
        if (count > 0) {
            ret_levels[filled].t_s = from_s + width * ((double)k + 0.5);
            ret_levels[filled].value = seep_growth_rank_quartile(values, count);
            filled++;
        }
    }
    return filled;
}

/*
 * Growth from window to window as a random walk with a drift: the drift is the
 * whole growth over the whole time, its error the spread of the parts. A level
 * stands for all of its window, so neighbours differ by less than their ends
 * would: averages of a random walk by 2/3 of its variance. (Without that factor
 * the interval covered 91 % of random walks; with it 95.)
 */
static struct seep_window_slope
slope_of_levels(const struct seep_window_level *levels, size_t count)
{
    const struct seep_window_level *last = &levels[count - 1];
    double span = last->t_s - levels[0].t_s;
    struct seep_window_slope slope = {
        .valid = true,
        .growth_bytes = last->value - levels[0].value,
        .per_s = (last->value - levels[0].value) / span,
    };
    double sum = 0;

    for (size_t i = 1; i < count; i++) {
        double seconds = levels[i].t_s - levels[i - 1].t_s;
        double off =
            levels[i].value - levels[i - 1].value - slope.per_s * seconds;

        sum += LEVEL_VARIANCE * off * off / seconds;
    }
    slope.error = t975[count - 2] * sqrt(sum / (double)(count - 2) / span);
    return slope;
}

struct seep_window_slope
seep_window_slope_of(const struct seep_window_series *series, double from_s,
                     double to_s)
{
    struct seep_window_level levels[SEEP_WINDOW_LEVELS];
    size_t count =
        seep_window_levels_of(series, from_s, to_s, SEEP_WINDOW_SLOPE, levels);
    struct seep_window_slope none = {.valid = false};
    struct seep_window_slope slope;

    if (count < 3) {
        return none;
    }
    slope = slope_of_levels(levels, count);
    return isfinite(slope.per_s) && isfinite(slope.error) ? slope : none;
}
