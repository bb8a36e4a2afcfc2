/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * One stack of native frames and Python's, in the place where each ran.
 *
 * Invariant: the order of either kind is kept, and every Python frame is in
 * the merged stack unless that is full.
 */
#ifndef SEEP_CAPTURE_PYTHON_MERGE_H
#define SEEP_CAPTURE_PYTHON_MERGE_H

#include "capture/python_symbols.h"
#include "capture/python_walk.h"

struct seep_merged_frame {
    uintptr_t address; /* a pc as captured, or the code object */
    int32_t instruction;
    bool is_python;
};

struct seep_native_stack {
    const uintptr_t *pcs; /* innermost first */
    const uintptr_t *sps; /* the stack pointer of each */
    size_t count;
};

/**
 * Merge. The C frame of each call of the evaluator that ran the frames of
 * @chain is replaced by them.
 *
 * @return number of frames in @merged; *ret_full: there were more
 */
size_t seep_python_merge(const struct seep_python *python,
                         const struct seep_native_stack *native,
                         const struct seep_python_chain *chain,
                         struct seep_merged_frame *merged, size_t capacity,
                         bool *ret_full);

#endif
