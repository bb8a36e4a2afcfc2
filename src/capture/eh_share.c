/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Joining the last stack, and keeping the new one.
 *
 * Invariant: the last stack holds frames of one walk, or of several of which
 * each joined the one before it; all that its rules read is in its frames (the
 * return addresses, rbp where a frame is FRAMED and so is the one before it) or
 * in its notes.
 */
#include "capture/eh_share.h"

#include <string.h>

/* So many frames that a walk did not find in the last stack are walked again
 * at the next one, rather than all kept anew. */
#define AGAIN_MOST 16U

/* So many frames are compared before any is judged. */
#define AT_ONCE 8U

static uintptr_t note_slot(const struct seep_note *note)
{
    return note->slot & SEEP_NOTE_SLOT_MASK;
}

static size_t note_frame(const struct seep_note *note)
{
    return note->slot >> SEEP_NOTE_FRAME_SHIFT;
}

uintptr_t seep_share_settle(struct seep_walk *walk,
                            enum seep_walk_register number, size_t frame)
{
    const uint32_t *places = &walk->memory->now->places[SEEP_FRAMES_BEFORE];
    const uintptr_t *sps = walk->sps;

    for (size_t i = frame; i > walk->known[number]; i--) {
        intptr_t place = seep_place_of(places[i - 1], number);

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

static inline SEEP_READS_THE_STACK uintptr_t word_at(uintptr_t address)
{
    return *(const uintptr_t *)address;
}

/* Is each of @AT_ONCE frames FRAMED, and the one before the first? */
static inline bool all_framed(const uint32_t *places)
{
    uint32_t all = places[-1];

#pragma GCC unroll 8
    for (size_t k = 0; k < AT_ONCE; k++) {
        all &= places[k];
    }
    return (all & SEEP_PLACES_FRAMED) != 0;
}

/* Were all @AT_ONCE frames from @i on returned to as they were? */
static inline bool same_backs(const struct seep_frames *last, size_t i)
{
    const uintptr_t *sps = &last->sps[i];
    const uintptr_t *pcs = &last->pcs[i];
    uintptr_t other = 0;

#pragma GCC unroll 8
    for (size_t k = 0; k < AT_ONCE; k++) {
        other |= (word_at(sps[k] - sizeof(uintptr_t)) - 1) ^ pcs[k];
    }
    return other == 0;
}

/* And, all of them FRAMED, was the frame pointer as it was? */
static inline SEEP_READS_THE_STACK bool
same_records(const struct seep_frames *last, size_t i)
{
    const uintptr_t *sps = &last->sps[i];
    const uintptr_t *pcs = &last->pcs[i];
    uintptr_t sp = sps[0];
    uintptr_t other = 0;

#pragma GCC unroll 8
    for (size_t k = 0; k < AT_ONCE; k++) {
        const uintptr_t *words = (const uintptr_t *)sp;

        sp = sps[k + 1];
        other |= (words[-1] - 1) ^ pcs[k];
        other |= (words[-2] + SEEP_FRAMED_BYTES) ^ sp;
    }
    return other == 0;
}

static inline bool same_back(const struct seep_frames *last, size_t i)
{
    return word_at(last->sps[i] - sizeof(uintptr_t)) - 1 == last->pcs[i];
}

/* The first frame behind @at that was returned to otherwise. All are readable.
 */
static inline size_t find_other_back(const struct seep_frames *last, size_t at)
{
    size_t end = last->end;
    size_t i = at + 1;

    while (i + AT_ONCE <= end && seep_likely(same_backs(last, i))) {
        i += AT_ONCE;
    }
    while (i < end && seep_likely(same_back(last, i))) {
        i++;
    }
    return i;
}

/* As below, of frames [i, stop). */
static inline size_t find_other_by_one(const struct seep_frames *last, size_t i,
                                       size_t stop)
{
    uint32_t before = last->places[i - 1];

    for (; i < stop; i++) {
        uintptr_t sp = last->sps[i];
        uint32_t both = before & last->places[i];

        before = last->places[i];
        if (seep_unlikely(!same_back(last, i))) {
            break;
        }
        /* The step from the last frame is taken anew. */
        if ((both & SEEP_PLACES_FRAMED) != 0 &&
            seep_unlikely(word_at(sp - SEEP_FRAMED_BYTES) + SEEP_FRAMED_BYTES !=
                          last->sps[i + 1]) &&
            i + 1 < last->end) {
            break;
        }
    }
    return i;
}

/* The same, or whose frame pointer was another one. */
static inline size_t find_other_record(const struct seep_frames *last,
                                       size_t at)
{
    size_t end = last->end;
    size_t i = at + 1;

    while (i < end) {
        size_t stop = i + AT_ONCE;

        if (stop < end && all_framed(&last->places[i]) &&
            seep_likely(same_records(last, i))) {
            i = stop;
            continue;
        }
        i = find_other_by_one(last, i, stop < end ? stop : end);
        if (seep_unlikely(i < stop)) {
            break;
        }
    }
    return i;
}

/* Has a register that a frame before the one that joins has saved, or none,
 * this value? */
static SEEP_READS_THE_STACK bool
has(struct seep_walk *walk, enum seep_walk_register number, uintptr_t value)
{
    uintptr_t at = seep_share_settle(walk, number, walk->count);

    if (at == SEEP_WALK_KEPT) {
        return walk->kept[number] == value;
    }
    return at % sizeof(uintptr_t) == 0 && word_at(at) == value;
}

static bool compare_notes(struct seep_walk *walk,
                          const struct seep_frames *last, size_t at)
{
    for (size_t i = 0; i < last->note_count; i++) {
        const struct seep_note *note = &last->notes[i];
        unsigned int number = note->slot & SEEP_MEMORY_WORD;
        bool is_before =
            number != SEEP_MEMORY_WORD && note_slot(note) < walk->sp;

        if (note_frame(note) >= at &&
            !(is_before ? has(walk, number, note->value)
                        : word_at(note_slot(note)) == note->value)) {
            return false;
        }
    }
    return true;
}

/* Is rbp, which the frame that the walk stands in has of those before it, the
 * one that leads to @next? */
static inline bool same_rbp(struct seep_walk *walk, uintptr_t next)
{
    const uint32_t *places = &walk->memory->now->places[SEEP_FRAMES_BEFORE];
    uintptr_t rbp = next - SEEP_FRAMED_BYTES;

    if (seep_likely((places[(ptrdiff_t)walk->count - 1] & SEEP_PLACES_FRAMED) !=
                    0)) {
        return word_at(walk->sp - SEEP_FRAMED_BYTES) == rbp;
    }
    return has(walk, SEEP_WALK_RBP, rbp);
}

/* Did the frames from @at on find beside return addresses, and rbp where a
 * frame is FRAMED and so is the one before, what the walk finds now, that
 * stands in @at? */
static inline bool same_rest(struct seep_walk *walk, size_t at)
{
    const struct seep_frames *last = walk->memory->last;

    if ((last->places[at] & SEEP_PLACES_FRAMED) != 0 && at + 1 < last->end &&
        !same_rbp(walk, last->sps[at + 1])) {
        return false;
    }
    return compare_notes(walk, last, at);
}

/* The walk has joined at @at: where its registers lie in the last frame. */
static void carry_on(struct seep_walk *walk, size_t at)
{
    struct seep_share *share = &walk->memory->share;
    const struct seep_frames *last = walk->memory->last;

    for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
        share->registers[i] = seep_share_settle(walk, i, share->count);
        if (last->at[i] >= last->sps[at]) {
            walk->at[i] = last->at[i];
        }
        walk->known[i] = walk->count;
    }
}

/* Go on in the last frame, if that has a caller, or in that for which there
 * is no room. */
static inline void take_over(struct seep_walk *walk,
                             const struct seep_frames *last, size_t at)
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
    carry_on(walk, at);
    walk->pc = last->pcs[at + count];
    walk->sp = last->sps[at + count];
}

SEEP_NOINLINE bool seep_share_join(struct seep_walk *walk,
                                   const uintptr_t **old)
{
    struct seep_share *share = &walk->memory->share;
    const struct seep_frames *last = walk->memory->last;
    size_t at = (size_t)(*old - last->sps);
    size_t same;

    walk->sps[walk->count] = walk->sp;
    same =
        last->framed ? find_other_record(last, at) : find_other_back(last, at);
    if (seep_unlikely(same < last->end)) {
        *old = &last->sps[same];
        return false;
    }
    if (seep_unlikely(last->note_count != 0 ||
                      (last->places[at] & SEEP_PLACES_FRAMED) != 0) &&
        !same_rest(walk, at)) {
        ++*old;
        return false;
    }
    share->at = at;
    share->count = walk->count;
    *old = &last->sps[last->end];
    take_over(walk, last, at);
    return true;
}

static void add_note(struct seep_frames *frames, uint64_t slot, size_t frame,
                     uintptr_t value)
{
    if (frames->note_count < SEEP_NOTES) {
        frames->notes[frames->note_count].slot =
            slot | (uint64_t)frame << SEEP_NOTE_FRAME_SHIFT;
        frames->notes[frames->note_count].value = value;
    }
    frames->note_count += frames->note_count <= SEEP_NOTES;
}

/* Notes of frames before @share's go; registers that frames behind it have of
 * those before it lie where the new frames have them. */
static void renew_notes(struct seep_frames *last,
                        const struct seep_share *share)
{
    uintptr_t sp = last->sps[share->at];
    size_t count = 0;

    for (size_t i = 0; i < last->note_count; i++) {
        struct seep_note note = last->notes[i];
        unsigned int number = note.slot & SEEP_MEMORY_WORD;

        if (note_frame(&note) < share->at) {
            continue;
        }
        if (number != SEEP_MEMORY_WORD && note_slot(&note) < sp) {
            note.slot &= ~SEEP_NOTE_SLOT_MASK;
            note.slot |= share->registers[number] & SEEP_NOTE_SLOT_MASK;
        }
        last->notes[count++] = note;
    }
    last->note_count = count;
    for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
        if (last->at[i] < sp) {
            last->at[i] = share->registers[i];
        }
    }
}

/* Notes of frames from @begin on of the new stack, which come to lie at @to. */
static void put_notes(struct seep_memory *memory, size_t begin, size_t end,
                      size_t to)
{
    const struct seep_frames *now = memory->now;

    for (size_t i = 0; i < now->note_count; i++) {
        const struct seep_note *note = &now->notes[i];
        size_t frame = note_frame(note) - SEEP_FRAMES_BEFORE;

        if (frame >= begin && frame < end) {
            add_note(memory->last,
                     note->slot & ~(UINT64_MAX << SEEP_NOTE_FRAME_SHIFT),
                     to + frame - begin, note->value);
        }
    }
}

/* Frames [begin, end) of the new stack, in front of @at of the last one. */
static inline void put_before(struct seep_walk *walk, size_t begin, size_t end,
                              size_t at)
{
    struct seep_frames *last = walk->memory->last;
    const struct seep_frames *now = walk->memory->now;
    const uintptr_t *pcs = &walk->pcs[end];
    const uintptr_t *sps = &now->sps[SEEP_FRAMES_BEFORE + end];
    const uint32_t *places = &now->places[SEEP_FRAMES_BEFORE + end];

    for (size_t left = end - begin; left != 0; left--) {
        last->pcs[at - 1] = *--pcs;
        last->sps[at - 1] = *--sps;
        last->places[at - 1] = *--places;
        seep_frames_pair(last, at--);
    }
    last->first = at;
    last->framed |= now->framed;
}

/* What the frames from the one that was joined have of those before it they
 * have of the new ones now. */
static void renew_registers(struct seep_walk *walk, size_t begin)
{
    struct seep_share *share = &walk->memory->share;
    struct seep_frames *last = walk->memory->last;
    size_t at = share->at;

    if (last->ended) {
        for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
            share->registers[i] = seep_share_settle(walk, i, share->count);
        }
    }
    renew_notes(last, share);
    put_notes(walk->memory, begin, share->count, last->first);
    if (at != last->first && at + 1 < last->end &&
        (last->places[at] & ~last->places[at - 1] & SEEP_PLACES_FRAMED) != 0) {
        add_note(last,
                 (share->registers[SEEP_WALK_RBP] & SEEP_NOTE_SLOT_MASK) |
                     SEEP_WALK_RBP,
                 at, last->sps[at + 1] - SEEP_FRAMED_BYTES);
    }
    if (last->note_count > SEEP_NOTES) {
        seep_memory_forget(walk->memory);
    }
}

/* Does anything but return addresses tie the frames from the one that was
 * joined to those before it, or must it be kept of the new ones? */
static inline bool is_tied(const struct seep_memory *memory, size_t at)
{
    const struct seep_frames *last = memory->last;
    uintptr_t sp = last->sps[at];

    if (memory->now->note_count != 0 || !last->ended) {
        return true;
    }
    for (size_t i = 0; i < last->note_count; i++) {
        const struct seep_note *note = &last->notes[i];

        if (note_frame(note) < at ||
            ((note->slot & SEEP_MEMORY_WORD) != SEEP_MEMORY_WORD &&
             note_slot(note) < sp)) {
            return true;
        }
    }
    /* FRAMED behind FRAMED is verified by itself. */
    return at != last->first &&
           (last->places[at] & ~last->places[at - 1] & SEEP_PLACES_FRAMED) != 0;
}

static SEEP_NOINLINE void make_pairs(struct seep_frames *frames)
{
    for (size_t i = frames->first + 1; i < frames->end; i++) {
        seep_frames_pair(frames, i);
    }
    frames->paired = true;
}

/* The frames before the one that was joined take the place of those that the
 * last stack had there. */
static inline void keep_inner(struct seep_walk *walk,
                              const struct seep_share *share)
{
    struct seep_memory *memory = walk->memory;
    struct seep_frames *last = memory->last;
    size_t at = share->at;
    size_t outside = share->count + last->end - at;
    size_t begin = walk->barrier < share->count ? walk->barrier : share->count;
    size_t count = share->count - begin;

    if (seep_unlikely(!last->paired)) {
        make_pairs(last);
    }
    memory->again = last->ended;
    if (seep_unlikely(walk->count != outside || count > at)) {
        memory->again = false;
        /* Less deep than what was kept, or deeper. */
        if (count > AGAIN_MOST || walk->count > outside + AGAIN_MOST) {
            seep_memory_forget(memory);
        }
        return;
    }
    put_before(walk, begin, share->count, at);
    if (seep_unlikely(is_tied(memory, at))) {
        renew_registers(walk, begin);
    }
}

/* Where the registers lie in the outermost frame. */
static void keep_registers(struct seep_walk *walk)
{
    struct seep_memory *memory = walk->memory;

    for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
        if (memory->ended) {
            memory->now->at[i] = SEEP_WALK_LOST; /* nobody asks */
        } else if (walk->known[i] == walk->count) {
            /* The step out of it was an odd one: as they were before it. */
            memory->now->at[i] = memory->before[i];
        } else {
            memory->now->at[i] = seep_share_settle(walk, i, walk->count - 1);
        }
    }
}

static void keep_all(struct seep_walk *walk)
{
    struct seep_memory *memory = walk->memory;
    struct seep_frames *now = memory->now;

    now->first = SEEP_FRAMES_BEFORE + walk->barrier;
    now->end = SEEP_FRAMES_BEFORE + walk->count;
    now->sps[now->end] = UINTPTR_MAX;
    now->high = walk->high;
    now->ended = memory->ended;
    now->paired = false;
    memcpy(&now->pcs[now->first], &walk->pcs[walk->barrier],
           (walk->count - walk->barrier) * sizeof(uintptr_t));
    keep_registers(walk);
    memory->now = memory->last;
    memory->last = now;
}

void seep_share_keep(struct seep_walk *walk)
{
    struct seep_memory *memory = walk->memory;

    if (memory->now->note_count > SEEP_NOTES) {
        seep_memory_forget(memory);
    } else if (memory->share.at != SEEP_FRAMES) {
        keep_inner(walk, &memory->share);
    } else if (walk->count > walk->barrier) {
        keep_all(walk);
    }
}
