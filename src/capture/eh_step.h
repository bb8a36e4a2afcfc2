/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From a frame to its caller by a rule: all kinds of rules, in one place.
 *
 * The values of rbp and rbx are not read where they were saved but where a
 * rule needs them: a walk carries the addresses that they lie at.
 *
 * Invariant: a step that is cut leaves the walk as it was. What a step reads
 * of the stack it reads by seep_walk_word() and seep_walk_register(), so that
 * a later walk can verify it; else it must call seep_walk_bar().
 */
#ifndef SEEP_CAPTURE_EH_STEP_H
#define SEEP_CAPTURE_EH_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "capture/native.h"

/* Frames of others are read here, which AddressSanitizer takes for an error. */
#define SEEP_READS_THE_STACK \
    __attribute__((no_sanitize("address", "thread", "undefined")))

/** The registers that are followed. */
enum seep_walk_register {
    SEEP_WALK_RBP,
    SEEP_WALK_RBX,
    SEEP_WALK_X30 = SEEP_WALK_RBX, /* on aarch64, where RBP is x29 */
    SEEP_WALK_REGISTERS
};

/* Instead of an address: in seep_walk.kept; lost (as all odd addresses). */
#define SEEP_WALK_KEPT 2U
#define SEEP_WALK_LOST 1U

struct seep_memory;

struct seep_walk {
    uintptr_t pc; /* as it is recorded and looked up */
    uintptr_t sp;
    uintptr_t high; /* nothing is read from here on */
    /* Where the registers of this frame lie: if a frame of this walk saved
     * them, in that frame, else below its innermost. */
    uintptr_t at[SEEP_WALK_REGISTERS];
    uintptr_t kept[SEEP_WALK_REGISTERS];
    /* With a memory: `at` is true in the frame of this number; what the frames
     * from there on saved is told by the memory's trail. */
    size_t known[SEEP_WALK_REGISTERS];
    const struct seep_stack_bounds *bounds;
    struct seep_memory *memory; /* of this thread; NULL: goes without */
    uintptr_t *pcs;
    uintptr_t *sps;      /* NULL: not wanted, and no memory */
    uintptr_t *told_sps; /* with a memory: what the caller wants of them */
    size_t count;        /* frames so far, with the one that is stepped from */
    size_t capacity;
    size_t barrier;     /* the frames before this one cannot be shared */
    size_t interrupted; /* frame that a signal came to; SIZE_MAX: none */
    uint64_t generation;
    bool cached;
    bool through_signal;
};

/** Does @sp lie on the thread's own stack? */
static inline bool seep_walk_is_own(const struct seep_walk *walk, uintptr_t sp)
{
    return sp >= walk->bounds->low && sp < walk->bounds->high;
}

/**
 * May the word at @address be read after all, which is not below `high`?
 *
 * Of the thread's own stack it may not; of another, where no bounds are known,
 * pages are proved readable one by one, and `high` is moved.
 */
bool seep_walk_widen(struct seep_walk *walk, uintptr_t address);

/** Read the word at @address, which must lie in [sp, high). */
enum seep_cut seep_walk_word(struct seep_walk *walk, uintptr_t address,
                             uintptr_t *ret_word);

/** The value of a register in this frame. */
enum seep_cut seep_walk_register(struct seep_walk *walk,
                                 enum seep_walk_register number,
                                 uintptr_t *ret_value);

/** Nothing from here inwards may be taken over by a later walk. */
void seep_walk_bar(struct seep_walk *walk);

/**
 * To the caller, by any rule but SEEP_RULE_END.
 *
 * A new kind of rule is a function here, and a case in seep_walk_step().
 */
enum seep_cut seep_walk_step(struct seep_walk *walk, uint64_t rule);

#endif
