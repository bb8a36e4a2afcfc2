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

/** Where a walk may first join the last stack, which ends at its `high`; not
 * where it begins above all of its frames. */
static inline const uintptr_t *seep_share_begin(struct seep_walk *walk)
{
    const struct seep_frames *last = walk->memory->last;
    size_t end = last->end;

    walk->memory->share.at = SEEP_FRAMES;
    return &last->sps[last->high == walk->high && end != 0 &&
                              last->sps[end - 1] >= walk->sp
                          ? last->first
                          : end];
}

/**
 * Join at the state that @walk is in, if it can: the frames up to the last
 * but one are copied, and the walk stands in the last.
 *
 * @param old  the stack pointer of the last stack that is the walk's, of a
 * frame with its pc; moved on
 */
bool seep_share_join(struct seep_walk *walk, const uintptr_t **old);

/** Remember the stack of a walk that is over. */
void seep_share_keep(struct seep_walk *walk);

#endif
