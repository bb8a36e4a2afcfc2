/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The call sites of a snapshot: totals, survivors, and a judgement of each.
 *
 * Errors: 0 or -ENOMEM. Threads: one at a time.
 */
#ifndef SEEP_READER_SITES_H
#define SEEP_READER_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/growth.h"
#include "reader/report.h"
#include "reader/sites_clock.h"
#include "reader/snapshot.h"

/** One site at work; .site is what the report will show of it. */
struct seep_site_work {
    struct seep_report_site site;
    uint32_t index;                 /* in SITES */
    struct seep_rec_series *series; /* NULL: none was kept */
    size_t survivor_first;          /* in the survivors of all sites */
    size_t survivor_count;
    size_t old_count;     /* of them, that are old */
    uint64_t event_count; /* that were seen */
    double variance;      /* of live_bytes, by sampling */
    uint32_t first_tick;
    struct seep_growth growth;
};

struct seep_sites {
    struct seep_site_work *works;
    size_t count;
    struct seep_survivor *survivors; /* grouped by site */
    size_t survivor_count;
    uint64_t live_bytes; /* of all sites in spaces that hold memory */
};

/** Spaces whose blocks are memory of their own. */
bool seep_sites_space_holds(enum seep_space space);

/** The last tick that anything in the recording tells of. */
uint64_t seep_sites_last_tick(const struct seep_snapshot *snapshot);

double seep_sites_seconds(double ticks);

/** @param ret_sites  give it to seep_sites_fini() */
int seep_sites_init(const struct seep_snapshot *snapshot,
                    const struct seep_clock *clock,
                    struct seep_sites *ret_sites);
void seep_sites_fini(struct seep_sites *sites);

/** sites_judge.c: class, interval and confidence of each, and their order. */
void seep_sites_judge(struct seep_sites *sites, const struct seep_clock *clock);

/** Why no site of this run can be judged; NULL: they can. */
const char *seep_sites_too_short(const struct seep_clock *clock);

#endif
