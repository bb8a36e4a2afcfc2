/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Limits on what reports say: does a run keep to them, break them, or tell too
 * little?
 *
 * A limit is held against an interval, never against a point: it is broken
 * where even the lower bound is above it, kept where the upper bound is not;
 * anything else is not enough data, and so is what was not measured at all.
 *
 * Units: bytes, seconds, bytes per second. Pure; any thread. Errors: 0 or
 * -ENOMEM, ret_* untouched. Results point into the limits and the reports.
 */
#ifndef SEEP_READER_CHECK_H
#define SEEP_READER_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/report.h"

/** X(SYMBOL, "name", "what it is of"): the last is not given as a limit. */
#define SEEP_CHECKS(X)                                   \
    X(GROWTH, "growth", "growth")                        \
    X(GROWTH_PER_UNIT, "growth-per-unit", "unit growth") \
    X(DRIFT, "drift", "drift")                           \
    X(CAP, "cap", "peak")                                \
    X(GPU_FREE, "gpu-free", "free GPU memory")           \
    X(BASELINE, "baseline", "new growth")

enum seep_check_kind {
#define SEEP_CHECK_VALUE(symbol, name, words) SEEP_CHECK_##symbol,
    SEEP_CHECKS(SEEP_CHECK_VALUE)
#undef SEEP_CHECK_VALUE
        SEEP_CHECK_COUNT
};

/** Better first, so that of several the greatest counts. */
enum seep_check_outcome {
    SEEP_CHECK_PASS,
    SEEP_CHECK_INSUFFICIENT,
    SEEP_CHECK_FAIL
};

#define SEEP_CHECK_ALL_SPACES (-1)
/** The share of a run that is warm-up where none is named. */
#define SEEP_CHECK_WARMUP_SHARE 0.2
#define SEEP_CHECK_WARMUP_UNTOLD (-1.0)
/** Where a process made it, and nothing is named, it is the end. */
#define SEEP_CHECK_WARMUP_MARK "warm-up done"

struct seep_check_limit {
    enum seep_check_kind kind;
    int space;         /* enum seep_space, or SEEP_CHECK_ALL_SPACES */
    const char *label; /* "model=bert": of such processes only, in the place of
                          a limit without label; NULL: of all */
    double value;      /* bytes, or bytes per second */
    const char *text;  /* that .label lies in; the reader does not look */
};

/** What a limit is held against. */
struct seep_check_measure {
    bool valid;         /* false: .reason says why nothing was measured */
    const char *reason; /* never NULL; "" where there is nothing to add */
    struct seep_interval value;
    int device; /* that it is of; -1 */
};

#define SEEP_CHECK_SITES 8 /* at most, of one result */

struct seep_check_result {
    const struct seep_check_limit *limit;
    const struct seep_report *report; /* NULL: no process is meant by it */
    enum seep_check_outcome outcome;
    struct seep_check_measure measure;
    bool forgiven; /* over the limit, and no worse than the baseline */
    /* The call sites that it is at, the worst first. */
    const struct seep_report_site *sites[SEEP_CHECK_SITES];
    size_t site_count;
    size_t site_total;
};

struct seep_check_options {
    const struct seep_check_limit *limits;
    size_t count;
    double warmup_s;         /* or SEEP_CHECK_WARMUP_UNTOLD */
    const char *warmup_mark; /* its end is the first of that name, in the place
                                of warmup_s; NULL: none was named */
    const struct seep_report *const *baseline;
    size_t baseline_count;
};

/** "growth" and so on; of another value "". */
const char *seep_check_name(enum seep_check_kind kind);
const char *seep_check_words(enum seep_check_kind kind);
/** "pass", "not-enough-data", "fail". */
const char *seep_check_outcome_name(enum seep_check_outcome outcome);

/** @return FAIL, PASS or INSUFFICIENT, by the two bounds alone */
enum seep_check_outcome seep_check_decide(enum seep_check_kind kind,
                                          double limit,
                                          const struct seep_interval *value);

/** Is @now worse than @before by more than both errors, and 5 %? */
bool seep_check_is_worse(enum seep_check_kind kind,
                         const struct seep_interval *before,
                         const struct seep_interval *now);

/** The end of the warm-up of @report as far as @options tell it; NAN: the mark
 * that they name is not there. */
double seep_check_warmup_of(const struct seep_check_options *options,
                            const struct seep_report *report);

/** check_measure.c: what of @report a limit of @kind is held against. */
void seep_check_measure(enum seep_check_kind kind, int space,
                        const struct seep_report *report, double warmup_s,
                        struct seep_check_measure *ret_measure);

/** Does the growth of @site count for a limit on @space? */
bool seep_check_counts(const struct seep_report_site *site, int space);

/** check_baseline.c: what grows in @result->report and did not in the
 * baseline, or did by less; @result->limit is set by the caller. */
int seep_check_against(const struct seep_check_options *options,
                       struct seep_check_result *result);

/** Could @before be of an earlier run of the program of @now? */
bool seep_check_is_same_program(const struct seep_report *before,
                                const struct seep_report *now);

/**
 * Every limit against every report that it is about.
 *
 * @param ret_results  to be freed
 */
int seep_check_run(const struct seep_check_options *options,
                   const struct seep_report *const *reports, size_t count,
                   struct seep_check_result **ret_results, size_t *ret_count);

/** The worst of them; of none INSUFFICIENT. */
enum seep_check_outcome
seep_check_worst(const struct seep_check_result *results, size_t count);

#endif
