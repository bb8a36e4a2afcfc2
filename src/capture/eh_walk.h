/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The walk of a stack by compiled rules.
 *
 * Invariant: a word is read only if it lies between the stack pointer of its
 * frame and the end of the region, which is part of the thread's own stack.
 */
#ifndef SEEP_CAPTURE_EH_WALK_H
#define SEEP_CAPTURE_EH_WALK_H

#include "capture/native.h"

/** As seep_native_capture(), with bounds that are filled already. */
size_t seep_eh_walk(const struct seep_capture_start *start,
                    const struct seep_stack_bounds *bounds, uintptr_t *pcs,
                    size_t capacity, struct seep_capture_end *ret_end);

#endif
