/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A report for machines: one JSON document, schema "seep-report/1".
 *
 * Sizes are bytes, times seconds; an interval is {estimate, low, high} and an
 * open bound null; what was not computed is null. Strings are valid UTF-8.
 */
#ifndef SEEP_TOOL_VIEW_JSON_H
#define SEEP_TOOL_VIEW_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "reader/report.h"

struct seep_json_options {
    size_t site_limit;                      /* 0: all */
    const char *site_id;                    /* only this site; NULL: all */
    bool no_series;                         /* sites without their series */
    const struct seep_catalogue *catalogue; /* NULL: none */
};

/**
 * Print the reports, worst first, and how many files were refused.
 *
 * @return 0; -ENOMEM; -EIO if the stream took less
 */
int seep_view_json_reports(FILE *file, const struct seep_report *const *reports,
                           size_t count, size_t refused_count,
                           const struct seep_json_options *options);

/** The same without sites, with the fill of the tables: "seep-info/1". */
int seep_view_json_info(FILE *file, const struct seep_report *const *reports,
                        size_t count, size_t refused_count);

#endif
