/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a capture costs by depth, from warm caches, against unw_backtrace in
 * the same run: where no frame is the last capture's, and where the outer nine
 * tenths are. Prints a table; with --check the ratios are judged: never a time,
 * which belongs to a machine.
 *
 * Invariant: all of a row is measured in turns, and of each the least is told:
 * the others were disturbed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "base/compiler.h"
#include "capture/native/elf.h"
#include "capture/native/unwind.h"
#include "capture_frames.h"

#define ROUNDS 60U
#define CALLS 1000U
#define STACK_BYTES (64U << 10)

/* So often a row is measured again that misses its bounds: on a machine with
 * other work the least of a few rounds may be a disturbed one, too. */
#define TRIES 20U

/* Two stacks in one piece, of which captures are told that it is the thread's:
 * no frame of the one is in the other. */
struct apart {
    ucontext_t contexts[2];
    struct seep_capture_start starts[2];
    uint8_t stacks[2][STACK_BYTES] __attribute__((aligned(4096)));
};

/* What a row is held to: so many times cheaper than unw_backtrace. Clearly
 * below what is reached on an idle machine; 0: not judged. */
struct bounds {
    double apart;
    double shared;
};

struct row {
    descend_function *descend;
    descend_function *const *ways;
    int depth;
    struct bounds bounds;
    size_t frame_count;
    double apart_ns;
    double with_ns;      /* what is called, and a capture at its end */
    double without_ns;   /* and none */
    double libunwind_ns; /* and libunwind's */
    double backtrace_ns;
};

static struct apart apart;
static ucontext_t here;
static struct seep_stack_bounds own_bounds;
static struct seep_stack_bounds apart_bounds;
static struct row *row;
static int parked;

/* A tenth of the frames, rounded up. */
static int inner_depth(const struct row *of)
{
    return (of->depth + 9) / 10;
}

static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void take_least(double *least, double begin, unsigned int calls)
{
    double spent = (now_ns() - begin) / calls;

    if (*least == 0 || spent < *least) {
        *least = spent;
    }
}

static SEEP_NOINLINE size_t capture(const struct seep_capture_start *start,
                                    struct seep_stack_bounds *bounds)
{
    static uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    struct seep_capture_end end;

    return seep_native_capture(start, bounds, pcs, SEEP_STACK_FRAMES_MAX, &end);
}

/* At the end of each of the two stacks: where captures begin. */
static SEEP_NOINLINE int park(void *argument)
{
    static void *frames[SEEP_STACK_FRAMES_MAX];

    (void)argument;
    apart.starts[parked] = SEEP_CAPTURE_START();
    swapcontext(&apart.contexts[parked], &here);
    for (;;) {
        double begin = now_ns();

        for (unsigned int i = 0; i < CALLS; i++) {
            unw_backtrace(frames, SEEP_STACK_FRAMES_MAX);
        }
        take_least(&row->backtrace_ns, begin, CALLS);
        swapcontext(&apart.contexts[parked], &here);
    }
    return 0;
}

/* The outermost function of those stacks, as one of a thread: no caller. */
void run_parked(void) __attribute__((used));

void run_parked(void)
{
    row->descend(row->depth - 2, park, NULL);
}

void begin_parked(void);
__asm__(".text\n"
        ".type begin_parked, @function\n"
        "begin_parked:\n"
        ".cfi_startproc\n"
        ".cfi_undefined rip\n"
        "subq $8, %rsp\n"
        "call run_parked\n"
        "hlt\n"
        ".cfi_endproc\n");

static void make_stacks(void)
{
    for (parked = 0; parked < 2; parked++) {
        ucontext_t *context = &apart.contexts[parked];

        getcontext(context);
        context->uc_stack.ss_sp = apart.stacks[parked];
        context->uc_stack.ss_size = STACK_BYTES;
        makecontext(context, begin_parked, 0);
        swapcontext(&here, context);
    }
    parked = 0;
    apart_bounds.low = (uintptr_t)apart.stacks;
    apart_bounds.high = (uintptr_t)(apart.stacks + 2);
}

static void measure_apart(void)
{
    double begin = now_ns();

    for (unsigned int i = 0; i < CALLS; i++) {
        row->frame_count = capture(&apart.starts[i % 2], &apart_bounds);
    }
    take_least(&row->apart_ns, begin, CALLS);
}

static SEEP_NOINLINE int capture_inside(void *argument)
{
    struct seep_capture_start start = SEEP_CAPTURE_START();

    return (int)capture(&start, argument);
}

static SEEP_NOINLINE int backtrace_inside(void *argument)
{
    static void *frames[SEEP_STACK_FRAMES_MAX];

    return unw_backtrace(frames, SEEP_STACK_FRAMES_MAX) + (argument == NULL);
}

static SEEP_NOINLINE int capture_nothing(void *argument)
{
    return argument == NULL;
}

/* The inner tenth by several ways in turn, from one place. */
static void alternate(double *least, bottom_function *bottom)
{
    double begin = now_ns();

    for (unsigned int i = 0; i < CALLS; i++) {
        row->ways[i % BENCH_WAYS](inner_depth(row), bottom, &own_bounds);
    }
    take_least(least, begin, CALLS);
}

static SEEP_NOINLINE int measure_shared(void *argument)
{
    (void)argument;
    for (unsigned int i = 0; i < ROUNDS; i++) {
        alternate(&row->with_ns, capture_inside);
        alternate(&row->without_ns, capture_nothing);
        alternate(&row->libunwind_ns, backtrace_inside);
        measure_apart();
        swapcontext(&here, &apart.contexts[0]);
    }
    return 0;
}

static void measure(struct row *next)
{
    row = next;
    make_stacks();
    /* Below are main, measure and three of libc's. */
    row->descend(row->depth - inner_depth(row) - 6, measure_shared, NULL);
}

static double shared_ns(const struct row *of)
{
    return of->with_ns - of->without_ns;
}

/* Against libunwind in the same place: what the program's own calls lose by
 * what is done between them is in both. */
static double shared_ratio(const struct row *of)
{
    return (of->libunwind_ns - of->without_ns) / shared_ns(of);
}

static bool is_within(const struct row *of)
{
    return of->backtrace_ns >= of->bounds.apart * of->apart_ns &&
           shared_ratio(of) >= of->bounds.shared;
}

static void print_row(const struct row *of)
{
    printf("%4zu %s  %9.1f %8.2f %6.1f %9.1f %6.1f %13.1f\n", of->frame_count,
           of->descend == descend_by_rbp ? "rbp" : "rsp", of->apart_ns,
           of->apart_ns / (double)of->frame_count,
           of->backtrace_ns / of->apart_ns, shared_ns(of), shared_ratio(of),
           of->backtrace_ns);
}

/* The least of all tries counts. */
static bool measure_row(struct row *next, bool check)
{
    unsigned int tries = check ? TRIES : 1;

    do {
        measure(next);
    } while (--tries != 0 && !is_within(next));
    print_row(next);
    if (check && !is_within(next)) {
        printf("     is to be %.1f times cheaper, shared %.1f\n",
               next->bounds.apart, next->bounds.shared);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static const struct {
        int depth;
        struct bounds by_rsp;
        struct bounds by_rbp;
    } depths[] = {
        {5, {0, 0}, {0, 0}},
        {15, {1.6, 3.2}, {1.4, 3.2}},
        {40, {1.7, 4.2}, {1.5, 4.0}},
        {95, {1.8, 4.8}, {1.5, 4.8}},
    };
    bool check = argc > 1 && strcmp(argv[1], "--check") == 0;
    bool sound = true;

    seep_objects_init();
    if (seep_native_init(SEEP_UNWINDER_EH_FRAME) != 0) {
        return 77;
    }
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
    printf("frames        nothing shared       outer 9/10 shared  "
           "unw_backtrace\n"
           "                 ns  a frame  ratio        ns  ratio            "
           "ns\n");
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        struct row by_rsp = {.descend = descend_by_rsp,
                             .ways = ways_by_rsp,
                             .depth = depths[i].depth,
                             .bounds = depths[i].by_rsp};
        struct row by_rbp = {.descend = descend_by_rbp,
                             .ways = ways_by_rbp,
                             .depth = depths[i].depth,
                             .bounds = depths[i].by_rbp};

        sound = measure_row(&by_rsp, check) && sound;
        sound = measure_row(&by_rbp, check) && sound;
    }
    return sound ? 0 : 1;
}
