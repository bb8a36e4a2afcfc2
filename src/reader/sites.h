/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The call sites of a snapshot in rows of one or several: totals, survivors,
 * and a judgement of each row.
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
#include "reader/sites_series.h"
#include "reader/snapshot.h"

/** Which row a site of the recording belongs to. */
struct seep_site_key {
    uint64_t row;     /* sites with one are one row */
    uint64_t id;      /* that the row is shown with */
    uint64_t line_id; /* 0: the same, or none */
};

/** A site of the recording in its row. */
struct seep_site_member {
    uint32_t index; /* in SITES */
    uint32_t first_tick;
    struct seep_rec_series *series; /* NULL: none was kept */
};

/** A live block of a site without series, in a row of several sites. */
struct seep_site_loose {
    uint32_t birth_tick;
    uint64_t bytes; /* that it stands for */
    uint64_t count_q16;
};

/** One row at work; .site is what the report will show of it. */
struct seep_site_work {
    struct seep_report_site site;
    uint64_t id;
    uint64_t line_id;
    uint32_t index;                 /* in SITES, of the one that holds most */
    struct seep_rec_series *series; /* the first there is; NULL: none */
    size_t member_first;            /* in the members of all rows */
    size_t member_count;            /* 0 is as 1: .series is all there is */
    size_t loose_first;
    size_t loose_count;
    double loose_bytes;    /* they hold */
    double loose_born;     /* allocated by sites without series, and freed: */
    double loose_freed;    /* when is not known */
    size_t survivor_first; /* in the survivors of all sites */
    size_t survivor_count;
    size_t old_count;     /* of them, that are old */
    uint64_t event_count; /* that were seen */
    double variance;      /* of live_bytes, by sampling */
    uint32_t first_tick;
    struct seep_growth growth;
};

/**
 * A memory that can be full: that of the host, of a device by its ordinal, or
 * of a device that is not known, or one too many.
 */
#define SEEP_PLACE_HOST 0U
#define SEEP_PLACE_DEVICE 1U /* and so on, one each */
#define SEEP_PLACE_OTHER (SEEP_PLACE_DEVICE + SEEP_DEVICES_MAX)
#define SEEP_PLACE_COUNT (SEEP_PLACE_OTHER + 1U)

struct seep_sites {
    struct seep_site_work *works;
    size_t count;
    struct seep_site_member *members; /* grouped by row */
    struct seep_site_loose *loose;    /* ditto */
    struct seep_survivor *survivors;  /* ditto */
    size_t survivor_count;
    /* By place, of all sites in spaces that hold memory. */
    uint64_t live_bytes[SEEP_PLACE_COUNT];
};

/** Spaces whose blocks are memory of their own: what sums are made of. Tensors
 * are not: they lie in segments, which space device has. */
bool seep_sites_space_holds(enum seep_space space);

/** Spaces whose growth counts: those, and tensors, which say whose it is. */
bool seep_sites_space_is_judged(enum seep_space space);

/** Where the memory of @site is. What is managed counts as the host's: it can
 * always go there. */
unsigned seep_sites_place_of(const struct seep_report_site *site);

/** What grows by less over the run, where so much is live, is minor. */
double seep_sites_floor_bytes(uint64_t live_bytes);

/** Ordinal of the device of an entry of SITES; -1: none, or not known. */
int seep_sites_device_of(const struct seep_rec_site *site);

/** Did anything happen at entry @index of SITES? */
bool seep_sites_is_used(struct seep_rec_site *site, uint32_t index);

/** The last tick that anything in the recording tells of. */
uint64_t seep_sites_last_tick(const struct seep_snapshot *snapshot);

double seep_sites_seconds(double ticks);

/**
 * @param keys       the row of each used site, by its index in SITES; NULL:
 *                   each is a row of its own
 * @param ret_sites  give it to seep_sites_fini()
 */
int seep_sites_init(const struct seep_snapshot *snapshot,
                    const struct seep_clock *clock,
                    const struct seep_site_key *keys,
                    struct seep_sites *ret_sites);
void seep_sites_fini(struct seep_sites *sites);

/** sites_merge.c: was anything kept of when things happened? */
bool seep_sites_has_series(const struct seep_site_work *work);

/**
 * The series of a row, which has one, up to @end_tick: the sum of its sites'.
 * The lowest bytes of a bucket are the sum of theirs: not above those of the
 * row, and the same where only one of them gives back in that bucket. What of a
 * site without series is live is in it from its birth on; what died of it is
 * not in it.
 */
void seep_sites_read_series(const struct seep_sites *sites,
                            const struct seep_site_work *work,
                            uint64_t end_tick,
                            struct seep_series_table *ret_table);

/** sites_judge.c: class, interval and confidence of each, and their order. */
void seep_sites_judge(struct seep_sites *sites, const struct seep_clock *clock);

/** Why no site of this run can be judged; NULL: they can. */
const char *seep_sites_too_short(const struct seep_clock *clock);

#endif
