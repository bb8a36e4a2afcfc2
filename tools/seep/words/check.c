/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a check came to, in words. Invariant: every view says the same. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "verbs.h"
#include "words/common.h"
#include "words/compare.h"
#include "words/held.h"
#include "words/units.h"
#include "words/verdict.h"
#include "words/words.h"

#define NS_PER_S UINT64_C(1000000000)

int seep_check_exit(const struct seep_check_set *set)
{
    enum seep_check_outcome worst = seep_check_worst(set->results, set->count);

    if (worst == SEEP_CHECK_FAIL && set->count > 0) {
        return SEEP_EXIT_OVER_LIMIT;
    }
    if (set->refused_count > 0) {
        return SEEP_EXIT_FAILED;
    }
    return worst == SEEP_CHECK_PASS ? SEEP_EXIT_FINE : SEEP_EXIT_INSUFFICIENT;
}

const char *seep_check_set_name(const struct seep_check_set *set)
{
    switch (seep_check_exit(set)) {
    case SEEP_EXIT_FINE:
        return "pass";
    case SEEP_EXIT_OVER_LIMIT:
        return "fail";
    case SEEP_EXIT_INSUFFICIENT:
        return "not-enough-data";
    default:
        return "failed-to-read";
    }
}

size_t seep_check_tally(const struct seep_check_set *set,
                        enum seep_check_outcome outcome)
{
    size_t tally = 0;

    for (size_t i = 0; i < set->count; i++) {
        tally += set->results[i].outcome == outcome;
    }
    return tally;
}

char *seep_check_headline(const struct seep_check_set *set)
{
    size_t broken = seep_check_tally(set, SEEP_CHECK_FAIL);
    size_t open = seep_check_tally(set, SEEP_CHECK_INSUFFICIENT);
    const char *plural = set->count == 1 ? "" : "s";

    if (broken > 0) {
        return seep_words_make("FAIL: %zu of %zu limit%s violated", broken,
                               set->count, plural);
    }
    if (set->count == 0) {
        return seep_words_make(
            "NOT ENOUGH DATA: nothing was checked against a limit");
    }
    if (open > 0) {
        return seep_words_make(
            "NOT ENOUGH DATA for %zu of %zu limit%s; none is known to be violated",
            open, set->count, plural);
    }
    return set->count == 1
               ? seep_words_make("PASS: the limit holds")
               : seep_words_make("PASS: all %zu limits hold", set->count);
}

char *seep_check_title(const struct seep_check_limit *limit)
{
    bool has_space = limit->space != SEEP_CHECK_ALL_SPACES;

    return seep_words_make(
        "%s%s%s%s%s", seep_check_words(limit->kind), has_space ? " of " : "",
        has_space ? seep_words_space((enum seep_space)limit->space) : "",
        limit->label != NULL ? " with " : "",
        limit->label != NULL ? limit->label : "");
}

char *seep_check_bound(const struct seep_check_limit *limit)
{
    switch (limit->kind) {
    case SEEP_CHECK_GROWTH:
    case SEEP_CHECK_GROWTH_TOTAL:
        return seep_words_make("<= %s/min",
                               SEEP_UNITS_BYTES(limit->value * 60));
    case SEEP_CHECK_GPU_FREE:
        return seep_words_make(">= %s", SEEP_UNITS_BYTES(limit->value));
    case SEEP_CHECK_BASELINE:
        return seep_words_make("none");
    default:
        return seep_words_make("<= %s", SEEP_UNITS_BYTES(limit->value));
    }
}

/* "+41.3 MiB/min (40.1 to 42.5)" in the unit of @estimate; where that is too
 * small for one of them, each in its own. */
static char *with_bounds(const struct seep_interval *value, double scale,
                         const char *estimate)
{
    double larger = fmax(fabs(value->low), fabs(value->high)) * scale;
    const char *unit = strchr(SEEP_UNITS_BYTES(larger), ' ');
    const char *own = strchr(estimate, ' ');

    if (unit == NULL || own == NULL || strncmp(own, unit, strlen(unit)) == 0) {
        return seep_words_make("%s (%s)", estimate,
                               SEEP_UNITS_BOUNDS(value, scale));
    }
    return seep_words_make("%s (%s to %s)", estimate,
                           SEEP_UNITS_BYTES(value->low * scale),
                           SEEP_UNITS_BYTES(value->high * scale));
}

char *seep_check_measured(const struct seep_check_result *result)
{
    const struct seep_interval *value = &result->measure.value;
    enum seep_check_kind kind = result->limit->kind;
    bool is_rate = kind == SEEP_CHECK_GROWTH ||
                   kind == SEEP_CHECK_GROWTH_TOTAL ||
                   kind == SEEP_CHECK_BASELINE;
    bool is_change =
        kind == SEEP_CHECK_DRIFT || kind == SEEP_CHECK_GROWTH_PER_UNIT;

    if (!result->measure.valid) {
        return seep_words_make("not measured");
    }
    const char *estimate = is_rate     ? SEEP_UNITS_RATE(value->estimate)
                           : is_change ? SEEP_UNITS_CHANGE(value->estimate)
                                       : SEEP_UNITS_BYTES(value->estimate);
    return value->low == value->high
               ? strdup(estimate)
               : with_bounds(value, is_rate ? 60 : 1, estimate);
}

/* "python3 serve.py, pid 4242"; of NULL "no process". */
static char *process_of(const struct seep_report *report)
{
    char *program;
    char *text;

    if (report == NULL) {
        return seep_words_make("no process");
    }
    program = seep_words_program(report);
    text = seep_words_make("%s, pid %u", program == NULL ? "?" : program,
                           (unsigned)report->pid);
    free(program);
    return text;
}

char *seep_check_subject(const struct seep_check_result *result)
{
    const struct seep_family *family = result->family;
    char *name;
    char *text;

    if (family == NULL) {
        return process_of(result->report);
    }
    name = seep_words_family_name(family);
    text = seep_words_make("%s, %zu process%s%s", name == NULL ? "?" : name,
                           family->together_count,
                           family->together_count == 1 ? "" : "es",
                           family->together_count == 1 ? "" : " together");
    free(name);
    return text;
}

char *seep_check_since(const struct seep_check_set *set,
                       const struct seep_report *report)
{
    const struct seep_report *last = NULL;
    struct tm utc = {0};
    char day[40];
    time_t seconds;

    for (size_t i = 0; report != NULL && i < set->baseline_count; i++) {
        const struct seep_report *one = set->baseline[i];

        if (seep_check_is_same_program(one, report) &&
            (last == NULL ||
             one->start_realtime_ns > last->start_realtime_ns)) {
            last = one;
        }
    }
    if (last == NULL) {
        return NULL;
    }
    seconds = (time_t)(last->start_realtime_ns / NS_PER_S);
    gmtime_r(&seconds, &utc);
    strftime(day, sizeof(day), "%Y-%m-%d %H:%M UTC", &utc);
    return seep_words_make("%s, recorded %s%s%s%s%s", last->path, day,
                           *last->labels == '\0' ? "" : ", ", last->labels,
                           *report->labels == '\0' ? "" : "; now ",
                           report->labels);
}

/* "serve.py:31 handle grows +40.1 ±1.1 MiB/min". */
static char *growth_at(const struct seep_report *report,
                       const struct seep_report_site *site)
{
    char *where = seep_words_where(report, site);
    char *text;

    const char *growth = SEEP_UNITS_INTERVAL(&site->growth_bytes_per_s, 60);
    text = seep_words_make(
        "%s grows by %s/min%s", where == NULL ? "?" : where, growth,
        site->class == SEEP_CLASS_SUSPECT ? ", a suspect" : "");
    free(where);
    return text;
}

char *seep_check_place(const struct seep_check_result *result, size_t index)
{
    const struct seep_family *family = result->family;
    const struct seep_report_site *site = result->sites[index];

    for (size_t i = 0; family != NULL && i < family->site_count; i++) {
        if (family->sites[i].site == site) {
            return seep_words_family_site(family, &family->sites[i]);
        }
    }
    return growth_at(result->report, site);
}

static void put_sites(FILE *file, const struct seep_check_result *result)
{
    for (size_t i = 0; i < result->site_count; i++) {
        char *site = seep_check_place(result, i);

        char *held = seep_words_held_line(result->sites[i]->held,
                                          result->sites[i]->live_bytes);

        fprintf(file, "; %s", site == NULL ? "?" : site);
        if (held != NULL) {
            fprintf(file, ", held by %s", held);
        }
        free(site);
        free(held);
    }
}

bool seep_check_has_common(const struct seep_check_result *result)
{
    enum seep_check_kind kind = result->limit->kind;
    bool is_growth = kind == SEEP_CHECK_GROWTH ||
                     kind == SEEP_CHECK_GROWTH_PER_UNIT ||
                     kind == SEEP_CHECK_BASELINE;

    return is_growth && result->limit->space == SEEP_CHECK_ALL_SPACES &&
           result->outcome == SEEP_CHECK_FAIL && result->family == NULL &&
           result->report != NULL && result->site_count > 0;
}

char *seep_check_common(const struct seep_check_result *result)
{
    return seep_check_has_common(result)
               ? seep_words_common_news(result->report)
               : NULL;
}

static void put_common(FILE *file, const struct seep_check_result *result)
{
    char *common = seep_check_common(result);

    if (common != NULL) {
        fprintf(file, "; %s", common);
        free(common);
    }
}

char *seep_check_message(const struct seep_check_result *result)
{
    char *measured = seep_check_measured(result);
    char *bound = seep_check_bound(result->limit);
    char *process = seep_check_subject(result);
    char *title = seep_check_title(result->limit);
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);
    char *message = NULL;

    if (file != NULL) {
        fprintf(file, "%s of %s: %s, must be %s", title == NULL ? "?" : title,
                process == NULL ? "?" : process,
                measured == NULL ? "?" : measured, bound == NULL ? "?" : bound);
        if (*result->measure.reason != '\0') {
            fprintf(file, "; %s", result->measure.reason);
        }
        put_sites(file, result);
        put_common(file, result);
        message = seep_words_close(&text);
    }
    free(title);
    free(process);
    free(bound);
    free(measured);
    return message;
}

/* @path behind @folder and its slash; NULL if it does not lie there. */
static const char *below(const char *path, const char *folder)
{
    size_t length = folder == NULL ? 0 : strlen(folder);

    while (length > 0 && folder[length - 1] == '/') {
        length--;
    }
    return length > 0 && strncmp(path, folder, length) == 0 &&
                   path[length] == '/'
               ? path + length + 1
               : NULL;
}

const char *seep_check_file(const struct seep_report_site *site,
                            unsigned *ret_line)
{
    const struct seep_report_frame *frame;
    char folder[PATH_MAX];
    const char *inside;

    if (site->where_frame >= site->frame_count) {
        return NULL;
    }
    frame = site->frames[site->where_frame];
    if (frame->file == NULL || *frame->file == '\0' || frame->line == 0) {
        return NULL;
    }
    *ret_line = frame->line;
    inside = below(frame->file, getenv("GITHUB_WORKSPACE"));
    if (inside == NULL && getcwd(folder, sizeof(folder)) != NULL) {
        inside = below(frame->file, folder);
    }
    return inside != NULL ? inside : frame->file;
}
