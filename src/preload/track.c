/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guard, capture and the recorder's life; see track.h. */
#include "preload/track.h"

#include <signal.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/syscall.h"
#include "capture/objects.h"
#include "preload/ending.h"
#include "preload/identity.h"
#include "preload/options.h"
#include "record/modules.h"
#include "record/recorder.h"
#include "record/region.h"
#include "record/sampler.h"
#include "record/timeline.h"

#define STACK_SPAN_BYTES (UINT64_C(8) << 20)
#define SIGNAL_FRAME_BYTES 512U
#define NESTED_MOST 20000U
#define START_AT_BYTES (UINT64_C(64) << 10)

static _Atomic int track_state;
static _Atomic uint32_t restricted;
static _Atomic uint64_t start_missed;
static _Atomic uint32_t starter; /* thread that creates the recording */

static int state_now(void)
{
    return atomic_load_explicit(&track_state, memory_order_relaxed);
}

static void set_state(enum seep_track_state state)
{
    atomic_store_explicit(&track_state, state, memory_order_relaxed);
}

/* On the stack that the thread has set aside for its signal handlers? */
static bool is_on_signal_stack(uintptr_t frame)
{
    stack_t stack;

    return atomic_load_explicit(&restricted, memory_order_relaxed) != 0 ||
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
    if (atomic_load_explicit(&restricted, memory_order_relaxed) != 0) {
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

/* In the child of a fork nothing of the parent's recording may be touched. */
SEEP_COLD static void become_child(struct seep_thread *thread)
{
    const struct seep_view *view = seep_recorder_view();

    if (view != NULL) {
        seep_region_drop(view->header, view->header->file_bytes);
    }
    seep_recorder_drop();
    seep_native_after_fork();
    thread->id = 0;
    atomic_store_explicit(&thread->claim, 0, memory_order_relaxed);
    atomic_store_explicit(&thread->held_site, 0, memory_order_relaxed);
    atomic_store_explicit(&thread->held_shard, 0, memory_order_relaxed);
    if (state_now() != SEEP_TRACK_DONE) {
        set_state(atomic_load_explicit(&restricted, memory_order_relaxed) != 0
                      ? SEEP_TRACK_DONE
                      : SEEP_TRACK_ARMED);
    }
    seep_identity_adopt();
}

/* @return NULL if this entry has to pass through */
static struct seep_thread *enter(uintptr_t frame)
{
    struct seep_thread *thread = &seep_thread;
    const struct seep_view *view;

    if (seep_unlikely(thread->hook_frame != 0)) {
        view = seep_recorder_view();
        if (!is_abandoned(thread, frame)) {
            if (view != NULL) {
                seep_view_count(view, SEEP_COUNT_NESTED, 1);
            }
            return NULL;
        }
        thread->serving = 0;
        thread->nested = 0;
        if (state_now() == SEEP_TRACK_STARTING &&
            atomic_load_explicit(&starter, memory_order_relaxed) ==
                thread->id) {
            seep_region_abandon();
            set_state(SEEP_TRACK_ARMED);
        }
        if (view != NULL && seep_identity_is_ours()) {
            seep_recorder_recover(thread);
        }
    }
    thread->hook_frame = frame;
    atomic_signal_fence(memory_order_seq_cst);
    if (seep_unlikely(!seep_identity_is_ours())) {
        become_child(thread);
    }
    if (seep_unlikely(thread->id == 0)) {
        meet(thread);
    }
    return thread;
}

static void leave(struct seep_thread *thread)
{
    thread->nested = 0;
    atomic_signal_fence(memory_order_seq_cst);
    thread->hook_frame = 0;
}

SEEP_COLD static void start(void)
{
    int armed = SEEP_TRACK_ARMED;
    void *mapping;

    if (!seep_identity_is_this_process()) {
        return; /* a vfork child, in its parent's memory */
    }
    if (!atomic_compare_exchange_strong_explicit(
            &track_state, &armed, SEEP_TRACK_STARTING, memory_order_relaxed,
            memory_order_relaxed)) {
        atomic_fetch_add_explicit(&start_missed, 1, memory_order_relaxed);
        return;
    }
    atomic_store_explicit(&starter, seep_thread.id, memory_order_relaxed);
    if (seep_identity_create(&mapping) != 0) {
        set_state(SEEP_TRACK_DONE);
        return;
    }
    seep_recorder_start(mapping);
    set_state(SEEP_TRACK_ON);
}

/* The run is over, the process not yet: what follows is not recorded. */
SEEP_COLD static void stop(const struct seep_view *view)
{
    int on = SEEP_TRACK_ON;

    if (atomic_compare_exchange_strong_explicit(
            &track_state, &on, SEEP_TRACK_DONE, memory_order_relaxed,
            memory_order_relaxed)) {
        atomic_store_explicit(&view->header->exit_tick, seep_recorder_tick(),
                              memory_order_relaxed);
    }
}

/* The recording, if the run is not over. */
static const struct seep_view *current(void)
{
    const struct seep_view *view = seep_recorder_view();

    if (seep_unlikely(view != NULL && seep_ending_has_begun())) {
        stop(view);
        return NULL;
    }
    return view;
}

/* The recording, begun now if it is time to. NULL: there is none. */
static const struct seep_view *recording(void)
{
    const struct seep_view *view = current();

    if (seep_likely(view != NULL)) {
        return view;
    }
    if (state_now() == SEEP_TRACK_ARMED || state_now() == SEEP_TRACK_STARTING) {
        start();
        view = seep_recorder_view();
    }
    return view;
}

static uint64_t frame_of(const struct seep_view *view, uint64_t address)
{
    struct seep_object object;
    uint32_t id = SEEP_MODULE_NONE;

    if (seep_objects_find(address, &object)) {
        struct seep_modules_object known = {
            .start = object.start,
            .end = object.end,
            .bias = object.bias,
            .path = object.path[0] != '\0' ? object.path
                                           : seep_identity_executable(),
            .build_id = object.build_id,
            .build_id_bytes = object.build_id_bytes,
        };

        id = seep_modules_intern(view, &known);
    }
    return seep_modules_frame(view, id, address);
}

static uint32_t site_of(const struct seep_view *view,
                        const struct seep_capture_start *from,
                        enum seep_space space)
{
    uint64_t addresses[SEEP_STACK_FRAMES_MAX];
    struct seep_stack_bounds bounds = {seep_thread.stack_low,
                                       seep_thread.stack_high};
    struct seep_sites_stack stack = {
        .addresses = addresses,
        .epoch = seep_objects_epoch(),
    };

    stack.count = seep_native_capture(from, &bounds, addresses,
                                      SEEP_STACK_FRAMES_MAX, &stack.cut);
    seep_thread.stack_low = bounds.low;
    seep_thread.stack_high = bounds.high;
    return seep_sites_intern(view, space, &stack, frame_of);
}

/* Our own cost, measured for one in 64 of the events. */
static uint64_t timer_start(const void *block)
{
    return ((uintptr_t)block >> 4 & 63) == 0 ? seep_clock_cycles() : 0;
}

static void timer_stop(const struct seep_view *view, uint64_t started)
{
    if (started != 0 && !seep_clock_forbidden) {
        seep_view_count(view, SEEP_COUNT_TIMED_EVENTS, 1);
        seep_view_count(view, SEEP_COUNT_TIMED_CYCLES,
                        seep_clock_cycles() - started);
    }
}

static void take_moment(const struct seep_view *view, uint32_t tick)
{
    if (seep_unlikely(seep_timeline_due(tick)) && seep_identity_is_ours()) {
        uint64_t missed =
            atomic_exchange_explicit(&start_missed, 0, memory_order_relaxed);

        if (missed != 0) {
            seep_view_count(view, SEEP_COUNT_START_MISSED, missed);
        }
        seep_timeline_take(view, seep_thread.id, tick);
    }
}

static unsigned level_now(const struct seep_view *view)
{
    return view != NULL ? atomic_load_explicit(&view->header->sample_log2,
                                               memory_order_relaxed)
                        : seep_options.sample_log2;
}

/*
 * Is the block that ended the countdown to be recorded? Not the first of a
 * thread, whose countdown was never drawn; nor one that began under another
 * mean while the exact mode lasted.
 */
static bool is_sampled(struct seep_thread *thread, unsigned level,
                       size_t size_bytes)
{
    if (level == 0) {
        return true;
    }
    if (thread->sample_log2 != 0) {
        return true;
    }
    seep_sampler_draw(thread, level);
    thread->countdown_bytes -= (int64_t)size_bytes;
    return thread->countdown_bytes <= 0;
}

static void rearm(struct seep_thread *thread, const struct seep_view *view)
{
    int state = state_now();

    if (state == SEEP_TRACK_DONE) {
        thread->countdown_bytes = SEEP_SAMPLER_NEVER;
    } else if (state == SEEP_TRACK_OFF) {
        thread->countdown_bytes = 0;
    } else {
        seep_sampler_draw(thread, level_now(view));
    }
}

SEEP_NOINLINE void seep_track_allocated(const struct seep_capture_start *from,
                                        const void *block, size_t size_bytes)
{
    int state = state_now();
    struct seep_thread *thread;
    const struct seep_view *view;
    uint64_t started = timer_start(block);

    if (state == SEEP_TRACK_OFF || state == SEEP_TRACK_DONE) {
        rearm(&seep_thread, NULL);
        return;
    }
    thread = enter(from->sp);
    if (thread == NULL) {
        return;
    }
    view = seep_recorder_view();
    if (is_sampled(thread, level_now(view), size_bytes)) {
        view = recording();
        if (view != NULL) {
            uint32_t site = site_of(view, from, SEEP_SPACE_HEAP);

            take_moment(view, seep_recorder_allocated(
                                  thread, site, (uintptr_t)block, size_bytes));
            timer_stop(view, started);
        }
        rearm(thread, view);
    }
    leave(thread);
}

/* A release of @block; false if it was not told. */
static bool release(uintptr_t frame, const void *block,
                    enum seep_event_kind kind, uint32_t *ret_tick)
{
    struct seep_thread *thread;
    const struct seep_view *view;
    uint64_t started = timer_start(block);
    bool told = false;

    /* Also while another thread is starting: its view comes before its state,
     * and what was allocated in between must not lose its free. */
    if (block == NULL || state_now() == SEEP_TRACK_OFF ||
        state_now() == SEEP_TRACK_DONE) {
        return false;
    }
    thread = enter(frame);
    if (thread == NULL) {
        return false;
    }
    view = current();
    if (view != NULL) {
        *ret_tick = seep_recorder_freed(thread, (uintptr_t)block, kind);
        take_moment(view, *ret_tick);
        timer_stop(view, started);
        told = true;
    }
    leave(thread);
    return told;
}

SEEP_NOINLINE void seep_track_freed(const void *block)
{
    uint32_t tick;

    release((uintptr_t)__builtin_frame_address(0), block, SEEP_EVENT_FREE,
            &tick);
}

SEEP_NOINLINE struct seep_track_out seep_track_realloc_out(const void *block)
{
    struct seep_track_out out = {false, 0};

    out.recorded = release((uintptr_t)__builtin_frame_address(0), block,
                           SEEP_EVENT_REALLOC_OUT, &out.tick);
    return out;
}

typedef void restore_function(struct seep_thread *thread, uint64_t address,
                              uint32_t tick);

static void take_back(uintptr_t frame, const void *address,
                      struct seep_track_out out, restore_function *restore)
{
    struct seep_thread *thread = out.recorded ? enter(frame) : NULL;

    if (thread != NULL) {
        if (seep_recorder_view() != NULL) {
            restore(thread, (uintptr_t)address, out.tick);
        }
        leave(thread);
    }
}

SEEP_NOINLINE void seep_track_realloc_failed(const void *block,
                                             struct seep_track_out out)
{
    take_back((uintptr_t)__builtin_frame_address(0), block, out,
              seep_recorder_restored);
}

SEEP_NOINLINE struct seep_track_out
seep_track_range(const struct seep_capture_start *from,
                 enum seep_event_kind kind, const void *address,
                 size_t size_bytes)
{
    struct seep_track_out out = {false, 0};
    int state = state_now();
    struct seep_thread *thread;
    const struct seep_view *view;
    uint32_t site = 0;

    if (state == SEEP_TRACK_OFF || state == SEEP_TRACK_DONE ||
        (state == SEEP_TRACK_ARMED &&
         (from == NULL || size_bytes < START_AT_BYTES))) {
        return out;
    }
    thread =
        enter(from != NULL ? from->sp : (uintptr_t)__builtin_frame_address(0));
    if (thread == NULL) {
        return out;
    }
    view = from != NULL ? recording() : current();
    if (view != NULL) {
        if (from != NULL) {
            site = site_of(view, from, SEEP_SPACE_MAPPED);
        }
        out.tick = seep_recorder_range(thread, kind, site, (uintptr_t)address,
                                       size_bytes);
        out.recorded = true;
    }
    leave(thread);
    return out;
}

SEEP_NOINLINE bool seep_track_knows_range(const void *address,
                                          size_t size_bytes)
{
    struct seep_thread *thread;
    bool known = false;

    if (state_now() != SEEP_TRACK_ON) {
        return false;
    }
    thread = enter((uintptr_t)__builtin_frame_address(0));
    if (thread != NULL) {
        known =
            seep_recorder_view() != NULL &&
            seep_recorder_knows_range(thread, (uintptr_t)address, size_bytes);
        leave(thread);
    }
    return known;
}

SEEP_NOINLINE void seep_track_remap_failed(const void *address,
                                           struct seep_track_out out)
{
    take_back((uintptr_t)__builtin_frame_address(0), address, out,
              seep_recorder_range_restored);
}

void seep_track_count(enum seep_counter counter, uint64_t amount)
{
    const struct seep_view *view = seep_recorder_view();

    if (view != NULL && seep_identity_is_ours()) {
        seep_view_count(view, counter, amount);
    }
}

void seep_track_arm(void)
{
    seep_recorder_set_identity(seep_identity_is_ours);
    seep_thread.countdown_bytes = 0;
    seep_thread.sample_log2 = 0;
    seep_thread.id = (uint32_t)seep_syscall0(SYS_gettid);
    seep_sampler_seed(&seep_thread,
                      seep_clock_cycles() ^ (uintptr_t)&seep_thread);
    set_state(SEEP_TRACK_ARMED);
}

void seep_track_disarm(void)
{
    set_state(SEEP_TRACK_DONE);
}

bool seep_track_is_restricted(void)
{
    return atomic_load_explicit(&restricted, memory_order_relaxed) != 0;
}

void seep_track_restrict(void)
{
    atomic_store_explicit(&restricted, 1, memory_order_relaxed);
    seep_clock_forbidden = true;
    seep_recorder_restrict();
    seep_native_restrict();
    seep_track_count(SEEP_COUNT_RESTRICTED, 1);
    if (state_now() == SEEP_TRACK_ARMED) {
        set_state(SEEP_TRACK_DONE);
    }
}

void seep_track_exit(void)
{
    const struct seep_view *view = seep_recorder_view();

    if (view != NULL && seep_identity_is_ours()) {
        if (state_now() == SEEP_TRACK_ON) {
            atomic_store_explicit(&view->header->exit_tick,
                                  seep_recorder_tick(), memory_order_relaxed);
        }
        atomic_store_explicit(&view->header->exited, 1, memory_order_relaxed);
    }
}
