/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Words of a diff that its views share. Texts are to be freed, and NULL
 * without memory; what is of a recording in them is not cleaned.
 */
#ifndef SEEP_TOOL_DIFF_WORDS_H
#define SEEP_TOOL_DIFF_WORDS_H

#include <stdbool.h>

#include "diff_set.h"
#include "units.h"

/** "WORSE: 1 new leak, server.py:54 Model.remember +33.1 MiB/min". */
char *seep_diff_headline(const struct seep_diff_set *set);

/** "not-enough-data", "worse", "better" or "same". */
const char *seep_diff_set_name(const struct seep_diff_set *set);

/** "before 36 s of old.seep, now 41 s of new.seep". */
char *seep_diff_sides(const struct seep_diff_set *set,
                      const struct seep_diff_pair *pair);

/** "server.py:54 Model.remember", with what it was before, if that differs:
 * "(was server.py:44)". */
char *seep_diff_where(const struct seep_diff_row *row);

/** What is compared of @site: by unit of work, or by minute. */
const char *seep_diff_growth(const struct seep_diff *diff,
                             const struct seep_diff_site *site,
                             char text[SEEP_UNITS_TEXT_BYTES]);

/** "+33.1 ±1.2 MiB" of the change of a row. */
const char *seep_diff_change_text(const struct seep_diff *diff,
                                  const struct seep_diff_row *row,
                                  char text[SEEP_UNITS_TEXT_BYTES]);

/** What to do next; NULL: nothing. */
char *seep_diff_next(const struct seep_diff_set *set);

#endif
