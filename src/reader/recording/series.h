/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What an entry of SITES stands for, and its series as a table.
 *
 * Sizes are bytes, times ticks of a recording or seconds. Nothing fails. What
 * is given is the reader's own copy, which nobody changes; any thread.
 */
#ifndef SEEP_READER_RECORDING_SERIES_H
#define SEEP_READER_RECORDING_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "format/view.h"
#include "reader/report/report.h"
#include "seep/recording.h"

/** Ticks are 32 bits in a recording: 52 days. */
#define SEEP_SITES_TICK_MAX UINT64_C(0xffffffff)

double seep_sites_seconds(double ticks);

/** The end of bucket @i of 2^@width_log2 ticks; the run may end inside it. */
double seep_sites_bucket_end_s(uint32_t i, uint32_t width_log2,
                               uint64_t end_tick);

/*
 * A site's series as a table, from its first bucket to the end of the run.
 *
 * Invariant: whatever the recording holds, count is 1 to 128, first is below
 * it, no low is above the live bytes at the end of its bucket, and where
 * nothing was allocated or freed since the series began the two are the same.
 */

struct seep_series_bucket {
    uint64_t live_bytes; /* at its end */
    uint64_t low_bytes;
    uint64_t allocated_bytes;
    uint64_t freed_bytes;
    uint64_t born_freed_bytes;
    uint64_t born_count_q16;
    uint64_t born_freed_count_q16;
    uint64_t died_bytes; /* at an age of [i, i + 1) widths, also of blocks */
    uint64_t died_count_q16; /* born before the series began */
};

struct seep_series_table {
    uint32_t width_log2; /* ticks */
    uint32_t first;      /* the series begins in it: before, only live and low,
                            and those are what it began with */
    uint32_t count;
    struct seep_series_bucket buckets[SEEP_BUCKET_COUNT];
};

/**
 * The buckets that all of a run is told in, up to @end_tick, where it is
 * judged. They are as wide as its series became in its whole life, also where
 * it is judged earlier.
 */
struct seep_series_grid {
    uint64_t end_tick; /* at most SEEP_SITES_TICK_MAX */
    uint32_t width_log2;
};

/** Of a run that lasted up to @life_tick, and is judged there. */
struct seep_series_grid seep_series_grid_of(uint64_t life_tick);

/**
 * What tells of a site's time: most sites of a recording have a brief, or
 * totals that say all, and few of their buckets have anything. To make a whole
 * series of each took a sixth of what a report of a Python takes.
 */
enum seep_series_kind {
    SEEP_SERIES_NONE,
    SEEP_SERIES_WHOLE,
    SEEP_SERIES_BRIEF,
    SEEP_SERIES_TOTALS, /* a block that came, and maybe went */
};

struct seep_series_source {
    enum seep_series_kind kind;
    union {
        struct seep_rec_series *series;
        const struct seep_rec_brief *brief;
        struct seep_rec_site *site;
    } from; /* that .kind says */
};

/** Of the site at @index of a snapshot. */
struct seep_series_source seep_series_source_of(const struct seep_view *view,
                                                uint32_t index);

static inline struct seep_series_source
seep_series_source_whole(struct seep_rec_series *series)
{
    return (struct seep_series_source){SEEP_SERIES_WHOLE, {.series = series}};
}

/** When it begins, and what was live then. */
struct seep_series_begin {
    uint32_t tick;
    uint64_t base_bytes;
};
struct seep_series_begin seep_series_begin_of(struct seep_series_source source);

/** An empty one: it begins in the last bucket. */
void seep_series_start_table(struct seep_series_grid grid,
                             struct seep_series_table *ret_table);

/** Of a damaged file it may be on a wider grid. What lies behind .count of the
 * buckets is not written. */
void seep_series_read(struct seep_series_source source,
                      uint32_t site_first_tick, struct seep_series_grid grid,
                      struct seep_series_table *ret_table);

/** A bucket that something was allocated in, or at whose end so much is live
 * that was not before; up to the next of them the same is live. */
struct seep_series_step {
    uint32_t bucket;
    uint64_t allocated_bytes;
    uint64_t live_bytes;
};

/** Of a table what was allocated and what is live alone, where either changes:
 * where a series of each site is looked at, the rest is most of what that
 * costs. Before the first step nothing is live. */
struct seep_series_course {
    uint32_t width_log2;
    uint32_t count; /* buckets */
    uint32_t step_count;
    struct seep_series_step steps[SEEP_BUCKET_COUNT]; /* by bucket */
};

/** The same buckets and figures as of seep_series_read(). */
void seep_series_read_course(struct seep_series_source source,
                             uint32_t site_first_tick,
                             struct seep_series_grid grid,
                             struct seep_series_course *ret_course);

/** The buckets of @grid at whose end what step @i says is live: from the one
 * that is returned to the one before *@ret_end. (A damaged series can have
 * wider ones.) */
uint32_t seep_series_span(const struct seep_series_course *course, uint32_t i,
                          struct seep_series_grid grid, uint32_t *ret_end);

/** Live bytes at the end of each of .count buckets. */
void seep_series_fill_live(const struct seep_series_course *course,
                           uint64_t live_bytes[SEEP_BUCKET_COUNT]);

/** Live bytes at the end of @bucket. */
uint64_t seep_series_live_at(const struct seep_series_course *course,
                             uint32_t bucket);

/**
 * A memory that can be full: that of the host, of a device by its ordinal, or
 * of a device that is not known, or one too many. Beside them what is mapped of
 * files: address space, of which nothing need be in memory.
 */
#define SEEP_PLACE_HOST 0U
#define SEEP_PLACE_DEVICE 1U /* and so on, one each */
#define SEEP_PLACE_OTHER (SEEP_PLACE_DEVICE + SEEP_DEVICES_MAX)
#define SEEP_PLACE_FILE (SEEP_PLACE_OTHER + 1U)
#define SEEP_PLACE_COUNT (SEEP_PLACE_FILE + 1U)

/** Spaces whose blocks are memory of their own: what sums are made of. Tensors
 * are not: they lie in segments, which space device has. Nor are mappings of
 * files: the page cache is the system's. */
bool seep_sites_space_holds(enum seep_space space);

/** Spaces whose growth counts: those, tensors, which say whose it is, and files
 * that are mapped ever more often. */
bool seep_sites_space_is_judged(enum seep_space space);

/** Where the memory of @site is. What is managed counts as the host's: it can
 * always go there. */
unsigned seep_sites_place_of(const struct seep_report_site *site);

/** What grows by less over the run, where so much is live, is minor. */
double seep_sites_floor_bytes(uint64_t live_bytes);

/** Ordinal of the device of an entry of SITES; -1: none, or not known. */
int seep_sites_device_of(const struct seep_rec_site *site);

/** The last tick up to @most of a timeline sample of process or devices. */
uint64_t seep_sites_last_sample(const struct seep_view *view, uint64_t most);

/** Did anything happen at entry @index of SITES? */
bool seep_sites_is_used(struct seep_rec_site *site, uint32_t index);

#endif
