/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the walks of a thread remember from one to the next: rules in the form
 * that is fastest to step by, and the last stack.
 *
 * A fixed table of these lies in BSS; a thread gets one at its first walk, by
 * the address of its thread-local object, or goes without. No lock and no
 * waiting: another thread's is left alone, and a walk in a signal handler that
 * came in the middle of a walk goes without, too.
 *
 * Invariant: what is remembered can be wrong about the stack, never about the
 * code: rules are of one generation, and each word of the stack that a
 * remembered frame came from is read again and compared.
 */
#ifndef SEEP_CAPTURE_EH_MEMORY_H
#define SEEP_CAPTURE_EH_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/eh_step.h"

#define SEEP_HOT_SETS 64U
#define SEEP_HOT_WAYS 4U
#define SEEP_NOTES 128U

enum seep_hot_kind { SEEP_HOT_RSP, SEEP_HOT_RBP, SEEP_HOT_ODD };

/** A rule, taken apart. */
struct seep_hot {
    uintptr_t back; /* the return address that it is of; 0: none */
    union {
        struct {
            int32_t offset;    /* CFA less rsp or rbp */
            int16_t places[2]; /* from the CFA on; 0: not saved; odd: lost */
        };
        uint32_t words[2];
        uint64_t rule; /* if the kind is ODD */
    };
    uint16_t next; /* where the caller lies that it had last, in bytes */
    uint8_t kind;
};

/* A note: a word that a frame's rule read, beside its return address. Bits
 * 0..2 are the register that it was read for, bits 48.. the frame. */
#define SEEP_MEMORY_WORD UINT64_C(7) /* for no register */
#define SEEP_NOTE_FRAME_SHIFT 48U
#define SEEP_NOTE_SLOT_MASK (((UINT64_C(1) << 48) - 1) & ~UINT64_C(7))

struct seep_note {
    uint64_t slot; /* 0 as address: the register had its first value */
    uintptr_t value;
};

/** The last stack, its outermost frame in the last place of the arrays. */
struct seep_last {
    size_t first; /* frame; SEEP_STACK_FRAMES_MAX: there is none */
    size_t first_note;
    uintptr_t high;
    bool ended;                        /* its outermost frame has no caller */
    uintptr_t at[SEEP_WALK_REGISTERS]; /* in the outermost frame */
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t sps[SEEP_STACK_FRAMES_MAX + 1]; /* closed by UINTPTR_MAX */
    struct seep_note notes[SEEP_NOTES];
};

/** Where the walk joined the last stack. */
struct seep_share {
    const uintptr_t *old; /* the next stack pointer that it may join at */
    size_t at;            /* frame of the last stack; FRAMES_MAX: nowhere */
    size_t count;         /* frames of the walk before it */
    uintptr_t registers[SEEP_WALK_REGISTERS]; /* where they lay there */
};

struct seep_memory {
    _Atomic uintptr_t owner; /* 0: free */
    _Atomic uintptr_t busy;  /* frame of the walk that uses it; 0: none */
    uint64_t generation;
    uint32_t victim; /* the way that is given up next */
    size_t note_count;
    struct seep_hot hot[SEEP_HOT_SETS * SEEP_HOT_WAYS];
    struct seep_hot spare; /* for a rule that must not be kept */
    struct seep_hot start; /* its `next` is where a walk began last */
    struct seep_last last;
    /* Of the walk under way. */
    struct seep_walk walk;
    struct seep_share share;
    uintptr_t before[SEEP_WALK_REGISTERS]; /* `at` before the last odd step */
    bool ended;                            /* by a frame without a caller */
    uint32_t trail[SEEP_STACK_FRAMES_MAX]; /* the places of its frames */
    uintptr_t sps[SEEP_STACK_FRAMES_MAX];
    struct seep_note notes[SEEP_NOTES];
};

/**
 * The calling thread's, for one walk that begins at @sp.
 *
 * @param thread    an address that is the thread's as long as it lives
 * @param may_call  system calls are welcome
 * @return NULL: go without
 */
struct seep_memory *seep_memory_take(uintptr_t thread, uintptr_t sp,
                                     const struct seep_stack_bounds *bounds,
                                     bool may_call);

/** The walk is over. */
void seep_memory_give_back(struct seep_memory *memory);

/** Forget all that is not of @generation. */
void seep_memory_renew(struct seep_memory *memory, uint64_t generation);

/** The rule of what returns to @back, compiled if need be. */
struct seep_hot *seep_memory_rule(struct seep_walk *walk, uintptr_t back);

/** A word was read for the frame that @walk stands in. */
static inline void seep_memory_note(struct seep_walk *walk, uint64_t slot,
                                    uintptr_t value)
{
    struct seep_memory *memory = walk->memory;

    if (memory != NULL && memory->note_count < SEEP_NOTES) {
        memory->notes[memory->note_count++] = (struct seep_note){
            slot | (uint64_t)(walk->count - 1) << SEEP_NOTE_FRAME_SHIFT, value};
    } else if (memory != NULL) {
        memory->note_count = SEEP_NOTES + 1; /* not to be shared */
    }
}

#endif
