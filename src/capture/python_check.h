/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Is Python's memory what the offsets say?
 *
 * Invariant: to be asked with pages (see python_memory.h), so that a wrong
 * answer is never a crash.
 */
#ifndef SEEP_CAPTURE_PYTHON_CHECK_H
#define SEEP_CAPTURE_PYTHON_CHECK_H

#include "capture/python_memory.h"
#include "capture/python_symbols.h"
#include "capture/python_walk.h"

/**
 * Settle the version and the offsets, and hold them against what the types of
 * the interpreter say of themselves. It need not have been initialised yet.
 *
 * @param python  with its symbols; .hex and .offsets are set
 * @return SEEP_PYTHON_PROBATION, or why Python is off
 */
enum seep_python_state
seep_python_check_types(struct seep_python *python,
                        struct seep_python_memory *memory);

/** Do the types have what python->offsets says? A part of the above. */
bool seep_python_types_agree(const struct seep_python *python,
                             struct seep_python_memory *memory);

/**
 * Check all that is known of the frames of a chain.
 *
 * @return SEEP_PYTHON_ON, or what was not as known
 */
enum seep_python_state
seep_python_check_chain(const struct seep_python *python,
                        struct seep_python_memory *memory,
                        const struct seep_python_chain *chain);

#endif
