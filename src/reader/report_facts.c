/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the header and the counters of a recording say. */
#include <errno.h>
#include <string.h>

#include "reader/process.h"
#include "reader/report_build.h"

#define ARGUMENTS_MAX 4096U

static const struct {
    const char *name;
    enum seep_counter_kind kind;
    const char *words;
} counter_table[] = {
#define COUNTER(symbol, name, kind, words) {name, SEEP_KIND_##kind, words},
    SEEP_COUNTERS(COUNTER)
#undef COUNTER
};

static const struct {
    const char *name;
    const char *words;
} cut_table[] = {
#define CUT(symbol, value, words) \
    [value] = {"cut_" #symbol, "native stacks: " words},
    SEEP_CUTS(CUT)
#undef CUT
};

static const char *copy_string(struct seep_report_build *build,
                               seep_string string)
{
    return seep_store_text(&build->store,
                           seep_view_string(&build->snapshot.view, string));
}

static const char *copy_array(struct seep_report_build *build,
                              const char *array, size_t capacity)
{
    size_t length = strnlen(array, capacity);
    char *copy = seep_store_take(&build->store, length + 1, 1);

    return copy != NULL ? memcpy(copy, array, length) : NULL;
}

/* One string after the other; a damaged count ends with the section. */
static int add_arguments(struct seep_report_build *build)
{
    const struct seep_view *view = &build->snapshot.view;
    uint64_t at = view->header->arguments;
    uint32_t count = view->header->argument_count;
    const char **arguments;
    size_t added = 0;

    count = count < ARGUMENTS_MAX ? count : ARGUMENTS_MAX;
    arguments = seep_store_take(&build->store, count + 1, sizeof(*arguments));
    if (arguments == NULL) {
        return -ENOMEM;
    }
    while (added < count && at > 0 && at < view->string_bytes) {
        arguments[added] = copy_string(build, (seep_string)at);
        if (arguments[added] == NULL) {
            return -ENOMEM;
        }
        at += strlen(arguments[added]) + 1;
        added++;
    }
    build->report.arguments = arguments;
    build->report.argument_count = added;
    return 0;
}

static int add_names(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    const struct seep_rec_header *header = build->snapshot.view.header;

    report->executable = copy_string(build, header->executable);
    report->labels = seep_report_labels(
        build, seep_view_string(&build->snapshot.view, header->labels));
    report->version = copy_string(build, header->seep_version);
    report->allocator = copy_string(build, header->allocator);
    report->host = copy_array(build, header->host, sizeof(header->host));
    if (report->executable == NULL || report->labels == NULL ||
        report->version == NULL || report->allocator == NULL ||
        report->host == NULL) {
        return -ENOMEM;
    }
    return add_arguments(build);
}

/* Losses that make a total differ from the truth; names and series do not. */
static bool lost_events(const struct seep_snapshot *snapshot)
{
    static const enum seep_counter counters[] = {
        SEEP_COUNT_DROPPED_ALLOCS, SEEP_COUNT_DROPPED_FREES,
        SEEP_COUNT_NESTED,         SEEP_COUNT_TORN,
        SEEP_COUNT_LIVE_FULL,      SEEP_COUNT_LOST_FREES_CLOSED,
        SEEP_COUNT_SITES_FULL,     SEEP_COUNT_RESTORE_LOST,
        SEEP_COUNT_START_MISSED,   SEEP_COUNT_THINNED_BLOCKS,
    };

    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        if (seep_snapshot_load(snapshot->view.counters[counters[i]]) != 0) {
            return true;
        }
    }
    return snapshot->torn_slots != 0 || snapshot->torn_sites != 0 ||
           snapshot->restless_shards != 0;
}

/* Cycles of the measured events, spread over all events, as seconds. */
static double cost_of(const struct seep_view *view)
{
    struct seep_rec_header *header = view->header;
    double timed =
        (double)seep_snapshot_load(view->counters[SEEP_COUNT_TIMED_EVENTS]);
    double cycles =
        (double)seep_snapshot_load(view->counters[SEEP_COUNT_TIMED_CYCLES]);
    double events =
        (double)seep_snapshot_load(view->counters[SEEP_COUNT_EVENTS]);
    double clock_cycles = (double)seep_snapshot_load(header->last_cycles) -
                          (double)header->start_cycles;
    double clock_ns = (double)seep_snapshot_load(header->last_ns) -
                      (double)header->start_monotonic_ns;

    if (timed <= 0 || clock_cycles <= 0 || clock_ns <= 0) {
        return 0;
    }
    return cycles / timed * events * (clock_ns / clock_cycles) / 1e9;
}

static void add_usage(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    const struct seep_view *view = &build->snapshot.view;
    struct seep_rec_header *header = view->header;
    uint64_t live = 0;

    for (uint32_t i = 0; i < view->shard_count; i++) {
        live += seep_snapshot_load(view->shards[i].live_count);
    }
    report->usage_sites.used = seep_snapshot_load(header->site_count);
    report->usage_sites.capacity = view->site_capacity;
    report->usage_stacks.used = seep_snapshot_load(header->stack_count);
    report->usage_stacks.capacity = view->stack_capacity;
    report->usage_series.used = seep_snapshot_load(header->series_count);
    report->usage_series.capacity = view->series_capacity;
    report->usage_modules.used = seep_snapshot_load(header->module_count);
    report->usage_modules.capacity = view->module_capacity;
    report->usage_codes.used = seep_snapshot_load(header->code_count);
    report->usage_codes.capacity = view->code_capacity;
    report->usage_live.used = live < UINT32_MAX ? (uint32_t)live : UINT32_MAX;
    report->usage_live.capacity = view->live_capacity;
}

int seep_report_add_process(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    const struct seep_snapshot *snapshot = &build->snapshot;
    struct seep_rec_header *header = snapshot->view.header;
    uint32_t sample_log2 = seep_snapshot_load(header->sample_log2) & 63;
    int error;

    report->state =
        seep_process_state_of(header, seep_process_presence_of(header));
    report->has_status = seep_snapshot_load(header->has_status) != 0;
    report->status = (int)seep_snapshot_load(header->status);
    report->pid = header->pid;
    report->is_fork = header->is_fork != 0;
    report->inert = header->inert < SEEP_INERT_COUNT
                        ? (enum seep_inert_reason)header->inert
                        : SEEP_INERT_NONE;
    report->start_realtime_ns = header->start_realtime_ns;
    report->began_exact = header->exact != 0;
    report->exact =
        report->began_exact && sample_log2 == 0 && !lost_events(snapshot);
    report->sample_bytes = UINT64_C(1) << sample_log2;
    report->unwinder = header->unwinder == SEEP_UNWINDER_LIBUNWIND
                           ? SEEP_UNWINDER_LIBUNWIND
                           : SEEP_UNWINDER_EH_FRAME;
    report->by = build->options != NULL ? build->options->by : SEEP_BY_STACK;
    report->python_state =
        (enum seep_python_state)seep_snapshot_load(header->python_state);
    report->python_version = seep_snapshot_load(header->python_version);
    report->python_objects =
        (enum seep_python_objects)seep_snapshot_load(header->python_objects);
    report->file_bytes = snapshot->file_bytes;
    report->units = seep_snapshot_load(header->progress_units);
    report->pending_events = snapshot->pending_events;
    report->torn_sites = snapshot->torn_sites;
    report->cost_s = cost_of(&snapshot->view);
    add_usage(build);
    error = add_names(build);
    return error != 0 ? error : seep_report_add_marks(build);
}

/* "cut_NO_RULE" -> "cut_no_rule" */
static const char *lower_case(struct seep_report_build *build, const char *name)
{
    size_t bytes = strlen(name) + 1;
    char *copy = seep_store_take(&build->store, bytes, 1);

    for (size_t i = 0; copy != NULL && i < bytes; i++) {
        copy[i] =
            (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
    }
    return copy;
}

int seep_report_add_counters(struct seep_report_build *build)
{
    const struct seep_snapshot *snapshot = &build->snapshot;
    struct seep_report_counter *counters =
        seep_store_take(&build->store, SEEP_COUNTER_COUNT, sizeof(*counters));

    if (counters == NULL) {
        return -ENOMEM;
    }
    for (unsigned i = 0; i < SEEP_COUNT_CUT_FIRST; i++) {
        counters[i].name = counter_table[i].name;
        counters[i].words = counter_table[i].words;
        counters[i].kind = counter_table[i].kind;
    }
    for (unsigned i = 0; i < SEEP_CUT_COUNT; i++) {
        struct seep_report_counter *counter =
            &counters[SEEP_COUNT_CUT_FIRST + i];

        counter->name = lower_case(build, cut_table[i].name);
        counter->words = cut_table[i].words;
        counter->kind = SEEP_KIND_FACT;
        if (counter->name == NULL) {
            return -ENOMEM;
        }
    }
    for (unsigned i = 0; i < SEEP_COUNTER_COUNT; i++) {
        counters[i].value = seep_snapshot_load(snapshot->view.counters[i]);
    }
    counters[SEEP_COUNT_TORN].value += snapshot->torn_slots;
    build->report.counters = counters;
    build->report.counter_count = SEEP_COUNTER_COUNT;
    return 0;
}
