/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads inside the driver; see nesting.h. */
#include "cuda/nesting.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/thread.h"
#include "base/word.h"
#include "cuda/counts.h"

#define SLOTS 4096U
#define WINDOW 16U
#define NESTED_MOST 256U

/* Only threads that are inside a call of the driver stand here. */
static struct {
    _Atomic uint64_t thread; /* address of its storage; 0: free */
    _Atomic uint64_t frame;  /* of its outermost wrapper */
    _Atomic uint64_t nested; /* calls since then that seemed to be inside it */
} inside[SLOTS] __attribute__((aligned(64)));

static uint64_t self(void)
{
    return (uintptr_t)&seep_thread;
}

static uint32_t window_of(uint64_t thread)
{
    return (uint32_t)seep_hash_mix(thread) & (SLOTS - WINDOW);
}

/* Nobody but the thread itself writes or removes its own entry. */
static uint32_t find(uint64_t thread)
{
    uint32_t window = window_of(thread);

    for (uint32_t i = window; i < window + WINDOW; i++) {
        if (seep_word_load(&inside[i].thread) == thread) {
            return i + 1;
        }
    }
    return 0;
}

/* With its outermost wrapper at @frame. */
static void stand(uint32_t slot, uintptr_t frame)
{
    seep_word_store(&inside[slot - 1].frame, frame);
    seep_word_store(&inside[slot - 1].nested, 0);
    seep_thread.in_driver = 1;
}

/*
 * Was the call that the entry is of left without a word? By a thread that ended
 * in it, whose storage this one has; or by a jump: at the same height or above
 * at once to be known, below by calls in a number that no driver makes of
 * itself.
 */
static bool is_abandoned(uint32_t slot, uintptr_t frame)
{
    uint64_t nested = seep_word_load(&inside[slot - 1].nested) + 1;

    seep_word_store(&inside[slot - 1].nested, nested);
    return !seep_thread.in_driver ||
           frame >= seep_word_load(&inside[slot - 1].frame) ||
           nested > NESTED_MOST;
}

static uint32_t claim(uint64_t thread, uintptr_t frame)
{
    uint32_t window = window_of(thread);

    for (uint32_t i = window; i < window + WINDOW; i++) {
        uint64_t seen = seep_word_load(&inside[i].thread);

        if (seen == 0 && atomic_compare_exchange_strong_explicit(
                             &inside[i].thread, &seen, thread,
                             memory_order_relaxed, memory_order_relaxed)) {
            stand(i + 1, frame);
            return i + 1;
        }
    }
    return 0;
}

struct seep_cuda_nest seep_cuda_nest_enter(uintptr_t frame)
{
    uint64_t thread = self();
    uint32_t slot = find(thread);

    if (seep_likely(slot == 0)) {
        slot = claim(thread, frame);
        if (slot == 0) {
            seep_cuda_count_add(SEEP_CUDA_COUNT_NEST_FULL);
        }
        return (struct seep_cuda_nest){slot};
    }
    if (is_abandoned(slot, frame)) {
        stand(slot, frame);
        return (struct seep_cuda_nest){slot};
    }
    seep_cuda_count_add(SEEP_CUDA_COUNT_NESTED);
    return (struct seep_cuda_nest){0};
}

void seep_cuda_nest_leave(struct seep_cuda_nest nest)
{
    if (nest.slot != 0) {
        seep_thread.in_driver = 0;
        seep_word_store(&inside[nest.slot - 1].frame, 0);
        seep_word_store(&inside[nest.slot - 1].thread, 0);
    }
}

bool seep_cuda_nest_inside(void)
{
    return seep_thread.in_driver && find(self()) != 0;
}
