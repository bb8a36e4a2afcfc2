/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What walks remember: compiled rules, for all threads, and for each thread its
 * unwind cache, with the last stack, of which the next takes over what it can.
 *
 * The rule cache is a fixed, private, lock-free table, by pc and epoch. A slot
 * is two words. The first is its key: 48 bits of pc, 16 of the epoch; the
 * second the rule, with check bits of the key in it. A writer takes the key to
 * BUSY by compare and swap, writes the rule, then the new key; a reader wants
 * the same key before and after the rule, and the check bits right.
 *
 * Invariant: a rule is only ever found for the pc and the epoch it was
 * compiled in. Epochs of which one dlclose or more is under way have no cache;
 * when the 16 bits wrap, the table is emptied first.
 */
#ifndef SEEP_CAPTURE_NATIVE_CACHE_H
#define SEEP_CAPTURE_NATIVE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/own.h"
#include "base/word.h"
#include "capture/native/rule.h"
#include "capture/native/walk.h"

#define SEEP_RULE_CACHE_SLOTS 8192U

#define SEEP_RULE_CACHE_CHECK_SHIFT 52U
#define SEEP_RULE_CACHE_RULE_MASK ((UINT64_C(1) << 52) - 1)

struct seep_rule_cache_slot {
    _Atomic uint64_t key;
    _Atomic uint64_t rule;
};

extern struct seep_rule_cache_slot seep_rule_cache_slots[SEEP_RULE_CACHE_SLOTS];

/**
 * The epoch as the table knows it, for one walk.
 *
 * @return false: no cache for this walk
 */
bool seep_rule_cache_open(uint64_t *ret_generation);

/** In the child of a fork: an emptying that another thread was at is done. */
void seep_rule_cache_after_fork(void);

/** Keep @rule; refused without harm if another thread is at the slot. */
void seep_rule_cache_put(uintptr_t pc, uint64_t generation, uint64_t rule);

/** The rule of @pc, which the cache has not, for it to have if it is @cached.
 */
uint64_t seep_rule_cache_fill(uintptr_t pc, uint64_t generation, bool cached);

static inline uint64_t seep_rule_cache_hash(uintptr_t pc)
{
    return pc * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t seep_rule_cache_key(uintptr_t pc, uint64_t generation)
{
    return pc << 16 | (generation & 0xffff);
}

/** The first of the two slots that @pc may lie in; the other is its pair. */
static inline uint32_t seep_rule_cache_index(uint64_t hash)
{
    return (uint32_t)(hash >> 51);
}

/**
 * What a rule carries of whose it is: a reader who was interrupted between two
 * looks at one key may have read a rule that stood there in between, of another
 * address or of another generation of this one.
 */
static inline uint64_t seep_rule_cache_check(uint64_t hash, uint64_t key)
{
    return (hash ^ key) & 0xfff;
}

static inline uint64_t
seep_rule_cache_read(const struct seep_rule_cache_slot *slot, uint64_t key,
                     uint64_t hash)
{
    uint64_t rule;

    /* Acquire: pairs with the release of the key in seep_rule_cache_put(). */
    if (atomic_load_explicit(&slot->key, memory_order_acquire) != key) {
        return 0;
    }
    /* Acquire: pairs with the release fence after BUSY in
     * seep_rule_cache_put(), so that with a newer rule the key that is read
     * next is newer too. */
    rule = atomic_load_explicit(&slot->rule, memory_order_acquire);
    if (atomic_load_explicit(&slot->key, memory_order_relaxed) != key ||
        rule >> SEEP_RULE_CACHE_CHECK_SHIFT !=
            seep_rule_cache_check(hash, key)) {
        return 0;
    }
    return rule & SEEP_RULE_CACHE_RULE_MASK;
}

/** @return the rule of @pc, or 0 */
static inline uint64_t seep_rule_cache_get(uintptr_t pc, uint64_t generation)
{
    uint64_t hash = seep_rule_cache_hash(pc);
    uint64_t key = seep_rule_cache_key(pc, generation);
    uint32_t index = seep_rule_cache_index(hash);
    uint64_t rule;

    if (seep_unlikely(pc >> 48 != 0)) {
        return 0;
    }
    rule = seep_rule_cache_read(&seep_rule_cache_slots[index], key, hash);
    if (seep_likely(rule != 0)) {
        return rule;
    }
    return seep_rule_cache_read(&seep_rule_cache_slots[index ^ 1], key, hash);
}

/*
 * The unwind cache of a thread: rules in the form that is fastest to step by,
 * and its last stack.
 *
 * There is a fixed table of these; a thread gets one at its first walk, by the
 * address of its thread-local object, or goes without. No lock and no
 * waiting: another thread's is left alone, and a walk in a signal handler that
 * came in the middle of a walk goes without, too.
 *
 * Invariant: what is cached can be wrong about the stack, never about the code:
 * rules are of one generation, and each word of the stack that a cached frame
 * came from is read again and compared.
 */

#define SEEP_UNWIND_CACHES 128U
#define SEEP_CACHED_SETS 64U
#define SEEP_CACHED_WAYS 4U
#define SEEP_NOTES 32U

/* A stack is kept with room before it, for frames that come to be there. */
#define SEEP_CACHED_BEFORE 32U
#define SEEP_CACHED_FRAMES (SEEP_CACHED_BEFORE + SEEP_STACK_FRAMES_MAX)

enum seep_cached_kind {
    SEEP_CACHED_ODD,
    SEEP_CACHED_RSP,    /* CFA = rsp + offset */
    SEEP_CACHED_FRAMED, /* CFA = rbp + 16, and the caller's rbp lies at rbp */
};

/* Places: where a frame saved rbp (bits 0..15) and rbx (16..31), from the CFA
 * on; 0: nowhere; odd: lost; with this bit, its rule is FRAMED. */
#define SEEP_PLACES_FRAMED UINT32_C(2)
#define SEEP_FRAMED_BYTES ((intptr_t)(2 * sizeof(uintptr_t)))

/** A rule, taken apart. */
struct seep_cached_rule {
    uintptr_t back;  /* the return address that it is of; 0: none */
    intptr_t offset; /* RSP: CFA less rsp; else far beyond any stack */
    uint64_t rule;   /* the whole of it */
    uint32_t places;
    uint16_t next[2]; /* where the callers lie that it had, in bytes */
    uint8_t kind;
};

/* A note: a word that a frame's rule read, beside its return address. Bits
 * 0..2 are the register that it was read for, bits 48.. the frame. */
#define SEEP_NOTE_WORD UINT64_C(7) /* for no register */
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
struct seep_cached_stack {
    size_t first;
    size_t end;
    size_t note_count; /* > SEEP_NOTES: too many, not to be reused */
    uintptr_t high;
    bool ended;  /* the last frame has no caller */
    bool framed; /* a frame's rbp lies where the frame before has saved it */
    bool paired; /* the pairs are there */
    uintptr_t at[SEEP_WALK_REGISTERS]; /* in the last frame */
    uintptr_t pcs[SEEP_CACHED_FRAMES];
    uintptr_t sps[SEEP_CACHED_FRAMES + 1]; /* closed by UINTPTR_MAX */
    uint32_t places[SEEP_CACHED_FRAMES];
    struct seep_note notes[SEEP_NOTES];
    /* What lies below each frame but the first: rbp, where it is FRAMED and so
     * is the one before, and its return address. */
    seep_pair pairs[SEEP_CACHED_FRAMES];
    seep_pair masks[SEEP_CACHED_FRAMES];
};

/** Make the pair of a frame that is not the first. */
static inline void seep_cached_stack_pair(struct seep_cached_stack *frames,
                                          size_t frame)
{
    bool both = (frames->places[frame] & frames->places[frame - 1] &
                 SEEP_PLACES_FRAMED) != 0;

    frames->pairs[frame] = (seep_pair){
        frames->sps[frame + 1] - SEEP_FRAMED_BYTES, frames->pcs[frame] + 1};
    frames->masks[frame] = (seep_pair){both ? UINTPTR_MAX : 0, UINTPTR_MAX};
}

/** Where the walk joined the last stack. */
struct seep_joint {
    size_t at;    /* frame of the last stack; SEEP_CACHED_FRAMES: nowhere */
    size_t count; /* frames of the walk before it */
    uintptr_t registers[SEEP_WALK_REGISTERS]; /* where they lay there */
};

struct seep_unwind_cache {
    _Atomic uintptr_t owner; /* 0: free */
    _Atomic uintptr_t busy;  /* frame of the walk that uses it; 0: none */
    uint64_t generation;
    struct seep_cached_stack *last; /* the stack of the walk before */
    struct seep_cached_stack *now;  /* of the one under way */
    uint32_t victim;                /* the way that is given up next */
    struct seep_cached_rule spare;  /* for a rule that must not be kept */
    struct seep_cached_rule start;  /* its `next` is where a walk began last */
    /* And its, where one went on behind the last stack. */
    struct seep_cached_rule resumed;
    struct seep_walk walk;
    struct seep_joint joint;
    uintptr_t before[SEEP_WALK_REGISTERS]; /* `at` before the last odd step */
    bool ended;                            /* by a frame without a caller */
    uint8_t turn;
    bool reusable; /* the last walk joined the last stack, which has ended */
    struct seep_cached_rule rules[SEEP_CACHED_SETS * SEEP_CACHED_WAYS];
    struct seep_cached_stack frames[2];
};

/** struct seep_unwind_cache[SEEP_UNWIND_CACHES] */
extern seep_own_table seep_unwind_caches __attribute__((visibility("hidden")));

static inline uint32_t seep_unwind_cache_index(uintptr_t thread)
{
    return (uint32_t)(thread * UINT64_C(0x9e3779b97f4a7c15) >> 40) %
           SEEP_UNWIND_CACHES;
}

/** The calling thread's, if it has one that is free to be taken; else NULL.
 * @thread is an address that is the thread's as long as it lives. */
static inline struct seep_unwind_cache *seep_unwind_cache_of(uintptr_t thread)
{
    struct seep_unwind_cache *caches = seep_own_get(&seep_unwind_caches);
    struct seep_unwind_cache *cache;

    if (seep_unlikely(caches == NULL)) {
        return NULL;
    }
    cache = caches + seep_unwind_cache_index(thread);
    return seep_likely(seep_word_load(&cache->owner) == thread &&
                       seep_word_load(&cache->busy) == 0)
               ? cache
               : NULL;
}

/** For one walk that begins at @sp. */
static inline void seep_unwind_cache_enter(struct seep_unwind_cache *cache,
                                           uintptr_t sp)
{
    seep_word_store(&cache->busy, sp);
    atomic_signal_fence(memory_order_seq_cst);
}

/**
 * Both at once, also for a thread that has none yet, or has it in use.
 *
 * @param may_call  system calls are welcome
 * @return NULL: go without
 */
struct seep_unwind_cache *
seep_unwind_cache_take(uintptr_t thread, uintptr_t sp,
                       const struct seep_stack_bounds *bounds, bool may_call);

/** The walk is over. */
static inline void seep_unwind_cache_leave(struct seep_unwind_cache *cache)
{
    atomic_signal_fence(memory_order_seq_cst);
    seep_word_store(&cache->busy, 0);
}

/** Forget all that is not of @generation. */
void seep_unwind_cache_renew(struct seep_unwind_cache *cache,
                             uint64_t generation);

/** Forget the last stack. */
void seep_unwind_cache_forget(struct seep_unwind_cache *cache);

/** The rule of what returns to @back, which called what @from is of. */
struct seep_cached_rule *seep_unwind_cache_rule(struct seep_walk *walk,
                                                struct seep_cached_rule *from,
                                                uintptr_t back);

/** The rules among which that of what returns to @back is, if it is kept. */
static inline struct seep_cached_rule *
seep_unwind_cache_set(struct seep_unwind_cache *cache, uintptr_t back)
{
    uint64_t hash = back * UINT64_C(0x9e3779b97f4a7c15);

    return &cache->rules[(hash >> 58) % SEEP_CACHED_SETS * SEEP_CACHED_WAYS];
}

/** A rule that followed that of @from once. */
static inline struct seep_cached_rule *
seep_unwind_cache_next(struct seep_unwind_cache *cache,
                       const struct seep_cached_rule *from, unsigned int which)
{
    return (struct seep_cached_rule *)((char *)cache->rules +
                                       from->next[which]);
}

/*
 * reuse.c: the outer part of a stack, taken over from the last walk of the
 * thread.
 *
 * A walk that arrives at a frame of the last stack, with the same pc and stack
 * pointer, would go on through the same frames as long as it reads the same
 * words. So those words are read and compared, and the frames are copied.
 *
 * Invariant: what is taken over is what the walk would have found by itself.
 */

/** Where @number lies in @frame of the walk: at most its next. */
uintptr_t seep_reuse_settle(struct seep_walk *walk,
                            enum seep_walk_register number, size_t frame);

/**
 * Join at the state that @walk is in, if it can: the frames up to the last
 * but one are copied, and the walk stands in the last.
 *
 * @param old  the stack pointer of the last stack that is the walk's, of a
 * frame with its pc; moved on
 */
bool seep_reuse_join(struct seep_walk *walk, const uintptr_t **old);

/** Remember the stack of a walk that is over. */
void seep_reuse_keep(struct seep_walk *walk);

/**
 * The whole walk for the case that most captures are: some inner frames are
 * others than at the thread's last one, and from there on all is as it was.
 * Simple rules lead to a frame of the last stack, which must have been walked
 * to its end; the rest is taken over, and the new frames are kept before those.
 *
 * @param cache  which was entered, and of which `reusable` is true
 * @return number of frames; 0: it is to be walked, and nothing that a walk
 *         rests on has been changed
 */
size_t seep_reuse_walk(const struct seep_capture_start *start,
                       const struct seep_stack_bounds *bounds,
                       struct seep_unwind_cache *cache, uintptr_t *pcs,
                       size_t capacity);

#endif
