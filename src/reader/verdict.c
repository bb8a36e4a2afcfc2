/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See verdict.h. */
#include "reader/verdict.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "reader/verdict_counts.h"

#define OUTSIDE_P 0.001
#define OUTSIDE_BYTES (1024.0 * 1024.0)
#define OUTSIDE_SHARE 0.02 /* of resident memory */
/* What has stopped must be more to be worth a word. */
#define STOPPED_BYTES (4 * 1024.0 * 1024.0)
#define STOPPED_SHARE 0.05
/* Blocks are rounded up, and rest on pages: so much beside them is theirs. */
#define ROUNDING_SHARE 0.5
#define MOSTLY 0.5

static const char *const verdict_names[SEEP_VERDICT_COUNT] = {
#define VERDICT_NAME(symbol, name) name,
    SEEP_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
};

const char *seep_verdict_name(enum seep_verdict_class class)
{
    return (unsigned)class < SEEP_VERDICT_COUNT ? verdict_names[class] : "";
}

static struct seep_interval around(double estimate, double squares)
{
    double half = sqrt(squares);

    return (struct seep_interval){estimate, estimate - half, estimate + half};
}

/* The ordinal of the device that all of @tally is about; -1: of none. */
static int device_of(const struct seep_verdict_tally *tally)
{
    for (unsigned i = 0; i < SEEP_DEVICES_MAX; i++) {
        if (tally->count > 0 &&
            tally->parts[SEEP_PLACE_DEVICE + i].count == tally->count) {
            return (int)i;
        }
    }
    return -1;
}

static struct seep_verdict_now now_of(const struct seep_verdict_tally *tally,
                                      enum seep_forecast_basis basis)
{
    const struct seep_verdict_part *part = &tally->parts[SEEP_PLACE_HOST];
    struct seep_verdict_now now = {
        .basis = basis,
        .bytes_per_s = around(part->now, part->now_squares),
    };

    for (unsigned i = 0; i < SEEP_DEVICES_MAX; i++) {
        part = &tally->parts[SEEP_PLACE_DEVICE + i];
        now.devices[i] = (struct seep_verdict_pace){
            .told = part->count > 0,
            .basis = basis,
            .bytes_per_s = around(part->now, part->now_squares),
        };
    }
    return now;
}

/* @return what the class is about, now */
static struct seep_verdict_now tell(struct seep_report_verdict *verdict,
                                    enum seep_verdict_class class,
                                    const struct seep_verdict_tally *tally,
                                    enum seep_forecast_basis basis)
{
    verdict->class = class;
    verdict->reason = tally->reason;
    verdict->growing_count = tally->count;
    verdict->device = device_of(tally);
    snprintf(verdict->first_id, sizeof(verdict->first_id), "%s", tally->id);
    verdict->has_growth = tally->estimate > 0;
    if (verdict->has_growth) {
        verdict->growth_bytes_per_s = around(tally->estimate, tally->squares);
        verdict->first_share = fmax(0, fmin(1, tally->first / tally->estimate));
        verdict->has_growth_per_unit = tally->unit_count > 0;
        verdict->growth_bytes_per_unit =
            around(tally->unit_estimate, tally->unit_squares);
    }
    return now_of(tally, basis);
}

/*
 * The trend test alone takes one random walk of ten for growth that goes on;
 * with an interval that must be above 0 it is 1.8 of 100 (simulated), and noise
 * around a level none of 4,000.
 */
static bool grows_outside(const struct seep_balance_outside *outside,
                          const struct seep_verdict_tally *suspect)
{
    double least = fmax(OUTSIDE_BYTES, OUTSIDE_SHARE * outside->rss_bytes) +
                   outside->error_bytes;

    return outside->known && outside->p <= OUTSIDE_P && outside->going_on &&
           outside->growth_bytes >= least &&
           outside->growth_bytes >= ROUNDING_SHARE * outside->tracked_bytes &&
           outside->bytes_per_s.low > 0 &&
           outside->bytes_per_s.estimate > suspect->parts[SEEP_PLACE_HOST].low;
}

/* It rose, stays, and no block needs it, not even at times. */
static bool was_kept(const struct seep_balance_outside *outside)
{
    double least = fmax(STOPPED_BYTES, STOPPED_SHARE * outside->rss_bytes) +
                   outside->error_bytes;

    return outside->known && outside->has_overhead &&
           outside->rise_bytes >= least &&
           outside->tracked_rise_bytes < MOSTLY * outside->rise_bytes &&
           outside->overhead_bytes >= MOSTLY * outside->rise_bytes;
}

static void tell_kept(struct seep_report_verdict *verdict,
                      enum seep_balance_free free, bool grows)
{
    if (free == SEEP_BALANCE_FREE_SCATTERED) {
        verdict->class = SEEP_VERDICT_FRAGMENTATION;
        verdict->reason =
            grows ? "live blocks lie scattered over ever more pages that they "
                    "do not fill"
                  : "live blocks lie scattered over pages that they do not "
                    "fill; it no longer grows";
        return;
    }
    verdict->class = SEEP_VERDICT_RETENTION;
    verdict->reason =
        grows ? "the allocator keeps ever more memory that no live block uses"
              : "the allocator keeps memory that no live block uses any more; "
                "it no longer grows";
}

static struct seep_verdict_now
tell_outside(struct seep_report_verdict *verdict,
             const struct seep_balance_outside *outside)
{
    struct seep_verdict_now now = {
        .basis = SEEP_FORECAST_GROWS,
        .bytes_per_s = outside->bytes_per_s,
    };

    verdict->has_growth = true;
    verdict->growth_bytes_per_s = outside->bytes_per_s;
    if (outside->has_overhead &&
        outside->overhead_growth_bytes >= MOSTLY * outside->growth_bytes) {
        tell_kept(verdict, outside->free, true);
        return now;
    }
    verdict->class = SEEP_VERDICT_UNEXPLAINED;
    verdict->reason =
        outside->has_overhead
            ? "resident memory grows, and neither live blocks nor the "
              "allocator account for it"
            : "resident memory grows and live blocks do not; what the "
              "allocator keeps is not known";
    return now;
}

/* The cache that grows most while its tensors do not; -1: none does. */
static int find_cache(const struct seep_verdict_input *input)
{
    int found = -1;
    double most = 0;

    for (int i = 0; i < (int)SEEP_DEVICES_MAX; i++) {
        if (input->caches[i].estimate > most) {
            most = input->caches[i].estimate;
            found = i;
        }
    }
    return found;
}

static struct seep_verdict_now
tell_cache(struct seep_report_verdict *verdict,
           const struct seep_verdict_input *input, int device)
{
#define CACHE_REASON(ordinal)                                              \
    "PyTorch's cache of GPU " #ordinal " takes ever more memory, and the " \
    "tensors in it do not grow"
    static const char *const reasons[] = {
        CACHE_REASON(0), CACHE_REASON(1), CACHE_REASON(2), CACHE_REASON(3),
        CACHE_REASON(4), CACHE_REASON(5), CACHE_REASON(6), CACHE_REASON(7),
    };
#undef CACHE_REASON
    static_assert(sizeof(reasons) / sizeof(*reasons) == SEEP_DEVICES_MAX,
                  "a reason each");

    verdict->class = SEEP_VERDICT_FRAGMENTATION;
    verdict->reason = reasons[device];
    verdict->device = device;
    verdict->has_growth = true;
    verdict->growth_bytes_per_s = input->caches[device];
    return (struct seep_verdict_now){.basis = SEEP_FORECAST_GROWS};
}

/* Of a leak of a few sampling intervals no block may have been sampled: to be
 * steady the process must not grow by more than is known of. */
static bool grows_untold(const struct seep_verdict_input *input,
                         const struct seep_verdict_counts *counts,
                         double floor_bytes)
{
    double known =
        fmax(0, counts->minor.parts[SEEP_PLACE_HOST].estimate +
                    counts->suppressed.parts[SEEP_PLACE_HOST].estimate) *
        input->duration_s;
    double least = fmax(floor_bytes, OUTSIDE_SHARE * input->outside.rss_bytes);

    return input->least_growth_bytes - known >= least;
}

/* The same of a device; -1: of none. */
static int find_untold(const struct seep_verdict_input *input,
                       const struct seep_verdict_counts *counts)
{
    for (unsigned i = 0; i < SEEP_DEVICES_MAX; i++) {
        unsigned place = SEEP_PLACE_DEVICE + i;
        double known = fmax(0, counts->minor.parts[place].estimate +
                                   counts->suppressed.parts[place].estimate) *
                       input->duration_s;
        double least = fmax(seep_sites_floor_bytes(input->live_bytes[place]),
                            OUTSIDE_SHARE * (double)input->live_bytes[place]);

        if (input->least_device_bytes[i] - known >= least) {
            return (int)i;
        }
    }
    return -1;
}

/* Where every bound was named it ends, and what is left is known. */
static struct seep_verdict_now
tell_filling(struct seep_report_verdict *verdict,
             const struct seep_verdict_counts *counts)
{
    struct seep_verdict_now now = tell(verdict, SEEP_VERDICT_BOUNDED,
                                       &counts->filling, SEEP_FORECAST_UNTOLD);

    verdict->filling = true;
    now.bytes_per_s = (struct seep_interval){0, 0, 0};
    if (isfinite(counts->bound_left_bytes)) {
        now.basis = SEEP_FORECAST_GROWS;
        now.left_bytes = counts->bound_left_bytes;
    }
    return now;
}

/* Nothing grows without bound, as far as can be told. */
static struct seep_verdict_now
tell_quiet(const struct seep_verdict_input *input,
           const struct seep_verdict_counts *counts,
           struct seep_report_verdict *verdict)
{
    struct seep_verdict_now now = {.basis = SEEP_FORECAST_GROWS};
    double floor_bytes = verdict->floor_bytes;

    if (input->uncharged_growth_bytes >= floor_bytes) {
        verdict->class = SEEP_VERDICT_INSUFFICIENT;
        verdict->reason = "what has no call site grows: there was no room for "
                          "its stacks";
        now.basis = SEEP_FORECAST_UNTOLD;
    } else if (counts->filling.count > 0) {
        now = tell_filling(verdict, counts);
    } else if (find_untold(input, counts) >= 0) {
        verdict->class = SEEP_VERDICT_INSUFFICIENT;
        verdict->reason = "device memory grows, by too little at each "
                          "call site to be found there";
        verdict->device = find_untold(input, counts);
    } else if (counts->filled.count > 0) {
        verdict->class = SEEP_VERDICT_BOUNDED;
        verdict->reason = "it grew after the start, and has stopped";
    } else if (counts->untold_bytes >
                   MOSTLY * (double)input->live_bytes[SEEP_PLACE_HOST] &&
               input->most_growth_bytes >= floor_bytes) {
        verdict->class = SEEP_VERDICT_INSUFFICIENT;
        verdict->reason = "most of what it holds is too little of each call "
                          "site to tell";
        now.basis = SEEP_FORECAST_UNTOLD;
    } else if (grows_untold(input, counts, floor_bytes)) {
        verdict->class = SEEP_VERDICT_INSUFFICIENT;
        verdict->reason = "private memory grows, by too little so far to be "
                          "found at a call site";
        now.basis = SEEP_FORECAST_UNTOLD;
    } else {
        verdict->class = SEEP_VERDICT_STEADY;
        verdict->reason = counts->suppressed.count > 0
                              ? "what grows was suppressed"
                          : counts->minor.count + counts->doubtful > 0
                              ? "what grows is less than is worth a verdict"
                              : "no call site grows";
    }
    return now;
}

static double low_of(const struct seep_verdict_tally *tally)
{
    double low = 0;

    for (unsigned i = 0; i < SEEP_PLACE_COUNT; i++) {
        low += tally->parts[i].low;
    }
    return low;
}

static struct seep_verdict_now
tell_class(const struct seep_verdict_input *input,
           const struct seep_verdict_counts *counts,
           struct seep_report_verdict *verdict)
{
    struct seep_verdict_now now = {.basis = SEEP_FORECAST_GROWS};
    int cache = find_cache(input);

    if (counts->leak.count > 0) {
        return tell(verdict, SEEP_VERDICT_LEAK, &counts->leak,
                    SEEP_FORECAST_GROWS);
    }
    if (grows_outside(&input->outside, &counts->suspect)) {
        return tell_outside(verdict, &input->outside);
    }
    if (cache >= 0 &&
        input->caches[cache].estimate > low_of(&counts->suspect)) {
        return tell_cache(verdict, input, cache);
    }
    if (counts->suspect.count == 0 && was_kept(&input->outside)) {
        tell_kept(verdict, input->outside.free, false);
        return now;
    }
    if (counts->suspect.count > 0) {
        return tell(verdict, SEEP_VERDICT_SUSPECT, &counts->suspect,
                    SEEP_FORECAST_SUSPECTED);
    }
    return tell_quiet(input, counts, verdict);
}

void seep_verdict_decide(const struct seep_verdict_input *input,
                         struct seep_report_verdict *ret_verdict,
                         struct seep_verdict_now *ret_now)
{
    struct seep_report_verdict verdict = {
        .class = SEEP_VERDICT_INSUFFICIENT,
        .floor_bytes =
            seep_sites_floor_bytes(input->live_bytes[SEEP_PLACE_HOST]),
        .device = -1,
    };
    struct seep_verdict_now now = {.basis = SEEP_FORECAST_UNTOLD};
    struct seep_verdict_counts counts;

    seep_verdict_count(input, &counts);
    verdict.suppressed_count = counts.suppressed.count;
    verdict.suppressed_bytes_per_s = counts.suppressed.estimate;
    verdict.known_count = counts.known;
    verdict.minor_count = counts.minor.count;
    verdict.minor_bytes_per_s = counts.minor.estimate;
    if (input->count == 0) {
        verdict.reason = "nothing was recorded";
    } else if (input->too_short != NULL) {
        verdict.reason = input->too_short;
    } else {
        now = tell_class(input, &counts, &verdict);
    }
    if (verdict.device >= 0) {
        unsigned place = SEEP_PLACE_DEVICE + (unsigned)verdict.device;

        verdict.floor_bytes = seep_sites_floor_bytes(input->live_bytes[place]);
    }
    *ret_verdict = verdict;
    *ret_now = now;
}
