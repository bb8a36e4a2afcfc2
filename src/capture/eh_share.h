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

#include <string.h>

#include "capture/eh_memory.h"

/** Where @number lies in @frame of the walk: at most its next. */
uintptr_t seep_share_settle(struct seep_walk *walk,
                            enum seep_walk_register number, size_t frame);

/** Where a walk may first join the last stack, which ends at its `high`. */
static inline const uintptr_t *seep_share_begin(struct seep_walk *walk)
{
    const struct seep_frames *last = walk->memory->last;

    walk->memory->share.at = SEEP_FRAMES;
    return &last->sps[last->high == walk->high ? last->first : last->end];
}

/** Did the frames from @at on find beside return addresses, and rbp where a
 * frame is FRAMED and so is the one before, what the walk finds now, that
 * stands in @at? */
bool seep_share_same_rest(struct seep_walk *walk, size_t at);

/** As seep_share_same_backs(), with the rbp of frames that are FRAMED. */
size_t seep_share_same_records(const struct seep_frames *last, size_t at);

/** The walk has joined at @at: where its registers lie in the last frame. */
void seep_share_carry_on(struct seep_walk *walk, size_t at);

/* @return the first frame behind @at that was not returned to as it was */
static inline SEEP_READS_THE_STACK size_t
seep_share_same_backs(const struct seep_frames *last, size_t at)
{
    const uintptr_t *sps = last->sps;
    const uintptr_t *pcs = last->pcs;
    size_t end = last->end;
    size_t i = at + 1;

#pragma GCC unroll 4
    for (; i < end; i++) {
        if (seep_unlikely(((const uintptr_t *)sps[i])[-1] != pcs[i] + 1)) {
            break;
        }
    }
    return i;
}

/* Go on in the last frame, if that has a caller, or in that for which there
 * is no room. */
static inline void seep_share_take_over(struct seep_walk *walk,
                                        const struct seep_frames *last,
                                        size_t at)
{
    size_t count = last->end - at - !last->ended;
    bool all = count <= walk->capacity - walk->count;

    if (seep_unlikely(!all)) {
        count = walk->capacity - walk->count;
    }
    memcpy(&walk->pcs[walk->count], &last->pcs[at], count * sizeof(uintptr_t));
    if (walk->told_sps != NULL) {
        memcpy(&walk->told_sps[walk->count], &last->sps[at],
               count * sizeof(uintptr_t));
    }
    walk->count += count;
    walk->memory->ended = all && last->ended;
    if (walk->memory->ended) {
        walk->pc = UINTPTR_MAX;
        return;
    }
    seep_share_carry_on(walk, at);
    walk->pc = last->pcs[at + count];
    walk->sp = last->sps[at + count];
}

/**
 * Join at the state that @walk is in, if it can: the frames up to the last
 * but one are copied, and the walk stands in the last.
 *
 * @param old  the stack pointer of the last stack that is the walk's; moved on
 */
static inline bool seep_share_join(struct seep_walk *walk,
                                   const uintptr_t **old)
{
    struct seep_share *share = &walk->memory->share;
    const struct seep_frames *last = walk->memory->last;
    size_t at = (size_t)(*old - last->sps);
    size_t same;

    if (last->pcs[at] != walk->pc) {
        ++*old;
        return false;
    }
    walk->sps[walk->count] = walk->sp;
    same = last->framed ? seep_share_same_records(last, at)
                        : seep_share_same_backs(last, at);
    if (seep_unlikely(same < last->end)) {
        *old = &last->sps[same];
        return false;
    }
    if (seep_unlikely(last->note_count != 0 ||
                      (last->places[at] & SEEP_PLACES_FRAMED) != 0) &&
        !seep_share_same_rest(walk, at)) {
        ++*old;
        return false;
    }
    share->at = at;
    share->count = walk->count;
    *old = &last->sps[last->end];
    seep_share_take_over(walk, last, at);
    return true;
}

/** Remember the stack of a walk that is over. */
void seep_share_keep(struct seep_walk *walk);

#endif
