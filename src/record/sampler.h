/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Poisson sampling by bytes: each thread counts down to an exponentially
 * distributed threshold, and the block that crosses it is recorded.
 *
 * Invariant: a block of s bytes is chosen with p = 1 - exp(-s / mean)
 * whatever was allocated before it (the process has no memory, so a new
 * threshold is drawn at the end of a chosen block).
 */
#ifndef SEEP_RECORD_SAMPLER_H
#define SEEP_RECORD_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/thread.h"
#include "format/layout.h"
#include "format/view.h"

/*
 * How dense a recording stays that nobody gave a mean: it begins at 16 KiB and
 * the mean doubles, to 512 KiB at the most, when seep costs more than half a
 * percent of the run or of the processor time, or the tables fill.
 *
 * With a budget of its own (SEEP_BUDGET) a recording keeps to that, and its
 * cost doubles the mean further, to 8 MiB, also one that was asked for.
 *
 * Invariant: sample_log2 only rises here, by one, and never past
 * settled_sample_log2, but by its cost where there is a budget; in an exact
 * recording, and in one with a mean of its own and no budget, never. What that
 * costs is bounded by itself: beyond that share, a tenth of a second to the
 * first doubling and half of that to each of the others.
 *
 * Any thread, also in a signal handler: nothing is waited for; two at once
 * judge by what is a little wrong.
 */

#define SEEP_PACE_SETTLED_LOG2 19U

/** The most to which cost doubles the mean of who gave it a budget. */
#define SEEP_PACE_BUDGET_LOG2 23U

/** One in so many events is timed, by chance; and all of the first. */
#define SEEP_PACE_TIMED_EVERY 64U
#define SEEP_PACE_FIRST_EVENTS 512U

/** Tensors are dear, and large: up to so many times as far apart as blocks of
 * the host, by what they cost; not where a mean was asked for. */
#define SEEP_PACE_TENSOR_DOUBLINGS 6U

/** Blocks a shard that are enough for any judgement. */
#define SEEP_PACE_LIVE_MOST 512U

/** Forget everything, for a new recording. */
void seep_pace_start(const struct seep_view *view);

/** In a forked child: what comes first is timed again. */
void seep_pace_drop(void);

/** Is every event timed still? */
bool seep_pace_is_first(void);

/** Nothing can be measured any more, nor asked: be as sparse as allowed. */
void seep_pace_restrict(const struct seep_view *view);

/** An event took @cycles: one of the first, or one that stands for those that
 * were not timed. */
void seep_pace_spent(const struct seep_view *view, uint64_t cycles, bool first);

/** The same, of one that no other mean would have spared: a mapping. It is in
 * the cost, and not in what the budget is for. */
void seep_pace_counted(const struct seep_view *view, uint64_t cycles,
                       bool first);

/** Of what is about to be told as spent, that was for a tensor. */
void seep_pace_for_tensor(uint64_t cycles, bool first);

/** The mean of tensors; 0: each is recorded. */
unsigned seep_pace_tensor_log2(const struct seep_view *view);

/** A call site came: what is left of the tables is for those to come. */
void seep_pace_site_came(const struct seep_view *view);

/** Events of @shard were folded. */
void seep_pace_folded(const struct seep_view *view, uint32_t shard);

/** Longer than any run: a thread that is not recorded. */
#define SEEP_SAMPLER_NEVER (INT64_MAX / 2)

/** Seed the thread's generator; @entropy differs between threads and runs. */
void seep_sampler_seed(struct seep_thread *thread, uint64_t entropy);

/** Draw the next threshold for a mean of 2^@sample_log2 bytes; 0: exact. */
void seep_sampler_draw(struct seep_thread *thread, unsigned sample_log2);

/**
 * 32 bits of the thread's generator. Outside the guard, too: a handler that
 * comes in between may be given the same ones, and the state never becomes 0.
 */
static inline uint64_t seep_sampler_bits(struct seep_thread *thread)
{
    return seep_hash_random(&thread->random) >> 32;
}

#endif
