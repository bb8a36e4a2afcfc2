/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Beginning and end of a recording, and the guard that a thread enters. Of its
 * parent's memory a forked child touches nothing. */
#include "preload/life.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/syscall.h"
#include "base/thread.h"
#include "base/word.h"
#include "cuda/ledger.h"
#include "preload/hooks.h"
#include "preload/identity.h"
#include "preload/options.h"
#include "preload/track.h"
#include "record/keep.h"
#include "record/recorder.h"
#include "record/region.h"
#include "record/sampler.h"

static _Atomic int life_state;
static _Atomic uint32_t restricted;
static _Atomic uint64_t start_missed;
static _Atomic uint32_t starter; /* thread that creates the recording */

/*
 * Many a child of a fork ends at once, and beginning its recording would be
 * dearer than all that it does: 2 ms. So one that is sampled waits, and nothing
 * is recorded of it, as nothing is of what it inherited: for so long, or until
 * it has allocated so much, which what it loads as it begins may be.
 */
#define WAIT_NS UINT64_C(100000000)
#define WAIT_BYTES (UINT64_C(16) << 20)
static _Atomic uint64_t waits_since_ns;
static _Atomic uint64_t waited_bytes;

/*
 * Who is inside of a hook, as far as that is counted: what all of them look at
 * can go when nobody is. One that was left by a jump stays counted until its
 * thread comes again.
 */
#define COUNTS 16U
static struct {
    _Alignas(64) _Atomic uint32_t threads;
} inside[COUNTS];
static bool counts; /* set where there is no second thread */

static _Atomic uint32_t *count_of(const struct seep_thread *thread)
{
    return &inside[(uintptr_t)thread / 4096 % COUNTS].threads;
}

SEEP_INLINE void come_in(const struct seep_thread *thread)
{
    if (seep_likely(counts)) {
        seep_word_fetch_add(count_of(thread), 1);
        /* Sequentially: pairs with the store in seep_recorder_end(). */
        atomic_thread_fence(memory_order_seq_cst);
    }
}

SEEP_INLINE void go_out(const struct seep_thread *thread)
{
    if (seep_likely(counts)) {
        /* Release: all that was done inside; pairs with the acquire in
         * is_empty(). */
        atomic_fetch_sub_explicit(count_of(thread), 1, memory_order_release);
    }
}

static bool is_empty(void)
{
    uint32_t threads = 0;

    for (size_t i = 0; i < COUNTS; i++) {
        /* Sequentially: pairs with the fence in come_in(), and with the release
         * in go_out(). */
        threads |=
            atomic_load_explicit(&inside[i].threads, memory_order_seq_cst);
    }
    return counts && threads == 0;
}

/* In a child of a fork there is one thread. */
static void count_anew(const struct seep_thread *thread)
{
    for (size_t i = 0; i < COUNTS; i++) {
        seep_word_store(&inside[i].threads, 0);
    }
    if (thread->hook_frame != 0) {
        seep_word_store(count_of(thread), 1);
    }
}

/* Weak, for a C library that lacks it. */
extern int seep_register_atfork(void (*)(void), void (*)(void), void (*)(void),
                                void *) __asm__("__register_atfork")
    __attribute__((weak));

int seep_life_at_fork(void (*child)(void))
{
    /* Not tested: a C library without it. The tests run on glibc. */
    return &seep_register_atfork != NULL
               ? seep_register_atfork(NULL, NULL, child, NULL)
               : -ENOSYS;
}

enum seep_life_state seep_life_state(void)
{
    return (enum seep_life_state)seep_word_load(&life_state);
}

/* What is left of a recording whose memory was given back. */
static struct seep_rec_header *closed;

static void set_state(enum seep_life_state state)
{
    seep_word_store(&life_state, state);
}

bool seep_life_has_waited(void)
{
    return seep_word_load(&waited_bytes) >= WAIT_BYTES ||
           seep_clock_monotonic_ns() - seep_word_load(&waits_since_ns) >=
               WAIT_NS;
}

void seep_life_waited(uint64_t bytes)
{
    if (seep_word_load(&waited_bytes) < WAIT_BYTES) {
        seep_word_fetch_add(&waited_bytes,
                            bytes < WAIT_BYTES ? bytes : WAIT_BYTES);
    }
}

/* In exact mode each call counts, from the first on. */
static void wait_in_child(void)
{
    if (seep_options.sample_log2 != 0 && seep_life_state() != SEEP_LIFE_DONE) {
        seep_word_store(&waits_since_ns, seep_clock_monotonic_ns());
        seep_word_store(&waited_bytes, 0);
        set_state(SEEP_LIFE_WAITING);
    }
}

/* This is the child of a fork: nothing of the parent's may be touched. A jump
 * may leave this at any instruction, and it begins anew: so the view is gone
 * before what it shows. */
static SEEP_COLD void life_forked(struct seep_thread *thread)
{
    const struct seep_view *view = seep_recorder_view();
    struct seep_rec_header *header = closed;
    uint64_t size_bytes = 0;

    closed = NULL;
    if (seep_life_state() != SEEP_LIFE_WAITING) { /* else they were, alone */
        count_anew(thread);
    }
    if (view != NULL) {
        header = view->header;
        size_bytes = header->file_bytes;
    }
    seep_recorder_drop();
    seep_region_drop(header, size_bytes);
    seep_stacks_after_fork();
    seep_cuda_events_after_fork();
    thread->id = 0;
    seep_word_store(&thread->claim, 0);
    seep_word_store(&thread->held_site, 0);
    seep_word_store(&thread->held_shard, 0);
    if (seep_life_state() != SEEP_LIFE_DONE) {
        set_state(seep_word_load(&restricted) != 0 ? SEEP_LIFE_DONE
                                                   : SEEP_LIFE_ARMED);
    }
    seep_identity_adopt();
}

/* Who makes a child its own: threads of one that has waited come all at once.
 * A jump may leave it, and then the same thread goes on. */
static _Atomic(struct seep_thread *) adopter;

/* @return false: another thread does it */
SEEP_COLD static bool adopt(struct seep_thread *thread)
{
    struct seep_thread *found = NULL;

    /* Acquire: what the last adopter made; pairs with the release below. */
    if (!atomic_compare_exchange_strong_explicit(&adopter, &found, thread,
                                                 memory_order_acq_rel,
                                                 memory_order_acquire) &&
        found != thread) {
        seep_word_fetch_add(&start_missed, 1);
        return false;
    }
    if (!seep_identity_is_ours()) {
        life_forked(thread);
    }
    /* Release: pairs with the acquires above. */
    atomic_store_explicit(&adopter, NULL, memory_order_release);
    return true;
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
    count_anew(&seep_thread);
    seep_track_unmark(); /* a handler may have forked in there */
    atomic_store_explicit(&adopter, NULL, memory_order_relaxed);
    if (seep_identity_is_ours() || seep_life_is_restricted()) {
        return;
    }
    if (seep_thread.hook_frame == 0) {
        /* What other threads had open. Later may be too late: by then the
         * number of a descriptor can be the program's own. */
        seep_proc_close();
        seep_keep_abandon();
        if (view == NULL) {
            seep_region_leave();
        }
        wait_in_child();
    } else if (view != NULL) {
        uint64_t size_bytes = view->header->file_bytes;
        uint32_t shard_count = view->header->shard_count;

        seep_region_replace(view->header, size_bytes);
        view->header->file_bytes = size_bytes;   /* for who drops it */
        view->header->shard_count = shard_count; /* for that hook */
    } else if (seep_life_state() == SEEP_LIFE_STARTING &&
               seep_word_load(&starter) == seep_thread.id) {
        seep_region_forsake();
    }
}

static void settle_start(void)
{
    seep_region_settle();
    set_state(SEEP_LIFE_ON);
}

/* The hook that @thread was in is gone by a jump. Who is a child of a fork by
 * now begins anew anyway. */
static SEEP_COLD void life_abandoned(struct seep_thread *thread)
{
    const struct seep_view *view = seep_recorder_view();

    if (!seep_identity_is_ours()) {
        return;
    }
    if (seep_life_state() == SEEP_LIFE_STARTING &&
        seep_word_load(&starter) == thread->id) {
        if (view != NULL) {
            settle_start();
        } else {
            seep_proc_close();
            seep_keep_abandon();
            seep_region_abandon();
            set_state(SEEP_LIFE_ARMED);
        }
    }
    if (view != NULL) {
        seep_recorder_recover(thread);
    }
}

SEEP_COLD static void start(void)
{
    int armed = SEEP_LIFE_ARMED;
    enum seep_inert_reason reason;
    void *mapping = NULL;
    int error;

    if (!seep_identity_is_this_process()) {
        return; /* a vfork child, in its parent's memory */
    }
    if (!seep_word_replace(&life_state, &armed, SEEP_LIFE_STARTING)) {
        seep_word_fetch_add(&start_missed, 1);
        return;
    }
    seep_word_store(&starter, seep_thread.id);
    error = seep_identity_create(SEEP_INERT_NONE, &mapping);
    if (!seep_identity_is_ours()) { /* a handler forked in there */
        seep_region_leave();
        set_state(SEEP_LIFE_ARMED);
        return;
    }
    reason = error != 0 ? seep_identity_tell_lacking() : SEEP_INERT_NONE;
    if (reason == SEEP_INERT_NONE) {
        seep_verbose_created(error, mapping);
    } else {
        seep_verbose_inert(reason);
    }
    if (error != 0) {
        set_state(SEEP_LIFE_DONE);
        return;
    }
    seep_recorder_start(mapping);
    settle_start();
}

/* The run is over, the process not yet: what follows is not recorded. */
SEEP_COLD static void stop(const struct seep_view *view)
{
    int on = SEEP_LIFE_ON;

    if (seep_word_replace(&life_state, &on, SEEP_LIFE_DONE)) {
        seep_word_store(&view->header->exit_tick, seep_recorder_tick());
    }
}

#define CLOSE_STEP_NS 50000L
#define CLOSE_STEPS 400U

/* Nobody comes in any more: when the last has gone, all goes. */
static bool give_back(void)
{
    const struct timespec step = {0, CLOSE_STEP_NS};

    for (unsigned i = 0; i < CLOSE_STEPS; i++) {
        if (is_empty()) {
            seep_region_shrink();
            seep_own_give_back();
            seep_filter_fill(false);
            return true;
        }
        seep_syscall2(SYS_nanosleep, (long)&step, 0);
    }
    return false;
}

/* Another thread is at it. */
static bool wait_for(const _Atomic uint32_t *closer)
{
    const struct timespec step = {0, CLOSE_STEP_NS};

    for (unsigned i = 0; i < CLOSE_STEPS && seep_word_load(closer) != 0; i++) {
        seep_syscall2(SYS_nanosleep, (long)&step, 0);
    }
    return seep_word_load(closer) == 0;
}

void seep_life_count_failed(uint64_t size_bytes)
{
    if (closed != NULL && seep_identity_is_ours()) {
        seep_word_fetch_add(&closed->failed_count, 1);
        seep_word_store(&closed->failed_bytes, size_bytes);
    }
}

void seep_life_count(void)
{
    counts = true;
}

bool seep_life_close(void)
{
    const struct seep_view *view = seep_recorder_view();
    static _Atomic uint32_t closer;
    bool given;

    if (!counts || seep_life_is_restricted() || seep_thread.hook_frame != 0 ||
        !seep_identity_is_ours() || seep_cuda_ledger_was_used()) {
        return false;
    }
    /* Acquire: of who was here before; pairs with the release below. */
    if (atomic_exchange_explicit(&closer, 1, memory_order_acquire) != 0) {
        return wait_for(&closer);
    }
    if (view != NULL && seep_life_state() == SEEP_LIFE_ON) {
        stop(view);
        seep_word_store(&view->header->closed_tick, seep_recorder_tick() + 1);
        closed = view->header;
        seep_recorder_end();
    }
    given = closed != NULL && give_back();
    /* Release: pairs with the acquire above. */
    atomic_store_explicit(&closer, 0, memory_order_release);
    return given;
}

const struct seep_view *seep_life_current(void)
{
    const struct seep_view *view = seep_recorder_view();

    if (seep_unlikely(view != NULL && seep_ending_has_begun())) {
        stop(view);
        return NULL;
    }
    return view;
}

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
    return seep_word_exchange(&start_missed, 0);
}

/* In exact mode, where a thread comes in with every call, it is a share of the
 * cost: only where there is a limit, or one is set while there is one thread.
 */
static bool may_count(bool is_exact)
{
    struct seep_own_limits limits = seep_own_limits_now();

    return !is_exact || limits.address_bytes != UINT64_MAX ||
           limits.data_bytes != UINT64_MAX;
}

void seep_life_arm(bool is_exact)
{
    seep_recorder_set_identity(seep_identity_is_ours);
    seep_thread.countdown_bytes = 0;
    seep_thread.sample_log2 = 0;
    seep_thread.id = (uint32_t)seep_syscall0(SYS_gettid);
    seep_sampler_seed(&seep_thread,
                      seep_clock_cycles() ^ (uintptr_t)&seep_thread);
    seep_life_at_fork(leave_parent);
    counts = may_count(is_exact);
    set_state(SEEP_LIFE_ARMED);
}

void seep_life_disarm(void)
{
    set_state(SEEP_LIFE_DONE);
}

bool seep_life_is_restricted(void)
{
    return seep_word_load(&restricted) != 0;
}

void seep_life_restrict(void)
{
    seep_word_store(&restricted, 1);
    seep_clock_forbidden = true;
    seep_recorder_restrict();
    seep_stacks_restrict();
    seep_own_restrict();
    seep_cuda_events_restrict();
    seep_track_count(SEEP_COUNT_RESTRICTED, 1);
    if (seep_life_state() == SEEP_LIFE_ARMED ||
        seep_life_state() == SEEP_LIFE_WAITING) {
        set_state(SEEP_LIFE_DONE);
    }
}

/* In a signal handler, in the middle of a hook and in a child that shares this
 * memory too: it loads and stores, and asks for a number. */
void seep_life_exiting(void)
{
    const struct seep_view *view = seep_recorder_view();
    uint32_t none = 0;

    if (view != NULL && seep_identity_is_ours() &&
        seep_life_state() == SEEP_LIFE_ON &&
        (seep_life_is_restricted() || seep_identity_is_this_process())) {
        seep_word_replace(&view->header->final_tick, &none,
                          seep_recorder_tick());
    }
}

void seep_life_exit(void)
{
    const struct seep_view *view = seep_recorder_view();

    if (closed != NULL && seep_identity_is_ours()) {
        seep_word_store(&closed->exited, 1);
    }
    if (view != NULL && seep_identity_is_ours()) {
        if (seep_life_state() == SEEP_LIFE_ON) {
            seep_word_store(&view->header->exit_tick, seep_recorder_tick());
        }
        seep_cuda_events_count(view);
        seep_word_store(&view->header->minor, seep_keep_is_minor(view));
        seep_word_store(&view->header->exited, 1);
    }
}

/* The guard: one entry a thread. */

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

/* Not tested: a hash with zeros in all of these bits, one in four million.
 * Where a thread's words lie is the C library's choice. */
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
SEEP_COLD static void begin_thread(struct seep_thread *thread)
{
    thread->id = thread_id(thread);
    seep_sampler_seed(thread, seep_clock_cycles() ^ seep_clock_monotonic_ns() ^
                                  (uint64_t)thread->id << 32 ^
                                  (uintptr_t)thread);
}

struct seep_thread *seep_guard_enter(uintptr_t frame)
{
    struct seep_thread *thread = &seep_thread;

    if (seep_unlikely(thread->hook_frame != 0)) {
        if (!is_abandoned(thread, frame)) {
            seep_track_count(SEEP_COUNT_NESTED, 1);
            return NULL;
        }
        thread->serving = 0;
        thread->nested = 0;
        life_abandoned(thread);
    } else {
        come_in(thread);
    }
    thread->hook_frame = frame;
    atomic_signal_fence(memory_order_seq_cst);
    if (seep_unlikely(!seep_identity_is_ours()) && !adopt(thread)) {
        seep_guard_leave(thread);
        return NULL;
    }
    if (seep_unlikely(thread->id == 0)) {
        begin_thread(thread);
    }
    return thread;
}

void seep_guard_leave(struct seep_thread *thread)
{
    thread->nested = 0;
    atomic_signal_fence(memory_order_seq_cst);
    thread->hook_frame = 0;
    go_out(thread);
}

const struct seep_view *
seep_guard_enter_recording(uintptr_t frame, struct seep_thread **ret_thread)
{
    struct seep_thread *thread;
    const struct seep_view *view;

    if (seep_unlikely(seep_life_state() == SEEP_LIFE_WAITING)) {
        seep_life_waited(WAIT_BYTES);
    }
    thread = seep_life_is_open() ? seep_guard_enter(frame) : NULL;
    if (thread == NULL) {
        return NULL;
    }
    view = seep_life_recording();
    if (view == NULL) {
        seep_guard_leave(thread);
        return NULL;
    }
    *ret_thread = thread;
    return view;
}
