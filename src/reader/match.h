/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Does a frame's name match a pattern? As LSan and valgrind's users know it:
 * a pattern matches anywhere in the text; * stands for any text; ^ at the
 * beginning and $ at the end tie it to the ends. Bytes, case-sensitive.
 *
 * Pure; any thread. Time: text x pattern bytes at most.
 */
#ifndef SEEP_READER_MATCH_H
#define SEEP_READER_MATCH_H

#include <stdbool.h>

#include "reader/report.h"

/** An empty pattern matches nothing. */
bool seep_match_text(const char *pattern, const char *text);

/** Function, file or module of @frame. */
bool seep_match_frame(const char *pattern,
                      const struct seep_report_frame *frame);

#endif
