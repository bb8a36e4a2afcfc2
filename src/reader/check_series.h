/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a report held over time, for the limits on it. Pure; any thread.
 */
#ifndef SEEP_READER_CHECK_SERIES_H
#define SEEP_READER_CHECK_SERIES_H

#include <stdbool.h>

#include "reader/report.h"
#include "reader/window.h"

/** In the place of a space: memory that lies in no resident page. */
#define SEEP_CHECK_DEVICES (-2)

enum seep_check_level {
    SEEP_CHECK_LOW, /* the lowest of each part of the run */
    SEEP_CHECK_LIVE
};

/** What the user named a bound for, or suppressed, is no growth of a limit. */
bool seep_check_is_excused(const struct seep_report_site *site);

/**
 * Live bytes from @from_s to the end, of the sites in @space.
 *
 * @param excused  with those that are: for what the process holds
 */
void seep_check_read_live(const struct seep_report *report, int space,
                          enum seep_check_level level, bool excused,
                          double from_s, struct seep_window_series *ret_series);

/** Private memory of the process, where it was seen. */
void seep_check_read_private(const struct seep_report *report,
                             struct seep_window_series *ret_series);

/** What may be there in @space, or in all, without a sample of it; 95 %. */
double seep_check_unseen_bytes(const struct seep_report *report, int space);

#endif
