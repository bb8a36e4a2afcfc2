/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Families: the processes of one report that are one service. Same host, same
 * executable and arguments but for numbers that tell replicas apart, same
 * labels but `replica`, `rank` and `worker`; forks have their parent's.
 *
 * Invariant: a family is never told better than its worst member, nor "no
 * leak" while a member tells too little, but for children that were tested
 * together (family.h).
 *
 * Units: bytes, seconds, bytes per second. Pure; any thread. Errors: 0 or
 * -ENOMEM, ret_* untouched. Families point into the reports.
 */
#ifndef SEEP_READER_JUDGE_FAMILY_H
#define SEEP_READER_JUDGE_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/report/report.h"
#include "reader/statistics/growth.h"

/*
 * Children that come one after the other or side by side, each too short to be
 * judged: does what a line holds grow with the age of a child, in all of them,
 * up to their ends? And does what it keeps at a child's end grow with how long
 * the child ran?
 *
 * A working set is the same in a child of three seconds and in one of six; a
 * leak is twice as much. The slope over children, by least squares with
 * Student's interval, tells the two apart, and says so only where it can: where
 * children differ too little in length, the interval is wide.
 */

#define SEEP_FAMILY_CHILDREN_MIN 3

/** X(SYMBOL, "name in JSON"): what the children keep, worst first. */
#define SEEP_FAMILY_TRENDS(X)    \
    X(GROWS, "grows")            \
    X(MAY_GROW, "may-grow")      \
    X(UNTOLD, "not-enough-data") \
    X(ONCE, "once-per-process")

enum seep_family_trend {
#define SEEP_FAMILY_TREND_VALUE(symbol, name) SEEP_FAMILY_##symbol,
    SEEP_FAMILY_TRENDS(SEEP_FAMILY_TREND_VALUE)
#undef SEEP_FAMILY_TREND_VALUE
        SEEP_FAMILY_TREND_COUNT
};

const char *seep_family_trend_name(enum seep_family_trend trend);

/** What grows with the age of children. */
struct seep_family_age {
    size_t count;  /* that lived long enough; 0: not tested, the rest is 0 */
    size_t rising; /* of them, that hold more late than early in their lives */
    struct seep_interval rate;    /* bytes a second of a child */
    enum seep_family_trend trend; /* never ONCE */
    bool flattens; /* it grows, and less the older they are: as a cache */
};

/** What is kept at the ends of children. */
struct seep_family_kept {
    size_t count; /* children that kept something; 0: none was tested */
    double bytes; /* summed over them */
    enum seep_family_trend trend;
    bool has_slope;
    struct seep_interval slope; /* bytes a second of a child, or a unit */
    struct seep_family_age age; /* of a line; .trend has heard it */
};

struct seep_family_children {
    size_t count;  /* 0: there are none, or too few */
    bool by_units; /* slopes are by units of work, else by seconds */
    double least_s;
    double most_s;
    double mean_s;
    double mean_units;
    size_t line_count;            /* that most of them keep memory at */
    enum seep_family_trend trend; /* the worst of the lines, and of all that a
                                     child holds */
    struct seep_family_kept held; /* at all sites of a child together */
};

/**
 * @param length      of each child: seconds or units
 * @param bytes       that each keeps
 * @param count       of children
 * @param line_count  lines that are tested, at least 1 (Bonferroni)
 * @param floor_bytes what the children grow by together is worth a word from
 *                    here on
 */
void seep_family_kept_test(const double *length, const double *bytes,
                           size_t count, size_t line_count, double floor_bytes,
                           struct seep_family_kept *ret_kept);

#define SEEP_FAMILY_AGE_LEVELS 5

/** What one child held at a line, as means of parts of its life. */
struct seep_family_ages {
    double life_s;
    double level[SEEP_FAMILY_AGE_LEVELS];
    bool is_unknown; /* how it came to what it holds is not known */
};

/** What the child, of @life_s, held at @site: of its series, which may be let
 * go then. */
void seep_family_age_levels(const struct seep_report_site *site, double life_s,
                            double ret_levels[SEEP_FAMILY_AGE_LEVELS]);

/** Add it. */
void seep_family_age_add(const struct seep_report_site *site, double life_s,
                         struct seep_family_ages *ages);

/** Of @count children; the others as for seep_family_kept_test(). */
void seep_family_age_test(const struct seep_family_ages *ages, size_t count,
                          size_t line_count, double floor_bytes,
                          struct seep_family_age *ret_age);

/** @return false: it is none, as its growth does not count, or it is
 * suppressed */
bool seep_family_row_of(const struct seep_report *report,
                        const struct seep_report_site *site,
                        struct seep_report_row *ret_row);

/** What lived less long is no worker, but may be a child. */
#define SEEP_FAMILY_BRIEF_S 1.0

/** A call site, over the members that have it. */
struct seep_family_site {
    const struct seep_report_site *site; /* of the member where it is worst;
                                            where that has rows alone, it has
                                            no more than a row has */
    const struct seep_report *report;    /* that member */
    const char *id;       /* the row's; by stack that of its line */
    size_t process_count; /* members that have it */
    size_t leak_count;    /* of them, where it is a leak or a suspect */
    uint64_t live_bytes;  /* of the members that run together */
    bool has_growth;      /* in at least one of these */
    struct seep_interval growth_bytes_per_s; /* theirs */
    struct seep_family_kept kept;            /* by the children */
};

struct seep_family {
    char id[20];                              /* stable over runs */
    const struct seep_report *const *members; /* as they were given */
    size_t count;
    size_t running_count;
    size_t lasting_count;                /* members that are not brief */
    size_t by_class[SEEP_VERDICT_COUNT]; /* of these */
    /*
     * Those that hold memory at one time: all that run, and where none does
     * those of the last time that the most ran. In the order of .members.
     */
    const struct seep_report *const *together;
    size_t together_count;
    size_t open_count; /* that tell too little, and are no children */
    enum seep_verdict_class class;
    const struct seep_report *worst; /* the member that it is of */
    bool on_devices;      /* the growth is of memory of GPUs, else the host's */
    size_t growing_count; /* of those together, that the growth is of */
    bool has_growth;
    struct seep_interval growth_bytes_per_s; /* theirs */
    struct seep_report_forecast forecast;
    bool shares_cgroup;
    struct seep_family_children children;
    struct seep_family_site *sites; /* worst first */
    size_t site_count;
    struct seep_family_face *faces; /* what of .sites is of rows */
};

struct seep_families {
    struct seep_family *list; /* worst first */
    size_t count;
    const struct seep_report **members; /* what those of .list point into */
    const struct seep_report **together;
};

/** @param ret_families  give it to seep_families_fini() */
int seep_families_make(const struct seep_report *const *reports, size_t count,
                       struct seep_families *ret_families);
void seep_families_fini(struct seep_families *families);

/** Did it live for a moment, and tell nothing? */
bool seep_family_is_brief(const struct seep_report *report);

/** The worst of them that has more than brief members; of none INSUFFICIENT. */
enum seep_verdict_class
seep_families_class(const struct seep_families *families);

/** Who is to be looked at first: @worst of the reports, but where a family is
 * worse than each of them, the member in which what it is about is most. */
const struct seep_report *
seep_families_first(const struct seep_families *families,
                    const struct seep_report *worst);

/* What follows is for the parts of family.c. */

/** The quantile of Student's t that @tail lies above; INFINITY of no freedom.
 */
double seep_family_student(double tail, size_t freedom);

double seep_family_end_s(const struct seep_report *report);

/** Errors are independent: squares add, and stand in the bounds of @sum until
 * all is added and seep_family_finish_rate() takes their roots. */
void seep_family_add_rate(struct seep_interval *sum,
                          const struct seep_interval *rate);
void seep_family_finish_rate(struct seep_interval *sum);

/** family_sites.c: .sites, and what the children keep at each. */
int seep_family_add_sites(struct seep_family *family);

/** forecast.c: what grows by all of them, and until when. */
void seep_family_add_growth(struct seep_family *family);

#endif
