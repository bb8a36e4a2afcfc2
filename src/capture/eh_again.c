/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The short cut for stacks that are nearly as they were.
 *
 * Invariant: until all words of the last stack from the joint on are found to
 * be as they were, nothing is written but @pcs, what nobody reads of `now`, and
 * that a stack may be `framed`, which makes a comparison more thorough.
 */
#include "capture/eh_again.h"

#include <string.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "capture/eh_walk.h"
#include "capture/eh_whole.h"
#include "capture/objects.h"
#include "capture/stack_bounds.h"

/* So many new frames are walked in search of the last stack. */
#define NEW_MOST SEEP_FRAMES_BEFORE

/* So many frames are compared at once. */
#define AT_ONCE 4U

/* Of so many stacks one is kept: what most have in common is in that one, too.
 */
#define KEEP_EVERY 16U

/* Where the walk has met the last stack. */
struct joint {
    size_t at;       /* frame of the last stack */
    size_t count;    /* new frames before it */
    uintptr_t rbp;   /* in this frame, if the one before is FRAMED */
    uint32_t before; /* places of that one */
};

static inline SEEP_READS_THE_STACK uintptr_t word_at(uintptr_t address)
{
    return *(const uintptr_t *)address;
}

/* One of the callers that this code had before, or any rule that is kept: what
 * all allocate by, as malloc's caller, has many callers. @return may be another
 * one's */
static inline const struct seep_hot *
rule_of(struct seep_memory *memory, const struct seep_hot *from, uintptr_t back)
{
    const struct seep_hot *hot = seep_memory_next(memory, from, 0);

    if (seep_unlikely(hot->back != back)) {
        hot = seep_memory_set(memory, back);
        for (uint32_t i = 1; hot->back != back && i < SEEP_HOT_WAYS; i++) {
            hot++;
        }
    }
    return hot;
}

/* From @start to the first frame of the last stack. @return false: give up */
static inline bool find_joint(const struct seep_capture_start *start,
                              struct seep_memory *memory,
                              struct seep_frames *last, uintptr_t *pcs,
                              struct joint *ret_joint)
{
    struct seep_frames *now = memory->now;
    const struct seep_hot *from = &memory->start;
    uintptr_t sp = start->sp;
    uintptr_t back = start->pc;
    uintptr_t rbp = start->fp;
    uintptr_t high = last->high;
    uint32_t before = SEEP_PLACES_FRAMED; /* as if: rbp is known */
    size_t at = last->first;
    size_t count = 0;

    for (;;) {
        const struct seep_hot *hot;
        uintptr_t cfa;

        while (last->sps[at] < sp) {
            at++;
        }
        if (last->sps[at] == sp && last->pcs[at] == back - 1) {
            break;
        }
        hot = rule_of(memory, from, back);
        if (seep_unlikely(hot->back != back || count == NEW_MOST)) {
            return false;
        }
        cfa = sp + (uintptr_t)hot->offset;
        if ((hot->places & SEEP_PLACES_FRAMED) != 0) {
            cfa = rbp + SEEP_FRAMED_BYTES;
            if (seep_unlikely((before & SEEP_PLACES_FRAMED) == 0 ||
                              cfa % sizeof(uintptr_t) != 0 ||
                              cfa < sp + SEEP_FRAMED_BYTES)) {
                return false;
            }
            last->framed = true;
        }
        if (seep_unlikely(cfa > high)) {
            return false;
        }
        pcs[count] = back - 1;
        now->sps[count] = sp;
        now->places[count] = hot->places;
        count++;
        before = hot->places;
        back = word_at(cfa - sizeof(uintptr_t));
        rbp = word_at(cfa - SEEP_FRAMED_BYTES);
        sp = cfa;
        from = hot;
    }
    *ret_joint =
        (struct joint){.at = at, .count = count, .rbp = rbp, .before = before};
    return true;
}

static inline SEEP_READS_THE_STACK seep_pair pair_at(uintptr_t address)
{
    typedef seep_pair pair_of_words __attribute__((aligned(sizeof(uintptr_t))));

    return *(const pair_of_words *)address;
}

/* Without a branch for each: what differs between @AT_ONCE frames from @i on
 * and what lies there now. */
static inline seep_pair differ(const struct seep_frames *last, size_t i)
{
    seep_pair other = {0, 0};

#pragma GCC unroll 4
    for (size_t k = 0; k < AT_ONCE; k++) {
        seep_pair pair = pair_at(last->sps[i + k] - SEEP_FRAMED_BYTES);

        other |= (pair ^ last->pairs[i + k]) & last->masks[i + k];
    }
    return other;
}

/* Take over @AT_ONCE frames. */
static inline void copy(uintptr_t *to, const uintptr_t *from)
{
    memcpy(to, from, AT_ONCE * sizeof(uintptr_t));
}

/* Take over the frames from @at on, if they were returned to as they were, with
 * rbp as it was. The last of @AT_ONCE are taken once more, rather than by one.
 */
static inline bool take_frames(const struct seep_frames *last, size_t at,
                               uintptr_t *pcs)
{
    size_t stop = last->end - AT_ONCE;
    seep_pair other = differ(last, stop);

    copy(&pcs[stop - at], &last->pcs[stop]);
    *pcs = last->pcs[at];
    for (size_t i = at + 1; i < stop; i += AT_ONCE) {
        other |= differ(last, i);
        copy(&pcs[i - at], &last->pcs[i]);
    }
    return (other[0] | other[1]) == 0;
}

/* Those of frames that are given up, or that rest on what such a frame has
 * saved, are for a walk to sort out. */
static inline bool same_notes(const struct seep_frames *last, size_t at)
{
    for (size_t i = 0; i < last->note_count; i++) {
        const struct seep_note *note = &last->notes[i];
        uintptr_t slot = note->slot & SEEP_NOTE_SLOT_MASK;

        if (note->slot >> SEEP_NOTE_FRAME_SHIFT < at || slot < last->sps[at] ||
            word_at(slot) != note->value) {
            return false;
        }
    }
    return true;
}

/* As in the walk, FRAMED behind FRAMED alone needs no note. */
static inline bool same_rbp(const struct seep_frames *last,
                            const struct joint *joint)
{
    return (last->places[joint->at] & SEEP_PLACES_FRAMED) == 0 ||
           ((joint->before & SEEP_PLACES_FRAMED) != 0 &&
            joint->rbp + SEEP_FRAMED_BYTES == last->sps[joint->at + 1]);
}

static SEEP_NOINLINE void keep(struct seep_frames *last,
                               const struct seep_frames *now,
                               const uintptr_t *pcs, const struct joint *joint)
{
    size_t first = joint->at - joint->count;

    for (size_t i = 0; i < joint->count; i++) {
        last->pcs[first + i] = pcs[i];
        last->sps[first + i] = now->sps[i];
        last->places[first + i] = now->places[i];
    }
    for (size_t i = first + 1; i <= joint->at; i++) {
        seep_frames_pair(last, i);
    }
    last->first = first;
}

static SEEP_NOINLINE void tell_sps(const struct seep_memory *memory, size_t at,
                                   size_t count, uintptr_t *sps)
{
    const struct seep_frames *last = memory->last;

    memcpy(sps, memory->now->sps, count * sizeof(uintptr_t));
    memcpy(&sps[count], &last->sps[at], (last->end - at) * sizeof(uintptr_t));
}

SEEP_INLINE size_t again(const struct seep_capture_start *start,
                         const struct seep_stack_bounds *bounds,
                         struct seep_memory *memory, uintptr_t *pcs,
                         size_t capacity)
{
    struct seep_frames *last = memory->last;
    struct joint joint;
    size_t count;

    if (seep_unlikely(start->sp < bounds->low || last->high != bounds->high ||
                      !seep_objects_are(memory->generation - 1) ||
                      capacity < NEW_MOST)) {
        return 0;
    }
    if (!find_joint(start, memory, last, pcs, &joint)) {
        return 0;
    }
    count = joint.count + last->end - joint.at;
    if (seep_unlikely(joint.count > joint.at || count > capacity ||
                      last->end - joint.at <= AT_ONCE)) {
        return 0;
    }
    if (!same_rbp(last, &joint) ||
        !take_frames(last, joint.at, &pcs[joint.count])) {
        return 0;
    }
    if (last->note_count != 0 && !same_notes(last, joint.at)) {
        return 0;
    }
    if (start->sps != NULL) {
        tell_sps(memory, joint.at, joint.count, start->sps);
    }
    if (memory->turn++ % KEEP_EVERY == 0) {
        keep(last, memory->now, pcs, &joint);
    }
    return count;
}

/* Of a memory that has been entered, or without one. */
static SEEP_NOINLINE size_t walk_anew(const struct seep_capture_start *start,
                                      const struct seep_stack_bounds *bounds,
                                      struct seep_memory *memory,
                                      uintptr_t *pcs, size_t capacity,
                                      struct seep_capture_end *ret_end)
{
    size_t count = seep_eh_walk(start, bounds, memory, pcs, capacity, ret_end);

    if (seep_likely(memory != NULL)) {
        seep_memory_give_back(memory);
    }
    if (seep_unlikely(seep_eh_whole_may_help(ret_end->cut))) {
        count =
            seep_eh_walk_whole(start, bounds, pcs, count, capacity, ret_end);
    }
    return count;
}

size_t seep_eh_again(const struct seep_capture_start *start,
                     const struct seep_stack_bounds *bounds,
                     struct seep_memory *memory, uintptr_t *pcs,
                     size_t capacity, struct seep_capture_end *ret_end)
{
    size_t count = again(start, bounds, memory, pcs, capacity);

    if (seep_unlikely(count == 0)) {
        return walk_anew(start, bounds, memory, pcs, capacity, ret_end);
    }
    seep_memory_give_back(memory);
    ret_end->cut = SEEP_CUT_NONE;
    ret_end->through_signal = false;
    return count;
}

/* As below, where it is not as simple. */
static SEEP_COLD size_t prepare(const struct seep_capture_start *start,
                                struct seep_stack_bounds *bounds,
                                uintptr_t *pcs, size_t capacity,
                                struct seep_capture_end *ret_end)
{
    bool may_call = seep_native_may_call();
    struct seep_memory *memory = NULL;

    if (bounds->high == 0) {
        seep_stack_bounds_find(bounds, start->sp, may_call);
    }
#if defined(__x86_64__)
    memory =
        seep_memory_take((uintptr_t)&seep_thread, start->sp, bounds, may_call);
#endif
    return walk_anew(start, bounds, memory, pcs, capacity, ret_end);
}

size_t seep_eh_capture(const struct seep_capture_start *start,
                       struct seep_stack_bounds *bounds, uintptr_t *pcs,
                       size_t capacity, struct seep_capture_end *ret_end)
{
#if defined(__x86_64__)
    struct seep_memory *memory = seep_memory_of((uintptr_t)&seep_thread);

    if (seep_likely(memory != NULL && bounds->high != 0)) {
        seep_memory_enter(memory, start->sp);
        return memory->again
                   ? seep_eh_again(start, bounds, memory, pcs, capacity,
                                   ret_end)
                   : walk_anew(start, bounds, memory, pcs, capacity, ret_end);
    }
#endif
    return prepare(start, bounds, pcs, capacity, ret_end);
}
