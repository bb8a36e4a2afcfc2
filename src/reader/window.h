/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Figures of the process over time: levels of parts of the run, and slopes
 * whose interval is honest.
 *
 * Memory is a sum of what came and went, so neighbouring figures are not
 * independent, and the standard error of least squares is far too small. Here
 * a slope is the mean of the growth from window to window, with the spread of
 * those as its error: right for a random walk, too wide for white noise.
 *
 * Pure functions on finite figures; any thread. Nothing here gives NaN or an
 * infinity.
 */
#ifndef SEEP_READER_WINDOW_H
#define SEEP_READER_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/look.h"
#include "seep/recording.h"

/** Moments from inside, and looks from outside between them. */
#define SEEP_WINDOW_POINTS (SEEP_BUCKET_COUNT + SEEP_LOOK_LIMIT)
#define SEEP_WINDOW_LEVELS 16 /* at most, of one call */
#define SEEP_WINDOW_SLOPE 8   /* windows that a slope is made of */

struct seep_window_series {
    size_t count;
    double t_s[SEEP_WINDOW_POINTS]; /* ascending */
    double value[SEEP_WINDOW_POINTS];
};

struct seep_window_level {
    double t_s;   /* the middle of its window */
    double value; /* the lower quartile: what it does not fall below */
};

struct seep_window_slope {
    bool valid; /* at least three windows held a figure */
    double per_s;
    double error;        /* half of its 95 % interval */
    double growth_bytes; /* from the first to the last window */
};

/** One more figure; ignored where it is not later than the last, not finite,
 * or too many. */
void seep_window_add(struct seep_window_series *series, double t_s,
                     double value);

/** At @t_s, linear between figures, held at the ends; 0 if there is none. */
double seep_window_at(const struct seep_window_series *series, double t_s);

/**
 * The levels of @windows equal parts of [@from_s, @to_s].
 *
 * @return how many held a figure; only those are filled, in order
 */
size_t
seep_window_levels_of(const struct seep_window_series *series, double from_s,
                      double to_s, size_t windows,
                      struct seep_window_level ret_levels[SEEP_WINDOW_LEVELS]);

struct seep_window_slope
seep_window_slope_of(const struct seep_window_series *series, double from_s,
                     double to_s);

#endif
