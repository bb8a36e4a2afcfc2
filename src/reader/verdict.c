/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See verdict.h. */
#include "reader/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FLOOR_BYTES (1024.0 * 1024.0)
#define FLOOR_SHARE 0.002 /* of the live bytes of the process */
#define LARGE_SHARE 0.1   /* of them too */
#define OUTSIDE_P 0.001
#define OUTSIDE_BYTES (1024.0 * 1024.0)
#define OUTSIDE_SHARE 0.02 /* of resident memory */
/* What has stopped must be more to be worth a word. */
#define STOPPED_BYTES (4 * 1024.0 * 1024.0)
#define STOPPED_SHARE 0.05
/* Blocks are rounded up, and rest on pages: so much beside them is theirs. */
#define ROUNDING_SHARE 0.5
#define MOSTLY 0.5

/* Several sites taken together; sites are sampled independently. */
struct tally {
    size_t count;
    double estimate; /* bytes per second */
    double squares;  /* of half intervals */
    double low;      /* sum of the lower ends */
    double first;    /* estimate of the first one */
    double now;      /* as estimate, at the present rate of work */
    double now_squares;
    size_t unit_count;
    double unit_estimate;
    double unit_squares;
    const char *reason; /* of the first one */
    const char *id;     /* of the first one */
};

static const char *const verdict_names[SEEP_VERDICT_COUNT] = {
#define VERDICT_NAME(symbol, name) name,
    SEEP_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
};

const char *seep_verdict_name(enum seep_verdict_class class)
{
    return (unsigned)class < SEEP_VERDICT_COUNT ? verdict_names[class] : "";
}

static double half_of(const struct seep_interval *interval)
{
    return (interval->high - interval->low) / 2;
}

static void add_growth(struct tally *tally, const struct seep_report_site *site)
{
    const struct seep_interval *rate = &site->growth_bytes_per_s;
    double half = half_of(rate);
    double pace = 0;

    if (rate->estimate > 0 && site->growth_now_bytes_per_s > 0) {
        pace = site->growth_now_bytes_per_s / rate->estimate;
    }
    tally->estimate += rate->estimate;
    tally->squares += half * half;
    tally->low += fmax(rate->low, 0);
    tally->now += rate->estimate * pace;
    tally->now_squares += half * pace * half * pace;
    if (site->has_growth_per_unit) {
        half = half_of(&site->growth_bytes_per_unit);
        tally->unit_count++;
        tally->unit_estimate += site->growth_bytes_per_unit.estimate;
        tally->unit_squares += half * half;
    }
}

static void add_to_tally(struct tally *tally,
                         const struct seep_report_site *site)
{
    if (site->has_growth) {
        add_growth(tally, site);
    }
    if (tally->count == 0) {
        tally->first = tally->estimate;
        tally->reason = site->class_reason != NULL ? site->class_reason : "";
        tally->id = site->id;
    }
    tally->count++;
}

/* All sites by what the verdict makes of them. */
struct counts {
    struct tally leak;
    struct tally suspect;
    struct tally filling;
    struct tally filled;
    struct tally minor;
    struct tally suppressed;
    size_t known;
    size_t doubtful; /* may leak, too little of it to count */
    double untold_bytes;
    double bound_left_bytes; /* of what fills: INFINITY if a bound is unknown */
};

/* Born after the start, and live: at most so much did a site rise by. */
static double rise_of(const struct seep_report_site *site)
{
    double sum = 0;

    for (int i = 1; i < SEEP_GROWTH_WINDOWS; i++) {
        sum += site->window_bytes[i];
    }
    return sum;
}

static bool is_material(const struct seep_report_site *site, double duration_s,
                        double floor_bytes)
{
    return site->has_growth && site->growth_bytes_per_s.low > 0 &&
           site->growth_bytes_per_s.estimate * duration_s >= floor_bytes;
}

/* Of so much a suspect is one however wide its interval: not to be sure of its
 * rate is no reason to call the process steady. */
static bool is_large(const struct seep_report_site *site, double duration_s,
                     double live_bytes)
{
    return site->class == SEEP_CLASS_SUSPECT && site->has_growth &&
           site->growth_bytes_per_s.estimate * duration_s >=
               LARGE_SHARE * live_bytes;
}

static void count_filling(struct counts *counts,
                          const struct seep_report_site *site, bool material)
{
    double left = INFINITY;

    if (site->known_bound_bytes > 0) {
        left = (double)site->known_bound_bytes - (double)site->live_bytes;
        counts->known++;
    }
    if (material) {
        add_to_tally(&counts->filling, site);
        counts->bound_left_bytes += fmax(left, 0);
    }
}

/* Nearer to a steady rate than to the slowing of a cache that fills: one leak
 * of 20 with 200 to 400 survivors looks so by chance. */
static bool slows_doubtfully(const struct seep_site_work *work)
{
    return work->site.known_bound_bytes == 0 && work->growth.zs > 0;
}

static void count_site(struct counts *counts, const struct seep_site_work *work,
                       const struct seep_verdict_input *input,
                       double floor_bytes)
{
    const struct seep_report_site *site = &work->site;
    bool material = is_material(site, input->duration_s, floor_bytes);
    bool large =
        is_large(site, input->duration_s,
                 fmax((double)input->live_bytes, floor_bytes / LARGE_SHARE));

    if (!seep_sites_space_holds(site->space)) {
        return;
    }
    if (site->suppressed_by != NULL) {
        if (seep_class_may_leak(site->class)) {
            add_to_tally(&counts->suppressed, site);
        }
        return;
    }
    switch (site->class) {
    case SEEP_CLASS_LEAK:
        add_to_tally(&counts->leak, site);
        break;
    case SEEP_CLASS_SUSPECT:
    case SEEP_CLASS_AGING:
        if (material || large) {
            add_to_tally(&counts->suspect, site);
        } else {
            counts->doubtful++;
        }
        break;
    case SEEP_CLASS_WARMING:
        if (material && slows_doubtfully(work)) {
            add_to_tally(&counts->suspect, site);
        } else {
            count_filling(counts, site,
                          material || rise_of(site) >= floor_bytes);
        }
        break;
    case SEEP_CLASS_PLATEAU:
    case SEEP_CLASS_STEP:
        if (rise_of(site) >= floor_bytes) {
            add_to_tally(&counts->filled, site);
        }
        break;
    case SEEP_CLASS_MINOR:
        add_to_tally(&counts->minor, site);
        break;
    case SEEP_CLASS_INSUFFICIENT:
        counts->untold_bytes += (double)site->live_bytes;
        break;
    default:
        break;
    }
}

static void count_sites(const struct seep_verdict_input *input,
                        double floor_bytes, struct counts *ret_counts)
{
    memset(ret_counts, 0, sizeof(*ret_counts));
    for (size_t i = 0; i < input->count; i++) {
        count_site(ret_counts, &input->works[i], input, floor_bytes);
    }
}

static struct seep_interval around(double estimate, double squares)
{
    double half = sqrt(squares);

    return (struct seep_interval){estimate, estimate - half, estimate + half};
}

/* @return what the class is about, now */
static struct seep_verdict_now tell(struct seep_report_verdict *verdict,
                                    enum seep_verdict_class class,
                                    const struct tally *tally,
                                    enum seep_forecast_basis basis)
{
    verdict->class = class;
    verdict->reason = tally->reason;
    verdict->growing_count = tally->count;
    snprintf(verdict->first_id, sizeof(verdict->first_id), "%s", tally->id);
    verdict->has_growth = tally->estimate > 0;
    if (verdict->has_growth) {
        verdict->growth_bytes_per_s = around(tally->estimate, tally->squares);
        verdict->first_share = fmax(0, fmin(1, tally->first / tally->estimate));
        verdict->has_growth_per_unit = tally->unit_count > 0;
        verdict->growth_bytes_per_unit =
            around(tally->unit_estimate, tally->unit_squares);
    }
    return (struct seep_verdict_now){
        .basis = basis,
        .bytes_per_s = around(tally->now, tally->now_squares),
    };
}

/*
 * The trend test alone takes one random walk of ten for growth that goes on;
 * with an interval that must be above 0 it is 1.8 of 100 (simulated), and noise
 * around a level none of 4,000.
 */
static bool grows_outside(const struct seep_balance_outside *outside,
                          const struct tally *suspect)
{
    double least = fmax(OUTSIDE_BYTES, OUTSIDE_SHARE * outside->rss_bytes) +
                   outside->error_bytes;

    return outside->known && outside->p <= OUTSIDE_P && outside->going_on &&
           outside->growth_bytes >= least &&
           outside->growth_bytes >= ROUNDING_SHARE * outside->tracked_bytes &&
           outside->bytes_per_s.low > 0 &&
           outside->bytes_per_s.estimate > suspect->low;
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

/* Nothing grows without bound, as far as can be told. */
static struct seep_verdict_now
tell_quiet(const struct seep_verdict_input *input, const struct counts *counts,
           struct seep_report_verdict *verdict)
{
    struct seep_verdict_now now = {.basis = SEEP_FORECAST_GROWS};
    double floor_bytes = verdict->floor_bytes;

    if (counts->filling.count > 0) {
        tell(verdict, SEEP_VERDICT_BOUNDED, &counts->filling,
             SEEP_FORECAST_UNTOLD);
        verdict->filling = true;
        /* Where every bound was named it ends, and what is left is known. */
        if (isfinite(counts->bound_left_bytes)) {
            now.left_bytes = counts->bound_left_bytes;
        } else {
            now.basis = SEEP_FORECAST_UNTOLD;
        }
    } else if (counts->filled.count > 0) {
        verdict->class = SEEP_VERDICT_BOUNDED;
        verdict->reason = "it grew after the start, and has stopped";
    } else if (counts->untold_bytes > MOSTLY * (double)input->live_bytes &&
               input->most_growth_bytes >= floor_bytes) {
        verdict->class = SEEP_VERDICT_INSUFFICIENT;
        verdict->reason = "most of what it holds is too little of each call "
                          "site to tell";
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

static struct seep_verdict_now
tell_class(const struct seep_verdict_input *input, const struct counts *counts,
           struct seep_report_verdict *verdict)
{
    struct seep_verdict_now now = {.basis = SEEP_FORECAST_GROWS};

    if (counts->leak.count > 0) {
        return tell(verdict, SEEP_VERDICT_LEAK, &counts->leak,
                    SEEP_FORECAST_GROWS);
    }
    if (grows_outside(&input->outside, &counts->suspect)) {
        return tell_outside(verdict, &input->outside);
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
    double floor_bytes =
        fmax(FLOOR_BYTES, FLOOR_SHARE * (double)input->live_bytes);
    struct seep_report_verdict verdict = {
        .class = SEEP_VERDICT_INSUFFICIENT,
        .floor_bytes = floor_bytes,
    };
    struct seep_verdict_now now = {.basis = SEEP_FORECAST_UNTOLD};
    struct counts counts;

    count_sites(input, floor_bytes, &counts);
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
    *ret_verdict = verdict;
    *ret_now = now;
}
