/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What grows now and did not before; see check.h.
 *
 * Invariant: a call site of the baseline excuses one of now, that of its id.
 * Where the id is gone, lines may have moved: then one of the same function
 * and space that is gone too.
 */
#include <math.h>
#include <string.h>

#include "reader/check.h"

/* "serve.py:31 handle" without the line: equal in both? */
static bool is_same_function(const char *left, const char *right)
{
    for (; *left != '\0' && *left == *right; left++, right++) {
        if (*left == ':') {
            left += 1 + strspn(left + 1, "0123456789");
            right += 1 + strspn(right + 1, "0123456789");
            return strcmp(left, right) == 0;
        }
    }
    return *left == *right;
}

static const struct seep_report_site *
find_id(const struct seep_report *report, const struct seep_report_site *site)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *other = &report->sites[i];

        if (other->space == site->space && strcmp(other->id, site->id) == 0) {
            return other;
        }
    }
    return NULL;
}

/* The one that grows most of those of that function that are gone. */
static const struct seep_report_site *
find_moved(const struct seep_report *before, const struct seep_report *now,
           const struct seep_report_site *site)
{
    const struct seep_report_site *found = NULL;

    for (size_t i = 0; i < before->site_count; i++) {
        const struct seep_report_site *other = &before->sites[i];

        if (other->space == site->space && other->has_growth &&
            is_same_function(other->where, site->where) &&
            find_id(now, other) == NULL &&
            (found == NULL || other->growth_bytes_per_s.estimate >
                                  found->growth_bytes_per_s.estimate)) {
            found = other;
        }
    }
    return found;
}

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

static bool was_there(const struct seep_check_options *options,
                      const struct seep_report *now,
                      const struct seep_report_site *site)
{
    for (size_t i = 0; i < options->baseline_count; i++) {
        const struct seep_report *before = options->baseline[i];
        const struct seep_report_site *other = find_id(before, site);

        if (!seep_check_is_same_program(before, now)) {
            continue;
        }
        if (other == NULL) {
            other = find_moved(before, now, site);
        }
        if (other != NULL && other->has_growth && !is_worse(other, site)) {
            return true;
        }
    }
    return false;
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

void seep_check_against(const struct seep_check_options *options,
                        struct seep_check_result *result)
{
    const struct seep_report *now = result->report;
    const char *fault = fault_of_baseline(options, now);
    double squares = 0;
    bool proved = false;

    result->outcome = SEEP_CHECK_PASS;
    result->measure = (struct seep_check_measure){
        .valid = true, .reason = "nothing is new or worse", .device = -1};
    for (size_t i = 0; i < now->site_count; i++) {
        const struct seep_report_site *site = &now->sites[i];

        if (site->class != SEEP_CLASS_MINOR &&
            seep_check_counts(site, SEEP_CHECK_ALL_SPACES) &&
            !was_there(options, now, site)) {
            add_site(result, site, &squares);
            proved |= site->class == SEEP_CLASS_LEAK;
        }
    }
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
