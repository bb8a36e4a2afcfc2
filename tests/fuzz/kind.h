/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What was printed, looked through: is it of its kind? An answer of false is a
 * bug of what printed it.
 *
 * @text ends in a NUL behind its @length bytes.
 */
#ifndef SEEP_TESTS_FUZZ_KIND_H
#define SEEP_TESTS_FUZZ_KIND_H

#include <stdbool.h>
#include <stddef.h>

/** Colours and line ends, and nothing else that is no text. */
bool kind_is_page(const char *text, size_t length);

/** No control characters but those of white space: of XML 1.0 there are no
 * others, and a page of HTML needs none. */
bool kind_is_markup(const char *text, size_t length);

/** One document of JSON in ASCII, white space around it: whole, no key twice in
 * an object, no integer that does not fit 64 bits. */
bool kind_is_json(const char *text, size_t length);

/** Letters and digits of base64, and line ends: how many there are. */
size_t kind_base64(const char *text, size_t length);

#endif
