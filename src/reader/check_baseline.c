/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What grows now and did not before; see check.h.
 *
 * Invariant: a call site of the baseline excuses one of now, the one that it is
 * by the matcher of reader/diff.h.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "reader/check.h"
#include "reader/diff.h"

/* By work where both tell it: two runs need not be as busy. */
static bool is_worse(const struct seep_report_site *before,
                     const struct seep_report_site *now)
{
    if (before->has_growth_per_unit && now->has_growth_per_unit) {
        return seep_check_is_worse(SEEP_CHECK_GROWTH_PER_UNIT,
                                   &before->growth_bytes_per_unit,
                                   &now->growth_bytes_per_unit);
    }
    return seep_check_is_worse(SEEP_CHECK_GROWTH, &before->growth_bytes_per_s,
                               &now->growth_bytes_per_s);
}

/*
 * Cross out of @is_news what was there in @before, and grew as much.
 */
static int forgive(const struct seep_report *before,
                   const struct seep_report_site *const *sites, size_t count,
                   bool *is_news)
{
    const struct seep_report_site **old =
        calloc(before->site_count + 1, sizeof(*old));
    size_t *match = calloc(count + 1, sizeof(*match));
    int error = -ENOMEM;

    if (old != NULL && match != NULL) {
        for (size_t i = 0; i < before->site_count; i++) {
            old[i] = &before->sites[i];
        }
        error = seep_diff_match(old, before->site_count, sites, count, match);
    }
    for (size_t i = 0; error == 0 && i < count; i++) {
        const struct seep_report_site *other =
            match[i] == SEEP_DIFF_NONE ? NULL : old[match[i]];

        is_news[i] &=
            other == NULL || !other->has_growth || is_worse(other, sites[i]);
    }
    free(old);
    free(match);
    return error;
}

/* Is there anything to compare with? NULL: yes. */
static const char *fault_of_baseline(const struct seep_check_options *options,
                                     const struct seep_report *now)
{
    const char *fault = "the baseline has no run of this program";

    for (size_t i = 0; i < options->baseline_count; i++) {
        const struct seep_report *before = options->baseline[i];

        if (!seep_check_is_same_program(before, now)) {
            continue;
        }
        if (before->verdict.class != SEEP_VERDICT_INSUFFICIENT) {
            return NULL;
        }
        fault = "the baseline tells too little";
    }
    return fault;
}

static void add_site(struct seep_check_result *result,
                     const struct seep_report_site *site, double *squares)
{
    const struct seep_interval *growth = &site->growth_bytes_per_s;
    struct seep_interval *value = &result->measure.value;
    double half = growth->estimate - growth->low;

    if (result->site_count < SEEP_CHECK_SITES) {
        result->sites[result->site_count++] = site;
    }
    result->site_total++;
    *squares += half * half;
    value->estimate += growth->estimate;
    value->low = value->estimate - sqrt(*squares);
    value->high = value->estimate + sqrt(*squares);
}

static void add_news(struct seep_check_result *result, const bool *is_news,
                     bool *ret_proved)
{
    const struct seep_report *now = result->report;
    double squares = 0;

    for (size_t i = 0; i < now->site_count; i++) {
        const struct seep_report_site *site = &now->sites[i];

        if (is_news[i] && site->class != SEEP_CLASS_MINOR &&
            seep_check_counts(site, SEEP_CHECK_ALL_SPACES)) {
            add_site(result, site, &squares);
            *ret_proved |= site->class == SEEP_CLASS_LEAK;
        }
    }
}

static void conclude(const struct seep_check_options *options,
                     struct seep_check_result *result, const bool *is_news)
{
    const struct seep_report *now = result->report;
    const char *fault = fault_of_baseline(options, now);
    bool proved = false;

    result->outcome = SEEP_CHECK_PASS;
    result->measure = (struct seep_check_measure){
        .valid = true, .reason = "nothing is new or worse", .device = -1};
    add_news(result, is_news, &proved);
    if (fault != NULL) {
        result->outcome = SEEP_CHECK_INSUFFICIENT;
        result->measure.reason = fault;
    } else if (result->site_total > 0) {
        result->outcome = proved ? SEEP_CHECK_FAIL : SEEP_CHECK_INSUFFICIENT;
        result->measure.reason = "grows, and did not in the baseline, or less";
    } else if (now->verdict.class == SEEP_VERDICT_INSUFFICIENT) {
        result->outcome = SEEP_CHECK_INSUFFICIENT;
        result->measure.reason = now->verdict.reason;
    }
}

int seep_check_against(const struct seep_check_options *options,
                       struct seep_check_result *result)
{
    const struct seep_report *now = result->report;
    const struct seep_report_site **sites =
        calloc(now->site_count + 1, sizeof(*sites));
    bool *is_news = calloc(now->site_count + 1, sizeof(*is_news));
    int error = sites == NULL || is_news == NULL ? -ENOMEM : 0;

    for (size_t i = 0; error == 0 && i < now->site_count; i++) {
        sites[i] = &now->sites[i];
        is_news[i] = true;
    }
    for (size_t i = 0; error == 0 && i < options->baseline_count; i++) {
        if (seep_check_is_same_program(options->baseline[i], now)) {
            error =
                forgive(options->baseline[i], sites, now->site_count, is_news);
        }
    }
    if (error == 0) {
        conclude(options, result, is_news);
    }
    free(sites);
    free(is_news);
    return error;
}
