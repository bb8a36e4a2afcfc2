/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life of one entry of the ledger; see entry.h. */
#include "cuda/entry.h"

#define KEY_KIND_SHIFT 56U
#define KEY_VALUE_MASK ((UINT64_C(1) << KEY_KIND_SHIFT) - 1)
#define KEY_OTHER UINT64_C(0x80)
#define OUT_RECORDED UINT64_C(1)

static struct seep_cuda_entry *entry_at(uint32_t slot)
{
    return &seep_cuda_entries[slot];
}

/*
 * Handles may be small numbers: blocks lie 16 bytes apart at least, and the
 * recorder's tables spread them by that.
 */
uint64_t seep_cuda_entry_key(enum seep_cuda_kind kind, uint64_t value)
{
    if (kind == SEEP_CUDA_HANDLE) {
        value <<= 4;
    }
    return (uint64_t)kind << KEY_KIND_SHIFT | (value & KEY_VALUE_MASK);
}

/* No other entry has this one: a slot in one life of it. */
static uint64_t other_key_of(enum seep_cuda_kind kind, uint32_t slot,
                             uint64_t state)
{
    uint64_t life = (uint64_t)slot << 24 | seep_cuda_generation(state);

    return (KEY_OTHER | (uint64_t)kind) << KEY_KIND_SHIFT | life << 4;
}

static uint64_t traits_of(const struct seep_cuda_block *block, uint32_t mark)
{
    unsigned device = block->device >= 0 ? (unsigned)block->device + 1 : 0;

    return (uint64_t)mark << 32 | (uint64_t)(device & 0xffff) << 16 |
           (uint64_t)(block->silent ? 1 : 0) << 15 |
           (uint64_t)block->space << 7 | (uint64_t)block->kind;
}

static _Atomic uint64_t held_bytes[SEEP_DEVICES_MAX];

/* @bytes came, or went by as much below 0. */
static void hold(const struct seep_cuda_entry *entry, uint64_t bytes)
{
    int device = seep_cuda_device_of(entry);

    if (seep_cuda_space_of(entry) == SEEP_SPACE_DEVICE && device >= 0 &&
        device < (int)SEEP_DEVICES_MAX) {
        atomic_fetch_add_explicit(&held_bytes[device], bytes,
                                  memory_order_relaxed);
    }
}

uint64_t seep_cuda_ledger_held_bytes(int device)
{
    return device >= 0 && device < (int)SEEP_DEVICES_MAX
               ? seep_word_load(&held_bytes[device])
               : 0;
}

static void tell_freed(const struct seep_cuda_events *events,
                       struct seep_cuda_entry *entry)
{
    struct seep_cuda_out out;

    if (!seep_cuda_is_silent(entry)) {
        hold(entry, 0 - seep_word_load(&entry->size_bytes));
        out = events->freed(seep_word_load(&entry->event_key));
        seep_word_store(&entry->out, (uint64_t)out.tick << 32 |
                                         (out.recorded ? OUT_RECORDED : 0));
    }
}

static void tell_restored(const struct seep_cuda_events *events,
                          struct seep_cuda_entry *entry)
{
    uint64_t out = seep_word_load(&entry->out);

    if (!seep_cuda_is_silent(entry)) {
        hold(entry, seep_word_load(&entry->size_bytes));
        events->restored(seep_word_load(&entry->event_key),
                         (struct seep_cuda_out){
                             .recorded = (out & OUT_RECORDED) != 0,
                             .tick = (uint32_t)(out >> 32),
                         });
    }
}

/* An entry in the life that @reference means, or EMPTY. */
static uint64_t state_of(seep_cuda_reference reference)
{
    uint64_t state;

    if (reference == 0) {
        return SEEP_CUDA_PHASE_EMPTY;
    }
    state = seep_cuda_slot_state(seep_cuda_slot_of(reference));
    if (seep_cuda_generation(state) != reference >> 32) {
        return SEEP_CUDA_PHASE_EMPTY;
    }
    if (seep_cuda_phase(state) == SEEP_CUDA_PHASE_BUSY) {
        seep_cuda_count_add(SEEP_CUDA_COUNT_BUSY);
    }
    return state;
}

static uint64_t with_phase(uint64_t state, enum seep_cuda_phase phase)
{
    return (state & ~SEEP_CUDA_PHASE_MASK) | (uint64_t)phase;
}

static uint64_t mask_of(uint64_t unit)
{
    return unit == SEEP_CUDA_ONE_MAP ? SEEP_CUDA_MAPS_MASK
                                     : SEEP_CUDA_REFERENCES_MASK;
}

seep_cuda_reference seep_cuda_entry_find(enum seep_cuda_kind kind,
                                         uint64_t value, unsigned phases,
                                         bool held)
{
    uint64_t tag = seep_cuda_slot_tag(kind, value);
    uint32_t step = 0;
    uint64_t state;
    uint32_t slot;

    while ((slot = seep_cuda_slot_next(tag, &step, &state)) !=
           SEEP_CUDA_SLOT_NONE) {
        const struct seep_cuda_entry *entry = entry_at(slot);
        enum seep_cuda_phase phase;

        if (seep_cuda_phase(state) == SEEP_CUDA_PHASE_BUSY) {
            state = seep_cuda_slot_state(slot);
        }
        phase = seep_cuda_phase(state);
        if ((phases >> phase & 1) == 0 ||
            (held && phase == SEEP_CUDA_PHASE_LIVE &&
             (state & SEEP_CUDA_REFERENCES_MASK) == 0)) {
            continue;
        }
        /* Who waited may look at another life of the slot. */
        if (seep_word_load(&entry->value) == value &&
            seep_cuda_kind_of(entry) == kind) {
            return seep_cuda_reference_to(slot, state);
        }
    }
    return 0;
}

seep_cuda_reference seep_cuda_entry_holder(enum seep_cuda_kind kind,
                                           uint64_t value)
{
    seep_cuda_reference held =
        seep_cuda_entry_find(kind, value, SEEP_CUDA_IN(LIVE), true);

    return held != 0
               ? held
               : seep_cuda_entry_find(kind, value, SEEP_CUDA_IN(LIVE), false);
}

/* The end of a BUSY entry that the recorder does not know any more. */
static void release(uint32_t slot)
{
    seep_cuda_reference holder = seep_word_load(&entry_at(slot)->holder);

    seep_cuda_slot_release(slot);
    seep_cuda_entry_end(holder); /* which has none of its own */
}

static void tell_gone(const struct seep_cuda_events *events, uint32_t slot)
{
    struct seep_cuda_entry *entry = entry_at(slot);

    tell_freed(events, entry);
    seep_cuda_entry_lower(events, seep_word_load(&entry->holder),
                          SEEP_CUDA_ONE_MAP);
}

/* From BUSY; or to its end, if another thread knows that it is gone. */
static void publish(const struct seep_cuda_events *events, uint32_t slot,
                    uint64_t busy, uint64_t next)
{
    if (!seep_cuda_slot_publish(slot, busy, next)) {
        if (seep_cuda_phase(next) == SEEP_CUDA_PHASE_LIVE) {
            tell_gone(events, slot);
        }
        release(slot);
    }
}

void seep_cuda_entry_begin(const struct seep_cuda_events *events,
                           const struct seep_capture_start *from,
                           const struct seep_cuda_block *block, uint32_t slot,
                           uint64_t state, bool other_key)
{
    struct seep_cuda_entry *entry = entry_at(slot);
    uint64_t key = other_key ? other_key_of(block->kind, slot, state)
                             : seep_cuda_entry_key(block->kind, block->value);

    seep_word_store(&entry->value, block->value);
    seep_word_store(&entry->size_bytes, block->size_bytes);
    seep_word_store(&entry->context, (uintptr_t)block->context);
    seep_word_store(&entry->event_key, key);
    seep_word_store(&entry->holder, block->holder);
    seep_word_store(&entry->traits, traits_of(block, seep_cuda_entry_mark()));
    seep_word_store(&entry->out, 0);
    if (block->holder != 0) {
        seep_cuda_entry_raise(events, block->holder, SEEP_CUDA_ONE_MAP);
    }
    if (!block->silent) {
        hold(entry, block->size_bytes);
        events->allocated(from, block->space, block->device, key,
                          block->size_bytes);
    }
    publish(events, slot, state,
            with_phase(state, SEEP_CUDA_PHASE_LIVE) + SEEP_CUDA_ONE_REFERENCE);
}

/* LIVE with one count, to OUT: alone with it while the recorder is told. */
static bool take_out(const struct seep_cuda_events *events, uint32_t slot,
                     uint64_t state)
{
    uint64_t busy =
        with_phase(state, SEEP_CUDA_PHASE_BUSY) & ~SEEP_CUDA_COUNTS_MASK;

    if (!seep_cuda_slot_change(slot, state, busy)) {
        return false;
    }
    tell_gone(events, slot);
    publish(events, slot, busy, with_phase(busy, SEEP_CUDA_PHASE_OUT));
    return true;
}

static bool put_back(const struct seep_cuda_events *events, uint32_t slot,
                     uint64_t state, uint64_t unit)
{
    struct seep_cuda_entry *entry = entry_at(slot);
    uint64_t busy = with_phase(state, SEEP_CUDA_PHASE_BUSY);

    if (!seep_cuda_slot_change(slot, state, busy)) {
        return false;
    }
    tell_restored(events, entry);
    seep_cuda_entry_raise(events, seep_word_load(&entry->holder),
                          SEEP_CUDA_ONE_MAP);
    publish(events, slot, busy, with_phase(state, SEEP_CUDA_PHASE_LIVE) + unit);
    return true;
}

bool seep_cuda_entry_lower(const struct seep_cuda_events *events,
                           seep_cuda_reference reference, uint64_t unit)
{
    uint32_t slot = seep_cuda_slot_of(reference);

    for (;;) {
        uint64_t state = state_of(reference);

        if (seep_cuda_phase(state) != SEEP_CUDA_PHASE_LIVE ||
            (state & mask_of(unit)) == 0) {
            return false;
        }
        if ((state & SEEP_CUDA_COUNTS_MASK) == unit) {
            if (take_out(events, slot, state)) {
                return true;
            }
        } else if (seep_cuda_slot_change(slot, state, state - unit)) {
            return true;
        }
    }
}

static bool is_saturated(uint64_t state, uint64_t unit)
{
    if ((state & mask_of(unit)) != mask_of(unit)) {
        return false;
    }
    seep_cuda_count_add(SEEP_CUDA_COUNT_SATURATED);
    return true;
}

bool seep_cuda_entry_again(seep_cuda_reference reference)
{
    const uint64_t unit = SEEP_CUDA_ONE_REFERENCE;
    uint64_t state;

    do {
        state = state_of(reference);
        if (seep_cuda_phase(state) != SEEP_CUDA_PHASE_LIVE ||
            is_saturated(state, unit)) {
            return false;
        }
    } while (!seep_cuda_slot_change(seep_cuda_slot_of(reference), state,
                                    state + unit));
    return true;
}

bool seep_cuda_entry_raise(const struct seep_cuda_events *events,
                           seep_cuda_reference reference, uint64_t unit)
{
    uint32_t slot = seep_cuda_slot_of(reference);

    for (;;) {
        uint64_t state = state_of(reference);

        if (seep_cuda_phase(state) == SEEP_CUDA_PHASE_OUT) {
            if (put_back(events, slot, state, unit)) {
                return true;
            }
        } else if (seep_cuda_phase(state) != SEEP_CUDA_PHASE_LIVE ||
                   is_saturated(state, unit)) {
            return false;
        } else if (seep_cuda_slot_change(slot, state, state + unit)) {
            return true;
        }
    }
}

bool seep_cuda_entry_end(seep_cuda_reference reference)
{
    uint32_t slot = seep_cuda_slot_of(reference);
    uint64_t state = state_of(reference);

    if (seep_cuda_phase(state) != SEEP_CUDA_PHASE_OUT ||
        !seep_cuda_slot_change(slot, state,
                               with_phase(state, SEEP_CUDA_PHASE_BUSY))) {
        return false;
    }
    release(slot);
    return true;
}

/* One try of the below. */
static bool go(const struct seep_cuda_events *events, uint32_t slot,
               uint64_t state)
{
    switch (seep_cuda_phase(state)) {
    case SEEP_CUDA_PHASE_BUSY:
        return seep_cuda_slot_change(slot, state, state | SEEP_CUDA_GONE);
    case SEEP_CUDA_PHASE_OUT:
    case SEEP_CUDA_PHASE_LIVE:
        if (!seep_cuda_slot_change(slot, state,
                                   with_phase(state, SEEP_CUDA_PHASE_BUSY))) {
            return false;
        }
        if (seep_cuda_phase(state) == SEEP_CUDA_PHASE_LIVE) {
            tell_gone(events, slot);
        }
        release(slot);
        return true;
    case SEEP_CUDA_PHASE_EMPTY:
        break;
    }
    return true;
}

enum seep_cuda_phase seep_cuda_entry_gone(const struct seep_cuda_events *events,
                                          seep_cuda_reference reference)
{
    uint32_t slot = seep_cuda_slot_of(reference);

    for (;;) {
        uint64_t state = seep_cuda_slot_state(slot);

        if (seep_cuda_generation(state) != reference >> 32) {
            return SEEP_CUDA_PHASE_EMPTY;
        }
        if (go(events, slot, state)) {
            return seep_cuda_phase(state);
        }
    }
}
