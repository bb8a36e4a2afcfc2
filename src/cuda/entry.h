/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * One entry of the ledger, between ledger.c, which has the table and the life
 * of an entry, and ledger_ranges.c, which goes over many.
 *
 * Invariant: a reference is good for one life of its slot; whoever holds an old
 * one finds the entry gone. Any thread may call any of these.
 */
#ifndef SEEP_CUDA_ENTRY_H
#define SEEP_CUDA_ENTRY_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/own.h"
#include "base/text.h"
#include "cuda/ledger.h"

#define SEEP_CUDA_SLOTS (1U << 17)
#define SEEP_CUDA_SLOT_NONE UINT32_MAX

enum seep_cuda_phase {
    SEEP_CUDA_PHASE_EMPTY = 0,
    SEEP_CUDA_PHASE_BUSY = 1,
    SEEP_CUDA_PHASE_LIVE = 2,
    SEEP_CUDA_PHASE_OUT = 3,
};

/* state = generation 24 | references 16 | maps 21 | gone 1 | phase 2 */
#define SEEP_CUDA_PHASE_MASK UINT64_C(3)
/* Of a BUSY entry: the driver has taken it, so whoever is at work on it is to
 * end it. */
#define SEEP_CUDA_GONE (UINT64_C(1) << 2)
#define SEEP_CUDA_ONE_MAP (UINT64_C(1) << 3)
#define SEEP_CUDA_ONE_REFERENCE (UINT64_C(1) << 24)
#define SEEP_CUDA_ONE_GENERATION (UINT64_C(1) << 40)
#define SEEP_CUDA_MAPS_MASK (SEEP_CUDA_ONE_REFERENCE - SEEP_CUDA_ONE_MAP)
#define SEEP_CUDA_REFERENCES_MASK \
    (SEEP_CUDA_ONE_GENERATION - SEEP_CUDA_ONE_REFERENCE)
#define SEEP_CUDA_COUNTS_MASK (SEEP_CUDA_MAPS_MASK | SEEP_CUDA_REFERENCES_MASK)

struct seep_cuda_entry {
    _Atomic uint64_t state;
    _Atomic uint64_t value;
    _Atomic uint64_t size_bytes;
    _Atomic uint64_t context;
    _Atomic uint64_t event_key;
    _Atomic uint64_t holder; /* a reference below; 0: none */
    _Atomic uint64_t traits; /* mark 32 | device + 1 16 | silent 1 |
                                space 8 | kind 7 */
    _Atomic uint64_t out;    /* of the end: tick 32 | recorded 1 */
};

static_assert(sizeof(struct seep_cuda_entry) == 64, "one line");

/* A reference is a slot in one life of it: generation << 32 | index + 1; 0:
 * none. */

static inline enum seep_cuda_phase seep_cuda_phase_of(uint64_t state)
{
    return (enum seep_cuda_phase)(state & SEEP_CUDA_PHASE_MASK);
}

static inline uint32_t seep_cuda_generation_of(uint64_t state)
{
    return (uint32_t)(state / SEEP_CUDA_ONE_GENERATION);
}

static inline uint32_t seep_cuda_slot_of(uint64_t reference)
{
    return (uint32_t)reference - 1;
}

static inline uint64_t seep_cuda_reference_to(uint32_t slot, uint64_t state)
{
    return (uint64_t)seep_cuda_generation_of(state) << 32 | (slot + 1);
}

static inline enum seep_cuda_kind
seep_cuda_kind_of(const struct seep_cuda_entry *entry)
{
    return (enum seep_cuda_kind)(seep_word_load(&entry->traits) & 127);
}

static inline enum seep_space
seep_cuda_space_of(const struct seep_cuda_entry *entry)
{
    return (enum seep_space)(seep_word_load(&entry->traits) >> 7 & 255);
}

static inline bool seep_cuda_is_silent(const struct seep_cuda_entry *entry)
{
    return (seep_word_load(&entry->traits) >> 15 & 1) != 0;
}

static inline int seep_cuda_device_of(const struct seep_cuda_entry *entry)
{
    return (int)(seep_word_load(&entry->traits) >> 16 & 0xffff) - 1;
}

static inline uint32_t seep_cuda_mark_of(const struct seep_cuda_entry *entry)
{
    return (uint32_t)(seep_word_load(&entry->traits) >> 32);
}

/* The table: there once something was told of. */
struct seep_cuda_slots {
    struct seep_cuda_entry entries[SEEP_CUDA_SLOTS];
    /* Apart from the entries: a window of them is two lines. */
    _Atomic uint64_t tags[SEEP_CUDA_SLOTS];
};

extern seep_own_table seep_cuda_table __attribute__((visibility("hidden")));

/** Of a slot that somebody has found. */
static inline struct seep_cuda_entry *seep_cuda_entry_at(uint32_t slot)
{
    return &((struct seep_cuda_slots *)seep_own_get(&seep_cuda_table))
                ->entries[slot];
}

/* Acquire: what is live is seen with its fields and its tag; pairs with the
 * release in slot_change(). */
static inline uint64_t seep_cuda_state_at(uint32_t slot)
{
    return atomic_load_explicit(&seep_cuda_entry_at(slot)->state,
                                memory_order_acquire);
}

/** The next slot from @slot on that may be in use. */
uint32_t seep_cuda_slot_used(uint32_t slot);

/** An entry of @value in one of @phases; 0: none. @held: if it is LIVE, one
 * that has references. */
uint64_t seep_cuda_entry_find(enum seep_cuda_kind kind, uint64_t value,
                              unsigned phases, bool held);

/** The LIVE entry of @value, of several one with references; 0: none. */
uint64_t seep_cuda_entry_holder(enum seep_cuda_kind kind, uint64_t value);

/** One of @unit less; with the last one the entry goes OUT, before the driver
 * is asked. @return false: it is not LIVE in that life, or has none of @unit */
bool seep_cuda_entry_lower(uint64_t reference, uint64_t unit);

/** One of @unit more; from OUT it comes back, for the driver refused. */
bool seep_cuda_entry_raise(uint64_t reference, uint64_t unit);

/** The driver took it: an entry that is OUT is no more, nor its holder if that
 * is OUT too. @return false: it is not OUT, or not by this thread */
bool seep_cuda_entry_end(uint64_t reference);

/** The driver took it, that is certain: whatever phase it is in, it is no more.
 * @return the phase that it was found in */
enum seep_cuda_phase seep_cuda_entry_gone(uint64_t reference);

#endif
