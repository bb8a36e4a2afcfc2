/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the parts of the leak test share. growth.c is the test of ten windows,
 * survival.c asks again by the life of the blocks, claims.c lets no class
 * reassure that was not proved; series.c and stop.c measure for them.
 *
 * Windows, buckets, ages and births are counted from 0. Letters in brackets
 * are those of the published constants and of the test vectors.
 *
 * Pure functions on input that seep_growth_check_input() let pass (finite,
 * ascending bucket ends, at most SEEP_GROWTH_BUCKET_LIMIT of them): no state;
 * any thread. Where a life is needed it has as many buckets as the input, at
 * most SEEP_GROWTH_LIFE_BUCKETS.
 */
#ifndef SEEP_READER_STATISTICS_PARTS_H
#define SEEP_READER_STATISTICS_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/statistics/growth.h"
#include "reader/statistics/window.h"

/* growth.c: the test of ten windows. */

#define SEEP_GROWTH_BLOCKS SEEP_RANK_LIMIT /* of the trend test */
#define SEEP_GROWTH_ALPHA 0.01

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

/** As seep_growth_analyse(), and the figures behind it. */
void seep_growth_explain(const struct seep_growth_input *input,
                         struct seep_growth *ret_growth,
                         struct seep_growth_detail *ret_detail);

/** Why @input cannot be judged at all, or NULL. */
const char *seep_growth_check_input(const struct seep_growth_input *input);

/** The cohorts, by the clock of work or of time. */
void seep_growth_measure_gather(struct seep_growth_site *site, bool by_time);

/** The rate from .growth->onset on, its interval, and what it rests on. */
void seep_growth_measure_rate(struct seep_growth_site *site);

/**
 * The first window, of those from @first to @end - 1, from which on each keeps
 * a share of what the late ones keep; @end if the last of them does not, and
 * SEEP_GROWTH_NO_ONSET if they keep nothing.
 */
int seep_growth_find_onset(const double kept[SEEP_GROWTH_WINDOWS], int first,
                           int end);

struct seep_growth_moments {
    double mean;
    double variance;
};

/**
 * Of @x, at a rate of @flat exp(@exponent (@x - @middle)).
 *
 * @param ret_share  that rate; it sums up to 1
 */
struct seep_growth_moments
seep_growth_shape_moments(const double *x, const double *flat, size_t count,
                          double exponent, double middle, double *ret_share);

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

/* series.c: the live bytes. */

/** Index of the first of @count ascending values above @at; @count: none. */
size_t seep_growth_first_beyond(const double *x, size_t count, double at);

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

/** A container that grows. */
struct seep_growth_steps {
    struct seep_interval rate;
    double next; /* on the clock of work; 0: not foretold */
    double next_bytes;
    bool container; /* blocks get larger, and so much of it is seen */
    bool straight;  /* a queue that lengthens by as much each time */
    bool certain;   /* enough for `leak` */
};

/** One block, or a few, that are reallocated by a factor: the next step. */
bool seep_growth_steps_doubles(const struct seep_growth_input *input,
                               struct seep_growth_steps *ret_steps);
void seep_growth_steps_foretell(const struct seep_growth_input *input,
                                const struct seep_growth_steps *steps,
                                struct seep_growth *growth);

/** The same by less than half each time: like the work. */
bool seep_growth_steps_small(const struct seep_growth_input *input,
                             struct seep_growth_steps *ret_steps);

/** Troughs of the live bytes rise with the work, though what is born dies. */
bool seep_growth_steps_rise(const struct seep_growth_input *input,
                            struct seep_growth_steps *ret_steps);

/** All that is live in the last quarter is above all of the first half. */
bool seep_growth_steps_rose(const struct seep_growth_input *input);

/* survival.c: the life of the blocks. */

#define SEEP_GROWTH_LIFE_BUCKETS 128

/** How blocks die: the life table of a site. */
struct seep_growth_ages {
    double died[SEEP_GROWTH_LIFE_BUCKETS];      /* seen to, by age (D) */
    double left[SEEP_GROWTH_LIFE_BUCKETS];      /* survivors, by age (C) */
    double share[SEEP_GROWTH_LIFE_BUCKETS + 1]; /* that gets so old (S) */
    size_t count;
    size_t old; /* the age in buckets from which on blocks hardly die (g) */
    bool has_old;
};

/** What will get old, by bucket of its birth, up to the last bucket that can
 * be judged; the clocks end there, at 1. */
struct seep_growth_births {
    double bytes[SEEP_GROWTH_LIFE_BUCKETS];   /* (r) */
    double squares[SEEP_GROWTH_LIFE_BUCKETS]; /* of weights (r2) */
    double work[SEEP_GROWTH_LIFE_BUCKETS + 1];
    double time[SEEP_GROWTH_LIFE_BUCKETS + 1];
    size_t count;
    bool exact;
};

void seep_growth_life_births(const struct seep_growth_input *input,
                             const struct seep_growth_ages *ages,
                             struct seep_growth_births *ret_births);

/** A rate that is a power of age. */
struct seep_growth_fit {
    bool usable;
    double margin; /* over a cache, less what chance gives (z) */
    double start;  /* of what was fitted (s) */
    double exponent;
    double error;
    double dispersion;
    double count; /* of equal blocks (N) */
};

/** One fit, of what comes from @start on; ages are counted from @origin. */
struct seep_growth_fit
seep_growth_fit_from(const struct seep_growth_births *births,
                     const double *clock, double start, double origin);

/** y at @x, linear between @count points; the ends outside of them. */
double seep_growth_life_at(const double *x, const double *y, size_t count,
                           double at);

/* stop.c: is it over? */

struct seep_growth_stop {
    double ln_p;  /* of so little at the end, had it gone on; 0: not tested */
    double since; /* on the clock it was tested by */
};

struct seep_growth_stop
seep_growth_stop_find(const struct seep_growth_births *births,
                      const double *clock, int onset);

/** Growth of live bytes for a byte that is kept, other allocations of the
 * site held fixed. */
double seep_growth_stop_net(const struct seep_growth_input *input,
                            const struct seep_growth_births *births, int onset);

/** May it only follow a load that sets records? @param limit  of @fit */
bool seep_growth_stop_follows(const struct seep_growth_input *input,
                              const struct seep_growth_births *births,
                              const struct seep_growth_fit *fit, double limit);

/** By the clock of bytes a start-up is more than its part of the work: what is
 * by that clock is less of a rate. */
void seep_growth_life_take_out_start(const struct seep_growth_input *input,
                                     struct seep_interval *rate);

/* hidden.c: what may hide in what is replaced? */

#define SEEP_GROWTH_STOOD_PARTS 8
#define SEEP_GROWTH_STOOD_MIN 4       /* that tell how live bytes moved */
#define SEEP_GROWTH_STOOD_SPAN 0.4375 /* from the first to the last of them */

/** The largest leak that what is kept and live bytes leave room for. */
struct seep_growth_hidden {
    struct seep_interval rate; /* bytes over the run; its upper bound is it */
    double unit;               /* bytes of one of its blocks */
};

struct seep_growth_hidden
seep_growth_hidden_in(const struct seep_growth_input *input);

/**
 * The mean live bytes in eight parts of the second half on @clock, NAN where
 * no bucket ends. @return how many are known
 */
int seep_growth_stood_parts(const struct seep_growth_input *input,
                            const double *clock,
                            double ret_mean[SEEP_GROWTH_STOOD_PARTS]);

/* claims.c: is it proved? */

/**
 * A class that reassures must be proved, or it is suspect or too little; a
 * leak that live bytes deny is suspect.
 *
 * @param was_fitted  the second look called it so
 */
void seep_growth_prove(const struct seep_growth_input *input,
                       struct seep_growth_ages *ages, bool was_fitted,
                       struct seep_growth *growth);

#endif
