/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * C++ and Rust names as their authors wrote them.
 *
 * Names come from files of strangers: an input may be any string. Work is
 * bounded by a cap on the input's length and one on the output's.
 */
#ifndef SEEP_READER_DEMANGLE_H
#define SEEP_READER_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/** A longer mangled name is not tried. */
#define SEEP_DEMANGLE_INPUT_MAX 4096
/** Room for any result that is not cut. */
#define SEEP_DEMANGLE_TEXT_MAX 4096

/**
 * Demangle @mangled into @ret_text, which has room for @text_bytes; what does
 * not fit is cut off. Rust's hash of a legacy name is left out.
 *
 * @return false if it is no mangled name, or too long; @ret_text untouched
 */
bool seep_demangle(const char *mangled, char *ret_text, size_t text_bytes);

#endif
