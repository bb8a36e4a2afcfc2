/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The walk: rule by rule from the hook's caller to the thread's first frame.
 *
 * Invariant: each frame lies above the one before it, and every word that is
 * read between that frame's stack pointer and `high`. On a stack that is not
 * the thread's own (coroutine, alternate signal stack) `high` is the end of
 * the page that the stack pointer is in.
 */
#include "capture/eh_walk.h"

#include "base/compiler.h"
#include "capture/eh_cache.h"
#include "capture/eh_memory.h"
#include "capture/eh_rule.h"
#include "capture/eh_share.h"
#include "capture/eh_step.h"

#define PAGE_BYTES 4096U

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

    memory->ended = seep_rule_kind(rule) == SEEP_RULE_END;
    if (memory->ended) {
        return SEEP_CUT_NONE;
    }
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

/* The CFA by rbp, which a frame before this one has saved, or none. */
static SEEP_READS_THE_STACK inline enum seep_cut
cfa_by_rbp(struct seep_walk *walk, const struct seep_hot *hot, uintptr_t sp,
           uintptr_t *ret_cfa)
{
    size_t frame = walk->count - 1;
    uintptr_t at = seep_share_settle(walk, SEEP_WALK_RBP, frame);
    uintptr_t value;
    uintptr_t cfa;

    if (seep_likely(at % sizeof(uintptr_t) == 0)) {
        value = *(const uintptr_t *)at;
    } else if (at == SEEP_WALK_KEPT) {
        at = 0;
        value = walk->kept[SEEP_WALK_RBP];
    } else {
        return SEEP_CUT_REGISTER;
    }
    seep_memory_note(walk, at | SEEP_WALK_RBP, value);
    cfa = value + (uintptr_t)(intptr_t)hot->offset;
    *ret_cfa = cfa;
    return seep_unlikely(cfa - sizeof(uintptr_t) < sp) ? SEEP_CUT_ORDER
                                                       : SEEP_CUT_NONE;
}

static SEEP_READS_THE_STACK enum seep_cut walk_on(struct seep_walk *walk)
{
    struct seep_memory *memory = walk->memory;
    struct seep_share *share = &memory->share;
    struct seep_hot *hot = &memory->start;
    uintptr_t back = walk->pc + 1;
    uintptr_t sp = walk->sp;

    while (back != 0) {
        struct seep_hot *next;
        uintptr_t cfa = sp;
        enum seep_cut cut;

        if (seep_unlikely(walk->count == walk->capacity)) {
            return SEEP_CUT_DEPTH;
        }
        while (seep_unlikely(sp > *share->old)) {
            share->old++;
        }
        if (seep_unlikely(sp == *share->old)) {
            walk->pc = back - 1;
            walk->sp = sp;
            if (seep_share_join(walk)) {
                back = walk->pc + 1;
                sp = walk->sp;
                continue;
            }
        }
        /* The rule of the caller that this code had last, which needs not wait
         * for the return address. */
        next = (struct seep_hot *)((char *)memory->hot + hot->next);
        if (seep_unlikely(next->back != back)) {
            next = seep_memory_rule(walk, back);
            if (next != &memory->spare) {
                hot->next = (uint16_t)((char *)next - (char *)memory->hot);
            }
        }
        hot = next;
        walk->pcs[walk->count] = back - 1;
        walk->sps[walk->count] = sp;
        memory->trail[walk->count] = hot->words[1];
        walk->count++;
        if (seep_unlikely(hot->kind == SEEP_HOT_ODD)) {
            walk->pc = back - 1;
            walk->sp = sp;
            cut = step_oddly(walk, hot->rule);
            if (cut != SEEP_CUT_NONE || memory->ended) {
                return cut;
            }
            back = walk->pc + 1;
            sp = walk->sp;
            continue;
        }
        if (hot->kind == SEEP_HOT_RBP) {
            cut = cfa_by_rbp(walk, hot, sp, &cfa);
            if (seep_unlikely(cut != SEEP_CUT_NONE)) {
                return cut;
            }
        } else {
            cfa = sp + (uintptr_t)(intptr_t)hot->offset;
        }
        if (seep_unlikely(cfa > walk->high || cfa % sizeof(uintptr_t) != 0)) {
            return SEEP_CUT_BOUNDS;
        }
        back = *(const uintptr_t *)(cfa - sizeof(uintptr_t));
        sp = cfa;
    }
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
    walk->high = seep_walk_is_own(walk, walk->sp)
                     ? bounds->high
                     : (walk->sp | (PAGE_BYTES - 1)) + 1;
}

static size_t end(const struct seep_walk *walk, enum seep_cut cut,
                  struct seep_capture_end *ret_end)
{
    ret_end->cut = cut;
    ret_end->through_signal = walk->through_signal;
    return walk->count;
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
    if (start->sps == NULL) {
        walk->sps = memory->sps;
    }
    if (seep_unlikely(memory->generation != walk->generation + 1)) {
        seep_memory_renew(memory, walk->generation);
    }
    memory->note_count = 0;
    memory->ended = false;
    seep_share_begin(walk);
    cut = walk_on(walk);
    seep_share_keep(walk);
    return end(walk, cut, ret_end);
}
