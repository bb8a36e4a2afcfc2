/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Does a frame's name match a pattern? As LeakSanitizer's users know it: a
 * pattern matches anywhere in the text; * stands for any text; ^ as the first
 * and $ as the last character tie it to the ends. Bytes, case-sensitive, and
 * nothing quotes these three.
 *
 * What LeakSanitizer suppresses is matched here, too, with two exceptions: an
 * empty pattern (there it matches all), and a $ that is not the last character
 * (there it ends the pattern; here it is a $). More is matched in one place:
 * `oo$` matches "foo_oo", where LeakSanitizer looks at the first "oo" only.
 *
 * Pure; any thread. Time: the text's bytes for each part between two *, and
 * the parts share one walk over it: linear, whatever pattern and text are.
 */
#ifndef SEEP_READER_MATCH_H
#define SEEP_READER_MATCH_H

#include <stdbool.h>

#include "reader/report.h"

/** An empty pattern matches nothing, and nothing matches an empty text. */
bool seep_match_text(const char *pattern, const char *text);

/**
 * Function (demangled), file or module of @frame, each as a whole; and of file
 * and module the base name, so that `^libdnnl.so` says which library.
 */
bool seep_match_frame(const char *pattern,
                      const struct seep_report_frame *frame);

#endif
