/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The entries of the ledger: a fixed table in which a key has two windows of
 * slots. A slot is claimed and released where it is; there are no tombstones,
 * and a look-up reads at most the two windows.
 *
 * Invariant: .state is the only word by which an entry changes hands. EMPTY
 * and BUSY belong to one thread, who alone writes the other fields; in LIVE
 * and OUT they stand still. In LIVE references or maps are more than 0 and the
 * recorder knows the entry; in OUT both are 0, and it was told of the end.
 *
 * One word more may be written to what is BUSY: that it is GONE.
 *
 * A thread that is killed, or leaves by a jump, while an entry is BUSY costs
 * that slot and nothing else.
 */
#ifndef SEEP_CUDA_SLOTS_H
#define SEEP_CUDA_SLOTS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/word.h"
#include "cuda/ledger.h"

#define SEEP_CUDA_SLOTS (1U << 17)
#define SEEP_CUDA_WINDOW 16U
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

/** A slot in one life of it: generation << 32 | index + 1; 0: none. */
typedef uint64_t seep_cuda_reference;

static inline enum seep_cuda_phase seep_cuda_phase(uint64_t state)
{
    return (enum seep_cuda_phase)(state & SEEP_CUDA_PHASE_MASK);
}

static inline uint32_t seep_cuda_generation(uint64_t state)
{
    return (uint32_t)(state / SEEP_CUDA_ONE_GENERATION);
}

static inline uint32_t seep_cuda_slot_of(seep_cuda_reference reference)
{
    return (uint32_t)reference - 1;
}

static inline seep_cuda_reference seep_cuda_reference_to(uint32_t slot,
                                                         uint64_t state)
{
    return (uint64_t)seep_cuda_generation(state) << 32 | (slot + 1);
}

extern struct seep_cuda_entry seep_cuda_entries[SEEP_CUDA_SLOTS]
    __attribute__((visibility("hidden")));

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

/** What an entry is found by: never 0. */
uint64_t seep_cuda_slot_tag(enum seep_cuda_kind kind, uint64_t value);

/**
 * The next slot of @tag, as long as there is one; *@step is 0 at first.
 *
 * @return SEEP_CUDA_SLOT_NONE at the end. @p ret_state is of one and the same
 *         life of it: EMPTY or BUSY if it is about to come or to go
 */
uint32_t seep_cuda_slot_next(uint64_t tag, uint32_t *step, uint64_t *ret_state);

/** A slot for @tag, BUSY, with its generation; or SEEP_CUDA_SLOT_NONE. */
uint32_t seep_cuda_slot_claim(uint64_t tag, uint64_t *ret_state);

/** Give a BUSY slot its end. */
void seep_cuda_slot_release(uint32_t slot);

/** The state of @slot; waits a little (microseconds) for one who is busy. */
uint64_t seep_cuda_slot_state(uint32_t slot);

/** From @seen, exactly, to another phase or count. */
bool seep_cuda_slot_change(uint32_t slot, uint64_t seen, uint64_t next);

/** As above from one's own BUSY; @return false: it is GONE by now */
bool seep_cuda_slot_publish(uint32_t slot, uint64_t busy, uint64_t next);

/** The next slot from @slot on that may be in use. */
uint32_t seep_cuda_slot_used(uint32_t slot);

#endif
