/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See sites_evidence.h. */
#include "reader/sites_evidence.h"

#include <math.h>

#include "reader/growth_parts.h"

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
    uint64_t fifth = (clock->end_tick + OLD_FIFTHS - 1) / OLD_FIFTHS;

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
    }
    for (uint32_t i = 0; i < table->count && allocations > seen; i++) {
        evidence->allocations[i] *= seen / allocations;
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

/*
 * Blocks that were seen to die old. Where every block stands for itself they
 * were counted. Else their bytes are divided by what a survivor stands for:
 * small blocks of any size stand for the same, the mean interval of now, and
 * what died before a thinning counts as if it had been sampled as they are.
 */
static double count_died_old(const struct seep_sites *sites,
                             const struct seep_site_work *work,
                             const struct seep_series_table *table,
                             uint64_t old_ticks)
{
    double count = 0;
    double bytes = 0;
    double mean;

    for (uint32_t i = 0; i < table->count; i++) {
        const struct seep_series_bucket *bucket = &table->buckets[i];

        if ((uint64_t)i << table->width_log2 >= old_ticks) {
            count += blocks(bucket->died_count_q16);
            bytes += fmax(0, (double)(int64_t)bucket->died_bytes);
        }
    }
    if (work->survivor_count > 0 && !(work->variance > 0)) {
        return count;
    }
    mean = mean_weight(sites, work);
    return mean > 0 ? fmin(count, floor(bytes / mean + 0.5)) : 0;
}

void seep_evidence_gather(const struct seep_sites *sites,
                          const struct seep_site_work *work,
                          const struct seep_clock *clock,
                          struct seep_evidence *ret_evidence)
{
    seep_sites_read_series(sites, work, clock->end_tick, &ret_evidence->table);
    fill_series(ret_evidence, work, clock);
    ret_evidence->input = (struct seep_growth_input){
        .survivors = sites->survivors + work->survivor_first,
        .survivor_count = work->survivor_count,
        .bucket_end = ret_evidence->bucket_end,
        .live_bytes = ret_evidence->live_bytes,
        .low_bytes = ret_evidence->low_bytes,
        .allocations = ret_evidence->allocations,
        .bucket_count = ret_evidence->table.count,
        .died_old = count_died_old(sites, work, &ret_evidence->table,
                                   seep_evidence_old_ticks(clock)),
        .live_old = (double)work->old_count,
        .live_count = (double)work->survivor_count,
    };
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
 * Evidence is counted in effective survivors: those that came in one clump are
 * one. A block that grows needs none of it.
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
        growth->class = SEEP_CLASS_INSUFFICIENT;
        growth->reason = "too few blocks survive to tell";
        growth->tested = false;
    } else if (growth->class == SEEP_CLASS_LEAK &&
               growth->effective_count <
                   (sampled ? SURVIVORS_SAMPLED : SURVIVORS_EXACT)) {
        growth->class = SEEP_CLASS_SUSPECT;
        growth->reason = "it grows in a few bursts: too few of them to be sure";
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
        growth->class = SEEP_CLASS_INSUFFICIENT;
        growth->reason = "too few blocks survive to tell";
    }
}

void seep_evidence_weigh(const struct seep_evidence *evidence,
                         struct seep_site_work *work)
{
    want_evidence(evidence, &work->growth);
    want_survivors(work);
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
                      const struct seep_report_kept *kept,
                      struct seep_growth *growth)
{
    if (growth->class != SEEP_CLASS_LEAK || growth->growing_block ||
        !(evidence->input.died_old > 0)) {
        return;
    }
    growth->reason =
        kept->gave_back_old
            ? "it keeps far more than it gives back of what got old"
            : "it keeps a share of what it allocates, and hardly any of it "
              "dies";
}

void seep_evidence_tell(const struct seep_evidence *evidence,
                        const struct seep_clock *clock,
                        struct seep_site_work *work)
{
    struct seep_report_kept *kept = &work->site.kept;
    const struct seep_growth_input *input = &evidence->input;
    int first = first_kept(&work->growth);
    double since = (double)first / SEEP_GROWTH_WINDOWS;

    *kept = (struct seep_report_kept){
        .since_s = seep_sites_seconds(first < SEEP_GROWTH_WINDOWS
                                          ? seep_clock_tick_at(clock, since)
                                          : (double)clock->end_tick),
        .share = 1 - since,
        .oldest_death_s =
            seep_sites_seconds(oldest_death_ticks(&evidence->table, clock)),
        .died_share =
            input->died_old / fmax(1, input->died_old + input->live_old),
    };
    kept->gave_back_old = input->died_old >= GAVE_BACK_COUNT &&
                          kept->died_share >= GAVE_BACK_SHARE;
    word_leak(evidence, kept, &work->growth);
}
