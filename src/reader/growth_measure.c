/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The measures of the cohort-flow test, in the order in which they are taken:
 * onset, rate, shape, flow, confidence. Each may use those before it.
 */
#include "reader/growth_parts.h"

#include <math.h>
#include <string.h>

#define WINDOWS SEEP_GROWTH_WINDOWS

/* Tuned on simulated sites, once; another value needs another study. */
#define COUNT_MIN 12.0       /* survivors, sampled */
#define COUNT_MIN_EXACT 5.0  /* survivors, exact */
#define FILL 0.2             /* of the late windows, that a window holds */
#define EXPONENT_Z 1.0       /* zb */
#define EXPONENT_MIN (-0.5)  /* b0 */
#define LATER_MIN (-0.3)     /* b2min */
#define WARM_UP_MAX 2.5      /* w1max */
#define LATER_ERROR_MAX 0.2  /* s2max */
#define DISPERSION_MIN 0.3   /* dmin: exact blocks may come regularly */
#define REGULAR_COUNT 30.0   /* nreg */
#define ERROR_FACTOR_MAX 2.0 /* of dispersion on standard errors */
#define NET_MIN 0.5          /* G0 */
#define TAIL_MIN 0.35        /* tail0 */
#define TAIL_Z 1.5           /* zt */
#define CONFIDENCE_MAX 0.999

/* The first window of the unbroken chain that reaches the guard. */
int seep_growth_measure_onset(const double bytes[WINDOWS])
{
    double late[3] = {bytes[5], bytes[6], bytes[7]};
    double wanted = seep_growth_rank_median(late, 3);
    bool full[WINDOWS];
    bool filled[WINDOWS];
    int onset = SEEP_GROWTH_MATURE;

    if (wanted <= 0) {
        return SEEP_GROWTH_NO_ONSET;
    }
    for (int i = 0; i < WINDOWS; i++) {
        full[i] = bytes[i] >= FILL * wanted;
    }
    memcpy(filled, full, sizeof(full));
    for (int i = 1; i < SEEP_GROWTH_MATURE; i++) { /* one hole is forgiven */
        filled[i] = full[i] || (full[i - 1] && full[i + 1]);
    }
    while (onset > SEEP_GROWTH_SETTLE && filled[onset - 1]) {
        onset--;
    }
    return onset;
}

/* The rate and its interval: the wider of Poisson's and between windows. */
void seep_growth_measure_rate(struct seep_growth_site *site)
{
    static const double student_975[] = {4.303, 3.182, 2.776, 2.571};
    struct seep_growth *growth = site->growth;
    struct seep_growth_detail *detail = site->detail;
    const double *bytes = site->cohorts.bytes;
    int onset = growth->onset;
    int count = SEEP_GROWTH_MATURE - onset; /* 3 to 6 */
    double squares =
        seep_growth_sum(site->cohorts.squares, onset, SEEP_GROWTH_MATURE);
    double variance =
        seep_growth_sum(site->cohorts.variance, onset, SEEP_GROWTH_MATURE);
    double spread = 0;
    double half;

    site->rate = seep_growth_sum(bytes, onset, SEEP_GROWTH_MATURE) / count;
    for (int i = onset; i < SEEP_GROWTH_MATURE; i++) {
        spread += (bytes[i] - site->rate) * (bytes[i] - site->rate);
    }
    detail->mature_windows = count;
    detail->dispersion = spread / (count - 1) / fmax(squares / count, 1e-300);
    detail->poisson_error = sqrt(squares) / count;
    detail->between_error = sqrt(spread / (count - 1) / count);
    half = fmax(1.96 * detail->poisson_error,
                student_975[count - 3] * detail->between_error);
    growth->rate = (struct seep_interval){WINDOWS * site->rate,
                                          WINDOWS * (site->rate - half),
                                          WINDOWS * (site->rate + half)};
    site->exact = variance <= 0.05 * squares;
    growth->mature_count =
        seep_growth_sum(site->cohorts.count, onset, SEEP_GROWTH_MATURE);
    growth->effective_count =
        growth->mature_count / fmax(1, detail->dispersion);
    growth->tested =
        site->rate > 0 &&
        growth->mature_count >= (site->exact ? COUNT_MIN_EXACT : COUNT_MIN);
}

/* Does the rate fall with the age of the process? Sets zs, too. */
void seep_growth_measure_shape(struct seep_growth_site *site)
{
    struct seep_growth_detail *detail = site->detail;
    const struct seep_growth_cohorts *cohorts = &site->cohorts;
    int onset = site->growth->onset;
    bool regular = site->exact && site->growth->mature_count < REGULAR_COUNT;
    double factor =
        fmin(sqrt(fmax(regular ? DISPERSION_MIN : 1, detail->dispersion)),
             ERROR_FACTOR_MAX);
    struct seep_growth_exponent all;
    struct seep_growth_exponent later;
    bool use_later;

    if (onset <= 2) {
        all = seep_growth_shape_exponent(cohorts->bytes, cohorts->squares, 1,
                                         SEEP_GROWTH_MATURE, 0);
        later = seep_growth_shape_exponent(cohorts->bytes, cohorts->squares, 2,
                                           SEEP_GROWTH_MATURE, 0);
    } else {
        later =
            seep_growth_shape_exponent(cohorts->bytes, cohorts->squares, onset,
                                       SEEP_GROWTH_MATURE, onset - 0.25);
        all = later;
    }
    all.error *= factor;
    later.error *= factor;
    /* Window 1 may be left out only if its warm-up is small or the rest
     * precise: else chance picks the flatter of two fits. */
    use_later = later.value > LATER_MIN &&
                (cohorts->bytes[1] <= WARM_UP_MAX * site->rate ||
                 later.error <= LATER_ERROR_MAX);
    site->shape =
        all.value - EXPONENT_Z * all.error >= EXPONENT_MIN ||
        (use_later && later.value - EXPONENT_Z * later.error >= EXPONENT_MIN);
    site->growth->zs =
        fmax((all.value - EXPONENT_MIN) / all.error,
             use_later ? (later.value - EXPONENT_MIN) / later.error : -9);
    detail->exponent = all.value;
    detail->exponent_error = all.error;
    detail->later_exponent = later.value;
    detail->later_exponent_error = later.error;
}

/* Median distance of the growth of the troughs from the rate, scaled to a
 * standard deviation; the last two windows left out. */
static double trough_swing(const struct seep_growth_site *site)
{
    const double *lows = site->detail->low_bytes;
    double off[WINDOWS];
    size_t count = 0;

    for (int i = site->growth->onset; i < SEEP_GROWTH_MATURE - 1; i++) {
        off[count++] = fabs(lows[i + 1] - lows[i] - site->rate);
    }
    return 1.4826 * seep_growth_rank_median(off, count);
}

/* Is it still going on, and is it net growth? */
void seep_growth_measure_flow(struct seep_growth_site *site)
{
    struct seep_growth_detail *detail = site->detail;
    const struct seep_growth_input *input = site->input;
    const double *bytes = site->cohorts.bytes;
    const double *lows = detail->low_bytes;
    double rate = site->rate;
    int onset = site->growth->onset;
    int half = detail->mature_windows / 2;
    double early = seep_growth_sum(bytes, onset, onset + half);
    double late =
        seep_growth_sum(bytes, SEEP_GROWTH_MATURE - half, SEEP_GROWTH_MATURE);
    double old = input->died_old + input->live_old;
    double swing = trough_swing(site);

    detail->half_ratio = early > 0 ? late / early : 9;
    detail->net_growth = (lows[9] - seep_growth_largest(lows, (size_t)onset)) /
                         (rate * (WINDOWS - onset));
    detail->tail_growth = (lows[9] - lows[7]) / (2 * rate);
    detail->guard_rate[0] = bytes[8] / rate;
    detail->guard_rate[1] = bytes[9] / rate;
    detail->died_share = input->died_old / fmax(1, old);
    site->growth->died_share = detail->died_share;
    detail->swing = swing / rate;
    detail->immortal_p = seep_growth_shape_binomial(input->died_old, old);
    site->trend = detail->net_growth >= NET_MIN &&
                  detail->tail_growth >= TAIL_MIN &&
                  (lows[9] - lows[8]) / rate >= 0;
    site->trend_p = site->trend ? seep_growth_series_trend(input, onset) : 1;
    /* In-flight memory may swing with the load and hide growth: then that
     * old blocks do not die speaks instead. */
    site->calm =
        detail->tail_growth + TAIL_Z * swing * sqrt(2) / (2 * rate) >= TAIL_MIN;
    site->immortal = detail->died_share <= SEEP_GROWTH_DIED_IMMORTAL &&
                     site->calm && detail->immortal_p <= SEEP_GROWTH_ALPHA;
}

void seep_growth_measure_confidence(struct seep_growth_site *site)
{
    struct seep_growth *growth = site->growth;
    double flat_p = 0.5 * erfc(growth->zs / sqrt(2));

    growth->p = site->trend_p <= SEEP_GROWTH_ALPHA ? site->trend_p
                                                   : site->detail->immortal_p;
    growth->confidence =
        fmax(0, fmin(CONFIDENCE_MAX, 1 - fmax(flat_p, growth->p)));
}
