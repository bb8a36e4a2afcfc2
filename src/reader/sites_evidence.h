/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What speaks for and against one site: its series, its survivors and who died
 * old, as the growth test takes them, and the words' share of it.
 *
 * Invariant: deaths and survivors are parted at one and the same age, an edge
 * of the grid of ages, so that the share of old blocks that died is exact; and
 * evidence is counted in blocks that were seen, not in what they stand for.
 *
 * Pure functions; any thread.
 */
#ifndef SEEP_READER_SITES_EVIDENCE_H
#define SEEP_READER_SITES_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "reader/sites.h"
#include "reader/sites_series.h"

struct seep_evidence {
    struct seep_growth_input input; /* points into the rest, and into sites */
    struct seep_series_table table;
    double bucket_end[SEEP_BUCKET_COUNT];
    double live_bytes[SEEP_BUCKET_COUNT];
    double low_bytes[SEEP_BUCKET_COUNT];
    double allocations[SEEP_BUCKET_COUNT];
};

/** The age, in ticks, at which a block is old: the first edge of the grid of
 * ages that is at least a fifth of the run. */
uint64_t seep_evidence_old_ticks(const struct seep_clock *clock);

/** @param work  one that has a series */
void seep_evidence_gather(const struct seep_sites *sites,
                          const struct seep_site_work *work,
                          const struct seep_clock *clock,
                          struct seep_evidence *ret_evidence);

/**
 * Take back of the class in @work what the test can say on too little
 * evidence: it is counted in effective survivors.
 */
void seep_evidence_weigh(const struct seep_evidence *evidence,
                         struct seep_site_work *work);

/** Fill .site.kept of @work, and word its class by it. */
void seep_evidence_tell(const struct seep_evidence *evidence,
                        const struct seep_clock *clock,
                        struct seep_site_work *work);

#endif
