/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A class for each site: the cohort-flow test on what the recording keeps,
 * and what only all sites together can tell (Holm, the floor, the order).
 *
 * Invariant: `leak` is said only where every condition of the test was
 * computed, from survivors enough, against work that was seen.
 */
#include "reader/sites.h"

#include <math.h>
#include <stdlib.h>

#include "reader/sites_evidence.h"

#define RUN_SECONDS_MIN 30.0
#define RUN_BUCKETS_MIN 32U
#define RUN_UNITS_MIN 100U
#define WORK_MOST 0.95
#define WAITS_FROM (2.0 / 3) /* of the run: no work to speak of since */
#define HOLM_ALPHA 0.01
#define RISING_FACTOR 1.1
#define RISING_TENTHS 2
#define RISING_ZS_MAX 5.0
#define LOOSE_SHARE 0.5  /* of what lives, that must have been seen to live */
#define LOOSE_FREED 0.02 /* so little given back changes nothing */

/* By the clock of work a start-up is all of a run that waits ever after, and
 * what it keeps grew in every tenth of it. */
static bool waits(const struct seep_clock *clock)
{
    double begun = seep_clock_tick_at(clock, 1 - WORK_MOST);
    double done = seep_clock_tick_at(clock, WORK_MOST);

    return done < WAITS_FROM * (double)clock->end_tick &&
           seep_sites_seconds(done - begun) < RUN_SECONDS_MIN;
}

const char *seep_sites_too_short(const struct seep_clock *clock)
{
    if (seep_sites_seconds((double)clock->end_tick) < RUN_SECONDS_MIN) {
        return "the run is too short: a verdict needs 30 s";
    }
    if (clock->count < RUN_BUCKETS_MIN) {
        return "the run is too short: fewer than 32 intervals were recorded";
    }
    if (clock->kind == SEEP_CLOCK_UNITS && clock->units < RUN_UNITS_MIN) {
        return "the run is too short: fewer than 100 units of work were done";
    }
    if (waits(clock)) {
        return "the run is too short: it waits, and a verdict needs 30 s of "
               "work";
    }
    return NULL;
}

static void cap(struct seep_growth *growth, const char *reason)
{
    growth->class = SEEP_CLASS_SUSPECT;
    growth->reason = reason;
}

/* The peak of several sites together is at least what was live at any time. */
static void raise_peak(struct seep_site_work *work,
                       const struct seep_series_table *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->buckets[i].live_bytes > work->site.peak_bytes) {
            work->site.peak_bytes = table->buckets[i].live_bytes;
        }
    }
}

/* Deaths that no series tells of may be those of old blocks. */
static void restrain_loose(struct seep_site_work *work)
{
    if (work->growth.class == SEEP_CLASS_LEAK &&
        work->loose_bytes > LOOSE_SHARE * (double)work->site.live_bytes &&
        work->loose_freed > LOOSE_FREED * work->loose_born) {
        cap(&work->growth, "most of it is at stacks of which no time series "
                           "was kept");
    }
}

static void judge_site(struct seep_sites *sites, struct seep_site_work *work,
                       const struct seep_clock *clock,
                       struct seep_evidence *evidence)
{
    if (!seep_sites_has_series(work)) {
        work->growth = (struct seep_growth){
            .class = SEEP_CLASS_INSUFFICIENT,
            .p = 1,
            .onset = SEEP_GROWTH_WINDOWS - 1,
            .reason = "no time series was kept of it",
        };
        return;
    }
    seep_evidence_gather(sites, work, clock, evidence);
    seep_growth_analyse(&evidence->input, &work->growth);
    seep_evidence_weigh(evidence, work);
    seep_evidence_tell(evidence, clock, work);
    if (work->member_count > 1) {
        raise_peak(work, &evidence->table);
        restrain_loose(work);
    }
}

static int compare_p(const void *a, const void *b)
{
    const struct seep_site_work *const *left = a;
    const struct seep_site_work *const *right = b;

    return ((*left)->growth.p > (*right)->growth.p) -
           ((*left)->growth.p < (*right)->growth.p);
}

/* Holm 1979 over all sites with evidence enough, whatever it says. */
static void correct_for_many(struct seep_sites *sites)
{
    struct seep_site_work **tested =
        malloc((sites->count + 1) * sizeof(*tested));
    size_t count = 0;
    size_t kept = 0;

    for (size_t i = 0; tested != NULL && i < sites->count; i++) {
        if (sites->works[i].growth.tested) {
            tested[count++] = &sites->works[i];
        }
    }
    if (count > 0) {
        qsort(tested, count, sizeof(*tested), compare_p);
    }
    while (kept < count &&
           tested[kept]->growth.p <= HOLM_ALPHA / (double)(count - kept)) {
        kept++;
    }
    for (size_t i = kept; i < count; i++) {
        if (tested[i]->growth.class == SEEP_CLASS_LEAK &&
            !tested[i]->growth.growing_block) {
            cap(&tested[i]->growth,
                "among so many call sites its growth may be chance");
        }
    }
    free(tested);
}

/* Does the load itself set new records in the second half of the run? */
static bool load_rises(const struct seep_clock *clock)
{
    double most = 0;
    double before = 0;
    int records = 0;

    for (int k = 0; k < SEEP_GROWTH_WINDOWS; k++) {
        double share = seep_clock_at(clock, (double)clock->end_tick * (k + 1) /
                                                SEEP_GROWTH_WINDOWS);
        double rate = share - before;

        if (k >= SEEP_GROWTH_WINDOWS / 2 && rate > RISING_FACTOR * most) {
            records++;
        }
        most = fmax(most, rate);
        before = share;
    }
    return records >= RISING_TENTHS;
}

/* What holds of a leak only in view of the whole process. */
static void restrain(struct seep_growth *growth, const struct seep_clock *clock,
                     bool rising, double floor_bytes)
{
    if (growth->class != SEEP_CLASS_LEAK) {
        return;
    }
    if (clock->kind == SEEP_CLOCK_WALL) {
        cap(growth, growth->growing_block
                        ? "one block that is reallocated ever larger, and no "
                          "work was seen to compare with"
                        : "it grows, and no work was seen to compare with");
    } else if (rising && growth->zs < RISING_ZS_MAX && !growth->growing_block) {
        cap(growth, "the load is still rising, and it may only follow");
    } else if (growth->rate.estimate < floor_bytes) {
        growth->class = SEEP_CLASS_MINOR;
        growth->reason =
            growth->growing_block
                ? "one block that is reallocated ever larger, by less than 1 "
                  "MiB or 0.2 % of what the process holds over the whole run"
                : "it grows, by less than 1 MiB or 0.2 % of what the process "
                  "holds over the whole run";
    }
}

static struct seep_interval divided(const struct seep_interval *rate,
                                    double divisor)
{
    return (struct seep_interval){
        rate->estimate / divisor,
        rate->low / divisor,
        rate->high / divisor,
    };
}

/*
 * A rate is bytes for all work of the run: over its mean second it is that
 * share, and now it is as much more as work is done faster now.
 */
static void publish(struct seep_site_work *work, const struct seep_clock *clock)
{
    const struct seep_growth *growth = &work->growth;
    struct seep_report_site *site = &work->site;
    double seconds = seep_sites_seconds((double)clock->end_tick);

    site->class = growth->class;
    site->class_reason = growth->reason != NULL ? growth->reason : "";
    if (!(seconds > 0) || !(growth->rate.high > growth->rate.low)) {
        return;
    }
    site->has_growth = true;
    site->confidence = growth->confidence;
    site->growth_bytes_per_s = divided(&growth->rate, seconds);
    site->growth_now_bytes_per_s =
        site->growth_bytes_per_s.estimate * seep_clock_late_pace(clock);
    if (clock->kind == SEEP_CLOCK_UNITS) {
        site->has_growth_per_unit = true;
        site->growth_bytes_per_unit =
            divided(&growth->rate, (double)clock->units);
    }
}

/* A leak that is small is a leak: it stands before what is none. */
static int rank_of(const struct seep_report_site *site)
{
    static const int ranks[SEEP_CLASS_COUNT] = {
        [SEEP_CLASS_LEAK] = 0,         [SEEP_CLASS_SUSPECT] = 1,
        [SEEP_CLASS_WARMING] = 2,      [SEEP_CLASS_AGING] = 2,
        [SEEP_CLASS_MINOR] = 3,        [SEEP_CLASS_BACKING] = 3,
        [SEEP_CLASS_INSUFFICIENT] = 4, [SEEP_CLASS_TURNOVER] = 5,
        [SEEP_CLASS_PLATEAU] = 5,      [SEEP_CLASS_STEP] = 5,
        [SEEP_CLASS_SAWTOOTH] = 6,     [SEEP_CLASS_STEADY] = 6,
    };

    return ranks[site->class];
}

/* As a reader should look: class, then the least that it grows by, then what
 * it holds; then the order of the table, so that it is one order. */
static int compare_works(const void *a, const void *b)
{
    const struct seep_site_work *left = a;
    const struct seep_site_work *right = b;
    double left_low =
        left->site.has_growth ? left->site.growth_bytes_per_s.low : 0;
    double right_low =
        right->site.has_growth ? right->site.growth_bytes_per_s.low : 0;

    if (rank_of(&left->site) != rank_of(&right->site)) {
        return rank_of(&left->site) - rank_of(&right->site);
    }
    if (left_low != right_low) {
        return left_low > right_low ? -1 : 1;
    }
    if (left->site.live_bytes != right->site.live_bytes) {
        return left->site.live_bytes > right->site.live_bytes ? -1 : 1;
    }
    return (left->index > right->index) - (left->index < right->index);
}

void seep_sites_judge(struct seep_sites *sites, const struct seep_clock *clock)
{
    const char *too_short = seep_sites_too_short(clock);
    bool rising = load_rises(clock);
    struct seep_evidence evidence;

    for (size_t i = 0; i < sites->count; i++) {
        if (too_short == NULL) {
            judge_site(sites, &sites->works[i], clock, &evidence);
        } else {
            sites->works[i].growth.class = SEEP_CLASS_INSUFFICIENT;
            sites->works[i].growth.reason = too_short;
        }
    }
    correct_for_many(sites);
    for (size_t i = 0; i < sites->count; i++) {
        unsigned place = seep_sites_place_of(&sites->works[i].site);

        restrain(&sites->works[i].growth, clock, rising,
                 seep_sites_floor_bytes(sites->live_bytes[place]));
        publish(&sites->works[i], clock);
    }
    qsort(sites->works, sites->count, sizeof(*sites->works), compare_works);
}
