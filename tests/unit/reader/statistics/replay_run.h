/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A whole run through seep_sites_judge(): work clock, load that rises, Holm
 * over all sites, floor, order.
 *
 * A run is {"id", "clock", "sites"}; a site has its survivors ("birth" in
 * ticks, "weight", "variance"), "first_tick", "allocated_count",
 * "freed_count", and its series by bucket, numbers each: "allocated",
 * "freed", "low", "born_count", "born_freed", "born_freed_count", and by age
 * "died", "died_count". Without "low" it has no series. With "private", the
 * private memory of the process at equal times, the process has a verdict, for
 * which "sample_bytes" is the mean interval of sampling.
 */
#ifndef SEEP_TESTS_REPLAY_RUN_H
#define SEEP_TESTS_REPLAY_RUN_H

#include <jansson.h>

/**
 * @return {"id", "clock", "sites"}, the verdicts in the order of the report,
 *         each with the number that its site had ("index"), and "verdict" if
 *         asked for; NULL: it is no run
 */
json_t *replay_run(const json_t *run);

#endif
