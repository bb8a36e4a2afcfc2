/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A digest: what a fleet needs to know of one process, one line a call site
 * that grows.
 *
 * Invariant: a process has at least one line, and every line every key, so that
 * who counts lines without a site counts processes in which none grows, and a
 * table of them has the same columns wherever it comes from.
 */
#include "json/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "reader/compare/diff.h"
#include "reader/compare/patterns.h"
#include "words/words.h"

/* Of the normal distribution: 95 % lie within so many standard errors. */
#define NORMAL_975 1.959963984540054

/* Half of the interval is so many errors, also where it is Student's: then the
 * variance is larger than that of the windows, as their number wants it. */
static json_t *measured(const struct seep_interval *interval)
{
    json_t *object = seep_json_interval(interval);

    if (interval != NULL) {
        double error = (interval->high - interval->low) / 2 / NORMAL_975;

        seep_json_put(object, "variance", error * error);
    }
    return object;
}

static bool is_told(const struct seep_report_site *site)
{
    return seep_class_grows(site->class);
}

static size_t count_told(const struct seep_report *report)
{
    size_t count = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        count += is_told(&report->sites[i]);
    }
    return count;
}

/* "gpu-7/4242/2026-11-25T21:26:43.204Z" */
static json_t *key_of(const struct seep_report *report, json_t *process)
{
    const char *host = json_string_value(json_object_get(process, "host"));
    const char *started =
        json_string_value(json_object_get(process, "started"));
    char *text = seep_words_make("%s/%" PRIu32 "/%s", host == NULL ? "" : host,
                                 report->pid, started == NULL ? "" : started);
    json_t *value = seep_json_text(text);

    free(text);
    return value;
}

/* As `seep report --json` has it. */
static void copy_process(json_t *line, const struct seep_report *report)
{
    static const char *const keys[] = {
        "host",         "pid",          "exe",        "labels",
        "started",      "state",        "duration_s", "mode",
        "exact",        "sample_bytes", "inert",      "first_sample_bytes",
        "seep_version", "recording",
    };
    json_t *process = seep_json_process(report);
    char *program = seep_words_program(report);

    seep_json_put(line, "process", key_of(report, process));
    seep_json_put(line, "program", program);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_object_set(line, keys[i], json_object_get(process, keys[i]));
    }
    free(program);
    json_decref(process);
}

static void put_process(json_t *line, const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    double over_s = report->duration_s - report->begin.from_s;

    copy_process(line, report);
    seep_json_put(line, "lost_events", seep_words_lost_events(report));
    seep_json_put(line, "over_s", fmax(0, over_s));
    seep_json_put_known(line, "units", report->begin.units);
    seep_json_put(line, "rss_bytes",
                  report->memory.rss.valid ? report->memory.rss.last_bytes
                                           : NAN);
    seep_json_put(line, "verdict", seep_verdict_name(verdict->class));
    SEEP_JSON_COPY(line, verdict, reassures);
    seep_json_put(line, "hidden_bytes_per_s",
                  verdict->hidden_bytes_per_s > 0 ? verdict->hidden_bytes_per_s
                                                  : NAN);
    seep_json_put(
        line, "process_growth_bytes_per_s",
        measured(verdict->has_growth ? &verdict->growth_bytes_per_s : NULL));
    seep_json_put(line, "growing_sites", count_told(report));
}

/* NULL: none grows. */
static void put_site(json_t *line, const struct seep_report_site *site)
{
    static const struct seep_report_site none = {.device = -1};
    const struct seep_report_site *of = site == NULL ? &none : site;
    char function_id[20];

    snprintf(function_id, sizeof(function_id), "%016" PRIx64,
             seep_diff_function(of));
    seep_json_put_text_or_null(line, "site", of->id);
    seep_json_put(line, "function_id", site == NULL ? NULL : function_id);
    seep_json_put(line, "space",
                  site == NULL ? NULL : seep_words_space(of->space));
    seep_json_put_device(line, "device", of->device);
    seep_json_put(line, "where", site == NULL ? NULL : of->where);
    seep_json_put(line, "class",
                  site == NULL ? NULL : seep_class_name(of->class));
    seep_json_put(line, "live_bytes",
                  site == NULL ? NULL : seep_json_count(of->live_bytes));
    seep_json_put(line, "live_count", site == NULL ? NAN : of->live_count);
    seep_json_put(line, "peak_bytes",
                  site == NULL ? NULL : seep_json_count(of->peak_bytes));
    seep_json_put(line, "growth_bytes_per_s",
                  measured(of->has_growth ? &of->growth_bytes_per_s : NULL));
    seep_json_put(
        line, "growth_bytes_per_unit",
        measured(of->has_growth_per_unit ? &of->growth_bytes_per_unit : NULL));
    seep_json_put(line, "confidence", of->has_growth ? of->confidence : NAN);
    seep_json_put(line, "pattern",
                  of->pattern == NULL ? NULL : of->pattern->id);
    seep_json_put(line, "suppressed", (bool)(of->suppressed_by != NULL));
}

static void print_line(struct seep_json_out *out, json_t *line)
{
    seep_json_out_line(out, json_incref(line));
    seep_json_out_raw(out, "\n");
}

int seep_json_digest(FILE *file, const struct seep_report *report)
{
    struct seep_json_out out = {.file = file};
    json_t *line = json_object();
    size_t printed = 0;

    seep_json_put(line, "schema", "seep-digest/1");
    put_process(line, report);
    for (size_t i = 0; i < report->site_count && out.error == 0; i++) {
        if (is_told(&report->sites[i])) {
            put_site(line, &report->sites[i]);
            print_line(&out, line);
            printed++;
        }
    }
    if (printed == 0) {
        put_site(line, NULL);
        print_line(&out, line);
    }
    json_decref(line);
    return out.error;
}
