/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Figures of the process over time: levels of parts of the run, and slopes
 * whose interval is honest (base/math.h); and order statistics of any figures.
 *
 * Pure functions on finite figures, but for the order of what a median is
 * taken of; any thread. Nothing here gives NaN or an infinity.
 */
#ifndef SEEP_READER_STATISTICS_WINDOW_H
#define SEEP_READER_STATISTICS_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/math.h"
#include "reader/statistics/growth.h"
#include "seep/recording.h"

/** At most, of one process. */
#define SEEP_EXTERNAL_SAMPLES_MAX 48

/** Timeline samples, and external samples between them. */
#define SEEP_WINDOW_POINTS (SEEP_BUCKET_COUNT + SEEP_EXTERNAL_SAMPLES_MAX)
#define SEEP_WINDOW_SETTLE SEEP_MATH_SETTLE

#define SEEP_WINDOW_LEVELS 16 /* at most, of one call */

#define SEEP_RANK_LIMIT 16   /* values that a trend is tested over, at most */
#define SEEP_RANK_FREEDOM 10 /* degrees of freedom that t is known for */

/** Student's t at 97.5 %, by degrees of freedom from 1 on. */
extern const double seep_rank_t975[SEEP_RANK_FREEDOM + 1];

/** Sorts @values; 0 if there is none. */
double seep_rank_median(double *values, size_t count);

/**
 * Exact one-sided p of Mann and Kendall for growth, of at most
 * SEEP_RANK_LIMIT values. Ties make it conservative; all equal give 1.
 */
double seep_rank_kendall(const double *values, size_t count);

struct seep_window_series {
    size_t count;
    double t_s[SEEP_WINDOW_POINTS]; /* ascending */
    double value[SEEP_WINDOW_POINTS];
};

/** When @share of the run from @begin_s on is over. */
static inline double seep_window_time_at(double begin_s, double end_s,
                                         double share)
{
    return begin_s + share * (end_s - begin_s);
}

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
                      struct seep_math_level ret_levels[SEEP_WINDOW_LEVELS]);

struct seep_window_slope
seep_window_slope_of(const struct seep_window_series *series, double from_s,
                     double to_s);

/*
 * Does a figure of the process grow, and is it sure? The one test that every
 * word of "no leak" passes: of the report, of a check and of a probe.
 *
 * It is made over the settled part of the run, and over its last half, third
 * and fifth, so that what begins late is seen. What grew for a while and has
 * stopped does not count, nor does a tide: what only comes back to where it was
 * before. Simulated: of random walks up to 5 % grow, of noise, of saw teeth
 * shorter than half of the run and of caches that filled by 0.6 of it none; of
 * leaks whose steps spread by a tenth of the growth all, and so of those that
 * begin at 0.5 to 0.8 of the run.
 */

struct seep_drift {
    bool known;    /* the rest is 0 where too few figures were seen */
    bool grows;    /* by more than the floor, at least, and has not stopped */
    double from_s; /* of the recording: .bytes_per_s is of what follows */
    struct seep_interval bytes_per_s;
    double growth_bytes; /* over that part */
    double last_bytes;
    /* Half of the interval of the settled part, and the most that it can have
     * grown by: for what could hide. */
    double error_bytes_per_s;
    double most_bytes_per_s;
    double fastest_bytes_per_s; /* the same of the part that grew fastest */
    /* It rose since the start, and so lately for as often as it did that it may
     * rise again; and how much longer a pause must be to tell. */
    bool may_go_on;
    double rise_bytes;
    double need_s;
    bool slows; /* its second half grows by less than the first, and surely */
};

/** What is less than this is not worth a word, of so much memory. */
double seep_drift_floor_bytes(double held_bytes);

/** @param begin_s      when the work began: the run is what follows
 *  @param floor_bytes  what must be exceeded, beyond the error */
void seep_drift_of(const struct seep_window_series *series, double begin_s,
                   double end_s, double floor_bytes,
                   struct seep_drift *ret_drift);

#endif
