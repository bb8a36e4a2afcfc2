/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Joining the last stack, and keeping the new one.
 *
 * Invariant: the last stack is whole at any time that another walk can see it,
 * and each of its notes is of one of its frames or of those before the first.
 */
#include "capture/eh_share.h"

#include <string.h>

#define LAST (SEEP_STACK_FRAMES_MAX - 1)

/* So many frames that a walk did not find in the last stack are walked again
 * at the next one, rather than all kept anew. */
#define AGAIN_MOST 16U

static int16_t place_in(uint32_t places, enum seep_walk_register number)
{
    return (int16_t)(places >> (16 * (unsigned int)number));
}

uintptr_t seep_share_settle(struct seep_walk *walk,
                            enum seep_walk_register number, size_t frame)
{
    const uint32_t *trail = walk->memory->trail;
    const uintptr_t *sps = walk->sps;

    for (size_t i = frame; i > walk->known[number]; i--) {
        int16_t place = place_in(trail[i - 1], number);

        if (place != 0) {
            uintptr_t at = sps[i] + (uintptr_t)place;

            walk->at[number] =
                at >= sps[i - 1] ? at
                                 : sps[i] - sizeof(uintptr_t) + SEEP_WALK_LOST;
            break;
        }
    }
    walk->known[number] = frame;
    return walk->at[number];
}

void seep_share_begin(struct seep_walk *walk)
{
    struct seep_share *share = &walk->memory->share;
    const struct seep_last *last = &walk->memory->last;
    size_t first =
        last->high == walk->high ? last->first : SEEP_STACK_FRAMES_MAX;

    share->at = SEEP_STACK_FRAMES_MAX;
    share->old = &last->sps[first];
}

/* @return the first frame from @at on that was not returned to as it was */
static inline SEEP_READS_THE_STACK size_t
compare_backs(const struct seep_last *last, size_t at)
{
    size_t i = at + 1;

    while (i <= LAST &&
           *(const uintptr_t *)(last->sps[i] - sizeof(uintptr_t)) ==
               last->pcs[i] + 1) {
        i++;
    }
    return i;
}

static SEEP_READS_THE_STACK bool is_noted(struct seep_walk *walk,
                                          const struct seep_note *note)
{
    uintptr_t slot = note->slot & SEEP_NOTE_SLOT_MASK;
    unsigned int number = note->slot & SEEP_MEMORY_WORD;

    /* Saved, or never touched, by a frame before the one that joins. */
    if (number != SEEP_MEMORY_WORD && slot < walk->sp) {
        slot = seep_share_settle(walk, number, walk->count);
        if (slot == SEEP_WALK_KEPT) {
            return walk->kept[number] == note->value;
        }
        if (slot % sizeof(uintptr_t) != 0) {
            return false;
        }
    }
    return *(const uintptr_t *)slot == note->value;
}

static inline bool compare_notes(struct seep_walk *walk, size_t at)
{
    const struct seep_last *last = &walk->memory->last;

    for (size_t i = SEEP_NOTES;
         i > last->first_note &&
         last->notes[i - 1].slot >> SEEP_NOTE_FRAME_SHIFT >= at;
         i--) {
        if (!is_noted(walk, &last->notes[i - 1])) {
            return false;
        }
    }
    return true;
}

/* Frames of the last stack behind those of the walk, the last one not. */
static inline void copy_frames(struct seep_walk *walk, size_t at, size_t count)
{
    const struct seep_last *last = &walk->memory->last;

    memcpy(&walk->pcs[walk->count], &last->pcs[at], count * sizeof(uintptr_t));
    memcpy(&walk->sps[walk->count], &last->sps[at], count * sizeof(uintptr_t));
}

bool seep_share_join(struct seep_walk *walk)
{
    struct seep_share *share = &walk->memory->share;
    const struct seep_last *last = &walk->memory->last;
    size_t at = (size_t)(share->old - last->sps);
    size_t differs;
    size_t count = LAST - at;

    if (last->pcs[at] != walk->pc) {
        share->old++;
        return false;
    }
    walk->sps[walk->count] = walk->sp;
    differs = compare_backs(last, at);
    if (differs <= LAST || !compare_notes(walk, at)) {
        share->old = &last->sps[differs <= LAST ? differs : at + 1];
        return false;
    }
    for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
        share->registers[i] = seep_share_settle(walk, i, walk->count);
        if (last->at[i] >= walk->sp) {
            walk->at[i] = last->at[i];
        }
    }
    share->at = at;
    share->count = walk->count;
    share->old = &last->sps[SEEP_STACK_FRAMES_MAX];
    if (count >= walk->capacity - walk->count) {
        count = walk->capacity - walk->count;
    }
    copy_frames(walk, at, count);
    walk->count += count;
    walk->pc = last->pcs[at + count];
    walk->sp = last->sps[at + count];
    walk->known[SEEP_WALK_RBP] = walk->count;
    walk->known[SEEP_WALK_RBX] = walk->count;
    return true;
}

/* Notes of the walk in front of those of the last stack from @first on: those
 * of frames in [barrier, count), which come to lie at @to. */
static bool keep_notes(struct seep_walk *walk, size_t first, size_t barrier,
                       size_t count, size_t to)
{
    struct seep_memory *memory = walk->memory;
    size_t end = 0;
    size_t begin = 0;

    while (end < memory->note_count &&
           memory->notes[end].slot >> SEEP_NOTE_FRAME_SHIFT < count) {
        begin += memory->notes[end].slot >> SEEP_NOTE_FRAME_SHIFT < barrier;
        end++;
    }
    if (end - begin > first) {
        return false;
    }
    memory->last.first_note = first - (end - begin);
    for (size_t i = begin; i < end; i++) {
        struct seep_note *note =
            &memory->last.notes[memory->last.first_note + i - begin];

        *note = memory->notes[i];
        note->slot += (uint64_t)(to - barrier) << SEEP_NOTE_FRAME_SHIFT;
    }
    return true;
}

static void keep_frames(struct seep_walk *walk, size_t barrier, size_t count,
                        size_t to)
{
    struct seep_last *last = &walk->memory->last;
    size_t bytes = (count - barrier) * sizeof(uintptr_t);

    memcpy(&last->pcs[to], &walk->pcs[barrier], bytes);
    memcpy(&last->sps[to], &walk->sps[barrier], bytes);
    last->first = to;
}

/* Registers that frames of the last stack take from before @at lie where the
 * new frames before it have them. */
static size_t renew_notes(struct seep_last *last,
                          const struct seep_share *share)
{
    uintptr_t sp = last->sps[share->at];
    size_t i = SEEP_NOTES;

    for (; i > last->first_note; i--) {
        struct seep_note *note = &last->notes[i - 1];
        unsigned int number = note->slot & SEEP_MEMORY_WORD;

        if (note->slot >> SEEP_NOTE_FRAME_SHIFT < share->at) {
            break;
        }
        if (number != SEEP_MEMORY_WORD &&
            (note->slot & SEEP_NOTE_SLOT_MASK) < sp) {
            note->slot &= ~SEEP_NOTE_SLOT_MASK;
            note->slot |= share->registers[number] & SEEP_NOTE_SLOT_MASK;
        }
    }
    for (unsigned int k = 0; k < SEEP_WALK_REGISTERS; k++) {
        if (last->at[k] < sp) {
            last->at[k] = share->registers[k];
        }
    }
    return i;
}

/* The frames before the one that was joined take the place of those that the
 * last stack had there. */
static void keep_inner(struct seep_walk *walk, const struct seep_share *share)
{
    struct seep_last *last = &walk->memory->last;
    size_t outside = share->count + SEEP_STACK_FRAMES_MAX - share->at;
    size_t barrier =
        walk->barrier < share->count ? walk->barrier : share->count;
    size_t count = share->count - barrier;

    if (walk->count != outside || count > share->at) {
        /* Deeper or less deep than was kept. */
        if (count > AGAIN_MOST || walk->count > outside + AGAIN_MOST) {
            last->first = SEEP_STACK_FRAMES_MAX;
        }
        return;
    }
    if (!keep_notes(walk, renew_notes(last, share), barrier, share->count,
                    share->at - count)) {
        last->first = SEEP_STACK_FRAMES_MAX;
        return;
    }
    keep_frames(walk, barrier, share->count, share->at - count);
}

/* Where the registers lie in the outermost frame. */
static void keep_registers(struct seep_walk *walk)
{
    struct seep_memory *memory = walk->memory;

    for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
        /* The step out of it was an odd one: as they were before it. */
        memory->last.at[i] = walk->known[i] == walk->count
                                 ? memory->before[i]
                                 : seep_share_settle(walk, i, walk->count - 1);
    }
}

void seep_share_keep(struct seep_walk *walk)
{
    struct seep_memory *memory = walk->memory;
    struct seep_last *last = &memory->last;
    size_t count = walk->count - walk->barrier;
    size_t to = SEEP_STACK_FRAMES_MAX - count;

    if (count == 0) {
        return;
    }
    if (memory->note_count > SEEP_NOTES) {
        last->first = SEEP_STACK_FRAMES_MAX;
    } else if (memory->share.at < SEEP_STACK_FRAMES_MAX) {
        keep_inner(walk, &memory->share);
    } else {
        keep_notes(walk, SEEP_NOTES, walk->barrier, walk->count, to);
        keep_frames(walk, walk->barrier, walk->count, to);
        last->high = walk->high;
        last->ended = memory->ended;
        if (!memory->ended) {
            keep_registers(walk);
        }
    }
}
