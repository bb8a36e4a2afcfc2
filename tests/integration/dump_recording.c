/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Everything the reader library says of a recording, as JSON: what the tests
 * need beyond `seep report --json`.
 *
 *     dump_recording [--no-symbols | --totals] RECORDING
 *
 * With --totals of each site its totals and its innermost Python function are
 * all there is: a hundredth of a document with every frame of 10,000 stacks.
 *
 * Invariant: figures pass through unchanged; exit 1 with the refusal on
 * stderr if the recording is not readable.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "reader/report/report.h"

static const char *const space_names[] = {
#define SPACE_NAME(symbol, value, name) [value] = (name),
    SEEP_SPACES(SPACE_NAME)
#undef SPACE_NAME
};

static const char *const state_names[] = {"running", "exited", "killed", "gone",
                                          "unknown"};

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *text(const char *string)
{
    json_t *value = json_string(string);

    return value != NULL ? value : json_string("?");
}

static json_t *dump_series(const struct seep_report_site *site)
{
    json_t *series = json_array();

    for (size_t i = 0; i < site->point_count; i++) {
        const struct seep_report_point *point = &site->series[i];

        json_array_append_new(
            series,
            json_pack("{s:f,s:f,s:o,s:o,s:o,s:o,s:o,s:f,s:f}", "t_s",
                      point->start_s, "width_s", point->width_s, "live_bytes",
                      integer(point->live_bytes), "low_bytes",
                      integer(point->low_bytes), "allocated_bytes",
                      integer(point->allocated_bytes), "freed_bytes",
                      integer(point->freed_bytes), "born_freed_bytes",
                      integer(point->born_freed_bytes), "born_count",
                      point->born_count, "born_freed_count",
                      point->born_freed_count));
    }
    return series;
}

/* "" if it has none. */
static json_t *python_function(const struct seep_report_site *site)
{
    for (size_t i = 0; i < site->frame_count; i++) {
        if (site->frames[i]->python) {
            return text(site->frames[i]->function);
        }
    }
    return text("");
}

static json_t *dump_totals(const struct seep_report_site *site)
{
    return json_pack(
        "{s:o,s:s,s:i,s:b,s:i,s:o,s:f,s:f,s:o,s:f,s:o,s:f,s:o,s:o}", "id",
        text(site->id), "space", space_names[site->space], "device",
        site->device, "torn", (int)site->torn, "cut", (int)site->cut,
        "live_bytes", integer(site->live_bytes), "live_bytes_error",
        site->live_bytes_error, "live_count", site->live_count,
        "allocated_bytes", integer(site->allocated_bytes), "allocated_count",
        site->allocated_count, "freed_bytes", integer(site->freed_bytes),
        "freed_count", site->freed_count, "largest_bytes",
        integer(site->largest_bytes), "python", python_function(site));
}

static json_t *dump_site(const struct seep_report_site *site)
{
    json_t *object = dump_totals(site);
    json_t *frames = json_array();
    json_t *modules = json_array();

    for (size_t i = 0; i < site->frame_count; i++) {
        json_array_append_new(frames, text(site->frames[i]->function));
        json_array_append_new(modules, text(site->frames[i]->module));
    }
    json_object_set_new(object, "where", text(site->where));
    json_object_set_new(object, "frames", frames);
    json_object_set_new(object, "modules", modules);
    json_object_set_new(object, "series", dump_series(site));
    return object;
}

static json_t *dump_extent(const struct seep_report_extent *extent)
{
    return extent->valid
               ? json_pack("{s:f,s:f,s:f}", "first_bytes", extent->first_bytes,
                           "last_bytes", extent->last_bytes,
                           "slope_bytes_per_s", extent->slope_bytes_per_s)
               : json_null();
}

static json_t *dump_device(const struct seep_report_device *device)
{
    return json_pack(
        "{s:i,s:o,s:o,s:o,s:b,s:o,s:o,s:o,s:o,s:o}", "ordinal",
        (int)device->ordinal, "total_bytes", integer(device->total_bytes),
        "free_bytes", integer(device->free_bytes), "low_free_bytes",
        integer(device->low_free_bytes), "cache_fragments",
        (int)device->cache_fragments, "used", dump_extent(&device->used),
        "tracked", dump_extent(&device->tracked), "unexplained",
        dump_extent(&device->unexplained), "tensor_reserved",
        dump_extent(&device->tensor_reserved), "tensor_allocated",
        dump_extent(&device->tensor_allocated));
}

static json_t *dump(const struct seep_report *report, bool totals)
{
    json_t *sites = json_array();
    json_t *counters = json_object();
    json_t *losses = json_object();
    json_t *devices = json_array();

    for (size_t i = 0; i < report->site_count; i++) {
        json_array_append_new(sites, totals ? dump_totals(&report->sites[i])
                                            : dump_site(&report->sites[i]));
    }
    for (size_t i = 0; i < report->device_count; i++) {
        json_array_append_new(devices, dump_device(&report->devices[i]));
    }
    for (size_t i = 0; i < report->counter_count; i++) {
        const struct seep_report_counter *counter = &report->counters[i];

        json_object_set_new(counters, counter->name, integer(counter->value));
        if (counter->kind == SEEP_KIND_LOSS && counter->value != 0) {
            json_object_set_new(losses, counter->name, integer(counter->value));
        }
    }
    return json_pack(
        "{s:s,s:i,s:o,s:b,s:b,s:b,s:i,s:i,s:o,s:f,s:o,s:o,s:o,s:o,s:o,s:o,"
        "s:o,s:s}",
        "state", state_names[report->state], "pid", (int)report->pid,
        "executable", text(report->executable), "exact", (int)report->exact,
        "began_exact", (int)report->began_exact, "is_fork",
        (int)report->is_fork, "inert", (int)report->inert, "status",
        report->has_status ? report->status : -1, "sample_bytes",
        integer(report->sample_bytes), "duration_s", report->duration_s,
        "file_bytes", integer(report->file_bytes), "pending_events",
        integer(report->pending_events), "torn_sites",
        integer(report->torn_sites), "counters", counters, "losses", losses,
        "sites", sites, "devices", devices, "python_objects",
        seep_python_objects_words(report->python_objects));
}

int main(int argument_count, char **arguments)
{
    bool bare = argument_count == 3 && !strcmp(arguments[1], "--no-symbols");
    bool totals = argument_count == 3 && !strcmp(arguments[1], "--totals");
    struct seep_report_options options = {.symbols = !bare && !totals,
                                          .as_requested = true};
    struct seep_refusal refusal = {0};
    struct seep_report *report = NULL;
    json_t *document;

    if (argument_count != 2 && !bare && !totals) {
        return 2;
    }
    if (seep_report_open(arguments[argument_count - 1], &options, &refusal,
                         &report) < 0) {
        fprintf(stderr, "%s: %s\n", arguments[argument_count - 1],
                refusal.reason);
        return 1;
    }
    document = dump(report, totals);
    json_dumpf(document, stdout, totals ? JSON_COMPACT : JSON_INDENT(1));
    json_decref(document);
    seep_report_close(report);
    return 0;
}
