/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples of a process as a whole; see metrics_emit.h. */
#include "metrics_emit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "words.h"

#define NS_PER_S 1e9

void seep_metrics_emit_sample(struct seep_metrics_emit *emit,
                              const struct seep_metrics_label *labels,
                              size_t count, double value)
{
    struct seep_metrics_label all[SEEP_METRICS_LABELS_MOST + 2] = {
        {"pid", emit->process->pid},
        {"exe", emit->process->exe},
    };

    for (size_t i = 0; i < count && i < SEEP_METRICS_LABELS_MOST; i++) {
        all[i + 2] = labels[i];
    }
    seep_metrics_text_sample(emit->text, emit->metric, all, count + 2, value);
}

const char *seep_metrics_emit_device(int device,
                                     char text[SEEP_METRICS_DEVICE_BYTES])
{
    *text = '\0';
    if (device >= 0) {
        snprintf(text, SEEP_METRICS_DEVICE_BYTES, "%d", device);
    }
    return text;
}

void seep_metrics_emit_verdict(struct seep_metrics_emit *emit)
{
    for (unsigned i = 0; i < SEEP_VERDICT_COUNT; i++) {
        struct seep_metrics_label label = {
            "class", seep_verdict_name((enum seep_verdict_class)i)};

        seep_metrics_emit_sample(
            emit, &label, 1, emit->process->report->verdict.class == i ? 1 : 0);
    }
}

static const struct seep_interval *
growth_of(const struct seep_metrics_emit *emit)
{
    static const struct seep_interval unknown = {NAN, NAN, NAN};
    const struct seep_report_verdict *verdict = &emit->process->report->verdict;

    return verdict->has_growth ? &verdict->growth_bytes_per_s : &unknown;
}

void seep_metrics_emit_growth(struct seep_metrics_emit *emit)
{
    seep_metrics_emit_sample(emit, NULL, 0, growth_of(emit)->estimate);
}

void seep_metrics_emit_growth_lower(struct seep_metrics_emit *emit)
{
    seep_metrics_emit_sample(emit, NULL, 0, growth_of(emit)->low);
}

void seep_metrics_emit_growth_upper(struct seep_metrics_emit *emit)
{
    seep_metrics_emit_sample(emit, NULL, 0, growth_of(emit)->high);
}

static void emit_eta(struct seep_metrics_emit *emit,
                     const struct seep_report_forecast *forecast,
                     const char *what, int device)
{
    char text[SEEP_METRICS_DEVICE_BYTES];
    struct seep_metrics_label labels[] = {
        {"limit", what}, {"device", seep_metrics_emit_device(device, text)}};

    /* What would be if a suspect were a leak is no forecast. */
    if (forecast->answer == SEEP_FORECAST_NEVER) {
        seep_metrics_emit_sample(emit, labels, 2, INFINITY);
    } else if (forecast->answer == SEEP_FORECAST_TIME &&
               !forecast->if_suspect) {
        seep_metrics_emit_sample(emit, labels, 2, forecast->seconds.estimate);
    }
}

void seep_metrics_emit_oom_eta(struct seep_metrics_emit *emit)
{
    const struct seep_report *report = emit->process->report;
    const struct seep_report_forecast *forecast = &report->verdict.forecast;

    if (strcmp(forecast->what == NULL ? "" : forecast->what, "device") != 0) {
        emit_eta(emit, forecast,
                 forecast->answer == SEEP_FORECAST_NEVER ? "" : forecast->what,
                 -1);
    }
    for (size_t i = 0; i < report->device_count; i++) {
        emit_eta(emit, &report->devices[i].forecast, "device",
                 (int)report->devices[i].ordinal);
    }
}

static void emit_headroom(struct seep_metrics_emit *emit, const char *limit,
                          double bytes)
{
    struct seep_metrics_label label = {"limit", limit};

    seep_metrics_emit_sample(emit, &label, 1, fmax(0, bytes));
}

void seep_metrics_emit_headroom(struct seep_metrics_emit *emit)
{
    const struct seep_report_memory *memory = &emit->process->report->memory;
    uint64_t available_bytes = emit->available_bytes;

    if (memory->cgroup.valid && memory->cgroup_limit_bytes > 0) {
        emit_headroom(emit, "cgroup",
                      (double)memory->cgroup_limit_bytes -
                          memory->cgroup.last_bytes);
    }
    /* What is available now is asked here; of another machine, or of then, it
     * is known from looks. */
    if (available_bytes == 0 ||
        emit->process->report->state != SEEP_STATE_RUNNING) {
        available_bytes = memory->available_bytes;
    }
    if (available_bytes > 0) {
        emit_headroom(emit, "ram", (double)available_bytes);
    }
}

void seep_metrics_emit_resident(struct seep_metrics_emit *emit)
{
    const struct seep_report_extent *rss = &emit->process->report->memory.rss;

    if (rss->valid) {
        seep_metrics_emit_sample(emit, NULL, 0, rss->last_bytes);
    }
}

void seep_metrics_emit_unexplained(struct seep_metrics_emit *emit)
{
    const struct seep_report *report = emit->process->report;

    if (report->memory.unexplained.valid) {
        seep_metrics_emit_sample(emit, NULL, 0,
                                 report->memory.unexplained.last_bytes);
    }
    for (size_t i = 0; i < report->device_count; i++) {
        const struct seep_report_device *device = &report->devices[i];
        char text[SEEP_METRICS_DEVICE_BYTES];
        struct seep_metrics_label label = {
            "device", seep_metrics_emit_device((int)device->ordinal, text)};

        if (device->unexplained.valid) {
            seep_metrics_emit_sample(emit, &label, 1,
                                     device->unexplained.last_bytes);
        }
    }
}

static void
emit_devices(struct seep_metrics_emit *emit,
             uint64_t (*bytes_of)(const struct seep_report_device *))
{
    const struct seep_report *report = emit->process->report;

    for (size_t i = 0; i < report->device_count; i++) {
        const struct seep_report_device *device = &report->devices[i];
        char text[SEEP_METRICS_DEVICE_BYTES];
        struct seep_metrics_label label = {
            "device", seep_metrics_emit_device((int)device->ordinal, text)};

        seep_metrics_emit_sample(emit, &label, 1, (double)bytes_of(device));
    }
}

static uint64_t free_of(const struct seep_report_device *device)
{
    return device->free_bytes;
}

static uint64_t total_of(const struct seep_report_device *device)
{
    return device->total_bytes;
}

void seep_metrics_emit_device_free(struct seep_metrics_emit *emit)
{
    emit_devices(emit, free_of);
}

void seep_metrics_emit_device_total(struct seep_metrics_emit *emit)
{
    emit_devices(emit, total_of);
}

static void emit_total(struct seep_metrics_emit *emit,
                       enum seep_metrics_total total, uint64_t value)
{
    seep_metrics_emit_sample(
        emit, NULL, 0,
        seep_metrics_totals_raise(emit->totals, emit->process->followed, total,
                                  0, (double)value));
}

void seep_metrics_emit_units(struct seep_metrics_emit *emit)
{
    if (emit->process->report->units > 0) {
        emit_total(emit, SEEP_METRICS_TOTAL_UNITS,
                   emit->process->report->units);
    }
}

void seep_metrics_emit_events_lost(struct seep_metrics_emit *emit)
{
    emit_total(emit, SEEP_METRICS_TOTAL_LOST,
               seep_words_lost_events(emit->process->report));
}

void seep_metrics_emit_overhead(struct seep_metrics_emit *emit)
{
    const struct seep_report *report = emit->process->report;

    if (report->duration_s > 0) {
        seep_metrics_emit_sample(
            emit, NULL, 0, seep_words_cost_s(report) / report->duration_s);
    }
}

void seep_metrics_emit_last_write(struct seep_metrics_emit *emit)
{
    const struct seep_report *report = emit->process->report;

    seep_metrics_emit_sample(
        emit, NULL, 0,
        round((double)report->start_realtime_ns / NS_PER_S +
              report->last_event_s));
}

void seep_metrics_emit_running(struct seep_metrics_emit *emit)
{
    seep_metrics_emit_sample(emit, NULL, 0,
                             emit->process->followed->ended ? 0 : 1);
}
