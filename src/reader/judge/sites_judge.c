/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A class for each site: the cohort-flow test on what the recording keeps,
 * and what only all sites together can tell (Holm, the floor, the order).
 *
 * Invariant: `leak` is said only where every condition of the test was
 * computed, from survivors enough, against work that was seen.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/judge/sites.h"

#define OLD_FIFTHS 5U /* of the run: an age at which a block is old */
/* So little variance is none: of blocks far larger than the mean interval. */
#define SAMPLED_VARIANCE 0.05
#define SURVIVORS_SAMPLED 12.0 /* that a leak must rest on */
#define SURVIVORS_EXACT 8.0
/* All in one tenth by chance: once in a hundred. */
#define SURVIVORS_OF_MOMENT 3.0
/* What is needed to say that old blocks were seen to go: three, so that it is
 * no accident, and a share that would end the growth some day. */
#define GAVE_BACK_COUNT 3.0
#define GAVE_BACK_SHARE 0.02
#define FILL 0.2 /* of the mean window, that a window before the onset kept */

uint64_t seep_evidence_old_ticks(const struct seep_clock *clock)
{
    uint64_t width = UINT64_C(1) << clock->width_log2;
    uint64_t worked = clock->end_tick - clock->begin_tick;
    uint64_t fifth = (worked + OLD_FIFTHS - 1) / OLD_FIFTHS;

    return (fifth + width - 1) / width * width;
}

static double blocks(uint64_t count_q16)
{
    return (int64_t)count_q16 > 0 ? (double)count_q16 / (double)SEEP_COUNT_ONE
                                  : 0;
}

/*
 * Blocks that were seen to be allocated. Each is one event, and one more when
 * it is freed, so events and survivors together are twice of them.
 */
static double seen_allocations(const struct seep_site_work *work)
{
    return ((double)work->event_count + (double)work->survivor_count) / 2;
}

static void fill_series(struct seep_evidence *evidence,
                        const struct seep_site_work *work,
                        const struct seep_clock *clock)
{
    const struct seep_series_table *table = &evidence->table;
    double allocations = 0;
    double seen = seen_allocations(work);

    for (uint32_t i = 0; i < table->count; i++) {
        const struct seep_series_bucket *bucket = &table->buckets[i];

        allocations += blocks(bucket->born_count_q16);
        evidence->bucket_end[i] = seep_clock_at(
            clock, (double)((uint64_t)(i + 1) << table->width_log2));
        evidence->live_bytes[i] = (double)bucket->live_bytes;
        evidence->low_bytes[i] = (double)bucket->low_bytes;
        evidence->allocations[i] = allocations;
        evidence->allocated_bytes[i] =
            fmax(0, (double)(int64_t)bucket->allocated_bytes);
    }
    for (uint32_t i = 0; i < table->count && allocations > seen; i++) {
        evidence->allocations[i] *= seen / allocations;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        evidence->allocated_count[i] =
            evidence->allocations[i] -
            (i > 0 ? evidence->allocations[i - 1] : 0);
    }
}

/* What one block that was seen stands for. */
static double mean_weight(const struct seep_sites *sites,
                          const struct seep_site_work *work)
{
    double sum = 0;

    for (size_t i = 0; i < work->survivor_count; i++) {
        sum += sites->survivors[work->survivor_first + i].weight;
    }
    return work->survivor_count > 0 ? sum / (double)work->survivor_count
                                    : (double)work->site.allocated_bytes /
                                          fmax(1, seen_allocations(work));
}

/* Does every block stand for itself? */
static bool is_counted(const struct seep_site_work *work)
{
    return work->survivor_count > 0 && !(work->variance > 0);
}

/*
 * Blocks that were seen to die, by age. Where every block stands for itself
 * they were counted. Else their bytes are divided by what a survivor stands
 * for: small blocks of any size stand for the same, the mean interval of now,
 * and what died before a thinning counts as if it had been sampled as they are.
 */
static void count_died(const struct seep_site_work *work, double mean,
                       struct seep_evidence *evidence)
{
    const struct seep_series_table *table = &evidence->table;

    for (uint32_t i = 0; i < table->count; i++) {
        const struct seep_series_bucket *bucket = &table->buckets[i];
        double bytes = fmax(0, (double)(int64_t)bucket->died_bytes);

        evidence->died_count[i] = blocks(bucket->died_count_q16);
        if (!is_counted(work)) {
            evidence->died_count[i] =
                mean > 0 ? fmin(evidence->died_count[i], bytes / mean) : 0;
        }
    }
}

/* Those that died old, in whole blocks where they are estimates. */
static double count_died_old(const struct seep_site_work *work, double mean,
                             const struct seep_series_table *table,
                             uint64_t old_ticks)
{
    double count = 0;
    double bytes = 0;

    for (uint32_t i = 0; i < table->count; i++) {
        const struct seep_series_bucket *bucket = &table->buckets[i];

        if ((uint64_t)i << table->width_log2 >= old_ticks) {
            count += blocks(bucket->died_count_q16);
            bytes += fmax(0, (double)(int64_t)bucket->died_bytes);
        }
    }
    if (is_counted(work)) {
        return count;
    }
    return mean > 0 ? fmin(count, floor(bytes / mean + 0.5)) : 0;
}

/* Edges on both clocks; the run ends inside the last bucket. */
static void fill_edges(struct seep_evidence *evidence,
                       const struct seep_clock *clock)
{
    const struct seep_series_table *table = &evidence->table;
    double begin = (double)clock->begin_tick;
    double end = fmax(begin + 1, (double)clock->end_tick);

    for (uint32_t i = 0; i <= table->count; i++) {
        double tick = fmin((double)((uint64_t)i << table->width_log2), end);

        evidence->time_edge[i] = fmax(0, tick - begin) / (end - begin);
        evidence->work_edge[i] = seep_clock_at(clock, tick);
    }
}

static void fill_life(const struct seep_site_work *work,
                      const struct seep_clock *clock,
                      struct seep_evidence *evidence)
{
    fill_edges(evidence, clock);
    evidence->life = (struct seep_growth_life){
        .work_edge = evidence->work_edge,
        .time_edge = evidence->time_edge,
        .allocated_bytes = evidence->allocated_bytes,
        .allocated_count = evidence->allocated_count,
        .died_count = evidence->died_count,
        .born_seen = seen_allocations(work),
        .freed_seen =
            fmax(0, seen_allocations(work) - (double)work->survivor_count),
        .end_tick = fmax(1, (double)(clock->end_tick - clock->begin_tick)),
        .width_ticks = (double)(UINT64_C(1) << evidence->table.width_log2),
        .has_work = clock->kind != SEEP_CLOCK_WALL,
        .bytes_are_work = clock->kind == SEEP_CLOCK_BYTES,
        .load_rises = seep_clock_rises(clock),
    };
}

static void move_down(double *values, uint32_t by, uint32_t count)
{
    memmove(values, values + by, (count - by) * sizeof(*values));
}

/*
 * What came before the work began is one birth when it began: what is left of
 * it is told by the live bytes. And no block gets older than the work.
 */
static void cut_start(struct seep_evidence *evidence,
                      const struct seep_clock *clock)
{
    uint32_t count = evidence->table.count;
    uint32_t first =
        (uint32_t)(clock->begin_tick >> evidence->table.width_log2);

    if (first == 0 || first >= count) {
        return;
    }
    for (uint32_t i = 0; i < first; i++) {
        evidence->allocated_bytes[first] += evidence->allocated_bytes[i];
        evidence->allocated_count[first] += evidence->allocated_count[i];
        evidence->died_count[count - first - 1] +=
            evidence->died_count[count - first + i];
    }
    move_down(evidence->bucket_end, first, count);
    move_down(evidence->live_bytes, first, count);
    move_down(evidence->low_bytes, first, count);
    move_down(evidence->allocations, first, count);
    move_down(evidence->allocated_bytes, first, count);
    move_down(evidence->allocated_count, first, count);
    move_down(evidence->work_edge, first, count + 1);
    move_down(evidence->time_edge, first, count + 1);
    evidence->input.bucket_count = count - first;
}

void seep_evidence_gather(const struct seep_sites *sites,
                          const struct seep_site_work *work,
                          const struct seep_clock *clock,
                          struct seep_evidence *ret_evidence)
{
    double mean = mean_weight(sites, work);

    seep_sites_read_series(sites, work, seep_clock_grid(clock),
                           &ret_evidence->table);
    fill_series(ret_evidence, work, clock);
    count_died(work, mean, ret_evidence);
    fill_life(work, clock, ret_evidence);
    ret_evidence->input = (struct seep_growth_input){
        .survivors = sites->survivors + work->survivor_first,
        .survivor_count = work->survivor_count,
        .bucket_end = ret_evidence->bucket_end,
        .live_bytes = ret_evidence->live_bytes,
        .low_bytes = ret_evidence->low_bytes,
        .allocations = ret_evidence->allocations,
        .bucket_count = ret_evidence->table.count,
        .died_old = count_died_old(work, mean, &ret_evidence->table,
                                   seep_evidence_old_ticks(clock)),
        .live_old = (double)work->old_count,
        .live_count = (double)work->survivor_count,
        .life = &ret_evidence->life,
    };
    cut_start(ret_evidence, clock);
}

static void decide(struct seep_growth *growth, enum seep_class class,
                   const char *reason)
{
    growth->class = class;
    growth->reason = reason;
}

/* Were the survivors that the rate of @growth rests on sampled? */
static bool is_sampled(const struct seep_evidence *evidence,
                       const struct seep_growth *growth)
{
    double variance = 0;
    double squares = 0;

    for (size_t i = 0; i < evidence->input.survivor_count; i++) {
        const struct seep_survivor *survivor = &evidence->input.survivors[i];
        int window = (int)(survivor->birth * SEEP_GROWTH_WINDOWS);

        if (window >= growth->onset && window < SEEP_GROWTH_MATURE) {
            variance += survivor->variance;
            squares += survivor->weight * survivor->weight;
        }
    }
    return variance > SAMPLED_VARIANCE * squares;
}

/*
 * Take back what the test can say on too little evidence. It is counted in
 * effective survivors: those that came in one clump are one. A block that grows
 * needs none of it.
 */
static void want_evidence(const struct seep_evidence *evidence,
                          struct seep_growth *growth)
{
    bool sampled;

    if (!growth->tested || growth->growing_block) {
        return;
    }
    sampled = is_sampled(evidence, growth);
    if (!sampled && growth->mature_count < SURVIVORS_EXACT) {
        decide(growth, SEEP_CLASS_INSUFFICIENT,
               "too few blocks survive to tell");
        growth->tested = false;
    } else if (growth->class == SEEP_CLASS_LEAK &&
               growth->effective_count <
                   (sampled ? SURVIVORS_SAMPLED : SURVIVORS_EXACT)) {
        decide(growth, SEEP_CLASS_SUSPECT,
               "it grows in a few bursts: too few of them to be sure");
    }
}

static bool few_were_sampled(const struct seep_site_work *work)
{
    double count = (double)work->survivor_count;
    double live = (double)work->site.live_bytes;

    return count > 0 && count < SURVIVORS_SAMPLED &&
           work->variance * count > SAMPLED_VARIANCE * live * live;
}

/*
 * Where no chain of tenths kept a share, the test goes by how the survivors
 * are spread. A few sampled ones, of which hardly any died, are spread by
 * chance: what looks like a step or a standstill may be a leak that is too
 * small for the sampling. Not so if all came at the start, or at one moment.
 */
static void want_survivors(struct seep_site_work *work)
{
    struct seep_growth *growth = &work->growth;
    double count = (double)work->survivor_count;
    double most = 0;

    if (growth->onset <= SEEP_GROWTH_ONSET_LAST || growth->growing_block ||
        !few_were_sampled(work) ||
        work->site.freed_count > work->site.allocated_count / 2) {
        return;
    }
    for (int k = 0; k < SEEP_GROWTH_WINDOWS; k++) {
        most = fmax(most, growth->window_count[k]);
    }
    if (growth->window_count[0] < count &&
        (most < count || count < SURVIVORS_OF_MOMENT)) {
        decide(growth, SEEP_CLASS_INSUFFICIENT,
               "too few blocks survive to tell");
    }
}

/* The first window from which on every one kept a share: the onset, and what
 * lies before it of the same. SEEP_GROWTH_WINDOWS if there is none. */
static int first_kept(const struct seep_growth *growth)
{
    double wanted = FILL * growth->rate.estimate / SEEP_GROWTH_WINDOWS;
    int first = growth->onset;

    if (growth->growing_block) {
        return SEEP_GROWTH_SETTLE;
    }
    if (first > SEEP_GROWTH_ONSET_LAST) {
        return SEEP_GROWTH_WINDOWS;
    }
    while (first > 0 && growth->window_bytes[first - 1] > 0 &&
           growth->window_bytes[first - 1] >= wanted) {
        first--;
    }
    return first;
}

/* The end of the bucket of the oldest death; no block gets older than the
 * run. */
static double oldest_death_ticks(const struct seep_series_table *table,
                                 const struct seep_clock *clock)
{
    double ticks = 0;

    for (uint32_t i = 0; i < table->count; i++) {
        if ((int64_t)table->buckets[i].died_bytes > 0) {
            ticks = (double)((uint64_t)(i + 1) << table->width_log2);
        }
    }
    return fmin(ticks, (double)clock->end_tick);
}

/* A leak may give back some of what got old: then it is not said to be none,
 * and where that was seen to be so it is no cache that only fills. */
static void word_leak(const struct seep_evidence *evidence,
                      const struct seep_report_kept *kept, bool began_late,
                      struct seep_growth *growth)
{
    if (growth->class != SEEP_CLASS_LEAK || growth->growing_block) {
        return;
    }
    if (!(evidence->input.died_old > 0)) {
        growth->reason =
            began_late && growth->reason == seep_growth_leak_reason(0)
                ? "every tenth of the run since the work began keeps a share of what it allocates"
                : growth->reason;
        return;
    }
    growth->reason =
        kept->gave_back_old
            ? "it keeps far more of its old blocks than it frees"
            : "it keeps a share of what it allocates, and hardly any of that is freed";
}

/*
 * What lives of the tenths from @first on, but for the last, which are too
 * young, over the units that were told while it was born. That is no rate of
 * the run divided by its units: with another clock the first tenth may have
 * begun before the units did, and be a part of one.
 */
static double kept_per_unit(const struct seep_growth *growth,
                            const struct seep_clock *clock, int first)
{
    int end = growth->growing_block ? SEEP_GROWTH_WINDOWS : SEEP_GROWTH_MATURE;
    double share = (double)(end - first) / SEEP_GROWTH_WINDOWS;
    double units = seep_clock_units_in(
        clock, seep_clock_tick_at(clock, (double)first / SEEP_GROWTH_WINDOWS),
        seep_clock_tick_at(clock, (double)end / SEEP_GROWTH_WINDOWS));
    double bytes = growth->growing_block
                       ? share * growth->rate.estimate
                       : seep_growth_sum(growth->window_bytes, first, end);

    return units >= 1 ? fmax(0, bytes) / units : 0;
}

/* Fill .site.kept of @work, and word its class by it. */
static void describe_kept(const struct seep_evidence *evidence,
                          const struct seep_clock *clock,
                          struct seep_site_work *work)
{
    struct seep_report_kept *kept = &work->site.kept;
    const struct seep_growth_input *input = &evidence->input;
    int first = first_kept(&work->growth);
    double since = (double)first / SEEP_GROWTH_WINDOWS;
    double since_tick = first < SEEP_GROWTH_WINDOWS
                            ? seep_clock_tick_at(clock, since)
                            : (double)clock->end_tick;

    *kept = (struct seep_report_kept){
        .since_s = seep_sites_seconds(since_tick),
        .share = 1 - since,
        .bytes_per_unit = kept_per_unit(&work->growth, clock, first),
        .oldest_death_s =
            seep_sites_seconds(oldest_death_ticks(&evidence->table, clock)),
        .died_share =
            input->died_old / fmax(1, input->died_old + input->live_old),
    };
    kept->gave_back_old = input->died_old >= GAVE_BACK_COUNT &&
                          kept->died_share >= GAVE_BACK_SHARE;
    word_leak(evidence, kept, clock->begin_tick > 0, &work->growth);
}

#define RUN_SECONDS_MIN 30.0
#define RUN_BUCKETS_MIN 32U
#define RUN_UNITS_MIN 100U
#define WORK_MOST 0.95
#define WAITS_FROM (2.0 / 3) /* of the run: no work to speak of since */
#define HOLM_ALPHA 0.01
#define RISING_ZS_MAX 5.0
#define LOOSE_SHARE 0.5  /* of what lives, that must have been seen to live */
#define LOOSE_FREED 0.02 /* so little given back changes nothing */

/* Since the wait, or the imports, that it began with, where growth counts from
 * before that. */
static double seconds_of_work(const struct seep_clock *clock)
{
    return fmin(seep_clock_worked_s(clock),
                seep_sites_seconds((double)clock->end_tick) -
                    fmax(clock->waited_s, clock->late_s));
}

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
    if (clock->mostly_imports &&
        (waits(clock) ||
         (clock->late_s > 0 && seconds_of_work(clock) < RUN_SECONDS_MIN))) {
        return "the run is too short: it was mostly imports, and a verdict needs 30 s of work";
    }
    if (waits(clock)) {
        return "the run is too short: it was mostly waiting, and a verdict needs 30 s of work";
    }
    return NULL;
}

/* Whatever was told of it: the peak is at least what was live at any time. Of
 * several sites together no peak was recorded; of one that is judged to before
 * its end, what is live is put together from what died since. */
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
        decide(&work->growth, SEEP_CLASS_SUSPECT,
               "most of it is at stacks without a time series");
    }
}

static void judge_import(struct seep_site_work *work)
{
    seep_growth_clear(&work->growth, "it came with the imports");
    work->growth.class = SEEP_CLASS_STEADY;
    for (int k = 1; k < SEEP_GROWTH_WINDOWS; k++) {
        work->site.window_bytes[0] += work->site.window_bytes[k];
        work->site.window_bytes[k] = 0;
    }
}

static void judge_site(struct seep_sites *sites, struct seep_site_work *work,
                       const struct seep_clock *clock,
                       struct seep_evidence *evidence)
{
    if (work->is_over) {
        judge_import(work);
        return;
    }
    if (!seep_sites_has_series(work)) {
        seep_growth_clear(&work->growth, "it has no time series");
        return;
    }
    seep_evidence_gather(sites, work, clock, evidence);
    seep_growth_analyse(&evidence->input, &work->growth);
    want_evidence(evidence, &work->growth);
    want_survivors(work);
    seep_growth_look_again(&evidence->input, &work->growth);
    describe_kept(evidence, clock, work);
    raise_peak(work, &evidence->table);
    if (work->member_count > 1) {
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
            !tested[i]->growth.by_life && !tested[i]->growth.growing_block) {
            decide(&tested[i]->growth, SEEP_CLASS_SUSPECT,
                   "among so many call sites, its growth may be chance");
        }
    }
    free(tested);
}

/* The table of a cache that has filled came in the same steps: those of one
 * small block are too little to suspect the process for. */
static void restrain_step(struct seep_growth *growth, double floor_bytes)
{
    if (growth->class == SEEP_CLASS_SUSPECT && growth->in_steps &&
        growth->rate.low < floor_bytes) {
        decide(
            growth, SEEP_CLASS_MINOR,
            "one block that is reallocated ever larger, perhaps by less than 1 MiB or 0.2 % of what the process holds over the whole run");
    }
}

/* What is mapped, or large, grows by what is touched of what came since. Where
 * that is less than the floor, what would be a leak is address space that was
 * set aside. */
static void count_touched(struct seep_site_work *work, double floor_bytes)
{
    struct seep_growth *growth = &work->growth;
    double share = work->grown_share;
    double *windows = work->site.window_bytes;

    if (!(work->touched_share < 1)) {
        return;
    }
    growth->rate.estimate *= share;
    growth->rate.low *= share;
    growth->rate.high *= share;
    growth->stood_bytes *= share;
    for (int k = 1; k < SEEP_GROWTH_WINDOWS; k++) {
        windows[k] *= share;
    }
    windows[0] = fmax(0, work->site.touched_bytes -
                             seep_growth_sum(windows, 1, SEEP_GROWTH_WINDOWS));
    if ((seep_class_may_leak(growth->class) ||
         growth->class == SEEP_CLASS_WARMING) &&
        growth->rate.estimate < floor_bytes) {
        decide(
            growth, SEEP_CLASS_MINOR,
            work->site.space == SEEP_SPACE_MAPPED
                ? "it reserves address space, and hardly any of that was ever touched"
                : "it allocates large blocks, and hardly any of that was ever written to");
    }
}

/* What holds of a leak only in view of the whole process. */
static void restrain(struct seep_growth *growth, const struct seep_clock *clock,
                     bool rising, double floor_bytes)
{
    restrain_step(growth, floor_bytes);
    if (growth->class != SEEP_CLASS_LEAK) {
        return;
    }
    if (clock->kind == SEEP_CLOCK_WALL) {
        decide(
            growth, SEEP_CLASS_SUSPECT,
            growth->growing_block
                ? "one block that is reallocated ever larger, with no work to compare it with"
                : "it grows, with no work to compare it with");
    } else if (rising && growth->zs < RISING_ZS_MAX && !growth->by_life &&
               !growth->growing_block) {
        decide(growth, SEEP_CLASS_SUSPECT,
               "the load is still rising, and it may just follow the load");
    } else if (clock->waited_s > 0 &&
               seconds_of_work(clock) < RUN_SECONDS_MIN) {
        decide(
            growth, SEEP_CLASS_SUSPECT,
            "it grows since its work began late, and less than 30 s of that is too little to be sure");
    } else if (growth->rate.estimate < floor_bytes) {
        decide(
            growth, SEEP_CLASS_MINOR,
            growth->growing_block
                ? "one block that is reallocated ever larger, by less than 1 MiB or 0.2 % of what the process holds over the whole run"
                : "it grows, by less than 1 MiB or 0.2 % of what the process holds over the whole run");
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
 * share, and now it is as much more as work is done faster now. One that began
 * late and follows no work is that of the time since then.
 */
static void publish(struct seep_site_work *work, const struct seep_clock *clock)
{
    const struct seep_growth *growth = &work->growth;
    struct seep_report_site *site = &work->site;
    double seconds = seconds_of_work(clock);

    site->class = growth->class;
    site->class_reason = growth->reason != NULL ? growth->reason : "";
    site->stopped_ln_p = growth->stopped_ln_p;
    site->stopped_since_s =
        growth->stopped_ln_p < 0 && growth->stopped_since >= 0
            ? seep_clock_time_at(clock, growth->stopped_since)
            : -1;
    site->step_next_s = growth->step_next_time > 0
                            ? seep_clock_time_at(clock, growth->step_next_time)
                            : 0;
    site->step_next_bytes = growth->step_next_bytes;
    site->in_steps = growth->in_steps;
    site->in_bursts = growth->in_bursts;
    /* What is replaced looks kept by its ages; it has not grown for half of the
     * run, and no rate is said of it. */
    if (!(seconds > 0) || !(growth->rate.high > growth->rate.low) ||
        growth->flat) {
        return;
    }
    site->has_growth = true;
    site->confidence = growth->confidence;
    if (growth->kept_time > 0) {
        site->growth_bytes_per_s = divided(
            &growth->rate, seep_clock_worked_s(clock) * growth->kept_time);
        site->growth_now_bytes_per_s = site->growth_bytes_per_s.estimate;
    } else {
        site->growth_bytes_per_s = divided(&growth->rate, seconds);
        site->growth_now_bytes_per_s = growth->rate.estimate /
                                       seep_clock_worked_s(clock) *
                                       seep_clock_late_pace(clock);
    }
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

    /* Nobody looks for what imports hold. */
    return site->is_start && !seep_sites_is_loud(site) ? 7 : ranks[site->class];
}

static double low_of(const struct seep_report_site *site)
{
    return site->has_growth ? site->growth_bytes_per_s.low : 0;
}

/* As a reader should look: class, memory before what is mapped of files, then
 * the least that it grows by, then what it holds; then the order of the table,
 * so that it is one order. */
static int compare_works(const void *a, const void *b)
{
    const struct seep_site_work *left = a;
    const struct seep_site_work *right = b;
    double left_low = low_of(&left->site);
    double right_low = low_of(&right->site);
    int left_file = left->site.space == SEEP_SPACE_FILE;
    int right_file = right->site.space == SEEP_SPACE_FILE;

    if (rank_of(&left->site) != rank_of(&right->site)) {
        return rank_of(&left->site) - rank_of(&right->site);
    }
    if (left_file != right_file) {
        return left_file - right_file;
    }
    if (left_low != right_low) {
        return left_low > right_low ? -1 : 1;
    }
    if (left->site.live_bytes != right->site.live_bytes) {
        return left->site.live_bytes > right->site.live_bytes ? -1 : 1;
    }
    return (left->index > right->index) - (left->index < right->index);
}

/* What an allocator reserves is not what is kept in it: private memory tells
 * whether that grows (verdict.c). */
static void back_pool(struct seep_report_site *site)
{
    site->class = SEEP_CLASS_BACKING;
    site->class_reason =
        "an allocator inside a library maps it, and no hook sees what is kept there";
}

void seep_sites_judge(struct seep_sites *sites, const struct seep_clock *clock)
{
    const char *too_short = seep_sites_too_short(clock);
    bool rising = seep_clock_rises(clock);
    struct seep_evidence evidence;

    for (size_t i = 0; i < sites->count; i++) {
        if (too_short == NULL) {
            judge_site(sites, &sites->works[i], clock, &evidence);
        } else {
            decide(&sites->works[i].growth, SEEP_CLASS_INSUFFICIENT, too_short);
        }
    }
    correct_for_many(sites);
    for (size_t i = 0; i < sites->count; i++) {
        unsigned place = seep_sites_place_of(&sites->works[i].site);
        double floor_bytes = seep_sites_floor_bytes(sites->live_bytes[place]);

        count_touched(&sites->works[i], floor_bytes);
        restrain(&sites->works[i].growth, clock, rising, floor_bytes);
        publish(&sites->works[i], clock);
        if (sites->works[i].site.pool != NULL) {
            back_pool(&sites->works[i].site);
        }
    }
    qsort(sites->works, sites->count, sizeof(*sites->works), compare_works);
}
