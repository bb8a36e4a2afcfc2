/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A process made by hand, of sites and a balance, for tests of its verdict.
 *
 * Invariant: one process at a time, made anew by begin().
 */
#ifndef SEEP_TESTS_VERDICT_PROCESS_H
#define SEEP_TESTS_VERDICT_PROCESS_H

#include "seep_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reader/judge/verdict.h"

#define MIB 1048576.0
#define RUN_S 1000.0
#define SITES_MAX 8

struct process {
    struct seep_site_work works[SITES_MAX];
    struct seep_verdict_input input;
    struct seep_report_verdict verdict;
    struct seep_verdict_now now;
};

static struct process process;

/* Private memory of 100 MiB that stands still. */
static inline struct seep_drift still(void)
{
    return (struct seep_drift){
        .known = true,
        .from_s = .2 * RUN_S,
        .last_bytes = 100 * MIB,
        .fastest_bytes_per_s = 1e12, /* no bound */
    };
}

/* It grows by @bytes from @from_s of the run on, give or take a tenth. */
static inline struct seep_drift rising(double bytes, double from)
{
    double span_s = (1 - from) * RUN_S;
    double rate = bytes / span_s;

    return (struct seep_drift){
        .known = true,
        .grows = true,
        .from_s = from * RUN_S,
        .bytes_per_s = {rate, .9 * rate, 1.1 * rate},
        .growth_bytes = bytes,
        .last_bytes = 100 * MIB,
        .error_bytes_per_s = .1 * rate,
        .most_bytes_per_s = 1.1 * rate,
        .fastest_bytes_per_s = 1.1 * rate,
    };
}

static inline int begin(void **state)
{
    (void)state;
    memset(&process, 0, sizeof(process));
    process.input.works = process.works;
    process.input.duration_s = RUN_S;
    process.input.private_drift = still();
    process.input.live_bytes[SEEP_PLACE_HOST] = (uint64_t)(100 * MIB);
    process.input.outside.rss_bytes = 100 * MIB;
    process.input.outside.known = true;
    process.input.outside.p = 1;
    return 0;
}

/* A site that grows by @bytes_per_s, give or take a tenth. */
static inline struct seep_report_site *add(enum seep_class class,
                                           double bytes_per_s)
{
    struct seep_report_site *site = &process.works[process.input.count++].site;

    site->class = class;
    site->class_reason = seep_class_name(class);
    site->space = SEEP_SPACE_HEAP;
    site->live_bytes = (uint64_t)MIB;
    site->has_growth = bytes_per_s != 0;
    site->growth_bytes_per_s = (struct seep_interval){
        bytes_per_s, .9 * bytes_per_s, 1.1 * bytes_per_s};
    site->growth_now_bytes_per_s = bytes_per_s;
    return site;
}

/* What is not tracked grows by 30 MiB over the settled part. */
static inline struct seep_balance_outside *grow_outside(void)
{
    struct seep_balance_outside *outside = &process.input.outside;

    outside->p = 1e-6;
    outside->going_on = true;
    outside->growth_bytes = 30 * MIB;
    outside->bytes_per_s = (struct seep_interval){40000, 30000, 50000};
    outside->has_overhead = true;
    process.input.private_drift.known = false;
    return outside;
}

static inline enum seep_verdict_class decide(void)
{
    seep_verdict_decide(&process.input, &process.verdict, &process.now);
    assert_non_null(process.verdict.reason);
    assert_true(process.verdict.reason[0] != '\0');
    return process.verdict.class;
}

static inline bool says(const char *words)
{
    return strstr(process.verdict.reason, words) != NULL;
}

#endif
