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

#include <stdint.h>

#include "base/thread.h"

/** Longer than any run: a thread that is not recorded. */
#define SEEP_SAMPLER_NEVER (INT64_MAX / 2)

/** Seed the thread's generator; @entropy differs between threads and runs. */
void seep_sampler_seed(struct seep_thread *thread, uint64_t entropy);

/** Draw the next threshold for a mean of 2^@sample_log2 bytes; 0: exact. */
void seep_sampler_draw(struct seep_thread *thread, unsigned sample_log2);

#endif
