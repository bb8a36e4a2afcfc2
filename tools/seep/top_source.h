/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Reports that are read again and again by a thread of their own, so that
 * whoever looks at them never waits.
 *
 * The thread reads, hands over what it read, and waits; the other side takes
 * the newest. What was taken before is closed by the next taking, not earlier.
 * Signals are blocked in the thread if they are where it is started.
 *
 * Errors: 0 or negative errno.
 */
#ifndef SEEP_TOOL_TOP_SOURCE_H
#define SEEP_TOOL_TOP_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/report.h"

struct seep_top_source;

/** What was read at one time. */
struct seep_top_shot {
    const struct seep_report **reports; /* worst first */
    size_t count;
    char notice[512]; /* what went wrong, or is not shown; "": nothing */
    double reading_s; /* that it took */
};

/** @param words  and @options, with what it points to, are borrowed */
int seep_top_source_open(char *const *words, size_t count,
                         const struct seep_report_options *options,
                         double interval_s,
                         struct seep_top_source **ret_source);

/** A descriptor that becomes readable when there is something to take. */
int seep_top_source_fd(const struct seep_top_source *source);

/**
 * The newest, if there is one that was not taken yet.
 *
 * @return NULL: there is none. Valid, with its reports, until the next one.
 */
const struct seep_top_shot *
seep_top_source_take(struct seep_top_source *source);

/** Read so often from now on, not at all if @paused, and at once if @now. */
void seep_top_source_set(struct seep_top_source *source, double interval_s,
                         bool paused, bool now);

/**
 * Does not wait long for a reading that goes on, as of a file system that
 * hangs.
 *
 * @return 0; -EBUSY: the thread still runs. Then nothing that it reads may be
 *         freed: all that is left to do is to end the process.
 */
int seep_top_source_close(struct seep_top_source *source);

#endif
