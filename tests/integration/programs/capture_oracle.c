/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library to preload: at every malloc it captures the stack with both
 * backends and compares them frame by frame, in pc and stack pointer. With
 * SEEP_ORACLE_TICK_US also wherever a timer's signal finds the program; then,
 * and where a program captures behind each instruction, SEEP_ORACLE_ANYWHERE
 * keeps libunwind right.
 *
 * Counts lie in a file, mapped shared, so that they survive any kind of end.
 * Invariant: the program behaves as without it, if slower; and the walker has
 * of each thread what it has under the recorder, so that what consecutive
 * captures share is compared at each of them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "capture/native/elf.h"
#include "capture/native/walk.h"

#define EXAMPLES_MAX 4U
#define TRAP_FLAG 0x100U

struct example {
    uint64_t ours_count;
    uint64_t theirs_count;
    uint64_t cut;
    uint64_t ours[SEEP_STACK_FRAMES_MAX];
    uint64_t theirs[SEEP_STACK_FRAMES_MAX];
};

/* What the test reads: 64-bit words, in this order. */
struct results {
    _Atomic uint64_t compared;
    _Atomic uint64_t equal;   /* the same to the end, complete */
    _Atomic uint64_t shorter; /* the same up to the walker's cut */
    _Atomic uint64_t differing;
    _Atomic uint64_t sooner; /* the same up to where the walker sees an end */
    _Atomic uint64_t frames;
    _Atomic uint64_t cuts[16];          /* of the walker, by enum seep_cut */
    _Atomic uint64_t example_counts[2]; /* of stacks cut, and differing */
    struct example
        examples[2 * EXAMPLES_MAX]; /* the first half of stacks cut */
};

static __thread bool inside;
static __thread struct seep_stack_bounds bounds;
static struct results *results;
static uint64_t every = 1; /* of the mallocs; 0: none */
static _Atomic uint64_t calls;
static void *(*real_malloc)(size_t);
static int (*real_iterate)(int (*)(struct dl_phdr_info *, size_t, void *),
                           void *);
static int (*real_dlclose)(void *);

extern void *__libc_malloc(size_t size);

/* For a program to call where it cannot allocate. */
SEEP_EXPORT void capture_oracle_here(void);

static void resolve(const char *name, void *ret_function)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(ret_function, &found, sizeof(found));
}

static void open_results(void)
{
    const char *pattern = getenv("SEEP_ORACLE_OUT");
    char path[512];
    int file;

    if (pattern == NULL) {
        return;
    }
    snprintf(path, sizeof(path), "%s.%d", pattern, (int)getpid());
    file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct results)) != 0) {
        return;
    }
    results = mmap(NULL, sizeof(struct results), PROT_READ | PROT_WRITE,
                   MAP_SHARED, file, 0);
    close(file);
    if (results == MAP_FAILED) {
        results = NULL;
    }
}

/* In the only thread of a child. */
static void after_fork(void)
{
    seep_thread.id = 0;
    seep_native_after_fork();
}

/* libunwind's cache takes an address that a signal interrupted for a return
 * address that it has seen, and the other way round. */
static void leave_out_the_cache(void)
{
    void *handle = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *found = dlsym(handle, "_ULx86_64_set_caching_policy");
    void **space = dlsym(handle, "_ULx86_64_local_addr_space");
    int (*set_policy)(void *, int);

    memcpy(&set_policy, &found, sizeof(found));
    if (set_policy != NULL && space != NULL) {
        set_policy(*space, 0);
    }
}

static void on_tick(int number)
{
    int saved = errno;

    (void)number;
    capture_oracle_here();
    errno = saved;
}

static void start_ticks(const char *text)
{
    long interval_ns = text != NULL ? atol(text) * 1000 : 0;
    struct itimerspec often = {{0, interval_ns}, {0, interval_ns}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGPROF};
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    timer_t timer;

    if (interval_ns > 0 && sigaction(SIGPROF, &action, NULL) == 0 &&
        timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {
        timer_settime(timer, 0, &often, NULL);
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SEEP_ORACLE_EVERY");

    inside = true;
    resolve("malloc", &real_malloc);
    resolve("dl_iterate_phdr", &real_iterate);
    resolve("dlclose", &real_dlclose);
    every = text != NULL ? strtoull(text, NULL, 10) : 1;
    seep_objects_init();
    if (seep_libunwind_init() == 0 &&
        seep_native_init(SEEP_UNWINDER_EH_FRAME) == 0) {
        open_results();
        pthread_atfork(NULL, NULL, after_fork);
        if (getenv("SEEP_ORACLE_ANYWHERE") != NULL) {
            leave_out_the_cache();
        }
        start_ticks(getenv("SEEP_ORACLE_TICK_US"));
    }
    inside = false;
}

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

struct walked {
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t sps[SEEP_STACK_FRAMES_MAX];
    size_t count;
    struct seep_capture_end end;
};

static void keep_example(const struct walked *ours, const struct walked *theirs,
                         bool differs)
{
    uint64_t index = atomic_fetch_add_explicit(
        &results->example_counts[differs], 1, memory_order_relaxed);
    struct example *example =
        &results->examples[index + (differs ? EXAMPLES_MAX : 0)];

    if (index < EXAMPLES_MAX) {
        example->cut = ours->end.cut;
        example->ours_count = ours->count;
        example->theirs_count = theirs->count;
        memcpy(example->ours, ours->pcs, sizeof(ours->pcs));
        memcpy(example->theirs, theirs->pcs, sizeof(theirs->pcs));
    }
}

/* Of a frame without a rule, which it passed by the frame pointer, libunwind
 * says that its caller's is two words above. */
static bool is_guess(const struct walked *ours, const struct walked *theirs,
                     size_t i)
{
    return i > 0 && ours->sps[i] != theirs->sps[i] &&
           theirs->sps[i] == theirs->sps[i - 1] + 2 * sizeof(uintptr_t);
}

static bool is_same(const struct walked *ours, const struct walked *theirs,
                    size_t i)
{
    return ours->pcs[i] == theirs->pcs[i] &&
           (ours->sps[i] == theirs->sps[i] || is_guess(ours, theirs, i));
}

/* Frames that are the same, from the innermost on. */
static size_t count_same(const struct walked *ours, const struct walked *theirs)
{
    size_t same = 0;

    while (same < ours->count && same < theirs->count &&
           is_same(ours, theirs, same)) {
        same++;
    }
    return same;
}

/* In the middle of a longjmp libunwind takes the buffer for the stack and a
 * mangled pointer for an address; the walker sees the registers that hold them
 * in the clear. */
static bool is_astray(const struct walked *theirs, size_t same,
                      enum seep_cut cut)
{
    bool no_address = false;

    for (size_t i = same; i < theirs->count; i++) {
        no_address = no_address || theirs->pcs[i] >> 47 != 0;
    }
    return cut == SEEP_CUT_NONE && no_address;
}

/* Behind such a guess libunwind looks for the next frame where none is, and may
 * stop there; by what the stack holds, which is another thing in each run. */
static bool is_lost(const struct walked *ours, const struct walked *theirs,
                    size_t same, enum seep_cut cut)
{
    return cut == SEEP_CUT_NONE && same == theirs->count && same > 0 &&
           same < ours->count && is_guess(ours, theirs, same - 1);
}

static void judge(const struct walked *ours, const struct walked *theirs)
{
    size_t same = count_same(ours, theirs);
    enum seep_cut cut = ours->end.cut;

    add(&results->compared, 1);
    add(&results->frames, ours->count);
    add(&results->cuts[cut], 1);
    if ((same == ours->count && same == theirs->count &&
         ours->end.through_signal == theirs->end.through_signal) ||
        is_astray(theirs, same, cut) || is_lost(ours, theirs, same, cut)) {
        add(&results->equal, 1);
    } else if (same == ours->count && cut != SEEP_CUT_NONE) {
        add(&results->shorter, 1);
    } else if (same == ours->count && same < theirs->count) {
        add(&results->sooner, 1);
        keep_example(ours, theirs, false);
        return;
    } else {
        add(&results->differing, 1);
        keep_example(ours, theirs, true);
        return;
    }
    if (cut != SEEP_CUT_NONE && cut != SEEP_CUT_DEPTH) {
        keep_example(ours, theirs, false);
    }
}

static SEEP_NOINLINE void compare(struct seep_capture_start start)
{
    struct walked ours;
    struct walked theirs;

    if (seep_thread.id == 0) {
        seep_thread.id = (uint32_t)syscall(SYS_gettid);
    }
    start.sps = ours.sps;
    ours.count = seep_native_capture(&start, &bounds, ours.pcs,
                                     SEEP_STACK_FRAMES_MAX, &ours.end);
    start.sps = theirs.sps;
    theirs.count = seep_libunwind_walk(&start, theirs.pcs,
                                       SEEP_STACK_FRAMES_MAX, &theirs.end);
    /* A return address of 0 is no frame. */
    theirs.count -=
        theirs.count > 0 && theirs.pcs[theirs.count - 1] == UINTPTR_MAX;
    judge(&ours, &theirs);
}

/* A program that steps through its instructions asks at each of them itself:
 * a step in libunwind, which blocks signals, would be its end. */
static bool is_stepped(void)
{
    return (__builtin_ia32_readeflags_u64() & TRAP_FLAG) != 0;
}

static void take(const struct seep_capture_start *start)
{
    int saved = errno;

    if (inside || results == NULL || is_stepped()) {
        return;
    }
    inside = true;
    atomic_signal_fence(memory_order_seq_cst);
    compare(*start);
    atomic_signal_fence(memory_order_seq_cst);
    inside = false;
    errno = saved;
}

SEEP_EXPORT void capture_oracle_here(void)
{
    struct seep_capture_start start = SEEP_CAPTURE_START();

    take(&start);
}

SEEP_EXPORT void *malloc(size_t size)
{
    struct seep_capture_start start = SEEP_CAPTURE_START();
    void *block = real_malloc != NULL ? real_malloc(size) : __libc_malloc(size);

    if (every != 0 &&
        atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) % every ==
            0) {
        take(&start);
    }
    return block;
}

SEEP_EXPORT int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t,
                                                void *),
                                void *data)
{
    if (seep_objects_serves_this_thread()) {
        return seep_objects_iterate(callback, data);
    }
    if (real_iterate == NULL) {
        resolve("dl_iterate_phdr", &real_iterate);
    }
    return real_iterate(callback, data);
}

SEEP_EXPORT int dlclose(void *handle)
{
    int result;

    if (real_dlclose == NULL) {
        resolve("dlclose", &real_dlclose);
    }
    seep_objects_unload_begin();
    result = real_dlclose(handle);
    seep_objects_unload_end();
    return result;
}
