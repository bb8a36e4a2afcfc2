/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Walking a stack by .eh_frame rules.
 */
#ifndef SEEP_CAPTURE_EH_WALK_H
#define SEEP_CAPTURE_EH_WALK_H

#include "capture/native.h"

struct seep_memory;

/**
 * As seep_native_capture(), with @bounds known and @capacity in range.
 *
 * @param memory what this thread's walks remember; NULL: nothing. The frames
 *               are the same in both cases.
 */
size_t seep_eh_walk(const struct seep_capture_start *start,
                    const struct seep_stack_bounds *bounds,
                    struct seep_memory *memory, uintptr_t *pcs, size_t capacity,
                    struct seep_capture_end *ret_end);

#endif
