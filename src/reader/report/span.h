/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A part of a run: what stood at its end, and what happened in it, of every
 * row of a report, whatever a row is (by stack: of every stack).
 *
 * What a time names is moved to a border of the grid of series, since nothing
 * is known of what is inside a bucket: a part is widened, a moment is moved to
 * the nearest border. What a row has no series of is not guessed: it is counted
 * beside.
 *
 * Invariant: of the whole run, what stood and what was allocated and freed is
 * what the report has of the row; of a part in which all is told, what stood
 * before and what was allocated, less what was freed, is what stands.
 *
 * Units: bytes, blocks, seconds since the start of the recording. Errors: 0 or
 * negative errno. A span points into its report, which must outlive it.
 * Threads: any; a report is only read.
 */
#ifndef SEEP_READER_REPORT_SPAN_H
#define SEEP_READER_REPORT_SPAN_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/report/report.h"

enum seep_span_when {
    SEEP_SPAN_NONE,   /* not named */
    SEEP_SPAN_TIME,   /* .seconds after the start */
    SEEP_SPAN_BEFORE, /* .seconds before the end */
    SEEP_SPAN_PEAK,   /* when most was live */
    SEEP_SPAN_END,
    SEEP_SPAN_MARK /* the first of the name .mark */
};

/** A time as a user names it. */
struct seep_span_time {
    enum seep_span_when when;
    double seconds;
    const char *mark; /* NULL but of a mark */
};

/** What is asked for: .at, or the other two. Of none of them: the whole run. */
struct seep_span_wish {
    struct seep_span_time since; /* none: the start */
    struct seep_span_time until; /* none: the end */
    struct seep_span_time at;    /* what stood then */
};

static inline bool seep_span_is_wished(const struct seep_span_wish *wish)
{
    return wish->since.when != SEEP_SPAN_NONE ||
           wish->until.when != SEEP_SPAN_NONE ||
           wish->at.when != SEEP_SPAN_NONE;
}

struct seep_span_row {
    /* What stood at the end of the span, and at its begin; 0 where that is not
     * known. */
    bool knows_live;
    double live_bytes;
    double live_bytes_error; /* 1.96 sigma of the sampling */
    double live_count;
    bool live_count_is_estimate; /* by the mean size of its blocks */
    bool knows_before;
    double before_bytes;
    double before_count;
    double growth_bytes; /* between; 0 where one of them is not known */
    /* What happened in it, as far as that is told. */
    double allocated_bytes;
    double allocated_count;
    double freed_bytes;
    double freed_count;
    bool freed_count_is_estimate;
    double untold_bytes; /* was allocated in it besides, at the most */
    /* Of what was allocated in it: lived for less than a bucket; below 0: not
     * known. */
    double temporary_bytes;
};

/** Of several rows. */
struct seep_span_sum {
    double live_bytes;
    double before_bytes;
    double growth_bytes;
    double allocated_bytes;
    double freed_bytes;
    size_t unknown_count; /* rows of which is not known what stood, which are */
    double unknown_bytes; /* not in the sums; they held at most so much */
    size_t untold_count;  /* rows with .untold_bytes, and these */
    double untold_bytes;
};

/** When most was live in all spaces whose blocks are memory of their own. */
struct seep_span_peak {
    double at_s;       /* a border of buckets */
    double bytes;      /* that were live then */
    double most_bytes; /* and can have been between borders */
};

/** Borders of a run, with those at its begin and its end. */
#define SEEP_SPAN_BORDERS_MAX (SEEP_BUCKET_COUNT + 2)

/** Some rows of a report over time, together. */
struct seep_span_course {
    const struct seep_report *report;
    size_t count; /* borders */
    double at_s[SEEP_SPAN_BORDERS_MAX];
    double live_bytes[SEEP_SPAN_BORDERS_MAX]; /* then, as far as it is known */
    double most_bytes[SEEP_SPAN_BORDERS_MAX]; /* since the border before */
};

/** Of no row yet. */
void seep_span_course_init(const struct seep_report *report,
                           struct seep_span_course *ret_course);
void seep_span_course_add(struct seep_span_course *course,
                          const struct seep_report_site *site);
/** When most of them was live. */
struct seep_span_peak
seep_span_course_peak(const struct seep_span_course *course);

struct seep_span {
    const struct seep_report *report;
    bool is_moment; /* what stood at .to_s is asked for; it begins at 0 */
    bool is_whole;  /* from the start to the end */
    double from_s;  /* borders of buckets, or the end */
    double to_s;
    double asked_from_s; /* as it was named */
    double asked_to_s;
    struct seep_span_peak peak; /* of the run */
    struct seep_span_sum total; /* of spaces whose blocks are memory */
    struct seep_span_sum spaces[SEEP_SPACE_COUNT];
    const struct seep_span_row *rows; /* as report->sites; as many */
};

/**
 * @param ret_span  give it to seep_span_close()
 * @return 0; -ENOENT: no mark has that name; -ERANGE: the run ended before;
 *         -EINVAL: it ends before it begins; -ENOMEM
 */
int seep_span_open(const struct seep_report *report,
                   const struct seep_span_wish *wish,
                   struct seep_span **ret_span);

/** NULL is fine. */
void seep_span_close(struct seep_span *span);

/** Bytes a second that @row grew by in @span; 0 of one without length. */
double seep_span_rate(const struct seep_span *span,
                      const struct seep_span_row *row);

#endif
