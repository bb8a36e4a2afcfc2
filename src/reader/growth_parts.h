/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the files of the cohort-flow test share; growth.c tells the test.
 *
 * Indices of windows and buckets are 0-based. The letters in brackets are
 * those of the published constants and of the test vectors.
 *
 * Pure functions on checked input (finite, ascending bucket ends, at most
 * SEEP_GROWTH_BUCKET_LIMIT of them): no state, no allocation; any thread.
 */
#ifndef SEEP_READER_GROWTH_PARTS_H
#define SEEP_READER_GROWTH_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/growth.h"

#define SEEP_GROWTH_SETTLE 2     /* windows that a start-up may take (S0) */
#define SEEP_GROWTH_GUARD 2      /* windows too young to be judged (GW) */
#define SEEP_GROWTH_MATURE 8     /* first window that is too young */
#define SEEP_GROWTH_BLOCKS 16    /* of the trend test */
#define SEEP_GROWTH_ONSET_LAST 5 /* three mature windows at least */
#define SEEP_GROWTH_NO_ONSET 9
#define SEEP_GROWTH_ALPHA 0.01
#define SEEP_GROWTH_DIED_IMMORTAL 0.10 /* q2 */

/** What was found out about one site on the way to its class. */
struct seep_growth_detail {
    double low_bytes[SEEP_GROWTH_WINDOWS]; /* trough of each window (Q) */
    int mature_windows;                    /* from the onset to the guard (n) */
    double dispersion;     /* of the windows against Poisson (d0) */
    double poisson_error;  /* of the rate a window (se_p) */
    double between_error;  /* the same, from window to window (se_w) */
    double exponent;       /* of the rate over age: 0 leak, -1 cache (b1) */
    double exponent_error; /* (s1 * dis) */
    double later_exponent; /* without the first two windows (b2) */
    double later_exponent_error; /* (s2 * dis) */
    double half_ratio;           /* late half over early half (R) */
    double net_growth;           /* of live bytes, share of what survives (G) */
    double tail_growth;          /* the same over the guard windows (tail) */
    double guard_rate[2]; /* of the last two windows over the rate (W9, W10) */
    double died_share;    /* of blocks that got old (q) */
    double immortal_p;    /* P that as few died if half did (pim) */
    double swing;         /* of in-flight memory over the rate (sig / lam) */
};

/** Survivors by window of birth. */
struct seep_growth_cohorts {
    double bytes[SEEP_GROWTH_WINDOWS];    /* W */
    double count[SEEP_GROWTH_WINDOWS];    /* N */
    double variance[SEEP_GROWTH_WINDOWS]; /* V */
    double squares[SEEP_GROWTH_WINDOWS];  /* sums of squared weights (W2) */
};

/** One site while it is judged. */
struct seep_growth_site {
    const struct seep_growth_input *input;
    struct seep_growth_cohorts cohorts;
    struct seep_growth *growth;
    struct seep_growth_detail *detail;
    double rate;    /* bytes a window (lam) */
    bool exact;     /* not sampled, or hardly */
    bool shape;     /* the rate does not fall with age */
    bool trend;     /* live bytes grow by about what survives */
    bool calm;      /* they do, but for the swing of in-flight memory */
    bool immortal;  /* what gets old does not die */
    double trend_p; /* 1 if there is no trend */
};

static inline double seep_growth_sum(const double *values, int first, int end)
{
    double result = 0;

    for (int i = first; i < end; i++) {
        result += values[i];
    }
    return result;
}

static inline double seep_growth_largest(const double *values, size_t count)
{
    double result = values[0];

    for (size_t i = 1; i < count; i++) {
        result = values[i] > result ? values[i] : result;
    }
    return result;
}

/* growth.c */

/** As seep_growth_analyse(), and the figures behind it. */
void seep_growth_explain(const struct seep_growth_input *input,
                         struct seep_growth *ret_growth,
                         struct seep_growth_detail *ret_detail);

/* growth_check.c */

/** Why @input cannot be judged at all, or NULL. */
const char *seep_growth_check_input(const struct seep_growth_input *input);

/** Survivors and live series cannot both be true. After judging. */
bool seep_growth_check_contradiction(const struct seep_growth_site *site);

/** Every figure is finite. */
bool seep_growth_check_figures(const struct seep_growth *growth);

/* growth_measure.c */

/** First window of the unbroken chain that reaches the guard, or
 * SEEP_GROWTH_NO_ONSET. */
int seep_growth_measure_onset(const double bytes[SEEP_GROWTH_WINDOWS]);

void seep_growth_measure_rate(struct seep_growth_site *site);
void seep_growth_measure_shape(struct seep_growth_site *site);
void seep_growth_measure_flow(struct seep_growth_site *site);
void seep_growth_measure_confidence(struct seep_growth_site *site);

/* growth_rank.c */

/** The value of @rank (0 the smallest); reorders @values. */
double seep_growth_rank_select(double *values, size_t count, size_t rank);

/** Reorders @values; 0 if there is none. */
double seep_growth_rank_median(double *values, size_t count);

/** The value of rank (count - 1) / 4; reorders @values. */
double seep_growth_rank_quartile(double *values, size_t count);

/**
 * Exact one-sided p of Mann and Kendall for growth, at most
 * SEEP_GROWTH_BLOCKS values. Ties make it conservative; all equal give 1.
 */
double seep_growth_rank_kendall(const double *values, size_t count);

/* growth_series.c */

/** The window that a bucket belongs to, by its end. */
int seep_growth_series_window(double bucket_end);

/** Live bytes at @clock, linear between bucket ends. */
double seep_growth_series_live(const struct seep_growth_input *input,
                               double clock);

/** Lower quartile of the lows of each window. */
void seep_growth_series_lows(const struct seep_growth_input *input,
                             double ret_low_bytes[SEEP_GROWTH_WINDOWS]);

/** p of the trend of SEEP_GROWTH_BLOCKS troughs from window @onset on. */
double seep_growth_series_trend(const struct seep_growth_input *input,
                                int onset);

/** The median over windows of (peak - trough) / peak: 1 falls to nothing. */
double seep_growth_series_swing(const struct seep_growth_input *input);

/** One block that grows by realloc. @ret_rate, bytes a window, if true. */
bool seep_growth_series_block(const struct seep_growth_input *input,
                              double *ret_rate);

/** The live series never changes. */
bool seep_growth_series_is_flat(const struct seep_growth_input *input);

/* growth_shape.c */

struct seep_growth_exponent {
    double value;
    double error; /* standard error under Poisson */
};

/**
 * Exponent of the rate of survivors against the age of what began at @origin,
 * over windows @first to @end - 1, by maximum likelihood.
 *
 * @param squares  sums of squared weights by window
 */
struct seep_growth_exponent
seep_growth_shape_exponent(const double bytes[SEEP_GROWTH_WINDOWS],
                           const double squares[SEEP_GROWTH_WINDOWS], int first,
                           int end, double origin);

/** P that of @total, each dying with probability 1/2, at most @died die. */
double seep_growth_shape_binomial(double died, double total);

#endif
