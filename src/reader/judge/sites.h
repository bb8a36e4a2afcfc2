/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The call sites of a snapshot in rows of one or several: totals, survivors,
 * and a judgement of each row.
 *
 * Errors: 0 or -ENOMEM. Threads: one at a time.
 */
#ifndef SEEP_READER_JUDGE_SITES_H
#define SEEP_READER_JUDGE_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/view.h"
#include "reader/recording/series.h"
#include "reader/recording/snapshot.h"
#include "reader/report/report.h"
#include "reader/statistics/growth.h"
#include "reader/statistics/window.h"
#include "seep/recording.h"

/*
 * The work clock: how much of the run's work was done by a tick, 0 to 1.
 *
 * Work is what the program told of it (seep_progress); without that the bytes
 * allocated by the whole process; without those, time itself, and then no
 * site is called a leak.
 */

enum seep_clock_kind {
    SEEP_CLOCK_UNITS,
    SEEP_CLOCK_BYTES,
    SEEP_CLOCK_WALL,
};

struct seep_clock {
    enum seep_clock_kind kind;
    uint64_t units;      /* told since the work began */
    uint64_t begin_tick; /* when it began: an edge of the grid */
    uint64_t end_tick;
    double waited_s;     /* from the start, before any work; 0 for most */
    double late_s;       /* the same, until imports ended or the first unit was
                            told, in the second half of the run */
    bool mostly_imports; /* more than three quarters of the run */
    uint32_t width_log2; /* ticks */
    uint32_t count;      /* buckets up to the end of the run */
    double at[SEEP_BUCKET_COUNT + 1]; /* share done at each bucket's edge */
    /* Share of the units told by each edge, whatever the clock is; all 0: none
     * were told. */
    double units_at[SEEP_BUCKET_COUNT + 1];
};

void seep_clock_init(struct seep_clock *ret_clock, const struct seep_view *view,
                     struct seep_series_grid grid);

/** What it was made for. */
struct seep_series_grid seep_clock_grid(const struct seep_clock *clock);

/**
 * Let the work be @work, by bucket; it is clipped. @return false if there is
 * none: the clock is as it was
 */
bool seep_clock_by_work(struct seep_clock *clock, double *work);

/**
 * The work began at @tick: what was done before is none of it. Of a cut in the
 * grid, the edge before it.
 */
void seep_clock_begin(struct seep_clock *clock, uint64_t tick);

/** The time since the start by which @share of that of the work is over. */
double seep_clock_time_at(const struct seep_clock *clock, double share);

/** How long the work took, with what is left of a wait before it. */
double seep_clock_worked_s(const struct seep_clock *clock);

/** Share of the work done by @tick; 1 behind the end. */
double seep_clock_at(const struct seep_clock *clock, double tick);

/** Units that were told from @from_tick to @to_tick. */
double seep_clock_units_in(const struct seep_clock *clock, double from_tick,
                           double to_tick);

/** The first tick by which @share of the work was done. */
double seep_clock_tick_at(const struct seep_clock *clock, double share);

/** Work done per time in the last fifth of the run, over that of all of it. */
double seep_clock_late_pace(const struct seep_clock *clock);

/** Does the load set new records in the second half of the run? */
bool seep_clock_rises(const struct seep_clock *clock);

/** Units of work per second, in the last fifth where units are the clock. */
double seep_clock_units_per_s(const struct seep_clock *clock);

/** @values of the end of each bucket from @first to the end of the run. */
void seep_clock_series(const struct seep_clock *clock, const double *values,
                       uint32_t first, struct seep_window_series *ret_series);

/** Which row a site of the recording belongs to. */
struct seep_site_key {
    uint64_t row;     /* sites with one are one row */
    uint64_t id;      /* that the row is shown with */
    uint64_t line_id; /* 0: the same, or none */
    const char *pool; /* see seep_report_site */
};

/** A site of the recording in its row. */
struct seep_site_member {
    uint32_t index; /* in SITES */
    uint32_t first_tick;
    struct seep_series_source series; /* none: none was kept */
};

/** A live block of a site without series, in a row of several sites. */
struct seep_site_loose {
    uint32_t birth_tick;
    uint64_t bytes; /* that it stands for */
    uint64_t count_q16;
};

/** Of blocks whose pages were looked at, and of those that are too small. */
struct seep_site_look {
    size_t count;
    double bytes;
    double touched_bytes; /* of these, resident or in swap */
    double small_bytes;   /* taken to be written to */
};

/** One row at work; .site is what the report will show of it. */
struct seep_site_work {
    struct seep_report_site site;
    uint64_t id;
    uint64_t line_id;
    uint32_t index;                   /* in SITES, of the one that holds most */
    struct seep_series_source series; /* the first there is */
    size_t member_first;              /* in the members of all rows */
    size_t member_count;              /* 0 is as 1: .series is all there is */
    size_t loose_first;
    size_t loose_count;
    double loose_bytes;    /* they hold */
    double loose_born;     /* allocated by sites without series, and freed: */
    double loose_freed;    /* when is not known */
    size_t survivor_first; /* in the survivors of all sites */
    size_t survivor_count;
    size_t old_count;     /* of them, that are old */
    uint64_t event_count; /* that were seen */
    double early_bytes;   /* that live, and were born before the work began */
    bool is_over;         /* it is of imports that ended: it cannot leak */
    double variance;      /* of live_bytes, by sampling */
    uint32_t first_tick;
    bool is_rest; /* of those that hold least, where there are very many; no
                     site is its .index */
    /* Of mappings and large blocks the pages are what counts, and the shares of
     * what is live, which are 1 where too little is known. What came since the
     * first tenth is apart: what a line reserved as it began has no pages, and
     * says nothing of what it maps since. */
    struct seep_site_look early;
    struct seep_site_look late;
    double touched_share; /* of all */
    double grown_share;   /* of what came since */
    /* Of what was there at the last looks, what others wrote to memory that is
     * shared: not in resident memory of this process. */
    double there_bytes;
    double elsewhere_bytes;
    double elsewhere_share;
    struct seep_growth growth;
    /* Its live bytes rose by, in the part of the run in which private memory
     * grew; not known without a series. */
    bool has_late_rise;
    double late_rise_bytes;
};

struct seep_sites {
    struct seep_site_work *works;
    size_t count;
    struct seep_site_member *members; /* grouped by row */
    struct seep_site_loose *loose;    /* ditto */
    struct seep_survivor *survivors;  /* ditto */
    size_t survivor_count;
    /* By place, of all sites in spaces that hold memory, and of files. */
    uint64_t live_bytes[SEEP_PLACE_COUNT];
};

/**
 * @param keys       the row of each used site, by its index in SITES; NULL:
 *                   each is a row of its own
 * @param ret_sites  give it to seep_sites_fini()
 */
int seep_sites_init(const struct seep_snapshot *snapshot,
                    const struct seep_clock *clock,
                    const struct seep_site_key *keys,
                    struct seep_sites *ret_sites);

/** More rows than these are not made: those that hold least are one for each
 * place. A row is a kilobyte until it is in the report. */
#define SEEP_SITES_ROWS_MOST 131072U

/** So many sites of a recording are summed at once. */
#define SEEP_SITES_AT_ONCE 65536U

/** Each by itself, of SEEP_SITES_AT_ONCE from @first on, without survivors: for
 * who does not judge them. */
int seep_sites_sum(const struct seep_snapshot *snapshot,
                   const struct seep_clock *clock, uint32_t first,
                   struct seep_sites *ret_sites);

void seep_sites_fini(struct seep_sites *sites);

/** Once all is judged: of a million blocks they are 37 MB. What was found of
 * them stays. */
void seep_sites_forget_survivors(struct seep_sites *sites);

/** Does it grow, or may it, by its class? */
static inline bool seep_sites_is_loud(const struct seep_report_site *site)
{
    return site->class < SEEP_CLASS_INSUFFICIENT;
}

/** Add @more to @sum. */
void seep_sites_add_requested(struct seep_report_requested *sum,
                              const struct seep_report_requested *more);

/** Was anything kept of when things happened? */
bool seep_sites_has_series(const struct seep_site_work *work);

/**
 * The series of a row, which has one: the sum of its sites'.
 * The lowest bytes of a bucket are the sum of theirs: not above those of the
 * row, and the same where only one of them gives back in that bucket. What of a
 * site without series is live is in it from its birth on; what died of it is
 * not in it.
 */
void seep_sites_read_series(const struct seep_sites *sites,
                            const struct seep_site_work *work,
                            struct seep_series_grid grid,
                            struct seep_series_table *ret_table);

/** Class, interval and confidence of each, and their order. */
void seep_sites_judge(struct seep_sites *sites, const struct seep_clock *clock);

/** Why no site of this run can be judged; NULL: they can. */
const char *seep_sites_too_short(const struct seep_clock *clock);

/*
 * What speaks for and against one site: its series, its survivors and who died
 * old, as the growth test takes them, and the words' share of it.
 *
 * Invariant: deaths and survivors are parted at one and the same age, an edge
 * of the grid of ages, so that the share of old blocks that died is exact; and
 * evidence is counted in blocks that were seen, not in what they stand for.
 *
 * Pure functions; any thread.
 */

struct seep_evidence {
    struct seep_growth_input input; /* points into the rest, and into sites */
    struct seep_series_table table;
    double bucket_end[SEEP_BUCKET_COUNT];
    double live_bytes[SEEP_BUCKET_COUNT];
    double low_bytes[SEEP_BUCKET_COUNT];
    double allocations[SEEP_BUCKET_COUNT];
    struct seep_growth_life life; /* points into the rest, too */
    double work_edge[SEEP_BUCKET_COUNT + 1];
    double time_edge[SEEP_BUCKET_COUNT + 1];
    double allocated_bytes[SEEP_BUCKET_COUNT];
    double allocated_count[SEEP_BUCKET_COUNT];
    double died_count[SEEP_BUCKET_COUNT];
};

/** The age, in ticks, at which a block is old: the first edge of the grid of
 * ages that is at least a fifth of the run since the work began. */
uint64_t seep_evidence_old_ticks(const struct seep_clock *clock);

/** @param work  one that has a series */
void seep_evidence_gather(const struct seep_sites *sites,
                          const struct seep_site_work *work,
                          const struct seep_clock *clock,
                          struct seep_evidence *ret_evidence);

/** What calls of the process hold of one device, and what PyTorch says of its
 * cache there, at the end of each bucket of the clock. */
struct seep_device_live {
    double device[SEEP_BUCKET_COUNT];  /* space device */
    double managed[SEEP_BUCKET_COUNT]; /* space managed */
    double tensors[SEEP_BUCKET_COUNT]; /* space tensor */
    bool has_tensors;                  /* there are sites of that */
    double reserved[SEEP_BUCKET_COUNT];
    double allocated[SEEP_BUCKET_COUNT];
    uint32_t cache_first; /* bucket from which the last two are known; not
                             below the clock's count: never */
    bool is_followed;     /* the driver was asked over enough of the run */
};

/**
 * Mark which of @sites, which have frames by now, are segments of PyTorch's
 * cache; what grows with the tensors in them, or of itself, is no leak.
 *
 * @param devices     SEEP_DEVICES_MAX of them
 * @param live_bytes  by place
 * @param ret_growth  of each cache that grows and its tensors do not; the
 *                    others are left alone
 */
void seep_cache_mark(const struct seep_clock *clock,
                     const struct seep_device_live *devices,
                     const uint64_t *live_bytes, struct seep_report_site *sites,
                     size_t count, struct seep_interval *ret_growth);

/*
 * Do two sites grow in step? What they keep, by when it was born on the work
 * clock, one beside the other.
 *
 * Two constant leaks under one load look alike, and have nothing to do with
 * each other: that they are in step is needed for what else is known of two
 * sites, and is no reason by itself. Bursts are one: what stands out of the
 * load in the same places again and again has one cause.
 *
 * Pure functions; any thread.
 */

#define SEEP_STEP_BINS 60 /* divides by 3, 4, 5, 6, 10, 12, 15, 20, 30 */

/** Survivors of a site by when they were born. Blocks that were seen are
 * counted, not what they stand for. */
struct seep_step {
    double count[SEEP_STEP_BINS];
    double total;
    double lendable; /* of them, of a size that CPython's free lists keep */
};

void seep_step_init(const struct seep_survivor *survivors, size_t count,
                    struct seep_step *ret_step);

/** May the two be of one distribution, but for a small part? False also where
 * there are too few to tell. */
bool seep_step_is_shared(const struct seep_step *a, const struct seep_step *b);

/** Do both stand out of the load, again and again in the same places, and by
 * as much? p < 1e-4 for two that do so independently of each other. */
bool seep_step_has_same_bursts(const struct seep_step *a,
                               const struct seep_step *b);

#define SEEP_TOGETHER_MOST 64U /* sites that are looked at */

/** Leaks, by their places among the sites, that were only lent by CPython's
 * free lists: the keeper has their blocks. */
struct seep_together_loans {
    struct {
        size_t lender;
        size_t keeper;
    } list[SEEP_TOGETHER_MOST];
    size_t count;
};

/**
 * Sites that grow in step are one group: a container and its elements, what one
 * request keeps, the line that keeps a block and the one that CPython's free
 * lists took the block from. Find them among @sites, which have frames and
 * marks by now and are in the order of @all, and fill what they have of a
 * group. A lender becomes BACKING, whose reason is the caller's to give.
 */
int seep_together_group(const struct seep_sites *all,
                        struct seep_report_site *sites, size_t count,
                        struct seep_together_loans *ret_loans);

/** Move each head before the first of its members. */
void seep_together_order(struct seep_report_site *sites, size_t count);

#endif
