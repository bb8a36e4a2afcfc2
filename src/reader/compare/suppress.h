/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the user knows of call sites: which are no leaks (suppressions, in the
 * syntax of LeakSanitizer), and which are bounded (known: SITE=BOUND).
 *
 * Suppressions are lines `leak:PATTERN`, see below; a line that begins
 * with # is a comment; blanks around a line and its CR do not count. A # behind
 * a pattern belongs to it. LeakSanitizer gives up at any prefix but leak:; here
 * those of the other sanitizers (race:, called_from_lib:, vptr_check: ...) are
 * passed over, so that one file can serve all.
 *
 * Errors: 0 or negative errno, ret_* untouched on failure.
 * Ownership: what was opened belongs to the caller, until closed.
 * Threads: read-only once opened.
 */
#ifndef SEEP_READER_COMPARE_SUPPRESS_H
#define SEEP_READER_COMPARE_SUPPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/report/report.h"

/**
 * A small text file that a user wrote, read whole.
 *
 * @param remedy    what to give instead when it is no such file
 * @param ret_text  NUL-terminated, without another NUL; free() it
 * @return -EFBIG; -EBADMSG for bytes that are no text, and for
 *         a file that grows; an error of open or read
 */
int seep_read_text(const char *path, const char *remedy,
                   struct seep_refusal *ret_refusal, char **ret_text,
                   size_t *ret_length);

/** Rules of the one kind or of the other. */
struct seep_rules;

/**
 * Add the rules of the file at @path to *@suppressions, which is made if NULL.
 *
 * @param ret_refusal  of the file or of its first bad line ("line 3: ...");
 *                     may be NULL
 * @return -EINVAL for a line that is no rule; -EFBIG; -EBADMSG for what is no
 *         text; an error of open or read. Then *@suppressions is as it was.
 */
int seep_suppressions_add_file(struct seep_rules **suppressions,
                               const char *path,
                               struct seep_refusal *ret_refusal);

/** The first rule that matches a frame of @site; NULL: none does. */
const char *seep_suppressions_find(const struct seep_rules *suppressions,
                                   const struct seep_report_site *site);

/**
 * Add "SITE=BOUND" (bytes, already parsed by the caller) to *@known.
 *
 * @param site  four hexadecimal digits or more: the beginning of an id and
 *              nothing else; other text: a pattern on frames and `where`
 * @return -EINVAL if @site is empty or the bound 0
 */
int seep_known_add(struct seep_rules **known, const char *site,
                   uint64_t bound_bytes);

/** The bound that was named first for @site; 0: none was. */
uint64_t seep_known_find(const struct seep_rules *known,
                         const struct seep_report_site *site);

/** NULL is fine. */
void seep_rules_close(struct seep_rules *rules);

/*
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

/** An empty pattern matches nothing, and nothing matches an empty text. */
bool seep_match_text(const char *pattern, const char *text);

/**
 * Function (demangled), file or module of @frame, each as a whole; and of file
 * and module the base name, so that `^libdnnl.so` says which library.
 */
bool seep_match_frame(const char *pattern,
                      const struct seep_report_frame *frame);

#endif
