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
#include "reader/growth.h"

#include <math.h>
#include <string.h>

#include "reader/growth_parts.h"

#define WINDOWS SEEP_GROWTH_WINDOWS

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

static const char *const class_names[] = {
#define CLASS_NAME(symbol, name) [SEEP_CLASS_##symbol] = (name),
    SEEP_CLASSES(CLASS_NAME)
#undef CLASS_NAME
};

bool seep_class_may_leak(enum seep_class class)
{
    return class == SEEP_CLASS_LEAK || class == SEEP_CLASS_SUSPECT ||
           class == SEEP_CLASS_WARMING || class == SEEP_CLASS_AGING;
}

const char *seep_class_name(enum seep_class class)
{
    if ((unsigned)class >= SEEP_CLASS_COUNT) {
        return class_names[SEEP_CLASS_INSUFFICIENT];
    }
    return class_names[class];
}

static void decide(struct seep_growth_site *site, enum seep_class class,
                   const char *reason)
{
    site->growth->class = class;
    site->growth->reason = reason;
}

static void gather(struct seep_growth_site *site)
{
    struct seep_growth_cohorts *cohorts = &site->cohorts;

    for (size_t i = 0; i < site->input->survivor_count; i++) {
        const struct seep_survivor *survivor = &site->input->survivors[i];
        double birth = fmax(0, fmin(1, survivor->birth));
        int window = (int)(birth * WINDOWS);
        window = window < WINDOWS ? window : WINDOWS - 1;
        cohorts->bytes[window] += survivor->weight;
        cohorts->count[window] += 1;
        cohorts->variance[window] += survivor->variance;
        cohorts->squares[window] += survivor->weight * survivor->weight;
    }
    memcpy(site->growth->window_bytes, cohorts->bytes, sizeof(cohorts->bytes));
    memcpy(site->growth->window_count, cohorts->count, sizeof(cohorts->count));
    seep_growth_series_lows(site->input, site->detail->low_bytes);
}

/* No chain of survivors: what is the live memory made of? */
static void judge_unchained(struct seep_growth_site *site)
{
    const struct seep_growth_input *input = site->input;
    const double *bytes = site->cohorts.bytes;
    double live = input->live_bytes[input->bucket_count - 1];
    double total = seep_growth_sum(bytes, 0, SEEP_GROWTH_MATURE);
    double first = 0;
    double second = 0;
    double lows[WINDOWS];

    for (int i = 0; i < SEEP_GROWTH_MATURE; i++) {
        second = bytes[i] > first    ? first
                 : bytes[i] > second ? bytes[i]
                                     : second;
        first = bytes[i] > first ? bytes[i] : first;
    }
    memcpy(lows, site->detail->low_bytes, sizeof(lows));
    if (live > 0 && total > 0.5 * live) {
        if (first + second >= 0.8 * total) {
            decide(site, SEEP_CLASS_STEP,
                   "most of it was allocated at one or two moments and kept");
        } else {
            decide(site, SEEP_CLASS_PLATEAU,
                   "it grew once and keeps what it has");
        }
    } else if (seep_growth_largest(lows, WINDOWS) > 0 &&
               seep_growth_rank_median(lows, WINDOWS) >= 0 &&
               seep_growth_series_swing(input) >= 0.5) {
        decide(site, SEEP_CLASS_SAWTOOTH,
               "it fills and is given back, again and again");
    } else {
        decide(site, SEEP_CLASS_STEADY, "what it allocates is given back");
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
               "what it keeps grows ever slower, as a cache that fills");
    } else if (!site->shape) {
        decide(site, SEEP_CLASS_SUSPECT,
               "it keeps growing, and may be slowing down: too few to tell");
    } else if (guard[0] < GUARD_FIRST_MIN || guard[1] < GUARD_LAST_MIN ||
               guard[0] + guard[1] < GUARD_BOTH_MIN) {
        decide(site, SEEP_CLASS_PLATEAU, "it grew, and has stopped");
    } else if (!site->trend && !site->immortal) {
        if (died > SEEP_GROWTH_DIED_IMMORTAL || !site->calm) {
            decide(site, SEEP_CLASS_TURNOVER,
                   "what it keeps replaces what it gives back");
        } else {
            decide(site, SEEP_CLASS_SUSPECT,
                   "it keeps blocks, but its live bytes do not clearly grow");
        }
    } else if ((detail->half_ratio > RATIO_MAX && died > DIED_RISING) ||
               died > DIED_MAX) {
        decide(site, SEEP_CLASS_AGING,
               "its blocks live long, and yet die: run longer");
    } else if (site->growth->onset > ONSET_SURE) {
        decide(site, SEEP_CLASS_SUSPECT, "it began to grow too recently");
    } else if (site->trend && site->growth->p > SEEP_GROWTH_ALPHA &&
               !site->immortal) {
        decide(site, SEEP_CLASS_SUSPECT, "its growth may be chance");
    } else {
        decide(site, SEEP_CLASS_LEAK,
               site->growth->onset <= SEEP_GROWTH_SETTLE
                   ? "every tenth of the run keeps a share of what it allocates"
                   : "every tenth of the run since it began keeps a share of "
                     "what it allocates");
    }
}

static void judge(struct seep_growth_site *site)
{
    struct seep_growth *growth = site->growth;

    growth->onset = seep_growth_measure_onset(site->cohorts.bytes);
    if (growth->onset > SEEP_GROWTH_ONSET_LAST) {
        judge_unchained(site);
        return;
    }
    seep_growth_measure_rate(site);
    if (!growth->tested) {
        decide(site, SEEP_CLASS_INSUFFICIENT, "too few blocks survive to tell");
        return;
    }
    seep_growth_measure_shape(site);
    seep_growth_measure_flow(site);
    seep_growth_measure_confidence(site);
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

static void clear(struct seep_growth *growth, const char *reason)
{
    *growth = (struct seep_growth){
        .class = SEEP_CLASS_INSUFFICIENT,
        .p = 1,
        .onset = SEEP_GROWTH_NO_ONSET,
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
    clear(ret_growth, reason);
    if (reason != NULL) {
        return;
    }
    gather(&site);
    judge(&site);
    judge_block(&site);
    if (!seep_growth_check_figures(ret_growth)) {
        *ret_detail = (struct seep_growth_detail){0};
        clear(ret_growth, "its figures are out of range");
    } else if (seep_growth_check_contradiction(&site)) {
        decide(&site, SEEP_CLASS_INSUFFICIENT,
               "its live bytes and the blocks that survive do not agree");
    }
}

void seep_growth_analyse(const struct seep_growth_input *input,
                         struct seep_growth *ret_growth)
{
    struct seep_growth_detail detail;

    seep_growth_explain(input, ret_growth, &detail);
}
