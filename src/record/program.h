/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the program says of itself, moments with a name and labels; and what it
 * can be told of itself while it runs, from its own recording.
 *
 * Invariant: no lock, no wait, no system call. A published mark never changes,
 * but for when a label was last given; what is said twice takes room once, and
 * what finds none is counted. To tell changes nothing, and takes 20 us where
 * there are no GPUs, for the parts that grow with the run are left out.
 */
#ifndef SEEP_RECORD_PROGRAM_H
#define SEEP_RECORD_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "format/view.h"

/** Of a name or a value so many bytes are kept. */
#define SEEP_MARKS_TEXT_BYTES 96U

/** @name happened at @tick. Of no name, nothing did. */
void seep_marks_moment(const struct seep_view *view, uint32_t tick,
                       const char *name);

/** From @tick on the process's label @key is @value. */
void seep_marks_label(const struct seep_view *view, uint32_t tick,
                      const char *key, const char *value);

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
