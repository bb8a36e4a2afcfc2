/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a process held over time; see vitals_parts.h.
 *
 * What all shards handed out and took back in each bucket is there already;
 * what of it is no memory of the host is taken off by the series of such
 * sites, which are few. The slope and its interval are those of the report.
 *
 * Invariant: whatever a damaged file says, figures are finite.
 */
#include <math.h>
#include <string.h>

#include "base/word.h"
#include "format/series.h"
#include "reader/vitals_parts.h"
#include "reader/window.h"

#define SETTLE_SHARE                                        \
    0.2 /* start-up, which the report does not judge either \
         */
#define WIDTH_MAX 31U

static uint32_t load32(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

double seep_vitals_seconds(double ticks)
{
    return ticks * (double)(UINT64_C(1) << SEEP_TICK_LOG2_NS) / 1e9;
}

bool seep_vitals_is_on_host(uint32_t space)
{
    return space == SEEP_SPACE_HEAP || space == SEEP_SPACE_MAPPED ||
           space == SEEP_SPACE_PYTHON || space == SEEP_SPACE_PINNED ||
           space == SEEP_SPACE_MANAGED;
}

int seep_vitals_device_of(const struct seep_rec_site *site)
{
    return site->space == SEEP_SPACE_DEVICE && site->device > 0 &&
                   site->device <= SEEP_DEVICES_MAX
               ? (int)site->device - 1
               : -1;
}

/* Bucket @from of a grid of @width_log2 in that of the run; what is beyond it
 * is of a damaged file, or of this very moment. */
static uint32_t bucket_of(const struct seep_vitals_series *series,
                          uint32_t from, uint32_t width_log2)
{
    uint64_t bucket = (uint64_t)from << width_log2 >> series->width_log2;

    return bucket < series->count ? (uint32_t)bucket : series->count - 1;
}

static double difference(const _Atomic uint64_t *more,
                         const _Atomic uint64_t *less)
{
    return (double)(int64_t)(seep_word_load(more) - seep_word_load(less));
}

static void add_shards(struct seep_vitals_series *series,
                       const struct seep_view *view)
{
    for (uint32_t i = 0; i < view->shard_count; i++) {
        const struct seep_rec_shard *shard = &view->shards[i];
        uint32_t width = load32(&shard->flow_width_log2) & WIDTH_MAX;

        for (uint32_t j = 0; j < SEEP_BUCKET_COUNT; j++) {
            series->host[bucket_of(series, j, width)] += difference(
                &shard->flow[j].allocated_bytes, &shard->flow[j].freed_bytes);
        }
    }
}

/* Moves what came and went at a site of a device from the host to it. */
static void move(struct seep_vitals_series *series, int device, uint32_t bucket,
                 double bytes)
{
    series->host[bucket] -= bytes;
    if (device >= 0) {
        series->devices[device][bucket] += bytes;
    }
}

static void move_series(struct seep_vitals_series *series, int device,
                        const struct seep_rec_series *from)
{
    uint32_t width = load32(&from->width_log2) & WIDTH_MAX;

    move(series, device,
         bucket_of(series, load32(&from->first_tick) >> width, width),
         (double)(int64_t)seep_word_load(&from->base_bytes));
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        move(series, device, bucket_of(series, i, width),
             difference(&from->buckets[i].allocated_bytes,
                        &from->buckets[i].freed_bytes));
    }
}

static void move_site(struct seep_vitals_series *series,
                      const struct seep_vitals_copy *copy,
                      const struct seep_vitals_site *site)
{
    if (site->series != 0 && seep_vitals_copy_series(copy, site->series - 1)) {
        move_series(series, site->device, &copy->view.series[site->series - 1]);
    } else {
        move(series, site->device, bucket_of(series, site->first_tick, 0),
             site->live_bytes);
    }
    move(series, site->device, bucket_of(series, site->pending_tick, 0),
         site->pending_bytes);
}

static void cumulate(double *net, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        net[i] += net[i - 1];
    }
}

void seep_vitals_sum(const struct seep_vitals_copy *copy, uint64_t end_tick,
                     struct seep_vitals_series *ret_series)
{
    memset(ret_series, 0, sizeof(*ret_series));
    ret_series->width_log2 = seep_series_width_for(end_tick);
    ret_series->count = (uint32_t)(end_tick >> ret_series->width_log2) + 1;
    ret_series->end_tick = end_tick;
    add_shards(ret_series, &copy->view);
    for (size_t i = 0; i < copy->other_count; i++) {
        move_site(ret_series, copy, &copy->others[i]);
    }
    cumulate(ret_series->host, ret_series->count);
    for (uint32_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        cumulate(ret_series->devices[i], ret_series->count);
    }
}

struct seep_vitals_growth
seep_vitals_growth_of(const struct seep_vitals_series *series,
                      const double *live, double unseen_bytes)
{
    struct seep_vitals_growth growth = {.known = false};
    struct seep_window_series window = {.count = 0};
    double end_s = seep_vitals_seconds((double)series->end_tick);
    struct seep_window_slope slope;
    double error;

    for (uint32_t i = 0; i < series->count; i++) {
        double ticks = fmin((double)((uint64_t)(i + 1) << series->width_log2),
                            (double)series->end_tick);

        seep_window_add(&window, seep_vitals_seconds(ticks), live[i]);
    }
    slope = seep_window_slope_of(&window, SETTLE_SHARE * end_s, end_s);
    if (slope.valid && end_s >= SEEP_VITALS_GROWTH_S) {
        error = slope.error + unseen_bytes / (end_s - SETTLE_SHARE * end_s);
        growth.known = true;
        growth.bytes_per_s = (struct seep_interval){
            slope.per_s, slope.per_s - error, slope.per_s + error};
    }
    return growth;
}
