/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PyTorch takes device memory in segments and hands tensors out of them. A
 * segment is charged to whoever missed the cache, so where tensors are recorded
 * too its growth is theirs, or the cache's own: it falls to pieces.
 *
 * Invariant: the growth of a cache counts once at most: as that of the tensors
 * in it, or as its own. Where tensors are not recorded nothing is marked here,
 * and where neither holds segments stay what they were judged.
 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "reader/judge/sites.h"
#include "reader/symbols/where.h"

/* Of the growth of the segments, that the tensors must have to be its cause,
 * or not have for the cache to be it. */
#define CAUSE_SHARE 0.5
/* Of the growth of a device, that is the cache's where no frame tells: the
 * cache tells of a segment only once it has handed out a part of it. */
#define FOLLOWS_SHARE 0.75

/* One device at work. */
struct cache {
    const struct seep_clock *clock;
    const struct seep_device_live *live;
    struct seep_report_site *sites;
    size_t count;
    int ordinal;
    double segments;   /* bytes per second that their rows grow by */
    double tensors;    /* the same of tensors */
    bool tensors_leak; /* one of them is judged a leak, and is counted */
    double leak;       /* of segments, what was judged a leak */
    double leak_squares;
    struct seep_window_slope reserved; /* of the whole cache */
    struct seep_window_slope allocated;
    struct seep_window_slope demanded; /* the same when the driver was asked */
};

static bool has_name(const struct seep_report_frame *frame)
{
    static const char *const names[] = {
        "CUDACachingAllocator",
        "ExpandableSegment",
        "cudaMallocMaybeCapturing",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strstr(frame->function, names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* By name, or by the object that asked the runtime: without symbols, too. */
static bool is_of_allocator(const struct seep_report_site *site)
{
    bool is_inside = true;

    for (size_t i = 0; i < site->frame_count; i++) {
        const struct seep_report_frame *frame = site->frames[i];

        if (has_name(frame)) {
            return true;
        }
        if (is_inside && !frame->python &&
            !seep_where_is_plumbing(frame->module)) {
            if (seep_where_is_cache_of_tensors(frame->module)) {
                return true;
            }
            is_inside = false;
        }
    }
    return false;
}

static bool is_in(const struct cache *cache,
                  const struct seep_report_site *site, enum seep_space space)
{
    return site->space == space && site->device == cache->ordinal;
}

static double growth_of(const struct seep_clock *clock, const double *values,
                        uint32_t first)
{
    return clock->count > 0 ? values[clock->count - 1] - values[first] : 0;
}

/* No stack has the allocator's frames: does what the cache says of itself
 * account for what the device holds? */
static bool follows(const struct cache *cache)
{
    const struct seep_clock *clock = cache->clock;
    const struct seep_device_live *live = cache->live;
    uint32_t begin = (uint32_t)(clock->begin_tick >> clock->width_log2);
    uint32_t first =
        begin + (uint32_t)(SEEP_WINDOW_SETTLE * (clock->count - begin));
    double device;

    if (live->cache_first >= clock->count) {
        return false;
    }
    first = first > live->cache_first ? first : live->cache_first;
    device = growth_of(clock, live->device, first);
    return device > 0 &&
           growth_of(clock, live->reserved, first) >= FOLLOWS_SHARE * device;
}

static bool find_segments(struct cache *cache)
{
    bool found = false;

    for (size_t i = 0; i < cache->count; i++) {
        struct seep_report_site *site = &cache->sites[i];

        if (is_in(cache, site, SEEP_SPACE_DEVICE) && is_of_allocator(site)) {
            site->backs_tensors = true;
            found = true;
        }
    }
    if (found || !follows(cache)) {
        return found;
    }
    for (size_t i = 0; i < cache->count; i++) {
        cache->sites[i].backs_tensors |=
            is_in(cache, &cache->sites[i], SEEP_SPACE_DEVICE);
    }
    return true;
}

/* What was suppressed stays as it is; of tensors it is a cause all the same. */
static bool is_segment(const struct cache *cache,
                       const struct seep_report_site *site)
{
    return is_in(cache, site, SEEP_SPACE_DEVICE) && site->backs_tensors &&
           site->suppressed_by == NULL;
}

static void add_up(struct cache *cache)
{
    for (size_t i = 0; i < cache->count; i++) {
        const struct seep_report_site *site = &cache->sites[i];
        const struct seep_interval *rate = &site->growth_bytes_per_s;

        if (!site->has_growth || !seep_class_grows(site->class)) {
            continue;
        }
        if (is_in(cache, site, SEEP_SPACE_TENSOR)) {
            cache->tensors += rate->estimate;
            cache->tensors_leak |=
                site->class == SEEP_CLASS_LEAK && site->suppressed_by == NULL;
        } else if (is_segment(cache, site)) {
            cache->segments += rate->estimate;
            if (site->class == SEEP_CLASS_LEAK) {
                double half = (rate->high - rate->low) / 2;

                cache->leak += rate->estimate;
                cache->leak_squares += half * half;
            }
        }
    }
}

static struct seep_window_slope slope_of(const struct cache *cache,
                                         const double *values, uint32_t first)
{
    const struct seep_clock *clock = cache->clock;
    double from_s = seep_clock_time_at(clock, SEEP_WINDOW_SETTLE);
    double end_s = seep_clock_time_at(clock, 1);
    struct seep_window_series series;

    seep_clock_series(clock, values, first, &series);
    return seep_window_slope_of(&series, from_s, end_s);
}

static bool is_cause(const struct seep_window_slope *slope, double growth)
{
    return slope->valid && slope->per_s >= CAUSE_SHARE * growth;
}

/* Also at the peaks of a request, when the cache takes more: a cache that peaks
 * make grow does not fall to pieces. */
static bool is_still(const struct cache *cache, double growth)
{
    return cache->tensors < CAUSE_SHARE * growth &&
           !is_cause(&cache->allocated, growth) &&
           !is_cause(&cache->demanded, growth);
}

/* All of the cache grows, by what is worth a verdict, and its tensors do not:
 * also where segments are too few to judge. */
static bool grows_alone(const struct cache *cache, uint64_t live_bytes)
{
    return cache->reserved.valid &&
           cache->reserved.per_s > cache->reserved.error &&
           cache->reserved.growth_bytes >= seep_sites_floor_bytes(live_bytes) &&
           is_still(cache, cache->reserved.per_s);
}

static void take_back(struct cache *cache, const char *reason)
{
    for (size_t i = 0; i < cache->count; i++) {
        struct seep_report_site *site = &cache->sites[i];

        if (is_segment(cache, site) && site->has_growth &&
            seep_class_grows(site->class)) {
            site->class = SEEP_CLASS_BACKING;
            site->class_reason = reason;
        }
    }
}

/* @return what the cache grows by of itself */
static struct seep_interval mark(struct cache *cache, uint64_t live_bytes)
{
    struct seep_interval none = {0, 0, 0};
    bool alone;

    if (!find_segments(cache)) {
        return none;
    }
    add_up(cache);
    cache->reserved =
        slope_of(cache, cache->live->reserved, cache->live->cache_first);
    cache->allocated = slope_of(cache, cache->live->tensors, 0);
    cache->demanded =
        slope_of(cache, cache->live->allocated, cache->live->cache_first);
    alone = grows_alone(cache, live_bytes);
    if (alone || (cache->leak > 0 && is_still(cache, cache->segments))) {
        take_back(
            cache,
            "PyTorch's cache takes ever more segments, but the tensors in it do not grow");
        return alone ? seep_interval_around(cache->reserved.per_s,
                                            cache->reserved.error)
                     : seep_interval_around(cache->leak,
                                            sqrt(cache->leak_squares));
    }
    if (cache->tensors_leak ||
        (cache->tensors > 0 &&
         cache->tensors >= CAUSE_SHARE * cache->segments)) {
        take_back(
            cache,
            "segments of PyTorch's cache: they grow with the tensors in them");
    }
    return none;
}

void seep_cache_mark(const struct seep_clock *clock,
                     const struct seep_device_live *devices,
                     const uint64_t *live_bytes, struct seep_report_site *sites,
                     size_t count, struct seep_interval *ret_growth)
{
    for (int i = 0; i < (int)SEEP_DEVICES_MAX; i++) {
        struct cache cache = {
            .clock = clock,
            .live = &devices[i],
            .sites = sites,
            .count = count,
            .ordinal = i,
        };

        if (devices[i].has_tensors) {
            ret_growth[i] =
                mark(&cache, live_bytes[SEEP_PLACE_DEVICE + (unsigned)i]);
        }
    }
}
