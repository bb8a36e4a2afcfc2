/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Frames without unwind information: which frame records are believed, on
 * stacks that are made up, and code that is made at run time.
 */
#include "seep_test.h"

#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "capture/native/elf.h"
#include "capture/native/walk.h"

#define WORDS 1024U
#define CODE_BYTES (64U << 10)

static uintptr_t *words; /* a stack; in no object */
static uint8_t *code;    /* of no object */
static uintptr_t ruled;
static struct seep_frame_record chain;

/* An address behind a call, in code with rules. */
static SEEP_NOINLINE uintptr_t behind_a_call(void)
{
    return (uintptr_t)__builtin_return_address(0);
}

static int setup(void **state)
{
    (void)state;
    memset(words, 0, WORDS * sizeof(words[0]));
    ruled = behind_a_call();
    chain.pc = (uintptr_t)code + 100;
    chain.sp = (uintptr_t)&words[8];
    chain.high = (uintptr_t)(words + WORDS);
    chain.fp = (uintptr_t)&words[16];
    return 0;
}

static void put_record(unsigned int at, uintptr_t fp, uintptr_t back)
{
    words[at] = fp;
    words[at + 1] = back;
}

static void a_record_that_returns_into_an_object_is_sound(void **state)
{
    (void)state;
    put_record(16, 0, ruled);
    assert_true(seep_frame_record_is_sound(&chain));
    chain.fp = chain.sp;
    put_record(8, 0, ruled);
    assert_true(seep_frame_record_is_sound(&chain));
}

static void records_of_code_of_no_object_must_lead_into_one(void **state)
{
    uintptr_t back = (uintptr_t)code + 200;

    (void)state;
    put_record(16, (uintptr_t)&words[30], back);
    put_record(30, (uintptr_t)&words[40], back + 999);
    put_record(40, 12345, ruled);
    assert_true(seep_frame_record_is_sound(&chain));
    put_record(40, 12345, 77);
    assert_false(seep_frame_record_is_sound(&chain));
    /* Too far from each other to be of one compiler. */
    put_record(40, 12345, ruled);
    put_record(30, (uintptr_t)&words[40], back + (UINT64_C(1) << 30));
    assert_false(seep_frame_record_is_sound(&chain));
}

static void records_that_do_not_ascend_are_refused(void **state)
{
    uintptr_t back = (uintptr_t)code + 200;

    (void)state;
    put_record(16, (uintptr_t)&words[17], back);
    put_record(30, 0, ruled);
    words[18] = ruled;
    assert_false(seep_frame_record_is_sound(&chain));
    put_record(16, (uintptr_t)&words[16], back);
    assert_false(seep_frame_record_is_sound(&chain));
    put_record(16, (uintptr_t)&words[30], back);
    assert_true(seep_frame_record_is_sound(&chain));
}

static void a_record_outside_the_stack_is_not_read(void **state)
{
    static const uintptr_t astray[] = {0, 8, 0x7ffffffff000, UINTPTR_MAX - 7};

    (void)state;
    for (size_t i = 0; i < sizeof(astray) / sizeof(astray[0]); i++) {
        chain.fp = astray[i];
        assert_false(seep_frame_record_is_sound(&chain));
    }
    chain.fp = chain.high - 8;
    assert_false(seep_frame_record_is_sound(&chain));
    chain.fp = chain.sp - 16;
    assert_false(seep_frame_record_is_sound(&chain));
    memcpy((char *)&words[17] + 4, &ruled, sizeof(ruled));
    chain.fp = (uintptr_t)&words[16] + 4;
    assert_false(seep_frame_record_is_sound(&chain));
    /* Half of it. */
    chain.high = (uintptr_t)&words[40];
    chain.fp = chain.high - 8;
    put_record(39, 0, ruled);
    assert_false(seep_frame_record_is_sound(&chain));
    chain.fp = (uintptr_t)&words[16];
    put_record(16, chain.high - 8, (uintptr_t)code + 9);
    assert_false(seep_frame_record_is_sound(&chain));
}

/* What a structure on the stack may look like. */
static void a_pointer_to_a_function_is_no_return_address(void **state)
{
    (void)state;
    put_record(16, (uintptr_t)&words[30], (uintptr_t)behind_a_call);
    put_record(30, 0, ruled);
    assert_false(seep_frame_record_is_sound(&chain));
    put_record(16, (uintptr_t)&words[30], (uintptr_t)&ruled);
    assert_false(seep_frame_record_is_sound(&chain));
    put_record(16, (uintptr_t)&words[30], (uintptr_t)&words[50]);
    assert_false(seep_frame_record_is_sound(&chain));
}

/* The frame pointer is an outer frame's: this one's return address lies below
 * it. */
static void a_record_with_a_return_address_below_is_an_outer_ones(void **state)
{
    (void)state;
    put_record(16, 0, ruled);
    words[12] = ruled;
    assert_false(seep_frame_record_is_sound(&chain));
    words[12] = (uintptr_t)strlen(""); /* none */
    assert_true(seep_frame_record_is_sound(&chain));
    words[12] = (uintptr_t)&memcpy + 20; /* in another object: it may be one */
    assert_false(seep_frame_record_is_sound(&chain));
    /* So far away that something else lies in between. */
    memset(words, 0, 600 * sizeof(words[0]));
    chain.fp = (uintptr_t)&words[600];
    put_record(600, 0, ruled);
    assert_false(seep_frame_record_is_sound(&chain));
}

static void while_an_object_goes_nothing_is_believed(void **state)
{
    (void)state;
    put_record(16, 0, ruled);
    seep_objects_unload_begin();
    assert_false(seep_frame_record_is_sound(&chain));
    seep_objects_unload_end();
    assert_true(seep_frame_record_is_sound(&chain));
}

#if defined(__x86_64__)
static struct {
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t sps[SEEP_STACK_FRAMES_MAX];
    struct seep_capture_end end;
    size_t count;
    uintptr_t caller; /* where the function that called the code stands */
} seen;

static struct seep_stack_bounds bounds;

static SEEP_NOINLINE void capture_here(void)
{
    struct seep_capture_start start = SEEP_CAPTURE_START();

    start.sps = seen.sps;
    seen.count = seep_native_capture(&start, &bounds, seen.pcs,
                                     SEEP_STACK_FRAMES_MAX, &seen.end);
}

/* push rbp; mov rbp, rsp; push 0 twice; mov rax, rdi; mov rdi, rsi; call rax;
 * leave; ret */
static const uint8_t with_record[] = {0x55, 0x48, 0x89, 0xe5, 0x6a, 0,
                                      0x6a, 0,    0x48, 0x89, 0xf8, 0x48,
                                      0x89, 0xf7, 0xff, 0xd0, 0xc9, 0xc3};

/* sub rsp, 24; mov rax, rdi; mov rdi, rsi; call rax; add rsp, 24; ret */
static const uint8_t without_record[] = {0x48, 0x83, 0xec, 0x18, 0x48, 0x89,
                                         0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0,
                                         0x48, 0x83, 0xc4, 0x18, 0xc3};

typedef void made(void *first, void *second);

static SEEP_NOINLINE void call_made(size_t at, void *first, void *second)
{
    made *function;
    void *address = code + at;

    memcpy(&function, &address, sizeof(function));
    seen.caller = (uintptr_t)__builtin_return_address(0) - 1;
    function(first, second);
    __asm__ volatile("" ::: "memory");
}

static void make_code(void **state)
{
    void (*hook)(void) = capture_here;
    void *first;
    void *inner = code + 1024;

    (void)state;
    memcpy(&first, &hook, sizeof(first));
    memcpy(code, with_record, sizeof(with_record));
    memcpy(code + 1024, with_record, sizeof(with_record));
    memcpy(code + 2048, without_record, sizeof(without_record));
    bounds = (struct seep_stack_bounds){0, 0};
    /* Code that is made calls code that is made. */
    call_made(0, inner, first);
    assert_int_equal(seen.end.cut, SEEP_CUT_NONE);
    assert_true(seen.count > 4);
    assert_true(seen.pcs[0] == (uintptr_t)code + 1024 + 15);
    assert_true(seen.pcs[1] == (uintptr_t)code + 15);
    assert_true(seen.pcs[3] == seen.caller);
    for (size_t i = 1; i < seen.count; i++) {
        assert_true(seen.sps[i] > seen.sps[i - 1]);
    }
}

static void made_code_with_frame_records_is_passed(void **state)
{
    make_code(state);
    /* And again, by what the walk remembers. */
    make_code(state);
}

static void made_code_without_frame_records_ends_the_stack(void **state)
{
    void (*hook)(void) = capture_here;
    void *first;

    make_code(state);
    memcpy(&first, &hook, sizeof(first));
    call_made(2048, first, NULL);
    assert_int_equal(seen.end.cut, SEEP_CUT_NO_OBJECT);
    assert_int_equal(seen.count, 1);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_record_that_returns_into_an_object_is_sound,
                               setup),
        cmocka_unit_test_setup(records_of_code_of_no_object_must_lead_into_one,
                               setup),
        cmocka_unit_test_setup(records_that_do_not_ascend_are_refused, setup),
        cmocka_unit_test_setup(a_record_outside_the_stack_is_not_read, setup),
        cmocka_unit_test_setup(a_pointer_to_a_function_is_no_return_address,
                               setup),
        cmocka_unit_test_setup(
            a_record_with_a_return_address_below_is_an_outer_ones, setup),
        cmocka_unit_test_setup(while_an_object_goes_nothing_is_believed, setup),
#if defined(__x86_64__)
        cmocka_unit_test_setup(made_code_with_frame_records_is_passed, setup),
        cmocka_unit_test_setup(made_code_without_frame_records_ends_the_stack,
                               setup),
#endif
    };

    code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    words = mmap(NULL, WORDS * sizeof(words[0]), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED || words == MAP_FAILED) {
        return 77;
    }
    seep_objects_init();
    if (seep_native_init(SEEP_UNWINDER_EH_FRAME) != 0) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
