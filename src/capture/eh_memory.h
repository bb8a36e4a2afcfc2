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

#define SEEP_MEMORIES 128U
#define SEEP_HOT_SETS 64U
#define SEEP_HOT_WAYS 4U
#define SEEP_NOTES 32U

/* A stack is kept with room before it, for frames that come to be there. */
#define SEEP_FRAMES_BEFORE 32U
#define SEEP_FRAMES (SEEP_FRAMES_BEFORE + SEEP_STACK_FRAMES_MAX)

enum seep_hot_kind {
    SEEP_HOT_ODD,
    SEEP_HOT_RSP,    /* CFA = rsp + offset */
    SEEP_HOT_FRAMED, /* CFA = rbp + 16, and the caller's rbp lies at rbp */
};

/* Places: where a frame saved rbp (bits 0..15) and rbx (16..31), from the CFA
 * on; 0: nowhere; odd: lost; with this bit, its rule is FRAMED. */
#define SEEP_PLACES_FRAMED UINT32_C(2)
#define SEEP_FRAMED_BYTES ((intptr_t)(2 * sizeof(uintptr_t)))

/** A rule, taken apart. */
struct seep_hot {
    uintptr_t back;  /* the return address that it is of; 0: none */
    intptr_t offset; /* RSP: CFA less rsp; else far beyond any stack */
    uint64_t rule;   /* the whole of it */
    uint32_t places;
    uint16_t next[2]; /* where the callers lie that it had, in bytes */
    uint8_t kind;
};

static inline intptr_t seep_place_of(uint32_t places,
                                     enum seep_walk_register number)
{
    return (int16_t)(places >> (16 * (unsigned int)number)) &
           ~(intptr_t)SEEP_PLACES_FRAMED;
}

/* A note: a word that a frame's rule read, beside its return address. Bits
 * 0..2 are the register that it was read for, bits 48.. the frame. */
#define SEEP_MEMORY_WORD UINT64_C(7) /* for no register */
#define SEEP_NOTE_FRAME_SHIFT 48U
#define SEEP_NOTE_SLOT_MASK (((UINT64_C(1) << 48) - 1) & ~UINT64_C(7))

struct seep_note {
    uint64_t slot; /* 0 as address: the register had its first value */
    uintptr_t value;
};

/** Two words of the stack, or what is to be compared of them. */
typedef uintptr_t seep_pair
    __attribute__((vector_size(2 * sizeof(uintptr_t)), may_alias));

/** A stack: frames [first, end), innermost first. */
struct seep_frames {
    size_t first;
    size_t end;
    size_t note_count; /* > SEEP_NOTES: too many, not to be shared */
    uintptr_t high;
    bool ended;  /* the last frame has no caller */
    bool framed; /* a frame's rbp lies where the frame before has saved it */
    bool paired; /* the pairs are there */
    uintptr_t at[SEEP_WALK_REGISTERS]; /* in the last frame */
    uintptr_t pcs[SEEP_FRAMES];
    uintptr_t sps[SEEP_FRAMES + 1]; /* closed by UINTPTR_MAX */
    uint32_t places[SEEP_FRAMES];
    struct seep_note notes[SEEP_NOTES];
    /* What lies below each frame but the first: rbp, where it is FRAMED and so
     * is the one before, and its return address. */
    seep_pair pairs[SEEP_FRAMES];
    seep_pair masks[SEEP_FRAMES];
};

/** Make the pair of a frame that is not the first. */
static inline void seep_frames_pair(struct seep_frames *frames, size_t frame)
{
    bool both = (frames->places[frame] & frames->places[frame - 1] &
                 SEEP_PLACES_FRAMED) != 0;

    frames->pairs[frame] = (seep_pair){
        frames->sps[frame + 1] - SEEP_FRAMED_BYTES, frames->pcs[frame] + 1};
    frames->masks[frame] = (seep_pair){both ? UINTPTR_MAX : 0, UINTPTR_MAX};
}

/** Where the walk joined the last stack. */
struct seep_share {
    size_t at;    /* frame of the last stack; SEEP_FRAMES: nowhere */
    size_t count; /* frames of the walk before it */
    uintptr_t registers[SEEP_WALK_REGISTERS]; /* where they lay there */
};

struct seep_memory {
    _Atomic uintptr_t owner; /* 0: free */
    _Atomic uintptr_t busy;  /* frame of the walk that uses it; 0: none */
    uint64_t generation;
    struct seep_frames *last; /* the stack of the walk before */
    struct seep_frames *now;  /* of the one under way */
    uint32_t victim;          /* the way that is given up next */
    struct seep_hot spare;    /* for a rule that must not be kept */
    struct seep_hot start;    /* its `next` is where a walk began last */
    struct seep_hot resumed;  /* and where one went on behind the last stack */
    struct seep_walk walk;
    struct seep_share share;
    uintptr_t before[SEEP_WALK_REGISTERS]; /* `at` before the last odd step */
    bool ended;                            /* by a frame without a caller */
    uint8_t turn;
    bool again; /* the last walk joined the last stack, which has ended */
    struct seep_hot hot[SEEP_HOT_SETS * SEEP_HOT_WAYS];
    struct seep_frames frames[2];
};

extern struct seep_memory seep_memories[SEEP_MEMORIES]
    __attribute__((visibility("hidden")));

static inline uint32_t seep_memory_index(uintptr_t thread)
{
    return (uint32_t)(thread * UINT64_C(0x9e3779b97f4a7c15) >> 40) %
           SEEP_MEMORIES;
}

/** As below, for a thread that has none yet, or has it in use. */
struct seep_memory *seep_memory_ask(uintptr_t thread, uintptr_t sp,
                                    const struct seep_stack_bounds *bounds,
                                    bool may_call);

/** The calling thread's, if it has one that is free to be taken; else NULL.
 * @thread is an address that is the thread's as long as it lives. */
static inline struct seep_memory *seep_memory_of(uintptr_t thread)
{
    struct seep_memory *memory = &seep_memories[seep_memory_index(thread)];

    if (seep_unlikely(
            atomic_load_explicit(&memory->owner, memory_order_relaxed) !=
                thread ||
            atomic_load_explicit(&memory->busy, memory_order_relaxed) != 0)) {
        return NULL;
    }
    return memory;
}

/** For one walk that begins at @sp. */
static inline void seep_memory_enter(struct seep_memory *memory, uintptr_t sp)
{
    atomic_store_explicit(&memory->busy, sp, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/**
 * Both at once.
 *
 * @param may_call  system calls are welcome
 * @return NULL: go without
 */
static inline struct seep_memory *
seep_memory_take(uintptr_t thread, uintptr_t sp,
                 const struct seep_stack_bounds *bounds, bool may_call)
{
    struct seep_memory *memory = seep_memory_of(thread);

    if (seep_unlikely(memory == NULL)) {
        memory = seep_memory_ask(thread, sp, bounds, may_call);
    }
    if (seep_likely(memory != NULL)) {
        seep_memory_enter(memory, sp);
    }
    return memory;
}

/** The walk is over. */
static inline void seep_memory_give_back(struct seep_memory *memory)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&memory->busy, 0, memory_order_relaxed);
}

/** Forget all that is not of @generation. */
void seep_memory_renew(struct seep_memory *memory, uint64_t generation);

/** Forget the last stack. */
void seep_memory_forget(struct seep_memory *memory);

/** The rule of what returns to @back, which called what @from is of. */
struct seep_hot *seep_memory_rule(struct seep_walk *walk, struct seep_hot *from,
                                  uintptr_t back);

/** The rules among which that of what returns to @back is, if it is kept. */
static inline struct seep_hot *seep_memory_set(struct seep_memory *memory,
                                               uintptr_t back)
{
    uint64_t hash = back * UINT64_C(0x9e3779b97f4a7c15);

    return &memory->hot[(hash >> 58) % SEEP_HOT_SETS * SEEP_HOT_WAYS];
}

/** A rule that followed that of @from once. */
static inline struct seep_hot *seep_memory_next(struct seep_memory *memory,
                                                const struct seep_hot *from,
                                                unsigned int which)
{
    return (struct seep_hot *)((char *)memory->hot + from->next[which]);
}

/** A word was read for the frame that @walk stands in. */
static inline void seep_memory_note(struct seep_walk *walk, uint64_t slot,
                                    uintptr_t value)
{
    struct seep_frames *now;
    uint64_t frame = SEEP_FRAMES_BEFORE + walk->count - 1;

    if (walk->memory == NULL) {
        return;
    }
    now = walk->memory->now;
    if (now->note_count < SEEP_NOTES) {
        now->notes[now->note_count].slot = slot | frame
                                                      << SEEP_NOTE_FRAME_SHIFT;
        now->notes[now->note_count].value = value;
    }
    now->note_count += now->note_count <= SEEP_NOTES;
}

#endif
