/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When is memory exhausted if all goes on as it went? Headroom over a rate,
 * with the ends of its interval: of a process, of a device, of a family.
 *
 * Invariant: what does not grow for certain reaches no limit, and the interval
 * holds the estimate.
 */
#include <math.h>
#include <string.h>

#include "reader/judge/family.h"
#include "reader/judge/verdict.h"

static double headroom_of(uint64_t limit_bytes, uint64_t used_bytes)
{
    return used_bytes >= limit_bytes ? 0 : (double)(limit_bytes - used_bytes);
}

/* No growth that could be told from none reaches a limit. */
static bool is_growing(const struct seep_interval *rate)
{
    return isfinite(rate->estimate) && rate->estimate > 0 &&
           isfinite(rate->low) && isfinite(rate->high) &&
           rate->high >= rate->estimate && rate->low <= rate->estimate;
}

static struct seep_report_forecast
forecast_of(const struct seep_forecast_limit *limit,
            enum seep_forecast_basis basis)
{
    const struct seep_interval *rate = &limit->bytes_per_s;
    double headroom = headroom_of(limit->limit_bytes, limit->used_bytes);
    struct seep_report_forecast forecast = {
        .answer = SEEP_FORECAST_NEVER,
        .what = limit->what,
        .limit_bytes = limit->limit_bytes,
        .used_bytes = limit->used_bytes,
        .device = -1,
    };

    if (!is_growing(rate) || !isfinite(headroom / rate->estimate)) {
        return forecast;
    }
    forecast.answer = SEEP_FORECAST_TIME;
    forecast.if_suspect = basis == SEEP_FORECAST_SUSPECTED;
    forecast.bytes_per_s = rate->estimate;
    forecast.seconds.low = headroom / rate->high;
    forecast.seconds.estimate = headroom / rate->estimate;
    forecast.seconds.high = 0;
    if (headroom > 0) {
        forecast.seconds.high = rate->low > 0 ? headroom / rate->low : INFINITY;
    }
    return forecast;
}

bool seep_forecast_is_nearer(const struct seep_report_forecast *a,
                             const struct seep_report_forecast *b)
{
    if (b->answer == SEEP_FORECAST_UNKNOWN || a->answer != b->answer) {
        return a->answer > b->answer;
    }
    if (a->answer == SEEP_FORECAST_TIME) {
        return a->seconds.estimate < b->seconds.estimate;
    }
    return headroom_of(a->limit_bytes, a->used_bytes) <
           headroom_of(b->limit_bytes, b->used_bytes);
}

void seep_forecast_make(const struct seep_forecast_limit *limits, size_t count,
                        enum seep_forecast_basis basis,
                        struct seep_report_forecast *ret_forecast)
{
    struct seep_report_forecast nearest = SEEP_FORECAST_NONE;

    for (size_t i = 0; basis != SEEP_FORECAST_UNTOLD && i < count; i++) {
        if (limits[i].limit_bytes > 0) {
            struct seep_report_forecast at = forecast_of(&limits[i], basis);

            nearest = seep_forecast_is_nearer(&at, &nearest) ? at : nearest;
        }
    }
    *ret_forecast = nearest;
}

/* Of a damaged file it may be up to 2^64, which no longer fits. */
static uint64_t whole(double bytes)
{
    return bytes > 0 ? (uint64_t)fmin(bytes, 1e19) : 0;
}

/* What is available is known from external samples only; else nobody else uses
 * any. */
static struct seep_forecast_limit
ram_limit_of(const struct seep_report_memory *memory, double used_bytes)
{
    uint64_t total = memory->machine_bytes;
    uint64_t available = memory->available_bytes;

    return (struct seep_forecast_limit){
        .what = "ram",
        .limit_bytes = total,
        .used_bytes = available == 0      ? whole(used_bytes)
                      : total > available ? total - available
                                          : 0,
    };
}

/* Of what was mapped, touched or not: so it is full before memory is. */
static struct seep_forecast_limit
bound_of(const struct seep_report_bound *bound, const char *what)
{
    return (struct seep_forecast_limit){
        .what = what,
        .limit_bytes = bound->limit_bytes,
        .used_bytes = bound->used_bytes,
    };
}

/* Others are counted in what is not available. */
static bool is_of_all(const struct seep_report_forecast *forecast,
                      const struct seep_report_memory *memory)
{
    return memory->available_bytes > 0 && strcmp(forecast->what, "ram") == 0;
}

/* A bound is none that memory ends before. */
static bool fits(const struct seep_forecast_limit *limit, double left_bytes)
{
    return limit->limit_bytes == 0 || !(left_bytes > 0) ||
           (double)limit->used_bytes + left_bytes <= (double)limit->limit_bytes;
}

#define RESIDENT_COUNT 2 /* limits on what is resident: the first ones */

/*
 * What the kernel counts for a cgroup has its page cache in it, which it gives
 * back before it kills: the time to the limit is the least that it can be.
 */
void seep_forecast_of_process(const struct seep_report_memory *memory,
                              const struct seep_verdict_now *now,
                              struct seep_report_forecast *ret_forecast)
{
    struct seep_forecast_limit limits[] = {
        {
            .what = "cgroup",
            .limit_bytes =
                memory->cgroup.valid ? memory->cgroup_limit_bytes : 0,
            .used_bytes = whole(memory->cgroup.last_bytes),
        },
        ram_limit_of(memory, memory->rss.last_bytes),
        /* Of what is mapped, so that what is only used now is in it. */
        bound_of(&memory->address_space, "address-space"),
        bound_of(&memory->data, "data"),
    };
    enum seep_forecast_basis basis = now->basis;

    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        bool is_enough = fits(&limits[i], now->left_bytes) ||
                         (now->ends && i >= RESIDENT_COUNT);

        limits[i].bytes_per_s = now->bytes_per_s;
        if (now->ends && is_enough) {
            limits[i].limit_bytes = 0;
        } else if (!now->ends && !is_enough) {
            basis = SEEP_FORECAST_UNTOLD;
        }
    }
    seep_forecast_make(limits, sizeof(limits) / sizeof(*limits), basis,
                       ret_forecast);
    ret_forecast->pace = now->pace;
    ret_forecast->by_private = now->by_private && ret_forecast->device < 0;
    ret_forecast->of_all = is_of_all(ret_forecast, memory);
}

/* Of what others have in it comes and goes much. */
#define BESIDE_LEAST_BYTES (16.0 * 1024 * 1024)
#define BESIDE_FILES 0.5

/* What a fork copies is charged to it, and was resident before; what others
 * wrote to memory that it shares is its own as well, and never resident. */
static double own_slope(const struct seep_report_memory *memory,
                        double elsewhere_bytes_per_s)
{
    double copied =
        memory->forked.valid ? -memory->forked.slope_bytes_per_s : 0;

    return fmax(0, memory->rss.slope_bytes_per_s) + fmax(0, copied) +
           elsewhere_bytes_per_s;
}

void seep_forecast_add_beside(const struct seep_report_memory *memory,
                              double elsewhere_bytes_per_s, double duration_s,
                              struct seep_report_verdict *verdict)
{
    const struct seep_report_extent *held = &memory->cgroup_held;
    double beside =
        held->slope_bytes_per_s - own_slope(memory, elsewhere_bytes_per_s);
    double own_shmem =
        fmax(0, memory->shared.slope_bytes_per_s) + elsewhere_bytes_per_s;
    double least_bytes = fmax(BESIDE_LEAST_BYTES, verdict->floor_bytes);
    struct seep_forecast_limit limit = {
        .what = "cgroup",
        .limit_bytes = memory->cgroup_limit_bytes,
        .used_bytes = whole(held->last_bytes),
        .bytes_per_s =
            seep_interval_around(held->slope_bytes_per_s, held->slope_error),
    };
    struct seep_report_forecast forecast;

    if (!held->valid || memory->cgroup_limit_bytes == 0 ||
        !(beside > hypot(held->slope_error, memory->rss.slope_error)) ||
        !(beside * duration_s >= least_bytes)) {
        return;
    }
    verdict->beside_bytes_per_s = beside;
    verdict->beside_is_files =
        memory->cgroup_shmem.slope_bytes_per_s - own_shmem >=
        BESIDE_FILES * beside;
    forecast = forecast_of(&limit, SEEP_FORECAST_GROWS);
    forecast.by_others = true;
    if (forecast.answer == SEEP_FORECAST_TIME &&
        seep_forecast_is_nearer(&forecast, &verdict->forecast)) {
        verdict->forecast = forecast;
    }
}

static double least_slope(const struct seep_report_extent *extent)
{
    return extent->slope_bytes_per_s - extent->slope_error;
}

static double most_slope(const struct seep_report_extent *extent)
{
    return extent->slope_bytes_per_s + extent->slope_error;
}

/* Who has less than this of what a device grows by is not what fills it. */
#define OTHERS_SHARE 0.5

struct seep_report_forecast
seep_forecast_of_device(const struct seep_report_device *device,
                        bool is_followed, const struct seep_verdict_pace *pace)
{
    const struct seep_report_extent *used = &device->used;
    struct seep_forecast_limit limit = {
        .what = "device",
        .limit_bytes = device->total_bytes,
        .used_bytes = device->total_bytes - device->free_bytes,
    };
    enum seep_forecast_basis basis =
        is_followed ? SEEP_FORECAST_GROWS : SEEP_FORECAST_UNTOLD;
    bool by_others = false;
    struct seep_report_forecast forecast;

    if (pace->is_known &&
        !(is_followed && least_slope(used) > pace->bytes_per_s.high)) {
        basis = pace->basis;
        limit.bytes_per_s = pace->bytes_per_s;
    } else if (least_slope(used) > 0) {
        limit.bytes_per_s =
            seep_interval_around(used->slope_bytes_per_s, used->slope_error);
        by_others = most_slope(&device->tracked) <
                    OTHERS_SHARE * used->slope_bytes_per_s;
    }
    seep_forecast_make(&limit, 1, basis, &forecast);
    if (forecast.answer != SEEP_FORECAST_UNKNOWN) {
        forecast.device = (int)device->ordinal;
        forecast.by_others = by_others;
    }
    return forecast;
}

/*
 * What a family grows by together, and which limit that reaches first.
 *
 * Invariant: rates are summed against a limit only where the memory is the
 * same: that of the machine, and of a control group that all of them are in.
 * Each one's own forecast still counts: the family's is never later.
 */

/* Samples are not taken at one time: what one group uses may differ by. */
#define SAME_SHARE 0.1
#define SAME_BYTES (64.0 * 1024 * 1024)

static bool grows(const struct seep_report_verdict *verdict)
{
    switch (verdict->class) {
    case SEEP_VERDICT_LEAK:
    case SEEP_VERDICT_UNEXPLAINED:
    case SEEP_VERDICT_FRAGMENTATION:
    case SEEP_VERDICT_RETENTION:
    case SEEP_VERDICT_SUSPECT:
        return verdict->has_growth &&
               isfinite(verdict->growth_bytes_per_s.low +
                        verdict->growth_bytes_per_s.high);
    default:
        return false;
    }
}

/* What is only suspected counts where nothing is known. */
static bool is_summed(const struct seep_family *family,
                      const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;

    return grows(verdict) && (verdict->device >= 0) == family->on_devices &&
           (family->worst->verdict.class == SEEP_VERDICT_SUSPECT ||
            verdict->class != SEEP_VERDICT_SUSPECT);
}

/* A report keeps when the limit is reached, not the rate of now that it was
 * made of: the two are each other's. Else the mean of the run is the rate. */
static struct seep_interval rate_now(const struct seep_report *report)
{
    const struct seep_report_forecast *forecast = &report->verdict.forecast;
    double headroom = headroom_of(forecast->limit_bytes, forecast->used_bytes);
    struct seep_interval rate = report->verdict.growth_bytes_per_s;

    if (forecast->answer == SEEP_FORECAST_NEVER && forecast->device < 0) {
        return (struct seep_interval){0, 0, 0};
    }
    if (forecast->answer != SEEP_FORECAST_TIME || forecast->device >= 0 ||
        forecast->by_others || !(headroom > 0) ||
        !(forecast->seconds.estimate > 0) || !(forecast->seconds.low > 0)) {
        return rate;
    }
    rate.estimate = headroom / forecast->seconds.estimate;
    rate.high = headroom / forecast->seconds.low;
    rate.low = isfinite(forecast->seconds.high)
                   ? headroom / forecast->seconds.high
                   : fmin(0, 2 * rate.estimate - rate.high);
    return rate;
}

static double private_of(const struct seep_report_memory *memory)
{
    return (memory->anonymous.valid ? memory->anonymous.last_bytes : 0) +
           (memory->swap.valid ? memory->swap.last_bytes : 0);
}

static const struct seep_report *latest_of(const struct seep_family *family)
{
    const struct seep_report *latest = family->together[0];

    for (size_t i = 1; i < family->together_count; i++) {
        if (seep_family_end_s(family->together[i]) >
            seep_family_end_s(latest)) {
            latest = family->together[i];
        }
    }
    return latest;
}

/* One group is charged with what all of them hold; a group each, with what one
 * of them does. */
static bool shares_cgroup(const struct seep_family *family)
{
    const struct seep_report_memory *first = &family->together[0]->memory;
    double least = INFINITY;
    double most = 0;
    double private = 0;

    for (size_t i = 0; i < family->together_count; i++) {
        const struct seep_report_memory *memory = &family->together[i]->memory;

        if (!memory->cgroup.valid || memory->cgroup_limit_bytes == 0 ||
            memory->cgroup_limit_bytes != first->cgroup_limit_bytes) {
            return false;
        }
        least = fmin(least, memory->cgroup.last_bytes);
        most = fmax(most, memory->cgroup.last_bytes);
        private += private_of(memory);
    }
    return most - least <= fmax(SAME_BYTES, SAME_SHARE * most) &&
           private * (1 - SAME_SHARE) <= most;
}

static struct seep_forecast_limit cgroup_of(const struct seep_family *family)
{
    double used = 0;

    if (!family->shares_cgroup) {
        return (struct seep_forecast_limit){.what = "cgroup"};
    }
    for (size_t i = 0; i < family->together_count; i++) {
        used = fmax(used, family->together[i]->memory.cgroup.last_bytes);
    }
    return (struct seep_forecast_limit){
        .what = "cgroup",
        .limit_bytes = family->together[0]->memory.cgroup_limit_bytes,
        .used_bytes = whole(used),
    };
}

/* Where no external sample has what is available, it is what they hold. */
static struct seep_forecast_limit machine_of(const struct seep_family *family)
{
    double used = 0;
    double shared = 0;

    for (size_t i = 0; i < family->together_count; i++) {
        const struct seep_report_memory *one = &family->together[i]->memory;
        double here = one->shared.valid ? one->shared.last_bytes : 0;

        used += one->rss.last_bytes - here;
        shared = fmax(shared, here);
    }
    return ram_limit_of(&latest_of(family)->memory, used + shared);
}

/* @return false: nobody's rate is known */
static bool sum_now(const struct seep_family *family,
                    struct seep_interval *ret_rate)
{
    struct seep_interval sum = {0};
    bool is_known = false;

    for (size_t i = 0; i < family->together_count; i++) {
        const struct seep_report *report = family->together[i];

        /* Nothing need be full by what is mapped of files. */
        if (is_summed(family, report) && !report->verdict.files) {
            struct seep_interval rate = rate_now(report);

            seep_family_add_rate(&sum, &rate);
            is_known = true;
        }
    }
    seep_family_finish_rate(&sum);
    *ret_rate = sum;
    return is_known;
}

static bool counts(const struct seep_family *family,
                   const struct seep_report_forecast *forecast)
{
    return forecast->answer == SEEP_FORECAST_TIME &&
           (!forecast->if_suspect ||
            family->worst->verdict.class == SEEP_VERDICT_SUSPECT);
}

static void add_forecast(struct seep_family *family)
{
    bool is_suspect = family->worst->verdict.class == SEEP_VERDICT_SUSPECT;
    struct seep_forecast_limit limits[] = {
        cgroup_of(family),
        machine_of(family),
    };
    struct seep_interval rate;
    bool is_known = sum_now(family, &rate) && !family->on_devices;

    limits[0].bytes_per_s = limits[1].bytes_per_s = rate;
    seep_forecast_make(limits, sizeof(limits) / sizeof(*limits),
                       !is_known    ? SEEP_FORECAST_UNTOLD
                       : is_suspect ? SEEP_FORECAST_SUSPECTED
                                    : SEEP_FORECAST_GROWS,
                       &family->forecast);
    family->forecast.of_all =
        is_of_all(&family->forecast, &latest_of(family)->memory);
    for (size_t i = 0; i < family->together_count; i++) {
        const struct seep_report_forecast *one =
            &family->together[i]->verdict.forecast;

        if (counts(family, one) &&
            seep_forecast_is_nearer(one, &family->forecast)) {
            family->forecast = *one;
        }
    }
}

void seep_family_add_growth(struct seep_family *family)
{
    family->forecast = SEEP_FORECAST_NONE;
    family->on_devices = family->worst->verdict.device >= 0;
    if (family->together_count == 0) {
        return;
    }
    family->shares_cgroup = shares_cgroup(family);
    for (size_t i = 0; i < family->together_count; i++) {
        const struct seep_report *report = family->together[i];

        if (is_summed(family, report)) {
            family->growing_count++;
            seep_family_add_rate(&family->growth_bytes_per_s,
                                 &report->verdict.growth_bytes_per_s);
        }
    }
    family->has_growth = family->growing_count > 0;
    seep_family_finish_rate(&family->growth_bytes_per_s);
    add_forecast(family);
}
