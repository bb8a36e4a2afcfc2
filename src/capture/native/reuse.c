/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Joining the last stack, keeping the new one, and the short cut for stacks
 * that are nearly as they were.
 *
 * Invariant: the last stack holds frames of one walk, or of several of which
 * each joined the one before it; all that its rules read is in its frames (the
 * return addresses, rbp where a frame is FRAMED and so is the one before it) or
 * in its notes.
 */
#include "capture/native/cache.h"

#include <string.h>

#include "base/compiler.h"
#include "capture/native/elf.h"

static inline intptr_t offset_of(uint32_t places,
                                 enum seep_walk_register number)
{
    return (int16_t)(places >> (16 * (unsigned int)number)) &
           ~(intptr_t)SEEP_PLACES_FRAMED;
}

/* So many frames that a walk did not find in the last stack are walked once
 * more at the next one, rather than all kept anew. */
#define WALKED_MORE_MAX 16U

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

uintptr_t seep_reuse_settle(struct seep_walk *walk,
                            enum seep_walk_register number, size_t frame)
{
    const uint32_t *places = &walk->cache->now->places[SEEP_CACHED_BEFORE];
    const uintptr_t *sps = walk->sps;

    for (size_t i = frame; i > walk->known[number]; i--) {
        intptr_t place = offset_of(places[i - 1], number);

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
static inline bool same_backs(const struct seep_cached_stack *last, size_t i)
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
same_records(const struct seep_cached_stack *last, size_t i)
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

static inline bool same_back(const struct seep_cached_stack *last, size_t i)
{
    return word_at(last->sps[i] - sizeof(uintptr_t)) - 1 == last->pcs[i];
}

/* The first frame behind @at that was returned to otherwise. All are readable.
 */
static inline size_t find_other_back(const struct seep_cached_stack *last,
                                     size_t at)
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
static inline size_t find_other_by_one(const struct seep_cached_stack *last,
                                       size_t i, size_t stop)
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
static inline size_t find_other_record(const struct seep_cached_stack *last,
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
    uintptr_t at = seep_reuse_settle(walk, number, walk->count);

    if (at == SEEP_WALK_KEPT) {
        return walk->kept[number] == value;
    }
    return at % sizeof(uintptr_t) == 0 && word_at(at) == value;
}

static bool compare_notes(struct seep_walk *walk,
                          const struct seep_cached_stack *last, size_t at)
{
    for (size_t i = 0; i < last->note_count; i++) {
        const struct seep_note *note = &last->notes[i];
        unsigned int number = note->slot & SEEP_NOTE_WORD;
        bool is_before = number != SEEP_NOTE_WORD && note_slot(note) < walk->sp;

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
    const uint32_t *places = &walk->cache->now->places[SEEP_CACHED_BEFORE];
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
    const struct seep_cached_stack *last = walk->cache->last;

    if ((last->places[at] & SEEP_PLACES_FRAMED) != 0 && at + 1 < last->end &&
        !same_rbp(walk, last->sps[at + 1])) {
        return false;
    }
    return compare_notes(walk, last, at);
}

/* The walk has joined at @at: where its registers lie in the last frame. */
static void carry_on(struct seep_walk *walk, size_t at)
{
    struct seep_joint *joint = &walk->cache->joint;
    const struct seep_cached_stack *last = walk->cache->last;

    for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
        joint->registers[i] = seep_reuse_settle(walk, i, joint->count);
        if (last->at[i] >= last->sps[at]) {
            walk->at[i] = last->at[i];
        }
        walk->known[i] = walk->count;
    }
}

/* Go on in the last frame, if that has a caller, or in that for which there
 * is no room. */
static inline void take_over(struct seep_walk *walk,
                             const struct seep_cached_stack *last, size_t at)
{
    size_t count = last->end - at - !last->ended;
    bool all = count <= walk->capacity - walk->count;

    if (seep_unlikely(!all)) {
        count = walk->capacity - walk->count;
    }
    memcpy(&walk->pcs[walk->count], &last->pcs[at], count * sizeof(uintptr_t));
    if (walk->wanted_sps != NULL) {
        memcpy(&walk->wanted_sps[walk->count], &last->sps[at],
               count * sizeof(uintptr_t));
    }
    walk->count += count;
    walk->cache->ended = all && last->ended;
    if (walk->cache->ended) {
        walk->pc = UINTPTR_MAX;
        return;
    }
    carry_on(walk, at);
    walk->pc = last->pcs[at + count];
    walk->sp = last->sps[at + count];
}

SEEP_NOINLINE bool seep_reuse_join(struct seep_walk *walk,
                                   const uintptr_t **old)
{
    struct seep_joint *joint = &walk->cache->joint;
    const struct seep_cached_stack *last = walk->cache->last;
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
    joint->at = at;
    joint->count = walk->count;
    *old = &last->sps[last->end];
    take_over(walk, last, at);
    return true;
}

static void add_note(struct seep_cached_stack *frames, uint64_t slot,
                     size_t frame, uintptr_t value)
{
    if (frames->note_count < SEEP_NOTES) {
        frames->notes[frames->note_count].slot =
            slot | (uint64_t)frame << SEEP_NOTE_FRAME_SHIFT;
        frames->notes[frames->note_count].value = value;
    }
    frames->note_count += frames->note_count <= SEEP_NOTES;
}

/* Notes of frames before @joint's go; registers that frames behind it have of
 * those before it lie where the new frames have them. */
static void renew_notes(struct seep_cached_stack *last,
                        const struct seep_joint *joint)
{
    uintptr_t sp = last->sps[joint->at];
    size_t count = 0;

    for (size_t i = 0; i < last->note_count; i++) {
        struct seep_note note = last->notes[i];
        unsigned int number = note.slot & SEEP_NOTE_WORD;

        if (note_frame(&note) < joint->at) {
            continue;
        }
        if (number != SEEP_NOTE_WORD && note_slot(&note) < sp) {
            note.slot &= ~SEEP_NOTE_SLOT_MASK;
            note.slot |= joint->registers[number] & SEEP_NOTE_SLOT_MASK;
        }
        last->notes[count++] = note;
    }
    last->note_count = count;
    for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
        if (last->at[i] < sp) {
            last->at[i] = joint->registers[i];
        }
    }
}

/* Notes of frames from @begin on of the new stack, which come to lie at @to. */
static void put_notes(struct seep_unwind_cache *cache, size_t begin, size_t end,
                      size_t to)
{
    const struct seep_cached_stack *now = cache->now;

    for (size_t i = 0; i < now->note_count; i++) {
        const struct seep_note *note = &now->notes[i];
        size_t frame = note_frame(note) - SEEP_CACHED_BEFORE;

        if (frame >= begin && frame < end) {
            add_note(cache->last,
                     note->slot & ~(UINT64_MAX << SEEP_NOTE_FRAME_SHIFT),
                     to + frame - begin, note->value);
        }
    }
}

/* Frames [begin, end) of the new stack, in front of @at of the last one. */
static inline void put_before(struct seep_walk *walk, size_t begin, size_t end,
                              size_t at)
{
    struct seep_cached_stack *last = walk->cache->last;
    const struct seep_cached_stack *now = walk->cache->now;
    const uintptr_t *pcs = &walk->pcs[end];
    const uintptr_t *sps = &now->sps[SEEP_CACHED_BEFORE + end];
    const uint32_t *places = &now->places[SEEP_CACHED_BEFORE + end];

    for (size_t left = end - begin; left != 0; left--) {
        last->pcs[at - 1] = *--pcs;
        last->sps[at - 1] = *--sps;
        last->places[at - 1] = *--places;
        seep_cached_stack_pair(last, at--);
    }
    last->first = at;
    last->framed |= now->framed;
}

/* What the frames from the one that was joined have of those before it they
 * have of the new ones now. */
static void renew_registers(struct seep_walk *walk, size_t begin)
{
    struct seep_joint *joint = &walk->cache->joint;
    struct seep_cached_stack *last = walk->cache->last;
    size_t at = joint->at;

    if (last->ended) {
        for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
            joint->registers[i] = seep_reuse_settle(walk, i, joint->count);
        }
    }
    renew_notes(last, joint);
    put_notes(walk->cache, begin, joint->count, last->first);
    if (at != last->first && at + 1 < last->end &&
        (last->places[at] & ~last->places[at - 1] & SEEP_PLACES_FRAMED) != 0) {
        add_note(last,
                 (joint->registers[SEEP_WALK_RBP] & SEEP_NOTE_SLOT_MASK) |
                     SEEP_WALK_RBP,
                 at, last->sps[at + 1] - SEEP_FRAMED_BYTES);
    }
    if (last->note_count > SEEP_NOTES) {
        seep_unwind_cache_forget(walk->cache);
    }
}

/* Does anything but return addresses tie the frames from the one that was
 * joined to those before it, or must it be kept of the new ones? */
static inline bool is_tied(const struct seep_unwind_cache *cache, size_t at)
{
    const struct seep_cached_stack *last = cache->last;
    uintptr_t sp = last->sps[at];

    if (cache->now->note_count != 0 || !last->ended) {
        return true;
    }
    for (size_t i = 0; i < last->note_count; i++) {
        const struct seep_note *note = &last->notes[i];

        if (note_frame(note) < at ||
            ((note->slot & SEEP_NOTE_WORD) != SEEP_NOTE_WORD &&
             note_slot(note) < sp)) {
            return true;
        }
    }
    /* FRAMED behind FRAMED is verified by itself. */
    return at != last->first &&
           (last->places[at] & ~last->places[at - 1] & SEEP_PLACES_FRAMED) != 0;
}

static SEEP_NOINLINE void make_pairs(struct seep_cached_stack *frames)
{
    for (size_t i = frames->first + 1; i < frames->end; i++) {
        seep_cached_stack_pair(frames, i);
    }
    frames->paired = true;
}

/* The frames before the one that was joined take the place of those that the
 * last stack had there. */
static inline void keep_inner(struct seep_walk *walk,
                              const struct seep_joint *joint)
{
    struct seep_unwind_cache *cache = walk->cache;
    struct seep_cached_stack *last = cache->last;
    size_t at = joint->at;
    size_t outside = joint->count + last->end - at;
    size_t begin = walk->barrier < joint->count ? walk->barrier : joint->count;
    size_t count = joint->count - begin;

    if (seep_unlikely(!last->paired)) {
        make_pairs(last);
    }
    cache->reusable = last->ended;
    if (seep_unlikely(walk->count != outside || count > at)) {
        cache->reusable = false;
        /* Less deep than what was kept, or deeper. */
        if (count > WALKED_MORE_MAX ||
            walk->count > outside + WALKED_MORE_MAX) {
            seep_unwind_cache_forget(cache);
        }
        return;
    }
    put_before(walk, begin, joint->count, at);
    if (seep_unlikely(is_tied(cache, at))) {
        renew_registers(walk, begin);
    }
}

/* Where the registers lie in the outermost frame. */
static void keep_registers(struct seep_walk *walk)
{
    struct seep_unwind_cache *cache = walk->cache;

    for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
        if (cache->ended) {
            cache->now->at[i] = SEEP_WALK_LOST; /* nobody asks */
        } else if (walk->known[i] == walk->count) {
            /* The step out of it was an odd one: as they were before it. */
            cache->now->at[i] = cache->before[i];
        } else {
            cache->now->at[i] = seep_reuse_settle(walk, i, walk->count - 1);
        }
    }
}

static void keep_all(struct seep_walk *walk)
{
    struct seep_unwind_cache *cache = walk->cache;
    struct seep_cached_stack *now = cache->now;

    now->first = SEEP_CACHED_BEFORE + walk->barrier;
    now->end = SEEP_CACHED_BEFORE + walk->count;
    now->sps[now->end] = UINTPTR_MAX;
    now->high = walk->high;
    now->ended = cache->ended;
    now->paired = false;
    memcpy(&now->pcs[now->first], &walk->pcs[walk->barrier],
           (walk->count - walk->barrier) * sizeof(uintptr_t));
    keep_registers(walk);
    cache->now = cache->last;
    cache->last = now;
}

void seep_reuse_keep(struct seep_walk *walk)
{
    struct seep_unwind_cache *cache = walk->cache;

    if (cache->now->note_count > SEEP_NOTES) {
        seep_unwind_cache_forget(cache);
    } else if (cache->joint.at != SEEP_CACHED_FRAMES) {
        keep_inner(walk, &cache->joint);
    } else if (walk->count > walk->barrier) {
        keep_all(walk);
    }
}

/*
 * The short cut for the stack that is nearly the last one, as most are. Without
 * it a malloc/free pair in exact mode takes 6 to 9 % more (5, 20 and 60 frames;
 * medians of the ratios of 160 alternating pairs of runs of hot_path).
 *
 * Invariant: until all words of the last stack from the joint on are found to
 * be as they were, nothing is written but @pcs, what nobody reads of `now`, and
 * that a stack may be `framed`, which makes a comparison more thorough.
 */

/* So many new frames are walked in search of the last stack. */
#define NEW_FRAMES_MAX SEEP_CACHED_BEFORE

/* So many frames are compared at once. */
#define PAIRS_AT_ONCE 4U

/* Of so many stacks one is kept: what most have in common is in that one, too.
 */
#define KEEP_EVERY 16U

/* Where the walk has met the last stack. */
struct short_joint {
    size_t at;       /* frame of the last stack */
    size_t count;    /* new frames before it */
    uintptr_t rbp;   /* in this frame, if the one before is FRAMED */
    uint32_t before; /* places of that one */
};

/* One of the callers that this code had before, or any rule that is kept: what
 * all allocate by, as malloc's caller, has many callers. @return may be another
 * one's */
static inline const struct seep_cached_rule *
rule_of(struct seep_unwind_cache *cache, const struct seep_cached_rule *from,
        uintptr_t back)
{
    const struct seep_cached_rule *entry =
        seep_unwind_cache_next(cache, from, 0);

    if (seep_unlikely(entry->back != back)) {
        entry = seep_unwind_cache_set(cache, back);
        for (uint32_t i = 1; entry->back != back && i < SEEP_CACHED_WAYS; i++) {
            entry++;
        }
    }
    return entry;
}

/* From @start to the first frame of the last stack. @return false: give up */
static inline bool find_joint(const struct seep_capture_start *start,
                              struct seep_unwind_cache *cache,
                              struct seep_cached_stack *last, uintptr_t *pcs,
                              struct short_joint *ret_joint)
{
    struct seep_cached_stack *now = cache->now;
    const struct seep_cached_rule *from = &cache->start;
    uintptr_t sp = start->sp;
    uintptr_t back = start->pc;
    uintptr_t rbp = start->fp;
    uintptr_t high = last->high;
    uint32_t before = SEEP_PLACES_FRAMED; /* as if: rbp is known */
    size_t at = last->first;
    size_t count = 0;

    for (;;) {
        const struct seep_cached_rule *entry;
        uintptr_t cfa;

        while (last->sps[at] < sp) {
            at++;
        }
        if (last->sps[at] == sp && last->pcs[at] == back - 1) {
            break;
        }
        entry = rule_of(cache, from, back);
        if (seep_unlikely(entry->back != back || count == NEW_FRAMES_MAX)) {
            return false;
        }
        cfa = sp + (uintptr_t)entry->offset;
        if ((entry->places & SEEP_PLACES_FRAMED) != 0) {
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
        now->places[count] = entry->places;
        count++;
        before = entry->places;
        back = word_at(cfa - sizeof(uintptr_t));
        rbp = word_at(cfa - SEEP_FRAMED_BYTES);
        sp = cfa;
        from = entry;
    }
    *ret_joint = (struct short_joint){
        .at = at, .count = count, .rbp = rbp, .before = before};
    return true;
}

static inline SEEP_READS_THE_STACK seep_pair pair_at(uintptr_t address)
{
    typedef seep_pair pair_of_words __attribute__((aligned(sizeof(uintptr_t))));

    return *(const pair_of_words *)address;
}

/* Without a branch for each: what differs between @PAIRS_AT_ONCE frames from @i
 * on and what lies there now. */
static inline seep_pair differ(const struct seep_cached_stack *last, size_t i)
{
    seep_pair other = {0, 0};

#pragma GCC unroll 4
    for (size_t k = 0; k < PAIRS_AT_ONCE; k++) {
        seep_pair pair = pair_at(last->sps[i + k] - SEEP_FRAMED_BYTES);

        other |= (pair ^ last->pairs[i + k]) & last->masks[i + k];
    }
    return other;
}

/* Take over @PAIRS_AT_ONCE frames. */
static inline void copy(uintptr_t *to, const uintptr_t *from)
{
    memcpy(to, from, PAIRS_AT_ONCE * sizeof(uintptr_t));
}

/* Take over the frames from @at on, if they were returned to as they were, with
 * rbp as it was. The last of @PAIRS_AT_ONCE are taken once more, rather than by
 * one.
 */
static inline bool take_frames(const struct seep_cached_stack *last, size_t at,
                               uintptr_t *pcs)
{
    size_t stop = last->end - PAIRS_AT_ONCE;
    seep_pair other = differ(last, stop);

    copy(&pcs[stop - at], &last->pcs[stop]);
    *pcs = last->pcs[at];
    for (size_t i = at + 1; i < stop; i += PAIRS_AT_ONCE) {
        other |= differ(last, i);
        copy(&pcs[i - at], &last->pcs[i]);
    }
    return (other[0] | other[1]) == 0;
}

/* Those of frames that are given up, or that rest on what such a frame has
 * saved, are for a walk to sort out. */
static inline bool same_notes(const struct seep_cached_stack *last, size_t at)
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
static inline bool leads_on(const struct seep_cached_stack *last,
                            const struct short_joint *joint)
{
    return (last->places[joint->at] & SEEP_PLACES_FRAMED) == 0 ||
           ((joint->before & SEEP_PLACES_FRAMED) != 0 &&
            joint->rbp + SEEP_FRAMED_BYTES == last->sps[joint->at + 1]);
}

static SEEP_NOINLINE void keep(struct seep_cached_stack *last,
                               const struct seep_cached_stack *now,
                               const uintptr_t *pcs,
                               const struct short_joint *joint)
{
    size_t first = joint->at - joint->count;

    for (size_t i = 0; i < joint->count; i++) {
        last->pcs[first + i] = pcs[i];
        last->sps[first + i] = now->sps[i];
        last->places[first + i] = now->places[i];
    }
    for (size_t i = first + 1; i <= joint->at; i++) {
        seep_cached_stack_pair(last, i);
    }
    last->first = first;
}

static SEEP_NOINLINE void copy_sps(const struct seep_unwind_cache *cache,
                                   size_t at, size_t count, uintptr_t *sps)
{
    const struct seep_cached_stack *last = cache->last;

    memcpy(sps, cache->now->sps, count * sizeof(uintptr_t));
    memcpy(&sps[count], &last->sps[at], (last->end - at) * sizeof(uintptr_t));
}

/* Is the epoch that of @generation, with no dlclose under way? */
static inline bool is_generation(uint64_t generation)
{
    /* Acquire: pairs with the release in seep_objects_unload_end(). */
    return atomic_load_explicit(&seep_objects_unloads, memory_order_acquire) ==
           generation * SEEP_UNLOADS_GENERATION;
}

size_t seep_reuse_walk(const struct seep_capture_start *start,
                       const struct seep_stack_bounds *bounds,
                       struct seep_unwind_cache *cache, uintptr_t *pcs,
                       size_t capacity)
{
    struct seep_cached_stack *last = cache->last;
    struct short_joint joint;
    size_t count;

    if (seep_unlikely(start->sp < bounds->low || last->high != bounds->high ||
                      !is_generation(cache->generation - 1) ||
                      capacity < NEW_FRAMES_MAX)) {
        return 0;
    }
    if (!find_joint(start, cache, last, pcs, &joint)) {
        return 0;
    }
    count = joint.count + last->end - joint.at;
    if (seep_unlikely(joint.count > joint.at || count > capacity ||
                      last->end - joint.at <= PAIRS_AT_ONCE)) {
        return 0;
    }
    if (!leads_on(last, &joint) ||
        !take_frames(last, joint.at, &pcs[joint.count])) {
        return 0;
    }
    if (last->note_count != 0 && !same_notes(last, joint.at)) {
        return 0;
    }
    if (start->sps != NULL) {
        copy_sps(cache, joint.at, joint.count, start->sps);
    }
    if (cache->turn++ % KEEP_EVERY == 0) {
        keep(last, cache->now, pcs, &joint);
    }
    return count;
}
