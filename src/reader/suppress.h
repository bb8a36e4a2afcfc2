/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the user knows of call sites: which are no leaks (suppressions, in the
 * syntax of LeakSanitizer), and which are bounded (known: SITE=BOUND).
 *
 * Suppressions are lines `leak:PATTERN`, see match.h; a line that begins with #
 * is a comment; blanks around a line and its CR do not count. A # behind a
 * pattern belongs to it. LeakSanitizer gives up at any prefix but leak:; here
 * those of the other sanitizers (race:, called_from_lib:, vptr_check: ...) are
 * passed over, so that one file can serve all.
 *
 * Errors: 0 or negative errno, ret_* untouched on failure.
 * Ownership: what was opened belongs to the caller, until closed.
 * Threads: read-only once opened.
 */
#ifndef SEEP_READER_SUPPRESS_H
#define SEEP_READER_SUPPRESS_H

#include <stdint.h>

#include "reader/report.h"

struct seep_suppressions;
struct seep_known;

/**
 * Add the rules of the file at @path to *@suppressions, which is made if NULL.
 *
 * @param ret_refusal  of the file or of its first bad line ("line 3: ...");
 *                     may be NULL
 * @return -EINVAL for a line that is no rule; -EFBIG; -EBADMSG for what is no
 *         text; an error of open or read. Then *@suppressions is as it was.
 */
int seep_suppressions_add_file(struct seep_suppressions **suppressions,
                               const char *path,
                               struct seep_refusal *ret_refusal);
void seep_suppressions_close(struct seep_suppressions *suppressions);

/** The first rule that matches a frame of @site; NULL: none does. */
const char *seep_suppressions_find(const struct seep_suppressions *suppressions,
                                   const struct seep_report_site *site);

/**
 * Add "SITE=BOUND" (bytes, already parsed by the caller) to *@known.
 *
 * @param site  four hexadecimal digits or more: the beginning of an id and
 *              nothing else; other text: a pattern on frames and `where`
 * @return -EINVAL if @site is empty or the bound 0
 */
int seep_known_add(struct seep_known **known, const char *site,
                   uint64_t bound_bytes);
void seep_known_close(struct seep_known *known);

/** The bound that was named first for @site; 0: none was. */
uint64_t seep_known_find(const struct seep_known *known,
                         const struct seep_report_site *site);

#endif
