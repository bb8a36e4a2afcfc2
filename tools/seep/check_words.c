/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Words of a check; see check_words.h. Invariant: every view says the same. */
#include "check_words.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "say.h"
#include "units.h"
#include "words.h"

#define ID_SHOWN 8 /* of a site's id: enough to find it */
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

size_t seep_check_tally(const struct seep_check_set *set,
                        enum seep_check_outcome outcome)
{
    size_t tally = 0;

    for (size_t i = 0; i < set->count; i++) {
        tally += set->results[i].outcome == outcome;
    }
    return tally;
}

__attribute__((format(printf, 1, 2))) static char *make(const char *format, ...)
{
    va_list arguments;
    char *text;
    int length;

    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return length < 0 ? NULL : text;
}

char *seep_check_headline(const struct seep_check_set *set)
{
    size_t broken = seep_check_tally(set, SEEP_CHECK_FAIL);
    size_t open = seep_check_tally(set, SEEP_CHECK_INSUFFICIENT);
    const char *plural = set->count == 1 ? "" : "s";

    if (broken > 0) {
        return make("FAIL: %zu of %zu limit%s %s broken", broken, set->count,
                    plural, broken == 1 ? "is" : "are");
    }
    if (set->count == 0) {
        return make("NOT ENOUGH DATA: nothing was held against a limit");
    }
    if (open > 0) {
        return make("NOT ENOUGH DATA for %zu of %zu limit%s; none is known to "
                    "be broken",
                    open, set->count, plural);
    }
    return set->count == 1 ? make("PASS: the limit is kept")
                           : make("PASS: all %zu limits are kept", set->count);
}

char *seep_check_title(const struct seep_check_limit *limit)
{
    bool has_space = limit->space != SEEP_CHECK_ALL_SPACES;

    return make(
        "%s%s%s%s%s", seep_check_words(limit->kind), has_space ? " of " : "",
        has_space ? seep_words_space((enum seep_space)limit->space) : "",
        limit->label != NULL ? " with " : "",
        limit->label != NULL ? limit->label : "");
}

char *seep_check_bound(const struct seep_check_limit *limit)
{
    char text[SEEP_UNITS_TEXT_BYTES];

    switch (limit->kind) {
    case SEEP_CHECK_GROWTH:
        return make("<= %s/min", seep_units_bytes(limit->value * 60, text));
    case SEEP_CHECK_GPU_FREE:
        return make(">= %s", seep_units_bytes(limit->value, text));
    case SEEP_CHECK_BASELINE:
        return make("none");
    default:
        return make("<= %s", seep_units_bytes(limit->value, text));
    }
}

/* "40.1 to 42.5" in the unit of @estimate; where that is too small for one of
 * them, each in its own. */
static void put_bounds(const struct seep_interval *value, double scale,
                       const char *estimate,
                       char text[2 * SEEP_UNITS_TEXT_BYTES])
{
    double larger = fmax(fabs(value->low), fabs(value->high)) * scale;
    char low[SEEP_UNITS_TEXT_BYTES];
    char high[SEEP_UNITS_TEXT_BYTES];
    const char *unit = strchr(seep_units_bytes(larger, high), ' ');
    const char *own = strchr(estimate, ' ');

    if (unit == NULL || own == NULL || strncmp(own, unit, strlen(unit)) == 0) {
        seep_units_bounds(value, scale, text);
        return;
    }
    snprintf(text, 2 * SEEP_UNITS_TEXT_BYTES, "%s to %s",
             seep_units_bytes(value->low * scale, low),
             seep_units_bytes(value->high * scale, high));
}

char *seep_check_measured(const struct seep_check_result *result)
{
    const struct seep_interval *value = &result->measure.value;
    char estimate[SEEP_UNITS_TEXT_BYTES];
    char bounds[2 * SEEP_UNITS_TEXT_BYTES];
    enum seep_check_kind kind = result->limit->kind;
    bool is_rate = kind == SEEP_CHECK_GROWTH || kind == SEEP_CHECK_BASELINE;
    bool is_change =
        kind == SEEP_CHECK_DRIFT || kind == SEEP_CHECK_GROWTH_PER_UNIT;

    if (!result->measure.valid) {
        return make("not measured");
    }
    if (is_rate) {
        seep_units_rate(value->estimate, estimate);
    } else if (is_change) {
        seep_units_change(value->estimate, estimate);
    } else {
        seep_units_bytes(value->estimate, estimate);
    }
    if (value->low == value->high) {
        return make("%s", estimate);
    }
    put_bounds(value, is_rate ? 60 : 1, estimate, bounds);
    return make("%s (%s)", estimate, bounds);
}

char *seep_check_process(const struct seep_report *report)
{
    char *program;
    char *text;

    if (report == NULL) {
        return make("no process");
    }
    program = seep_words_program(report);
    text = make("%s, pid %u", program == NULL ? "?" : program,
                (unsigned)report->pid);
    free(program);
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
    return make("%s, recorded %s%s%s%s%s", last->path, day,
                *last->labels == '\0' ? "" : ", ", last->labels,
                *report->labels == '\0' ? "" : "; now ", report->labels);
}

char *seep_check_site(const struct seep_report *report,
                      const struct seep_report_site *site)
{
    char *where = seep_words_where(report, site);
    char growth[SEEP_UNITS_TEXT_BYTES];
    char *text;

    seep_units_interval(&site->growth_bytes_per_s, 60, growth);
    text = make("%s grows %s/min%s", where == NULL ? "?" : where, growth,
                site->class == SEEP_CLASS_SUSPECT ? ", a suspect" : "");
    free(where);
    return text;
}

char *seep_check_next(const struct seep_report *report,
                      const struct seep_report_site *site)
{
    char *path = seep_words_quote(report->path);
    char *text = make("seep report --stack --site %.*s %s", ID_SHOWN, site->id,
                      path == NULL ? "RECORDING" : path);

    free(path);
    return text;
}

static void put_sites(FILE *file, const struct seep_check_result *result)
{
    for (size_t i = 0; i < result->site_count; i++) {
        char *site = seep_check_site(result->report, result->sites[i]);

        fprintf(file, "; %s", site == NULL ? "?" : site);
        free(site);
    }
}

char *seep_check_message(const struct seep_check_result *result)
{
    char *measured = seep_check_measured(result);
    char *bound = seep_check_bound(result->limit);
    char *process = seep_check_process(result->report);
    char *title = seep_check_title(result->limit);
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file != NULL) {
        fprintf(file, "%s of %s: %s, must be %s", title == NULL ? "?" : title,
                process == NULL ? "?" : process,
                measured == NULL ? "?" : measured, bound == NULL ? "?" : bound);
        if (*result->measure.reason != '\0') {
            fprintf(file, "; %s", result->measure.reason);
        }
        put_sites(file, result);
        fclose(file);
    }
    free(title);
    free(process);
    free(bound);
    free(measured);
    return text;
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
    frame = &site->frames[site->where_frame];
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
