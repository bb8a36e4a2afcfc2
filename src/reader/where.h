/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which frame of a stack belongs to the user: of Python's the innermost in a
 * file of the user's own, else in a package, else in Python's library; without
 * Python the first frame that is not of libc, the C++ runtime, an allocator,
 * the interpreter, CUDA or seep itself.
 *
 * Pure functions of names; any thread.
 */
#ifndef SEEP_READER_WHERE_H
#define SEEP_READER_WHERE_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/report.h"

/** The part of @path behind its last slash. */
const char *seep_where_base_name(const char *path);

/** Is all of the object at @module between a program and its memory? */
bool seep_where_is_plumbing(const char *module);

bool seep_where_is_user(const struct seep_report_frame *frame);

/** Index of the user's frame; 0 when there is none. */
size_t seep_where_pick(const struct seep_report_frame *frames, size_t count);

/** "file:line function", or as much of it as is known. @return as snprintf */
int seep_where_format(const struct seep_report_frame *frame, char *text,
                      size_t capacity);

#endif
