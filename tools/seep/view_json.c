/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The JSON documents. Invariant: every key of the schema stands in every
 * document; what this version does not compute is null, never made up.
 */
#include "view_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "clean.h"
#include "json_parts.h"
#include "view_sites.h"
#include "words.h"

#define NS_PER_S UINT64_C(1000000000)

static json_t *started_of(const struct seep_report *report)
{
    time_t seconds = (time_t)(report->start_realtime_ns / NS_PER_S);
    unsigned milliseconds =
        (unsigned)(report->start_realtime_ns % NS_PER_S / 1000000);
    struct tm utc;
    char day[40];
    char text[64];

    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
        return json_null();
    }
    snprintf(text, sizeof(text), "%s.%03uZ", day, milliseconds);
    return json_string(text);
}

/* "model=bert,role=worker", as SEEP_LABELS has it; a word alone has "". */
static json_t *labels_of(const char *labels)
{
    json_t *object = json_object();
    char *copy = seep_clean_for_json(labels);
    char *rest = copy;
    char *label;

    while (copy != NULL && (label = strsep(&rest, ",")) != NULL) {
        char *value = strchr(label, '=');
        if (value != NULL) {
            *value++ = '\0';
        }
        if (*label != '\0') {
            seep_json_put(object, label,
                          json_string(value == NULL ? "" : value));
        }
    }
    free(copy);
    return object;
}

static json_t *status_of(const struct seep_report *report)
{
    json_t *object;

    if (!report->has_status) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "exit",
                  WIFEXITED(report->status)
                      ? json_integer(WEXITSTATUS(report->status))
                      : json_null());
    seep_json_put(object, "signal",
                  WIFSIGNALED(report->status)
                      ? json_integer(WTERMSIG(report->status))
                      : json_null());
    return object;
}

static json_t *process_of(const struct seep_report *report)
{
    json_t *object = json_object();
    json_t *argv = json_array();

    for (size_t i = 0; i < report->argument_count; i++) {
        json_array_append_new(argv, seep_json_text(report->arguments[i]));
    }
    seep_json_put(object, "pid", json_integer(report->pid));
    seep_json_put(object, "exe", seep_json_text(report->executable));
    seep_json_put(object, "argv", argv);
    seep_json_put(object, "host", seep_json_text(report->host));
    seep_json_put(object, "labels", labels_of(report->labels));
    seep_json_put(object, "state",
                  json_string(seep_words_state_name(report->state)));
    seep_json_put(object, "status", status_of(report));
    seep_json_put(object, "started", started_of(report));
    seep_json_put(object, "duration_s", seep_json_real(report->duration_s));
    seep_json_put(object, "units",
                  report->units == 0 ? json_null()
                                     : seep_json_count(report->units));
    seep_json_put(object, "mode", json_string(seep_words_mode_name(report)));
    seep_json_put(object, "exact", json_boolean(report->exact));
    seep_json_put(object, "sample_bytes",
                  seep_json_count(report->sample_bytes));
    seep_json_put(object, "fork", json_boolean(report->is_fork));
    seep_json_put(object, "inert",
                  report->inert == SEEP_INERT_NONE
                      ? json_null()
                      : json_string(seep_words_inert(report->inert)));
    seep_json_put(object, "allocator",
                  seep_json_text_or_null(report->allocator));
    seep_json_put(object, "unwinder",
                  json_string(seep_words_unwinder(report->unwinder)));
    seep_json_put(object, "seep_version", seep_json_text(report->version));
    seep_json_put(object, "recording", seep_json_text(report->path));
    return object;
}

static json_t *verdict_of(const struct seep_report *report)
{
    json_t *object = json_object();
    json_t *reasons = json_array();

    if (report->reason != NULL && *report->reason != '\0') {
        json_array_append_new(reasons, seep_json_text(report->reason));
    }
    seep_json_put(object, "class", json_string(seep_class_name(report->class)));
    seep_json_put(object, "reasons", reasons);
    seep_json_put(object, "advice", json_array());
    seep_json_put(object, "growth_bytes_per_s", json_null());
    seep_json_put(object, "growth_bytes_per_unit", json_null());
    seep_json_put(object, "forecast", json_null());
    return object;
}

static json_t *extent(double first, double last, double slope)
{
    json_t *object = json_object();

    seep_json_put(object, "first_bytes", seep_json_real(first));
    seep_json_put(object, "last_bytes", seep_json_real(last));
    seep_json_put(object, "slope_bytes_per_s", seep_json_real(slope));
    return object;
}

static json_t *spaces_of(const struct seep_report *report)
{
    json_t *spaces = json_object();

    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];
        json_t *object =
            extent((double)space->first_bytes, (double)space->live_bytes,
                   space->slope_bytes_per_s);
        seep_json_put(object, "live_bytes_error",
                      seep_json_real(space->live_bytes_error));
        seep_json_put(object, "allocated_bytes",
                      seep_json_count(space->allocated_bytes));
        seep_json_put(object, "freed_bytes",
                      seep_json_count(space->freed_bytes));
        seep_json_put(spaces, seep_words_space(space->space), object);
    }
    return spaces;
}

static json_t *tracked_of(const struct seep_report *report)
{
    double first = 0;
    double last = 0;
    double slope = 0;

    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];
        if (space->space <= SEEP_SPACE_PINNED) { /* what lies in RSS */
            first += (double)space->first_bytes;
            last += (double)space->live_bytes;
            slope += space->slope_bytes_per_s;
        }
    }
    return extent(first, last, slope);
}

static json_t *known_bytes(uint64_t bytes)
{
    return bytes == 0 ? json_null() : seep_json_count(bytes);
}

static json_t *memory_of(const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    json_t *object = json_object();

    seep_json_put(object, "rss",
                  memory->valid ? extent((double)memory->first_rss_bytes,
                                         (double)memory->last_rss_bytes,
                                         memory->rss_slope_bytes_per_s)
                                : json_null());
    seep_json_put(object, "shared_bytes",
                  memory->valid ? seep_json_count(memory->last_shared_bytes)
                                : json_null());
    seep_json_put(object, "tracked", tracked_of(report));
    seep_json_put(object, "allocator_overhead", json_null());
    seep_json_put(object, "unexplained", json_null());
    seep_json_put(object, "spaces", spaces_of(report));
    seep_json_put(object, "cgroup_bytes", known_bytes(memory->cgroup_bytes));
    seep_json_put(object, "cgroup_limit_bytes",
                  known_bytes(memory->cgroup_limit_bytes));
    seep_json_put(object, "machine_bytes", known_bytes(memory->machine_bytes));
    return object;
}

static json_t *counters_of(const struct seep_report *report,
                           enum seep_counter_kind kind)
{
    json_t *object = json_object();

    for (size_t i = 0; i < report->counter_count; i++) {
        if (report->counters[i].kind == kind) {
            seep_json_put(object, report->counters[i].name,
                          seep_json_count(report->counters[i].value));
        }
    }
    return object;
}

static json_t *cost_of(const struct seep_report *report)
{
    json_t *object = counters_of(report, SEEP_KIND_COST);

    seep_json_put(object, "seep_s", seep_json_real(report->cost_s));
    seep_json_put(object, "own_bytes", seep_json_count(report->file_bytes));
    seep_json_put(object, "pending_events",
                  seep_json_count(report->pending_events));
    return object;
}

static json_t *head_of(const struct seep_report *report)
{
    json_t *object = json_object();

    seep_json_put(object, "process", process_of(report));
    seep_json_put(object, "verdict", verdict_of(report));
    seep_json_put(object, "memory", memory_of(report));
    return object;
}

static void put_tail(json_t *object, const struct seep_report *report)
{
    json_t *losses = counters_of(report, SEEP_KIND_LOSS);

    seep_json_put(losses, "torn_sites", seep_json_count(report->torn_sites));
    seep_json_put(object, "losses", losses);
    seep_json_put(object, "facts", counters_of(report, SEEP_KIND_FACT));
    seep_json_put(object, "cost", cost_of(report));
}

static json_t *report_of(const struct seep_report *report,
                         const struct seep_json_options *options)
{
    json_t *object = head_of(report);
    json_t *sites = json_array();

    for (size_t i = 0; i < report->site_count; i++) {
        if (options->site_limit > 0 &&
            json_array_size(sites) >= options->site_limit) {
            break;
        }
        if (seep_view_sites_wanted(&report->sites[i], options->site_id)) {
            json_array_append_new(sites,
                                  seep_json_site(report, &report->sites[i]));
        }
    }
    seep_json_put(object, "sites", sites);
    seep_json_put(object, "site_total",
                  seep_json_count(report->site_total > report->site_count
                                      ? report->site_total
                                      : report->site_count));
    put_tail(object, report);
    return object;
}

static json_t *summary_of(const struct seep_report *const *reports,
                          size_t count, size_t refused_count)
{
    json_t *object = json_object();
    json_t *classes = json_object();

    for (size_t i = 0; i < count; i++) {
        const char *name = seep_class_name(reports[i]->class);
        json_int_t seen = json_integer_value(json_object_get(classes, name));
        seep_json_put(classes, name, json_integer(seen + 1));
    }
    seep_json_put(
        object, "class",
        json_string(seep_class_name(
            count > 0 ? reports[0]->class : SEEP_CLASS_INSUFFICIENT)));
    seep_json_put(object, "pid",
                  count > 0 ? json_integer(reports[0]->pid) : json_null());
    seep_json_put(object, "processes", seep_json_count(count));
    seep_json_put(object, "classes", classes);
    seep_json_put(object, "refused", seep_json_count(refused_count));
    return object;
}

static int print_document(FILE *file, json_t *document)
{
    int failed =
        json_dumpf(document, file, JSON_INDENT(1) | JSON_REAL_PRECISION(12));

    json_decref(document);
    if (failed != 0 || fputc('\n', file) == EOF || fflush(file) != 0) {
        return -EIO;
    }
    return 0;
}

int seep_view_json_reports(FILE *file, const struct seep_report *const *reports,
                           size_t count, size_t refused_count,
                           const struct seep_json_options *options)
{
    json_t *document = json_object();
    json_t *processes = json_array();

    if (document == NULL || processes == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(processes, report_of(reports[i], options));
    }
    seep_json_put(document, "schema", json_string("seep-report/1"));
    seep_json_put(document, "summary",
                  summary_of(reports, count, refused_count));
    seep_json_put(document, "processes", processes);
    return print_document(file, document);
}

static json_t *fill_of(uint32_t used, uint32_t capacity)
{
    json_t *object = json_object();

    seep_json_put(object, "used", json_integer(used));
    seep_json_put(object, "capacity", json_integer(capacity));
    return object;
}

static json_t *info_of(const struct seep_report *report)
{
    json_t *object = json_object();
    json_t *tables = json_object();
    json_t *ends = json_object();

    seep_json_put(
        tables, "sites",
        fill_of(report->usage_sites.used, report->usage_sites.capacity));
    seep_json_put(
        tables, "stacks",
        fill_of(report->usage_stacks.used, report->usage_stacks.capacity));
    seep_json_put(
        tables, "series",
        fill_of(report->usage_series.used, report->usage_series.capacity));
    seep_json_put(
        tables, "modules",
        fill_of(report->usage_modules.used, report->usage_modules.capacity));
    seep_json_put(
        tables, "live",
        fill_of(report->usage_live.used, report->usage_live.capacity));
    for (unsigned i = 0; i < SEEP_CUT_COUNT; i++) {
        seep_json_put(ends, seep_words_cut((enum seep_cut)i),
                      seep_json_count(seep_words_counter(
                          report, SEEP_COUNT_CUT_FIRST + i)));
    }
    seep_json_put(object, "process", process_of(report));
    seep_json_put(object, "tables", tables);
    seep_json_put(object, "stack_ends", ends);
    put_tail(object, report);
    return object;
}

int seep_view_json_info(FILE *file, const struct seep_report *const *reports,
                        size_t count, size_t refused_count)
{
    json_t *document = json_object();
    json_t *recordings = json_array();

    if (document == NULL || recordings == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(recordings, info_of(reports[i]));
    }
    seep_json_put(document, "schema", json_string("seep-info/1"));
    seep_json_put(document, "recordings", recordings);
    seep_json_put(document, "refused", seep_json_count(refused_count));
    return print_document(file, document);
}
