/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a hook into the recorder; see track.h. */
#include "preload/track.h"

#include "base/clock.h"
#include "base/hash.h"
#include "format/weight.h"
#include "preload/cuda_events.h"
#include "preload/guard.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "preload/options.h"
#include "preload/probes.h"
#include "preload/python_wrap.h"
#include "preload/stacks.h"
#include "record/recorder.h"
#include "record/sampler.h"
#include "record/timeline.h"

#define START_AT_BYTES (UINT64_C(64) << 10)

/* Our own cost, measured for one in 64 of the events. What took longer, most of
 * a millisecond, was another's turn on the processor. */
#define TIMER_CYCLES_MOST (UINT64_C(1) << 21)

static uint64_t timer_start(void)
{
    uint64_t cycles = seep_clock_cycles();

    /* By the time, not by the address: a program that goes round among a few
     * blocks would be measured always, or never. */
    return (seep_hash_mix(cycles) & 63) == 0 ? cycles : 0;
}

static void timer_stop(const struct seep_view *view, uint64_t started)
{
    uint64_t cycles = started != 0 ? seep_clock_cycles() - started : 0;

    if (cycles < TIMER_CYCLES_MOST && started != 0 && !seep_clock_forbidden &&
        seep_identity_is_ours()) {
        seep_view_count(view, SEEP_COUNT_TIMED_EVENTS, 1);
        seep_view_count(view, SEEP_COUNT_TIMED_CYCLES, cycles);
    }
}

static void take_moment(const struct seep_view *view, uint32_t tick)
{
    if (seep_unlikely(seep_timeline_due(tick)) && seep_identity_is_ours()) {
        uint64_t missed = seep_life_take_missed();

        if (missed != 0) {
            seep_view_count(view, SEEP_COUNT_START_MISSED, missed);
        }
        seep_timeline_take(view, seep_thread.id, tick);
        seep_cuda_events_tell(view);
        seep_stacks_describe(view);
    }
}

/* The figures of the allocator, after all else of the event: they are none of
 * the event's cost. */
SEEP_COLD static void ask_allocator(const struct seep_view *view, uint32_t tick)
{
    if (seep_identity_is_ours()) {
        seep_timeline_ask_allocator(view, seep_thread.id, tick);
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
    enum seep_life_state state = seep_life_state();

    if (state == SEEP_LIFE_DONE) {
        thread->countdown_bytes = SEEP_SAMPLER_NEVER;
    } else if (state == SEEP_LIFE_OFF) {
        thread->countdown_bytes = 0;
    } else {
        seep_sampler_draw(thread, level_now(view));
    }
}

static void allocated(const struct seep_capture_start *from, const void *block,
                      size_t size_bytes, enum seep_space space)
{
    enum seep_life_state state = seep_life_state();
    struct seep_thread *thread;
    const struct seep_view *view;
    uint64_t started = timer_start();

    if (state == SEEP_LIFE_OFF || state == SEEP_LIFE_DONE) {
        rearm(&seep_thread, NULL);
        return;
    }
    thread = seep_guard_enter(from->sp);
    if (thread == NULL) {
        return;
    }
    view = seep_recorder_view();
    if (is_sampled(thread, level_now(view), size_bytes)) {
        view = seep_life_recording();
        if (view != NULL) {
            bool may_ask = seep_timeline_wants_allocator();
            uint32_t site = seep_stacks_site(
                view, from, (struct seep_place){space, 0}, &may_ask);
            uint32_t tick = seep_recorder_allocated(
                thread, site, (uintptr_t)block, size_bytes);

            seep_probes_alloc(
                (uintptr_t)block, size_bytes,
                seep_weight_of(size_bytes, thread->sample_log2).bytes);
            take_moment(view, tick);
            timer_stop(view, started);
            if (seep_unlikely(may_ask)) {
                ask_allocator(view, tick);
            }
        }
        rearm(thread, view);
    }
    seep_guard_leave(thread);
}

SEEP_NOINLINE void seep_track_allocated(const struct seep_capture_start *from,
                                        const void *block, size_t size_bytes)
{
    allocated(from, block, size_bytes, SEEP_SPACE_HEAP);
}

SEEP_NOINLINE void
seep_track_object_allocated(const struct seep_capture_start *from,
                            const void *block, size_t size_bytes)
{
    allocated(from, block, size_bytes, SEEP_SPACE_PYTHON);
}

/* A release of @address; false if it was not told. */
static bool release(uintptr_t frame, uint64_t address,
                    enum seep_event_kind kind, uint32_t *ret_tick)
{
    struct seep_thread *thread;
    const struct seep_view *view;
    uint64_t started = timer_start();
    bool told = false;

    /* Also while another thread is starting: its view comes before its state,
     * and what was allocated in between must not lose its free. */
    if (address == 0 || seep_life_state() == SEEP_LIFE_OFF ||
        seep_life_state() == SEEP_LIFE_DONE ||
        seep_python_wrap_holds((const void *)(uintptr_t)address)) {
        return false;
    }
    thread = seep_guard_enter(frame);
    if (thread == NULL) {
        return false;
    }
    view = seep_life_current();
    if (view != NULL) {
        *ret_tick = seep_recorder_freed(thread, address, kind);
        if (!SEEP_ADDRESS_IS_KEY(address)) {
            seep_probes_free(address);
        }
        take_moment(view, *ret_tick);
        timer_stop(view, started);
        told = true;
    }
    seep_guard_leave(thread);
    return told;
}

SEEP_NOINLINE void seep_track_freed(const void *block)
{
    uint32_t tick;

    release((uintptr_t)__builtin_frame_address(0), (uintptr_t)block,
            SEEP_EVENT_FREE, &tick);
}

SEEP_NOINLINE struct seep_track_out seep_track_realloc_out(const void *block)
{
    struct seep_track_out out = {false, 0};

    out.recorded = release((uintptr_t)__builtin_frame_address(0),
                           (uintptr_t)block, SEEP_EVENT_REALLOC_OUT, &out.tick);
    return out;
}

typedef void restore_function(struct seep_thread *thread, uint64_t address,
                              uint32_t tick);

static void take_back(uintptr_t frame, uint64_t address,
                      struct seep_track_out out, restore_function *restore)
{
    struct seep_thread *thread = out.recorded ? seep_guard_enter(frame) : NULL;

    if (thread != NULL) {
        if (seep_recorder_view() != NULL) {
            restore(thread, address, out.tick);
        }
        seep_guard_leave(thread);
    }
}

SEEP_NOINLINE void seep_track_realloc_failed(const void *block,
                                             struct seep_track_out out)
{
    take_back((uintptr_t)__builtin_frame_address(0), (uintptr_t)block, out,
              seep_recorder_restored);
}

SEEP_NOINLINE struct seep_track_out
seep_track_range(const struct seep_capture_start *from,
                 enum seep_event_kind kind, const void *address,
                 size_t size_bytes)
{
    struct seep_track_out out = {false, 0};
    enum seep_life_state state = seep_life_state();
    struct seep_thread *thread;
    const struct seep_view *view;
    uint32_t site = 0;
    bool may_ask = false; /* it may be the allocator's own mapping */

    if (state == SEEP_LIFE_OFF || state == SEEP_LIFE_DONE ||
        (state == SEEP_LIFE_ARMED &&
         (from == NULL || size_bytes < START_AT_BYTES))) {
        return out;
    }
    thread = seep_guard_enter(
        from != NULL ? from->sp : (uintptr_t)__builtin_frame_address(0));
    if (thread == NULL) {
        return out;
    }
    view = from != NULL ? seep_life_recording() : seep_life_current();
    if (view != NULL) {
        if (from != NULL) {
            site = seep_stacks_site(view, from,
                                    (struct seep_place){SEEP_SPACE_MAPPED, 0},
                                    &may_ask);
        }
        out.tick = seep_recorder_range(thread, kind, site, (uintptr_t)address,
                                       size_bytes);
        out.recorded = true;
    }
    seep_guard_leave(thread);
    return out;
}

SEEP_NOINLINE bool seep_track_knows_range(const void *address,
                                          size_t size_bytes)
{
    struct seep_thread *thread;
    bool known = false;

    if (seep_life_state() != SEEP_LIFE_ON) {
        return false;
    }
    thread = seep_guard_enter((uintptr_t)__builtin_frame_address(0));
    if (thread != NULL) {
        known =
            seep_recorder_view() != NULL &&
            seep_recorder_knows_range(thread, (uintptr_t)address, size_bytes);
        seep_guard_leave(thread);
    }
    return known;
}

SEEP_NOINLINE void seep_track_remap_failed(const void *address,
                                           struct seep_track_out out)
{
    take_back((uintptr_t)__builtin_frame_address(0), (uintptr_t)address, out,
              seep_recorder_range_restored);
}

void seep_track_begin(void)
{
    struct seep_thread *thread;

    if (seep_life_state() != SEEP_LIFE_ARMED) {
        return;
    }
    thread = seep_guard_enter((uintptr_t)__builtin_frame_address(0));
    if (thread != NULL) {
        seep_life_recording();
        seep_guard_leave(thread);
    }
}

SEEP_NOINLINE void
seep_track_key_allocated(const struct seep_capture_start *from,
                         struct seep_place place, uint64_t key,
                         uint64_t size_bytes)
{
    enum seep_life_state state = seep_life_state();
    uint64_t started = timer_start();
    struct seep_thread *thread;
    const struct seep_view *view;
    bool may_ask = false; /* the driver may hold the allocator's locks */

    if (state == SEEP_LIFE_OFF || state == SEEP_LIFE_DONE) {
        return;
    }
    thread = seep_guard_enter(from->sp);
    if (thread == NULL) {
        return;
    }
    view = seep_life_recording();
    if (view != NULL) {
        uint32_t site = seep_stacks_site(view, from, place, &may_ask);
        uint32_t tick = seep_recorder_allocated(thread, site, key, size_bytes);

        take_moment(view, tick);
        timer_stop(view, started);
    }
    seep_guard_leave(thread);
}

SEEP_NOINLINE struct seep_track_out seep_track_key_out(uint64_t key)
{
    struct seep_track_out out = {false, 0};

    out.recorded = release((uintptr_t)__builtin_frame_address(0), key,
                           SEEP_EVENT_REALLOC_OUT, &out.tick);
    return out;
}

SEEP_NOINLINE void seep_track_key_restored(uint64_t key,
                                           struct seep_track_out out)
{
    take_back((uintptr_t)__builtin_frame_address(0), key, out,
              seep_recorder_restored);
}

void seep_track_count(enum seep_counter counter, uint64_t amount)
{
    const struct seep_view *view = seep_recorder_view();

    if (view != NULL && seep_identity_is_ours()) {
        seep_view_count(view, counter, amount);
    }
}
