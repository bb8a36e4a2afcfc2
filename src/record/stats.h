/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a process can be told of itself while it runs, from its own recording.
 *
 * Invariant: nothing is changed, waited for or asked of the system; 20 us
 * where there are no GPUs, for the parts that grow with the run are left out.
 */
#ifndef SEEP_RECORD_STATS_H
#define SEEP_RECORD_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/view.h"

struct seep_stats_figures {
    uint64_t live_bytes; /* in memory of the host */
    bool has_growth;
    double growth_bytes_per_s; /* of them, as base/math.h has it */
    uint64_t rss_bytes;        /* 0: not known, as below */
    uint64_t cgroup_bytes;
    uint64_t cgroup_limit_bytes;
    uint64_t device_total_bytes; /* of the device that has the least left */
    uint64_t device_free_bytes;
    uint64_t units;
};

/** As of @tick; what was pushed and not folded yet does not count. */
void seep_stats_take(const struct seep_view *view, uint32_t tick,
                     struct seep_stats_figures *ret_figures);

#endif
