/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The walk: this program's own stacks, and stacks that are made up to lead it
 * astray. Compiled with frame pointers: every frame here has a rule of rbp.
 */
#include "seep_test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/compiler.h"
#include "capture/native/bounds.h"
#include "capture/native/cache.h"
#include "capture/native/elf.h"
#include "capture/native/walk.h"

#define WORDS 512U

/* A stack of our own making, of which a walk is told that it is the thread's.
 */
struct made_up {
    uintptr_t words[WORDS] __attribute__((aligned(4096)));
    struct seep_stack_bounds bounds;
    struct seep_capture_start start;
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    struct seep_capture_end end;
    size_t count;
};

static struct made_up stack;

/* An address behind a call in a function whose CFA is rbp + 16. */
static SEEP_NOINLINE uintptr_t return_here(void)
{
    return (uintptr_t)__builtin_return_address(0);
}

static SEEP_NOINLINE uintptr_t code_with_frame_pointer(void)
{
    uintptr_t pc = return_here();

    __asm__ volatile("" : "+r"(pc));
    return pc;
}

static void walk_made_up(uintptr_t *sp, uintptr_t fp)
{
    stack.start.pc = code_with_frame_pointer();
    stack.start.sp = (uintptr_t)sp;
    stack.start.fp = fp;
    stack.count = seep_unwind_walk(&stack.start, &stack.bounds, NULL, stack.pcs,
                                   SEEP_STACK_FRAMES_MAX, &stack.end);
}

static int make_up(void **state)
{
    (void)state;
    memset(&stack, 0, sizeof(stack));
    stack.bounds.low = (uintptr_t)stack.words;
    stack.bounds.high = (uintptr_t)(stack.words + WORDS);
    return 0;
}

/* A frame record at @at: the caller's rbp and a return address. */
static void put_record(unsigned int at, uintptr_t fp, uintptr_t back)
{
    stack.words[at] = fp;
    stack.words[at + 1] = back;
}

static void a_return_address_of_0_is_the_end(void **state)
{
    uintptr_t pc = code_with_frame_pointer();

    (void)state;
    put_record(10, (uintptr_t)&stack.words[20], pc);
    put_record(20, 0, 0);
    walk_made_up(&stack.words[4], (uintptr_t)&stack.words[10]);
    assert_int_equal(stack.end.cut, SEEP_CUT_NONE);
    assert_int_equal(stack.count, 2);
    assert_true(stack.pcs[0] == pc - 1 && stack.pcs[1] == pc - 1);
}

static void frames_that_do_not_ascend_end_the_stack(void **state)
{
    uintptr_t pc = code_with_frame_pointer();

    (void)state;
    put_record(10, (uintptr_t)&stack.words[10], pc);
    walk_made_up(&stack.words[4], (uintptr_t)&stack.words[10]);
    assert_int_equal(stack.end.cut, SEEP_CUT_ORDER);
    assert_int_equal(stack.count, 2);
    walk_made_up(&stack.words[40], (uintptr_t)&stack.words[10]);
    assert_int_equal(stack.end.cut, SEEP_CUT_ORDER);
    assert_int_equal(stack.count, 1);
}

static void a_frame_above_the_stack_is_not_read(void **state)
{
    static const uintptr_t astray[] = {8, 0x7fffffffffffULL, UINTPTR_MAX - 23,
                                       UINTPTR_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(astray) / sizeof(astray[0]); i++) {
        walk_made_up(&stack.words[4], astray[i]);
        assert_true(stack.end.cut == SEEP_CUT_BOUNDS ||
                    stack.end.cut == SEEP_CUT_ORDER);
        assert_int_equal(stack.count, 1);
    }
    walk_made_up(&stack.words[4], (uintptr_t)&stack.words[WORDS - 1]);
    assert_int_equal(stack.end.cut, SEEP_CUT_BOUNDS);
}

static void a_frame_askew_is_not_read(void **state)
{
    (void)state;
    put_record(10, 0, 0);
    walk_made_up(&stack.words[4], (uintptr_t)&stack.words[10] + 4);
    assert_int_equal(stack.end.cut, SEEP_CUT_BOUNDS);
}

static void code_of_no_object_ends_the_stack(void **state)
{
    uint64_t generation;
    void *code =
        mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    put_record(10, 0, (uintptr_t)code + 100);
    walk_made_up(&stack.words[4], (uintptr_t)&stack.words[10]);
    assert_int_equal(stack.end.cut, SEEP_CUT_NO_OBJECT);
    assert_int_equal(stack.count, 2);
    assert_true(stack.pcs[1] == (uintptr_t)code + 99);
    /* A dlopen bumps no epoch: what is no object's now may be one's soon. */
    assert_true(seep_rule_cache_open(&generation));
    assert_true(seep_rule_cache_get(stack.pcs[0], generation) != 0);
    assert_true(seep_rule_cache_get(stack.pcs[1], generation) == 0);
    munmap(code, 4096);
}

static void a_deep_stack_is_cut_at_the_capacity(void **state)
{
    uintptr_t pc = code_with_frame_pointer();

    (void)state;
    for (unsigned int i = 0; i < 200; i++) {
        put_record(10 + 2 * i, (uintptr_t)&stack.words[12 + 2 * i], pc);
    }
    walk_made_up(&stack.words[4], (uintptr_t)&stack.words[10]);
    assert_int_equal(stack.end.cut, SEEP_CUT_DEPTH);
    assert_int_equal(stack.count, SEEP_STACK_FRAMES_MAX);
    stack.count = seep_unwind_walk(&stack.start, &stack.bounds, NULL, stack.pcs,
                                   7, &stack.end);
    assert_int_equal(stack.end.cut, SEEP_CUT_DEPTH);
    assert_int_equal(stack.count, 7);
}

static void the_stack_pointer_of_each_frame_is_told(void **state)
{
    uintptr_t pc = code_with_frame_pointer();
    uintptr_t sps[4] = {0};

    (void)state;
    put_record(10, (uintptr_t)&stack.words[20], pc);
    put_record(20, 0, 0);
    stack.start.sps = sps;
    walk_made_up(&stack.words[4], (uintptr_t)&stack.words[10]);
    assert_int_equal(stack.count, 2);
    assert_true(sps[0] == (uintptr_t)&stack.words[4]);
    assert_true(sps[1] == (uintptr_t)&stack.words[12] && sps[2] == 0);
}

/* On a foreign stack nothing is known to be mapped beyond the page of sp. */
static void on_another_stack_only_the_page_of_sp_is_read(void **state)
{
    uintptr_t pc = code_with_frame_pointer();
    uint8_t *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t *words = (uintptr_t *)map;

    (void)state;
    mprotect(map + 4096, 4096, PROT_NONE);
    words[500] = (uintptr_t)&words[530];
    words[501] = pc;
    walk_made_up(&words[490], (uintptr_t)&words[500]);
    assert_int_equal(stack.end.cut, SEEP_CUT_BOUNDS);
    assert_int_equal(stack.count, 2);
    munmap(map, 8192);
}

/* Our own stacks. */

static SEEP_NOINLINE size_t capture_here(struct seep_stack_bounds *bounds,
                                         uintptr_t *pcs,
                                         struct seep_capture_end *end)
{
    struct seep_capture_start start = SEEP_CAPTURE_START();

    return seep_native_capture(&start, bounds, pcs, SEEP_STACK_FRAMES_MAX, end);
}

static void the_own_stack_is_complete_and_errno_as_it_was(void **state)
{
    struct seep_stack_bounds bounds = {0, 0};
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    struct seep_elf_image own;
    struct seep_elf_image found;
    struct seep_capture_end end;
    size_t count;

    (void)state;
    errno = ERANGE;
    count = capture_here(&bounds, pcs, &end);
    assert_int_equal(errno, ERANGE);
    assert_int_equal(end.cut, SEEP_CUT_NONE);
    assert_true(count >= 4);
    assert_true(seep_objects_find((uintptr_t)capture_here, &own));
    assert_true(seep_objects_find(pcs[0], &found) && found.bias == own.bias);
    /* _start, of the program again. */
    assert_true(seep_objects_find(pcs[count - 1], &found) &&
                found.bias == own.bias);
}

static void *capture_in_thread(void *argument)
{
    struct seep_stack_bounds bounds = {0, 0};
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    struct seep_capture_end end;
    size_t count = capture_here(&bounds, pcs, &end);

    (void)argument;
    return (void *)(uintptr_t)(end.cut == SEEP_CUT_NONE && count >= 2 &&
                               bounds.low < here && bounds.high > here &&
                               bounds.high <=
                                   (uintptr_t)__builtin_thread_pointer());
}

static void a_thread_knows_the_bounds_of_its_own_stack(void **state)
{
    pthread_t thread;
    void *fine = NULL;

    (void)state;
    pthread_create(&thread, NULL, capture_in_thread, NULL);
    pthread_join(thread, &fine);
    assert_non_null(fine);
}

static void the_maps_are_read_in_pieces_of_any_size(void **state)
{
    static const char maps[] =
        "00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/d-w x\n"
        "7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n"
        "7f0000001000-7f0000021000 rw-p 00000000 00:00 0 [stack:7]\n"
        "7f0000021000-7f0000031000 rwxp 00000000 00:00 0 \n"
        "7f0000031000-7f0000041000 r--p 00000000 00:00 0 \n";

    (void)state;
    for (size_t piece = 1; piece < sizeof(maps); piece++) {
        struct seep_maps_parser parser = {.wanted = 0x7f0000002000};

        for (size_t at = 0; at < sizeof(maps) - 1; at += piece) {
            size_t left = sizeof(maps) - 1 - at;

            seep_maps_feed(&parser, maps + at, left < piece ? left : piece);
        }
        assert_true(parser.low == 0x7f0000001000);
        assert_true(parser.high == 0x7f0000031000);
        assert_true(parser.previous_end == 0x7f0000001000);
    }
}

/* How much stack a capture takes, by what it leaves in painted memory. */
static ucontext_t outer_context;
static ucontext_t inner_context;
static uint8_t painted[64 << 10] __attribute__((aligned(4096)));
static struct seep_capture_start painted_start;
static struct seep_stack_bounds painted_bounds;
static bool painted_capture;

static void run_painted(void)
{
    uintptr_t *pcs = stack.pcs;
    struct seep_capture_end end = {.cut = SEEP_CUT_NONE};

    if (painted_capture) {
        seep_native_capture(&painted_start, &painted_bounds, pcs,
                            SEEP_STACK_FRAMES_MAX, &end);
    }
}

static size_t painted_bytes(bool capture)
{
    size_t untouched = 0;

    painted_capture = capture;
    memset(painted, 0xa5, sizeof(painted));
    getcontext(&inner_context);
    inner_context.uc_stack.ss_sp = painted;
    inner_context.uc_stack.ss_size = sizeof(painted);
    inner_context.uc_link = &outer_context;
    makecontext(&inner_context, run_painted, 0);
    swapcontext(&outer_context, &inner_context);
    while (painted[untouched] == 0xa5) {
        untouched++;
    }
    return sizeof(painted) - untouched;
}

static SEEP_NOINLINE void start_here(void)
{
    painted_start = SEEP_CAPTURE_START();
}

static void a_capture_takes_less_than_1_KiB_of_stack(void **state)
{
    size_t cold;
    size_t warm;
    size_t none;

    (void)state;
    start_here();
    painted_bytes(true); /* lazy binding */
    none = painted_bytes(false);
    /* New epoch, new bounds: all rules are compiled, the maps are read. */
    seep_objects_unload_begin();
    seep_objects_unload_end();
    painted_bounds.high = 0;
    cold = painted_bytes(true) - none;
    warm = painted_bytes(true) - none;
    print_message("stack: %zu bytes at first, %zu later\n", cold, warm);
#if defined(__OPTIMIZE__) && !defined(SEEP_SANITIZED)
    assert_true(cold < 1024);
    assert_true(warm < 512);
#endif
}

static volatile sig_atomic_t signal_was_seen;

static void capture_in_handler(int number)
{
    struct seep_stack_bounds bounds = {0, 0};
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    struct seep_capture_end end;

    (void)number;
    capture_here(&bounds, pcs, &end);
    signal_was_seen = end.cut == SEEP_CUT_NONE && end.through_signal;
}

static void a_stack_through_a_handler_says_so(void **state)
{
    struct seep_stack_bounds bounds = {0, 0};
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    struct seep_capture_end end;

    (void)state;
    capture_here(&bounds, pcs, &end);
    assert_false(end.through_signal);
    signal(SIGUSR1, capture_in_handler);
    raise(SIGUSR1);
    assert_true(signal_was_seen);
}

static void *capture_restricted(void *argument)
{
    struct seep_stack_bounds bounds = {0, 0};
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    struct seep_capture_end end;
    size_t count = capture_here(&bounds, pcs, &end);

    (void)argument;
    return (void *)(uintptr_t)(count >= 1 && bounds.high != 0 &&
                               bounds.high < 4096);
}

static void once_restricted_a_new_thread_has_no_bounds(void **state)
{
    struct seep_stack_bounds bounds = {0, 0};
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    struct seep_capture_end end;
    pthread_t thread;
    void *fine = NULL;

    (void)state;
    seep_native_restrict();
    pthread_create(&thread, NULL, capture_restricted, NULL);
    pthread_join(thread, &fine);
    assert_non_null(fine);
    /* The first thread's stack is known by where it began. */
    assert_true(capture_here(&bounds, pcs, &end) >= 4);
    assert_int_equal(end.cut, SEEP_CUT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_return_address_of_0_is_the_end, make_up),
        cmocka_unit_test_setup(frames_that_do_not_ascend_end_the_stack,
                               make_up),
        cmocka_unit_test_setup(a_frame_above_the_stack_is_not_read, make_up),
        cmocka_unit_test_setup(a_frame_askew_is_not_read, make_up),
        cmocka_unit_test_setup(code_of_no_object_ends_the_stack, make_up),
        cmocka_unit_test_setup(a_deep_stack_is_cut_at_the_capacity, make_up),
        cmocka_unit_test_setup(the_stack_pointer_of_each_frame_is_told,
                               make_up),
        cmocka_unit_test_setup(on_another_stack_only_the_page_of_sp_is_read,
                               make_up),
        cmocka_unit_test(the_own_stack_is_complete_and_errno_as_it_was),
        cmocka_unit_test(a_thread_knows_the_bounds_of_its_own_stack),
        cmocka_unit_test(the_maps_are_read_in_pieces_of_any_size),
        cmocka_unit_test(a_capture_takes_less_than_1_KiB_of_stack),
        cmocka_unit_test(a_stack_through_a_handler_says_so),
        cmocka_unit_test(once_restricted_a_new_thread_has_no_bounds),
    };

    seep_objects_init();
    if (seep_native_init(SEEP_UNWINDER_EH_FRAME) != 0) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
