/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The short cut for stacks that are nearly as they were.
 *
 * Invariant: until all words of the last stack from the joint on are found to
 * be as they were, only @pcs and what nobody reads of `now` are written.
 */
#include "capture/eh_again.h"

#include "base/compiler.h"
#include "capture/objects.h"

/* So many new frames are walked in search of the last stack. */
#define NEW_MOST 32U

_Static_assert(NEW_MOST <= SEEP_FRAMES_BEFORE, "or they find no room");

/* Where the walk has come to. */
struct joint {
    size_t at;       /* frame of the last stack */
    size_t count;    /* new frames before it */
    uint32_t before; /* places of the last one of these */
    uint32_t any;    /* of all of them */
};

static inline SEEP_READS_THE_STACK uintptr_t word_at(uintptr_t address)
{
    return *(const uintptr_t *)address;
}

static inline const struct seep_hot *
rule_of(struct seep_memory *memory, const struct seep_hot *from, uintptr_t back)
{
    const struct seep_hot *hot = seep_memory_next(memory, from, 0);

    if (hot->back != back) {
        hot = seep_memory_next(memory, from, 1);
    }
    return hot;
}

/* From @start to the first frame of the last stack. @return false: give up */
static inline bool find_joint(const struct seep_capture_start *start,
                              struct seep_memory *memory, uintptr_t *pcs,
                              struct joint *joint)
{
    const struct seep_frames *last = memory->last;
    uintptr_t *sps = &memory->now->sps[SEEP_FRAMES_BEFORE];
    uint32_t *places = &memory->now->places[SEEP_FRAMES_BEFORE];
    const struct seep_hot *from = &memory->start;
    uintptr_t sp = start->sp;
    uintptr_t back = start->pc;
    uintptr_t high = last->high;
    size_t at = last->first;
    size_t count = 0;
    uint32_t before = 0;
    uint32_t any = 0;

    for (;;) {
        const struct seep_hot *hot;

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
        pcs[count] = back - 1;
        sps[count] = sp;
        places[count] = hot->places;
        count++;
        if (hot->kind == SEEP_HOT_RSP) {
            sp += (uintptr_t)hot->offset;
        } else {
            uintptr_t rbp;

            if ((hot->places & before & SEEP_PLACES_FRAMED) != 0) {
                rbp = word_at(sp - SEEP_FRAMED_BYTES);
            } else if (hot->kind == SEEP_HOT_FRAMED && count == 1) {
                rbp = start->fp;
            } else {
                return false;
            }
            rbp += SEEP_FRAMED_BYTES;
            if (seep_unlikely(rbp < sp + SEEP_FRAMED_BYTES || rbp % 8 != 0)) {
                return false;
            }
            sp = rbp;
        }
        if (seep_unlikely(sp > high)) {
            return false;
        }
        back = word_at(sp - sizeof(uintptr_t));
        before = hot->places;
        any |= before;
        from = hot;
    }
    joint->at = at;
    joint->count = count;
    joint->before = before;
    joint->any = any;
    return true;
}

/* Take over the frames behind @at, if they were returned to as they were. */
static inline bool take_backs(const struct seep_frames *last, size_t at,
                              uintptr_t *pcs)
{
    size_t end = last->end;

    for (size_t i = at + 1; i < end; i++) {
        uintptr_t pc = word_at(last->sps[i] - sizeof(uintptr_t)) - 1;

        if (seep_unlikely(pc != last->pcs[i])) {
            return false;
        }
        *++pcs = pc;
    }
    return true;
}

static inline bool take_records(const struct seep_frames *last, size_t at,
                                uintptr_t *pcs)
{
    size_t end = last->end;
    uint32_t before = last->places[at];

    for (size_t i = at + 1; i < end; i++) {
        uintptr_t sp = last->sps[i];
        uintptr_t pc = word_at(sp - sizeof(uintptr_t)) - 1;
        uint32_t both = before & last->places[i];

        before = last->places[i];
        if (seep_unlikely(pc != last->pcs[i])) {
            return false;
        }
        *++pcs = pc;
        if ((both & SEEP_PLACES_FRAMED) != 0 &&
            seep_unlikely(word_at(sp - SEEP_FRAMED_BYTES) + SEEP_FRAMED_BYTES !=
                          last->sps[i + 1])) {
            return false;
        }
    }
    return true;
}

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

static inline bool same_rbp(const struct seep_capture_start *start,
                            const struct seep_frames *last,
                            const struct joint *joint)
{
    uintptr_t rbp = start->fp;

    if ((last->places[joint->at] & SEEP_PLACES_FRAMED) == 0) {
        return true;
    }
    if (joint->count != 0) {
        if ((joint->before & SEEP_PLACES_FRAMED) == 0) {
            return false;
        }
        rbp = word_at(last->sps[joint->at] - SEEP_FRAMED_BYTES);
    }
    return rbp + SEEP_FRAMED_BYTES == last->sps[joint->at + 1];
}

static inline void keep(struct seep_memory *memory, const uintptr_t *pcs,
                        const struct joint *joint)
{
    struct seep_frames *last = memory->last;
    const uintptr_t *sps = &memory->now->sps[SEEP_FRAMES_BEFORE];
    const uint32_t *places = &memory->now->places[SEEP_FRAMES_BEFORE];
    size_t first = joint->at - joint->count;

    for (size_t i = 0; i < joint->count; i++) {
        last->pcs[first + i] = pcs[i];
        last->sps[first + i] = sps[i];
        last->places[first + i] = places[i];
    }
    last->first = first;
    last->framed |= (joint->any & SEEP_PLACES_FRAMED) != 0;
}

size_t seep_eh_again(const struct seep_capture_start *start,
                     const struct seep_stack_bounds *bounds,
                     struct seep_memory *memory, uintptr_t *pcs,
                     size_t capacity)
{
    struct seep_frames *last = memory->last;
    struct joint joint;
    size_t count;

    if (seep_unlikely(start->sp < bounds->low || start->sp % 8 != 0 ||
                      last->high != bounds->high ||
                      seep_objects_epoch() != (memory->generation - 1) * 2 ||
                      capacity < NEW_MOST)) {
        return 0;
    }
    if (!find_joint(start, memory, pcs, &joint)) {
        return 0;
    }
    count = joint.count + last->end - joint.at;
    if (seep_unlikely(joint.count > joint.at || count > capacity)) {
        return 0;
    }
    pcs[joint.count] = last->pcs[joint.at];
    if (last->framed) {
        if (!same_rbp(start, last, &joint) ||
            !take_records(last, joint.at, &pcs[joint.count])) {
            return 0;
        }
    } else if (!take_backs(last, joint.at, &pcs[joint.count])) {
        return 0;
    }
    if (last->note_count != 0 && !same_notes(last, joint.at)) {
        return 0;
    }
    if (start->sps != NULL) {
        for (size_t i = 0; i < joint.count; i++) {
            start->sps[i] = memory->now->sps[SEEP_FRAMES_BEFORE + i];
        }
        for (size_t i = joint.count; i < count; i++) {
            start->sps[i] = last->sps[joint.at + i - joint.count];
        }
    }
    keep(memory, pcs, &joint);
    return count;
}
