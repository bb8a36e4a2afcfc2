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
#include "capture/eh_rule.h"

#define PAGE_BYTES 4096U

/* Frames of others are read here, which AddressSanitizer takes for an error. */
#define READS_THE_STACK \
    __attribute__((no_sanitize("address", "thread", "undefined")))

struct walk {
    uintptr_t pc; /* as it is recorded and looked up */
    uintptr_t sp;
    uintptr_t high;
    uintptr_t rbp;
    uintptr_t rbx;
    bool rbp_lost;
    bool rbx_lost;
    uint64_t generation;
    bool cached;
    const struct seep_stack_bounds *bounds;
};

static bool is_own(const struct walk *walk, uintptr_t sp)
{
    return sp >= walk->bounds->low && sp < walk->bounds->high;
}

static SEEP_NOINLINE uint64_t compile(const struct walk *walk)
{
    uint64_t rule = seep_rule_compile(walk->pc);

    /* Of code that no object holds nothing is kept: a dlopen, which bumps no
     * epoch, may put an object there. */
    if (walk->cached && rule != seep_rule_of_cut(SEEP_CUT_NO_OBJECT)) {
        seep_cache_put(walk->pc, walk->generation, rule);
    }
    return rule;
}

static inline READS_THE_STACK enum seep_cut
read_word(const struct walk *walk, uintptr_t address, uintptr_t *ret_word)
{
    if (seep_unlikely(address < walk->sp)) {
        return SEEP_CUT_ORDER;
    }
    if (seep_unlikely(address > walk->high - sizeof(uintptr_t) ||
                      address % sizeof(uintptr_t) != 0)) {
        return SEEP_CUT_BOUNDS;
    }
    *ret_word = *(const uintptr_t *)address;
    return SEEP_CUT_NONE;
}

/* The caller's value of rbp or rbx; what cannot be read is lost, which ends
 * the stack only if a rule needs it. */
static inline uintptr_t restore(const struct walk *walk, uint64_t rule,
                                unsigned int shift, uintptr_t cfa,
                                uintptr_t now, bool *lost)
{
    uintptr_t base = cfa;
    uintptr_t word = 0;

    switch (seep_rule_place(rule, shift)) {
    case SEEP_RULE_SAME:
        return now;
    case SEEP_RULE_AT_CFA:
        *lost = false;
        break;
    case SEEP_RULE_AT_RBP:
        *lost = walk->rbp_lost;
        base = walk->rbp;
        break;
    default:
        *lost = true;
        break;
    }
    base += (uintptr_t)seep_rule_place_offset(rule, shift);
    if (!*lost && read_word(walk, base, &word) != SEEP_CUT_NONE) {
        *lost = true;
    }
    return word;
}

static inline enum seep_cut find_cfa(const struct walk *walk, uint64_t rule,
                                     uintptr_t *ret_cfa)
{
    uintptr_t offset = (uintptr_t)seep_rule_offset(rule);

    switch (seep_rule_kind(rule)) {
    case SEEP_RULE_RSP:
        *ret_cfa = walk->sp + offset;
        return SEEP_CUT_NONE;
    case SEEP_RULE_RBP:
        *ret_cfa = walk->rbp + offset;
        return walk->rbp_lost ? SEEP_CUT_REGISTER : SEEP_CUT_NONE;
    case SEEP_RULE_RBX:
        *ret_cfa = walk->rbx + offset;
        return walk->rbx_lost ? SEEP_CUT_REGISTER : SEEP_CUT_NONE;
    case SEEP_RULE_LOADED_RBP:
        if (walk->rbp_lost) {
            return SEEP_CUT_REGISTER;
        }
        return read_word(walk, walk->rbp + offset, ret_cfa);
    case SEEP_RULE_CUT:
        return seep_rule_cut(rule);
    default:
        return SEEP_CUT_MALFORMED;
    }
}

/* Through the frame of a signal, perhaps back from its stack to our own. */
static SEEP_NOINLINE enum seep_cut step_signal(struct walk *walk)
{
    uintptr_t sp = 0;
    uintptr_t pc = 0;
    enum seep_cut cut = read_word(walk, walk->sp + SEEP_SIGNAL_RSP, &sp);

    if (cut == SEEP_CUT_NONE) {
        cut = read_word(walk, walk->sp + SEEP_SIGNAL_RIP, &pc);
    }
    if (cut != SEEP_CUT_NONE ||
        read_word(walk, walk->sp + SEEP_SIGNAL_RBP, &walk->rbp) !=
            SEEP_CUT_NONE ||
        read_word(walk, walk->sp + SEEP_SIGNAL_RBX, &walk->rbx) !=
            SEEP_CUT_NONE) {
        return cut != SEEP_CUT_NONE ? cut : SEEP_CUT_BOUNDS;
    }
    if (is_own(walk, sp)) {
        if (is_own(walk, walk->sp) && sp <= walk->sp) {
            return SEEP_CUT_ORDER;
        }
        walk->high = walk->bounds->high;
    } else if (sp <= walk->sp || sp >= walk->high) {
        return SEEP_CUT_BOUNDS;
    }
    walk->rbp_lost = false;
    walk->rbx_lost = false;
    walk->sp = sp;
    walk->pc = pc; /* the interrupted instruction, no call: not pc - 1 */
    return SEEP_CUT_NONE;
}

/* To the caller of a frame with a CFA. */
static inline enum seep_cut step_call(struct walk *walk, uint64_t rule)
{
    uintptr_t cfa = 0;
    uintptr_t back = 0;
    uintptr_t rbp;
    uintptr_t rbx;
    bool rbp_lost = walk->rbp_lost;
    bool rbx_lost = walk->rbx_lost;
    enum seep_cut cut = find_cfa(walk, rule, &cfa);

    if (seep_unlikely(cut != SEEP_CUT_NONE)) {
        return cut;
    }
    /* That this word lies in the frame says that the CFA ascends. */
    cut = read_word(walk, cfa - sizeof(uintptr_t), &back);
    if (seep_unlikely(cut != SEEP_CUT_NONE)) {
        return cut;
    }
    rbp = restore(walk, rule, SEEP_RULE_RBP_SHIFT, cfa, walk->rbp, &rbp_lost);
    rbx = restore(walk, rule, SEEP_RULE_RBX_SHIFT, cfa, walk->rbx, &rbx_lost);
    walk->rbp = rbp;
    walk->rbx = rbx;
    walk->rbp_lost = rbp_lost;
    walk->rbx_lost = rbx_lost;
    walk->sp = cfa;
    walk->pc = back - 1;
    return SEEP_CUT_NONE;
}

static void begin(struct walk *walk, const struct seep_capture_start *start,
                  const struct seep_stack_bounds *bounds)
{
    walk->pc = start->pc - 1;
    walk->sp = start->sp;
    walk->rbp = start->fp;
    walk->rbx = 0;
    walk->rbp_lost = false;
    walk->rbx_lost = true;
    walk->bounds = bounds;
    walk->cached = seep_cache_open(&walk->generation);
    walk->high = is_own(walk, walk->sp) ? bounds->high
                                        : (walk->sp | (PAGE_BYTES - 1)) + 1;
}

size_t seep_eh_walk(const struct seep_capture_start *start,
                    const struct seep_stack_bounds *bounds, uintptr_t *pcs,
                    size_t capacity, struct seep_capture_end *ret_end)
{
    struct walk walk;
    enum seep_cut cut = SEEP_CUT_NONE;
    bool through_signal = false;
    size_t count = 0;

    begin(&walk, start, bounds);
    while (cut == SEEP_CUT_NONE && walk.pc != UINTPTR_MAX) {
        uint64_t rule = 0;

        if (count == capacity) {
            cut = SEEP_CUT_DEPTH;
            break;
        }
        if (seep_likely(walk.cached)) {
            rule = seep_cache_get(walk.pc, walk.generation);
        }
        if (seep_unlikely(rule == 0)) {
            rule = compile(&walk);
        }
        if (start->sps != NULL) {
            start->sps[count] = walk.sp;
        }
        pcs[count++] = walk.pc;
        if (seep_unlikely(seep_rule_kind(rule) == SEEP_RULE_END)) {
            break;
        }
        if (seep_unlikely(seep_rule_kind(rule) == SEEP_RULE_SIGNAL)) {
            /* The trampoline is never called: its address as it is. */
            pcs[count - 1] = walk.pc + 1;
            through_signal = true;
            cut = step_signal(&walk);
        } else {
            cut = step_call(&walk, rule);
        }
    }
    ret_end->cut = cut;
    ret_end->through_signal = through_signal;
    return count;
}
