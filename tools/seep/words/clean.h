/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Foreign strings made harmless: the one place where the bytes of a recording
 * become something that may be shown.
 *
 * A recording is hostile: an executable or a function may be named with
 * terminal escapes, with half a UTF-8 sequence, or with marks that reverse the
 * line. Nothing of that leaves here.
 *
 * Threads: any, after seep_clean_init() and seep_clean_follow_locale().
 */
#ifndef SEEP_TOOL_WORDS_CLEAN_H
#define SEEP_TOOL_WORDS_CLEAN_H

#include <stdarg.h>
#include <stddef.h>

/**
 * For a terminal: valid UTF-8 of printable characters only. Control bytes,
 * invalid bytes and characters that change the direction or are not printable
 * come out as \xNN or \u{NNNN}. To be freed; NULL without memory.
 */
char *seep_clean_for_terminal(const char *text);

/** What is printed by @format, made harmless for a terminal. */
__attribute__((format(printf, 1, 2))) char *
seep_clean_format(const char *format, ...);
__attribute__((format(printf, 1, 0))) char *
seep_clean_vformat(const char *format, va_list arguments);

/** For JSON: valid UTF-8, each invalid byte U+FFFD. To be freed, or NULL. */
char *seep_clean_for_json(const char *text);

/** For other text that goes out as it is: also each character that is no text,
 * the newline excepted, is U+FFFD, in any locale. To be freed, or NULL. */
char *seep_clean_for_lines(const char *text);

/** Columns that a cleaned @text takes. */
size_t seep_clean_columns(const char *text);
/** Those of its first @bytes, whole characters. */
size_t seep_clean_columns_of(const char *text, size_t bytes);

/**
 * How many bytes of a cleaned @text fit into @columns, whole characters only.
 */
size_t seep_clean_fit(const char *text, size_t columns);

/** How many bytes of @text fit into @most_bytes, whole characters only. */
size_t seep_clean_cut(const char *text, size_t most_bytes);

/** Let wcwidth() know Unicode whatever the user's locale. Call once. */
void seep_clean_init(void);

/**
 * Send ASCII only, if LC_ALL, LC_CTYPE or LANG, the first that is set, says
 * that the terminal is none of UTF-8: "..." for "…", "+-" for "±", "_" to "#"
 * for bars. Where none is set, as in most containers, it is taken for one.
 */
void seep_clean_follow_locale(void);

/** What stands where a text was cut: "…" or "...". */
const char *seep_clean_ellipsis(void);

#endif
