/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What growth_replay reads: sites and clocks out of JSON.
 *
 * Errors: false for what is no such object or when memory is out. Whatever
 * was begun is given to the _fini() all the same.
 */
#ifndef SEEP_TESTS_REPLAY_INPUT_H
#define SEEP_TESTS_REPLAY_INPUT_H

#include <jansson.h>
#include <stdbool.h>

#include "format/series.h"
#include "reader/judge/sites.h"
#include "reader/statistics/growth.h"

struct replay_site {
    struct seep_growth_input input;
    struct seep_survivor *survivors;
    double *series[4]; /* bucket ends, live, low, allocations */
};

/** @return an array that the caller frees, one number longer */
double *replay_numbers(const json_t *array);

/**
 * "birth", "weight" and "variance" (may be absent: exact) of survivors.
 *
 * @param ret_survivors  the caller frees them, also after a failure
 */
bool replay_read_survivors(const json_t *site,
                           struct seep_survivor **ret_survivors,
                           size_t *ret_count);

bool replay_read_site(const json_t *site, struct replay_site *ret_site);
void replay_site_fini(struct replay_site *site);

/**
 * The reader's own clock of a run: "end_tick", and "units" or "bytes", work by
 * bucket. An end that does not fit a recording is no clock.
 */
bool replay_read_clock(const json_t *clock, struct seep_clock *ret_clock);

const char *replay_clock_name(const struct seep_clock *clock);

/** From ticks to shares of the work. */
void replay_apply_clock(const struct seep_clock *clock,
                        struct replay_site *site);

#endif
