/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Makes the input of the cohort-flow test from blocks with known births and
 * deaths: unit run length, 128 buckets, constant work, exact weights.
 */
#ifndef SEEP_TEST_GROWTH_SITE_H
#define SEEP_TEST_GROWTH_SITE_H

#include "reader/statistics/growth.h"

#define SITE_BLOCKS_MAX 2000
#define SITE_BUCKETS 128
#define SITE_NEVER 9.0 /* a death after the run */

struct site_block {
    double birth;
    double death;
    double weight;
};

/** Too large for a small stack: keep it static. Points into itself. */
struct site_input {
    struct seep_growth_input input;
    struct seep_survivor survivors[SITE_BLOCKS_MAX];
    double bucket_end[SITE_BUCKETS];
    double live_bytes[SITE_BUCKETS];
    double low_bytes[SITE_BUCKETS];
    double allocations[SITE_BUCKETS];
};

/** A birth at a bucket's end belongs to that bucket. */
void site_build(const struct site_block *blocks, size_t count,
                struct site_input *ret_site);

/** @count blocks of 1000 bytes, evenly over the run, never freed. */
void site_build_leak(size_t count, struct site_input *ret_site);

#endif
