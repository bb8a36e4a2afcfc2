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
#ifndef SEEP_CAPTURE_EH_SHARE_H
#define SEEP_CAPTURE_EH_SHARE_H

#include "capture/eh_memory.h"

/** Where @number lies in @frame of the walk: at most its next. */
uintptr_t seep_share_settle(struct seep_walk *walk,
                            enum seep_walk_register number, size_t frame);

/** Look from now on for frames of the stack that ends at @walk's `high`. */
void seep_share_begin(struct seep_walk *walk);

/**
 * Join at the state that @walk is in, if it can: the frames up to the last
 * but one are copied, and the walk stands in the last.
 */
bool seep_share_join(struct seep_walk *walk);

/** Remember the stack of a walk that is over. */
void seep_share_keep(struct seep_walk *walk);

#endif
