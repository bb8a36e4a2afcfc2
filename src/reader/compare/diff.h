/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Two runs of a program, or two groups of them: which call sites are the same,
 * and which grow more than they did.
 *
 * What is held is compared beside it, since memory that is held and does not
 * grow is memory all the same. That two equal runs differ in it is known from
 * sampling, from how it swings, from how processes differ, and from a share
 * below which nothing counts (diff_held.c).
 *
 * What decides is the interval of the difference of two independent estimates,
 * never the points: what it cannot tell from none is "same" only where a
 * growth of half as much again can be excluded.
 *
 * Units: bytes, seconds, bytes per second. Errors: 0 or -ENOMEM, ret_*
 * untouched. A diff points into the reports. Pure; any thread.
 */
#ifndef SEEP_READER_COMPARE_DIFF_H
#define SEEP_READER_COMPARE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/report/report.h"

/** As they are to be read: X(SYMBOL, "name in JSON", "words"). */
#define SEEP_DIFFS(X)                   \
    X(NEW, "new", "new")                \
    X(WORSE, "worse", "worse")          \
    X(UNTOLD, "cannot-tell", "unclear") \
    X(GONE, "gone", "gone")             \
    X(BETTER, "better", "better")       \
    X(SAME, "same", "same")

enum seep_diff_outcome {
#define SEEP_DIFF_VALUE(symbol, name, words) SEEP_DIFF_##symbol,
    SEEP_DIFFS(SEEP_DIFF_VALUE)
#undef SEEP_DIFF_VALUE
        SEEP_DIFF_COUNT
};

/** "new" and so on; of another value "". */
const char *seep_diff_name(enum seep_diff_outcome outcome);
const char *seep_diff_words(enum seep_diff_outcome outcome);

/** Runs differ by so much of what it was where nothing was changed. */
#define SEEP_DIFF_MARGIN 0.05

/** @now - @before with their errors, which are independent. */
struct seep_interval seep_diff_change(const struct seep_interval *before,
                                      const struct seep_interval *now);

/** What tells @site from others in each version of a program: its space, file
 * and function, without the line and the device. */
uint64_t seep_diff_function(const struct seep_report_site *site);

#define SEEP_DIFF_NONE ((size_t)-1)

/**
 * Which of @before each of @now is. Each is one at most. Known
 * again by function and space, and within a function by the shift of lines
 * that most have in common; where the function is gone, by the names around
 * it, if only one has them.
 *
 * @param ret_match  of each of @now an index, or SEEP_DIFF_NONE
 */
int seep_diff_match(const struct seep_report_site *const *before,
                    size_t before_count,
                    const struct seep_report_site *const *now, size_t now_count,
                    size_t *ret_match);

/** Of figures that several processes have: bytes, over all their time. */
struct seep_diff_sum {
    double bytes;
    double below_squares; /* of the lower errors */
    double above_squares;
    /* Of the rates of each process: how they differ among themselves. */
    double rate_sum, rate_squares;
    double unit_sum, unit_squares;
};

/** When what is held is looked at. */
enum seep_diff_when {
    SEEP_DIFF_END,  /* at the end of each process */
    SEEP_DIFF_AGE,  /* at the age of the one that lived shortest */
    SEEP_DIFF_PEAK, /* the most that was held up to that age */
    SEEP_DIFF_WHENS
};

/** What is held of one thing, summed over the processes of a side. */
struct seep_diff_level {
    double bytes;
    double squares;       /* of each one's bytes: how they differ */
    double error_squares; /* of each one's own error */
};

/** One call site on one side. */
struct seep_diff_site {
    const struct seep_report_site *site; /* where it grows most; NULL: it is
                                            nowhere on this side */
    const struct seep_report *report;    /* that it is of */
    enum seep_class class;               /* the worst of its processes */
    size_t process_count;                /* that have it */
    bool grows;                          /* for all that is known */
    bool proved;                         /* it surely does */
    double live_bytes;                   /* a process */
    struct seep_diff_sum sum;
    struct seep_interval per_s; /* a process; of what does not grow, what it
                                   may have grown by unseen */
    struct seep_interval per_unit;
    struct seep_diff_level held[SEEP_DIFF_WHENS];
};

/** One of the two runs, or groups of runs. */
struct seep_diff_side {
    const struct seep_report *const *reports;
    size_t count;
    size_t judged_count;  /* that tell enough for a verdict */
    size_t holding_count; /* that lived long enough to tell what they hold */
    const char *reason;   /* why none of them does, or one that grows does
                             not; NULL */
    double exposure_s;    /* of those, together */
    double units;         /* that they did; 0: not all of them told */
    size_t excused_count; /* sites that are suppressed, or below a bound */
    struct seep_diff_site *sites;
    size_t site_count;
    struct seep_diff_site process; /* what the verdicts say grows */
    struct seep_diff_site outside; /* of it, what is at no call site */
    double rss_bytes;              /* at the end, a process; 0: not known */
    double live_bytes;
    struct seep_interval private_per_s;
    bool has_private;   /* that one is known */
    double units_per_s; /* a process */
    struct seep_diff_level private_held[SEEP_DIFF_WHENS];
    struct seep_diff_level devices_held[SEEP_DIFF_WHENS];
    struct seep_diff_level excused_held[SEEP_DIFF_WHENS];
    bool knows_private; /* of all that hold something */
    double freed_per_s; /* a process, but for what its start-up freed */
};

struct seep_diff_row {
    enum seep_diff_outcome outcome;
    bool is_outside; /* of call sites: there is no site */
    bool weighs;     /* a leak or a suspect, now or before */
    bool is_trifle;  /* it cannot be told, and is less than equal runs differ
                        by in what the process surely grows by */
    struct seep_diff_site before;
    struct seep_diff_site now;
    struct seep_interval change; /* by unit where .by_unit */
};

/** X(SYMBOL, "name in JSON"): what holds memory. */
#define SEEP_DIFF_HOLDERS(X) \
    X(PROCESS, "process")    \
    X(DEVICES, "devices")    \
    X(SITE, "site")          \
    X(PATTERN, "pattern")

enum seep_diff_holder {
#define SEEP_DIFF_VALUE(symbol, name) SEEP_DIFF_HOLDER_##symbol,
    SEEP_DIFF_HOLDERS(SEEP_DIFF_VALUE)
#undef SEEP_DIFF_VALUE
};

const char *seep_diff_holder_name(enum seep_diff_holder holder);

/** What is held by one thing: bytes of a process. */
struct seep_diff_held {
    enum seep_diff_holder holder;
    enum seep_diff_outcome outcome;      /* WORSE, BETTER or SAME */
    bool at_peak;                        /* it is the peak alone that differs */
    const struct seep_report_site *site; /* as it is now, else as it was */
    const struct seep_report *report;    /* that it is of */
    const struct seep_pattern *pattern;  /* that the site fits; NULL */
    size_t site_count;                   /* of a pattern */
    double before_bytes; /* at the end, or at the age that both came to */
    double now_bytes;
    double before_peak_bytes;
    double now_peak_bytes;
    struct seep_interval change;
    struct seep_interval peak_change;
};

struct seep_diff {
    struct seep_diff_side before;
    struct seep_diff_side now;
    bool by_unit;               /* of work: both tell it */
    struct seep_diff_row *rows; /* of what grows, or did; worst first */
    size_t row_count;
    size_t still_count; /* sites that grow on neither side */
    struct seep_diff_row process;
    double pace;  /* as much as before was freed now, in the same time, so many
                     times: why what is UNTOLD may grow faster; 0: no reason */
    double age_s; /* that what is held is compared at; 0: at the ends, since
                     the processes of both sides lived as long */
    struct seep_diff_held *held; /* that of the process, and what differs, the
                                    most first; none: it is not known */
    size_t held_count;
    const struct seep_diff_held *first_held; /* what speaks for all of them;
                                          NULL: what is held is the same */
};

enum seep_diff_answer {
    SEEP_DIFF_FINE,         /* nothing is worse */
    SEEP_DIFF_INSUFFICIENT, /* that cannot be told */
    SEEP_DIFF_LEAKS         /* what is new or worse is a leak */
};

/** @param ret_diff  give it to seep_diff_fini() */
int seep_diff_run(const struct seep_report *const *before, size_t before_count,
                  const struct seep_report *const *now, size_t now_count,
                  struct seep_diff *ret_diff);
void seep_diff_fini(struct seep_diff *diff);

/** Does it hold more, or less? WORSE, BETTER or SAME. */
enum seep_diff_outcome seep_diff_held_outcome(const struct seep_diff *diff);

enum seep_diff_answer seep_diff_answer_of(const struct seep_diff *diff);
/** The same of one row. */
enum seep_diff_answer seep_diff_row_answer(const struct seep_diff_row *row);

/* What follows is for the parts of diff.c (diff_held.c). */

/** The shortest life of those that tell what they hold. */
double seep_diff_age_of(const struct seep_report *const *reports, size_t count);
/** Does it tell what it holds? */
bool seep_diff_is_holding(const struct seep_report *report);
/** Add what @report holds at @site to @levels. */
void seep_diff_hold_site(const struct seep_report *report,
                         const struct seep_report_site *site, double age_s,
                         struct seep_diff_level levels[SEEP_DIFF_WHENS]);
/** Add what @report holds in all to @side. */
void seep_diff_hold_process(struct seep_diff_side *side,
                            const struct seep_report *report, double age_s);
/** The process and the devices, then each site, then all that is known. There
 * is room for one more each time. */
void seep_diff_compare_process(struct seep_diff *diff);
void seep_diff_compare_site(struct seep_diff *diff,
                            const struct seep_diff_row *row);
void seep_diff_compare_patterns(struct seep_diff *diff);
/** Half of the interval of the difference of the means of two groups by how
 * each differs in itself, as sums of squares about the means; 0 of single
 * ones. */
double seep_diff_spread(double squares, size_t before_count, size_t now_count);
double seep_diff_variance(double sum, double squares, size_t count);

#endif
