/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From recordings that are followed to one text of metrics.
 *
 * Bounded: a process has at most .site_limit call sites, and of processes
 * there are at most as many as are followed. A process that has ended keeps
 * its series as long as it is followed; then they end, as they do for any
 * target that is gone, and sums of rates stay right.
 */
#ifndef SEEP_TOOL_METRICS_MAKE_H
#define SEEP_TOOL_METRICS_MAKE_H

#include "follow.h"
#include "metrics_text.h"
#include "metrics_totals.h"

/** What a follower told: its list and its counts. */
struct seep_metrics_input {
    const struct seep_followed *const *list;
    size_t count;
    struct seep_follow_counts counts;
    size_t site_limit; /* of each process */
    double refresh_s;  /* what it took to read them */
};

/**
 * Write all that is known into @text, which is empty and has its format.
 *
 * @return 0 or -ENOMEM
 */
int seep_metrics_make(const struct seep_metrics_input *input,
                      struct seep_metrics_totals *totals,
                      struct seep_metrics_text *text);

#endif
