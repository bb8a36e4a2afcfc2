/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a path to a report: open, snapshot, judge, symbolise.
 *
 * Invariant: a report is given out whole or not at all.
 */
#include "reader/report/report.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader/judge/family.h"
#include "reader/process/cgroup.h"
#include "reader/recording/footprint.h"
#include "reader/recording/open.h"
#include "reader/recording/rewind.h"
#include "reader/report/build.h"
#include "reader/symbols/symbolise.h"

/*
 * The names of what a report holds. Invariant: any value has one, also that of
 * a damaged recording.
 */

#define WORDS_AT(symbol, value, words) [value] = (words),

static const char *const grouping_names[] = {SEEP_GROUPINGS(SEEP_NAME_ALONE)};
static const char *const state_words[] = {SEEP_PYTHON_STATES(WORDS_AT)};
static const char *const objects_words[] = {SEEP_PYTHON_OBJECTS(WORDS_AT)};

const char *seep_grouping_name(enum seep_grouping by)
{
    return grouping_names[(unsigned)by < SEEP_GROUPING_COUNT ? by
                                                             : SEEP_BY_STACK];
}

int seep_grouping_parse(const char *name, enum seep_grouping *ret_by)
{
    for (unsigned i = 0; i < SEEP_GROUPING_COUNT; i++) {
        if (strcmp(grouping_names[i], name) == 0) {
            *ret_by = (enum seep_grouping)i;
            return 0;
        }
    }
    return -EINVAL;
}

const char *seep_python_state_words(enum seep_python_state state)
{
    return (unsigned)state < SEEP_PYTHON_STATE_COUNT ? state_words[state]
                                                     : "unknown";
}

const char *seep_python_objects_words(enum seep_python_objects objects)
{
    return (unsigned)objects < SEEP_PYTHON_OBJECTS_COUNT
               ? objects_words[objects]
               : "unknown";
}

/* What the header and the counters of a recording say. */

#define ARGUMENTS_MAX 4096U

static const struct {
    const char *name;
    enum seep_counter_kind kind;
    const char *words;
} counter_table[SEEP_COUNTER_COUNT] = {
#define COUNTER(symbol, name, kind, words) {name, SEEP_KIND_##kind, words},
    SEEP_COUNTERS(COUNTER)
#undef COUNTER
#define CUT(symbol, value, words)                                       \
    [SEEP_COUNT_CUT_FIRST + (value)] = {"cut_" #symbol, SEEP_KIND_FACT, \
                                        "native stacks: " words},
        SEEP_CUTS(CUT)
#undef CUT
};

static const char *copy_string(struct seep_report_build *build,
                               seep_string string)
{
    return seep_store_text(&build->store,
                           seep_view_string(&build->snapshot.view, string));
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
    report->title = copy_string(build, seep_word_load(&header->title));
    report->version = copy_string(build, header->seep_version);
    report->allocator = copy_string(build, header->allocator);
    report->rejected = copy_string(build, header->rejected_options);
    report->host =
        seep_store_text_most(&build->store, header->host, sizeof(header->host));
    if (report->executable == NULL || report->labels == NULL ||
        report->title == NULL || report->version == NULL ||
        report->allocator == NULL || report->rejected == NULL ||
        report->host == NULL) {
        return -ENOMEM;
    }
    return add_arguments(build);
}

/* Who was away when the copy was begun is so for good. */
static enum seep_process_presence
presence_of(const struct seep_report_build *build)
{
    if (build->packed.pack != NULL) {
        return (enum seep_process_presence)build->packed.image.presence;
    }
    return build->snapshot.is_dead
               ? SEEP_PRESENCE_AWAY
               : seep_process_presence_of(build->snapshot.view.header, NULL);
}

static int add_process(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    const struct seep_snapshot *snapshot = &build->snapshot;
    struct seep_rec_header *header = snapshot->view.header;
    uint32_t sample_log2 = seep_word_load(&header->sample_log2) & 63;
    int error;

    report->state = seep_process_state_of(header, presence_of(build));
    report->redacted =
        build->packed.pack != NULL &&
        (build->packed.pack->header.flags & SEEP_PACK_IS_REDACTED) != 0;
    report->has_status = seep_word_load(&header->has_status) != 0;
    report->status = (int)seep_word_load(&header->status);
    report->pid = header->pid;
    report->is_fork = header->is_fork != 0;
    report->removed_count = seep_word_load(&header->removed_count);
    report->removed_bytes = seep_word_load(&header->removed_bytes);
    report->is_closed = seep_word_load(&header->closed_tick) != 0;
    report->inert = header->inert < SEEP_INERT_COUNT
                        ? (enum seep_inert_reason)header->inert
                        : SEEP_INERT_NONE;
    report->start_realtime_ns = header->start_realtime_ns;
    report->began_exact = header->exact != 0;
    report->exact = report->began_exact && sample_log2 == 0 &&
                    !seep_report_has_lost(snapshot);
    report->sample_bytes = UINT64_C(1) << sample_log2;
    report->tensor_sample_bytes =
        sample_log2 == 0
            ? 1
            : report->sample_bytes
                  << (seep_word_load(&header->tensor_doublings) & 15);
    report->first_sample_bytes = UINT64_C(1)
                                 << (header->first_sample_log2 & 63);
    report->sample_rose_s =
        seep_sites_seconds(seep_word_load(&header->rose_tick));
    report->budget = (double)header->budget / 100000;
    report->unwinder = header->unwinder == SEEP_UNWINDER_LIBUNWIND
                           ? SEEP_UNWINDER_LIBUNWIND
                           : SEEP_UNWINDER_EH_FRAME;
    report->by = build->options != NULL ? build->options->by : SEEP_BY_STACK;
    report->python_state =
        (enum seep_python_state)seep_word_load(&header->python_state);
    report->python_version = seep_word_load(&header->python_version);
    report->python_objects =
        (enum seep_python_objects)seep_word_load(&header->python_objects);
    report->file_bytes = snapshot->disk_bytes;
    report->most_bytes = snapshot->view.header->file_bytes;
    report->units = seep_word_load(&header->progress_units);
    report->pending_events = snapshot->pending_events;
    report->torn_sites = snapshot->torn_sites;
    seep_report_add_cost(build);
    error = add_names(build);
    return error != 0 ? error : seep_report_add_marks(build);
}

/* "cut_NO_RULE" -> "cut_no_rule" */
static const char *lower_case(struct seep_report_build *build, const char *name)
{
    size_t bytes = strlen(name) + 1;
    char *copy;

    if (strpbrk(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == NULL) {
        return name;
    }
    copy = seep_store_take(&build->store, bytes, 1);
    for (size_t i = 0; copy != NULL && i < bytes; i++) {
        copy[i] =
            (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
    }
    return copy;
}

static int add_counters(struct seep_report_build *build)
{
    const struct seep_snapshot *snapshot = &build->snapshot;
    struct seep_report_counter *counters =
        seep_store_take(&build->store, SEEP_COUNTER_COUNT, sizeof(*counters));

    if (counters == NULL) {
        return -ENOMEM;
    }
    for (unsigned i = 0; i < SEEP_COUNTER_COUNT; i++) {
        counters[i] = (struct seep_report_counter){
            .name = lower_case(build, counter_table[i].name),
            .words = counter_table[i].words,
            .kind = counter_table[i].kind,
            .value = seep_word_load(&snapshot->view.counters[i]),
        };
        if (counters[i].name == NULL) {
            return -ENOMEM;
        }
    }
    counters[SEEP_COUNT_TORN].value += snapshot->torn_slots;
    build->report.counters = counters;
    build->report.counter_count = SEEP_COUNTER_COUNT;
    return 0;
}

/*
 * What the verdict goes by, and how long memory lasts. Invariant: whatever a
 * damaged file says, each sum is finite.
 */

/* What is mapped of the recording itself is resident, and grows: where it was
 * not told, nobody else's growth is less than all of it; where it was, not less
 * than that, since it is asked for more rarely than the rest. */
static void add_drifts(const struct seep_report *report,
                       struct seep_verdict_input *input)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_window_series private = {.count = 0};
    struct seep_window_series shared = {.count = 0};
    double last = 0;

    for (size_t i = 0; i < memory->moment_count; i++) {
        const struct seep_report_moment *moment = &memory->moments[i];

        if (moment->private_bytes >= 0) {
            last = moment->private_bytes;
            seep_window_add(&private, moment->t_s, moment->private_bytes);
            seep_window_add(&shared, moment->t_s,
                            moment->held_bytes - moment->private_bytes -
                                moment->own_bytes);
        }
    }
    seep_drift_of(&private, report->begin.from_s, report->duration_s,
                  seep_drift_floor_bytes(last), &input->private_drift);
    seep_drift_of(&shared, report->begin.from_s, report->duration_s,
                  seep_drift_floor_bytes(memory->rss.last_bytes) +
                      (memory->own.valid ? memory->own.last_bytes
                                         : (double)report->file_bytes),
                  &input->shared_drift);
}

/* What the allocator keeps free came to be more by so much; 0 where what is
 * live surely grew, too. */
static double free_growth(const struct seep_report_memory *memory,
                          double from_s, double to_s)
{
    struct seep_window_series kept = {.count = 0};
    struct seep_window_series live = {.count = 0};
    struct seep_window_slope slope;

    for (size_t i = 0; i < memory->moment_count; i++) {
        const struct seep_report_moment *moment = &memory->moments[i];

        if (moment->allocator_overhead_bytes >= 0) {
            seep_window_add(&kept, moment->t_s,
                            moment->allocator_overhead_bytes);
            seep_window_add(&live, moment->t_s, moment->tracked_bytes);
        }
    }
    slope = seep_window_slope_of(&live, from_s, to_s);
    if (!slope.valid || slope.per_s > slope.error) {
        return 0;
    }
    slope = seep_window_slope_of(&kept, from_s, to_s);
    return slope.valid ? fmax(0, slope.per_s * (to_s - from_s)) : 0;
}

static void add_rises(struct seep_report_build *build, double from_s)
{
    for (size_t i = 0; i < build->sites.count; i++) {
        struct seep_site_work *work = &build->sites.works[i];

        work->has_late_rise = seep_sites_has_series(work);
        if (work->has_late_rise) {
            work->late_rise_bytes =
                work->grown_share * seep_report_rise_of(build, work, from_s);
        }
    }
}

/* Of mappings that grew, as seen from outside, those that no hook saw. */
static double stray_bytes_per_s(const struct seep_report_memory *memory)
{
    double sum = 0;

    for (size_t i = 0; i < memory->mapping_count; i++) {
        if (!memory->mappings[i].tracked) {
            sum += fmax(0, memory->mappings[i].slope_bytes_per_s);
        }
    }
    return sum;
}

static double elsewhere_bytes_per_s(const struct seep_sites *sites)
{
    double sum = 0;

    for (size_t i = 0; i < sites->count; i++) {
        const struct seep_site_work *work = &sites->works[i];

        if (work->site.has_growth) {
            sum += work->elsewhere_share *
                   fmax(0, work->site.growth_bytes_per_s.estimate);
        }
    }
    return sum;
}

static struct seep_window_slope
slope_of_device(const struct seep_report_build *build, const double *values,
                uint32_t first)
{
    struct seep_window_series series;

    seep_clock_series(&build->clock, values, first, &series);
    return seep_window_slope_of(
        &series, seep_clock_time_at(&build->clock, SEEP_WINDOW_SETTLE),
        build->report.duration_s);
}

static double least_of(const struct seep_window_slope *slope)
{
    return slope->valid ? fmax(0, slope->per_s - slope->error) : 0;
}

/* So many samples of a leak show it. */
#define TENSORS_SEEN 20.0

/* Samples of tensors can be far apart, and a leak of them fills what the cache
 * has free; what PyTorch has handed out is no estimate. */
static double hidden_tensors(const struct seep_report_build *build,
                             const struct seep_window_slope *handed_out)
{
    double samples = build->report.tensor_sample_bytes > 1
                         ? TENSORS_SEEN *
                               (double)build->report.tensor_sample_bytes /
                               seep_clock_worked_s(&build->clock)
                         : 0;
    double sums = handed_out->valid
                      ? fmax(0, handed_out->per_s) + handed_out->error
                      : INFINITY;

    return fmin(samples, sums);
}

static void add_device_bounds(const struct seep_report_build *build,
                              struct seep_verdict_input *input)
{
    double worked_s = seep_clock_worked_s(&build->clock);

    for (uint32_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        const struct seep_device_live *live = &build->devices[i];
        struct seep_window_slope slope =
            slope_of_device(build, live->device, 0);
        double least = least_of(&slope);

        if (live->has_tensors && worked_s > 0) {
            slope = slope_of_device(build, live->allocated, live->cache_first);
            least = fmax(least, least_of(&slope));
            input->hidden_tensor_bytes_per_s =
                fmax(input->hidden_tensor_bytes_per_s,
                     hidden_tensors(build, &slope));
        }
        input->least_device_bytes[i] = least * worked_s;
    }
}

/* Of entry 0, which is no call site. */
static double uncharged_growth(const struct seep_report_build *build)
{
    const struct seep_sites *sites = &build->sites;
    double bytes_per_s = 0;

    for (size_t i = 0; i < sites->count; i++) {
        const struct seep_report_site *site = &sites->works[i].site;

        if (sites->works[i].index == 0 && site->has_growth) {
            bytes_per_s = fmax(bytes_per_s, site->growth_bytes_per_s.high);
        }
    }
    return bytes_per_s * seep_clock_worked_s(&build->clock);
}

/* A device that is full first is what ends first. */
static void add_device_forecasts(struct seep_report_build *build,
                                 const struct seep_verdict_now *now)
{
    struct seep_report_forecast *nearest = &build->report.verdict.forecast;

    for (uint32_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        struct seep_report_device *device = build->device_of[i];

        if (device == NULL) {
            continue;
        }
        device->forecast = seep_forecast_of_device(
            device, build->devices[i].is_followed, &now->devices[i]);
        if (device->forecast.answer == SEEP_FORECAST_TIME &&
            seep_forecast_is_nearer(&device->forecast, nearest)) {
            *nearest = device->forecast;
        }
    }
}

/* Say which GPU it is whose cache grows; without memory for it none is said. */
static void name_cache(struct seep_report_build *build)
{
    struct seep_report_verdict *verdict = &build->report.verdict;
    const char *named;
    char text[128];

    if (verdict->class != SEEP_VERDICT_FRAGMENTATION || verdict->device < 0) {
        return;
    }
    snprintf(
        text, sizeof(text),
        "PyTorch's cache on GPU %d takes ever more memory, but the tensors in it do not grow",
        verdict->device);
    named = seep_store_text(&build->store, text);
    verdict->reason = named != NULL ? named : verdict->reason;
}

static void add_verdict(struct seep_report_build *build)
{
    struct seep_verdict_input input = {
        .works = build->sites.works,
        .count = build->sites.count,
        .began_s = build->report.begin.from_s,
        .duration_s = build->report.duration_s,
        .too_short = seep_sites_too_short(&build->clock),
        .imports_s = build->report.begin.mostly_imports
                         ? build->report.begin.imports_s
                         : 0,
        .uncharged_growth_bytes = uncharged_growth(build),
        .kept_bytes = build->report.begin.kept_bytes,
        .outside = build->outside,
        .free_bytes = build->report.memory.allocator_overhead.last_bytes,
        .sample_bytes = build->report.sample_bytes > 1
                            ? (double)build->report.sample_bytes
                            : 0,
        .lost_share = seep_report_lost_share(&build->snapshot.view),
        .elsewhere_bytes_per_s = elsewhere_bytes_per_s(&build->sites),
        .stray_bytes_per_s = stray_bytes_per_s(&build->report.memory),
        .fill = seep_report_fill(build),
        .unreachable = build->report.end.unreachable,
    };
    struct seep_verdict_now now;

    memcpy(input.live_bytes, build->sites.live_bytes, sizeof(input.live_bytes));
    memcpy(input.caches, build->caches, sizeof(input.caches));
    add_drifts(&build->report, &input);
    input.open_files_drift = build->open_files_drift;
    if (input.private_drift.grows) {
        add_rises(build, input.private_drift.from_s);
        input.free_growth_bytes =
            free_growth(&build->report.memory, input.private_drift.from_s,
                        build->report.duration_s);
    }
    add_device_bounds(build, &input);
    seep_verdict_decide(&input, &build->report.verdict, &now);
    seep_verdict_add_rest(&input, &build->report.memory,
                          &build->report.verdict);
    name_cache(build);
    seep_forecast_of_process(&build->report.memory, &now,
                             &build->report.verdict.forecast);
    seep_forecast_add_beside(&build->report.memory, input.elsewhere_bytes_per_s,
                             build->report.duration_s, &build->report.verdict);
    add_device_forecasts(build, &now);
    seep_report_show_named(build);
}

/* The steps, in their order. */

static bool is_dead(const struct seep_rec_header *header)
{
    return seep_process_presence_of(header, NULL) == SEEP_PRESENCE_AWAY;
}

static bool was_dead(const struct seep_rec_header *header)
{
    (void)header;
    return true;
}

static bool was_not_dead(const struct seep_rec_header *header)
{
    (void)header;
    return false;
}

static int take_snapshot(struct seep_report_build *build, const char *path,
                         struct seep_refusal *ret_refusal)
{
    const struct seep_pack_image *image = &build->packed.image;
    bool (*dead)(const struct seep_rec_header *) = is_dead;
    uint64_t size_bytes;
    int fd;
    int error =
        seep_packed_open(path, ret_refusal, &fd, &size_bytes, &build->packed);

    if (error != 0) {
        return error;
    }
    if (build->packed.pack != NULL) {
        dead = image->presence == SEEP_PRESENCE_AWAY ? was_dead : was_not_dead;
    }
    error =
        seep_snapshot_init(fd, size_bytes, dead, ret_refusal, &build->snapshot);
    close(fd);
    if (error == 0 && build->packed.pack != NULL) {
        build->snapshot.disk_bytes = image->disk_bytes;
        build->snapshot.restless_shards = image->restless_shards;
    }
    return error;
}

static int add_rows(struct seep_report_build *build)
{
    struct seep_site_key *keys = NULL;
    int error = seep_group_keys(build, &keys);

    if (error == 0) {
        error = seep_sites_init(&build->snapshot, &build->clock, keys,
                                &build->sites);
        free(keys);
    }
    if (error == 0) {
        seep_report_mark_start(build);
        seep_sites_judge(&build->sites, &build->clock);
    }
    return error;
}

/* What was seen of it from outside; whatever is wrong with that is said, and
 * costs nothing else. */
static void read_samples(struct seep_report_build *build)
{
    int error = seep_external_samples_read_of(build->report.path,
                                              &build->packed, &build->samples);

    build->report.looks_error = error == -ENOENT ? 0 : error;
}

/* Of one that was killed nothing tells that it had lived on without a call that
 * is recorded, but that it was seen. */
static uint64_t last_seen_tick(const struct seep_report_build *build)
{
    const struct seep_external_samples *samples = &build->samples;
    bool ended = seep_word_load(&build->snapshot.view.header->exit_tick) != 0;
    double ticks =
        samples->count > 0 && !ended
            ? samples->samples[samples->count - 1].t_s / seep_sites_seconds(1)
            : 0;

    return ticks < (double)SEEP_SITES_TICK_MAX ? (uint64_t)fmax(0, ticks)
                                               : SEEP_SITES_TICK_MAX;
}

/* The end of the run, and the clock up to where it is judged. */
static int add_time(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    struct seep_rec_header *header = build->snapshot.view.header;
    uint64_t last_tick = seep_sites_last_tick(&build->snapshot);
    uint64_t seen_tick = last_seen_tick(build);
    uint64_t now_tick = build->packed.pack != NULL
                            ? build->packed.image.now_tick
                            : seep_process_now_tick(header);
    uint64_t end_tick =
        seep_process_end_tick(header, report->state, now_tick,
                              last_tick > seen_tick ? last_tick : seen_tick);
    bool ended = report->state == SEEP_STATE_UNKNOWN
                     ? seep_word_load(&header->exited) != 0
                     : report->state != SEEP_STATE_RUNNING;
    struct seep_series_grid grid = seep_series_grid_of(end_tick);
    double rate = 1;
    int error = 0;

    report->life_s = seep_sites_seconds((double)end_tick);
    report->last_event_s = seep_sites_seconds((double)last_tick);
    if (ended) {
        error = seep_rewind(&build->snapshot, end_tick, &report->end,
                            &grid.end_tick);
        report->units = seep_word_load(&header->progress_units);
    }
    if (error == 0 &&
        (build->options == NULL || !build->options->as_requested)) {
        /* Nothing is undone behind it. */
        error = seep_footprint_charge(
            &build->snapshot, seep_report_allocator_of(report->allocator),
            &rate);
        report->end.freed_bytes *= rate;
    }
    seep_clock_init(&build->clock, &build->snapshot.view, grid);
    report->duration_s = seep_sites_seconds((double)grid.end_tick);
    report->bucket_s =
        seep_sites_seconds(ldexp(1, (int)build->clock.width_log2));
    return error;
}

static int fill(struct seep_report_build *build, const char *path)
{
    /* Marks of sites change what a verdict counts, so they come before it. */
    static int (*const steps[])(struct seep_report_build * build) = {
        add_process,
        add_time,
        seep_names_open,
        seep_names_find_alike,
        seep_report_add_begin,
        seep_report_add_spaces, /* before there are rows: each has as much */
        add_rows,
        add_counters,
        seep_report_add_devices,
        seep_report_add_sites,
        seep_report_add_last,
        seep_report_add_blocks,
        seep_report_add_memory,
    };
    int error = 0;

    build->report.path = seep_store_text(&build->store, path);
    if (build->report.path == NULL) {
        return -ENOMEM;
    }
    read_samples(build);
    for (size_t i = 0; error == 0 && i < sizeof(steps) / sizeof(*steps); i++) {
        error = steps[i](build);
    }
    if (error == 0) {
        add_verdict(build);
        error = seep_report_add_stacks(build);
    }
    if (error == 0) {
        error = seep_names_failures(build);
    }
    return error;
}

/* What of struct seep_report_build lives on: its first members. */
struct kept {
    struct seep_report report;
    struct seep_store store;
    struct seep_symboliser *symboliser;
    struct seep_store course;
    struct seep_store listed;
};
static_assert(offsetof(struct kept, store) ==
                      offsetof(struct seep_report_build, store) &&
                  offsetof(struct kept, course) ==
                      offsetof(struct seep_report_build, course) &&
                  offsetof(struct kept, listed) ==
                      offsetof(struct seep_report_build, listed) &&
                  offsetof(struct kept, symboliser) ==
                      offsetof(struct seep_report_build, symboliser) &&
                  sizeof(struct kept) <=
                      offsetof(struct seep_report_build, snapshot),
              "the same members at the same places");

int seep_report_open(const char *path,
                     const struct seep_report_options *options,
                     struct seep_refusal *ret_refusal,
                     struct seep_report **ret_report)
{
    struct seep_report_build *build = calloc(1, sizeof(*build));
    int error;

    if (build == NULL) {
        return seep_open_refuse_errno(ret_refusal, -ENOMEM);
    }
    build->options = options;
    error = take_snapshot(build, path, ret_refusal);
    if (error == 0) {
        error = fill(build, path);
        if (error != 0) {
            seep_pack_refuse(ret_refusal, error);
        }
    }
    seep_names_close(build);
    free(build->import_parts);
    build->import_parts = NULL;
    free(build->known);
    build->known = NULL;
    seep_sites_fini(&build->sites);
    seep_symboliser_settle(build->symboliser);
    seep_snapshot_fini(&build->snapshot);
    seep_packed_fini(&build->packed);
    seep_external_samples_fini(&build->samples);
    build->options = NULL;
    if (error != 0) {
        seep_report_close(&build->report);
        return error;
    }
    /* Of many reports the rest would be most. */
    struct kept *kept = realloc(build, sizeof(*kept));
    *ret_report = kept != NULL ? &kept->report : &build->report;
    return 0;
}

struct seep_store *seep_report_store(struct seep_report *report)
{
    return &((struct kept *)(void *)report)->store;
}

void seep_report_let_go(struct seep_report *report)
{
    struct kept *kept = (void *)report;

    for (size_t i = 0; i < report->site_count; i++) {
        struct seep_report_site *site =
            (struct seep_report_site *)(uintptr_t)&report->sites[i];
        double *levels = seep_store_take(&kept->store, SEEP_FAMILY_AGE_LEVELS,
                                         sizeof(*levels));

        if (levels != NULL && site->point_count > 0) {
            seep_family_age_levels(site, report->duration_s, levels);
            site->age_levels = levels;
        }
        site->series = NULL;
        site->point_count = 0;
    }
    for (size_t i = 0; i < report->space_count; i++) {
        ((struct seep_report_space *)(uintptr_t)&report->spaces[i])->live =
            NULL;
    }
    report->bucket_end_s = NULL;
    report->bucket_count = 0;
    report->memory.moments = NULL;
    report->memory.moment_count = 0;
    seep_store_fini(&kept->course);
}

void seep_report_keep_rows(struct seep_report *report,
                           seep_report_keeper *keeps)
{
    struct kept *kept = (void *)report;
    struct seep_report_site *sites;
    struct seep_report_row *rows;
    size_t site_count = 0;
    size_t row_count = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        site_count += keeps != NULL && keeps(&report->sites[i]);
    }
    sites = seep_store_take(&kept->store, site_count, sizeof(*sites));
    rows = seep_store_take(&kept->store, report->site_count - site_count + 1,
                           sizeof(*rows));
    if (sites == NULL || rows == NULL) {
        return;
    }
    site_count = 0;
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (keeps != NULL && keeps(site)) {
            sites[site_count++] = *site;
        } else {
            row_count += seep_family_row_of(report, site, &rows[row_count]);
        }
    }
    report->rows = rows;
    report->row_count = row_count;
    report->sites = sites;
    report->site_count = site_count;
    seep_store_fini(&kept->listed);
}

void seep_report_close(struct seep_report *report)
{
    /* .report is the first member of what was allocated. */
    struct kept *kept = (void *)report;

    if (kept != NULL) {
        seep_symboliser_close(kept->symboliser);
        seep_store_fini(&kept->store);
        seep_store_fini(&kept->course);
        seep_store_fini(&kept->listed);
        free((void *)(uintptr_t)kept->report.nameless);
        free(kept);
    }
}
