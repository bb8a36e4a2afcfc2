/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ledger: a fixed table of entries, the life of one entry, and what comes
 * and goes one value at a time; see ledger.h, and README.md for the phases.
 *
 * Invariant: .state is the only word by which an entry changes hands. EMPTY
 * and BUSY belong to one thread, who alone writes the other fields; in LIVE
 * and OUT they stand still. In LIVE references or maps are more than 0 and the
 * recorder knows the entry; in OUT both are 0, and it was told of the end. An
 * entry that goes from LIVE to OUT, or back, is BUSY while the recorder is
 * told; so no two threads tell of one entry at once.
 *
 * One word more may be written to what is BUSY: that it is GONE. A thread that
 * is killed, or leaves by a jump, while an entry is BUSY costs that slot and
 * nothing else.
 */
#include "cuda/ledger.h"

#include <stddef.h>

#include "base/hash.h"
#include "base/word.h"
#include "cuda/entry.h"

/* What is told, and what is counted. */

_Atomic(const struct seep_cuda_events *) seep_cuda_events_table
    __attribute__((visibility("hidden")));

static _Atomic uint64_t counts[SEEP_COUNTER_COUNT];

uint64_t seep_cuda_count(enum seep_counter counter)
{
    return seep_word_load(&counts[counter]);
}

void seep_cuda_count_add(enum seep_counter counter)
{
    seep_word_fetch_add(&counts[counter], 1);
}

static _Atomic bool abandoned;
static _Atomic bool used;

const struct seep_cuda_events *seep_cuda_ledger_events(void)
{
    if (seep_word_load(&abandoned)) {
        return NULL;
    }
    return seep_cuda_events();
}

void seep_cuda_ledger_abandon(void)
{
    seep_word_store(&abandoned, true);
}

bool seep_cuda_ledger_was_used(void)
{
    return seep_word_load(&used);
}

/* The entries: a key has two windows of slots. A slot is claimed and released
 * where it is; there are no tombstones, and a look-up reads at most the two
 * windows. */

#define WINDOW 16U
#define WINDOW_RESERVE (WINDOW / 2)
#define BUSY_PAUSES 1000U

seep_own_table seep_cuda_table __attribute__((visibility("hidden")));

/* NULL: nothing was told of yet. */
static _Atomic uint64_t *tags_known(void)
{
    struct seep_cuda_slots *slots = seep_own_get(&seep_cuda_table);

    return slots != NULL ? slots->tags : NULL;
}

/* What an entry is found by: never 0. */
static uint64_t slot_tag(enum seep_cuda_kind kind, uint64_t value)
{
    uint64_t tag = seep_hash_mix(seep_hash_mix((uint64_t)kind) ^ value);

    return tag != 0 ? tag : 1;
}

/* The slot at @step of the two windows of @tag. */
static uint32_t slot_at(uint64_t tag, uint32_t step)
{
    uint32_t first = (uint32_t)tag & (SEEP_CUDA_SLOTS - WINDOW);
    uint32_t second = (uint32_t)(tag >> 32) & (SEEP_CUDA_SLOTS - WINDOW);

    if (step < WINDOW) {
        return first + step;
    }
    second = second != first ? second : first ^ WINDOW;
    return second + step - WINDOW;
}

/* The next slot of @tag, from *@step on, which is 0 at first, or
 * SEEP_CUDA_SLOT_NONE.
 * @ret_state is of one and the same life of it: EMPTY or BUSY if it is about to
 * come or to go. */
static uint32_t slot_next(uint64_t tag, uint32_t *step, uint64_t *ret_state)
{
    const _Atomic uint64_t *tags = tags_known();

    while (tags != NULL && *step < 2 * WINDOW) {
        uint32_t slot = slot_at(tag, (*step)++);

        if (seep_word_load(&tags[slot]) != tag) {
            continue;
        }
        *ret_state = seep_cuda_state_at(slot);
        if (seep_word_load(&tags[slot]) == tag) {
            return slot;
        }
    }
    return SEEP_CUDA_SLOT_NONE;
}

static unsigned free_from(const _Atomic uint64_t *tags, uint64_t tag,
                          uint32_t first)
{
    unsigned free_count = 0;

    for (uint32_t step = first; step < first + WINDOW; step++) {
        free_count += seep_word_load(&tags[slot_at(tag, step)]) == 0;
    }
    return free_count;
}

/* The first window, which is looked at first, as long as it has room; then
 * the emptier of the two, so that no key is without while many are free. */
static uint32_t window_for(const _Atomic uint64_t *tags, uint64_t tag)
{
    unsigned first_count = free_from(tags, tag, 0);

    return first_count >= WINDOW_RESERVE ||
                   first_count >= free_from(tags, tag, WINDOW)
               ? 0
               : WINDOW;
}

/* A slot for @tag, BUSY, with its generation; or SEEP_CUDA_SLOT_NONE. */
static uint32_t slot_claim(uint64_t tag, uint64_t *ret_state)
{
    struct seep_cuda_slots *slots =
        seep_own_make(&seep_cuda_table, sizeof(*slots));
    _Atomic uint64_t *tags = slots != NULL ? slots->tags : NULL;
    uint32_t first = tags != NULL ? window_for(tags, tag) : 0;

    for (uint32_t i = 0; tags != NULL && i < 2 * WINDOW; i++) {
        uint32_t slot = slot_at(tag, (first + i) % (2 * WINDOW));
        uint64_t seen = seep_word_load(&tags[slot]);

        /* Acquire: the end of who was here before; pairs with the release in
         * slot_release(). */
        if (seen == 0 && atomic_compare_exchange_strong_explicit(
                             &tags[slot], &seen, tag, memory_order_acquire,
                             memory_order_relaxed)) {
            uint64_t state = seep_word_load(&seep_cuda_entry_at(slot)->state);

            state = (state & ~(SEEP_CUDA_ONE_GENERATION - 1)) |
                    SEEP_CUDA_PHASE_BUSY;
            seep_word_store(&seep_cuda_entry_at(slot)->state, state);
            *ret_state = state;
            return slot;
        }
    }
    return SEEP_CUDA_SLOT_NONE;
}

/* The end of a BUSY slot: whoever still holds a reference to this life of it
 * finds it gone. */
static void slot_release(uint32_t slot)
{
    uint64_t state = seep_word_load(&seep_cuda_entry_at(slot)->state);

    state =
        (state & ~(SEEP_CUDA_ONE_GENERATION - 1)) + SEEP_CUDA_ONE_GENERATION;
    seep_word_store(&seep_cuda_entry_at(slot)->state, state);
    /* Release: pairs with the acquire in slot_claim(). */
    atomic_store_explicit(&tags_known()[slot], 0, memory_order_release);
}

static void pause_a_moment(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits a little (microseconds) for one who is busy. */
static uint64_t slot_state(uint32_t slot)
{
    uint64_t state;

    for (uint32_t i = 0; i < BUSY_PAUSES; i++) {
        state = seep_cuda_state_at(slot);
        if (seep_cuda_phase_of(state) != SEEP_CUDA_PHASE_BUSY) {
            break;
        }
        pause_a_moment();
    }
    return state;
}

static bool slot_change(uint32_t slot, uint64_t seen, uint64_t next)
{
    /* Acquire and release: who takes an entry sees all that was done with it,
     * its fields stand when it is published; pairs with itself and with the
     * acquire in seep_cuda_state_at(). */
    return atomic_compare_exchange_strong_explicit(
        &seep_cuda_entry_at(slot)->state, &seen, next, memory_order_acq_rel,
        memory_order_relaxed);
}

uint32_t seep_cuda_slot_used(uint32_t slot)
{
    const _Atomic uint64_t *tags = tags_known();

    if (tags == NULL) {
        return SEEP_CUDA_SLOT_NONE;
    }
    while (slot < SEEP_CUDA_SLOTS && seep_word_load(&tags[slot]) == 0) {
        slot++;
    }
    return slot < SEEP_CUDA_SLOTS ? slot : SEEP_CUDA_SLOT_NONE;
}

/* The life of one entry: how it is told of, held and let go. */

static _Atomic uint32_t marks;

/* Relaxed: a context is created again after the driver has destroyed it, and
 * the driver's own locks order this before what is allocated there. */
uint32_t seep_cuda_ledger_mark(void)
{
    return seep_word_fetch_add(&marks, 1);
}

#define OUT_RECORDED UINT64_C(1)

#define IN(phase) (1U << SEEP_CUDA_PHASE_##phase) /* one of several */

/*
 * Handles may be small numbers: blocks lie 16 bytes apart at least, and the
 * recorder's tables spread them by that.
 */
uint64_t seep_cuda_ledger_key(enum seep_cuda_kind kind, uint64_t value)
{
    if (kind == SEEP_CUDA_HANDLE) {
        value <<= 4;
    }
    return (uint64_t)kind << SEEP_KEY_KIND_SHIFT |
           (value & SEEP_KEY_VALUE_MASK);
}

/* No other entry has this one: a slot in one life of it. */
static uint64_t other_key_of(enum seep_cuda_kind kind, uint32_t slot,
                             uint64_t state)
{
    uint64_t life = (uint64_t)slot << 24 | seep_cuda_generation_of(state);

    return (SEEP_KEY_IS_OTHER | (uint64_t)kind) << SEEP_KEY_KIND_SHIFT |
           life << 4;
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
        seep_word_fetch_add(&held_bytes[device], bytes);
    }
}

uint64_t seep_cuda_ledger_held_bytes(int device)
{
    return device >= 0 && device < (int)SEEP_DEVICES_MAX
               ? seep_word_load(&held_bytes[device])
               : 0;
}

/* Whom to tell of an entry, with which @bytes came (or went, as in hold());
 * NULL: nobody. */
static const struct seep_cuda_events *
to_tell(const struct seep_cuda_entry *entry, uint64_t bytes)
{
    if (seep_cuda_is_silent(entry)) {
        return NULL;
    }
    hold(entry, bytes);
    return seep_cuda_ledger_events();
}

static void tell_freed(struct seep_cuda_entry *entry)
{
    const struct seep_cuda_events *events =
        to_tell(entry, 0 - seep_word_load(&entry->size_bytes));

    if (events != NULL) {
        struct seep_cuda_out out =
            events->freed(seep_word_load(&entry->event_key));

        seep_word_store(&entry->out, (uint64_t)out.tick << 32 |
                                         (out.recorded ? OUT_RECORDED : 0));
    }
}

static void tell_restored(struct seep_cuda_entry *entry)
{
    const struct seep_cuda_events *events =
        to_tell(entry, seep_word_load(&entry->size_bytes));
    uint64_t out = seep_word_load(&entry->out);

    if (events != NULL) {
        events->restored(seep_word_load(&entry->event_key),
                         (struct seep_cuda_out){
                             .recorded = (out & OUT_RECORDED) != 0,
                             .tick = (uint32_t)(out >> 32),
                         });
    }
}

/* An entry in the life that @reference means, or EMPTY. */
static uint64_t state_of(uint64_t reference)
{
    uint64_t state;

    if (reference == 0) {
        return SEEP_CUDA_PHASE_EMPTY;
    }
    state = slot_state(seep_cuda_slot_of(reference));
    if (seep_cuda_generation_of(state) != reference >> 32) {
        return SEEP_CUDA_PHASE_EMPTY;
    }
    if (seep_cuda_phase_of(state) == SEEP_CUDA_PHASE_BUSY) {
        seep_cuda_count_add(SEEP_COUNT_CUDA_BUSY);
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

uint64_t seep_cuda_entry_find(enum seep_cuda_kind kind, uint64_t value,
                              unsigned phases, bool held)
{
    uint64_t tag = slot_tag(kind, value);
    uint32_t step = 0;
    uint64_t state;
    uint32_t slot;

    while ((slot = slot_next(tag, &step, &state)) != SEEP_CUDA_SLOT_NONE) {
        const struct seep_cuda_entry *entry = seep_cuda_entry_at(slot);
        enum seep_cuda_phase phase;

        if (seep_cuda_phase_of(state) == SEEP_CUDA_PHASE_BUSY) {
            state = slot_state(slot);
        }
        phase = seep_cuda_phase_of(state);
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

uint64_t seep_cuda_entry_holder(enum seep_cuda_kind kind, uint64_t value)
{
    uint64_t held = seep_cuda_entry_find(kind, value, IN(LIVE), true);

    return held != 0 ? held
                     : seep_cuda_entry_find(kind, value, IN(LIVE), false);
}

/* The end of a BUSY entry that the recorder does not know any more. */
static void release(uint32_t slot)
{
    uint64_t holder = seep_word_load(&seep_cuda_entry_at(slot)->holder);

    slot_release(slot);
    seep_cuda_entry_end(holder); /* which has none of its own */
}

static void tell_gone(uint32_t slot)
{
    struct seep_cuda_entry *entry = seep_cuda_entry_at(slot);

    tell_freed(entry);
    seep_cuda_entry_lower(seep_word_load(&entry->holder), SEEP_CUDA_ONE_MAP);
}

/* From BUSY; or to its end, if another thread knows that it is gone. */
static void publish(uint32_t slot, uint64_t busy, uint64_t next)
{
    if (!slot_change(slot, busy, next)) {
        if (seep_cuda_phase_of(next) == SEEP_CUDA_PHASE_LIVE) {
            tell_gone(slot);
        }
        release(slot);
    }
}

/* Fill a slot that was claimed, hold its holder (in @block a reference), tell,
 * and publish. @other_key: the common key may be in use. */
static void entry_begin(const struct seep_capture_start *from,
                        const struct seep_cuda_block *block, uint32_t slot,
                        uint64_t state, bool other_key)
{
    struct seep_cuda_entry *entry = seep_cuda_entry_at(slot);
    uint64_t key = other_key ? other_key_of(block->kind, slot, state)
                             : seep_cuda_ledger_key(block->kind, block->value);
    const struct seep_cuda_events *events;

    seep_word_store(&entry->value, block->value);
    seep_word_store(&entry->size_bytes, block->size_bytes);
    seep_word_store(&entry->context, (uintptr_t)block->context);
    seep_word_store(&entry->event_key, key);
    seep_word_store(&entry->holder, block->holder);
    seep_word_store(&entry->traits, traits_of(block, seep_word_load(&marks)));
    seep_word_store(&entry->out, 0);
    if (block->holder != 0) {
        seep_cuda_entry_raise(block->holder, SEEP_CUDA_ONE_MAP);
    }
    events = to_tell(entry, block->size_bytes);
    if (events != NULL) {
        events->allocated(from, block->space, block->device, key,
                          block->size_bytes);
    }
    publish(slot, state,
            with_phase(state, SEEP_CUDA_PHASE_LIVE) + SEEP_CUDA_ONE_REFERENCE);
}

/* LIVE with one count, to OUT: alone with it while the recorder is told. */
static bool take_out(uint32_t slot, uint64_t state)
{
    uint64_t busy =
        with_phase(state, SEEP_CUDA_PHASE_BUSY) & ~SEEP_CUDA_COUNTS_MASK;

    if (!slot_change(slot, state, busy)) {
        return false;
    }
    tell_gone(slot);
    publish(slot, busy, with_phase(busy, SEEP_CUDA_PHASE_OUT));
    return true;
}

static bool put_back(uint32_t slot, uint64_t state, uint64_t unit)
{
    struct seep_cuda_entry *entry = seep_cuda_entry_at(slot);
    uint64_t busy = with_phase(state, SEEP_CUDA_PHASE_BUSY);

    if (!slot_change(slot, state, busy)) {
        return false;
    }
    tell_restored(entry);
    seep_cuda_entry_raise(seep_word_load(&entry->holder), SEEP_CUDA_ONE_MAP);
    publish(slot, busy, with_phase(state, SEEP_CUDA_PHASE_LIVE) + unit);
    return true;
}

bool seep_cuda_entry_lower(uint64_t reference, uint64_t unit)
{
    uint32_t slot = seep_cuda_slot_of(reference);

    for (;;) {
        uint64_t state = state_of(reference);

        if (seep_cuda_phase_of(state) != SEEP_CUDA_PHASE_LIVE ||
            (state & mask_of(unit)) == 0) {
            return false;
        }
        if ((state & SEEP_CUDA_COUNTS_MASK) == unit) {
            if (take_out(slot, state)) {
                return true;
            }
        } else if (slot_change(slot, state, state - unit)) {
            return true;
        }
    }
}

static bool is_saturated(uint64_t state, uint64_t unit)
{
    if ((state & mask_of(unit)) != mask_of(unit)) {
        return false;
    }
    seep_cuda_count_add(SEEP_COUNT_CUDA_SATURATED);
    return true;
}

/* One of @unit more of what is LIVE. @return false: it is not, see ret_state,
 * or has as many as can be counted */
static bool raise_live(uint64_t reference, uint64_t unit, uint64_t *ret_state)
{
    do {
        *ret_state = state_of(reference);
        if (seep_cuda_phase_of(*ret_state) != SEEP_CUDA_PHASE_LIVE ||
            is_saturated(*ret_state, unit)) {
            return false;
        }
    } while (!slot_change(seep_cuda_slot_of(reference), *ret_state,
                          *ret_state + unit));
    return true;
}

bool seep_cuda_entry_raise(uint64_t reference, uint64_t unit)
{
    uint64_t state;

    while (!raise_live(reference, unit, &state)) {
        if (seep_cuda_phase_of(state) != SEEP_CUDA_PHASE_OUT) {
            return false;
        }
        if (put_back(seep_cuda_slot_of(reference), state, unit)) {
            break;
        }
    }
    return true;
}

bool seep_cuda_entry_end(uint64_t reference)
{
    uint32_t slot = seep_cuda_slot_of(reference);
    uint64_t state = state_of(reference);

    if (seep_cuda_phase_of(state) != SEEP_CUDA_PHASE_OUT ||
        !slot_change(slot, state, with_phase(state, SEEP_CUDA_PHASE_BUSY))) {
        return false;
    }
    release(slot);
    return true;
}

/* One try of the following. */
static bool go(uint32_t slot, uint64_t state)
{
    switch (seep_cuda_phase_of(state)) {
    case SEEP_CUDA_PHASE_BUSY:
        return slot_change(slot, state, state | SEEP_CUDA_GONE);
    case SEEP_CUDA_PHASE_OUT:
    case SEEP_CUDA_PHASE_LIVE:
        if (!slot_change(slot, state,
                         with_phase(state, SEEP_CUDA_PHASE_BUSY))) {
            return false;
        }
        if (seep_cuda_phase_of(state) == SEEP_CUDA_PHASE_LIVE) {
            tell_gone(slot);
        }
        release(slot);
        return true;
    case SEEP_CUDA_PHASE_EMPTY:
        break;
    }
    return true;
}

enum seep_cuda_phase seep_cuda_entry_gone(uint64_t reference)
{
    uint32_t slot = seep_cuda_slot_of(reference);

    for (;;) {
        uint64_t state = slot_state(slot);

        if (seep_cuda_generation_of(state) != reference >> 32) {
            return SEEP_CUDA_PHASE_EMPTY;
        }
        if (go(slot, state)) {
            return seep_cuda_phase_of(state);
        }
    }
}

/* What came and what goes, one value at a time. */

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
static enum before clear_one(const struct seep_cuda_block *block, uint32_t slot,
                             uint64_t state)
{
    uint64_t reference = seep_cuda_reference_to(slot, state);
    enum seep_cuda_phase phase = seep_cuda_phase_of(state);

    if (counts_references(block) && phase != SEEP_CUDA_PHASE_OUT) {
        return raise_live(reference, SEEP_CUDA_ONE_REFERENCE, &state)
                   ? BEFORE_COUNTED
                   : BEFORE_OTHER_KEY;
    }
    if (phase == SEEP_CUDA_PHASE_EMPTY ||
        (phase == SEEP_CUDA_PHASE_LIVE &&
         (state & SEEP_CUDA_REFERENCES_MASK) == 0)) {
        return BEFORE_OTHER_KEY;
    }
    phase = seep_cuda_entry_gone(reference);
    if (phase == SEEP_CUDA_PHASE_LIVE) {
        seep_cuda_count_add(SEEP_COUNT_CUDA_REPLACED);
    }
    return phase == SEEP_CUDA_PHASE_BUSY ? BEFORE_OTHER_KEY : BEFORE_NOTHING;
}

/*
 * The driver gives out a value that is here already, so what is here is gone:
 * its free is under way (OUT), or was not seen. Memory that is released and
 * still mapped is not. What another thread is at work on may yet be told of:
 * then the new entry goes by another key.
 */
static enum before clear_way(const struct seep_cuda_block *block, uint64_t tag)
{
    enum before before = BEFORE_NOTHING;
    uint32_t step = 0;
    uint64_t state;
    uint32_t slot;

    while ((slot = slot_next(tag, &step, &state)) != SEEP_CUDA_SLOT_NONE) {
        enum before one = clear_one(block, slot, state);

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
    struct seep_cuda_block kept = *block;
    uint64_t tag = slot_tag(block->kind, block->value);
    enum before before;
    uint64_t state;
    uint32_t slot;

    if (seep_cuda_ledger_events() == NULL || block->value == 0) {
        return;
    }
    seep_word_store(&used, true);
    before = clear_way(block, tag);
    if (before == BEFORE_COUNTED) {
        return;
    }
    slot = slot_claim(tag, &state);
    if (slot == SEEP_CUDA_SLOT_NONE) {
        seep_cuda_count_add(SEEP_COUNT_CUDA_FULL);
        return;
    }
    if (block->holder != 0) {
        kept.holder = seep_cuda_entry_holder(block->holder_kind, block->holder);
    }
    entry_begin(from, &kept, slot, state, before == BEFORE_OTHER_KEY);
}

void seep_cuda_ledger_retain(enum seep_cuda_kind kind, uint64_t value)
{
    uint64_t reference;

    if (seep_cuda_ledger_events() == NULL || value == 0) {
        return;
    }
    reference = seep_cuda_entry_holder(kind, value);
    if (!seep_cuda_entry_raise(reference, SEEP_CUDA_ONE_REFERENCE)) {
        seep_cuda_count_add(SEEP_COUNT_CUDA_UNKNOWN);
    }
}

struct seep_cuda_leave seep_cuda_ledger_leave(enum seep_cuda_kind kind,
                                              uint64_t value)
{
    uint64_t reference;

    if (seep_cuda_ledger_events() == NULL || value == 0) {
        return (struct seep_cuda_leave){0, false};
    }
    reference = seep_cuda_entry_find(kind, value, IN(LIVE), true);
    if (reference != 0 &&
        seep_cuda_entry_lower(reference, SEEP_CUDA_ONE_REFERENCE)) {
        return (struct seep_cuda_leave){reference, false};
    }
    seep_cuda_count_add(SEEP_COUNT_CUDA_UNKNOWN);
    reference =
        seep_cuda_entry_find(kind, value, IN(LIVE) | IN(BUSY) | IN(OUT), true);
    return (struct seep_cuda_leave){reference, true};
}

/* Of two frees of the same the driver takes one, and refuses the other, which
 * may have come first here: then that puts back what is gone. */
void seep_cuda_ledger_settle(const struct seep_cuda_leave *leave, bool gone)
{
    if (seep_cuda_ledger_events() == NULL || leave->reference == 0) {
        return;
    }
    if (gone && leave->again) {
        seep_cuda_entry_gone(leave->reference);
    } else if (gone) {
        seep_cuda_entry_end(leave->reference);
    } else if (!leave->again) {
        seep_cuda_entry_raise(leave->reference, SEEP_CUDA_ONE_REFERENCE);
    }
}
