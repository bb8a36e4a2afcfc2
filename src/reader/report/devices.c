/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each device as the driver told of it, against what calls of the process hold
 * of it. The driver is asked after a call that it served, every tenth of a
 * second at most: a model may be loaded between the last question and the next
 * one, which never comes. What calls hold is known at the end of each bucket,
 * and of what lives when it was born, so it is known at a sample too, but for
 * what was given back later in that bucket; and how it went on after the last.
 *
 * Invariant: whatever a damaged file says, times ascend, figures are finite,
 * and a part is never negative.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/report/build.h"

#define FOLLOWED_MIN 3

/* What a sample has as it is: of pools and graphs the driver's word, of
 * tensors that of PyTorch's cache. */
#define TOLD(X)        \
    X(pool_reserved)   \
    X(pool_used)       \
    X(graph_reserved)  \
    X(graph_used)      \
    X(tensor_reserved) \
    X(tensor_allocated)

/* Every series of one device, at the same times. */
struct series {
    struct seep_window_series used;
    struct seep_window_series tracked;
    struct seep_window_series unexplained;
#define TOLD_SERIES(name) struct seep_window_series name;
    TOLD(TOLD_SERIES)
#undef TOLD_SERIES
};

static double load(_Atomic uint64_t *word)
{
    return (double)atomic_load_explicit(word, memory_order_relaxed);
}

struct work {
    /* One more: there is always a next one to be filled. */
    struct seep_report_device devices[SEEP_DEVICES_MAX + 1];
    struct series series; /* of the device at hand */
    struct seep_rec_device *samples[SEEP_DEVICES_MAX][SEEP_BUCKET_COUNT];
    double late[SEEP_DEVICES_MAX][SEEP_BUCKET_COUNT]; /* born after them */
};

/*
 * Memory that is managed lies in the device or in the host, as it was touched
 * last, and nobody tells: it is counted in the device of whose context it is,
 * so that what is unexplained is not more than it can be.
 */
static double held_in(const struct seep_device_live *live, uint32_t bucket)
{
    return live->device[bucket] + live->managed[bucket];
}

static void add_use(struct series *series, double t_s, double used, double held)
{
    seep_window_add(&series->used, t_s, used);
    seep_window_add(&series->tracked, t_s, held);
    seep_window_add(&series->unexplained, t_s,
                    seep_balance_positive(used - held));
}

static void add_sample(struct series *series, struct seep_rec_device *sample,
                       double held)
{
    double t_s = seep_sites_seconds((double)seep_word_load(&sample->tick));
    double total = load(&sample->total_bytes);

    if (total > 0) {
        add_use(series, t_s,
                seep_balance_positive(total - load(&sample->free_bytes)),
                seep_balance_positive(held));
    }
#define ADD_STATED(name) \
    seep_window_add(&series->name, t_s, load(&sample->name##_bytes));
    TOLD(ADD_STATED)
#undef ADD_STATED
}

static void note_use(struct seep_report_device *device,
                     struct seep_rec_device *sample)
{
    uint64_t free_bytes = seep_word_load(&sample->free_bytes);
    uint64_t low_bytes = seep_word_load(&sample->low_free_bytes);
    uint64_t total_bytes = seep_word_load(&sample->total_bytes);

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

/* Only calls of the driver change a cache: between samples it stays. */
static void keep_cache(const struct seep_clock *clock,
                       struct seep_rec_device *sample, uint32_t bucket,
                       struct seep_device_live *live)
{
    if (seep_word_load(&sample->tensor_reserved_bytes) == 0 &&
        live->cache_first >= clock->count) {
        return;
    }
    if (live->cache_first >= clock->count) {
        live->cache_first = bucket;
    }
    for (uint32_t i = bucket; i < clock->count; i++) {
        live->reserved[i] = load(&sample->tensor_reserved_bytes);
        live->allocated[i] = load(&sample->tensor_allocated_bytes);
    }
}

/* The last sample of each bucket of the clock. @return how many there are */
static size_t pick_samples(const struct seep_clock *clock,
                           struct seep_rec_device *samples,
                           struct seep_report_device *device,
                           struct seep_rec_device *ret_picked[])
{
    uint64_t last = 0;
    size_t count = 0;

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        uint64_t tick = seep_word_load(&samples[i].tick);

        if (tick > last && tick <= clock->end_tick) {
            ret_picked[tick >> clock->width_log2] = &samples[i];
            note_use(device, &samples[i]);
            last = tick;
            count++;
        }
    }
    return count;
}

/* The device that a live entry is memory of; -1: of none that is followed. */
static int device_of(const struct seep_view *view, struct seep_rec_live *live)
{
    uint32_t index = seep_word_load(&live->site);
    const struct seep_rec_site *site;
    int ordinal;

    if (!SEEP_ADDRESS_IS_KEY(seep_word_load(&live->address)) ||
        index >= view->site_capacity) {
        return -1;
    }
    site = &view->sites[index];
    ordinal = seep_sites_device_of(site);
    return (site->space == SEEP_SPACE_DEVICE ||
            site->space == SEEP_SPACE_MANAGED) &&
                   ordinal < (int)SEEP_DEVICES_MAX
               ? ordinal
               : -1;
}

/* What is live and was born after the sample of its bucket. */
static void add_late(const struct seep_report_build *build, struct work *work)
{
    const struct seep_view *view = &build->snapshot.view;
    const struct seep_clock *clock = &build->clock;

    for (uint32_t i = 0; i < view->live_capacity; i++) {
        struct seep_rec_live *live = &view->live[i];
        uint64_t tick = seep_word_load(&live->birth_tick);
        int ordinal = device_of(view, live);
        struct seep_rec_device *sample;

        if (ordinal < 0 || tick > clock->end_tick) {
            continue;
        }
        sample = work->samples[ordinal][tick >> clock->width_log2];
        if (sample != NULL && tick > seep_word_load(&sample->tick)) {
            work->late[ordinal][tick >> clock->width_log2] +=
                (double)(seep_word_load(&live->size_level) & SEEP_SIZE_MASK);
        }
    }
}

static void read_samples(struct seep_report_build *build, uint32_t ordinal,
                         struct work *work)
{
    struct seep_device_live *live = &build->devices[ordinal];

    for (uint32_t i = 0; i < build->clock.count; i++) {
        struct seep_rec_device *sample = work->samples[ordinal][i];

        if (sample != NULL) {
            add_sample(&work->series, sample,
                       held_in(live, i) - work->late[ordinal][i]);
            keep_cache(&build->clock, sample, i, live);
        }
    }
}

/* From the last sample to the end, as far as calls of the process went on. */
static void close_series(const struct seep_report_build *build,
                         struct series *series,
                         struct seep_report_device *device)
{
    double total = (double)device->total_bytes;
    size_t last = series->used.count - 1;
    double held;
    double used;

    if (series->used.count == 0) {
        return;
    }
    held = held_in(&build->devices[device->ordinal], build->clock.count - 1);
    used = series->used.value[last] + held - series->tracked.value[last];
    used = fmin(seep_balance_positive(used), total);
    add_use(series, build->report.duration_s, used, held);
    device->free_bytes = device->total_bytes - (uint64_t)used;
    if (device->free_bytes < device->low_free_bytes) {
        device->low_free_bytes = device->free_bytes;
    }
}

static void fill_device(const struct series *series, double begin_s,
                        double end_s, struct seep_report_device *device)
{
    device->used = seep_balance_extent_of(&series->used, begin_s, end_s);
    device->tracked = seep_balance_extent_of(&series->tracked, begin_s, end_s);
    device->unexplained =
        seep_balance_extent_of(&series->unexplained, begin_s, end_s);
#define FILL_TOLD(name) \
    device->name = seep_balance_extent_if_any(&series->name, begin_s, end_s);
    TOLD(FILL_TOLD)
#undef FILL_TOLD
}

static void find_peak(const struct seep_report_build *build,
                      struct seep_report_device *device)
{
    const struct seep_clock *clock = &build->clock;

    for (uint32_t i = 0; i < clock->count; i++) {
        double held = held_in(&build->devices[device->ordinal], i);

        if (held > device->peak_bytes) {
            device->peak_bytes = held;
            device->peak_s =
                seep_sites_bucket_end_s(i, clock->width_log2, clock->end_tick);
        }
    }
}

static void fill(struct seep_report_build *build, struct work *work,
                 struct seep_report_device *device)
{
    double begin_s = build->report.begin.from_s;
    double end_s = build->report.duration_s;
    double from_s = seep_window_time_at(begin_s, end_s, SEEP_WINDOW_SETTLE);

    memset(&work->series, 0, sizeof(work->series));
    read_samples(build, device->ordinal, work);
    build->devices[device->ordinal].is_followed =
        seep_balance_covers(&work->series.used, FOLLOWED_MIN, from_s, end_s);
    close_series(build, &work->series, device);
    fill_device(&work->series, begin_s, end_s, device);
    find_peak(build, device);
}

/* @return how many devices the driver told of */
static size_t list_devices(struct seep_report_build *build, struct work *work,
                           struct seep_report_device *devices)
{
    const struct seep_view *view = &build->snapshot.view;
    size_t count = 0;

    for (uint32_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        struct seep_report_device *device = &devices[count];

        build->devices[i].cache_first = build->clock.count;
        *device = (struct seep_report_device){
            .ordinal = i,
            .forecast = SEEP_FORECAST_NONE,
        };
        if (i < view->device_count &&
            pick_samples(&build->clock,
                         &view->devices[(size_t)i * SEEP_BUCKET_COUNT], device,
                         work->samples[i]) > 0) {
            build->device_of[i] = device;
            count++;
        }
    }
    return count;
}

int seep_report_add_devices(struct seep_report_build *build)
{
    struct work *work = calloc(1, sizeof(*work));
    struct seep_report_device *devices = NULL;
    size_t count = work == NULL ? 0 : list_devices(build, work, work->devices);

    if (work != NULL) {
        devices = seep_store_take(&build->store, count, sizeof(*devices));
    }
    if (devices == NULL) {
        free(work);
        return -ENOMEM;
    }
    memcpy(devices, work->devices, count * sizeof(*devices));
    for (size_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        if (build->device_of[i] != NULL) {
            build->device_of[i] =
                devices + (build->device_of[i] - work->devices);
        }
    }
    build->report.devices = devices;
    build->report.device_count = count;
    if (count > 0) {
        add_late(build, work);
    }
    for (size_t i = 0; i < build->report.device_count; i++) {
        fill(build, work, &devices[i]);
    }
    free(work);
    return 0;
}
