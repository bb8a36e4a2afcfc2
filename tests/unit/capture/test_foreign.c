/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stacks that are not the thread's own: coroutines, alternate signal stacks.
 * How far they are read, and that nothing unreadable is touched.
 */
#include "seep_test.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/compiler.h"
#include "capture/native/bounds.h"
#include "capture/native/elf.h"
#include "capture/native/unwind.h"

#define PAGE 4096U
#define STACK_BYTES (64U * PAGE)

static struct {
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t sps[SEEP_STACK_FRAMES_MAX];
    struct seep_capture_end end;
    size_t count;
} seen;

static struct seep_stack_bounds bounds;
static ucontext_t outer;
static ucontext_t inner;
static uint8_t *stack; /* with a page that cannot be read behind it */
static int depth;
static int raised;

static SEEP_NOINLINE void capture_here(void)
{
    struct seep_capture_start start = SEEP_CAPTURE_START();

    start.sps = seen.sps;
    seen.count = seep_native_capture(&start, &bounds, seen.pcs,
                                     SEEP_STACK_FRAMES_MAX, &seen.end);
}

static int setup(void **state)
{
    (void)state;
    stack = mmap(NULL, STACK_BYTES + PAGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack + STACK_BYTES, PAGE, PROT_NONE);
    memset(&seen, 0, sizeof(seen));
    depth = 0;
    raised = 0;
    capture_here();
    return seen.end.cut == SEEP_CUT_NONE ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return munmap(stack, STACK_BYTES + PAGE);
}

/* Frames of 3 KiB: the capture is pages away from where the stack begins. */
static SEEP_NOINLINE int descend(int left)
{
    volatile char frame[3000];

    frame[17] = (char)left;
    __asm__ volatile("" ::"r"(frame) : "memory"); /* all of it is used */
    if (left > 0) {
        return descend(left - 1) + frame[17];
    }
    if (raised != 0) {
        raise(raised);
    } else {
        capture_here();
    }
    return frame[17];
}

static void coroutine(void)
{
    descend(depth);
    __asm__ volatile(""); /* no jump in the place of the call */
}

static void run_coroutine(size_t bytes)
{
    getcontext(&inner);
    inner.uc_stack.ss_sp = stack;
    inner.uc_stack.ss_size = bytes;
    inner.uc_link = &outer;
    makecontext(&inner, coroutine, 0);
    swapcontext(&outer, &inner);
}

static void assert_on_the_stack(size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        assert_true(seen.sps[i] >= (uintptr_t)stack &&
                    seen.sps[i] <= (uintptr_t)stack + STACK_BYTES);
    }
}

static void a_coroutine_is_walked_to_its_first_frame(void **state)
{
    (void)state;
    depth = 20;
    run_coroutine(STACK_BYTES);
    assert_int_equal(seen.end.cut, SEEP_CUT_NONE);
    /* descend 21 times, coroutine, and what it returns to */
    assert_int_equal(seen.count, 23);
    assert_on_the_stack(0, seen.count);
    /* As before where the thread is back on its own stack. */
    capture_here();
    assert_int_equal(seen.end.cut, SEEP_CUT_NONE);
}

static void find_bounds(void)
{
    seep_stack_bounds_find(&bounds, (uintptr_t)__builtin_frame_address(0),
                           true);
}

/* It may be unmapped long before the thread ends. */
static void a_coroutine_is_not_taken_for_the_threads_stack(void **state)
{
    struct seep_stack_bounds own = bounds;

    (void)state;
    getcontext(&inner);
    inner.uc_stack.ss_sp = stack;
    inner.uc_stack.ss_size = STACK_BYTES;
    inner.uc_link = &outer;
    makecontext(&inner, find_bounds, 0);
    swapcontext(&outer, &inner);
    assert_true(bounds.high != 0 && bounds.high <= bounds.low);
    bounds = own;
}

static void handler(int number)
{
    (void)number;
    capture_here();
}

static void on_alternate_stack(void)
{
    struct sigaction action = {.sa_flags = SA_ONSTACK};
    stack_t alternate = {.ss_sp = stack, .ss_size = STACK_BYTES};

    action.sa_handler = handler;
    assert_int_equal(sigaltstack(&alternate, NULL), 0);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    raise(SIGUSR1);
    alternate.ss_flags = SS_DISABLE;
    sigaltstack(&alternate, NULL);
}

static void from_an_alternate_stack_the_walk_comes_back(void **state)
{
    size_t own = 0;

    (void)state;
    on_alternate_stack();
    assert_int_equal(seen.end.cut, SEEP_CUT_NONE);
    assert_true(seen.end.through_signal);
    assert_true(seen.sps[0] >= (uintptr_t)stack &&
                seen.sps[0] < (uintptr_t)stack + STACK_BYTES);
    for (size_t i = 0; i < seen.count; i++) {
        own += seen.sps[i] >= bounds.low && seen.sps[i] < bounds.high;
    }
    assert_true(own >= 4);
}

/* The handler runs on the coroutine's stack, on top of what it came to. */
static void a_signal_in_a_coroutine_is_walked_through(void **state)
{
    (void)state;
    signal(SIGUSR2, handler);
    raised = SIGUSR2;
    depth = 5;
    run_coroutine(STACK_BYTES);
    assert_int_equal(seen.end.cut, SEEP_CUT_NONE);
    assert_true(seen.end.through_signal);
    assert_true(seen.count > 5 + 5);
    assert_on_the_stack(0, seen.count);
}

static void pages_are_proved_one_by_one(void **state)
{
    uintptr_t low = (uintptr_t)stack + STACK_BYTES - 3 * PAGE;
    uintptr_t high = low + PAGE;

    (void)state;
    assert_true(seep_stack_bounds_widen(&high, low + 2 * PAGE - 8));
    assert_true(high == low + 2 * PAGE);
    /* Into the page that cannot be read: as far as it goes, and refused. */
    assert_false(seep_stack_bounds_widen(&high, low + 3 * PAGE));
    assert_true(high == low + 3 * PAGE);
    assert_false(seep_stack_bounds_widen(&high, low + 3 * PAGE + 8));
    assert_false(seep_stack_bounds_enter(&high, low + 3 * PAGE + 8));
    assert_true(high == low + 3 * PAGE);
    assert_true(seep_stack_bounds_enter(&high, low + 8));
    assert_true(high == low + PAGE);
    /* Askew, below, and farther than any frame. */
    assert_false(seep_stack_bounds_widen(&high, low + PAGE + 4));
    assert_false(seep_stack_bounds_widen(&high, low));
    assert_false(seep_stack_bounds_widen(&high, high + (UINT64_C(2) << 20)));
    assert_true(high == low + PAGE);
    high = (uintptr_t)stack & ~(uintptr_t)(PAGE - 1);
    assert_false(seep_stack_bounds_widen(&high, UINTPTR_MAX - 7));
    assert_false(seep_stack_bounds_enter(&high, 8));
}

static void without_system_calls_only_the_page_of_sp_is_read(void **state)
{
    (void)state;
    seep_native_restrict();
    depth = 20;
    run_coroutine(STACK_BYTES);
    assert_int_equal(seen.end.cut, SEEP_CUT_BOUNDS);
    assert_in_range(seen.count, 1, 3);
    assert_true(seen.sps[seen.count - 1] - seen.sps[0] <= PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_coroutine_is_walked_to_its_first_frame, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_coroutine_is_not_taken_for_the_threads_stack, setup, teardown),
        cmocka_unit_test_setup_teardown(
            from_an_alternate_stack_the_walk_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_signal_in_a_coroutine_is_walked_through, setup, teardown),
        cmocka_unit_test_setup_teardown(pages_are_proved_one_by_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            without_system_calls_only_the_page_of_sp_is_read, setup, teardown),
    };

    seep_objects_init();
    if (seep_native_init(SEEP_UNWINDER_EH_FRAME) != 0) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
