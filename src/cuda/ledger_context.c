/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What ends with its context, and sums over all that is live; see ledger.h.
 *
 * Invariant: whatever was added after a mark outlives the context that the
 * mark was taken for.
 */
#include <stddef.h>

#include "cuda/entry.h"
#include "cuda/slots.h"

static _Atomic uint32_t marks;

uint32_t seep_cuda_entry_mark(void)
{
    return atomic_load_explicit(&marks, memory_order_relaxed);
}

/* Relaxed: a context is created again after the driver has destroyed it, and
 * the driver's own locks order this before what is allocated there. */
uint32_t seep_cuda_ledger_mark(void)
{
    return atomic_fetch_add_explicit(&marks, 1, memory_order_relaxed);
}

static uint64_t state_at(uint32_t slot)
{
    /* Acquire: its fields are seen; pairs with the release in
     * seep_cuda_slot_publish(). */
    return atomic_load_explicit(&seep_cuda_entries[slot].state,
                                memory_order_acquire);
}

void seep_cuda_ledger_context_gone(uint32_t mark, const void *context)
{
    const struct seep_cuda_events *events = seep_cuda_entry_events();

    if (events == NULL || context == NULL) {
        return;
    }
    for (uint32_t slot = seep_cuda_slot_used(0); slot != SEEP_CUDA_SLOT_NONE;
         slot = seep_cuda_slot_used(slot + 1)) {
        const struct seep_cuda_entry *entry = &seep_cuda_entries[slot];
        uint64_t state = state_at(slot);

        if (seep_cuda_phase(state) == SEEP_CUDA_PHASE_LIVE &&
            seep_word_load(&entry->context) == (uintptr_t)context &&
            (int32_t)(seep_cuda_mark_of(entry) - mark) <= 0) {
            seep_cuda_entry_gone(events, seep_cuda_reference_to(slot, state));
        }
    }
}

uint64_t seep_cuda_ledger_live_bytes(enum seep_space space, int device)
{
    uint64_t bytes = 0;

    for (uint32_t slot = seep_cuda_slot_used(0); slot != SEEP_CUDA_SLOT_NONE;
         slot = seep_cuda_slot_used(slot + 1)) {
        const struct seep_cuda_entry *entry = &seep_cuda_entries[slot];

        if (seep_cuda_phase(state_at(slot)) == SEEP_CUDA_PHASE_LIVE &&
            !seep_cuda_is_silent(entry) && seep_cuda_space_of(entry) == space &&
            (device < 0 || seep_cuda_device_of(entry) == device)) {
            bytes += seep_word_load(&entry->size_bytes);
        }
    }
    return bytes;
}

uint64_t seep_cuda_ledger_live_count(void)
{
    uint64_t count = 0;

    for (uint32_t slot = seep_cuda_slot_used(0); slot != SEEP_CUDA_SLOT_NONE;
         slot = seep_cuda_slot_used(slot + 1)) {
        count += seep_cuda_phase(state_at(slot)) == SEEP_CUDA_PHASE_LIVE;
    }
    return count;
}
