/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The inside of the unwinder: the state of a walk, its steps, and the ways to
 * walk a stack.
 *
 * The values of rbp and rbx are not read where they were saved but where a
 * rule needs them: a walk carries the addresses that they lie at.
 *
 * Invariant: a step that is cut leaves the walk as it was. What a step reads
 * of the stack is noted, so that a later walk can verify it; else the step must
 * call seep_walk_bar().
 */
#ifndef SEEP_CAPTURE_NATIVE_WALK_H
#define SEEP_CAPTURE_NATIVE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/native/unwind.h"

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

struct seep_unwind_cache;

struct seep_walk {
    uintptr_t pc; /* as it is recorded and looked up */
    uintptr_t sp;
    uintptr_t high; /* nothing is read from here on */
    /* Where the registers of this frame lie: if a frame of this walk saved
     * them, in that frame, else below its innermost. */
    uintptr_t at[SEEP_WALK_REGISTERS];
    uintptr_t kept[SEEP_WALK_REGISTERS];
    /* With a cache: `at` is true in the frame of this number; what the frames
     * from there on saved is in their places in the cache. */
    size_t known[SEEP_WALK_REGISTERS];
    const struct seep_stack_bounds *bounds;
    struct seep_unwind_cache *cache; /* of this thread; NULL: goes without */
    uintptr_t *pcs;
    uintptr_t *sps;        /* NULL: not wanted, and no cache */
    uintptr_t *wanted_sps; /* with a cache: what the caller wants of them */
    size_t count; /* frames so far, with the one that is stepped from */
    size_t capacity;
    size_t barrier;     /* the frames before this one cannot be reused */
    size_t interrupted; /* frame that a signal came to; SIZE_MAX: none */
    uint64_t generation;
    bool cached; /* the rule cache may be asked */
    bool through_signal;
};

/** Does @sp lie on the thread's own stack? */
static inline bool seep_walk_is_own(const struct seep_walk *walk, uintptr_t sp)
{
    return sp >= walk->bounds->low && sp < walk->bounds->high;
}

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

/** A frame that was left by a call, and what of its stack may be read. */
struct seep_frame_record {
    uintptr_t pc; /* inside the calling instruction */
    uintptr_t sp; /* all of [sp, high) is readable */
    uintptr_t high;
    uintptr_t fp;
};

/**
 * Does record->fp hold the frame record of this very frame? For code without
 * unwind information that keeps frame pointers.
 *
 * @return true if the caller's fp lies at record->fp, and the return address
 *         behind it
 */
bool seep_frame_record_is_sound(const struct seep_frame_record *record);

/**
 * The walk by rules: as seep_native_capture(), with @bounds known and @capacity
 * in range.
 *
 * @param cache  of this thread; NULL: goes without. The frames are the same in
 *               both cases.
 */
size_t seep_unwind_walk(const struct seep_capture_start *start,
                        const struct seep_stack_bounds *bounds,
                        struct seep_unwind_cache *cache, uintptr_t *pcs,
                        size_t capacity, struct seep_capture_end *ret_end);

/**
 * The same in the shortest way that there is.
 *
 * @param cache  which was entered, and is left; or NULL
 */
size_t seep_unwind_capture(const struct seep_capture_start *start,
                           const struct seep_stack_bounds *bounds,
                           struct seep_unwind_cache *cache, uintptr_t *pcs,
                           size_t capacity, struct seep_capture_end *ret_end);

/**
 * The walk with all registers: go on with a stack that seep_unwind_walk() has
 * cut. Called by a function that start's hook has called.
 *
 * Rules leave out most registers, and rare forms of a CFA; hand-written
 * assembler and interrupted prologues need them. This walk begins in its own
 * frame, where every register is known, and reads rows where the other reads
 * rules. It costs some 20 times as much a frame.
 *
 * @param pcs      holds @count frames; receives those that follow
 * @param ret_end  how the walk ended; becomes how this one did
 * @return number of frames; @count, with all as it was, if this walk saw
 *         another stack or got no further
 */
size_t seep_unwind_registers(const struct seep_capture_start *start,
                             const struct seep_stack_bounds *bounds,
                             uintptr_t *pcs, size_t count, size_t capacity,
                             struct seep_capture_end *ret_end);

/** Load libunwind. @return 0 or -ENOTSUP */
int seep_libunwind_init(void);

/**
 * The walk by libunwind: as seep_native_capture(), without bounds. It is slower
 * and does what ours must not do (system calls, locks, 5 KiB of stack); it is
 * here to be compared with.
 */
size_t seep_libunwind_walk(const struct seep_capture_start *start,
                           uintptr_t *pcs, size_t capacity,
                           struct seep_capture_end *ret_end);

#endif
