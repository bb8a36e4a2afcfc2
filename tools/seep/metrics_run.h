/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The work of `seep metrics`: read, compute, give out, until told to end.
 *
 * Recordings are read by a thread of its own, so that neither a scrape nor the
 * end waits for a file system that does not answer.
 */
#ifndef SEEP_TOOL_METRICS_RUN_H
#define SEEP_TOOL_METRICS_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "follow.h"

struct seep_metrics_arguments {
    char *const *paths;
    size_t path_count;
    struct seep_follow_options follow;
    size_t site_limit;
    double interval_s;
    bool once;
    const char *textfile; /* NULL: none */
    const char *address;  /* NULL: none */
};

/** @return the exit code */
int seep_metrics_run(const struct seep_metrics_arguments *arguments);

#endif
