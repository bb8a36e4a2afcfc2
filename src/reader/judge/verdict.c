/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verdict: first the doubt that forbids to say that nothing leaks, then the
 * power of the run, then the classes in the order in which they hold.
 *
 * Invariant: no class that reassures is said while a doubt holds.
 */
#include "reader/judge/verdict.h"

#include <math.h>
#include <stdio.h>

static const char *const verdict_names[] = {SEEP_VERDICTS(SEEP_NAME_ALONE)};

const char *seep_verdict_name(enum seep_verdict_class class)
{
    return (unsigned)class < SEEP_VERDICT_COUNT ? verdict_names[class] : "";
}

static struct seep_interval around(double estimate, double squares)
{
    return seep_interval_around(estimate, sqrt(squares));
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
        .pace = part->estimate > 0 ? part->now / part->estimate : 0,
    };

    for (unsigned i = 0; i < SEEP_DEVICES_MAX; i++) {
        part = &tally->parts[SEEP_PLACE_DEVICE + i];
        now.devices[i] = (struct seep_verdict_pace){
            .is_known = part->count > 0,
            .basis = basis,
            .bytes_per_s = around(part->now, part->now_squares),
        };
    }
    return now;
}

static void name_first(struct seep_report_verdict *verdict, const char *id)
{
    snprintf(verdict->first_id, sizeof(verdict->first_id), "%s", id);
}

/* A class that is about what @tally is of. @return that, now */
static struct seep_verdict_now call_by(struct seep_report_verdict *verdict,
                                       enum seep_verdict_class class,
                                       const struct seep_verdict_tally *tally,
                                       enum seep_forecast_basis basis)
{
    verdict->class = class;
    verdict->reason = tally->reason;
    verdict->growing_count = tally->count;
    verdict->files =
        tally->count > 0 && tally->parts[SEEP_PLACE_FILE].count == tally->count;
    verdict->device = device_of(tally);
    name_first(verdict, tally->id);
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

/* What forbids to say that nothing leaks. */

/* A call site that holds so much of the growth, and as seen by so many samples
 * at the least, is suspected of it. */
#define MATERIAL_SHARE 0.25
#define MATERIAL_SAMPLES 4.0
#define DEVICE_SHARE 0.02 /* of what is live there */

static double rate_in(const struct seep_verdict_tally *tally, unsigned place)
{
    return fmax(0, tally->parts[place].estimate);
}

/* Does private memory grow by more than is told of, besides @outside? */
static bool is_vetoed(const struct seep_verdict_input *input,
                      const struct seep_verdict_counts *counts,
                      double outside_bytes_per_s)
{
    const struct seep_drift *drift = &input->private_drift;
    double span_s = input->duration_s - drift->from_s;
    double floor_bytes = seep_drift_floor_bytes(drift->last_bytes);
    double told = rate_in(&counts->suppressed, SEEP_PLACE_HOST);

    return drift->grows &&
           (drift->bytes_per_s.low - told - outside_bytes_per_s) * span_s >=
               floor_bytes;
}

static struct seep_verdict_now
call_insufficient(struct seep_report_verdict *verdict, const char *reason)
{
    verdict->class = SEEP_VERDICT_INSUFFICIENT;
    verdict->reason = reason;
    return (struct seep_verdict_now){.basis = SEEP_FORECAST_UNTOLD};
}

/* The same, and it is about what @tally is of. */
static struct seep_verdict_now call_open(struct seep_report_verdict *verdict,
                                         const struct seep_verdict_tally *tally,
                                         const char *reason)
{
    call_by(verdict, SEEP_VERDICT_INSUFFICIENT, tally, SEEP_FORECAST_UNTOLD);
    return call_insufficient(verdict, reason);
}

/* @share of the growth lies in a pool, where no hook sees who keeps what. */
static struct seep_verdict_now call_pool(struct seep_report_verdict *verdict,
                                         const struct seep_site_work *pool,
                                         const struct seep_interval *rate,
                                         double share)
{
    verdict->class = SEEP_VERDICT_SUSPECT;
    verdict->reason =
        "private memory grows where an allocator inside a library keeps its blocks; no hook sees what is freed there and what is not";
    verdict->in_pool = true;
    verdict->has_growth = true;
    verdict->growth_bytes_per_s = *rate;
    verdict->growing_count = 1;
    verdict->first_share = share;
    name_first(verdict, pool->site.id);
    return (struct seep_verdict_now){
        .basis = SEEP_FORECAST_SUSPECTED,
        .bytes_per_s = *rate,
    };
}

enum course { STANDS, SLOWS, GOES_ON };

/* The allocator has it: in the pages of live blocks, or by itself.
 * @return what can be foretold of that */
static enum seep_forecast_basis call_kept(struct seep_report_verdict *verdict,
                                          enum seep_balance_free free,
                                          enum course course)
{
    static const char *const reasons[][3] = {
        {"the allocator keeps memory that no live block uses; it no longer grows",
         "the allocator keeps ever more memory that no live block uses, but ever slower",
         "the allocator keeps ever more memory that no live block uses"},
        {"live blocks lie scattered over pages that they do not fill; it no longer grows",
         "live blocks lie scattered over ever more pages that they do not fill, but ever slower",
         "live blocks lie scattered over ever more pages that they do not fill"},
    };
    bool scattered = free == SEEP_BALANCE_FREE_SCATTERED;

    verdict->class =
        scattered ? SEEP_VERDICT_FRAGMENTATION : SEEP_VERDICT_RETENTION;
    verdict->reason = reasons[scattered][course];
    return course == SLOWS ? SEEP_FORECAST_SUSPECTED : SEEP_FORECAST_GROWS;
}

/* What is not live is free only if what is live was recorded. */
static bool knows_what_is_free(const struct seep_verdict_input *input)
{
    return input->lost_share <= SEEP_VERDICT_LOST_MOST;
}

/* The rate is that of the process, and so is the forecast. */
static struct seep_verdict_now
call_vetoed(const struct seep_verdict_input *input,
            struct seep_report_verdict *verdict)
{
    const struct seep_drift *drift = &input->private_drift;
    const struct seep_site_work *pool = seep_verdict_pool(input);
    double pool_rise = seep_verdict_pool_rise(input, pool);
    double rise;
    const struct seep_report_site *site =
        seep_verdict_most(input, drift->from_s, &rise);
    double share =
        drift->growth_bytes > 0 ? fmin(1, rise / drift->growth_bytes) : 0;
    struct seep_verdict_now now = {
        .basis = SEEP_FORECAST_SUSPECTED,
        .bytes_per_s = drift->bytes_per_s,
    };

    if (pool_rise > rise && pool_rise >= MATERIAL_SHARE * drift->growth_bytes) {
        return call_pool(verdict, pool, &drift->bytes_per_s,
                         fmin(1, pool_rise / drift->growth_bytes));
    }
    verdict->has_growth = true;
    verdict->growth_bytes_per_s = drift->bytes_per_s;
    if (share < MATERIAL_SHARE && knows_what_is_free(input) &&
        input->free_growth_bytes >= SEEP_VERDICT_MOSTLY * drift->growth_bytes) {
        now.basis = call_kept(verdict, input->outside.free,
                              drift->slows ? SLOWS : GOES_ON);
        return now;
    }
    verdict->class = SEEP_VERDICT_INSUFFICIENT;
    verdict->reason =
        "private memory grows, and too little of it was found at a call site";
    if (site != NULL) {
        verdict->growing_count = 1;
        verdict->first_share = share;
        name_first(verdict, site->id);
    }
    if (share >= MATERIAL_SHARE &&
        rise >= MATERIAL_SAMPLES * input->sample_bytes) {
        verdict->class = SEEP_VERDICT_SUSPECT;
        verdict->reason =
            "private memory grows, and this call site kept a material part of it";
    }
    return now;
}

/* Page cache can be dropped, memory that is shared cannot: which it is is not
 * known, so how long memory lasts is not either. */
static struct seep_verdict_now
call_shared(const struct seep_verdict_input *input,
            struct seep_report_verdict *verdict)
{
    verdict->class = SEEP_VERDICT_UNEXPLAINED;
    verdict->reason =
        "memory that is mapped from files, or shared, grows; the kernel can drop pages of files that were not written";
    verdict->has_growth = true;
    verdict->growth_bytes_per_s = input->shared_drift.bytes_per_s;
    verdict->files = true;
    return (struct seep_verdict_now){.basis = SEEP_FORECAST_UNTOLD};
}

/* What calls of the process hold of a device grows; -1: of none. */
static int find_device(const struct seep_verdict_input *input,
                       const struct seep_verdict_counts *counts)
{
    for (unsigned i = 0; i < SEEP_DEVICES_MAX; i++) {
        unsigned place = SEEP_PLACE_DEVICE + i;
        double live_bytes = (double)input->live_bytes[place];
        double least = fmax(seep_sites_floor_bytes(input->live_bytes[place]),
                            DEVICE_SHARE * live_bytes);
        double told = (rate_in(&counts->minor, place) +
                       rate_in(&counts->suppressed, place)) *
                      seep_verdict_worked_s(input);

        if (input->least_device_bytes[i] - told >= least) {
            return (int)i;
        }
    }
    return -1;
}

/* What fills accounts for it, and fills ever slower, or has a bound. */
static bool is_of_what_fills(const struct seep_verdict_input *input,
                             const struct seep_verdict_counts *counts)
{
    const struct seep_drift *drift = &input->private_drift;

    return counts->filling.count > 0 &&
           rate_in(&counts->filling, SEEP_PLACE_HOST) >=
               SEEP_VERDICT_MOSTLY * drift->bytes_per_s.low &&
           (drift->slows || isfinite(counts->bound_left_bytes));
}

/* The process rose, and lately: by so much that it is worth a word, or by what
 * is about to be called stopped. A site that tested its own pause knows better.
 */
static bool may_go_on(const struct seep_verdict_input *input,
                      const struct seep_verdict_counts *counts)
{
    const struct seep_drift *drift = &input->private_drift;
    double least = fmax(SEEP_VERDICT_RISE_BYTES,
                        SEEP_VERDICT_RISE_SHARE * drift->last_bytes);
    double told = counts->suppressed.parts[SEEP_PLACE_HOST].estimate *
                  seep_verdict_worked_s(input);

    return drift->may_go_on && counts->filling.count == 0 &&
           !counts->filled_tested &&
           drift->rise_bytes - fmax(0, told) >=
               (counts->filled.count > 0
                    ? seep_drift_floor_bytes(drift->last_bytes)
                    : least);
}

static struct seep_verdict_now
call_pausing(const struct seep_verdict_input *input,
             struct seep_report_verdict *verdict)
{
    double rise;
    const struct seep_report_site *site = seep_verdict_most(input, 0, &rise);

    if (site != NULL) {
        name_first(verdict, site->id);
    }
    return call_insufficient(
        verdict,
        "private memory rose, and it is too early to say whether it has stopped");
}

/* The first thing that forbids to say that nothing leaks.
 * @return false: nothing does */
static bool call_doubtful(const struct seep_verdict_input *input,
                          const struct seep_verdict_counts *counts,
                          struct seep_report_verdict *verdict,
                          struct seep_verdict_now *ret_now)
{
    int device = find_device(input, counts);

    if (input->uncharged_growth_bytes >= verdict->floor_bytes) {
        *ret_now = call_insufficient(
            verdict,
            "memory without a call site grows: there was no room for its stacks");
    } else if (is_vetoed(input, counts, 0) &&
               !is_of_what_fills(input, counts)) {
        *ret_now = call_vetoed(input, verdict);
    } else if (!input->private_drift.known &&
               seep_verdict_pool(input) != NULL) {
        *ret_now = call_insufficient(
            verdict,
            "an allocator inside a library has memory that no hook sees into, and what the process took is not known");
    } else if (input->unreachable) {
        *ret_now = call_insufficient(
            verdict, "memory that was live before it ended was freed unseen");
    } else if (!knows_what_is_free(input)) {
        *ret_now = call_insufficient(
            verdict,
            "so many of its events were not recorded that a leak may be among them");
    } else if (input->shared_drift.grows) {
        *ret_now = call_shared(input, verdict);
    } else if (input->open_files_drift.grows) {
        *ret_now = seep_verdict_open_files(input, verdict);
    } else if (device >= 0) {
        *ret_now = call_insufficient(
            verdict,
            "device memory grows, but too little at any one call site to be found there");
        verdict->device = device;
        ret_now->basis = SEEP_FORECAST_GROWS;
    } else if (may_go_on(input, counts)) {
        *ret_now = call_pausing(input, verdict);
    } else if (counts->unstopped.count > 0) {
        *ret_now = call_open(
            verdict, &counts->unstopped,
            counts->unstopped_in_steps
                ? "it grows in steps, and the next one is not due yet"
                : "it has paused for no longer than it may between two bursts");
    } else if (seep_verdict_rises(input, counts, verdict->floor_bytes) &&
               !seep_verdict_rises_a_little(input, counts)) {
        *ret_now = call_open(verdict, &counts->rising, SEEP_VERDICT_RISING);
    } else if (input->imports_s > 0) {
        *ret_now = call_insufficient(
            verdict,
            "the run was mostly imports, and the work behind them too little to tell");
    } else {
        return false;
    }
    return true;
}

/* What a process is called where nothing leaks or may leak. */

/* Where every bound was named it ends, and what is left is known. */
static struct seep_verdict_now
call_filling(struct seep_report_verdict *verdict,
             const struct seep_verdict_counts *counts)
{
    struct seep_verdict_now now = call_by(
        verdict, SEEP_VERDICT_BOUNDED, &counts->filling, SEEP_FORECAST_UNTOLD);

    verdict->filling = true;
    now.bytes_per_s = (struct seep_interval){0, 0, 0};
    if (isfinite(counts->bound_left_bytes)) {
        now.basis = SEEP_FORECAST_GROWS;
        now.left_bytes = counts->bound_left_bytes;
    }
    return now;
}

/* What neither blocks nor the allocator account for, and no mapping: so little
 * of it may be tables of seep, of which ever more pages are used at first. */
static double ours_per_s(const struct seep_verdict_input *input)
{
    const struct seep_balance_outside *outside = &input->outside;
    double span_s = (1 - SEEP_WINDOW_SETTLE) * seep_verdict_worked_s(input);
    double rest_bytes = outside->growth_bytes - outside->overhead_growth_bytes -
                        outside->unseen_growth_bytes;

    return outside->has_overhead && span_s > 0 ? fmax(0, rest_bytes) / span_s
                                               : INFINITY;
}

/* Of private memory, whatever it is: so little that it is worth a longer run
 * and no more. */
static bool private_grows_a_little(const struct seep_verdict_input *input,
                                   const struct seep_verdict_counts *counts)
{
    const struct seep_drift *drift = &input->private_drift;
    double least_bytes_per_s = drift->bytes_per_s.low - ours_per_s(input) -
                               rate_in(&counts->suppressed, SEEP_PLACE_HOST);
    double floor_bytes = seep_drift_floor_bytes(drift->last_bytes);

    return drift->known && seep_verdict_is_a_little(
                               least_bytes_per_s,
                               input->duration_s - drift->from_s, floor_bytes);
}

/* Something is seen to grow: that is not "no leak", however little it is.
 * @return false: nothing is */
static bool call_little(const struct seep_verdict_input *input,
                        const struct seep_verdict_counts *counts,
                        struct seep_report_verdict *verdict,
                        struct seep_verdict_now *ret_now)
{
    if (seep_verdict_grows_a_little(input, counts, verdict->floor_bytes)) {
        *ret_now = call_open(verdict, &counts->little, SEEP_VERDICT_LITTLE);
    } else if (private_grows_a_little(input, counts)) {
        *ret_now = call_insufficient(
            verdict,
            "private memory grows, but by too little so far to tell where");
        verdict->has_growth = true;
        verdict->growth_bytes_per_s = input->private_drift.bytes_per_s;
    } else {
        return false;
    }
    verdict->too_little = true;
    return true;
}

static struct seep_verdict_now
call_quiet(const struct seep_verdict_input *input,
           const struct seep_verdict_counts *counts,
           struct seep_report_verdict *verdict)
{
    struct seep_verdict_now now = {.basis = SEEP_FORECAST_GROWS};
    double most_bytes = input->private_drift.known
                            ? input->private_drift.most_bytes_per_s *
                                  seep_verdict_worked_s(input)
                            : INFINITY;

    if (call_doubtful(input, counts, verdict, &now)) {
        return now;
    }
    if (counts->filling.count > 0) {
        now = call_filling(verdict, counts);
    } else if (seep_verdict_was_kept(&input->outside)) {
        call_kept(verdict, input->outside.free, STANDS);
    } else if (counts->filled.count > 0) {
        call_by(verdict, SEEP_VERDICT_BOUNDED, &counts->filled,
                SEEP_FORECAST_GROWS);
        verdict->reason = "it grew after the start, and has stopped";
        verdict->has_growth = false;
        verdict->has_growth_per_unit = false;
        verdict->first_share = 0;
        verdict->growing_count = 0;
    } else if (counts->unknown_bytes >
                   SEEP_VERDICT_MOSTLY *
                       (double)input->live_bytes[SEEP_PLACE_HOST] &&
               most_bytes >= verdict->floor_bytes) {
        now = call_insufficient(
            verdict,
            "most of what it holds is spread over call sites with too little data");
    } else if (!call_little(input, counts, verdict, &now)) {
        verdict->class = SEEP_VERDICT_STEADY;
        verdict->reason = seep_verdict_why_steady(counts);
    }
    return now;
}

#define OUTSIDE_P 0.001
#define OUTSIDE_BYTES (1024.0 * 1024.0)
#define OUTSIDE_SHARE 0.02 /* of resident memory */
/* Blocks are rounded up, and rest on pages: so much beside them is theirs. */
#define ROUNDING_SHARE 0.5

/* What takes the place of blocks that were freed is not more memory. */
static bool private_may_grow(const struct seep_drift *drift, double duration_s)
{
    return !drift->known || drift->grows ||
           drift->bytes_per_s.low * (duration_s - drift->from_s) >=
               seep_drift_floor_bytes(drift->last_bytes);
}

/*
 * The trend test alone takes one random walk of ten for growth that goes on;
 * with an interval that must be above 0 it is 1.8 of 100 (simulated), and noise
 * around a level none of 4,000.
 */
static bool grows_outside(const struct seep_verdict_input *input,
                          const struct seep_verdict_tally *suspect)
{
    const struct seep_balance_outside *outside = &input->outside;
    double least = fmax(OUTSIDE_BYTES, OUTSIDE_SHARE * outside->rss_bytes) +
                   outside->error_bytes;

    return outside->known && outside->p <= OUTSIDE_P && outside->going_on &&
           outside->growth_bytes >= least &&
           outside->growth_bytes >= ROUNDING_SHARE * outside->tracked_bytes &&
           outside->bytes_per_s.low > 0 &&
           outside->bytes_per_s.estimate >
               suspect->parts[SEEP_PLACE_HOST].low &&
           private_may_grow(&input->private_drift, input->duration_s);
}

/* Is most of what private memory grows by in a pool? */
static bool grows_in_pool(const struct seep_verdict_input *input,
                          const struct seep_verdict_counts *counts)
{
    return is_vetoed(input, counts, 0) &&
           seep_verdict_pool_rise(input, seep_verdict_pool(input)) >=
               SEEP_VERDICT_MOSTLY * input->private_drift.growth_bytes;
}

/* Then a leak that was proved is little of what the process grows by. What
 * leaks on a device has nothing to do with it. */
static bool is_dwarfed(const struct seep_verdict_input *input,
                       const struct seep_verdict_counts *counts)
{
    double host = rate_in(&counts->leak, SEEP_PLACE_HOST);

    return grows_in_pool(input, counts) && host >= counts->leak.estimate &&
           host < MATERIAL_SHARE * input->private_drift.bytes_per_s.low;
}

static struct seep_verdict_now
call_outside(struct seep_report_verdict *verdict,
             const struct seep_verdict_input *input)
{
    const struct seep_balance_outside *outside = &input->outside;
    const struct seep_site_work *pool = seep_verdict_pool(input);
    struct seep_verdict_now now = {
        .basis = SEEP_FORECAST_GROWS,
        .bytes_per_s = outside->bytes_per_s,
    };

    verdict->has_growth = true;
    verdict->growth_bytes_per_s = outside->bytes_per_s;
    if (seep_verdict_fills(input, verdict, &now)) {
        return now;
    }
    if (outside->has_overhead && knows_what_is_free(input) &&
        outside->overhead_growth_bytes >=
            SEEP_VERDICT_MOSTLY * outside->growth_bytes) {
        now.basis = call_kept(verdict, outside->free,
                              input->private_drift.slows ? SLOWS : GOES_ON);
        return now;
    }
    if (seep_verdict_is_in_pool(input, pool)) {
        return call_pool(verdict, pool, &outside->bytes_per_s, 1);
    }
    seep_verdict_unexplained(outside, knows_what_is_free(input), verdict);
    return now;
}

#define UNSEEN_RUN_S 30.0

/* What is done in a pool, or where no hook is, is no work that hooks see:
 * whoever does nothing else seems to wait. Imports that take as long are seen,
 * and what they map besides says nothing of the work. */
static struct seep_verdict_now
call_unseen_work(const struct seep_verdict_input *input,
                 const struct seep_verdict_counts *counts,
                 struct seep_report_verdict *verdict)
{
    struct seep_verdict_now now = {.basis = SEEP_FORECAST_UNTOLD};

    if (input->duration_s < UNSEEN_RUN_S) {
        return now;
    }
    if (grows_in_pool(input, counts)) {
        return call_vetoed(input, verdict);
    }
    if (input->imports_s > 0) {
        return now;
    }
    if (grows_outside(input, &counts->suspect)) {
        return call_outside(verdict, input);
    }
    if (is_vetoed(input, counts, 0)) {
        now = call_vetoed(input, verdict);
        verdict->class = SEEP_VERDICT_INSUFFICIENT; /* whatever a row did */
    }
    return now;
}

static struct seep_verdict_now
call_cache(struct seep_report_verdict *verdict,
           const struct seep_verdict_input *input, int device)
{
    verdict->class = SEEP_VERDICT_FRAGMENTATION;
    verdict->reason =
        "PyTorch's cache takes ever more memory, but the tensors in it do not grow";
    verdict->device = device;
    verdict->has_growth = true;
    verdict->growth_bytes_per_s = input->caches[device];
    return (struct seep_verdict_now){.basis = SEEP_FORECAST_GROWS};
}

/* By now it may have slowed, and its error is no larger a share for that. */
static void keep_above_zero(struct seep_verdict_now *now,
                            const struct seep_interval *growth)
{
    struct seep_interval *rate = &now->bytes_per_s;

    if (rate->low <= 0 && rate->estimate > 0 && growth->low > 0) {
        rate->low = rate->estimate * growth->low / growth->estimate;
    }
}

static struct seep_verdict_now
call_leak(const struct seep_verdict_input *input,
          const struct seep_verdict_counts *counts,
          struct seep_report_verdict *verdict)
{
    bool is_sound = knows_what_is_free(input) || input->private_drift.grows;
    bool proved = seep_verdict_is_proved(&counts->leak);
    enum seep_verdict_class class =
        proved && is_sound ? SEEP_VERDICT_LEAK : SEEP_VERDICT_SUSPECT;
    struct seep_verdict_now now =
        call_by(verdict, class, proved ? &counts->leak : &counts->either,
                class == SEEP_VERDICT_LEAK ? SEEP_FORECAST_GROWS
                                           : SEEP_FORECAST_SUSPECTED);

    if (!is_sound) {
        verdict->reason =
            "it seems to be kept, but so many events were not recorded that it may have been freed";
    }
    keep_above_zero(&now, &verdict->growth_bytes_per_s);
    return now;
}

/* Page cache is given back when it is wanted: it reaches no limit. But pages of
 * private mappings that were written to are memory, which grows outside. */
static struct seep_verdict_now
call_files(const struct seep_verdict_input *input,
           const struct seep_verdict_counts *counts,
           struct seep_report_verdict *verdict)
{
    bool proved = seep_verdict_is_proved(&counts->file_leak);
    struct seep_verdict_now now =
        call_by(verdict, proved ? SEEP_VERDICT_LEAK : SEEP_VERDICT_SUSPECT,
                &counts->file_leak, SEEP_FORECAST_UNTOLD);

    if (grows_outside(input, &counts->suspect)) {
        now.basis = SEEP_FORECAST_GROWS;
        now.bytes_per_s = input->outside.bytes_per_s;
    }
    return now;
}

static struct seep_verdict_now
call_class(const struct seep_verdict_input *input,
           const struct seep_verdict_counts *counts,
           struct seep_report_verdict *verdict)
{
    int cache = seep_verdict_cache(input);

    if (counts->leak.count > 0 && is_dwarfed(input, counts)) {
        struct seep_verdict_now now = call_vetoed(input, verdict);

        verdict->reason =
            "private memory grows where an allocator inside a library keeps its blocks; what leaks at call sites is little of it";
        return now;
    }
    if (counts->leak.count > 0) {
        return call_leak(input, counts, verdict);
    }
    if (counts->file_leak.count > 0) {
        return call_files(input, counts, verdict);
    }
    /* Unless live blocks grow as well, by more than what is outside of them. */
    if (grows_outside(input, &counts->suspect) &&
        !is_vetoed(input, counts, input->outside.bytes_per_s.high)) {
        return call_outside(verdict, input);
    }
    /* What little grows at call sites is not what the process grows by. */
    if (grows_in_pool(input, counts)) {
        return call_vetoed(input, verdict);
    }
    if (cache >= 0 &&
        input->caches[cache].estimate > seep_verdict_low_of(&counts->suspect)) {
        return call_cache(verdict, input, cache);
    }
    if (counts->suspect.count > 0) {
        return call_by(verdict, SEEP_VERDICT_SUSPECT, &counts->suspect,
                       SEEP_FORECAST_SUSPECTED);
    }
    if (counts->file_suspect.count > 0 && !is_vetoed(input, counts, 0)) {
        return call_by(verdict, SEEP_VERDICT_SUSPECT, &counts->file_suspect,
                       SEEP_FORECAST_UNTOLD);
    }
    return call_quiet(input, counts, verdict);
}

/*
 * Nothing is full sooner than private memory gets there: what is allocated and
 * never touched fills nothing, nor do pages that the allocator had free. Where
 * private memory does not grow at all nothing can be foretold.
 */
static void restrain_now(const struct seep_verdict_input *input,
                         struct seep_verdict_now *now)
{
    struct seep_interval *rate = &now->bytes_per_s;
    double most = input->private_drift.fastest_bytes_per_s +
                  fmax(0, input->shared_drift.fastest_bytes_per_s) +
                  fmax(0, input->open_files_drift.fastest_bytes_per_s) +
                  input->elsewhere_bytes_per_s;

    if (!input->private_drift.known || !(rate->estimate > most)) {
        return;
    }
    if (!(most > 0)) {
        now->basis = SEEP_FORECAST_UNTOLD;
        return;
    }
    now->pace *= most / rate->estimate;
    now->by_private = input->elsewhere_bytes_per_s < SEEP_VERDICT_MOSTLY * most;
    *rate = (struct seep_interval){
        most,
        fmin(most,
             fmin(rate->low, fmax(0, input->private_drift.bytes_per_s.low) +
                                 input->elsewhere_bytes_per_s)),
        most,
    };
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
        now = call_unseen_work(input, &counts, &verdict);
    } else {
        now = call_class(input, &counts, &verdict);
    }
    restrain_now(input, &now);
    verdict.private_grows = is_vetoed(input, &counts, 0);
    verdict.shared_grows = input->shared_drift.grows;
    seep_verdict_add_beside(input, &counts, &verdict);
    if (verdict.open_reason != NULL) {
        now.basis = SEEP_FORECAST_UNTOLD; /* not "never" */
    }
    seep_verdict_add_power(input, &counts, &verdict);
    if (verdict.device >= 0) {
        unsigned place = SEEP_PLACE_DEVICE + (unsigned)verdict.device;

        verdict.floor_bytes = seep_sites_floor_bytes(input->live_bytes[place]);
    }
    *ret_verdict = verdict;
    *ret_now = now;
}
