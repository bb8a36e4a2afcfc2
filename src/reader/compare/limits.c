/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Limits against reports. Invariant: a limit that nothing was
 * held against is not kept: it is not enough data.
 */
#include "reader/compare/limits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "reader/compare/diff.h"
#include "reader/judge/family.h"
#include "reader/judge/verdict.h"

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

/* Is @now worse than @before by more than both errors, and 5 %? */
static bool is_worse(enum seep_check_kind kind,
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
    return strcmp(seep_text_base_name(before->executable),
                  seep_text_base_name(now->executable)) == 0;
}

static void add_site(struct seep_check_result *result,
                     const struct seep_report_site *site)
{
    if (result->site_count < SEEP_CHECK_SITES) {
        result->sites[result->site_count++] = site;
    }
    result->site_total++;
}

/*
 * What grows now and did not in the baseline, or did by less.
 *
 * Invariant: a call site of the baseline excuses one of now, the one that it is
 * by the matcher of compare/diff.h.
 */

/* By work where both tell it: two runs need not be as busy. */
static bool is_worse_site(const struct seep_report_site *before,
                          const struct seep_report_site *now)
{
    if (before->has_growth_per_unit && now->has_growth_per_unit) {
        return is_worse(SEEP_CHECK_GROWTH_PER_UNIT,
                        &before->growth_bytes_per_unit,
                        &now->growth_bytes_per_unit);
    }
    return is_worse(SEEP_CHECK_GROWTH, &before->growth_bytes_per_s,
                    &now->growth_bytes_per_s);
}

/* Cross out of @is_news what was there in @before, and grew as much. */
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

        is_news[i] &= other == NULL || !other->has_growth ||
                      is_worse_site(other, sites[i]);
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
        fault = "the baseline has too little data";
    }
    return fault;
}

static void add_news(struct seep_check_result *result, const bool *is_news,
                     bool *ret_proved)
{
    const struct seep_report *now = result->report;
    struct seep_interval *value = &result->measure.value;
    double squares = 0;

    for (size_t i = 0; i < now->site_count; i++) {
        const struct seep_report_site *site = &now->sites[i];
        const struct seep_interval *growth = &site->growth_bytes_per_s;

        if (is_news[i] && site->class != SEEP_CLASS_MINOR &&
            seep_check_counts(site, SEEP_CHECK_ALL_SPACES)) {
            add_site(result, site);
            value->estimate += growth->estimate;
            squares += (growth->estimate - growth->low) *
                       (growth->estimate - growth->low);
            *ret_proved |= site->class == SEEP_CLASS_LEAK;
        }
    }
    value->low = value->estimate - sqrt(squares);
    value->high = value->estimate + sqrt(squares);
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
        result->measure.reason =
            "grows, and did not grow in the baseline, or grew less";
    } else if (seep_verdict_open_reason(&now->verdict) != NULL) {
        result->outcome = SEEP_CHECK_INSUFFICIENT;
        result->measure.reason = seep_verdict_open_reason(&now->verdict);
    }
}

static int hold_baseline(const struct seep_check_options *options,
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

/* Every limit against every report, or family, that it is about. */

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
        seep_check_measure_limit(options, limit, before, &measure);
        if (measure.valid &&
            seep_check_decide(limit->kind, limit->value, &measure.value) ==
                SEEP_CHECK_FAIL &&
            !is_worse(limit->kind, &measure.value, &result->measure.value)) {
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

        if (seep_check_counts(site, result->limit->space) &&
            (result->limit->kind != SEEP_CHECK_GPU_FREE ||
             site->device == result->measure.device)) {
            add_site(result, site);
        }
    }
}

static void add_family_sites(struct seep_check_result *result)
{
    const struct seep_family *family = result->family;

    for (size_t i = 0; i < family->site_count; i++) {
        const struct seep_family_site *site = &family->sites[i];

        if (site->has_growth && site->leak_count > 0 &&
            seep_check_counts(site->site, result->limit->space)) {
            add_site(result, site->site);
        }
    }
}

static void hold_limit(const struct seep_check_options *options,
                       struct seep_check_result *result)
{
    const struct seep_check_limit *limit = result->limit;
    struct seep_check_measure *measure = &result->measure;

    seep_check_measure_result(options, result);
    result->outcome =
        measure->valid
            ? seep_check_decide(limit->kind, limit->value, &measure->value)
            : SEEP_CHECK_INSUFFICIENT;
    if (result->outcome == SEEP_CHECK_INSUFFICIENT &&
        *measure->reason == '\0') {
        measure->reason =
            "the limit lies within the interval: a longer run narrows it";
    }
    if (result->outcome != SEEP_CHECK_PASS && measure->valid) {
        if (result->family != NULL) {
            add_family_sites(result);
        } else {
            add_sites(result);
        }
    }
    if (result->outcome == SEEP_CHECK_FAIL && result->family != NULL) {
        measure->reason = "";
    } else if (result->outcome == SEEP_CHECK_FAIL &&
               was_so_before(options, result)) {
        result->outcome = SEEP_CHECK_PASS;
        result->forgiven = true;
        measure->reason = "over the limit, but no worse than the baseline";
    }
}

/* @param family  whose worst @report is, for the limits on a total; NULL: for
 *                the others */
static int hold_all(const struct seep_check_options *options,
                    const struct seep_report *report,
                    const struct seep_family *family,
                    struct seep_check_result *results, size_t *used)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < options->count; i++) {
        const struct seep_check_limit *limit = &options->limits[i];
        struct seep_check_result *result = &results[*used];

        if ((limit->kind == SEEP_CHECK_GROWTH_TOTAL) != (family != NULL) ||
            !applies(options, limit, report)) {
            continue;
        }
        ++*used;
        *result = (struct seep_check_result){
            .limit = limit, .report = report, .family = family};
        if (limit->kind == SEEP_CHECK_BASELINE) {
            error = hold_baseline(options, result);
        } else {
            hold_limit(options, result);
        }
    }
    return error;
}

bool seep_check_is_same_subject(const struct seep_check_result *a,
                                const struct seep_check_result *b)
{
    return a->report == b->report && a->family == b->family;
}

static void add_unheld(const struct seep_check_options *options,
                       struct seep_check_result *results, size_t *used)
{
    for (size_t i = 0; i < options->count; i++) {
        bool held = false;

        for (size_t k = 0; k < *used && !held; k++) {
            held = results[k].limit == &options->limits[i];
        }
        if (!held && (options->limits[i].label != NULL ||
                      options->limits[i].kind == SEEP_CHECK_GROWTH_TOTAL)) {
            results[(*used)++] = (struct seep_check_result){
                .limit = &options->limits[i],
                .outcome = SEEP_CHECK_INSUFFICIENT,
                .measure = {.reason = options->limits[i].label != NULL
                                          ? "no process has this label"
                                          : "there was no process",
                            .device = -1},
            };
        }
    }
}

int seep_check_run(const struct seep_check_options *options,
                   const struct seep_report *const *reports, size_t count,
                   struct seep_check_result **ret_results, size_t *ret_count)
{
    const struct seep_families *families = options->families;
    size_t family_count = families == NULL ? 0 : families->count;
    struct seep_check_result *results = calloc(
        options->count * (count + family_count + 1) + 1, sizeof(*results));
    size_t used = 0;
    int error = results == NULL ? -ENOMEM : 0;

    for (size_t i = 0; error == 0 && i < count; i++) {
        error = hold_all(options, reports[i], NULL, results, &used);
    }
    for (size_t i = 0; error == 0 && i < family_count; i++) {
        error = hold_all(options, families->list[i].worst, &families->list[i],
                         results, &used);
    }
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
