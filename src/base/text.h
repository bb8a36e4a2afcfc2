/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Text without stdio: fixed buffers, decimal numbers, and nothing else.
 *
 * Invariant: the buffer is always NUL-terminated; what does not fit is cut and
 * .cut is set. No libc call that could allocate, lock or look at the locale.
 */
#ifndef SEEP_BASE_TEXT_H
#define SEEP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seep_text {
    char *bytes;
    size_t size; /* of the buffer, at least 1 */
    size_t length;
    bool cut;
};

/** Begin an empty text in @bytes, @size > 0. */
void seep_text_init(struct seep_text *text, char *bytes, size_t size);

void seep_text_add_char(struct seep_text *text, char c);
void seep_text_add(struct seep_text *text, const char *string);
void seep_text_add_number(struct seep_text *text, uint64_t number);

/**
 * A decimal number with an optional unit that fills all of @string: K, M, G
 * and KiB, MiB, GiB are powers of 1024, KB, MB, GB of 1000.
 *
 * @return false, and *ret_number untouched, if @string is anything else
 */
bool seep_text_parse_size(const char *string, uint64_t *ret_number);

/** strcmp(a, b) == 0 */
bool seep_text_equal(const char *a, const char *b);

/** The part of @path behind its last slash. */
const char *seep_text_base_name(const char *path);

#endif
