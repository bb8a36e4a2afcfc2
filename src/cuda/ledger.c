/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is live in the driver, one value at a time; see ledger.h. */
#include "cuda/ledger.h"

#include <stddef.h>

#include "cuda/entry.h"
#include "cuda/slots.h"

static _Atomic bool abandoned;
static _Atomic bool used;

const struct seep_cuda_events *seep_cuda_entry_events(void)
{
    if (atomic_load_explicit(&abandoned, memory_order_relaxed)) {
        return NULL;
    }
    return seep_cuda_events();
}

void seep_cuda_ledger_abandon(void)
{
    atomic_store_explicit(&abandoned, true, memory_order_relaxed);
}

bool seep_cuda_ledger_was_used(void)
{
    return atomic_load_explicit(&used, memory_order_relaxed);
}

/* Is one more of the same value one more reference to the same thing? Of one
 * that is OUT it is not: the last reference is being closed, and if the driver
 * has not done so yet, the new one is what stays of it. */
static bool counts_references(const struct seep_cuda_block *block)
{
    return block->kind == SEEP_CUDA_IPC ||
           (block->kind == SEEP_CUDA_HANDLE &&
            block->space == SEEP_SPACE_IMPORTED);
}

enum before { BEFORE_NOTHING, BEFORE_OTHER_KEY, BEFORE_COUNTED };

/* One entry that has the value of @block, as far as it is in the way. */
static enum before clear_one(const struct seep_cuda_events *events,
                             const struct seep_cuda_block *block, uint32_t slot,
                             uint64_t state)
{
    seep_cuda_reference reference = seep_cuda_reference_to(slot, state);
    enum seep_cuda_phase phase = seep_cuda_phase(state);

    if (counts_references(block) && phase != SEEP_CUDA_PHASE_OUT) {
        return seep_cuda_entry_again(reference) ? BEFORE_COUNTED
                                                : BEFORE_OTHER_KEY;
    }
    if (phase == SEEP_CUDA_PHASE_EMPTY ||
        (phase == SEEP_CUDA_PHASE_LIVE &&
         (state & SEEP_CUDA_REFERENCES_MASK) == 0)) {
        return BEFORE_OTHER_KEY;
    }
    phase = seep_cuda_entry_gone(events, reference);
    if (phase == SEEP_CUDA_PHASE_LIVE) {
        seep_cuda_count_add(SEEP_CUDA_COUNT_REPLACED);
    }
    return phase == SEEP_CUDA_PHASE_BUSY ? BEFORE_OTHER_KEY : BEFORE_NOTHING;
}

/*
 * The driver gives out a value that is here already, so what is here is gone:
 * its free is under way (OUT), or was not seen. Memory that is released and
 * still mapped is not. What another thread is at work on may yet be told of:
 * then the new entry goes by another key.
 */
static enum before clear_way(const struct seep_cuda_events *events,
                             const struct seep_cuda_block *block, uint64_t tag)
{
    enum before before = BEFORE_NOTHING;
    uint32_t step = 0;
    uint64_t state;
    uint32_t slot;

    while ((slot = seep_cuda_slot_next(tag, &step, &state)) !=
           SEEP_CUDA_SLOT_NONE) {
        enum before one = clear_one(events, block, slot, state);

        if (one == BEFORE_COUNTED) {
            return one;
        }
        before = one == BEFORE_NOTHING ? before : one;
    }
    return before;
}

void seep_cuda_ledger_add(const struct seep_capture_start *from,
                          const struct seep_cuda_block *block)
{
    const struct seep_cuda_events *events = seep_cuda_entry_events();
    struct seep_cuda_block kept = *block;
    uint64_t tag = seep_cuda_slot_tag(block->kind, block->value);
    enum before before;
    uint64_t state;
    uint32_t slot;

    if (events == NULL || block->value == 0) {
        return;
    }
    atomic_store_explicit(&used, true, memory_order_relaxed);
    before = clear_way(events, block, tag);
    if (before == BEFORE_COUNTED) {
        return;
    }
    slot = seep_cuda_slot_claim(tag, &state);
    if (slot == SEEP_CUDA_SLOT_NONE) {
        seep_cuda_count_add(SEEP_CUDA_COUNT_FULL);
        return;
    }
    if (block->holder != 0) {
        kept.holder = seep_cuda_entry_holder(block->holder_kind, block->holder);
    }
    seep_cuda_entry_begin(events, from, &kept, slot, state,
                          before == BEFORE_OTHER_KEY);
}

void seep_cuda_ledger_retain(enum seep_cuda_kind kind, uint64_t value)
{
    const struct seep_cuda_events *events = seep_cuda_entry_events();
    seep_cuda_reference reference;

    if (events == NULL || value == 0) {
        return;
    }
    reference = seep_cuda_entry_holder(kind, value);
    if (!seep_cuda_entry_raise(events, reference, SEEP_CUDA_ONE_REFERENCE)) {
        seep_cuda_count_add(SEEP_CUDA_COUNT_UNKNOWN);
    }
}

static struct seep_cuda_leave leave_of(seep_cuda_reference reference,
                                       bool again)
{
    return (struct seep_cuda_leave){
        .slot = (uint32_t)reference,
        .generation = (uint32_t)(reference >> 32),
        .again = again,
    };
}

struct seep_cuda_leave seep_cuda_ledger_leave(enum seep_cuda_kind kind,
                                              uint64_t value)
{
    const struct seep_cuda_events *events = seep_cuda_entry_events();
    seep_cuda_reference reference;

    if (events == NULL || value == 0) {
        return leave_of(0, false);
    }
    reference = seep_cuda_entry_find(kind, value, SEEP_CUDA_IN(LIVE), true);
    if (reference != 0 &&
        seep_cuda_entry_lower(events, reference, SEEP_CUDA_ONE_REFERENCE)) {
        return leave_of(reference, false);
    }
    seep_cuda_count_add(SEEP_CUDA_COUNT_UNKNOWN);
    return leave_of(
        seep_cuda_entry_find(
            kind, value,
            SEEP_CUDA_IN(LIVE) | SEEP_CUDA_IN(BUSY) | SEEP_CUDA_IN(OUT), true),
        true);
}

/* Of two frees of the same the driver takes one, and refuses the other, which
 * may have come first here: then that puts back what is gone. */
void seep_cuda_ledger_settle(const struct seep_cuda_leave *leave, bool gone)
{
    const struct seep_cuda_events *events = seep_cuda_entry_events();
    seep_cuda_reference reference =
        (uint64_t)leave->generation << 32 | leave->slot;

    if (events == NULL || leave->slot == 0) {
        return;
    }
    if (gone && leave->again) {
        seep_cuda_entry_gone(events, reference);
    } else if (gone) {
        seep_cuda_entry_end(reference);
    } else if (!leave->again) {
        seep_cuda_entry_raise(events, reference, SEEP_CUDA_ONE_REFERENCE);
    }
}
