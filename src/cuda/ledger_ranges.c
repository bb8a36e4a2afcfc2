/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What goes over many entries of the ledger: ranges of addresses where physical
 * memory is mapped, and contexts that end; see ledger.h.
 *
 * Invariant: a mapping is an entry by its first address, and holds its handle
 * from cuMemMap to the cuMemUnmap that covers it whole. What was added after a
 * mark outlives the context that the mark was taken for.
 */
#include <stddef.h>

#include "cuda/entry.h"

/* Mappings that were not closed: without one, no table is searched. */
static _Atomic uint64_t map_count;

void seep_cuda_ledger_map(const struct seep_capture_start *from,
                          uint64_t address, uint64_t size_bytes,
                          uint64_t handle)
{
    uint64_t holder = seep_cuda_entry_holder(SEEP_CUDA_HANDLE, handle);
    const struct seep_cuda_entry *entry =
        holder != 0 ? seep_cuda_entry_at(seep_cuda_slot_of(holder)) : NULL;
    bool is_import =
        entry != NULL && seep_cuda_space_of(entry) == SEEP_SPACE_IMPORTED;

    if (seep_cuda_ledger_events() == NULL) {
        return;
    }
    if (entry == NULL) {
        seep_cuda_count_add(SEEP_COUNT_CUDA_UNKNOWN);
    }
    seep_word_fetch_add(&map_count, 1);
    seep_cuda_ledger_add(
        from, &(struct seep_cuda_block){
                  .kind = SEEP_CUDA_MAP,
                  .space = is_import ? SEEP_SPACE_IMPORTED : SEEP_SPACE_DEVICE,
                  .device = entry != NULL ? seep_cuda_device_of(entry) : -1,
                  .silent = !is_import,
                  .value = address,
                  .size_bytes = size_bytes,
                  .holder = handle,
                  .holder_kind = SEEP_CUDA_HANDLE,
              });
}

typedef void visit_function(uint64_t reference);

static bool lies_inside(const struct seep_cuda_entry *entry,
                        const struct seep_cuda_leave_range *range)
{
    uint64_t address = seep_word_load(&entry->value);
    uint64_t size_bytes = seep_word_load(&entry->size_bytes);

    return address >= range->address && size_bytes <= range->size_bytes &&
           address - range->address <= range->size_bytes - size_bytes;
}

/* Mapping by mapping, as long as each begins where the last one ended.
 * @return the bytes of the range that they cover */
static uint64_t walk(const struct seep_cuda_leave_range *range,
                     enum seep_cuda_phase phase, visit_function *visit)
{
    uint64_t done_bytes = 0;

    while (done_bytes < range->size_bytes) {
        uint64_t reference = seep_cuda_entry_find(
            SEEP_CUDA_MAP, range->address + done_bytes, 1U << phase, false);
        const struct seep_cuda_entry *entry;
        uint64_t size_bytes;

        if (reference == 0) {
            break;
        }
        entry = seep_cuda_entry_at(seep_cuda_slot_of(reference));
        size_bytes = seep_word_load(&entry->size_bytes);
        if (size_bytes == 0 || !lies_inside(entry, range)) {
            break;
        }
        visit(reference);
        done_bytes += size_bytes;
    }
    return done_bytes;
}

/* All of the table, where there are gaps between them. */
static bool search(const struct seep_cuda_leave_range *range,
                   enum seep_cuda_phase phase, visit_function *visit)
{
    bool found = false;

    if (seep_word_load(&map_count) == 0) {
        return false;
    }
    for (uint32_t slot = seep_cuda_slot_used(0); slot != SEEP_CUDA_SLOT_NONE;
         slot = seep_cuda_slot_used(slot + 1)) {
        const struct seep_cuda_entry *entry = seep_cuda_entry_at(slot);
        uint64_t state = seep_cuda_state_at(slot);

        if (seep_cuda_phase_of(state) == phase &&
            seep_cuda_kind_of(entry) == SEEP_CUDA_MAP &&
            lies_inside(entry, range)) {
            visit(seep_cuda_reference_to(slot, state));
            found = true;
        }
    }
    return found;
}

static bool each(const struct seep_cuda_leave_range *range,
                 enum seep_cuda_phase phase, visit_function *visit)
{
    uint64_t done_bytes = walk(range, phase, visit);

    return done_bytes == range->size_bytes
               ? done_bytes != 0
               : search(range, phase, visit) || done_bytes != 0;
}

static void leave(uint64_t reference)
{
    seep_cuda_entry_lower(reference, SEEP_CUDA_ONE_REFERENCE);
}

static void end(uint64_t reference)
{
    if (seep_cuda_entry_end(reference)) {
        atomic_fetch_sub_explicit(&map_count, 1, memory_order_relaxed);
    }
}

static void stay(uint64_t reference)
{
    seep_cuda_entry_raise(reference, SEEP_CUDA_ONE_REFERENCE);
}

struct seep_cuda_leave_range seep_cuda_ledger_unmap(uint64_t address,
                                                    uint64_t size_bytes)
{
    struct seep_cuda_leave_range range = {address, size_bytes, false};

    if (seep_cuda_ledger_events() != NULL) {
        range.known = each(&range, SEEP_CUDA_PHASE_LIVE, leave);
        if (!range.known) {
            seep_cuda_count_add(SEEP_COUNT_CUDA_UNKNOWN);
        }
    }
    return range;
}

void seep_cuda_ledger_unmap_settle(const struct seep_cuda_leave_range *range,
                                   bool gone)
{
    if (seep_cuda_ledger_events() != NULL && range->known) {
        each(range, SEEP_CUDA_PHASE_OUT, gone ? end : stay);
    }
}

/* What ends with its context. */

void seep_cuda_ledger_context_gone(uint32_t mark, const void *context)
{
    if (seep_cuda_ledger_events() == NULL || context == NULL) {
        return;
    }
    for (uint32_t slot = seep_cuda_slot_used(0); slot != SEEP_CUDA_SLOT_NONE;
         slot = seep_cuda_slot_used(slot + 1)) {
        const struct seep_cuda_entry *entry = seep_cuda_entry_at(slot);
        uint64_t state = seep_cuda_state_at(slot);

        if (seep_cuda_phase_of(state) == SEEP_CUDA_PHASE_LIVE &&
            seep_word_load(&entry->context) == (uintptr_t)context &&
            (int32_t)(seep_cuda_mark_of(entry) - mark) <= 0) {
            seep_cuda_entry_gone(seep_cuda_reference_to(slot, state));
        }
    }
}
