/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Sparklines: a course in time as a few characters, from nothing to its
 * highest value in eight steps.
 *
 * What comes out is U+2581 to U+2588 and blanks; the page (clean.h) makes
 * ASCII of it where the terminal is none of UTF-8. Pure; no answer depends on
 * a value that is not finite. Texts are to be freed; NULL without memory.
 */
#ifndef SEEP_TOOL_SPARK_H
#define SEEP_TOOL_SPARK_H

#include <stddef.h>

#include "reader/report.h"

/** One cell a value; blank where it is not a number or below 0. */
char *seep_spark(const double *values, size_t count);

/**
 * Live bytes of @site over @duration_s of its process. Where the series has no
 * point nothing changed: the cell is as the one before. Blank until the first.
 */
char *seep_spark_site(const struct seep_report_site *site, double duration_s,
                      size_t cells);

/** What the process held over its life, as the kernel counts it. */
char *seep_spark_held(const struct seep_report *report, size_t cells);

#endif
