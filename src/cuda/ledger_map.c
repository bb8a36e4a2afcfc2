/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where physical memory is mapped: ranges that keep a handle alive; see
 * ledger.h.
 *
 * Invariant: a mapping is an entry of the table by its first address, and
 * holds its handle from cuMemMap to the cuMemUnmap that covers it whole.
 */
#include <stddef.h>

#include "cuda/entry.h"
#include "cuda/slots.h"

/* Mappings that were not closed: without one, no table is searched. */
static _Atomic uint64_t map_count;

void seep_cuda_ledger_map(const struct seep_capture_start *from,
                          uint64_t address, uint64_t size_bytes,
                          uint64_t handle)
{
    seep_cuda_reference holder =
        seep_cuda_entry_holder(SEEP_CUDA_HANDLE, handle);
    const struct seep_cuda_entry *entry =
        holder != 0 ? &seep_cuda_entries[seep_cuda_slot_of(holder)] : NULL;
    bool is_import =
        entry != NULL && seep_cuda_space_of(entry) == SEEP_SPACE_IMPORTED;

    if (seep_cuda_entry_events() == NULL) {
        return;
    }
    if (entry == NULL) {
        seep_cuda_count_add(SEEP_CUDA_COUNT_UNKNOWN);
    }
    atomic_fetch_add_explicit(&map_count, 1, memory_order_relaxed);
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

typedef void visit_function(const struct seep_cuda_events *events,
                            seep_cuda_reference reference);

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
static uint64_t walk(const struct seep_cuda_events *events,
                     const struct seep_cuda_leave_range *range,
                     enum seep_cuda_phase phase, visit_function *visit)
{
    uint64_t done_bytes = 0;

    while (done_bytes < range->size_bytes) {
        seep_cuda_reference reference = seep_cuda_entry_find(
            SEEP_CUDA_MAP, range->address + done_bytes, 1U << phase, false);
        const struct seep_cuda_entry *entry;
        uint64_t size_bytes;

        if (reference == 0) {
            break;
        }
        entry = &seep_cuda_entries[seep_cuda_slot_of(reference)];
        size_bytes = seep_word_load(&entry->size_bytes);
        if (size_bytes == 0 || !lies_inside(entry, range)) {
            break;
        }
        visit(events, reference);
        done_bytes += size_bytes;
    }
    return done_bytes;
}

/* All of the table, where there are gaps between them. */
static bool search(const struct seep_cuda_events *events,
                   const struct seep_cuda_leave_range *range,
                   enum seep_cuda_phase phase, visit_function *visit)
{
    bool found = false;

    if (atomic_load_explicit(&map_count, memory_order_relaxed) == 0) {
        return false;
    }
    for (uint32_t slot = seep_cuda_slot_used(0); slot != SEEP_CUDA_SLOT_NONE;
         slot = seep_cuda_slot_used(slot + 1)) {
        const struct seep_cuda_entry *entry = &seep_cuda_entries[slot];
        /* Acquire: its fields are seen; pairs with the release in
         * seep_cuda_slot_publish(). */
        uint64_t state =
            atomic_load_explicit(&entry->state, memory_order_acquire);

        if (seep_cuda_phase(state) == phase &&
            seep_cuda_kind_of(entry) == SEEP_CUDA_MAP &&
            lies_inside(entry, range)) {
            visit(events, seep_cuda_reference_to(slot, state));
            found = true;
        }
    }
    return found;
}

static bool each(const struct seep_cuda_events *events,
                 const struct seep_cuda_leave_range *range,
                 enum seep_cuda_phase phase, visit_function *visit)
{
    uint64_t done_bytes = walk(events, range, phase, visit);

    return done_bytes == range->size_bytes
               ? done_bytes != 0
               : search(events, range, phase, visit) || done_bytes != 0;
}

static void leave(const struct seep_cuda_events *events,
                  seep_cuda_reference reference)
{
    seep_cuda_entry_lower(events, reference, SEEP_CUDA_ONE_REFERENCE);
}

static void end(const struct seep_cuda_events *events,
                seep_cuda_reference reference)
{
    (void)events;
    if (seep_cuda_entry_end(reference)) {
        atomic_fetch_sub_explicit(&map_count, 1, memory_order_relaxed);
    }
}

static void stay(const struct seep_cuda_events *events,
                 seep_cuda_reference reference)
{
    seep_cuda_entry_raise(events, reference, SEEP_CUDA_ONE_REFERENCE);
}

struct seep_cuda_leave_range seep_cuda_ledger_unmap(uint64_t address,
                                                    uint64_t size_bytes)
{
    const struct seep_cuda_events *events = seep_cuda_entry_events();
    struct seep_cuda_leave_range range = {address, size_bytes, false};

    if (events != NULL) {
        range.known = each(events, &range, SEEP_CUDA_PHASE_LIVE, leave);
        if (!range.known) {
            seep_cuda_count_add(SEEP_CUDA_COUNT_UNKNOWN);
        }
    }
    return range;
}

void seep_cuda_ledger_unmap_settle(const struct seep_cuda_leave_range *range,
                                   bool gone)
{
    const struct seep_cuda_events *events = seep_cuda_entry_events();

    if (events != NULL && range->known) {
        each(events, range, SEEP_CUDA_PHASE_OUT, gone ? end : stay);
    }
}
