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

#include "base/word.h"

struct seep_text {
    char *bytes;
    size_t size; /* of the buffer, at least 1 */
    size_t length;
    bool cut;
};

/** Begin an empty text in @bytes, @size > 0. */
void seep_text_init(struct seep_text *text, char *bytes, size_t size);

/** All of @from into @to. @return false: it was cut */
bool seep_text_copy(char *to, size_t size, const char *from);

void seep_text_add_char(struct seep_text *text, char c);
void seep_text_add(struct seep_text *text, const char *string);
void seep_text_add_bytes(struct seep_text *text, const char *bytes,
                         size_t count);
void seep_text_add_number(struct seep_text *text, uint64_t number);

/** Where strcmp() may be a sanitizer's that is about to look it up, and so is
 * in our dlsym(). */
bool seep_text_equal(const char *a, const char *b);

/** The part of @path behind its last slash. */
const char *seep_text_base_name(const char *path);

/*
 * Sizes and numbers as people write them: the one parser of the recorder, of
 * its options and of the command's, so that they never disagree.
 *
 * Invariant: what is returned was written, all of it; whatever else stands in
 * the text is refused, and *ret_... is then untouched. No heap, no stdio, no
 * locale.
 */

/** The widest mean of sampling. */
#define SEEP_SIZE_MEAN_LOG2_MAX 40U

/**
 * "4096", "512K", "16MiB", "1.5G", "24 MB": a decimal number, blanks, a unit.
 * B is a byte; K, M, G, T, P, E and KiB, MiB.. are powers of 1024, KB, MB.. of
 * 1000; case does not matter. A fraction needs a unit that has parts, and comes
 * out rounded down to a whole byte: 0.3K is 307.
 *
 * @return 0; -EINVAL if it is anything else, if it has a sign, or if it is
 *         above 0 and comes to none (0 is an answer of its own); -ERANGE if it
 *         does not fit
 */
int seep_size_parse(const char *text, uint64_t *ret_bytes);

/** "12", digits alone. @return as above */
int seep_size_parse_number(const char *text, uint64_t *ret_number);

/**
 * A share in percent: "1", "0.5", "2.5%". In hundred-thousandths, rounded down:
 * 0.5 is 500.
 *
 * @return 0; -EINVAL if it is anything else, or none; -ERANGE beyond 100 %
 */
int seep_share_parse(const char *text, uint32_t *ret_share);

/**
 * The mean of sampling that is taken where @bytes are asked for: the power of
 * two that is not above it, so that no less is recorded than was wished.
 *
 * @return 0, with its logarithm, 0 for one byte, which is exact; -ERANGE for 0
 *         and beyond 2^SEEP_SIZE_MEAN_LOG2_MAX
 */
int seep_size_mean_log2(uint64_t bytes, unsigned *ret_log2);

#endif
