/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Limits against reports; see check.h. Invariant: a limit that nothing was held
 * against is not kept: it is not enough data.
 */
#include "reader/check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/diff.h"

static const struct {
    const char *name;
    const char *words;
} kinds[] = {
#define CHECK_NAMES(symbol, name, words) {name, words},
    SEEP_CHECKS(CHECK_NAMES)
#undef CHECK_NAMES
};

const char *seep_check_name(enum seep_check_kind kind)
{
    return (unsigned)kind < SEEP_CHECK_COUNT ? kinds[kind].name : "";
}

const char *seep_check_words(enum seep_check_kind kind)
{
    return (unsigned)kind < SEEP_CHECK_COUNT ? kinds[kind].words : "";
}

const char *seep_check_outcome_name(enum seep_check_outcome outcome)
{
    return outcome == SEEP_CHECK_PASS   ? "pass"
           : outcome == SEEP_CHECK_FAIL ? "fail"
                                        : "not-enough-data";
}

enum seep_check_outcome seep_check_decide(enum seep_check_kind kind,
                                          double limit,
                                          const struct seep_interval *value)
{
    bool is_floor = kind == SEEP_CHECK_GPU_FREE;

    /* A comparison with NAN is false: it is neither. */
    if (is_floor ? value->high < limit : value->low > limit) {
        return SEEP_CHECK_FAIL;
    }
    if (is_floor ? value->low >= limit : value->high <= limit) {
        return SEEP_CHECK_PASS;
    }
    return SEEP_CHECK_INSUFFICIENT;
}

bool seep_check_is_worse(enum seep_check_kind kind,
                         const struct seep_interval *before,
                         const struct seep_interval *now)
{
    struct seep_interval change = seep_diff_change(before, now);
    double margin = SEEP_DIFF_MARGIN * fabs(before->estimate);

    return kind == SEEP_CHECK_GPU_FREE
               ? change.high < 0 && change.estimate < -margin
               : change.low > 0 && change.estimate > margin;
}

/* Is "model=bert" one of "model=bert,version=13"? */
static bool has_label(const struct seep_report *report, const char *label)
{
    size_t length = strlen(label);
    const char *at = report->labels;

    while (at != NULL && *at != '\0') {
        size_t part = strcspn(at, ",");

        if (part == length && strncmp(at, label, length) == 0) {
            return true;
        }
        at += part + (at[part] == ',');
    }
    return false;
}

/* A limit of a label stands in the place of that of all processes. */
static bool applies(const struct seep_check_options *options,
                    const struct seep_check_limit *limit,
                    const struct seep_report *report)
{
    if (limit->label != NULL) {
        return has_label(report, limit->label);
    }
    for (size_t i = 0; i < options->count; i++) {
        const struct seep_check_limit *other = &options->limits[i];

        if (other->label != NULL && other->kind == limit->kind &&
            other->space == limit->space && has_label(report, other->label)) {
            return false;
        }
    }
    return true;
}

bool seep_check_is_same_program(const struct seep_report *before,
                                const struct seep_report *now)
{
    const char *left = strrchr(before->executable, '/');
    const char *right = strrchr(now->executable, '/');

    return strcmp(left == NULL ? before->executable : left + 1,
                  right == NULL ? now->executable : right + 1) == 0;
}

/* Was as much of it seen before? */
static bool was_so_before(const struct seep_check_options *options,
                          const struct seep_check_result *result)
{
    const struct seep_check_limit *limit = result->limit;

    for (size_t i = 0; i < options->baseline_count; i++) {
        const struct seep_report *before = options->baseline[i];
        struct seep_check_measure measure;

        if (!seep_check_is_same_program(before, result->report)) {
            continue;
        }
        seep_check_measure(limit->kind, limit->space, before,
                           seep_check_warmup_of(options, before), &measure);
        if (measure.valid &&
            seep_check_decide(limit->kind, limit->value, &measure.value) ==
                SEEP_CHECK_FAIL &&
            !seep_check_is_worse(limit->kind, &measure.value,
                                 &result->measure.value)) {
            return true;
        }
    }
    return false;
}

/* Reports have them in reading order, so the first are the worst. */
static void add_sites(struct seep_check_result *result)
{
    const struct seep_report *report = result->report;

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (!seep_check_counts(site, result->limit->space) ||
            (result->limit->kind == SEEP_CHECK_GPU_FREE &&
             site->device != result->measure.device)) {
            continue;
        }
        if (result->site_count < SEEP_CHECK_SITES) {
            result->sites[result->site_count++] = site;
        }
        result->site_total++;
    }
}

static void hold_limit(const struct seep_check_options *options,
                       struct seep_check_result *result)
{
    const struct seep_check_limit *limit = result->limit;

    seep_check_measure(limit->kind, limit->space, result->report,
                       seep_check_warmup_of(options, result->report),
                       &result->measure);
    result->outcome = result->measure.valid
                          ? seep_check_decide(limit->kind, limit->value,
                                              &result->measure.value)
                          : SEEP_CHECK_INSUFFICIENT;
    if (result->outcome == SEEP_CHECK_INSUFFICIENT &&
        *result->measure.reason == '\0') {
        result->measure.reason =
            "the limit lies within what it can be: a longer run tells more";
    }
    if (result->outcome != SEEP_CHECK_PASS && result->measure.valid) {
        add_sites(result);
    }
    if (result->outcome == SEEP_CHECK_FAIL && was_so_before(options, result)) {
        result->outcome = SEEP_CHECK_PASS;
        result->forgiven = true;
        result->measure.reason = "over the limit, and no worse than the "
                                 "baseline";
    }
}

static int hold(const struct seep_check_options *options,
                struct seep_check_result *result)
{
    if (result->limit->kind == SEEP_CHECK_BASELINE) {
        return seep_check_against(options, result);
    }
    hold_limit(options, result);
    return 0;
}

/* Every limit against every report that it is about. */
static int hold_all(const struct seep_check_options *options,
                    const struct seep_report *const *reports, size_t count,
                    struct seep_check_result *results, size_t *used)
{
    int error = 0;

    for (size_t j = 0; j < count; j++) {
        for (size_t i = 0; error == 0 && i < options->count; i++) {
            if (applies(options, &options->limits[i], reports[j])) {
                results[*used] = (struct seep_check_result){
                    .limit = &options->limits[i], .report = reports[j]};
                error = hold(options, &results[(*used)++]);
            }
        }
    }
    return error;
}

static void add_unheld(const struct seep_check_options *options,
                       struct seep_check_result *results, size_t *used)
{
    for (size_t i = 0; i < options->count; i++) {
        bool held = false;

        for (size_t k = 0; k < *used && !held; k++) {
            held = results[k].limit == &options->limits[i];
        }
        if (!held && options->limits[i].label != NULL) {
            results[(*used)++] = (struct seep_check_result){
                .limit = &options->limits[i],
                .outcome = SEEP_CHECK_INSUFFICIENT,
                .measure = {.reason = "no process has this label",
                            .device = -1},
            };
        }
    }
}

int seep_check_run(const struct seep_check_options *options,
                   const struct seep_report *const *reports, size_t count,
                   struct seep_check_result **ret_results, size_t *ret_count)
{
    struct seep_check_result *results =
        calloc(options->count * (count + 1) + 1, sizeof(*results));
    size_t used = 0;
    int error;

    if (results == NULL) {
        return -ENOMEM;
    }
    error = hold_all(options, reports, count, results, &used);
    if (error < 0) {
        free(results);
        return error;
    }
    add_unheld(options, results, &used);
    *ret_results = results;
    *ret_count = used;
    return 0;
}

enum seep_check_outcome
seep_check_worst(const struct seep_check_result *results, size_t count)
{
    enum seep_check_outcome worst = SEEP_CHECK_PASS;

    for (size_t i = 0; i < count; i++) {
        worst = results[i].outcome > worst ? results[i].outcome : worst;
    }
    return count == 0 ? SEEP_CHECK_INSUFFICIENT : worst;
}
