/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Beginning and end of a recording; see life.h. */
#include "preload/life.h"

#include <errno.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/syscall.h"
#include "preload/cuda_events.h"
#include "preload/ending.h"
#include "preload/identity.h"
#include "preload/python_wrap.h"
#include "preload/stacks.h"
#include "record/recorder.h"
#include "record/region.h"
#include "record/sampler.h"

static _Atomic int life_state;
static _Atomic uint32_t restricted;
static _Atomic uint64_t start_missed;
static _Atomic uint32_t starter; /* thread that creates the recording */

/* Weak, for a C library that lacks it. */
extern int seep_register_atfork(void (*)(void), void (*)(void), void (*)(void),
                                void *) __asm__("__register_atfork")
    __attribute__((weak));

int seep_life_at_fork(void (*child)(void))
{
    return &seep_register_atfork != NULL
               ? seep_register_atfork(NULL, NULL, child, NULL)
               : -ENOSYS;
}

enum seep_life_state seep_life_state(void)
{
    return (enum seep_life_state)atomic_load_explicit(&life_state,
                                                      memory_order_relaxed);
}

static void set_state(enum seep_life_state state)
{
    atomic_store_explicit(&life_state, state, memory_order_relaxed);
}

SEEP_COLD void seep_life_forked(struct seep_thread *thread)
{
    const struct seep_view *view = seep_recorder_view();

    if (view != NULL) {
        seep_region_drop(view->header, view->header->file_bytes);
    }
    seep_recorder_drop();
    seep_stacks_after_fork();
    seep_cuda_events_after_fork();
    thread->id = 0;
    atomic_store_explicit(&thread->claim, 0, memory_order_relaxed);
    atomic_store_explicit(&thread->held_site, 0, memory_order_relaxed);
    atomic_store_explicit(&thread->held_shard, 0, memory_order_relaxed);
    if (seep_life_state() != SEEP_LIFE_DONE) {
        set_state(atomic_load_explicit(&restricted, memory_order_relaxed) != 0
                      ? SEEP_LIFE_DONE
                      : SEEP_LIFE_ARMED);
    }
    seep_identity_adopt();
}

/*
 * In the child of a fork, before it goes on. If a signal handler forked in the
 * middle of a hook, that hook goes on here too, and may have looked already
 * who it is: what it claims or locks next must not be its parent's.
 */
static void leave_parent(void)
{
    const struct seep_view *view = seep_recorder_view();

    seep_cuda_events_after_fork();
    seep_python_wrap_unmark(); /* a handler may have forked in there */
    if (seep_thread.hook_frame != 0 && view != NULL &&
        !seep_identity_is_ours() && !seep_life_is_restricted()) {
        uint64_t size_bytes = view->header->file_bytes;

        seep_region_replace(view->header, size_bytes);
        view->header->file_bytes = size_bytes; /* for who drops it */
    }
}

SEEP_COLD void seep_life_abandoned(struct seep_thread *thread)
{
    const struct seep_view *view = seep_recorder_view();

    if (seep_life_state() == SEEP_LIFE_STARTING &&
        atomic_load_explicit(&starter, memory_order_relaxed) == thread->id) {
        seep_region_abandon();
        set_state(SEEP_LIFE_ARMED);
    }
    if (view != NULL && seep_identity_is_ours()) {
        seep_recorder_recover(thread);
    }
}

SEEP_COLD static void start(void)
{
    int armed = SEEP_LIFE_ARMED;
    void *mapping;

    if (!seep_identity_is_this_process()) {
        return; /* a vfork child, in its parent's memory */
    }
    if (!atomic_compare_exchange_strong_explicit(
            &life_state, &armed, SEEP_LIFE_STARTING, memory_order_relaxed,
            memory_order_relaxed)) {
        atomic_fetch_add_explicit(&start_missed, 1, memory_order_relaxed);
        return;
    }
    atomic_store_explicit(&starter, seep_thread.id, memory_order_relaxed);
    if (seep_identity_create(&mapping) != 0) {
        set_state(SEEP_LIFE_DONE);
        return;
    }
    seep_recorder_start(mapping);
    set_state(SEEP_LIFE_ON);
}

/* The run is over, the process not yet: what follows is not recorded. */
SEEP_COLD static void stop(const struct seep_view *view)
{
    int on = SEEP_LIFE_ON;

    if (atomic_compare_exchange_strong_explicit(
            &life_state, &on, SEEP_LIFE_DONE, memory_order_relaxed,
            memory_order_relaxed)) {
        atomic_store_explicit(&view->header->exit_tick, seep_recorder_tick(),
                              memory_order_relaxed);
    }
}

/* The recording, if the run is not over. */
const struct seep_view *seep_life_current(void)
{
    const struct seep_view *view = seep_recorder_view();

    if (seep_unlikely(view != NULL && seep_ending_has_begun())) {
        stop(view);
        return NULL;
    }
    return view;
}

/* The recording, begun now if it is time to. NULL: there is none. */
const struct seep_view *seep_life_recording(void)
{
    const struct seep_view *view = seep_life_current();

    if (seep_likely(view != NULL)) {
        return view;
    }
    if ((seep_life_state() == SEEP_LIFE_ARMED ||
         seep_life_state() == SEEP_LIFE_STARTING) &&
        !seep_ending_has_begun()) {
        start();
        view = seep_recorder_view();
    }
    return view;
}

uint64_t seep_life_take_missed(void)
{
    return atomic_exchange_explicit(&start_missed, 0, memory_order_relaxed);
}

void seep_life_arm(void)
{
    seep_recorder_set_identity(seep_identity_is_ours);
    seep_thread.countdown_bytes = 0;
    seep_thread.sample_log2 = 0;
    seep_thread.id = (uint32_t)seep_syscall0(SYS_gettid);
    seep_sampler_seed(&seep_thread,
                      seep_clock_cycles() ^ (uintptr_t)&seep_thread);
    seep_life_at_fork(leave_parent);
    set_state(SEEP_LIFE_ARMED);
}

void seep_life_disarm(void)
{
    set_state(SEEP_LIFE_DONE);
}

bool seep_life_is_restricted(void)
{
    return atomic_load_explicit(&restricted, memory_order_relaxed) != 0;
}

static void count_restricted(void)
{
    const struct seep_view *view = seep_recorder_view();

    if (view != NULL && seep_identity_is_ours()) {
        seep_view_count(view, SEEP_COUNT_RESTRICTED, 1);
    }
}

void seep_life_restrict(void)
{
    atomic_store_explicit(&restricted, 1, memory_order_relaxed);
    seep_clock_forbidden = true;
    seep_recorder_restrict();
    seep_stacks_restrict();
    seep_cuda_events_restrict();
    count_restricted();
    if (seep_life_state() == SEEP_LIFE_ARMED) {
        set_state(SEEP_LIFE_DONE);
    }
}

void seep_life_exit(void)
{
    const struct seep_view *view = seep_recorder_view();

    if (view != NULL && seep_identity_is_ours()) {
        if (seep_life_state() == SEEP_LIFE_ON) {
            atomic_store_explicit(&view->header->exit_tick,
                                  seep_recorder_tick(), memory_order_relaxed);
        }
        seep_cuda_events_tell(view);
        atomic_store_explicit(&view->header->exited, 1, memory_order_relaxed);
    }
}
