/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The walk with all registers, for stacks that rules cannot say.
 *
 * Rules leave out most registers, and rare forms of a CFA; hand-written
 * assembler and interrupted prologues need them. This walk begins in its own
 * frame, where every register is known, and reads rows where the other reads
 * rules. It costs some 20 times as much a frame.
 */
#ifndef SEEP_CAPTURE_EH_WHOLE_H
#define SEEP_CAPTURE_EH_WHOLE_H

#include "capture/native.h"

/** Is it worth a try, after a walk that ended so? */
static inline bool seep_eh_whole_may_help(enum seep_cut cut)
{
    return cut == SEEP_CUT_REGISTER || cut == SEEP_CUT_EXPRESSION;
}

/**
 * Go on with a stack that seep_eh_walk() has cut.
 *
 * Called by a function that start's hook has called.
 *
 * @param pcs      holds @count frames; receives those that follow
 * @param ret_end  how the walk ended; becomes how this one did
 * @return number of frames; @count, with all as it was, if this walk saw
 *         another stack or got no further
 */
size_t seep_eh_walk_whole(const struct seep_capture_start *start,
                          const struct seep_stack_bounds *bounds,
                          uintptr_t *pcs, size_t count, size_t capacity,
                          struct seep_capture_end *ret_end);

#endif
