/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From the paths of a command line to open reports: folders are looked into,
 * what cannot be read is said and counted, the rest is sorted worst first.
 */
#ifndef SEEP_TOOL_GATHER_H
#define SEEP_TOOL_GATHER_H

#include <stddef.h>

#include "reader/report.h"

struct seep_gathering {
    struct seep_report **reports; /* worst first */
    size_t count;
    size_t refused_count;
};

/** Open all that @paths mean; refusals go to stderr, one line each. */
void seep_gather(char *const *paths, size_t path_count,
                 const struct seep_report_options *options,
                 struct seep_gathering *ret_gathering);

void seep_gather_close(struct seep_gathering *gathering);

/** Exit code of a reading verb: fine, or failed if something was refused. */
int seep_gather_exit(const struct seep_gathering *gathering);

/** Order of two reports for a reader: class, then growth, then live bytes;
 * those that lived for a moment come last. */
int seep_gather_compare(const struct seep_report *a,
                        const struct seep_report *b);

/** How many of the first tell something: helpers of a script that lived for a
 * moment are left out, unless there is nothing else. They are last. */
size_t seep_gather_held(const struct seep_gathering *gathering);

#endif
