/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fixed table of the ledger; see slots.h. */
#include "cuda/slots.h"

#include "base/hash.h"

#define BUSY_PAUSES 1000U
#define WINDOW_RESERVE (SEEP_CUDA_WINDOW / 2)

struct seep_cuda_entry seep_cuda_entries[SEEP_CUDA_SLOTS]
    __attribute__((visibility("hidden"), aligned(64)));

/* Apart from the entries: a window of them is two lines. */
static _Atomic uint64_t tags[SEEP_CUDA_SLOTS] __attribute__((aligned(64)));

uint64_t seep_cuda_slot_tag(enum seep_cuda_kind kind, uint64_t value)
{
    uint64_t tag = seep_hash_mix(seep_hash_mix((uint64_t)kind) ^ value);

    return tag != 0 ? tag : 1;
}

/* The slot at @step of the two windows of @tag. */
static uint32_t slot_at(uint64_t tag, uint32_t step)
{
    uint32_t first = (uint32_t)tag & (SEEP_CUDA_SLOTS - SEEP_CUDA_WINDOW);
    uint32_t second =
        (uint32_t)(tag >> 32) & (SEEP_CUDA_SLOTS - SEEP_CUDA_WINDOW);

    if (step < SEEP_CUDA_WINDOW) {
        return first + step;
    }
    second = second != first ? second : first ^ SEEP_CUDA_WINDOW;
    return second + step - SEEP_CUDA_WINDOW;
}

uint32_t seep_cuda_slot_next(uint64_t tag, uint32_t *step, uint64_t *ret_state)
{
    while (*step < 2 * SEEP_CUDA_WINDOW) {
        uint32_t slot = slot_at(tag, (*step)++);

        if (seep_word_load(&tags[slot]) != tag) {
            continue;
        }
        /* Acquire: the fields of what is live, and its tag, are seen; pairs
         * with the release in seep_cuda_slot_publish(). */
        *ret_state = atomic_load_explicit(&seep_cuda_entries[slot].state,
                                          memory_order_acquire);
        if (seep_word_load(&tags[slot]) == tag) {
            return slot;
        }
    }
    return SEEP_CUDA_SLOT_NONE;
}

static unsigned free_from(uint64_t tag, uint32_t first)
{
    unsigned free_count = 0;

    for (uint32_t step = first; step < first + SEEP_CUDA_WINDOW; step++) {
        free_count += seep_word_load(&tags[slot_at(tag, step)]) == 0;
    }
    return free_count;
}

/* The first window, which is looked at first, as long as it has room; then
 * the emptier of the two, so that no key is without while many are free. */
static uint32_t window_for(uint64_t tag)
{
    unsigned first_count = free_from(tag, 0);

    return first_count >= WINDOW_RESERVE ||
                   first_count >= free_from(tag, SEEP_CUDA_WINDOW)
               ? 0
               : SEEP_CUDA_WINDOW;
}

uint32_t seep_cuda_slot_claim(uint64_t tag, uint64_t *ret_state)
{
    uint32_t first = window_for(tag);

    for (uint32_t i = 0; i < 2 * SEEP_CUDA_WINDOW; i++) {
        uint32_t slot = slot_at(tag, (first + i) % (2 * SEEP_CUDA_WINDOW));
        uint64_t seen = seep_word_load(&tags[slot]);

        /* Acquire: the end of who was here before; pairs with the release in
         * seep_cuda_slot_release(). */
        if (seen == 0 && atomic_compare_exchange_strong_explicit(
                             &tags[slot], &seen, tag, memory_order_acquire,
                             memory_order_relaxed)) {
            uint64_t state = seep_word_load(&seep_cuda_entries[slot].state);

            state = (state & ~(SEEP_CUDA_ONE_GENERATION - 1)) |
                    SEEP_CUDA_PHASE_BUSY;
            seep_word_store(&seep_cuda_entries[slot].state, state);
            *ret_state = state;
            return slot;
        }
    }
    return SEEP_CUDA_SLOT_NONE;
}

void seep_cuda_slot_release(uint32_t slot)
{
    uint64_t state = seep_word_load(&seep_cuda_entries[slot].state);

    /* Of the next generation, EMPTY: whoever still holds a reference to this
     * life of the slot finds it gone. */
    state =
        (state & ~(SEEP_CUDA_ONE_GENERATION - 1)) + SEEP_CUDA_ONE_GENERATION;
    seep_word_store(&seep_cuda_entries[slot].state, state);
    /* Release: pairs with the acquire in seep_cuda_slot_claim(). */
    atomic_store_explicit(&tags[slot], 0, memory_order_release);
}

static void pause_a_moment(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

uint64_t seep_cuda_slot_state(uint32_t slot)
{
    uint64_t state;

    for (uint32_t i = 0; i < BUSY_PAUSES; i++) {
        /* Acquire: pairs with the release in seep_cuda_slot_publish(). */
        state = atomic_load_explicit(&seep_cuda_entries[slot].state,
                                     memory_order_acquire);
        if (seep_cuda_phase(state) != SEEP_CUDA_PHASE_BUSY) {
            break;
        }
        pause_a_moment();
    }
    return state;
}

bool seep_cuda_slot_change(uint32_t slot, uint64_t seen, uint64_t next)
{
    /* Acquire and release: who takes an entry sees all that was done with it;
     * pairs with itself and with seep_cuda_slot_publish(). */
    return atomic_compare_exchange_strong_explicit(
        &seep_cuda_entries[slot].state, &seen, next, memory_order_acq_rel,
        memory_order_relaxed);
}

bool seep_cuda_slot_publish(uint32_t slot, uint64_t busy, uint64_t next)
{
    /* Release: the fields stand; pairs with the acquire in
     * seep_cuda_slot_next(), _state() and _change(). */
    return atomic_compare_exchange_strong_explicit(
        &seep_cuda_entries[slot].state, &busy, next, memory_order_release,
        memory_order_relaxed);
}

uint32_t seep_cuda_slot_used(uint32_t slot)
{
    while (slot < SEEP_CUDA_SLOTS && seep_word_load(&tags[slot]) == 0) {
        slot++;
    }
    return slot < SEEP_CUDA_SLOTS ? slot : SEEP_CUDA_SLOT_NONE;
}
