/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the files of the balance share, and devices of them: its parts as
 * series over the run.
 *
 * Pure; any thread.
 */
#ifndef SEEP_READER_BALANCE_PARTS_H
#define SEEP_READER_BALANCE_PARTS_H

#include "reader/balance.h"

struct seep_balance_span {
    double from_s;
    double to_s;
};

struct seep_balance_series {
    struct seep_window_series rss;
    struct seep_window_series anonymous;
    struct seep_window_series shared;
    struct seep_window_series swap;
    struct seep_window_series cgroup;
    struct seep_window_series tracked;
    struct seep_window_series allocated;
    struct seep_window_series resident_less_active;
    struct seep_window_series active_less_allocated;
    struct seep_window_series kept;      /* by the allocator, of no block */
    struct seep_window_series overhead;  /* that, headers and rounding */
    struct seep_window_series untracked; /* anonymous + swap - tracked */
    struct seep_window_series unexplained;
    struct seep_window_series strange; /* the same, but for sampling: the
                                          allocator's word for the heap */
};

static inline double seep_balance_positive(double value)
{
    return value > 0 ? value : 0;
}

/** Did the allocator tell its figures then? */
static inline bool seep_balance_tells(const struct seep_balance_point *point)
{
    return point->resident > 0 && point->allocated >= 0;
}

/* balance.c */

/** The part of [@from_s, @to_s] that @series tells of. */
struct seep_balance_span
seep_balance_span_of(const struct seep_window_series *series, double from_s,
                     double to_s);

/** By at least @least figures over so much of it that they stand for all. */
bool seep_balance_covers(const struct seep_window_series *series, size_t least,
                         double from_s, double to_s);

/* balance_outside.c */

/** @param told  the allocator's own figures stand for the heap */
void seep_balance_fill_outside(const struct seep_balance_series *series,
                               const struct seep_balance_input *input,
                               bool told, struct seep_balance_outside *outside);

#endif
