/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a hook into the recorder.
 *
 * Invariant: whoever enters the guard leaves it, and what is recorded inside of
 * it is of this process.
 */
#include "preload/track.h"

#include "base/hash.h"
#include "base/thread.h"
#include "base/word.h"
#include "format/view.h"
#include "preload/hooks.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "preload/options.h"
#include "preload/probes.h"
#include "record/recorder.h"
#include "record/sampler.h"
#include "record/timeline.h"

#define START_AT_BYTES (UINT64_C(64) << 10)
#define WAIT_STEP_BYTES (INT64_C(16) << 10)
#define FAILED_TICKS 16U /* between two looks at the process */

/* Our own cost, measured for one in 64 of the events. What took longer, most of
 * a millisecond, was another's turn on the processor. The first are measured
 * each, so that of a short run it is known too; the first of all makes the
 * recording, and that counts, up to some milliseconds. */
#define TIMER_CYCLES_MOST (UINT64_C(1) << 21)
#define FIRST_CYCLES_MOST (UINT64_C(1) << 24)

struct timer {
    uint64_t started; /* 0: this one is not measured */
    bool first;
    bool for_tensor;
    bool for_range;
};

static struct timer timer_start(void)
{
    struct timer timer = {0, seep_pace_is_first(), false, false};
    uint64_t chance = 0;

    /* By chance, not by the address: a program that goes round among a few
     * blocks would be measured always, or never. The counter itself is chance
     * enough, but dear: a thread's first event alone asks it. */
    if (!timer.first) {
        chance = seep_likely(seep_thread.random != 0)
                     ? seep_sampler_bits(&seep_thread)
                     : seep_hash_mix(seep_clock_cycles());
    }
    if (chance % SEEP_PACE_TIMED_EVERY == 0) {
        timer.started = seep_clock_cycles();
    }
    return timer;
}

static void timer_stop(const struct seep_view *view, struct timer timer)
{
    uint64_t cycles =
        timer.started != 0 ? seep_clock_cycles() - timer.started : 0;

    if (timer.first && cycles > FIRST_CYCLES_MOST) {
        cycles = FIRST_CYCLES_MOST;
    }
    if ((timer.first || cycles < TIMER_CYCLES_MOST) && timer.started != 0 &&
        !seep_clock_forbidden && seep_identity_is_ours()) {
        if (timer.for_tensor) {
            seep_pace_for_tensor(cycles, timer.first);
        }
        if (timer.for_range) {
            seep_pace_counted(view, cycles, timer.first);
        } else {
            seep_pace_spent(view, cycles, timer.first);
        }
    }
}

/* Of a mapping, each of which is recorded whatever the mean is. */
static struct timer timer_start_for_range(void)
{
    struct timer timer = timer_start();

    timer.for_range = true;
    return timer;
}

static void sample_timeline(const struct seep_view *view, uint32_t tick)
{
    if (seep_unlikely(seep_timeline_due(tick)) && seep_identity_is_ours()) {
        uint64_t missed = seep_life_take_missed();

        if (missed != 0) {
            seep_view_count(view, SEEP_COUNT_START_MISSED, missed);
        }
        if (seep_timeline_looks_at_pages(tick)) {
            seep_recorder_settle(&seep_thread);
        }
        seep_timeline_take(view, seep_thread.id, tick);
        seep_cuda_events_count(view);
        seep_stacks_describe(view);
        seep_native_settle();
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
    return view != NULL ? seep_word_load(&view->header->sample_log2)
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
    } else if (state == SEEP_LIFE_WAITING) {
        /* The clock is asked again so much later; what ends this countdown is
         * no sample. */
        thread->sample_log2 = 0;
        thread->countdown_bytes = WAIT_STEP_BYTES;
    } else {
        seep_sampler_draw(thread, level_now(view));
    }
}

/* What passed until this countdown ended: of one that was drawn, on average its
 * mean, wherever it stood. */
static void waited(const struct seep_thread *thread)
{
    int64_t bytes = thread->sample_log2 == 0
                        ? WAIT_STEP_BYTES
                        : INT64_C(1) << thread->sample_log2;

    seep_life_waited((uint64_t)(bytes - thread->countdown_bytes));
}

static void allocated(const struct seep_capture_start *from, const void *block,
                      size_t size_bytes, enum seep_space space)
{
    struct seep_thread *thread;
    const struct seep_view *view;
    struct timer timer = timer_start();

    if (seep_unlikely(seep_life_state() == SEEP_LIFE_WAITING)) {
        waited(&seep_thread);
    }
    if (!seep_life_is_open()) {
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
            sample_timeline(view, tick);
            timer_stop(view, timer);
            if (seep_unlikely(may_ask)) {
                ask_allocator(view, tick);
            }
        }
        rearm(thread, view);
    }
    seep_guard_leave(thread);
}

/* It may be the last that the process does: what is known is told now, but not
 * for each of many that fail. */
static void failed(const struct seep_capture_start *from, size_t size_bytes)
{
    struct seep_thread *thread;
    const struct seep_view *view =
        seep_guard_enter_recording(from->sp, &thread);
    bool may_ask = false; /* who failed may hold the allocator's locks */

    if (view == NULL) {
        seep_life_count_failed(size_bytes);
    } else {
        struct seep_rec_header *header = view->header;
        uint32_t tick = seep_recorder_tick();
        uint32_t site = seep_stacks_site(
            view, from, (struct seep_place){SEEP_SPACE_HEAP, 0}, &may_ask);

        seep_word_store(&header->failed_site, site);
        seep_word_store(&header->failed_bytes, size_bytes);
        if ((seep_word_fetch_add(&header->failed_count, 1) == 0 ||
             tick >= seep_word_load(&header->failed_tick) + FAILED_TICKS) &&
            seep_identity_is_ours()) {
            seep_timeline_take(view, thread->id, tick);
        }
        seep_word_store(&header->failed_tick, tick);
        seep_guard_leave(thread);
    }
}

SEEP_COLD bool seep_track_refused(const struct seep_capture_start *from,
                                  size_t size_bytes)
{
    if (size_bytes > 0) {
        failed(from, size_bytes);
    }
    return seep_limits_give_way(size_bytes);
}

SEEP_NOINLINE void seep_track_allocated(const struct seep_capture_start *from,
                                        const void *block, size_t size_bytes)
{
    if (seep_likely(block != NULL)) {
        allocated(from, block, size_bytes, SEEP_SPACE_HEAP);
    } else if (size_bytes > 0) {
        failed(from, size_bytes);
    }
}

SEEP_NOINLINE void
seep_track_object_allocated(const struct seep_capture_start *from,
                            const void *block, size_t size_bytes)
{
    allocated(from, block, size_bytes, SEEP_SPACE_PYTHON);
}

static struct seep_track_out release(uintptr_t frame, uint64_t address,
                                     enum seep_event_kind kind)
{
    struct seep_track_out out = {false, 0};
    struct seep_thread *thread;
    const struct seep_view *view;
    struct timer timer = timer_start();

    /* Also while another thread is starting: its view comes before its state,
     * and what was allocated in between must not lose its free. */
    if (address == 0 || !seep_life_is_open() ||
        seep_track_is_marked_for((const void *)(uintptr_t)address)) {
        return out;
    }
    thread = seep_guard_enter(frame);
    if (thread == NULL) {
        return out;
    }
    view = seep_life_current();
    if (view != NULL) {
        out.tick = seep_recorder_freed(thread, address, kind);
        if (!SEEP_ADDRESS_IS_KEY(address)) {
            seep_probes_free(address);
        }
        sample_timeline(view, out.tick);
        timer_stop(view, timer);
        out.recorded = true;
    }
    seep_guard_leave(thread);
    return out;
}

SEEP_NOINLINE void seep_track_freed(const void *block)
{
    release(SEEP_GUARD_FRAME, (uintptr_t)block, SEEP_EVENT_FREE);
}

SEEP_NOINLINE struct seep_track_out seep_track_realloc_out(const void *block)
{
    return release(SEEP_GUARD_FRAME, (uintptr_t)block, SEEP_EVENT_REALLOC_OUT);
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
    take_back(SEEP_GUARD_FRAME, (uintptr_t)block, out, seep_recorder_restored);
}

bool seep_track_wants_range(size_t size_bytes)
{
    enum seep_life_state state = seep_life_state();

    if (seep_unlikely(state == SEEP_LIFE_WAITING)) {
        seep_life_waited(size_bytes);
    }
    return seep_life_is_open() &&
           (state > SEEP_LIFE_ARMED || size_bytes >= START_AT_BYTES);
}

SEEP_NOINLINE void seep_track_mapped(const struct seep_capture_start *from,
                                     enum seep_space space, const void *address,
                                     size_t size_bytes)
{
    struct seep_thread *thread;
    const struct seep_view *view;
    bool may_ask = false; /* it may be the allocator's own mapping */
    struct timer timer;

    if (!seep_track_wants_range(size_bytes)) {
        return;
    }
    timer = timer_start_for_range();
    view = seep_guard_enter_recording(from->sp, &thread);
    if (view != NULL) {
        uint32_t site = seep_stacks_site(
            view, from, (struct seep_place){space, 0}, &may_ask);

        seep_recorder_range(thread, SEEP_EVENT_MAP, site, (uintptr_t)address,
                            size_bytes);
        timer_stop(view, timer);
        seep_guard_leave(thread);
    }
}

SEEP_NOINLINE struct seep_track_out seep_track_range(enum seep_event_kind kind,
                                                     const void *address,
                                                     size_t size_bytes)
{
    struct seep_track_out out = {false, 0};
    struct seep_thread *thread;
    const struct seep_view *view;
    struct timer timer;

    if (!seep_life_is_open() || seep_life_state() == SEEP_LIFE_ARMED) {
        return out;
    }
    timer = timer_start_for_range();
    thread = seep_guard_enter(SEEP_GUARD_FRAME);
    if (thread == NULL) {
        return out;
    }
    view = seep_life_current();
    if (view != NULL) {
        out.tick = seep_recorder_range(thread, kind, 0, (uintptr_t)address,
                                       size_bytes);
        timer_stop(view, timer);
        out.recorded = true;
    }
    seep_guard_leave(thread);
    return out;
}

SEEP_NOINLINE bool seep_track_knows_range(const void *address,
                                          size_t size_bytes,
                                          enum seep_space *ret_space,
                                          uint64_t *ret_bytes)
{
    struct seep_thread *thread;
    bool known = false;

    if (seep_life_state() != SEEP_LIFE_ON) {
        return false;
    }
    thread = seep_guard_enter(SEEP_GUARD_FRAME);
    if (thread != NULL) {
        known = seep_recorder_view() != NULL &&
                seep_recorder_knows_range(thread, (uintptr_t)address,
                                          size_bytes, ret_space, ret_bytes);
        seep_guard_leave(thread);
    }
    return known;
}

SEEP_NOINLINE void seep_track_remap_failed(const void *address,
                                           struct seep_track_out out)
{
    take_back(SEEP_GUARD_FRAME, (uintptr_t)address, out,
              seep_recorder_range_restored);
}

void seep_track_begin(void)
{
    struct seep_thread *thread;

    if (seep_life_state() <= SEEP_LIFE_ARMED &&
        seep_guard_enter_recording(SEEP_GUARD_FRAME, &thread) != NULL) {
        seep_guard_leave(thread);
    }
}

SEEP_NOINLINE void
seep_track_key_allocated(const struct seep_capture_start *from,
                         struct seep_place place, uint64_t key,
                         uint64_t size_bytes)
{
    struct timer timer = timer_start();
    struct seep_thread *thread;
    const struct seep_view *view =
        seep_guard_enter_recording(from->sp, &thread);
    bool may_ask = false; /* the driver may hold the allocator's locks */

    if (view != NULL) {
        uint32_t site = seep_stacks_site(view, from, place, &may_ask);
        uint32_t tick = seep_recorder_allocated(thread, site, key, size_bytes);

        sample_timeline(view, tick);
        timer_stop(view, timer);
        seep_guard_leave(thread);
    }
}

/* Each is chosen by itself: the countdown is that of the host's blocks. Before
 * there is a recording it is begun, and the fold thins what came whole. */
static bool is_tensor_chosen(const struct seep_view *view, unsigned sample_log2,
                             uint64_t size_bytes)
{
    return view == NULL || sample_log2 == 0 ||
           (double)seep_sampler_bits(&seep_thread) <
               0x1p32 * seep_weight_probability(size_bytes, sample_log2);
}

SEEP_NOINLINE void
seep_track_tensor_allocated(const struct seep_capture_start *from,
                            uint32_t device, const void *block,
                            size_t size_bytes)
{
    const struct seep_view *view = seep_recorder_view();
    unsigned sample_log2 = view == NULL ? 0 : seep_pace_tensor_log2(view);
    struct seep_thread *thread;
    bool may_ask = false; /* who tells may hold the allocator's locks */
    struct timer timer;

    if (!is_tensor_chosen(view, sample_log2, size_bytes)) {
        return;
    }
    timer = timer_start();
    view = seep_guard_enter_recording(from->sp, &thread);
    if (view != NULL) {
        uint32_t site = seep_stacks_site(
            view, from, (struct seep_place){SEEP_SPACE_TENSOR, device},
            &may_ask);
        uint32_t tick = seep_recorder_sampled(thread, sample_log2, site,
                                              (uintptr_t)block, size_bytes);

        sample_timeline(view, tick);
        timer.for_tensor = true;
        timer_stop(view, timer);
        seep_guard_leave(thread);
    }
}

void seep_track_count(enum seep_counter counter, uint64_t amount)
{
    const struct seep_view *view = seep_recorder_view();

    if (view != NULL && seep_identity_is_ours()) {
        seep_view_count(view, counter, amount);
    }
}
