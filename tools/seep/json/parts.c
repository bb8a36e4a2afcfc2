/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parts of the JSON documents: values, processes, devices, labels, families,
 * parts of a run. Invariant: every string is valid UTF-8 and every number
 * finite, so that every parser takes it.
 */
#include "json/json.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "reader/report/report.h"
#include "words/clean.h"
#include "words/verdict.h"
#include "words/words.h"

/*
 * Values.
 */

json_t *seep_json_value(json_t *value)
{
    return value == NULL ? json_null() : value;
}

json_t *seep_json_text(const char *text)
{
    json_t *value = text == NULL ? NULL : json_string(text);

    if (value == NULL && text != NULL) { /* no UTF-8 */
        char *clean = seep_clean_for_json(text);

        value = clean == NULL ? NULL : json_string(clean);
        free(clean);
    }
    return seep_json_value(value);
}

json_t *seep_json_texts(char *const *texts, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, seep_json_text(texts[i]));
    }
    return array;
}

json_t *seep_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *seep_json_flag(bool value)
{
    return json_boolean(value);
}

json_t *seep_json_count(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *seep_json_address(uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
    return json_string(text);
}

json_t *seep_json_interval(const struct seep_interval *interval)
{
    return interval == NULL ? json_null()
                            : json_pack("{s:o,s:o,s:o}", "estimate",
                                        seep_json_real(interval->estimate),
                                        "low", seep_json_real(interval->low),
                                        "high", seep_json_real(interval->high));
}

void seep_json_put_text_or_null(json_t *object, const char *key,
                                const char *text)
{
    bool is_empty = text == NULL || *text == '\0';

    seep_json_put(object, key, is_empty ? NULL : seep_json_text(text));
}

void seep_json_put_known(json_t *object, const char *key, uint64_t value)
{
    seep_json_put(object, key, value == 0 ? NULL : seep_json_count(value));
}

void seep_json_put_device(json_t *object, const char *key, int device)
{
    seep_json_put(object, key, device < 0 ? NULL : json_integer(device));
}

json_t *seep_json_extent(const struct seep_report_extent *extent)
{
    json_t *object = extent->valid ? json_object() : NULL;

    SEEP_JSON_COPY(object, extent, first_bytes, last_bytes, slope_bytes_per_s);
    seep_json_put(object, "slope_error_bytes_per_s", extent->slope_error);
    return object;
}

json_t *seep_json_forecast(const struct seep_report_forecast *forecast)
{
    static const char *const answers[] = {
        [SEEP_FORECAST_UNKNOWN] = "unknown",
        [SEEP_FORECAST_NEVER] = "never",
        [SEEP_FORECAST_TIME] = "time",
    };
    bool is_known =
        forecast->answer != SEEP_FORECAST_UNKNOWN || forecast->limit_bytes > 0;
    json_t *object = is_known ? json_object() : NULL;

    seep_json_put(object, "answer", answers[forecast->answer % 3]);
    seep_json_put_text_or_null(object, "what", forecast->what);
    seep_json_put_device(object, "device", forecast->device);
    SEEP_JSON_COPY(object, forecast, limit_bytes, used_bytes, if_suspect);
    SEEP_JSON_COPY(object, forecast, by_private, by_others);
    seep_json_put(object, "used_by_all", forecast->of_all);
    seep_json_put(object, "bytes_per_s",
                  forecast->answer == SEEP_FORECAST_TIME ? forecast->bytes_per_s
                                                         : NAN);
    seep_json_put(object, "seconds",
                  forecast->answer == SEEP_FORECAST_TIME ? &forecast->seconds
                                                         : NULL);
    return object;
}

/*
 * Which process it was.
 */

#define NS_PER_S UINT64_C(1000000000)

json_t *seep_json_started(const struct seep_report *report)
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
            seep_json_put(object, label, value == NULL ? "" : value);
        }
    }
    free(copy);
    return object;
}

static json_t *status_of(const struct seep_report *report)
{
    json_t *object = report->has_status ? json_object() : NULL;

    seep_json_put(object, "exit",
                  WIFEXITED(report->status)
                      ? json_integer(WEXITSTATUS(report->status))
                      : NULL);
    seep_json_put(object, "signal",
                  WIFSIGNALED(report->status)
                      ? json_integer(WTERMSIG(report->status))
                      : NULL);
    return object;
}

static json_t *python_of(const struct seep_report *report)
{
    json_t *object = seep_words_has_python(report) ? json_object() : NULL;
    char version[32];

    seep_words_python_version(report->python_version, version, sizeof(version));
    seep_json_put(object, "version",
                  report->python_version == 0 ? NULL : version);
    seep_json_put(object, "state",
                  seep_python_state_words(report->python_state));
    seep_json_put(object, "objects",
                  seep_python_objects_words(report->python_objects));
    return object;
}

/* null: nothing to tell, it is judged to its end. */
static json_t *end_of(const struct seep_report *report)
{
    const struct seep_report_end *end = &report->end;
    bool is_known = end->judged_before || end->unreachable;
    json_t *object = is_known ? json_object() : NULL;

    SEEP_JSON_COPY(object, end, judged_before);
    seep_json_put(object, "judged_to_s",
                  end->judged_before ? end->judged_to_s : report->duration_s);
    SEEP_JSON_COPY(object, end, freed_bytes, took_s, by_exit);
    SEEP_JSON_COPY(object, end, unreachable);
    return object;
}

static json_t *began_of(const struct seep_report *report)
{
    const struct seep_report_begin *begin = &report->begin;
    json_t *object = json_object();

    seep_json_put(object, "by", seep_beginning_name(begin->source));
    SEEP_JSON_COPY(object, begin, at_s, from_s);
    return object;
}

static json_t *failed_of(const struct seep_report *report)
{
    const struct seep_report_failed *failed = &report->failed;
    json_t *object = failed->count > 0 ? json_object() : NULL;

    SEEP_JSON_COPY(object, failed, count, last_bytes, last_s);
    seep_json_put_text_or_null(object, "where", failed->where);
    return object;
}

static json_t *last_of(const struct seep_report *report)
{
    const struct seep_report_last *last = &report->last;
    json_t *object = last->span_s > 0 ? json_object() : NULL;

    SEEP_JSON_COPY(object, last, span_s, allocated_bytes, freed_bytes);
    SEEP_JSON_COPY(object, last, stayed_bytes);
    seep_json_put_text_or_null(object, "where", last->where);
    return object;
}

static json_t *rejected_of(const struct seep_report *report)
{
    json_t *array = json_array();
    const char *at = report->rejected;
    char entry[SEEP_WORDS_ENTRY_BYTES];

    for (int i = 0; i < SEEP_WORDS_ENTRIES_MOST &&
                    (at = seep_words_next_rejected(at, entry)) != NULL;
         i++) {
        json_array_append_new(array, seep_json_text(entry));
    }
    return array;
}

static void add_unread(json_t *array, const char *path, const char *suffix,
                       int error)
{
    if (error != 0) {
        json_t *object = json_object();
        char *text = NULL;

        if (asprintf(&text, "%s%s", path, suffix) > 0) {
            seep_json_put(object, "file", text);
            free(text);
        }
        seep_json_put(object, "reason", seep_words_beside(error));
        json_array_append_new(array, object);
    }
}

json_t *seep_json_unread(const struct seep_report *report)
{
    json_t *array = json_array();

    add_unread(array, report->path, ".looks", report->looks_error);
    add_unread(array, report->path, ".held", report->held_error);
    return array;
}

json_t *seep_json_process(const struct seep_report *report)
{
    json_t *object = json_object();
    json_t *argv = json_array();

    for (size_t i = 0; i < report->argument_count; i++) {
        json_array_append_new(argv, seep_json_text(report->arguments[i]));
    }
    SEEP_JSON_COPY(object, report, pid);
    seep_json_put(object, "exe", report->executable);
    seep_json_put(object, "argv", argv);
    seep_json_put(object, "title",
                  report->title == NULL || *report->title == '\0'
                      ? json_null()
                      : seep_json_text(report->title));
    SEEP_JSON_COPY(object, report, host);
    if (report->redacted) {
        seep_json_put(object, "redacted", json_true());
    }
    seep_json_put(object, "labels", labels_of(report->labels));
    seep_json_put(object, "state", seep_words_state_name(report->state));
    seep_json_put(object, "status", status_of(report));
    seep_json_put(object, "started", seep_json_started(report));
    seep_json_put(object, "duration_s", seep_words_life_s(report));
    seep_json_put(object, "end", end_of(report));
    seep_json_put(object, "work_began", began_of(report));
    seep_json_put(object, "failed_allocations", failed_of(report));
    seep_json_put(object, "before_end", last_of(report));
    seep_json_put_known(object, "units", report->units);
    seep_json_put(object, "mode", seep_words_mode_name(report));
    SEEP_JSON_COPY(object, report, exact, sample_bytes, first_sample_bytes);
    SEEP_JSON_COPY(object, report, tensor_sample_bytes);
    SEEP_JSON_COPY(object, report, sample_rose_s);
    seep_json_put(object, "fork", report->is_fork);
    seep_json_put(object, "inert",
                  report->inert == SEEP_INERT_NONE
                      ? NULL
                      : seep_words_inert(report->inert));
    seep_json_put_text_or_null(object, "allocator", report->allocator);
    seep_json_put(object, "unwinder", seep_words_unwinder(report->unwinder));
    seep_json_put(object, "python", python_of(report));
    seep_json_put(object, "seep_version", report->version);
    seep_json_put(object, "ignored", rejected_of(report));
    seep_json_put(object, "removed",
                  json_pack("{s:o,s:o}", "recordings",
                            seep_json_count(report->removed_count), "bytes",
                            seep_json_count(report->removed_bytes)));
    seep_json_put(object, "unread", seep_json_unread(report));
    seep_json_put(object, "recording", report->path);
    return object;
}

json_t *seep_json_marks(const struct seep_report *report)
{
    json_t *array = json_array();

    for (size_t i = 0; i < report->mark_count; i++) {
        const struct seep_report_mark *mark = &report->marks[i];
        json_t *object = json_object();

        seep_json_put(object, "t_s", mark->at_s);
        SEEP_JSON_COPY(object, mark, name, units);
        json_array_append_new(array, object);
    }
    return array;
}

/*
 * GPUs.
 */

static json_t *extent_of(const struct seep_report_device *device,
                         const struct seep_report_extent *extent)
{
    json_t *object = seep_json_extent(extent);

    if (!seep_words_is_followed(device)) {
        seep_json_put(object, "slope_bytes_per_s", json_null());
        seep_json_put(object, "slope_error_bytes_per_s", json_null());
    }
    return object;
}

static json_t *cache_of(const struct seep_report_device *device,
                        const struct seep_report_extent *reserved,
                        const char *used_name,
                        const struct seep_report_extent *used)
{
    return json_pack("{s:o?,s:o?}", "reserved", extent_of(device, reserved),
                     used_name, extent_of(device, used));
}

static json_t *device_of(const struct seep_report_device *device)
{
    json_t *object = json_object();
    json_t *tensor = cache_of(device, &device->tensor_reserved, "allocated",
                              &device->tensor_allocated);

    seep_json_put(tensor, "fragments", device->cache_fragments);
    SEEP_JSON_COPY(object, device, ordinal, total_bytes, free_bytes);
    SEEP_JSON_COPY(object, device, low_free_bytes, peak_bytes, peak_s);
    seep_json_put(object, "used", extent_of(device, &device->used));
    seep_json_put(object, "tracked", extent_of(device, &device->tracked));
    seep_json_put(object, "unexplained",
                  extent_of(device, &device->unexplained));
    seep_json_put(
        object, "pool",
        cache_of(device, &device->pool_reserved, "used", &device->pool_used));
    seep_json_put(
        object, "graph",
        cache_of(device, &device->graph_reserved, "used", &device->graph_used));
    seep_json_put(object, "tensor", tensor);
    seep_json_put(object, "forecast", seep_json_forecast(&device->forecast));
    return object;
}

json_t *seep_json_devices(const struct seep_report *report)
{
    json_t *array = json_array();

    for (size_t i = 0; i < report->device_count; i++) {
        json_array_append_new(array, device_of(&report->devices[i]));
    }
    return array;
}

/*
 * Processes by their labels: one without is in a row whose label is null.
 */

static json_t *text_of(const char *text, size_t length)
{
    char *copy = strndup(text, length);
    json_t *value = copy == NULL ? NULL : seep_json_text(copy);

    free(copy);
    return value;
}

static json_t *row_of(const struct seep_label_row *row)
{
    json_t *object = json_object();

    seep_json_put(object, "label",
                  row->key_length == 0 ? NULL
                                       : text_of(row->key, row->key_length));
    seep_json_put(object, "value", text_of(row->value, row->value_length));
    seep_json_put(object, "class", seep_verdict_name(row->class));
    seep_json_put(object, "processes", row->process_count);
    seep_json_put(object, "leaks", row->leak_count);
    SEEP_JSON_COPY(object, row, live_bytes);
    seep_json_put(object, "growth_bytes_per_s",
                  row->has_growth ? &row->growth_bytes_per_s : NULL);
    seep_json_put(object, "first_pid", row->first->pid);
    return object;
}

json_t *seep_json_labels(const struct seep_report *const *reports, size_t count)
{
    struct seep_label_row *rows;
    size_t row_count;
    json_t *array;

    if (count == 0 || reports[0]->by != SEEP_BY_LABEL ||
        seep_labels_group(reports, count, &rows, &row_count) < 0) {
        return json_null();
    }
    array = json_array();
    for (size_t i = 0; i < row_count; i++) {
        json_array_append_new(array, row_of(&rows[i]));
    }
    free(rows);
    return array;
}

/*
 * Families. Every process is a member of one, also where it is the only one.
 */

#define SITES_MOST 20 /* of a family: all of each process stand below */

struct place {
    const struct seep_report *report;
    size_t index;
};

static int compare_places(const void *a, const void *b)
{
    uintptr_t left = (uintptr_t)((const struct place *)a)->report;
    uintptr_t right = (uintptr_t)((const struct place *)b)->report;

    return (left > right) - (left < right);
}

static json_t *members_of(const struct seep_family *family,
                          const struct place *places, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < family->count; i++) {
        struct place wanted = {.report = family->members[i]};
        const struct place *found =
            bsearch(&wanted, places, count, sizeof(*places), compare_places);

        json_array_append_new(array, json_integer((json_int_t)found->index));
    }
    return array;
}

static json_t *age_of(const struct seep_family_age *age)
{
    json_t *object = age->count > 0 ? json_object() : NULL;

    seep_json_put(object, "children", age->count);
    SEEP_JSON_COPY(object, age, rising, flattens);
    seep_json_put(object, "trend", seep_family_trend_name(age->trend));
    seep_json_put(object, "bytes_per_s", &age->rate);
    return object;
}

static json_t *kept_of(const struct seep_family_kept *kept)
{
    json_t *object = kept->count > 0 ? json_object() : NULL;

    seep_json_put(object, "children", kept->count);
    SEEP_JSON_COPY(object, kept, bytes);
    seep_json_put(object, "trend", seep_family_trend_name(kept->trend));
    seep_json_put(object, "slope", kept->has_slope ? &kept->slope : NULL);
    seep_json_put(object, "age", age_of(&kept->age));
    return object;
}

static json_t *children_of(const struct seep_family_children *children)
{
    json_t *object = children->count > 0 ? json_object() : NULL;

    SEEP_JSON_COPY(object, children, count);
    seep_json_put(object, "trend", seep_family_trend_name(children->trend));
    seep_json_put(object, "slope_unit",
                  children->by_units ? "bytes_per_unit" : "bytes_per_s");
    SEEP_JSON_COPY(object, children, least_s, most_s, mean_s);
    seep_json_put(object, "kept", kept_of(&children->held));
    return object;
}

static json_t *site_of(const struct seep_family_site *site)
{
    json_t *object = json_object();

    SEEP_JSON_COPY(object, site, id);
    seep_json_put(object, "space", seep_words_space(site->site->space));
    seep_json_put_device(object, "device", site->site->device);
    seep_json_put(object, "where", site->site->where);
    seep_json_put(object, "class", seep_class_name(site->site->class));
    seep_json_put(object, "processes", site->process_count);
    seep_json_put(object, "leaks", site->leak_count);
    SEEP_JSON_COPY(object, site, live_bytes);
    seep_json_put(object, "growth_bytes_per_s",
                  site->has_growth ? &site->growth_bytes_per_s : NULL);
    seep_json_put(object, "kept", kept_of(&site->kept));
    return object;
}

static void put_words(json_t *object, const struct seep_family *family)
{
    struct seep_words_verdict words;
    char *name = seep_words_family_name(family);

    seep_words_family(family, &words);
    seep_json_put(object, "name", name == NULL ? "" : name);
    seep_json_put_text_or_null(object, "sentence", words.sentence);
    seep_json_put(object, "reasons",
                  seep_json_texts(words.reasons, words.reason_count));
    seep_words_verdict_fini(&words);
    free(name);
}

static json_t *family_of(const struct seep_family *family,
                         const struct place *places, size_t count)
{
    json_t *object = json_object();
    json_t *sites = json_array();

    SEEP_JSON_COPY(object, family, id);
    put_words(object, family);
    seep_json_put(object, "class", seep_verdict_name(family->class));
    seep_json_put(object, "processes", family->count);
    seep_json_put(object, "running", family->running_count);
    seep_json_put(object, "together", family->together_count);
    seep_json_put(object, "growing", family->growing_count);
    seep_json_put(object, "members", members_of(family, places, count));
    seep_json_put(object, "of_devices", family->on_devices);
    seep_json_put(object, "growth_bytes_per_s",
                  family->has_growth ? &family->growth_bytes_per_s : NULL);
    SEEP_JSON_COPY(object, family, shares_cgroup);
    seep_json_put(object, "forecast", seep_json_forecast(&family->forecast));
    seep_json_put(object, "children", children_of(&family->children));
    for (size_t i = 0; i < family->site_count && i < SITES_MOST; i++) {
        json_array_append_new(sites, site_of(&family->sites[i]));
    }
    seep_json_put(object, "sites", sites);
    seep_json_put(object, "site_total", family->site_count);
    return object;
}

json_t *seep_json_families(const struct seep_families *families,
                           const struct seep_report *const *reports,
                           size_t count)
{
    struct place *places = calloc(count + 1, sizeof(*places));
    json_t *array = json_array();

    if (places == NULL) {
        return array;
    }
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct place){reports[i], i};
    }
    qsort(places, count, sizeof(*places), compare_places);
    for (size_t i = 0; i < families->count; i++) {
        json_array_append_new(array,
                              family_of(&families->list[i], places, count));
    }
    free(places);
    return array;
}

/*
 * A part of a run as JSON. Invariant: what is not known is null, and never 0.
 */

static json_t *span_sum_of(const struct seep_span_sum *sum)
{
    json_t *object = json_object();

    SEEP_JSON_COPY(object, sum, live_bytes, before_bytes, growth_bytes);
    SEEP_JSON_COPY(object, sum, allocated_bytes, freed_bytes);
    SEEP_JSON_COPY(object, sum, unknown_count, unknown_bytes);
    SEEP_JSON_COPY(object, sum, untold_count, untold_bytes);
    return object;
}

static json_t *span_spaces_of(const struct seep_span *span)
{
    json_t *spaces = json_object();

    for (size_t i = 0; i < span->report->space_count; i++) {
        enum seep_space space = span->report->spaces[i].space;

        seep_json_put(spaces, seep_words_space(space),
                      span_sum_of(&span->spaces[space]));
    }
    return spaces;
}

static json_t *span_peak_of(const struct seep_span_peak *peak)
{
    json_t *object = json_object();

    SEEP_JSON_COPY(object, peak, at_s, bytes, most_bytes);
    return object;
}

json_t *seep_json_span(const struct seep_span *span)
{
    json_t *object = span == NULL ? NULL : json_object();

    if (object == NULL) {
        return json_null();
    }
    seep_json_put(object, "moment", span->is_moment);
    SEEP_JSON_COPY(object, span, from_s, to_s);
    SEEP_JSON_COPY(object, span, asked_from_s, asked_to_s);
    seep_json_put(object, "bucket_s", span->report->bucket_s);
    seep_json_put(object, "peak", span_peak_of(&span->peak));
    seep_json_put(object, "total", span_sum_of(&span->total));
    seep_json_put(object, "spaces", span_spaces_of(span));
    return object;
}

static double if_known(bool is_known, double value)
{
    return is_known ? value : NAN;
}

json_t *seep_json_span_row(const struct seep_span *span, size_t i)
{
    const struct seep_span_row *row = span == NULL ? NULL : &span->rows[i];
    json_t *object = row == NULL ? NULL : json_object();
    bool knows;

    if (object == NULL) {
        return json_null();
    }
    knows = row->knows_live && row->knows_before;
    seep_json_put(object, "live_bytes",
                  if_known(row->knows_live, row->live_bytes));
    SEEP_JSON_COPY(object, row, live_bytes_error);
    seep_json_put(object, "live_count",
                  if_known(row->knows_live, row->live_count));
    SEEP_JSON_COPY(object, row, live_count_is_estimate);
    seep_json_put(object, "before_bytes",
                  if_known(row->knows_before, row->before_bytes));
    seep_json_put(object, "growth_bytes", if_known(knows, row->growth_bytes));
    seep_json_put(object, "growth_bytes_per_s",
                  if_known(knows, seep_span_rate(span, row)));
    SEEP_JSON_COPY(object, row, allocated_bytes, allocated_count, freed_bytes);
    SEEP_JSON_COPY(object, row, freed_count, freed_count_is_estimate,
                   untold_bytes);
    seep_json_put(object, "temporary_bytes",
                  if_known(row->temporary_bytes >= 0, row->temporary_bytes));
    return object;
}
