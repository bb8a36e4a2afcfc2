/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cohort-flow test: is a site a leak?
 *
 * The rate of growth is not read from the curve of live bytes (its sums are
 * autocorrelated: a trend test calls half of all clean sites leaks) but from
 * the survivors by window of birth, ten windows of equal work. A leak is a
 * site of which every window since its onset keeps a share, at a rate that
 * does not fall with age (a warming cache), up to now (a ramp that stopped),
 * while live bytes grow by as much (turnover), and what got old does not die
 * (long sessions).
 *
 * What must hold: a class is computed from data or it is insufficient-data,
 * and every number that leaves here is finite.
 */
#include "reader/statistics/growth.h"

#include <math.h>
#include <string.h>

#include "reader/statistics/parts.h"

#define WINDOWS SEEP_GROWTH_WINDOWS

#define BUCKETS_MIN 32 /* fewer filled ones tell nothing */

#define DIED_IMMORTAL 0.10 /* q2 */

double seep_growth_sum(const double *values, int first, int end)
{
    double result = 0;

    for (int i = first; i < end; i++) {
        result += values[i];
    }
    return result;
}

static double largest_of(const double *values, size_t count)
{
    double result = values[0];

    for (size_t i = 1; i < count; i++) {
        result = values[i] > result ? values[i] : result;
    }
    return result;
}

/*
 * What guards the cohort-flow test: a recording is hostile input, and figures
 * that cannot be true must not become a verdict. Whatever passes
 * seep_growth_check_input() is finite, ordered and of a bounded size.
 */

#define ROUNDING 1e-6 /* of sums of weights, once all of them are freed */

static bool all_finite(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

static bool survivors_are_sound(const struct seep_growth_input *input)
{
    for (size_t i = 0; i < input->survivor_count; i++) {
        const struct seep_survivor *survivor = &input->survivors[i];
        if (isnan(survivor->birth) || !isfinite(survivor->weight) ||
            !isfinite(survivor->variance) || survivor->weight < 0 ||
            survivor->variance < 0) {
            return false;
        }
    }
    return true;
}

static bool clock_is_sound(const struct seep_growth_input *input)
{
    const double *ends = input->bucket_end;

    for (size_t i = 0; i < input->bucket_count; i++) {
        if (!(ends[i] >= (i > 0 ? ends[i - 1] : 0))) {
            return false;
        }
    }
    return fabs(ends[input->bucket_count - 1] - 1) <= 1e-6;
}

static bool counts_are_sound(const struct seep_growth_input *input)
{
    return isfinite(input->died_old) && isfinite(input->live_old) &&
           isfinite(input->live_count) && input->died_old >= 0 &&
           input->live_old >= 0 && input->live_count >= 0 &&
           (input->allocations == NULL ||
            isfinite(input->allocations[input->bucket_count - 1]));
}

const char *seep_growth_check_input(const struct seep_growth_input *input)
{
    size_t count = input->bucket_count;

    if (count == 0) {
        return "it has no series";
    }
    if (count < BUCKETS_MIN) {
        return "the run is too short: fewer than 32 intervals were recorded";
    }
    if (count > SEEP_GROWTH_BUCKET_LIMIT) {
        return "its series has more intervals than any recording has";
    }
    if (input->bucket_end[count - 1] <= 0) {
        return "no work was done";
    }
    if (!clock_is_sound(input)) {
        return "its work clock does not run from 0 to 1";
    }
    if (!all_finite(input->live_bytes, count) ||
        !all_finite(input->low_bytes, count) || !counts_are_sound(input) ||
        !survivors_are_sound(input)) {
        return "its figures are damaged";
    }
    return NULL;
}

/* Survivors and the live series come from one recording: where they cannot
 * both be true, neither is evidence. */
static bool contradicts_itself(const struct seep_growth_site *site)
{
    const struct seep_growth_input *input = site->input;
    double most = largest_of(input->live_bytes, input->bucket_count);

    if (seep_growth_sum(site->cohorts.bytes, 0, WINDOWS) <= 0) {
        return input->live_bytes[input->bucket_count - 1] > ROUNDING * most;
    }
    if (most <= 0) {
        return true;
    }
    /* Old blocks that die can keep the curve flat; else it must have risen. */
    return site->growth->onset <= SEEP_GROWTH_ONSET_LAST &&
           site->detail->died_share <= DIED_IMMORTAL &&
           seep_growth_series_is_flat(input);
}

static bool figures_are_finite(const struct seep_growth *growth)
{
    const double figures[] = {
        growth->rate.estimate,
        growth->rate.low,
        growth->rate.high,
        growth->confidence,
        growth->p,
        growth->zs,
        growth->mature_count,
        growth->effective_count,
        growth->died_share,
    };

    return all_finite(figures, sizeof(figures) / sizeof(figures[0])) &&
           all_finite(growth->window_bytes, WINDOWS);
}

/*
 * Shape of the survivors over age. Every result is finite for finite,
 * non-negative input.
 */

#define NEWTON_STEPS 12
#define NEWTON_STRIDE 1.0
#define EXPONENT_LIMIT 6.0
#define BINOMIAL_EXACT 1000.0 /* above, the normal distribution will do */

static double clamp(double value, double low, double high)
{
    return fmax(low, fmin(high, value));
}

struct seep_growth_moments
seep_growth_shape_moments(const double *x, const double *flat, size_t count,
                          double exponent, double middle, double *ret_share)
{
    struct seep_growth_moments result = {0, 0};
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        ret_share[i] = flat[i] * exp(exponent * (x[i] - middle));
        sum += ret_share[i];
    }
    for (size_t i = 0; i < count; i++) {
        ret_share[i] /= sum;
        result.mean += ret_share[i] * x[i];
    }
    for (size_t i = 0; i < count; i++) {
        double off = x[i] - result.mean;
        result.variance += ret_share[i] * off * off;
    }
    return result;
}

struct seep_growth_exponent
seep_growth_shape_exponent(const double bytes[SEEP_GROWTH_WINDOWS],
                           const double squares[SEEP_GROWTH_WINDOWS], int first,
                           int end, double origin)
{
    static const double flat[WINDOWS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct seep_growth_moments moments = {0, 1};
    double x[WINDOWS];
    double share[WINDOWS];
    double middle = 0;
    double sum = 0;
    double square_sum = 0;
    double mean = 0;
    double exponent = 0;
    double information;
    int count = end - first;

    for (int i = 0; i < count; i++) {
        x[i] = log(first + i + 0.5 - origin);
        middle += x[i];
        sum += bytes[first + i];
        square_sum += squares[first + i];
        mean += bytes[first + i] * x[i];
    }
    if (sum <= 0) {
        return (struct seep_growth_exponent){0, 9};
    }
    mean /= sum;
    middle /= count;
    for (int step = 0; step < NEWTON_STEPS; step++) {
        moments = seep_growth_shape_moments(x, flat, (size_t)count, exponent,
                                            middle, share);
        exponent += clamp((mean - moments.mean) / fmax(moments.variance, 1e-9),
                          -NEWTON_STRIDE, NEWTON_STRIDE);
        exponent = clamp(exponent, -EXPONENT_LIMIT, EXPONENT_LIMIT);
    }
    /* sum^2 / sum of squares: how many blocks of equal weight it is worth */
    information = sum * sum / fmax(square_sum, 1e-300) * moments.variance;
    return (struct seep_growth_exponent){
        exponent, 1 / sqrt(clamp(information, 1e-9, 1e300))};
}

double seep_growth_shape_binomial(double died, double total)
{
    double term;
    double sum;

    if (total > BINOMIAL_EXACT) {
        return 0.5 * erfc((total / 2 - died) / sqrt(total / 4) / sqrt(2));
    }
    total = round(total);
    term = exp2(-total);
    sum = term;
    for (double i = 1; i <= died && i <= total; i++) {
        term *= (total - i + 1) / i;
        sum += term;
    }
    return fmin(1, sum);
}

/*
 * The measures of the cohort-flow test, in the order in which they are taken:
 * onset, rate, shape, flow, confidence. Each may use those before it.
 */

/* Tuned on simulated sites, once; another value needs another study. */
#define COUNT_MIN 12.0       /* survivors, sampled */
#define COUNT_MIN_EXACT 5.0  /* survivors, exact */
#define LATE 5               /* first of the late windows */
#define FILL 0.2             /* of these, that each window must hold */
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

int seep_growth_find_onset(const double kept[WINDOWS], int first, int end)
{
    double late[WINDOWS];
    bool full[WINDOWS];
    double wanted;

    memcpy(late, kept, sizeof(late));
    wanted = seep_rank_median(&late[LATE], (size_t)(end - LATE));
    if (wanted <= 0) {
        return SEEP_GROWTH_NO_ONSET;
    }
    for (int i = 0; i < WINDOWS; i++) {
        full[i] = kept[i] >= FILL * wanted;
    }
    for (int i = end - 1; i >= first; i--) { /* one hole is forgiven */
        if (!full[i] &&
            !(i > 0 && full[i - 1] && (i == WINDOWS - 1 || full[i + 1]))) {
            return i + 1;
        }
    }
    return first;
}

void seep_growth_measure_gather(struct seep_growth_site *site, bool by_time)
{
    const struct seep_growth_input *input = site->input;
    struct seep_growth_cohorts *cohorts = &site->cohorts;

    for (size_t i = 0; i < input->survivor_count; i++) {
        const struct seep_survivor *survivor = &input->survivors[i];
        double birth =
            by_time ? (double)survivor->birth_tick / input->life->end_tick
                    : survivor->birth;
        int window = (int)(fmax(0, fmin(1, birth)) * WINDOWS);
        window = window < WINDOWS ? window : WINDOWS - 1;
        cohorts->bytes[window] += survivor->weight;
        cohorts->count[window] += 1;
        cohorts->variance[window] += survivor->variance;
        cohorts->squares[window] += survivor->weight * survivor->weight;
    }
}

/* The rate and its interval: the wider of Poisson's and between windows. */
void seep_growth_measure_rate(struct seep_growth_site *site)
{
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
                seep_rank_t975[count - 1] * detail->between_error);
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
static void measure_shape(struct seep_growth_site *site)
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
    return 1.4826 * seep_rank_median(off, count);
}

/* Is it still going on, and is it net growth? */
static void measure_flow(struct seep_growth_site *site)
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
    detail->net_growth = (lows[9] - largest_of(lows, (size_t)onset)) /
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
    site->immortal = detail->died_share <= DIED_IMMORTAL && site->calm &&
                     detail->immortal_p <= SEEP_GROWTH_ALPHA;
}

static void measure_confidence(struct seep_growth_site *site)
{
    struct seep_growth *growth = site->growth;
    double flat_p = 0.5 * erfc(growth->zs / sqrt(2));

    growth->live_grows = site->trend && site->trend_p <= SEEP_GROWTH_ALPHA;
    growth->p = site->trend_p <= SEEP_GROWTH_ALPHA ? site->trend_p
                                                   : site->detail->immortal_p;
    growth->confidence =
        fmax(0, fmin(CONFIDENCE_MAX, 1 - fmax(flat_p, growth->p)));
}

/* Tuned on simulated sites, once; another value needs another study. */
#define ONSET_SURE 4        /* later: began too recently to be sure */
#define WARMING_MAX (-0.3)  /* below it the rate falls */
#define GUARD_FIRST_MIN 0.4 /* w9 */
#define GUARD_LAST_MIN 0.3  /* w10 */
#define GUARD_BOTH_MIN 1.0  /* twice w910 */
#define RATIO_MAX 1.35      /* Rhi */
#define DIED_RISING 0.15    /* q0 */
#define DIED_MAX 0.25       /* q1 */
#define BLOCK_P 1e-6
#define BLOCK_CONFIDENCE 0.9

static const char *const class_names[] = {SEEP_CLASSES(SEEP_NAME_ALONE)};

bool seep_class_may_leak(enum seep_class class)
{
    return class == SEEP_CLASS_LEAK || class == SEEP_CLASS_SUSPECT ||
           class == SEEP_CLASS_WARMING || class == SEEP_CLASS_AGING;
}

bool seep_class_grows(enum seep_class class)
{
    return seep_class_may_leak(class) || class == SEEP_CLASS_MINOR;
}

const char *seep_class_name(enum seep_class class)
{
    return class_names
        [(unsigned)class < SEEP_CLASS_COUNT ? class : SEEP_CLASS_INSUFFICIENT];
}

static void decide(struct seep_growth_site *site, enum seep_class class,
                   const char *reason)
{
    site->growth->class = class;
    site->growth->reason = reason;
}

const char *seep_growth_leak_reason(int onset)
{
    return onset <= SEEP_GROWTH_SETTLE
               ? "every tenth of the run keeps a share of what it allocates"
               : "every tenth of the run since it began keeps a share of what it allocates";
}

/* No chain of survivors: what is the live memory made of? */
static void judge_unchained(struct seep_growth_site *site)
{
    const struct seep_growth_input *input = site->input;
    const double *bytes = site->cohorts.bytes;
    double live = input->live_bytes[input->bucket_count - 1];
    double total = seep_growth_sum(bytes, 0, SEEP_GROWTH_MATURE);
    double sorted[SEEP_GROWTH_MATURE];
    double lows[WINDOWS];

    memcpy(sorted, bytes, sizeof(sorted));
    (void)seep_rank_median(sorted, SEEP_GROWTH_MATURE);
    memcpy(lows, site->detail->low_bytes, sizeof(lows));
    if (live > 0 && total > 0.5 * live) {
        if (sorted[SEEP_GROWTH_MATURE - 1] + sorted[SEEP_GROWTH_MATURE - 2] >=
            0.8 * total) {
            decide(site, SEEP_CLASS_STEP,
                   "most of it was allocated at one or two moments and kept");
        } else {
            decide(site, SEEP_CLASS_PLATEAU,
                   "it grew once and keeps what it has");
        }
    } else if (largest_of(lows, WINDOWS) > 0 &&
               seep_rank_median(lows, WINDOWS) >= 0 &&
               seep_growth_series_swing(input) >= 0.5) {
        decide(site, SEEP_CLASS_SAWTOOTH,
               "it fills and is freed, again and again");
    } else {
        decide(site, SEEP_CLASS_STEADY, "what it allocates is freed");
    }
}

/* The first rule that fits. */
static void judge_chain(struct seep_growth_site *site)
{
    const struct seep_growth_detail *detail = site->detail;
    const double *guard = detail->guard_rate;
    double died = detail->died_share;

    if (!site->shape && detail->exponent < WARMING_MAX) {
        decide(site, SEEP_CLASS_WARMING,
               "its growth keeps slowing down, like a cache that fills up");
    } else if (!site->shape) {
        decide(
            site, SEEP_CLASS_SUSPECT,
            "it keeps growing, but may be slowing down: too few blocks to tell");
    } else if (guard[0] < GUARD_FIRST_MIN || guard[1] < GUARD_LAST_MIN ||
               guard[0] + guard[1] < GUARD_BOTH_MIN) {
        decide(site, SEEP_CLASS_PLATEAU, "it grew, and has stopped");
    } else if (!site->trend && !site->immortal) {
        if (died > DIED_IMMORTAL || !site->calm) {
            decide(site, SEEP_CLASS_TURNOVER,
                   "what it keeps replaces what it frees");
        } else {
            decide(site, SEEP_CLASS_SUSPECT,
                   "it keeps blocks, but its live bytes do not clearly grow");
        }
    } else if ((detail->half_ratio > RATIO_MAX && died > DIED_RISING) ||
               died > DIED_MAX) {
        decide(site, SEEP_CLASS_AGING,
               "its blocks live long, but are freed in the end: run longer");
    } else if (site->growth->onset > ONSET_SURE) {
        decide(site, SEEP_CLASS_SUSPECT, "it began to grow too recently");
    } else if (site->trend && site->growth->p > SEEP_GROWTH_ALPHA &&
               !site->immortal) {
        decide(site, SEEP_CLASS_SUSPECT, "its growth may be chance");
    } else {
        decide(site, SEEP_CLASS_LEAK,
               seep_growth_leak_reason(site->growth->onset));
    }
}

static void judge(struct seep_growth_site *site)
{
    struct seep_growth *growth = site->growth;

    growth->onset = seep_growth_find_onset(
        site->cohorts.bytes, SEEP_GROWTH_SETTLE, SEEP_GROWTH_MATURE);
    if (growth->onset > SEEP_GROWTH_ONSET_LAST) {
        judge_unchained(site);
        return;
    }
    seep_growth_measure_rate(site);
    if (!growth->tested) {
        decide(site, SEEP_CLASS_INSUFFICIENT, "too few blocks survive to tell");
        return;
    }
    measure_shape(site);
    measure_flow(site);
    measure_confidence(site);
    judge_chain(site);
}

static void judge_block(struct seep_growth_site *site)
{
    double rate;

    if (site->growth->class == SEEP_CLASS_LEAK ||
        !seep_growth_series_block(site->input, &rate)) {
        return;
    }
    rate *= WINDOWS;
    decide(site, SEEP_CLASS_LEAK,
           "one block that is reallocated ever larger, in every tenth");
    site->growth->rate = (struct seep_interval){rate, 0.5 * rate, 1.5 * rate};
    site->growth->p = BLOCK_P;
    site->growth->confidence = BLOCK_CONFIDENCE;
    site->growth->growing_block = true;
}

void seep_growth_clear(struct seep_growth *growth, const char *reason)
{
    *growth = (struct seep_growth){
        .class = SEEP_CLASS_INSUFFICIENT,
        .p = 1,
        .onset = SEEP_GROWTH_NO_ONSET,
        .stopped_since = -1,
        .reason = reason,
    };
}

void seep_growth_explain(const struct seep_growth_input *input,
                         struct seep_growth *ret_growth,
                         struct seep_growth_detail *ret_detail)
{
    struct seep_growth_site site = {
        .input = input,
        .growth = ret_growth,
        .detail = ret_detail,
    };
    const char *reason = seep_growth_check_input(input);

    *ret_detail = (struct seep_growth_detail){0};
    seep_growth_clear(ret_growth, reason);
    if (reason != NULL) {
        return;
    }
    seep_growth_measure_gather(&site, false);
    memcpy(ret_growth->window_bytes, site.cohorts.bytes,
           sizeof(site.cohorts.bytes));
    memcpy(ret_growth->window_count, site.cohorts.count,
           sizeof(site.cohorts.count));
    seep_growth_series_lows(input, ret_detail->low_bytes);
    judge(&site);
    judge_block(&site);
    if (!figures_are_finite(ret_growth)) {
        *ret_detail = (struct seep_growth_detail){0};
        seep_growth_clear(ret_growth, "its figures are out of range");
        ret_growth->contradicts = true;
    } else if (contradicts_itself(&site)) {
        decide(&site, SEEP_CLASS_INSUFFICIENT,
               "its live bytes and its surviving blocks do not agree");
        ret_growth->contradicts = true;
    }
}

void seep_growth_analyse(const struct seep_growth_input *input,
                         struct seep_growth *ret_growth)
{
    struct seep_growth_detail detail;

    seep_growth_explain(input, ret_growth, &detail);
}
