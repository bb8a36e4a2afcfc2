/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One interface to two unwinders.
 *
 * Invariant: a capture answers at least the hook's caller, whatever fails.
 */
#include "capture/native.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "capture/eh_again.h"
#include "capture/eh_cache.h"
#include "capture/eh_memory.h"
#include "capture/eh_walk.h"
#include "capture/eh_whole.h"
#include "capture/libunwind_walk.h"
#include "capture/object_map.h"
#include "capture/stack_bounds.h"

enum backend { BACKEND_NONE, BACKEND_EH_FRAME, BACKEND_LIBUNWIND };

static _Atomic int backend;
static _Atomic bool restricted;

int seep_native_init(enum seep_unwinder unwinder)
{
    enum backend chosen = BACKEND_NONE;

    if (unwinder == SEEP_UNWINDER_LIBUNWIND) {
        if (seep_libunwind_init() == 0) {
            chosen = BACKEND_LIBUNWIND;
        }
    } else {
        chosen = BACKEND_EH_FRAME;
    }
    /* Release: pairs with the acquire in seep_native_capture(). */
    atomic_store_explicit(&backend, chosen, memory_order_release);
    return chosen != BACKEND_NONE ? 0 : -ENOTSUP;
}

static size_t one_frame(const struct seep_capture_start *start, uintptr_t *pcs)
{
    pcs[0] = start->pc - 1;
    if (start->sps != NULL) {
        start->sps[0] = start->sp;
    }
    return 1;
}

static SEEP_NOINLINE size_t capture_otherwise(
    const struct seep_capture_start *start, int chosen, uintptr_t *pcs,
    size_t capacity, struct seep_capture_end *ret_end)
{
    size_t count = 0;

    *ret_end = (struct seep_capture_end){.cut = SEEP_CUT_DISABLED};
    if (chosen == BACKEND_LIBUNWIND) {
        count = seep_libunwind_walk(start, pcs, capacity, ret_end);
    }
    return count != 0 ? count : one_frame(start, pcs);
}

size_t seep_native_capture(const struct seep_capture_start *start,
                           struct seep_stack_bounds *bounds, uintptr_t *pcs,
                           size_t capacity, struct seep_capture_end *ret_end)
{
    /* Acquire: pairs with the release in seep_native_init(). */
    int chosen = atomic_load_explicit(&backend, memory_order_acquire);

    if (capacity > SEEP_STACK_FRAMES_MAX) {
        capacity = SEEP_STACK_FRAMES_MAX;
    }
    if (seep_unlikely(capacity == 0)) {
        *ret_end = (struct seep_capture_end){.cut = SEEP_CUT_DEPTH};
        return 0;
    }
    if (seep_likely(chosen == BACKEND_EH_FRAME)) {
        return seep_eh_capture(start, bounds, pcs, capacity, ret_end);
    }
    return capture_otherwise(start, chosen, pcs, capacity, ret_end);
}

void seep_native_after_fork(void)
{
    seep_cache_after_fork();
    seep_object_map_after_fork();
}

void seep_native_restrict(void)
{
    atomic_store_explicit(&restricted, true, memory_order_relaxed);
    seep_stack_bounds_restrict();
}

bool seep_native_may_call(void)
{
    return !atomic_load_explicit(&restricted, memory_order_relaxed);
}
