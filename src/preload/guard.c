/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One entry a thread; see guard.h. */
#include "preload/guard.h"

#include <signal.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/syscall.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "record/recorder.h"
#include "record/sampler.h"

#define STACK_SPAN_BYTES (UINT64_C(8) << 20)
#define SIGNAL_FRAME_BYTES 512U
#define NESTED_MOST 20000U

/* On the stack that the thread has set aside for its signal handlers? */
static bool is_on_signal_stack(uintptr_t frame)
{
    stack_t stack;

    return seep_life_is_restricted() ||
           seep_syscall2(SYS_sigaltstack, 0, (long)&stack) < 0 ||
           ((stack.ss_flags & SS_ONSTACK) != 0 &&
            frame - (uintptr_t)stack.ss_sp < stack.ss_size);
}

/*
 * Was the hook at thread->hook_frame left by a jump? A handler that interrupts
 * it runs below its frame, below the red zone and the kernel's signal frame
 * too; so an entry above that knows that the earlier is gone, unless it runs
 * on a signal stack, wherever that lies. Below nobody can tell: but no handler
 * allocates so often.
 */
SEEP_COLD static bool is_abandoned(struct seep_thread *thread, uintptr_t frame)
{
    bool same_stack = thread->stack_high != 0
                          ? thread->hook_frame >= thread->stack_low &&
                                frame < thread->stack_high
                          : frame - thread->hook_frame + SIGNAL_FRAME_BYTES <
                                STACK_SPAN_BYTES;

    if (frame + SIGNAL_FRAME_BYTES > thread->hook_frame && same_stack) {
        return !is_on_signal_stack(frame);
    }
    return ++thread->nested > NESTED_MOST;
}

static uint32_t thread_id(const struct seep_thread *thread)
{
    if (seep_life_is_restricted()) {
        uint32_t id = (uint32_t)seep_hash_mix((uintptr_t)thread);

        id &= (1U << SEEP_SLOT_THREAD_BITS) - 1;
        return id == 0 ? 1 : id;
    }
    return (uint32_t)seep_syscall0(SYS_gettid);
}

/* The first time that a thread comes off the fast path. */
SEEP_COLD static void meet(struct seep_thread *thread)
{
    thread->id = thread_id(thread);
    seep_sampler_seed(thread, seep_clock_cycles() ^ seep_clock_monotonic_ns() ^
                                  (uint64_t)thread->id << 32 ^
                                  (uintptr_t)thread);
}

struct seep_thread *seep_guard_enter(uintptr_t frame)
{
    struct seep_thread *thread = &seep_thread;
    const struct seep_view *view;

    if (seep_unlikely(thread->hook_frame != 0)) {
        view = seep_recorder_view();
        if (!is_abandoned(thread, frame)) {
            if (view != NULL && seep_identity_is_ours()) {
                seep_view_count(view, SEEP_COUNT_NESTED, 1);
            }
            return NULL;
        }
        thread->serving = 0;
        thread->nested = 0;
        seep_life_abandoned(thread);
    }
    thread->hook_frame = frame;
    atomic_signal_fence(memory_order_seq_cst);
    if (seep_unlikely(!seep_identity_is_ours())) {
        seep_life_forked(thread);
    }
    if (seep_unlikely(thread->id == 0)) {
        meet(thread);
    }
    return thread;
}

void seep_guard_leave(struct seep_thread *thread)
{
    thread->nested = 0;
    atomic_signal_fence(memory_order_seq_cst);
    thread->hook_frame = 0;
}
