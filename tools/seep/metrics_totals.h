/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What counters were told to be, so that they never go back.
 *
 * An estimate can: thinning corrects what was allocated, and a copy made while
 * a worker writes can be a ring older than the one before. To Prometheus a
 * counter that is lower than before has begun anew, and its rate leaps.
 *
 * One entry a recording; those that were not asked for between two calls of
 * seep_metrics_totals_prune() are forgotten.
 */
#ifndef SEEP_TOOL_METRICS_TOTALS_H
#define SEEP_TOOL_METRICS_TOTALS_H

#include <stddef.h>

#include "follow.h"

enum seep_metrics_total {
    SEEP_METRICS_TOTAL_ALLOCATED, /* these two by space and device */
    SEEP_METRICS_TOTAL_FREED,
    SEEP_METRICS_TOTAL_LOST,
    SEEP_METRICS_TOTAL_UNITS,
    SEEP_METRICS_TOTAL_COUNT,
};

/** Start from an all-zero struct. */
struct seep_metrics_totals {
    struct seep_metrics_totals_entry *entries;
    size_t count;
};

/**
 * The most that this counter of @followed ever was, @value included.
 *
 * @param at  of holdings seep_metrics_totals_at(), else 0
 */
double seep_metrics_totals_raise(struct seep_metrics_totals *totals,
                                 const struct seep_followed *followed,
                                 enum seep_metrics_total total, size_t at,
                                 double value);

/** Number of a holding's space and device. */
size_t seep_metrics_totals_at(const struct seep_report_holding *holding);

void seep_metrics_totals_prune(struct seep_metrics_totals *totals);
void seep_metrics_totals_fini(struct seep_metrics_totals *totals);

#endif
