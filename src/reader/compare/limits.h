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
#ifndef SEEP_READER_COMPARE_LIMITS_H
#define SEEP_READER_COMPARE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/report/report.h"

struct seep_families;
struct seep_family;

/** X(SYMBOL, "name", "what it is of"): the last is not given as a limit. */
#define SEEP_CHECKS(X)                                   \
    X(GROWTH, "growth", "growth")                        \
    X(GROWTH_PER_UNIT, "growth-per-unit", "unit growth") \
    X(DRIFT, "drift", "drift")                           \
    X(CAP, "cap", "peak")                                \
    X(GPU_FREE, "gpu-free", "free GPU memory")           \
    X(GROWTH_TOTAL, "growth-total", "total growth")      \
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

#define SEEP_CHECK_WARMUP_UNKNOWN (-1.0)

struct seep_check_limit {
    enum seep_check_kind kind;
    int space;         /* enum seep_space, or SEEP_CHECK_ALL_SPACES */
    const char *label; /* "model=bert": of such processes only, in the place of
                          a limit without label; NULL: of all */
    double value;      /* bytes, or bytes per second */
    const char *text;  /* that .label lies in, for who frees it */
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
    const struct seep_family *family; /* of all of these together; .report is
                                         the worst of them. NULL: of one */
    enum seep_check_outcome outcome;
    struct seep_check_measure measure;
    bool forgiven; /* over the limit, but no worse than the baseline */
    /* The call sites that it is at, the worst first. */
    const struct seep_report_site *sites[SEEP_CHECK_SITES];
    size_t site_count;
    size_t site_total;
};

struct seep_check_options {
    const struct seep_check_limit *limits;
    size_t count;
    double warmup_s;         /* or SEEP_CHECK_WARMUP_UNKNOWN */
    const char *warmup_mark; /* its end is the first of that name, in the place
                                of warmup_s; NULL: none was named */
    const struct seep_report *const *baseline;
    size_t baseline_count;
    /* What a limit on the total is held against; NULL: nothing. */
    const struct seep_families *families;
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

/** The end of the warm-up of @report as far as @options tell it; NAN: the mark
 * that they name is not there. */
double seep_check_warmup_of(const struct seep_check_options *options,
                            const struct seep_report *report);

/** What of @report a limit of @kind is held against. */
void seep_check_measure(enum seep_check_kind kind, int space,
                        const struct seep_report *report, double warmup_s,
                        struct seep_check_measure *ret_measure);

/**
 * The same for every limit of @options, kept by @report, which can let go of
 * its series then (report.h). Without memory it keeps none.
 *
 * @return whether it has them
 */
bool seep_check_measure_all(const struct seep_check_options *options,
                            struct seep_report *report);

/** What @limit, which is one of @options, is held against of @report; of a
 * limit on a total, of this process alone. */
void seep_check_measure_limit(const struct seep_check_options *options,
                              const struct seep_check_limit *limit,
                              const struct seep_report *report,
                              struct seep_check_measure *ret_measure);

/** The same of the limit and the report or the family of @result. */
void seep_check_measure_result(const struct seep_check_options *options,
                               struct seep_check_result *result);

/** Does the growth of @site count for a limit on @space? */
bool seep_check_counts(const struct seep_report_site *site, int space);

/** It surely grows, by however little; also in step with a leak. */
bool seep_check_is_proved(const struct seep_report_site *site);

/** What the user named a bound for, or suppressed, is no growth of a limit. */
bool seep_check_is_excused(const struct seep_report_site *site);

/** Does it grow outside call sites, as a whole? */
bool seep_check_grows_outside(const struct seep_report_verdict *verdict);

/** What may be there in @space, or in all, without a sample of it; 95 %. */
double seep_check_unseen_bytes(const struct seep_report *report, int space);

/** Are the two of one process, or of one family? */
bool seep_check_is_same_subject(const struct seep_check_result *a,
                                const struct seep_check_result *b);

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
