/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A class for each site: the cohort-flow test on what the recording keeps,
 * and what only all sites together can tell (Holm, the floor, the order).
 *
 * Invariant: `leak` is said only where every condition of the test was
 * computed. What the recording does not hold exactly is bounded from both
 * sides, and where the bounds do not lead to one class it is `suspect`.
 */
#include "reader/sites.h"

#include <math.h>
#include <stdlib.h>

#include "reader/sites_series.h"

#define RUN_SECONDS_MIN 30.0
#define RUN_BUCKETS_MIN 32U
#define RUN_UNITS_MIN 100U
#define OLD_SHARE 0.2 /* of the run: an age at which a block is old */
#define HOLM_ALPHA 0.01
#define RISING_FACTOR 1.1
#define RISING_TENTHS 2
#define RISING_ZS_MAX 5.0
#define FLOOR_BYTES (1024.0 * 1024.0)
#define FLOOR_SHARE 0.002 /* of the live bytes of the process */

/* The input of one site, and where its arrays lie. */
struct trial {
    struct seep_growth_input input;
    struct seep_series_table table;
    double bucket_end[SEEP_BUCKET_COUNT];
    double live_bytes[SEEP_BUCKET_COUNT];
    double low_bytes[SEEP_BUCKET_COUNT];
    double allocations[SEEP_BUCKET_COUNT];
};

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
    return NULL;
}

static void fill_series(struct trial *trial, const struct seep_clock *clock)
{
    const struct seep_series_table *table = &trial->table;
    double allocations = 0;

    for (uint32_t i = 0; i < table->count; i++) {
        const struct seep_series_bucket *bucket = &table->buckets[i];

        allocations += (double)bucket->born_count_q16 / (double)SEEP_COUNT_ONE;
        trial->bucket_end[i] = seep_clock_at(
            clock, (double)((uint64_t)(i + 1) << table->width_log2));
        trial->live_bytes[i] = (double)bucket->live_bytes;
        trial->low_bytes[i] = (double)bucket->low_bytes;
        trial->allocations[i] = allocations;
    }
}

/*
 * At most how many blocks died at an age of at least a fifth of the run. The
 * recording counts deaths by the bucket of birth, not by age: those born in
 * the last fifth died young for certain, all others may have died old.
 */
static double most_died_old(const struct seep_site_work *work,
                            const struct seep_series_table *table,
                            const struct seep_clock *clock)
{
    double young_from = (1 - OLD_SHARE) * (double)clock->end_tick;
    double young = 0;

    for (uint32_t i = table->first; i < table->count; i++) {
        if ((double)((uint64_t)i << table->width_log2) > young_from) {
            young += (double)table->buckets[i].born_freed_count_q16 /
                     (double)SEEP_COUNT_ONE;
        }
    }
    return fmax(0, work->site.freed_count - young);
}

/* Of the survivors; their births are on the work clock. */
static double count_old(const struct seep_sites *sites,
                        const struct seep_site_work *work,
                        const struct seep_clock *clock)
{
    double old_until =
        seep_clock_at(clock, (1 - OLD_SHARE) * (double)clock->end_tick);
    double count = 0;

    for (size_t i = 0; i < work->survivor_count; i++) {
        count += sites->survivors[work->survivor_first + i].birth <= old_until;
    }
    return count;
}

static void cap(struct seep_growth *growth, const char *reason)
{
    growth->class = SEEP_CLASS_SUSPECT;
    growth->reason = reason;
}

/*
 * Judge with none and with all of the possible old deaths. Deaths are scaled
 * to what was sampled of them, as the survivors are counted unweighted.
 */
static void judge_bounded(struct trial *trial, struct seep_site_work *work,
                          double died_most)
{
    struct seep_growth other;
    double scale = 1;

    if (work->survivor_blocks > 0) {
        scale = fmin(1, (double)work->survivor_count / work->survivor_blocks);
    }
    trial->input.died_old = 0;
    seep_growth_analyse(&trial->input, &work->growth);
    if (died_most * scale < 0.5 || !work->growth.tested) {
        return;
    }
    trial->input.died_old = floor(died_most * scale + 0.5);
    seep_growth_analyse(&trial->input, &other);
    if (other.class != work->growth.class) {
        cap(&work->growth, "it keeps blocks and gives others back: how old "
                           "those were was not recorded");
        work->growth.p = fmax(work->growth.p, other.p);
    }
}

static void judge_site(struct seep_sites *sites, struct seep_site_work *work,
                       const struct seep_clock *clock, struct trial *trial)
{
    if (work->series == NULL) {
        work->growth = (struct seep_growth){
            .class = SEEP_CLASS_INSUFFICIENT,
            .p = 1,
            .onset = SEEP_GROWTH_WINDOWS - 1,
            .reason = "no time series was kept of it",
        };
        return;
    }
    seep_series_read(work->series, work->first_tick, clock->end_tick,
                     &trial->table);
    fill_series(trial, clock);
    trial->input = (struct seep_growth_input){
        .survivors = sites->survivors + work->survivor_first,
        .survivor_count = work->survivor_count,
        .bucket_end = trial->bucket_end,
        .live_bytes = trial->live_bytes,
        .low_bytes = trial->low_bytes,
        .allocations = trial->allocations,
        .bucket_count = trial->table.count,
        .live_old = count_old(sites, work, clock),
        .live_count = work->site.live_count,
    };
    judge_bounded(trial, work, most_died_old(work, &trial->table, clock));
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
        cap(growth, "it grows, and no work was seen to compare with");
    } else if (rising && growth->zs < RISING_ZS_MAX && !growth->growing_block) {
        cap(growth, "the load is still rising, and it may only follow");
    } else if (growth->rate.estimate < floor_bytes) {
        growth->class = SEEP_CLASS_MINOR;
        growth->reason = "it grows, by less than 1 MiB or 0.2 % of what the "
                         "process holds over the whole run";
    }
}

/*
 * To bytes per second: a rate is bytes for all work of the run, so over the
 * mean second of the run it is that share. (The rate of the moment would need
 * the work rate of the moment; the mean is what the windows measured.)
 */
static void publish(struct seep_site_work *work, double seconds)
{
    const struct seep_growth *growth = &work->growth;
    struct seep_report_site *site = &work->site;

    site->class = growth->class;
    site->class_reason = growth->reason != NULL ? growth->reason : "";
    if (!(seconds > 0) || !(growth->rate.high > growth->rate.low)) {
        return;
    }
    site->has_growth = true;
    site->confidence = growth->confidence;
    site->growth_bytes_per_s = (struct seep_interval){
        growth->rate.estimate / seconds,
        growth->rate.low / seconds,
        growth->rate.high / seconds,
    };
}

static int rank_of(const struct seep_report_site *site)
{
    static const int ranks[SEEP_CLASS_COUNT] = {
        [SEEP_CLASS_LEAK] = 0,         [SEEP_CLASS_SUSPECT] = 1,
        [SEEP_CLASS_WARMING] = 2,      [SEEP_CLASS_AGING] = 2,
        [SEEP_CLASS_INSUFFICIENT] = 3, [SEEP_CLASS_TURNOVER] = 4,
        [SEEP_CLASS_PLATEAU] = 4,      [SEEP_CLASS_STEP] = 4,
        [SEEP_CLASS_SAWTOOTH] = 5,     [SEEP_CLASS_STEADY] = 5,
        [SEEP_CLASS_MINOR] = 6,
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
    double seconds = seep_sites_seconds((double)clock->end_tick);
    double floor_bytes =
        fmax(FLOOR_BYTES, FLOOR_SHARE * (double)sites->live_bytes);
    bool rising = load_rises(clock);
    struct trial trial;

    for (size_t i = 0; i < sites->count; i++) {
        if (too_short == NULL) {
            judge_site(sites, &sites->works[i], clock, &trial);
        } else {
            sites->works[i].growth.class = SEEP_CLASS_INSUFFICIENT;
            sites->works[i].growth.reason = too_short;
        }
    }
    correct_for_many(sites);
    for (size_t i = 0; i < sites->count; i++) {
        restrain(&sites->works[i].growth, clock, rising, floor_bytes);
        publish(&sites->works[i], seconds);
    }
    qsort(sites->works, sites->count, sizeof(*sites->works), compare_works);
}
