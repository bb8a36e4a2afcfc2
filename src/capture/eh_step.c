/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps.
 *
 * Invariant: a frame's registers are saved in that frame, between its stack
 * pointer and the return address; what a rule says to lie elsewhere is lost.
 * So where a register lies tells which frame saved it.
 */
#include "capture/eh_step.h"

#include "capture/eh_chain.h"
#include "capture/eh_memory.h"
#include "capture/eh_rule.h"
#include "capture/stack_bounds.h"

SEEP_COLD bool seep_walk_widen(struct seep_walk *walk, uintptr_t address)
{
    return !seep_walk_is_own(walk, walk->sp) &&
           seep_stack_bounds_widen(&walk->high, address);
}

static inline SEEP_READS_THE_STACK enum seep_cut
read_word(struct seep_walk *walk, uintptr_t address, uintptr_t *ret_word)
{
    if (seep_unlikely(address < walk->sp)) {
        return SEEP_CUT_ORDER;
    }
    if (seep_unlikely(address % sizeof(uintptr_t) != 0) ||
        (seep_unlikely(address > walk->high - sizeof(uintptr_t)) &&
         !seep_walk_widen(walk, address))) {
        return SEEP_CUT_BOUNDS;
    }
    *ret_word = *(const uintptr_t *)address;
    return SEEP_CUT_NONE;
}

enum seep_cut seep_walk_word(struct seep_walk *walk, uintptr_t address,
                             uintptr_t *ret_word)
{
    enum seep_cut cut = read_word(walk, address, ret_word);

    if (cut == SEEP_CUT_NONE) {
        seep_memory_note(walk, address | SEEP_MEMORY_WORD, *ret_word);
    }
    return cut;
}

SEEP_READS_THE_STACK enum seep_cut
seep_walk_register(struct seep_walk *walk, enum seep_walk_register number,
                   uintptr_t *ret_value)
{
    uintptr_t at = walk->at[number];

    if (at == SEEP_WALK_KEPT) {
        *ret_value = walk->kept[number];
        at = 0;
    } else if (at % sizeof(uintptr_t) == 0) {
        *ret_value = *(const uintptr_t *)at;
    } else {
        return SEEP_CUT_REGISTER;
    }
    seep_memory_note(walk, at | (uintptr_t)number, *ret_value);
    return SEEP_CUT_NONE;
}

void seep_walk_bar(struct seep_walk *walk)
{
    walk->barrier = walk->count;
}

static enum seep_cut find_cfa(struct seep_walk *walk, uint64_t rule,
                              uintptr_t *ret_cfa)
{
    uintptr_t offset = (uintptr_t)seep_rule_offset(rule);
    uintptr_t base = walk->sp;
    enum seep_cut cut = SEEP_CUT_NONE;

    switch (seep_rule_kind(rule)) {
    case SEEP_RULE_RSP:
        break;
    case SEEP_RULE_RBP:
    case SEEP_RULE_LOADED_RBP:
        cut = seep_walk_register(walk, SEEP_WALK_RBP, &base);
        break;
    case SEEP_RULE_RBX:
        cut = seep_walk_register(walk, SEEP_WALK_RBX, &base);
        break;
    case SEEP_RULE_CUT:
        return seep_rule_cut(rule);
    default:
        return SEEP_CUT_MALFORMED;
    }
    if (cut == SEEP_CUT_NONE && seep_rule_kind(rule) == SEEP_RULE_LOADED_RBP) {
        return seep_walk_word(walk, base + offset, ret_cfa);
    }
    *ret_cfa = base + offset;
    return cut;
}

/* Where the caller's value of a register lies. What a rule has lost ends the
 * stack only if another needs it. */
static uintptr_t restore(struct seep_walk *walk, uint64_t rule,
                         unsigned int shift, uintptr_t cfa, uintptr_t now)
{
    uintptr_t lost = cfa - sizeof(uintptr_t) + SEEP_WALK_LOST;
    uintptr_t at = cfa;

    switch (seep_rule_place(rule, shift)) {
    case SEEP_RULE_SAME:
        return now;
    case SEEP_RULE_AT_CFA:
        break;
#if defined(__aarch64__)
    case SEEP_RULE_AT_BASE:
        at -= (uintptr_t)seep_rule_offset(rule);
        break;
#else
    case SEEP_RULE_AT_RBP:
        if (seep_walk_register(walk, SEEP_WALK_RBP, &at) != SEEP_CUT_NONE) {
            /* That it is lost here cannot be noted. */
            seep_walk_bar(walk);
            return lost;
        }
        break;
#endif
    default:
        return lost;
    }
    at += (uintptr_t)seep_rule_place_offset(rule, shift);
    if (at < walk->sp || at > cfa - sizeof(uintptr_t) ||
        at % sizeof(uintptr_t) != 0) {
        return lost;
    }
    return at;
}

/* The return address of a frame. */
static enum seep_cut find_back(struct seep_walk *walk, uint64_t rule,
                               uintptr_t cfa, uintptr_t *ret_back)
{
    intptr_t offset = -(intptr_t)sizeof(uintptr_t);

#if defined(__aarch64__)
    enum seep_rule_place place = seep_rule_place(rule, SEEP_RULE_RETURN_SHIFT);

    offset = seep_rule_place_offset(rule, SEEP_RULE_RETURN_SHIFT) -
             seep_rule_offset(rule);
    /* Only code that a signal has interrupted has it in the register still. */
    if (place == SEEP_RULE_SAME) {
        return cfa >= walk->sp && cfa <= walk->high
                   ? seep_walk_register(walk, SEEP_WALK_X30, ret_back)
                   : SEEP_CUT_ORDER;
    }
    if (place != SEEP_RULE_AT_BASE || offset > -(intptr_t)sizeof(uintptr_t)) {
        return SEEP_CUT_EXPRESSION;
    }
#else
    (void)rule;
#endif
    /* That this word lies in the frame says that the CFA ascends. */
    return read_word(walk, cfa + (uintptr_t)offset, ret_back);
}

/* To the caller of a frame with a CFA. */
static enum seep_cut step_call(struct seep_walk *walk, uint64_t rule)
{
    uintptr_t cfa = 0;
    uintptr_t back = 0;
    uintptr_t rbp;
    enum seep_cut cut = find_cfa(walk, rule, &cfa);

    if (cut == SEEP_CUT_NONE) {
        cut = find_back(walk, rule, cfa, &back);
    }
    if (seep_unlikely(cut != SEEP_CUT_NONE)) {
        return cut;
    }
    rbp =
        restore(walk, rule, SEEP_RULE_RBP_SHIFT, cfa, walk->at[SEEP_WALK_RBP]);
#if defined(__aarch64__)
    walk->at[SEEP_WALK_X30] = cfa - sizeof(uintptr_t) + SEEP_WALK_LOST;
#else
    walk->at[SEEP_WALK_RBX] =
        restore(walk, rule, SEEP_RULE_RBX_SHIFT, cfa, walk->at[SEEP_WALK_RBX]);
#endif
    walk->at[SEEP_WALK_RBP] = rbp;
    walk->sp = cfa;
    walk->pc = seep_eh_code_address(back) - 1;
    return SEEP_CUT_NONE;
}

/* Through the frame of a signal, perhaps back from its stack to our own. */
static SEEP_NOINLINE enum seep_cut step_signal(struct seep_walk *walk)
{
    uintptr_t sp = 0;
    uintptr_t pc = 0;
    uintptr_t high = walk->high;
    uintptr_t rbp = 0;
    uintptr_t rbx = 0;
    enum seep_cut cut = seep_walk_word(walk, walk->sp + SEEP_SIGNAL_SP, &sp);

    if (cut == SEEP_CUT_NONE) {
        cut = seep_walk_word(walk, walk->sp + SEEP_SIGNAL_PC, &pc);
    }
    if (cut != SEEP_CUT_NONE ||
        seep_walk_word(walk, walk->sp + SEEP_SIGNAL_FP, &rbp) !=
            SEEP_CUT_NONE ||
        seep_walk_word(walk, walk->sp + SEEP_SIGNAL_SECOND, &rbx) !=
            SEEP_CUT_NONE) {
        return cut != SEEP_CUT_NONE ? cut : SEEP_CUT_BOUNDS;
    }
    if (seep_walk_is_own(walk, sp)) {
        if (seep_walk_is_own(walk, walk->sp) && sp <= walk->sp) {
            return SEEP_CUT_ORDER;
        }
        high = walk->bounds->high;
    } else if (!seep_stack_bounds_enter(&high, sp)) {
        return SEEP_CUT_BOUNDS;
    }
    walk->kept[SEEP_WALK_RBP] = rbp;
    walk->kept[SEEP_WALK_RBX] = rbx;
    walk->at[SEEP_WALK_RBP] = SEEP_WALK_KEPT;
    walk->at[SEEP_WALK_RBX] = SEEP_WALK_KEPT;
    walk->high = high;
    walk->sp = sp;
    walk->pc = pc; /* the interrupted instruction, no call: not pc - 1 */
    walk->interrupted = walk->count;
    seep_walk_bar(walk);
    return SEEP_CUT_NONE;
}

/* To the caller of code without a rule. What that rests on is not noted, so
 * it is looked at anew each time. */
static SEEP_NOINLINE enum seep_cut step_record(struct seep_walk *walk,
                                               enum seep_cut cut)
{
    struct seep_chain chain = {
        .pc = walk->pc, .sp = walk->sp, .high = walk->high};
    uintptr_t back = 0;

#if defined(__aarch64__)
    /* There the record does not tell how far its frame goes. */
    return cut;
#endif
    if (walk->interrupted == walk->count - 1 ||
        seep_walk_register(walk, SEEP_WALK_RBP, &chain.fp) != SEEP_CUT_NONE ||
        !seep_chain_is_sound(&chain) ||
        read_word(walk, chain.fp + sizeof(uintptr_t), &back) != SEEP_CUT_NONE) {
        return cut;
    }
    walk->sp = chain.fp + 2 * sizeof(uintptr_t);
    walk->at[SEEP_WALK_RBP] = chain.fp;
    walk->at[SEEP_WALK_RBX] = chain.fp + sizeof(uintptr_t) + SEEP_WALK_LOST;
    walk->pc = back - 1;
    seep_walk_bar(walk);
    return SEEP_CUT_NONE;
}

enum seep_cut seep_walk_step(struct seep_walk *walk, uint64_t rule)
{
    if (seep_unlikely(seep_rule_kind(rule) == SEEP_RULE_SIGNAL)) {
        return step_signal(walk);
    }
    if (seep_unlikely(rule == seep_rule_of_cut(SEEP_CUT_NO_OBJECT) ||
                      rule == seep_rule_of_cut(SEEP_CUT_NO_RULE))) {
        return step_record(walk, seep_rule_cut(rule));
    }
    return step_call(walk, rule);
}
