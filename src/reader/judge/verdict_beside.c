/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is said beside the class: of a process whose class is about nearly all
 * that it holds, the little that cannot be told yet; and of one whose class is
 * about little, or about free memory, what rose most and has stopped.
 *
 * Invariant: where something cannot be told the verdict does not reassure; and
 * nothing is said to have stopped while the process grows for no known reason.
 */
#include <math.h>
#include <stdio.h>

#include "reader/judge/verdict.h"

/* Of what the class is about, or of what has stopped: less is a trifle. */
#define TRIFLE_SHARE SEEP_VERDICT_RISE_SHARE
#define AS_MUCH 0.75 /* of free memory: it is worth a word beside it */

static double worth_a_word(const struct seep_balance_outside *outside)
{
    return fmax(SEEP_VERDICT_RISE_BYTES,
                SEEP_VERDICT_RISE_SHARE * outside->rss_bytes);
}

bool seep_verdict_was_kept(const struct seep_balance_outside *outside)
{
    double least = worth_a_word(outside) + outside->error_bytes;

    return outside->known && outside->has_overhead &&
           outside->rise_bytes >= least &&
           outside->tracked_rise_bytes <
               SEEP_VERDICT_MOSTLY * outside->rise_bytes &&
           outside->overhead_bytes >= SEEP_VERDICT_MOSTLY * outside->rise_bytes;
}

/* By so much did that rise, and stopped, which the class would be about. */
static double answered_bytes(const struct seep_verdict_input *input,
                             const struct seep_verdict_counts *counts)
{
    return counts->filling.count > 0                ? 0
           : seep_verdict_was_kept(&input->outside) ? input->outside.rise_bytes
           : counts->filled.parts[SEEP_PLACE_HOST].count > 0
               ? counts->filled_bytes
               : 0;
}

static double rise_of(const struct seep_verdict_input *input,
                      const struct seep_verdict_tally *tally)
{
    return tally->estimate * seep_verdict_worked_s(input);
}

static bool is_of_host(const struct seep_verdict_tally *tally)
{
    return tally->count > 0 &&
           tally->parts[SEEP_PLACE_HOST].count == tally->count;
}

bool seep_verdict_rises(const struct seep_verdict_input *input,
                        const struct seep_verdict_counts *counts,
                        double floor_bytes)
{
    return counts->rising.count > 0 &&
           rise_of(input, &counts->rising) >= floor_bytes;
}

bool seep_verdict_rises_a_little(const struct seep_verdict_input *input,
                                 const struct seep_verdict_counts *counts)
{
    return is_of_host(&counts->rising) &&
           rise_of(input, &counts->rising) <
               TRIFLE_SHARE * answered_bytes(input, counts);
}

/* A quarter of the floor, and 64 MiB a day: slower growth is of no use to know
 * but from a run that is long enough to be sure of it anyway. */
#define LITTLE_SHARE 0.25
#define LITTLE_BYTES_PER_S (64 * 1024 * 1024 / 86400.0)

bool seep_verdict_is_a_little(double bytes_per_s, double span_s,
                              double floor_bytes)
{
    return bytes_per_s >= LITTLE_BYTES_PER_S &&
           bytes_per_s * span_s >= LITTLE_SHARE * floor_bytes;
}

bool seep_verdict_grows_a_little(const struct seep_verdict_input *input,
                                 const struct seep_verdict_counts *counts,
                                 double floor_bytes)
{
    const struct seep_verdict_tally *little = &counts->little;

    return little->count > 0 &&
           seep_verdict_is_a_little(little->estimate,
                                    seep_verdict_worked_s(input), floor_bytes);
}

const char *seep_verdict_open_reason(const struct seep_report_verdict *verdict)
{
    return verdict->open_reason != NULL                  ? verdict->open_reason
           : verdict->class == SEEP_VERDICT_INSUFFICIENT ? verdict->reason
                                                         : NULL;
}

static void open_for(struct seep_report_verdict *verdict,
                     const struct seep_verdict_tally *tally, const char *reason)
{
    verdict->open_reason = reason;
    verdict->open_bytes_per_s =
        seep_interval_around(tally->estimate, sqrt(tally->squares));
    snprintf(verdict->open_id, sizeof(verdict->open_id), "%s", tally->id);
}

static void add_open(const struct seep_verdict_input *input,
                     const struct seep_verdict_counts *counts,
                     struct seep_report_verdict *verdict)
{
    if (verdict->has_growth) {
        return;
    }
    if (seep_verdict_rises(input, counts, verdict->floor_bytes) &&
        seep_verdict_rises_a_little(input, counts)) {
        open_for(verdict, &counts->rising, SEEP_VERDICT_RISING);
    } else if (seep_verdict_grows_a_little(input, counts,
                                           verdict->floor_bytes)) {
        open_for(verdict, &counts->little, SEEP_VERDICT_LITTLE);
    }
}

static void name_stopped(const struct seep_verdict_counts *counts,
                         struct seep_report_verdict *verdict)
{
    if (is_of_host(&counts->filled) && counts->filling.count == 0) {
        snprintf(verdict->stopped_id, sizeof(verdict->stopped_id), "%s",
                 counts->filled.id);
    }
}

/* The site was seen to have stopped; but while private memory grows, and what
 * leaks is little of that, it is not what there is to say. */
static void add_stopped(const struct seep_verdict_input *input,
                        const struct seep_verdict_counts *counts,
                        struct seep_report_verdict *verdict)
{
    double grown =
        verdict->growth_bytes_per_s.estimate * seep_verdict_worked_s(input);

    if (verdict->has_growth && verdict->device < 0 && !verdict->private_grows &&
        grown < TRIFLE_SHARE * counts->filled_bytes) {
        name_stopped(counts, verdict);
    }
}

/* The class says what grows, if anything does: what the allocator has free. Of
 * as much that lives it says nothing. */
static void add_stopped_beside_free(const struct seep_verdict_input *input,
                                    const struct seep_verdict_counts *counts,
                                    struct seep_report_verdict *verdict)
{
    const struct seep_balance_outside *outside = &input->outside;

    if (verdict->device < 0 && outside->has_overhead &&
        counts->filled_bytes >=
            fmax(worth_a_word(outside), AS_MUCH * outside->overhead_bytes)) {
        name_stopped(counts, verdict);
    }
}

void seep_verdict_add_beside(const struct seep_verdict_input *input,
                             const struct seep_verdict_counts *counts,
                             struct seep_report_verdict *verdict)
{
    switch (verdict->class) {
    case SEEP_VERDICT_LEAK:
    case SEEP_VERDICT_SUSPECT:
        add_stopped(input, counts, verdict);
        break;
    case SEEP_VERDICT_RETENTION:
    case SEEP_VERDICT_FRAGMENTATION:
        add_open(input, counts, verdict);
        add_stopped_beside_free(input, counts, verdict);
        break;
    case SEEP_VERDICT_BOUNDED:
        add_open(input, counts, verdict);
        break;
    default:
        break;
    }
}

/*
 * Where the rest is, of what private memory grows by beyond what the class is
 * about.
 *
 * Invariant: it is said only where the two differ by more than both intervals
 * allow, and by what is worth a word; and a place is named only where the
 * balance finds most of the rest in it.
 */

/* Private memory, or what it may be: all over the settled part of the run. */
static struct seep_interval
private_growth(const struct seep_report_memory *memory)
{
    const struct seep_report_extent *anonymous = &memory->anonymous;
    const struct seep_report_extent *swap = &memory->swap;
    double rate = anonymous->slope_bytes_per_s;
    double error = anonymous->slope_error;

    if (swap->valid) {
        rate += swap->slope_bytes_per_s;
        error = hypot(error, swap->slope_error);
    }
    return seep_interval_around(rate, error);
}

static double slope_of(const struct seep_report_extent *extent)
{
    return extent->valid ? fmax(0, extent->slope_bytes_per_s) : 0;
}

/* What each part grows by, less what the class is about of it. */
static void find_parts(const struct seep_verdict_input *input,
                       const struct seep_report_memory *memory,
                       const struct seep_report_verdict *verdict,
                       double parts[SEEP_REST_COUNT])
{
    const struct seep_balance_outside *outside = &input->outside;
    double growth = verdict->growth_bytes_per_s.estimate;
    double span_s = seep_verdict_worked_s(input) * (1 - SEEP_WINDOW_SETTLE);
    double unexplained = slope_of(&memory->unexplained);
    bool at_sites = verdict->class == SEEP_VERDICT_LEAK ||
                    verdict->class == SEEP_VERDICT_SUSPECT;

    parts[SEEP_REST_SITES] =
        slope_of(&memory->tracked) - (at_sites ? growth : 0);
    parts[SEEP_REST_FREE] =
        at_sites ? slope_of(&memory->allocator_overhead) : 0;
    parts[SEEP_REST_BLOCKS] =
        span_s > 0 ? fmin(unexplained, outside->unseen_growth_bytes / span_s)
                   : 0;
    parts[SEEP_REST_MAPPINGS] = fmin(unexplained, input->stray_bytes_per_s);
    parts[SEEP_REST_UNKNOWN] = 0;
}

void seep_verdict_add_rest(const struct seep_verdict_input *input,
                           const struct seep_report_memory *memory,
                           struct seep_report_verdict *verdict)
{
    const struct seep_interval grows = private_growth(memory);
    const struct seep_interval *told = &verdict->growth_bytes_per_s;
    double worked_s = seep_verdict_worked_s(input);
    double parts[SEEP_REST_COUNT];
    double least = grows.low - told->high;

    if (!verdict->has_growth || verdict->device >= 0 || verdict->files ||
        verdict->class == SEEP_VERDICT_INSUFFICIENT || verdict->in_pool ||
        !memory->anonymous.valid ||
        !(least * worked_s >=
          fmax(verdict->floor_bytes,
               seep_drift_floor_bytes(memory->anonymous.last_bytes)))) {
        return;
    }
    verdict->private_bytes_per_s = grows.estimate;
    verdict->rest_bytes_per_s = grows.estimate - told->estimate;
    verdict->rest = SEEP_REST_UNKNOWN;
    find_parts(input, memory, verdict, parts);
    for (int i = 0; i < SEEP_REST_COUNT; i++) {
        if (parts[i] > parts[verdict->rest] &&
            parts[i] >= SEEP_VERDICT_MOSTLY * verdict->rest_bytes_per_s) {
            verdict->rest = (enum seep_rest)i;
        }
    }
}
