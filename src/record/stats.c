/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process's own figures; see stats.h.
 *
 * What all shards handed out and took back in each bucket is there already;
 * what of it lies on a device is taken off by the series of such sites, which
 * are few. Figures of one moment are read one by one: each is true of a moment
 * close by.
 */
#include "record/stats.h"

#include <string.h>

#include "base/word.h"
#include "format/series.h"

#define GROWTH_BUCKETS_MIN 8U

/* By bucket of the grid that @tick is on: what came less what went. */
struct net {
    double bytes[SEEP_BUCKET_COUNT];
    uint32_t width_log2;
};

static uint32_t load32(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* A narrower grid's buckets fall into those of the common one as a whole. */
static void add(struct net *net, uint32_t bucket, uint32_t width_log2,
                int64_t bytes)
{
    uint32_t shift =
        width_log2 < net->width_log2 ? net->width_log2 - width_log2 : 0;

    net->bytes[bucket >> (shift < 31 ? shift : 31)] += (double)bytes;
}

static void add_shards(struct net *net, const struct seep_view *view)
{
    for (uint32_t i = 0; i < view->shard_count; i++) {
        struct seep_rec_shard *shard = &view->shards[i];
        uint32_t width = load32(&shard->flow_width_log2);

        for (uint32_t j = 0; j < SEEP_BUCKET_COUNT; j++) {
            add(net, j, width,
                (int64_t)(seep_word_load(&shard->flow[j].allocated_bytes) -
                          seep_word_load(&shard->flow[j].freed_bytes)));
        }
    }
}

static bool is_on_host(uint32_t space)
{
    return space == SEEP_SPACE_HEAP || space == SEEP_SPACE_MAPPED ||
           space == SEEP_SPACE_PYTHON || space == SEEP_SPACE_PINNED ||
           space == SEEP_SPACE_MANAGED;
}

static void subtract_series(struct net *net, struct seep_rec_series *series)
{
    uint32_t width = load32(&series->width_log2);

    add(net, load32(&series->first_tick) >> (width & 31) & 127, width,
        -(int64_t)seep_word_load(&series->base_bytes));
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        add(net, i, width,
            (int64_t)(seep_word_load(&series->buckets[i].freed_bytes) -
                      seep_word_load(&series->buckets[i].allocated_bytes)));
    }
}

static void subtract_devices(struct net *net, const struct seep_view *view)
{
    uint32_t count = load32(&view->header->series_count);

    for (uint32_t i = 0; i < count && i < view->series_capacity; i++) {
        struct seep_rec_series *series = &view->series[i];
        uint32_t site = load32(&series->site);

        if (site != 0 && site < view->site_capacity &&
            !is_on_host(view->sites[site].space)) {
            subtract_series(net, series);
        }
    }
}

/* The slope of what was live at the ends of the later half's buckets. */
static void fit(const struct net *net, uint32_t tick,
                struct seep_stats_figures *figures)
{
    uint32_t count = (tick >> net->width_log2) + 1;
    uint32_t from = count / 2;
    double n = 0, x_sum = 0, y_sum = 0, xx_sum = 0, xy_sum = 0;
    double live = 0;

    count = count < SEEP_BUCKET_COUNT ? count : SEEP_BUCKET_COUNT;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = (uint64_t)(i + 1) << net->width_log2;
        double x = (double)(end < tick ? end : tick);

        live += net->bytes[i];
        if (i >= from) {
            n++;
            x_sum += x;
            y_sum += live;
            xx_sum += x * x;
            xy_sum += x * live;
        }
    }
    figures->live_bytes = live > 0 ? (uint64_t)live : 0;
    if (n >= GROWTH_BUCKETS_MIN && n * xx_sum > x_sum * x_sum) {
        figures->has_growth = true;
        figures->growth_bytes_per_s =
            (n * xy_sum - x_sum * y_sum) / (n * xx_sum - x_sum * x_sum) * 1e9 /
            (double)(UINT64_C(1) << SEEP_TICK_LOG2_NS);
    }
}

static void add_moment(const struct seep_view *view,
                       struct seep_stats_figures *figures)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        struct seep_rec_moment *moment = &view->timeline[i];
        uint64_t tick = seep_word_load(&moment->tick);

        if (tick < last || tick == 0) {
            continue;
        }
        last = tick;
        figures->rss_bytes = seep_word_load(&moment->rss_bytes);
        /* Asked more rarely: 0 in between. */
        if (seep_word_load(&moment->cgroup_bytes) != 0) {
            figures->cgroup_bytes = seep_word_load(&moment->cgroup_bytes);
            figures->cgroup_limit_bytes =
                seep_word_load(&moment->cgroup_limit_bytes);
        }
    }
}

static void add_device(struct seep_rec_device *moments,
                       struct seep_stats_figures *figures)
{
    struct seep_rec_device *last = NULL;

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        if (seep_word_load(&moments[i].tick) != 0 &&
            (last == NULL ||
             seep_word_load(&moments[i].tick) >= seep_word_load(&last->tick))) {
            last = &moments[i];
        }
    }
    if (last != NULL &&
        (figures->device_total_bytes == 0 ||
         seep_word_load(&last->free_bytes) < figures->device_free_bytes)) {
        figures->device_total_bytes = seep_word_load(&last->total_bytes);
        figures->device_free_bytes = seep_word_load(&last->free_bytes);
    }
}

void seep_stats_take(const struct seep_view *view, uint32_t tick,
                     struct seep_stats_figures *ret_figures)
{
    struct net net = {.width_log2 = seep_series_width_for(tick)};

    memset(ret_figures, 0, sizeof(*ret_figures));
    add_shards(&net, view);
    subtract_devices(&net, view);
    fit(&net, tick, ret_figures);
    add_moment(view, ret_figures);
    for (uint32_t i = 0; i < view->device_count; i++) {
        add_device(&view->devices[(size_t)i * SEEP_BUCKET_COUNT], ret_figures);
    }
    ret_figures->units = seep_word_load(&view->header->progress_units);
}
