/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of memories, and the rules in them.
 *
 * Invariant: only the thread whose address is the owner touches the rest of a
 * memory, and only in the outermost of its walks under way.
 */
#include "capture/eh_memory.h"

#include <signal.h>
#include <string.h>

#include "base/syscall.h"
#include "capture/eh_cache.h"
#include "capture/eh_rule.h"

#define PROBES 4U

/* In the frame, at an odd address. */
#define PLACE_LOST UINT32_C(0xfff9)

/* Instead of an offset: no stack reaches so far. */
#define FAR ((intptr_t)1 << 62)

_Static_assert(SEEP_HOT_SETS *SEEP_HOT_WAYS * sizeof(struct seep_hot) <=
                   UINT16_MAX,
               "seep_hot.next counts bytes");

struct seep_memory seep_memories[SEEP_MEMORIES];

static struct seep_memory *claim(uintptr_t thread)
{
    uint32_t index = seep_memory_index(thread);

    for (uint32_t i = 0; i < PROBES; i++) {
        struct seep_memory *memory =
            &seep_memories[(index + i) % SEEP_MEMORIES];
        uintptr_t owner =
            atomic_load_explicit(&memory->owner, memory_order_relaxed);

        if (owner == thread ||
            (owner == 0 && atomic_compare_exchange_strong_explicit(
                               &memory->owner, &owner, thread,
                               memory_order_relaxed, memory_order_relaxed))) {
            return memory;
        }
    }
    return NULL;
}

/* Whoever asks is in a handler that came in the middle of a walk; or that walk
 * was left by a jump: then its frame is gone, and its writing half done. */
static bool is_abandoned(struct seep_memory *memory, uintptr_t busy,
                         uintptr_t sp, const struct seep_stack_bounds *bounds,
                         bool may_call)
{
    stack_t now = {.ss_flags = SS_ONSTACK};

    if (busy > sp || busy < bounds->low || sp >= bounds->high || !may_call) {
        return false;
    }
    seep_syscall2(SYS_sigaltstack, 0, (long)&now);
    if ((now.ss_flags & SS_ONSTACK) != 0) {
        return false;
    }
    seep_memory_renew(memory, 0);
    return true;
}

SEEP_COLD struct seep_memory *
seep_memory_ask(uintptr_t thread, uintptr_t sp,
                const struct seep_stack_bounds *bounds, bool may_call)
{
    struct seep_memory *memory = claim(thread);
    uintptr_t busy;

    if (memory == NULL) {
        return NULL;
    }
    busy = atomic_load_explicit(&memory->busy, memory_order_relaxed);
    if (busy != 0 && !is_abandoned(memory, busy, sp, bounds, may_call)) {
        return NULL;
    }
    return memory;
}

SEEP_COLD void seep_memory_renew(struct seep_memory *memory,
                                 uint64_t generation)
{
    memset(memory->hot, 0, sizeof(memory->hot));
    memory->spare.back = 0;
    memory->last = &memory->frames[0];
    memory->now = &memory->frames[1];
    seep_memory_forget(memory);
    /* Generations begin at 0, as BSS does. */
    memory->generation = generation + 1;
}

void seep_memory_forget(struct seep_memory *memory)
{
    struct seep_frames *last = memory->last;

    last->first = 0;
    last->end = 0;
    last->sps[0] = UINTPTR_MAX;
    memory->again = false;
}

/* The place of a register, at @lowest or above it; else it is lost. */
static uint32_t place_of(uint64_t rule, unsigned int shift, intptr_t lowest)
{
    intptr_t offset = seep_rule_place_offset(rule, shift);

    if (seep_rule_place(rule, shift) == SEEP_RULE_SAME) {
        return 0;
    }
    if (seep_rule_place(rule, shift) != SEEP_RULE_AT_CFA || offset < lowest ||
        offset > -(intptr_t)sizeof(uintptr_t)) {
        return PLACE_LOST;
    }
    return (uint16_t)offset;
}

static void take_apart(struct seep_hot *hot, uint64_t rule)
{
    intptr_t offset = seep_rule_offset(rule);
    enum seep_rule_kind kind = seep_rule_kind(rule);
    intptr_t lowest = INT16_MIN;

    hot->kind = SEEP_HOT_ODD;
    hot->rule = rule;
    hot->offset = FAR;
    hot->places = 0;
    if (seep_rule_place(rule, SEEP_RULE_RBP_SHIFT) == SEEP_RULE_AT_RBP ||
        seep_rule_place(rule, SEEP_RULE_RBX_SHIFT) == SEEP_RULE_AT_RBP) {
        return;
    }
    if (kind == SEEP_RULE_RSP && offset >= (intptr_t)sizeof(uintptr_t)) {
        hot->kind = SEEP_HOT_RSP;
        hot->offset = offset;
        lowest = -offset;
    } else if (kind == SEEP_RULE_RBP && offset == SEEP_FRAMED_BYTES &&
               place_of(rule, SEEP_RULE_RBP_SHIFT, lowest) ==
                   (uint16_t)-SEEP_FRAMED_BYTES) {
        hot->kind = SEEP_HOT_FRAMED;
        hot->places = SEEP_PLACES_FRAMED;
    } else {
        return;
    }
    hot->places |= place_of(rule, SEEP_RULE_RBP_SHIFT, lowest) |
                   place_of(rule, SEEP_RULE_RBX_SHIFT, lowest) << 16;
}

/* The rule of @back by the table of all threads. */
static SEEP_NOINLINE struct seep_hot *fill(struct seep_walk *walk,
                                           uintptr_t back, struct seep_hot *set)
{
    struct seep_memory *memory = walk->memory;
    struct seep_hot *hot = &set[memory->victim++ % SEEP_HOT_WAYS];
    uint64_t generation;
    uint64_t rule = 0;
    bool cached =
        seep_cache_open(&generation) && generation == walk->generation;

    if (cached) {
        rule = seep_cache_get(back - 1, generation);
    }
    if (rule == 0) {
        rule = seep_rule_compile(back - 1);
        /* Of code that no object holds nothing is kept: a dlopen, which bumps
         * no epoch, may put an object there. */
        if (rule == seep_rule_of_cut(SEEP_CUT_NO_OBJECT)) {
            take_apart(&memory->spare, rule);
            return &memory->spare;
        }
        if (cached) {
            seep_cache_put(back - 1, generation, rule);
        }
    }
    for (uint32_t i = 0; i < SEEP_HOT_WAYS; i++) {
        hot = set[i].back == 0 ? &set[i] : hot;
    }
    take_apart(hot, rule);
    hot->back = back;
    hot->next[0] = 0;
    hot->next[1] = 0;
    return hot;
}

static struct seep_hot *find(struct seep_walk *walk, uintptr_t back)
{
    struct seep_hot *set = seep_memory_set(walk->memory, back);

    for (uint32_t i = 0; i < SEEP_HOT_WAYS; i++) {
        if (set[i].back == back) {
            return &set[i];
        }
    }
    return fill(walk, back, set);
}

struct seep_hot *seep_memory_rule(struct seep_walk *walk, struct seep_hot *from,
                                  uintptr_t back)
{
    struct seep_memory *memory = walk->memory;
    struct seep_hot *next = find(walk, back);

    if (next != &memory->spare) {
        from->next[1] = from->next[0];
        from->next[0] = (uint16_t)((char *)next - (char *)memory->hot);
    }
    return next;
}
