/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The verdict of a report, and how long its memory lasts. */
#include <math.h>
#include <string.h>

#include "reader/report_build.h"
#include "reader/verdict.h"

/* Of a damaged file it may be up to 2^64, which no longer fits. */
static uint64_t whole(double bytes)
{
    return (uint64_t)fmin(bytes, 1e19);
}

/*
 * What the kernel counts for a cgroup has its page cache in it, which it gives
 * back before it kills: the time to the limit is the least that it can be.
 */
static struct seep_forecast_limit
cgroup_limit_of(const struct seep_report_memory *memory)
{
    return (struct seep_forecast_limit){
        .what = "cgroup",
        .limit_bytes = memory->cgroup.valid ? memory->cgroup_limit_bytes : 0,
        .used_bytes = whole(memory->cgroup.last_bytes),
    };
}

/* What is available is known from looks only; else nobody else uses any. */
static struct seep_forecast_limit
ram_limit_of(const struct seep_report_memory *memory)
{
    struct seep_forecast_limit limit = {
        .what = "ram",
        .limit_bytes = memory->machine_bytes,
        .used_bytes = whole(memory->rss.last_bytes),
    };

    if (memory->available_bytes > 0) {
        limit.used_bytes = memory->machine_bytes > memory->available_bytes
                               ? memory->machine_bytes - memory->available_bytes
                               : 0;
    }
    return limit;
}

/* A bound is none that memory ends before. */
static bool fits(const struct seep_forecast_limit *limit, double left_bytes)
{
    return limit->limit_bytes == 0 || !(left_bytes > 0) ||
           (double)limit->used_bytes + left_bytes <= (double)limit->limit_bytes;
}

static void add_forecast(struct seep_report *report,
                         const struct seep_verdict_now *now)
{
    struct seep_forecast_limit limits[] = {
        cgroup_limit_of(&report->memory),
        ram_limit_of(&report->memory),
    };

    enum seep_forecast_basis basis = now->basis;

    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        limits[i].bytes_per_s = now->bytes_per_s;
        if (!fits(&limits[i], now->left_bytes)) {
            basis = SEEP_FORECAST_UNTOLD;
        }
    }
    seep_forecast_make(limits, sizeof(limits) / sizeof(*limits), basis,
                       &report->verdict.forecast);
}

static double least_slope(const struct seep_report_extent *extent)
{
    return extent->slope_bytes_per_s - extent->slope_error;
}

/*
 * What the class is about of this memory, else what the device itself showed,
 * whoever it was: a growth that can be told from none, and is clearly more
 * than what the class is about.
 */
static struct seep_report_forecast
forecast_of_device(const struct seep_report_device *device, bool is_followed,
                   const struct seep_verdict_pace *pace)
{
    const struct seep_report_extent *used = &device->used;
    struct seep_forecast_limit limit = {
        .what = "device",
        .limit_bytes = device->total_bytes,
        .used_bytes = device->total_bytes - device->free_bytes,
    };
    enum seep_forecast_basis basis =
        is_followed ? SEEP_FORECAST_GROWS : SEEP_FORECAST_UNTOLD;
    struct seep_report_forecast forecast;

    if (pace->told &&
        !(is_followed && least_slope(used) > pace->bytes_per_s.high)) {
        basis = pace->basis;
        limit.bytes_per_s = pace->bytes_per_s;
    } else if (least_slope(used) > 0) {
        limit.bytes_per_s = (struct seep_interval){
            used->slope_bytes_per_s,
            used->slope_bytes_per_s - used->slope_error,
            used->slope_bytes_per_s + used->slope_error,
        };
    }
    seep_forecast_make(&limit, 1, basis, &forecast);
    if (forecast.answer != SEEP_FORECAST_UNKNOWN) {
        forecast.device = (int)device->ordinal;
    }
    return forecast;
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
        device->forecast = forecast_of_device(
            device, build->devices[i].is_followed, &now->devices[i]);
        if (device->forecast.answer == SEEP_FORECAST_TIME &&
            seep_forecast_is_nearer(&device->forecast, nearest)) {
            *nearest = device->forecast;
        }
    }
}

static void add_growth_bounds(const struct seep_report *report,
                              struct seep_verdict_input *input)
{
    const struct seep_report_extent *private = &report->memory.anonymous;
    double slope = private->slope_bytes_per_s;

    input->least_growth_bytes = 0;
    input->most_growth_bytes = INFINITY;
    if (private->valid && report->memory.tracked.valid) {
        input->least_growth_bytes =
            fmax(0, slope - private->slope_error) * report->duration_s;
        input->most_growth_bytes =
            fmax(0, slope + private->slope_error) * report->duration_s;
    }
}

static void add_device_bounds(const struct seep_report_build *build,
                              struct seep_verdict_input *input)
{
    double end_s = build->report.duration_s;
    struct seep_window_series series;
    struct seep_window_slope slope;

    for (uint32_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        seep_report_series_of(&build->clock, build->devices[i].device, 0,
                              &series);
        slope =
            seep_window_slope_of(&series, SEEP_BALANCE_SETTLE * end_s, end_s);
        input->least_device_bytes[i] =
            slope.valid ? fmax(0, slope.per_s - slope.error) * end_s : 0;
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
    return bytes_per_s * build->report.duration_s;
}

void seep_report_add_verdict(struct seep_report_build *build)
{
    struct seep_verdict_input input = {
        .works = build->sites.works,
        .count = build->sites.count,
        .duration_s = build->report.duration_s,
        .too_short = seep_sites_too_short(&build->clock),
        .uncharged_growth_bytes = uncharged_growth(build),
        .outside = build->outside,
    };
    struct seep_verdict_now now;

    memcpy(input.live_bytes, build->sites.live_bytes, sizeof(input.live_bytes));
    memcpy(input.caches, build->caches, sizeof(input.caches));
    add_growth_bounds(&build->report, &input);
    add_device_bounds(build, &input);
    seep_verdict_decide(&input, &build->report.verdict, &now);
    add_forecast(&build->report, &now);
    add_device_forecasts(build, &now);
}
