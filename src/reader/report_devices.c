/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each device as the driver told of it, against what calls of the process hold
 * of it.
 *
 * A moment is the last one of its bucket, taken right after a call that was
 * served, and where no call is served nothing is held or given back. So what
 * calls hold at the moment is best known at the end of its bucket.
 *
 * Invariant: whatever a damaged file says, times ascend, figures are finite,
 * and a part is never negative.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/balance_parts.h"
#include "reader/report_build.h"

#define FOLLOWED_MIN 3

/* Every series of one device, at the same times. */
struct device_series {
    struct seep_window_series used;
    struct seep_window_series tracked;
    struct seep_window_series unexplained;
    struct seep_window_series pool_reserved;
    struct seep_window_series pool_used;
    struct seep_window_series graph_reserved;
    struct seep_window_series graph_used;
    struct seep_window_series tensor_reserved;
    struct seep_window_series tensor_allocated;
};

static double load(_Atomic uint64_t *word)
{
    return (double)atomic_load_explicit(word, memory_order_relaxed);
}

void seep_report_series_of(const struct seep_clock *clock, const double *values,
                           uint32_t first,
                           struct seep_window_series *ret_series)
{
    ret_series->count = 0;
    for (uint32_t i = first; i < clock->count; i++) {
        double ticks = fmin((double)((uint64_t)(i + 1) << clock->width_log2),
                            (double)clock->end_tick);

        seep_window_add(ret_series, seep_sites_seconds(ticks), values[i]);
    }
}

/*
 * Memory that is managed lies in the device or in the host, as it was touched
 * last, and nobody tells: it is counted in the device of whose context it is,
 * so that what is unexplained is not more than it can be.
 */
static void add_use(struct device_series *series,
                    struct seep_rec_device *moment, double t_s,
                    const struct seep_report_device_live *live, uint32_t bucket)
{
    double total = load(&moment->total_bytes);
    double used = seep_balance_positive(total - load(&moment->free_bytes));
    double tracked = live->device[bucket] + live->managed[bucket];

    if (total > 0) {
        seep_window_add(&series->used, t_s, used);
        seep_window_add(&series->tracked, t_s, tracked);
        seep_window_add(&series->unexplained, t_s,
                        seep_balance_positive(used - tracked));
    }
    seep_window_add(&series->pool_reserved, t_s,
                    load(&moment->pool_reserved_bytes));
    seep_window_add(&series->pool_used, t_s, load(&moment->pool_used_bytes));
    seep_window_add(&series->graph_reserved, t_s,
                    load(&moment->graph_reserved_bytes));
    seep_window_add(&series->graph_used, t_s, load(&moment->graph_used_bytes));
    seep_window_add(&series->tensor_reserved, t_s,
                    load(&moment->tensor_reserved_bytes));
    seep_window_add(&series->tensor_allocated, t_s,
                    load(&moment->tensor_allocated_bytes));
}

static void note_use(struct seep_report_device *device,
                     struct seep_rec_device *moment)
{
    uint64_t free_bytes = seep_snapshot_load(moment->free_bytes);
    uint64_t low_bytes = seep_snapshot_load(moment->low_free_bytes);
    uint64_t total_bytes = seep_snapshot_load(moment->total_bytes);

    if (total_bytes == 0) {
        return; /* the driver did not tell */
    }
    free_bytes = free_bytes < total_bytes ? free_bytes : total_bytes;
    low_bytes = low_bytes < free_bytes ? low_bytes : free_bytes;
    if (device->total_bytes == 0 || low_bytes < device->low_free_bytes) {
        device->low_free_bytes = low_bytes;
    }
    device->free_bytes = free_bytes;
    device->total_bytes = total_bytes;
}

/* Only calls of the driver change a cache: between moments it stays. */
static void keep_cache(const struct seep_clock *clock,
                       struct seep_rec_device *moment, uint32_t bucket,
                       struct seep_report_device_live *live)
{
    if (seep_snapshot_load(moment->tensor_reserved_bytes) == 0 &&
        live->cache_first >= clock->count) {
        return;
    }
    if (live->cache_first >= clock->count) {
        live->cache_first = bucket;
    }
    for (uint32_t i = bucket; i < clock->count; i++) {
        live->reserved[i] = load(&moment->tensor_reserved_bytes);
        live->allocated[i] = load(&moment->tensor_allocated_bytes);
    }
}

/* The last moment of each bucket of the clock. @return how many there are */
static size_t pick_moments(const struct seep_clock *clock,
                           struct seep_rec_device *moments,
                           struct seep_report_device *device,
                           struct seep_rec_device *ret_picked[])
{
    uint64_t last = 0;
    size_t count = 0;

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        uint64_t tick = seep_snapshot_load(moments[i].tick);

        if (tick > last && tick <= clock->end_tick) {
            ret_picked[tick >> clock->width_log2] = &moments[i];
            note_use(device, &moments[i]);
            last = tick;
            count++;
        }
    }
    return count;
}

static size_t read_moments(struct seep_report_build *build, uint32_t ordinal,
                           struct device_series *series,
                           struct seep_report_device *device)
{
    const struct seep_clock *clock = &build->clock;
    struct seep_report_device_live *live = &build->devices[ordinal];
    struct seep_rec_device *picked[SEEP_BUCKET_COUNT] = {NULL};
    size_t count = pick_moments(
        clock,
        &build->snapshot.view.devices[(size_t)ordinal * SEEP_BUCKET_COUNT],
        device, picked);

    for (uint32_t i = 0; i < clock->count; i++) {
        if (picked[i] != NULL) {
            uint64_t tick = seep_snapshot_load(picked[i]->tick);

            add_use(series, picked[i], seep_sites_seconds((double)tick), live,
                    i);
            keep_cache(clock, picked[i], i, live);
        }
    }
    return count;
}

/* What is 0 all the time was never told. */
static struct seep_report_extent
extent_of(const struct seep_window_series *series, double end_s)
{
    struct seep_report_extent extent = {.valid = false};

    for (size_t i = 0; i < series->count; i++) {
        if (series->value[i] > 0) {
            return seep_balance_extent_of(series, end_s);
        }
    }
    return extent;
}

static void fill_device(const struct device_series *series, double end_s,
                        struct seep_report_device *device)
{
    device->used = seep_balance_extent_of(&series->used, end_s);
    device->tracked = seep_balance_extent_of(&series->tracked, end_s);
    device->unexplained = seep_balance_extent_of(&series->unexplained, end_s);
    device->pool_reserved = extent_of(&series->pool_reserved, end_s);
    device->pool_used = extent_of(&series->pool_used, end_s);
    device->graph_reserved = extent_of(&series->graph_reserved, end_s);
    device->graph_used = extent_of(&series->graph_used, end_s);
    device->tensor_reserved = extent_of(&series->tensor_reserved, end_s);
    device->tensor_allocated = extent_of(&series->tensor_allocated, end_s);
}

static bool fill(struct seep_report_build *build, uint32_t ordinal,
                 struct device_series *series,
                 struct seep_report_device *ret_device)
{
    double end_s = build->report.duration_s;
    struct seep_report_device device = {
        .ordinal = ordinal,
        .forecast = {.answer = SEEP_FORECAST_UNKNOWN, .what = "", .device = -1},
    };

    memset(series, 0, sizeof(*series));
    if (read_moments(build, ordinal, series, &device) == 0) {
        return false;
    }
    fill_device(series, end_s, &device);
    build->devices[ordinal].is_followed = seep_balance_covers(
        &series->used, FOLLOWED_MIN, SEEP_BALANCE_SETTLE * end_s, end_s);
    *ret_device = device;
    return true;
}

int seep_report_add_devices(struct seep_report_build *build)
{
    uint32_t capacity = build->snapshot.view.device_count;
    struct seep_report_device *devices =
        seep_store_take(&build->store, SEEP_DEVICES_MAX, sizeof(*devices));
    struct device_series *series = malloc(sizeof(*series));
    size_t count = 0;

    for (uint32_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        build->devices[i].cache_first = build->clock.count;
    }
    if (devices == NULL || series == NULL) {
        free(series);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < capacity && i < SEEP_DEVICES_MAX; i++) {
        if (fill(build, i, series, &devices[count])) {
            build->device_of[i] = &devices[count++];
        }
    }
    free(series);
    build->report.devices = devices;
    build->report.device_count = count;
    return 0;
}
