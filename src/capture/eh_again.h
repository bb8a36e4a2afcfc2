/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The walk for the case that most captures are: some inner frames are others
 * than at the thread's last one, and from there on all is as it was.
 *
 * Invariant: what it answers is what the walk would have found; and where it
 * gives up nothing that a walk rests on has been changed.
 */
#ifndef SEEP_CAPTURE_EH_AGAIN_H
#define SEEP_CAPTURE_EH_AGAIN_H

#include "capture/eh_memory.h"

/**
 * Walk by rules without oddities to a frame of the last stack, which must have
 * been walked to its end, and take over the rest; the new frames are kept
 * before those. Else by any rules, from the beginning.
 *
 * @param memory  which was entered, and of which `again` is true; given back
 */
size_t seep_eh_again(const struct seep_capture_start *start,
                     const struct seep_stack_bounds *bounds,
                     struct seep_memory *memory, uintptr_t *pcs,
                     size_t capacity, struct seep_capture_end *ret_end);

/** As seep_native_capture(), by rules, with @capacity in range. */
size_t seep_eh_capture(const struct seep_capture_start *start,
                       struct seep_stack_bounds *bounds, uintptr_t *pcs,
                       size_t capacity, struct seep_capture_end *ret_end);

#endif
