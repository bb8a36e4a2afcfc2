/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the memory of a process as a whole shows, for the sentences that say it:
 * what of it was never touched, is copied, is written to late, or grows beside.
 *
 * Invariant: what was not measured is not there.
 */
#include <math.h>

#include "words/words.h"

struct seep_report_extent seep_words_tracked(const struct seep_report *report)
{
    struct seep_report_extent sum = {.valid = true};

    if (report->memory.tracked.valid) {
        return report->memory.tracked;
    }
    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];

        if (space->space <= SEEP_SPACE_PINNED) { /* what lies in RSS */
            sum.first_bytes += (double)space->first_bytes;
            sum.last_bytes += (double)space->live_bytes;
            sum.slope_bytes_per_s += space->slope_bytes_per_s;
        }
    }
    return sum;
}

struct seep_report_extent seep_words_surplus(const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    const struct seep_report_extent *less[] = {&memory->anonymous,
                                               &memory->swap};
    const struct seep_report_extent *more[] = {&memory->allocator_overhead,
                                               &memory->unexplained};
    struct seep_report_extent sum = seep_words_tracked(report);

    for (size_t i = 0; i < 2; i++) {
        sum.first_bytes += more[i]->first_bytes - less[i]->first_bytes;
        sum.last_bytes += more[i]->last_bytes - less[i]->last_bytes;
        sum.slope_bytes_per_s +=
            more[i]->slope_bytes_per_s - less[i]->slope_bytes_per_s;
    }
    sum.valid = memory->unexplained.valid && memory->anonymous.valid;
    sum.slope_error = 0;
    return sum;
}

/* By as much as shared memory, so that it is that: 1 of so many. */
#define BOTH_SHARE 0.2

bool seep_words_is_in_both(const struct seep_report *report)
{
    struct seep_report_extent rest = seep_words_surplus(report);
    const struct seep_report_extent *shared = &report->memory.shared;
    double grown = rest.last_bytes - rest.first_bytes;

    return rest.valid && shared->valid && grown > rest.last_bytes / 2 &&
           fabs(shared->last_bytes - shared->first_bytes - grown) <
               BOTH_SHARE * grown;
}

#define SURPLUS_LEAST (1 << 20)
#define SURPLUS_SHARE 0.02 /* of RSS; less is the error of the sampling */

bool seep_words_has_surplus(const struct seep_report *report)
{
    struct seep_report_extent rest = seep_words_surplus(report);

    return rest.valid && fabs(rest.last_bytes) >= SURPLUS_LEAST &&
           fabs(rest.last_bytes) >=
               SURPLUS_SHARE * report->memory.rss.last_bytes;
}

double seep_words_copied(const struct seep_report *report)
{
    const struct seep_report_extent *forked = &report->memory.forked;
    double copied = -forked->slope_bytes_per_s;

    return forked->valid && copied > forked->slope_error &&
                   copied * report->duration_s >= report->verdict.floor_bytes
               ? copied
               : 0;
}

bool seep_words_grows_beside(const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;

    return verdict->beside_bytes_per_s > 0 &&
           (verdict->class != SEEP_VERDICT_LEAK || verdict->forecast.by_others);
}

/* A pool has as many as it has; what comes and goes is no growth. */
#define THREADS_LEAST 10.0

bool seep_words_threads_grow(const struct seep_report *report)
{
    const struct seep_report_extent *threads = &report->memory.threads;

    return threads->valid &&
           threads->slope_bytes_per_s > threads->slope_error &&
           threads->slope_bytes_per_s * report->duration_s >= THREADS_LEAST &&
           threads->last_bytes - threads->first_bytes >= THREADS_LEAST;
}

/* Of the growth: what the rest is makes no difference then. */
#define WRITTEN_SHARE 0.5

bool seep_words_writes_late(const struct seep_report *report)
{
    struct seep_report_extent surplus = seep_words_surplus(report);

    return surplus.valid &&
           -surplus.slope_bytes_per_s >=
               WRITTEN_SHARE * report->verdict.growth_bytes_per_s.estimate;
}
