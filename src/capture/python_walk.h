/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The chain of frames of one thread state.
 *
 * Invariant: the chain is the calling thread's own. Each frame has a code
 * object, by its type, or the walk fails as a whole.
 */
#ifndef SEEP_CAPTURE_PYTHON_WALK_H
#define SEEP_CAPTURE_PYTHON_WALK_H

#include "capture/python_memory.h"
#include "capture/python_symbols.h"

struct seep_python_frame {
    uintptr_t code;
    uintptr_t marker; /* an address in the C frame of the call of the evaluator
                         that runs it (3.11 and later); 0: not known */
    int32_t instruction; /* byte offset in the code; below 0: not begun */
};

struct seep_python_chain {
    struct seep_python_frame *frames; /* innermost first */
    size_t capacity;
    size_t count;
    bool truncated; /* there were more */
    bool whole;     /* from 3.11 on: it ends where the outermost call began */
};

/** @return false: something was not as the offsets say; chain->count is 0 */
bool seep_python_walk(const struct seep_python *python,
                      struct seep_python_memory *memory, uintptr_t state,
                      struct seep_python_chain *chain);

#endif
