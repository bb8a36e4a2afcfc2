/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The walk: rule by rule from the hook's caller to the thread's first frame.
 *
 * Invariant: each frame lies above the one before it, and every word that is
 * read between that frame's stack pointer and `high`. On a stack that is not
 * the thread's own (coroutine, alternate signal stack) `high` is the end of
 * the last page that was proved readable.
 */
#include "capture/eh_walk.h"

#include <string.h>

#include "base/compiler.h"
#include "capture/eh_cache.h"
#include "capture/eh_memory.h"
#include "capture/eh_rule.h"
#include "capture/eh_share.h"
#include "capture/eh_step.h"
#include "capture/stack_bounds.h"

static SEEP_NOINLINE uint64_t compile(const struct seep_walk *walk)
{
    uint64_t rule = seep_rule_compile(walk->pc);

    /* Of code that no object holds nothing is kept: a dlopen, which bumps no
     * epoch, may put an object there. */
    if (walk->cached && rule != seep_rule_of_cut(SEEP_CUT_NO_OBJECT)) {
        seep_cache_put(walk->pc, walk->generation, rule);
    }
    return rule;
}

/* The trampoline that a handler returns to is never called: its address as it
 * is. */
static inline void mark_signal(struct seep_walk *walk, uint64_t rule)
{
    if (seep_unlikely(seep_rule_kind(rule) == SEEP_RULE_SIGNAL)) {
        walk->pcs[walk->count - 1]++;
        walk->through_signal = true;
    }
}

/* Without a memory: each rule from the table of all threads. */
static enum seep_cut walk_plainly(struct seep_walk *walk)
{
    enum seep_cut cut = SEEP_CUT_NONE;

    while (cut == SEEP_CUT_NONE && walk->pc != UINTPTR_MAX) {
        uint64_t rule = 0;

        if (walk->count == walk->capacity) {
            return SEEP_CUT_DEPTH;
        }
        if (seep_likely(walk->cached)) {
            rule = seep_cache_get(walk->pc, walk->generation);
        }
        if (seep_unlikely(rule == 0)) {
            rule = compile(walk);
        }
        if (walk->sps != NULL) {
            walk->sps[walk->count] = walk->sp;
        }
        walk->pcs[walk->count++] = walk->pc;
        if (seep_unlikely(seep_rule_kind(rule) == SEEP_RULE_END)) {
            return SEEP_CUT_NONE;
        }
        mark_signal(walk, rule);
        cut = seep_walk_step(walk, rule);
    }
    return cut;
}

/* The rest of a step to which no short cut leads. */
static SEEP_READS_THE_STACK SEEP_NOINLINE enum seep_cut
step_oddly(struct seep_walk *walk, uint64_t rule)
{
    struct seep_memory *memory = walk->memory;
    size_t frame = walk->count - 1;
    uintptr_t sp = walk->sp;
    uintptr_t high = walk->high;
    enum seep_cut cut;

    for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
        memory->before[i] = seep_share_settle(walk, i, frame);
    }
    mark_signal(walk, rule);
    cut = seep_walk_step(walk, rule);
    if (cut != SEEP_CUT_NONE) {
        return cut;
    }
    walk->known[SEEP_WALK_RBP] = walk->count;
    walk->known[SEEP_WALK_RBX] = walk->count;
    /* Only what lies right above its return address can be verified. */
    if (walk->sp <= sp || walk->sp > walk->high ||
        *(const uintptr_t *)(walk->sp - sizeof(uintptr_t)) != walk->pc + 1) {
        seep_walk_bar(walk);
    }
    if (high != walk->high) {
        seep_share_begin(walk);
    }
    return SEEP_CUT_NONE;
}

/* Where a walk stands, in registers. */
struct stand {
    uintptr_t back; /* pc + 1 */
    uintptr_t sp;
    uintptr_t old;  /* where the last stack may be joined next */
    uintptr_t high; /* 0: no short cuts */
    size_t count;
    const uintptr_t *rbp; /* where it was saved just now; NULL: not so */
};

static inline void lay_down(struct seep_walk *walk, const struct stand *stand)
{
    walk->pc = stand->back - 1;
    walk->sp = stand->sp;
    walk->count = stand->count;
}

static inline void take_up(const struct seep_walk *walk, struct stand *stand)
{
    stand->back = walk->pc + 1;
    stand->sp = walk->sp;
    stand->count = walk->count;
    stand->old = *walk->memory->share.old;
    stand->high = walk->sp % sizeof(uintptr_t) == 0 ? walk->high : 0;
    stand->rbp = NULL;
}

/* Is the frame that the walk has come to one of the last stack? Then go on at
 * its end. */
static inline bool meet(struct seep_walk *walk, struct stand *stand)
{
    const uintptr_t **old = &walk->memory->share.old;

    while (**old < stand->sp) {
        ++*old;
    }
    stand->old = **old;
    if (stand->old != stand->sp) {
        return false;
    }
    lay_down(walk, stand);
    if (seep_share_join(walk)) {
        take_up(walk, stand);
        return true;
    }
    stand->old = **old;
    return false;
}

/* The rule of the caller that the code of @hot had last, which need not wait
 * for the return address; or another, if that says so. */
static inline struct seep_hot *next_rule(struct seep_walk *walk,
                                         struct seep_hot *hot, uintptr_t back)
{
    struct seep_memory *memory = walk->memory;
    struct seep_hot *next =
        (struct seep_hot *)((char *)memory->hot + hot->next);

    if (seep_unlikely(next->back != back)) {
        next = seep_memory_rule(walk, back);
        if (next != &memory->spare) {
            hot->next = (uint16_t)((char *)next - (char *)memory->hot);
        }
    }
    return next;
}

/* To the caller, by what is said in registers. */
static inline SEEP_READS_THE_STACK bool
step(struct stand *stand, const struct seep_hot *hot, bool *framed)
{
    uintptr_t cfa;

    if (seep_likely(hot->kind == SEEP_HOT_RSP)) {
        cfa = stand->sp + (uintptr_t)hot->offset;
        stand->rbp = NULL;
    } else {
        uintptr_t value;

        if (hot->kind != SEEP_HOT_FRAMED || stand->rbp == NULL) {
            return false;
        }
        value = *stand->rbp;
        cfa = value + SEEP_FRAMED_BYTES;
        if (seep_unlikely(value < stand->sp || value % sizeof(uintptr_t) != 0 ||
                          cfa < value)) {
            return false;
        }
        stand->rbp = (const uintptr_t *)value;
        *framed = true;
    }
    if (seep_unlikely(cfa > stand->high)) {
        return false;
    }
    stand->back = ((const uintptr_t *)cfa)[-1];
    stand->sp = cfa;
    return true;
}

static SEEP_READS_THE_STACK enum seep_cut walk_on(struct seep_walk *walk)
{
    struct seep_memory *memory = walk->memory;
    struct seep_frames *now = memory->now;
    struct seep_hot *hot = &memory->start;
    uintptr_t *pcs = walk->pcs;
    size_t capacity = walk->capacity;
    struct stand stand;

    take_up(walk, &stand);
    stand.rbp = &walk->kept[SEEP_WALK_RBP];
    while (stand.back != 0) {
        if (seep_unlikely(stand.sp >= stand.old) && meet(walk, &stand)) {
            hot = &memory->resumed;
            continue;
        }
        if (seep_unlikely(stand.count == capacity)) {
            lay_down(walk, &stand);
            return SEEP_CUT_DEPTH;
        }
        hot = next_rule(walk, hot, stand.back);
        pcs[stand.count] = stand.back - 1;
        now->sps[SEEP_FRAMES_BEFORE + stand.count] = stand.sp;
        now->places[SEEP_FRAMES_BEFORE + stand.count] = hot->places;
        stand.count++;
        if (seep_unlikely(!step(&stand, hot, &now->framed))) {
            enum seep_cut cut;

            lay_down(walk, &stand);
            memory->ended = seep_rule_kind(hot->rule) == SEEP_RULE_END;
            if (memory->ended) {
                return SEEP_CUT_NONE;
            }
            cut = step_oddly(walk, hot->rule);
            if (cut != SEEP_CUT_NONE) {
                return cut;
            }
            take_up(walk, &stand);
        }
    }
    lay_down(walk, &stand);
    return SEEP_CUT_NONE;
}

static void begin(struct seep_walk *walk,
                  const struct seep_capture_start *start,
                  const struct seep_stack_bounds *bounds, uintptr_t *pcs,
                  size_t capacity)
{
    walk->pc = start->pc - 1;
    walk->sp = start->sp;
    walk->at[SEEP_WALK_RBP] = SEEP_WALK_KEPT;
    walk->at[SEEP_WALK_RBX] = SEEP_WALK_LOST;
    walk->kept[SEEP_WALK_RBP] = start->fp;
    walk->bounds = bounds;
    walk->pcs = pcs;
    walk->sps = start->sps;
    walk->count = 0;
    walk->capacity = capacity;
    walk->through_signal = false;
    walk->interrupted = SIZE_MAX;
    walk->high = seep_walk_is_own(walk, walk->sp)
                     ? bounds->high
                     : seep_stack_bounds_page_end(walk->sp);
}

static size_t end(const struct seep_walk *walk, enum seep_cut cut,
                  struct seep_capture_end *ret_end)
{
    ret_end->cut = cut;
    ret_end->through_signal = walk->through_signal;
    return walk->count;
}

/* Those of the frames that the walk found by itself. */
static void tell_sps(const struct seep_walk *walk, uintptr_t *sps)
{
    const struct seep_share *share = &walk->memory->share;
    size_t to = walk->count;

    if (share->at != SEEP_FRAMES) {
        to = share->count + walk->memory->last->end - share->at -
             !walk->memory->last->ended;
        for (size_t i = to; i < walk->count; i++) {
            sps[i] = walk->sps[i];
        }
        to = share->count;
    }
    memcpy(sps, walk->sps, to * sizeof(uintptr_t));
}

static SEEP_NOINLINE size_t
without_memory(const struct seep_capture_start *start,
               const struct seep_stack_bounds *bounds, uintptr_t *pcs,
               size_t capacity, struct seep_capture_end *ret_end)
{
    struct seep_walk walk = {.memory = NULL};

    begin(&walk, start, bounds, pcs, capacity);
    walk.cached = seep_cache_open(&walk.generation);
    return end(&walk, walk_plainly(&walk), ret_end);
}

size_t seep_eh_walk(const struct seep_capture_start *start,
                    const struct seep_stack_bounds *bounds,
                    struct seep_memory *memory, uintptr_t *pcs, size_t capacity,
                    struct seep_capture_end *ret_end)
{
    struct seep_walk *walk = &memory->walk;
    enum seep_cut cut;

    if (seep_unlikely(memory == NULL || !seep_cache_open(&walk->generation))) {
        return without_memory(start, bounds, pcs, capacity, ret_end);
    }
    begin(walk, start, bounds, pcs, capacity);
    walk->memory = memory;
    walk->known[SEEP_WALK_RBP] = 0;
    walk->known[SEEP_WALK_RBX] = 0;
    walk->barrier = 0;
    if (seep_unlikely(memory->generation != walk->generation + 1)) {
        seep_memory_renew(memory, walk->generation);
    }
    walk->told_sps = start->sps;
    walk->sps = &memory->now->sps[SEEP_FRAMES_BEFORE];
    memory->now->note_count = 0;
    memory->now->framed = false;
    memory->ended = false;
    seep_share_begin(walk);
    cut = walk_on(walk);
    if (start->sps != NULL) {
        tell_sps(walk, start->sps);
    }
    seep_share_keep(walk);
    return end(walk, cut, ret_end);
}
