/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The memory of a process, added up: what seep's blocks hold of it, what the
 * allocator keeps beyond them, and what nobody explains.
 *
 * Invariant: a part is never negative. Blocks need not be resident
 * (numpy.zeros), so tracked may be more than anonymous, and what an allocator
 * calls resident may be in no page any more; only growth is judged, and a
 * constant (relocated data, stacks, interned objects) is nobody's fault.
 *
 * Sizes are bytes, times seconds since the start. Pure; any thread.
 */
#ifndef SEEP_READER_JUDGE_BALANCE_H
#define SEEP_READER_JUDGE_BALANCE_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/report/report.h"
#include "reader/statistics/window.h"

/** The process at one time; what is not known is negative. */
struct seep_balance_point {
    double t_s;
    double rss;
    double anonymous; /* rss less files and shared memory */
    double swap;
    double cgroup;
    double heap;      /* live blocks of the allocator, as seep knows them */
    double beside;    /* live blocks of the other spaces that lie in RSS */
    double pinned;    /* of that, what is pinned for a device */
    double files;     /* mapped of files, resident or not */
    double allocated; /* the allocator's own figures */
    double active;
    double resident;
    double chunks; /* free ones */
    double held;   /* resident in mappings of the allocator, from outside */
    double own;    /* of what is shared: the recording */
    double mapped; /* resident or in swap, of mappings that seep knows */
};

/**
 * What a driver pins it mapped of its device, which the kernel counts as
 * shared; it is as much the process's as what is private, and is counted there:
 * as much as what is shared rose by since there was any. Where the kernel
 * counts it as private, or not at all, nothing rose.
 *
 * @param points  by time; .anonymous is changed
 */
void seep_balance_own_pinned(struct seep_balance_point *points, size_t count);

struct seep_balance_input {
    const struct seep_balance_point *points; /* by time */
    size_t count;
    double begin_s; /* the work began */
    double end_s;
    double sampled_error;    /* of what heap and beside grow by, by sampling:
                                95 % */
    double beside_error;     /* of what beside grows by */
    double heap_pages_bytes; /* of pages that live blocks lie in, at the end;
                                0: not every block is known */
    double headers_share;    /* of what is live of the heap, what the allocator
                                can need besides: headers and rounding */
    double free_most_bytes;  /* that can be free of the heap: what was ever
                                freed; INFINITY: not known */
};

/** How the allocator's free memory lies. */
enum seep_balance_free {
    SEEP_BALANCE_FREE_UNKNOWN,
    SEEP_BALANCE_FREE_PAGES,    /* whole pages, that could be given back */
    SEEP_BALANCE_FREE_SCATTERED /* in pages that live blocks share */
};

/** What the process did that no call site tells of; for the verdict. */
struct seep_balance_outside {
    bool known; /* enough was seen to say anything */
    double rss_bytes;
    double p;             /* that what is not tracked grows by chance */
    bool going_on;        /* still in the last fifth */
    double growth_bytes;  /* of what is not tracked, once settled */
    double error_bytes;   /* of that, by sampling */
    double tracked_bytes; /* that tracked grew by, over the same time */
    struct seep_interval bytes_per_s; /* of what is not tracked */
    bool has_overhead;                /* its figures, or external samples, are
                                         known */
    double overhead_bytes;            /* that the allocator keeps, at the end */
    double overhead_growth_bytes;
    double unseen_growth_bytes; /* of blocks that the allocator has in use, and
                                   no hook saw */
    enum seep_balance_free free;
    /* Of what is not tracked, what pages of mappings grew by that are none of
     * a new mapping: what was reserved is used. */
    double mapped_growth_bytes;
    /* Since it started, also where it stopped. */
    double rise_bytes;         /* of anonymous and swap */
    double tracked_rise_bytes; /* to the most that was live in the last half */
};

/** What is private, in its parts, at one time; below 0: not known. */
struct seep_balance_parts {
    double tracked;
    double overhead; /* of the allocator */
    double unexplained;
};

/**
 * @param ret_memory   the extents; its other fields are left alone
 * @param ret_outside  all of it
 * @param ret_parts    one for each of the input's points; may be NULL
 */
void seep_balance_fill(const struct seep_balance_input *input,
                       struct seep_report_memory *ret_memory,
                       struct seep_balance_outside *ret_outside,
                       struct seep_balance_parts *ret_parts);

/** Of the whole run, its slope of the settled part since the work began. Also
 * of devices. */
struct seep_report_extent
seep_balance_extent_of(const struct seep_window_series *series, double begin_s,
                       double end_s);

/** The same of what is 0 where it was not told: not valid if it always is. */
struct seep_report_extent
seep_balance_extent_if_any(const struct seep_window_series *series,
                           double begin_s, double end_s);

static inline double seep_balance_positive(double value)
{
    return value > 0 ? value : 0;
}

/** By at least @least figures over so much of it that they stand for all. */
bool seep_balance_covers(const struct seep_window_series *series, size_t least,
                         double from_s, double to_s);

#endif
