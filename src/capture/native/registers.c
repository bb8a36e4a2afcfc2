/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The walk with all registers: rows and not rules, from our own frame on.
 *
 * Invariant: as in the walk by rules frames ascend, and a word is read only
 * between the stack pointer of its frame (its red zone, if a signal came to it)
 * and `high`. A register's value is used only while its bit in `known` says
 * that it is the frame's.
 */
#include "base/compiler.h"
#include "capture/native/bounds.h"
#include "capture/native/cfi.h"
#include "capture/native/rule.h"
#include "capture/native/walk.h"

/* Our own frames, from this walk's to the hook's. */
#define OWN_FRAMES_MAX 32U
#define REGISTERS 32U
#define PAGE_BYTES 4096U
#if defined(__aarch64__)
#define RED_ZONE_BYTES 0U
#else
#define RED_ZONE_BYTES 128U
#endif

struct walk {
    uintptr_t pc; /* as it is looked up */
    uintptr_t high;
    uintptr_t values[REGISTERS]; /* by DWARF number; of SP always known */
    uint32_t known;
    const struct seep_stack_bounds *bounds;
    bool interrupted; /* the frame is a signal's: nobody called it */
    bool ended;
};

static uintptr_t stack_pointer(const struct walk *walk)
{
    return walk->values[SEEP_CFI_SP];
}

static bool knows(const struct walk *walk, uint8_t number)
{
    return number < REGISTERS && (walk->known >> number & 1) != 0;
}

static void learn(struct walk *walk, uint8_t number, uintptr_t value)
{
    walk->values[number] = value;
    walk->known |= UINT32_C(1) << number;
}

static bool is_own(const struct walk *walk, uintptr_t sp)
{
    return sp >= walk->bounds->low && sp < walk->bounds->high;
}

/* Epilogues do not say that a register is restored: what they have popped
 * still lies where the kernel lets a signal leave it alone. */
static uintptr_t lowest(const struct walk *walk)
{
    uintptr_t sp = stack_pointer(walk);
    uintptr_t page = seep_stack_bounds_page_end(sp) - PAGE_BYTES;

    if (!walk->interrupted || sp < RED_ZONE_BYTES) {
        return sp;
    }
    return is_own(walk, sp - RED_ZONE_BYTES) || sp - RED_ZONE_BYTES >= page
               ? sp - RED_ZONE_BYTES
               : sp;
}

static SEEP_READS_THE_STACK bool read_word(struct walk *walk, uintptr_t address,
                                           uintptr_t *ret_word)
{
    if (address < lowest(walk) || address % sizeof(uintptr_t) != 0 ||
        address > UINTPTR_MAX - sizeof(uintptr_t)) {
        return false;
    }
    if (address + sizeof(uintptr_t) > walk->high &&
        (is_own(walk, stack_pointer(walk)) ||
         !seep_stack_bounds_widen(&walk->high, address))) {
        return false;
    }
    *ret_word = *(const uintptr_t *)address;
    return true;
}

/* Where the stack that @sp lies on may be read. */
static bool enter_stack(struct walk *walk, uintptr_t sp)
{
    if (is_own(walk, sp)) {
        if (is_own(walk, stack_pointer(walk)) && sp <= stack_pointer(walk)) {
            return false;
        }
        walk->high = walk->bounds->high;
        return true;
    }
    return seep_stack_bounds_enter(&walk->high, sp);
}

static enum seep_cut find_cfa(struct walk *walk, const struct seep_cfi_cfa *cfa,
                              uintptr_t *ret_cfa)
{
    uintptr_t at;

    if (cfa->kind != SEEP_CFI_CFA_REGISTER &&
        cfa->kind != SEEP_CFI_CFA_LOADED) {
        return SEEP_CUT_EXPRESSION;
    }
    if (!knows(walk, cfa->base)) {
        return SEEP_CUT_REGISTER;
    }
    at = walk->values[cfa->base] + (uintptr_t)(intptr_t)cfa->offset;
    if (cfa->kind == SEEP_CFI_CFA_LOADED) {
        if (!read_word(walk, at, &at)) {
            return SEEP_CUT_BOUNDS;
        }
        at += (uintptr_t)(intptr_t)cfa->added;
    }
    *ret_cfa = at;
    return SEEP_CUT_NONE;
}

/* The caller's value of a register. @return false: it is lost */
static bool restore(struct walk *walk, const struct seep_cfi_place *place,
                    uint8_t number, uintptr_t cfa, uintptr_t *ret_value)
{
    uintptr_t offset = (uintptr_t)(intptr_t)place->offset;

    switch (place->kind) {
    case SEEP_CFI_SAME:
        *ret_value = number == SEEP_CFI_SP ? cfa : walk->values[number];
        return number == SEEP_CFI_SP || knows(walk, number);
    case SEEP_CFI_AT_CFA:
        return read_word(walk, cfa + offset, ret_value);
    case SEEP_CFI_IS_CFA:
        *ret_value = cfa + offset;
        return true;
    case SEEP_CFI_AT_REGISTER:
        return knows(walk, place->base) &&
               read_word(walk, walk->values[place->base] + offset, ret_value);
    case SEEP_CFI_IS_REGISTER:
        *ret_value = walk->values[place->base % REGISTERS] + offset;
        return knows(walk, place->base);
    default:
        return false;
    }
}

/* To the caller of a frame with a CFA. */
static enum seep_cut step_call(struct walk *walk,
                               const struct seep_cfi_row *row)
{
    uintptr_t caller[SEEP_CFI_PLACES];
    uint32_t known = 0;
    uintptr_t cfa = 0;
    enum seep_cut cut = find_cfa(walk, &row->cfa, &cfa);
    size_t back = seep_cfi_place_index(SEEP_CFI_RETURN);

    if (cut != SEEP_CUT_NONE) {
        return cut;
    }
    for (size_t i = 0; i < SEEP_CFI_PLACES; i++) {
        uint8_t number = seep_cfi_place_number(i);

        caller[i] = 0;
        known |=
            (uint32_t)restore(walk, &row->places[i], number, cfa, &caller[i])
            << number;
    }
    if ((known >> SEEP_CFI_RETURN & 1) == 0 ||
        (known >> SEEP_CFI_SP & 1) == 0) {
        return SEEP_CUT_BOUNDS;
    }
    if (caller[seep_cfi_place_index(SEEP_CFI_SP)] < stack_pointer(walk)) {
        return SEEP_CUT_ORDER;
    }
    for (size_t i = 0; i < SEEP_CFI_PLACES; i++) {
        walk->values[seep_cfi_place_number(i)] = caller[i];
    }
    /* Where the return address was is no register of the caller's. */
    walk->known = known & ~(UINT32_C(1) << SEEP_CFI_RETURN);
    walk->interrupted = false;
    walk->pc = seep_cfi_code_address(caller[back]) - 1;
    return SEEP_CUT_NONE;
}

/* DWARF's numbers in the order of a ucontext, from SIGNAL_FIRST on. */
#if defined(__aarch64__)
#define SIGNAL_FIRST (SEEP_SIGNAL_FP - 29 * 8)
static const uint8_t context_order[] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
#else
#define SIGNAL_FIRST SEEP_SIGNAL_R8
static const uint8_t context_order[] = {8, 9, 10, 11, 12, 13, 14, 15,
                                        5, 4, 6,  3,  1,  0,  2};
#endif

/* Through the frame of a signal: every register is in it. */
static enum seep_cut step_signal(struct walk *walk)
{
    uintptr_t base = stack_pointer(walk);
    uintptr_t sp = 0;
    uintptr_t pc = 0;
    uintptr_t value = 0;

    for (unsigned int i = 0; i < sizeof(context_order); i++) {
        if (!read_word(walk, base + SIGNAL_FIRST + 8U * i, &value)) {
            return SEEP_CUT_BOUNDS;
        }
        learn(walk, context_order[i], value);
    }
    if (!read_word(walk, base + SEEP_SIGNAL_SP, &sp) ||
        !read_word(walk, base + SEEP_SIGNAL_PC, &pc) ||
        !enter_stack(walk, sp)) {
        return SEEP_CUT_BOUNDS;
    }
    learn(walk, SEEP_CFI_SP, sp);
    walk->interrupted = true;
    walk->pc = pc;
    return SEEP_CUT_NONE;
}

static SEEP_NOINLINE enum seep_cut step(struct walk *walk, bool *ret_signal)
{
    struct seep_cfi_row row;
    bool signal_frame = false;
    enum seep_cut cut = seep_rule_row(walk->pc, &row, &signal_frame);

    *ret_signal = signal_frame;
    if (cut != SEEP_CUT_NONE) {
        return cut;
    }
    if (seep_cfi_place(&row, SEEP_CFI_RETURN)->kind == SEEP_CFI_UNDEFINED) {
        walk->ended = true;
        return SEEP_CUT_NONE;
    }
    if (!signal_frame) {
        return step_call(walk, &row);
    }
    return seep_rule_pack(&row, true) == SEEP_RULE_SIGNAL ? step_signal(walk)
                                                          : SEEP_CUT_EXPRESSION;
}

/* The registers as they are here. What calls change is not known. */
static inline __attribute__((always_inline)) void
begin(struct walk *walk, const struct seep_stack_bounds *bounds)
{
    uintptr_t *values = walk->values;

#if defined(__aarch64__)
    __asm__ volatile("stp x29, x30, [%1, #232]\n\t"
                     "mov %0, sp\n\t"
                     "str %0, [%1, #248]\n\t"
                     "adr %0, 0f\n"
                     "0:"
                     : "=&r"(walk->pc)
                     : "r"(values)
                     : "memory");
    walk->known = UINT32_C(7) << SEEP_CFI_FP;
#else
    __asm__ volatile("movq %%rbx, 24(%1)\n\t"
                     "movq %%rbp, 48(%1)\n\t"
                     "movq %%rsp, 56(%1)\n\t"
                     "movq %%r12, 96(%1)\n\t"
                     "movq %%r13, 104(%1)\n\t"
                     "movq %%r14, 112(%1)\n\t"
                     "movq %%r15, 120(%1)\n\t"
                     "leaq 0f(%%rip), %0\n"
                     "0:"
                     : "=&r"(walk->pc)
                     : "r"(values)
                     : "memory");
    walk->known = UINT32_C(0xf0c8);
#endif
    walk->bounds = bounds;
    walk->interrupted = true;
    walk->ended = false;
    if (is_own(walk, stack_pointer(walk))) {
        walk->high = bounds->high;
    } else {
        walk->high = seep_stack_bounds_page_end(stack_pointer(walk));
    }
}

/* Out of our own frames. @return false: this is not the stack of @start */
static bool find_start(struct walk *walk,
                       const struct seep_capture_start *start)
{
    bool signal;

    for (unsigned int i = 0; i < OWN_FRAMES_MAX; i++) {
        if (stack_pointer(walk) >= start->sp) {
            return stack_pointer(walk) == start->sp &&
                   walk->pc == start->pc - 1;
        }
        if (step(walk, &signal) != SEEP_CUT_NONE || walk->ended) {
            return false;
        }
    }
    return false;
}

SEEP_COLD size_t seep_unwind_registers(const struct seep_capture_start *start,
                                       const struct seep_stack_bounds *bounds,
                                       uintptr_t *pcs, size_t count,
                                       size_t capacity,
                                       struct seep_capture_end *ret_end)
{
    struct walk walk;
    enum seep_cut cut = SEEP_CUT_NONE;
    bool through_signal = false;
    size_t at = 0;

    begin(&walk, bounds);
    if (!find_start(&walk, start)) {
        return count;
    }
    while (cut == SEEP_CUT_NONE && !walk.ended && walk.pc != UINTPTR_MAX) {
        uintptr_t pc = walk.pc;
        uintptr_t sp = stack_pointer(&walk);
        bool signal;

        if (at == capacity) {
            cut = SEEP_CUT_DEPTH;
            break;
        }
        cut = step(&walk, &signal);
        signal = signal && cut == SEEP_CUT_NONE;
        /* The trampoline is never called: its address as it is. */
        pc += signal;
        through_signal |= signal;
        if (at < count && pcs[at] != pc) {
            return count;
        }
        pcs[at] = pc;
        if (start->sps != NULL) {
            start->sps[at] = sp;
        }
        at++;
    }
    if (at <= count) {
        return count;
    }
    ret_end->cut = cut;
    ret_end->through_signal = through_signal;
    return at;
}
