/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The line of an instruction, from the three forms of line tables.
 *
 * Invariant: a table is read in small pieces and never past its end; what is
 * no table in step is found out.
 */
#ifndef SEEP_CAPTURE_PYTHON_LINES_H
#define SEEP_CAPTURE_PYTHON_LINES_H

#include "capture/python_code.h"

/**
 * The line of an instruction of a code object.
 *
 * @param instruction  byte offset; below 0: the first line
 * @param ret_line     0: the instruction has none
 * @return false if the table is not as expected
 */
bool seep_python_line(const struct seep_python *python,
                      struct seep_python_memory *memory,
                      const struct seep_python_identity *identity,
                      int32_t instruction, int32_t *ret_line);

/** As above, remembered for the next time. */
bool seep_python_line_cached(const struct seep_python *python,
                             struct seep_python_memory *memory,
                             const struct seep_python_identity *identity,
                             int32_t instruction, int32_t *ret_line);

/** Is the whole table in step, and for @code_bytes of instructions? */
bool seep_python_lines_check(const struct seep_python *python,
                             struct seep_python_memory *memory,
                             const struct seep_python_identity *identity,
                             int64_t code_bytes);

#endif
