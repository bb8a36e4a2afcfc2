/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The outer part of a stack, taken over from the last walk of the thread.
 *
 * A walk that arrives at a frame of the last stack, with the same pc and stack
 * pointer, would go on through the same frames as long as it reads the same
 * words. So those words are read and compared, and the frames are copied.
 *
 * Invariant: what is taken over is what the walk would have found by itself.
 */
#ifndef SEEP_CAPTURE_NATIVE_REUSE_H
#define SEEP_CAPTURE_NATIVE_REUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/native/cache.h"

/** Where @number lies in @frame of the walk: at most its next. */
uintptr_t seep_reuse_settle(struct seep_walk *walk,
                            enum seep_walk_register number, size_t frame);

/**
 * Join at the state that @walk is in, if it can: the frames up to the last
 * but one are copied, and the walk stands in the last.
 *
 * @param old  the stack pointer of the last stack that is the walk's, of a
 * frame with its pc; moved on
 */
bool seep_reuse_join(struct seep_walk *walk, const uintptr_t **old);

/** Remember the stack of a walk that is over. */
void seep_reuse_keep(struct seep_walk *walk);

/**
 * The whole walk for the case that most captures are: some inner frames are
 * others than at the thread's last one, and from there on all is as it was.
 * Simple rules lead to a frame of the last stack, which must have been walked
 * to its end; the rest is taken over, and the new frames are kept before those.
 *
 * @param cache  which was entered, and of which `reusable` is true
 * @return number of frames; 0: it is to be walked, and nothing that a walk
 *         rests on has been changed
 */
size_t seep_reuse_walk(const struct seep_capture_start *start,
                       const struct seep_stack_bounds *bounds,
                       struct seep_unwind_cache *cache, uintptr_t *pcs,
                       size_t capacity);

#endif
