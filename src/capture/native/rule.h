/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A row in one word: how to get from a frame to its caller.
 *
 *   bits 0..3: enum seep_rule_kind; never 0.
 *   bits 4..27: signed, CFA offset in units of 8 bytes (CUT: enum seep_cut).
 *   bits 28..39, frame pointer: 2 bits enum seep_rule_place, 10 bits signed in
 *   units of 8 bytes.
 *   bits 40..51: the same, of rbx, on aarch64 of the return address.
 *   bits 52..63: check bits of the cache.
 *
 * The names are those of x86-64. On aarch64 RSP stands for sp and RBP for x29.
 * Invariant: a rule says exactly what its row says, or it is a CUT.
 */
#ifndef SEEP_CAPTURE_NATIVE_RULE_H
#define SEEP_CAPTURE_NATIVE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "capture/native/cfi.h"

enum seep_rule_kind {
    SEEP_RULE_NONE = 0,
    SEEP_RULE_RSP,        /* CFA = rsp + offset */
    SEEP_RULE_RBP,        /* CFA = rbp + offset */
    SEEP_RULE_RBX,        /* CFA = rbx + offset */
    SEEP_RULE_LOADED_RBP, /* CFA = *(rbp + offset); not on aarch64 */
    SEEP_RULE_SIGNAL,     /* all as the kernel saved it in a ucontext */
    SEEP_RULE_END,        /* no caller */
    SEEP_RULE_CUT,        /* there is one, but not for us */
};

enum seep_rule_place {
    SEEP_RULE_SAME = 0,
    SEEP_RULE_AT_CFA,                     /* at CFA + offset */
    SEEP_RULE_AT_RBP,                     /* at this frame's rbp + offset */
    SEEP_RULE_AT_BASE = SEEP_RULE_AT_RBP, /* aarch64: CFA's register + offset */
    SEEP_RULE_LOST,
};

#define SEEP_RULE_RBP_SHIFT 28U
#define SEEP_RULE_RBX_SHIFT 40U
#define SEEP_RULE_RETURN_SHIFT 40U /* aarch64; SAME: in x30 */

/* Where the kernel keeps registers, from the stack pointer in the signal
 * trampoline on: a ucontext, on aarch64 behind a siginfo. */
#if defined(__aarch64__)
enum {
    SEEP_SIGNAL_FP = 544,
    SEEP_SIGNAL_SECOND = 552, /* x30 */
    SEEP_SIGNAL_SP = 560,
    SEEP_SIGNAL_PC = 568,
};
#else
enum {
    SEEP_SIGNAL_R8 = 40, /* up to r15, in order */
    SEEP_SIGNAL_RDI = 104,
    SEEP_SIGNAL_RSI = 112,
    SEEP_SIGNAL_RBP = 120,
    SEEP_SIGNAL_RBX = 128,
    SEEP_SIGNAL_RDX = 136,
    SEEP_SIGNAL_RAX = 144,
    SEEP_SIGNAL_RCX = 152,
    SEEP_SIGNAL_RSP = 160,
    SEEP_SIGNAL_RIP = 168,
    SEEP_SIGNAL_FP = SEEP_SIGNAL_RBP,
    SEEP_SIGNAL_SECOND = SEEP_SIGNAL_RBX,
    SEEP_SIGNAL_SP = SEEP_SIGNAL_RSP,
    SEEP_SIGNAL_PC = SEEP_SIGNAL_RIP,
};
#endif

static inline enum seep_rule_kind seep_rule_kind(uint64_t rule)
{
    return (enum seep_rule_kind)(rule & 15);
}

/** The CFA offset in bytes. */
static inline intptr_t seep_rule_offset(uint64_t rule)
{
    return ((int64_t)(rule << 36) >> 40) * 8;
}

static inline enum seep_rule_place seep_rule_place(uint64_t rule,
                                                   unsigned int shift)
{
    return (enum seep_rule_place)(rule >> shift & 3);
}

/** The offset of a place in bytes. */
static inline intptr_t seep_rule_place_offset(uint64_t rule, unsigned int shift)
{
    return ((int64_t)(rule << (52 - shift)) >> 54) * 8;
}

static inline uint64_t seep_rule_of_cut(enum seep_cut cut)
{
    return SEEP_RULE_CUT | (uint64_t)cut << 4;
}

/** Put a row into a word. */
uint64_t seep_rule_pack(const struct seep_cfi_row *row, bool signal_frame);

/**
 * The row of @pc, whole, from the sections of its object.
 *
 * @return SEEP_CUT_NONE, or why there is none
 */
enum seep_cut seep_rule_row(uintptr_t pc, struct seep_cfi_row *ret_row,
                            bool *ret_signal_frame);

/** The entry of @pc in the sections of its object. @return as above */
enum seep_cut seep_rule_entry(uintptr_t pc, struct seep_cfi_entry *ret_entry);

/** The rule of @pc from the sections of its object; never SEEP_RULE_NONE. */
uint64_t seep_rule_compile(uintptr_t pc);

/*
 * The unwind tables of large objects are read in mappings of our own. Any
 * number of threads; nobody waits.
 */

/** Give back the pages of those that were read since the last time, and the
 * files of objects that were unloaded. */
void seep_tables_give_back(void);

/** In the child of a fork: who made one in the parent is gone. */
void seep_tables_after_fork(void);

/** System calls are no longer welcome: what is mapped stays as it is. */
void seep_tables_restrict(void);

#endif
