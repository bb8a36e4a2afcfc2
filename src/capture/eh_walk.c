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
#include "capture/objects.h"
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
    if (walk->barrier != walk->count &&
        (walk->sp <= sp || walk->sp > walk->high ||
         *(const uintptr_t *)(walk->sp - sizeof(uintptr_t)) != walk->pc + 1)) {
        seep_walk_bar(walk);
    }
    return SEEP_CUT_NONE;
}

/* Where a walk stands, in registers. */
struct stand {
    uintptr_t back; /* pc + 1 */
    uintptr_t sp;
    const uintptr_t *old; /* where the last stack may be joined next */
    uintptr_t next;       /* what lies there */
    uintptr_t high;       /* 0: no short cuts */
    size_t count;
    bool framed; /* one was FRAMED behind another */
};

static inline void lay_down(struct seep_walk *walk, const struct stand *stand)
{
    walk->pc = stand->back - 1;
    walk->sp = stand->sp;
    walk->count = stand->count;
    walk->memory->now->framed = stand->framed;
}

static inline void take_up(const struct seep_walk *walk, struct stand *stand)
{
    stand->back = walk->pc + 1;
    stand->sp = walk->sp;
    stand->count = walk->count;
    stand->high = walk->sp % sizeof(uintptr_t) == 0 ? walk->high : 0;
}

/* Is the frame that the walk has come to one of the last stack? Then go on at
 * its end. */
static inline bool meet(struct seep_walk *walk, struct stand *stand)
{
    const struct seep_frames *last = walk->memory->last;
    const uintptr_t *old = stand->old;
    bool joined = false;

    while (*old < stand->sp) {
        old++;
    }
    if (*old == stand->sp) {
        if (last->pcs[old - last->sps] == stand->back - 1) {
            lay_down(walk, stand);
            joined = seep_share_join(walk, &old);
        } else {
            old++;
        }
    }
    stand->old = old;
    stand->next = *old;
    if (joined) {
        take_up(walk, stand);
    }
    return joined;
}

/* To the caller of a frame that is FRAMED, as is the one before, or that is the
 * first. */
static inline SEEP_READS_THE_STACK bool
step_framed(const struct seep_walk *walk, struct stand *stand,
            const struct seep_hot *hot, uint32_t before)
{
    uintptr_t cfa = SEEP_FRAMED_BYTES;

    if (seep_likely((hot->places & before & SEEP_PLACES_FRAMED) != 0)) {
        cfa += *(const uintptr_t *)(stand->sp - SEEP_FRAMED_BYTES);
    } else if (hot->kind == SEEP_HOT_FRAMED && stand->count == 1) {
        cfa += walk->kept[SEEP_WALK_RBP];
    } else {
        return false;
    }
    /* Also where the sum has overflown. */
    if (seep_unlikely(cfa < stand->sp + SEEP_FRAMED_BYTES ||
                      cfa > stand->high || cfa % sizeof(uintptr_t) != 0)) {
        return false;
    }
    stand->back = ((const uintptr_t *)cfa)[-1];
    stand->sp = cfa;
    stand->framed = true;
    return true;
}

/* To the caller of a frame that is @hot's. */
static inline SEEP_READS_THE_STACK bool step(const struct seep_walk *walk,
                                             struct stand *stand,
                                             const struct seep_hot *hot,
                                             uint32_t before)
{
    uintptr_t cfa = stand->sp + (uintptr_t)hot->offset;

    if (seep_likely(hot->kind == SEEP_HOT_RSP)) {
        if (seep_unlikely(cfa > stand->high)) {
            return false;
        }
        stand->back = ((const uintptr_t *)cfa)[-1];
        stand->sp = cfa;
        return true;
    }
    return step_framed(walk, stand, hot, before);
}

/* The step that has no short cut. @return false: the walk is over */
static SEEP_NOINLINE bool step_aside(struct seep_walk *walk,
                                     const struct seep_hot *hot,
                                     enum seep_cut *ret_cut)
{
    walk->memory->ended = seep_rule_kind(hot->rule) == SEEP_RULE_END;
    if (!walk->memory->ended) {
        *ret_cut = step_oddly(walk, hot->rule);
    }
    return !walk->memory->ended && *ret_cut == SEEP_CUT_NONE;
}

/* One of the callers that this code had before: its rule need not wait for the
 * return address. */
static inline struct seep_hot *next_rule(struct seep_walk *walk,
                                         struct seep_memory *memory,
                                         struct seep_hot *from, uintptr_t back)
{
    struct seep_hot *hot = seep_memory_next(memory, from, 0);

    if (seep_unlikely(hot->back != back)) {
        hot = seep_memory_next(memory, from, 1);
        if (hot->back != back) {
            hot = seep_memory_rule(walk, from, back);
        }
    }
    return hot;
}

static enum seep_cut walk_on(struct seep_walk *walk)
{
    struct seep_memory *memory = walk->memory;
    struct seep_frames *now = memory->now;
    struct seep_hot *from = &memory->start;
    enum seep_cut cut = SEEP_CUT_NONE;
    size_t capacity = walk->capacity;
    uint32_t before = 0; /* the places of the frame before */
    uintptr_t *pcs = walk->pcs;
    uint32_t *places = &now->places[SEEP_FRAMES_BEFORE];
    uintptr_t *sps = &now->sps[SEEP_FRAMES_BEFORE];
    struct stand stand = {.framed = false};

    take_up(walk, &stand);
    stand.old = seep_share_begin(walk);
    stand.next = *stand.old;
    places[-1] = 0;
    while (seep_likely(stand.back != 0)) {
        struct seep_hot *hot;

        if (seep_unlikely(stand.count == capacity)) {
            cut = SEEP_CUT_DEPTH;
            break;
        }
        if (seep_unlikely(stand.sp >= stand.next) && meet(walk, &stand)) {
            from = &memory->resumed;
            if (stand.count != memory->share.count) {
                /* What saved rbp there is in the last stack. */
                places[stand.count - 1] = 0;
                before = 0;
            }
            continue;
        }
        hot = next_rule(walk, memory, from, stand.back);
        pcs[stand.count] = stand.back - 1;
        sps[stand.count] = stand.sp;
        places[stand.count] = hot->places;
        stand.count++;
        if (seep_unlikely(!step(walk, &stand, hot, before))) {
            uintptr_t high = walk->high;

            lay_down(walk, &stand);
            if (!step_aside(walk, hot, &cut)) {
                return cut;
            }
            take_up(walk, &stand);
            if (high != walk->high && memory->share.at == SEEP_FRAMES) {
                stand.old = seep_share_begin(walk);
                stand.next = *stand.old;
            }
            /* It may be FRAMED and have lost rbp all the same. */
            if (walk->at[SEEP_WALK_RBP] != stand.sp - SEEP_FRAMED_BYTES) {
                places[stand.count - 1] &= ~SEEP_PLACES_FRAMED;
            }
        }
        before = places[stand.count - 1];
        from = hot;
    }
    lay_down(walk, &stand);
    return cut;
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
    struct seep_walk *walk;
    uint64_t epoch = seep_objects_epoch();
    enum seep_cut cut;

    if (seep_unlikely(memory == NULL || epoch % 2 != 0)) {
        return without_memory(start, bounds, pcs, capacity, ret_end);
    }
    walk = &memory->walk;
    walk->generation = epoch / 2;
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
    memory->ended = false;
    cut = walk_on(walk);
    if (start->sps != NULL) {
        tell_sps(walk, start->sps);
    }
    memory->again = false;
    seep_share_keep(walk);
    return end(walk, cut, ret_end);
}
