/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stacks through code whose rows need more than rules can say. The code is
 * assembler, called with every register that calls keep in use.
 */
#include "seep_test.h"

#include <signal.h>
#include <string.h>

#include "base/compiler.h"
#include "capture/native/elf.h"
#include "capture/native/walk.h"

void whole_called(void);

static struct {
    uintptr_t rule_pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t sps[SEEP_STACK_FRAMES_MAX];
    struct seep_capture_end rule_end;
    struct seep_capture_end end;
    size_t rule_count;
    size_t count;
    uintptr_t spoilt; /* added to a frame that the first walk has found */
} seen;

static struct seep_stack_bounds bounds;

/* The hook: it walks by rules alone, then as captures do. */
SEEP_NOINLINE void whole_called(void)
{
    struct seep_capture_start start = SEEP_CAPTURE_START();

    seep_native_capture(&start, &bounds, seen.pcs, 1, &seen.end);
    seen.rule_count = seep_unwind_walk(&start, &bounds, NULL, seen.rule_pcs,
                                       SEEP_STACK_FRAMES_MAX, &seen.rule_end);
    start.sps = seen.sps;
    if (seen.spoilt != 0) {
        memcpy(seen.pcs, seen.rule_pcs, sizeof(seen.pcs));
        seen.pcs[0] += seen.spoilt;
        seen.end = seen.rule_end;
        seen.count =
            seep_unwind_registers(&start, &bounds, seen.pcs, seen.rule_count,
                                  SEEP_STACK_FRAMES_MAX, &seen.end);
        return;
    }
    seen.count = seep_native_capture(&start, &bounds, seen.pcs,
                                     SEEP_STACK_FRAMES_MAX, &seen.end);
}

#if defined(__x86_64__)
/* Each keeps its CFA elsewhere: in r12, in r13 while another function saves
 * it, behind a load and an addition, in a register that no call keeps. */
__asm__(".pushsection .text\n"
        "whole_r12:\n"
        "  .cfi_startproc\n"
        "  pushq %r12\n"
        "  .cfi_def_cfa_offset 16\n"
        "  .cfi_offset %r12, -16\n"
        "  movq %rsp, %r12\n"
        "  .cfi_def_cfa_register %r12\n"
        "  subq $200, %rsp\n"
        "  andq $-64, %rsp\n"
        "  call whole_called\n"
        "  movq %r12, %rsp\n"
        "  .cfi_def_cfa_register %rsp\n"
        "  popq %r12\n"
        "  .cfi_def_cfa_offset 8\n"
        "  .cfi_restore %r12\n"
        "  ret\n"
        "  .cfi_endproc\n"
        "whole_r13:\n"
        "  .cfi_startproc\n"
        "  pushq %r13\n"
        "  .cfi_def_cfa_offset 16\n"
        "  .cfi_offset %r13, -16\n"
        "  leaq 16(%rsp), %r13\n"
        "  .cfi_def_cfa %r13, 0\n"
        "  subq $72, %rsp\n"
        "  andq $-32, %rsp\n"
        "  call whole_saves_r13\n"
        "  leaq -16(%r13), %rsp\n"
        "  .cfi_def_cfa %rsp, 16\n"
        "  popq %r13\n"
        "  .cfi_def_cfa_offset 8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        "whole_saves_r13:\n"
        "  .cfi_startproc\n"
        "  pushq %r13\n"
        "  .cfi_def_cfa_offset 16\n"
        "  .cfi_offset %r13, -16\n"
        "  xorl %r13d, %r13d\n"
        "  call whole_r12\n"
        "  popq %r13\n"
        "  .cfi_def_cfa_offset 8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        "whole_loaded:\n" /* CFA = *(rsp + 128) + 8 */
        "  .cfi_startproc\n"
        "  movq %rsp, %rax\n"
        "  .cfi_def_cfa_register %rax\n"
        "  subq $144, %rsp\n"
        "  andq $-64, %rsp\n"
        "  movq %rax, 128(%rsp)\n"
        "  .cfi_escape 0x0f, 6, 0x77, 0x80, 0x01, 0x06, 0x23, 0x08\n"
        "  call whole_called\n"
        "  movq 128(%rsp), %rsp\n"
        "  .cfi_def_cfa %rsp, 8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        "whole_lost:\n" /* it says that its CFA is in a register that is lost */
        "  .cfi_startproc\n"
        "  movq %rsp, %r11\n"
        "  .cfi_def_cfa_register %r11\n"
        "  subq $8, %rsp\n"
        "  call whole_called\n"
        "  addq $8, %rsp\n"
        "  .cfi_def_cfa %rsp, 8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        "whole_lost_around:\n" /* its r11 is not the one of the signal */
        "  .cfi_startproc\n"
        "  movq %rsp, %r11\n"
        "  .cfi_def_cfa %r11, 8\n"
        "  subq $8, %rsp\n"
        "  call whole_trapped\n"
        "  addq $8, %rsp\n"
        "  .cfi_def_cfa %rsp, 8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        "whole_trapped:\n" /* interrupted while its CFA is in r10 */
        "  .cfi_startproc\n"
        "  leaq 8(%rsp), %r10\n"
        "  .cfi_def_cfa %r10, 0\n"
        "  andq $-64, %rsp\n"
        "  int3\n"
        "  leaq -8(%r10), %rsp\n"
        "  .cfi_def_cfa %rsp, 8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        "whole_popped_around:\n" /* its CFA is in r12, while that is called: */
        "  .cfi_startproc\n"
        "  pushq %r12\n"
        "  .cfi_def_cfa_offset 16\n"
        "  .cfi_offset %r12, -16\n"
        "  movq %rsp, %r12\n"
        "  .cfi_def_cfa_register %r12\n"
        "  andq $-64, %rsp\n"
        "  call whole_popped\n"
        "  movq %r12, %rsp\n"
        "  .cfi_def_cfa_register %rsp\n"
        "  popq %r12\n"
        "  .cfi_def_cfa_offset 8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        "whole_popped:\n" /* interrupted behind its pop of r12 */
        "  .cfi_startproc\n"
        "  pushq %r12\n"
        "  .cfi_def_cfa_offset 16\n"
        "  .cfi_offset %r12, -16\n"
        "  popq %r12\n"
        "  .cfi_def_cfa_offset 8\n"
        "  int3\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".popsection\n");

void whole_r12(void);
void whole_r13(void);
void whole_loaded(void);
void whole_lost(void);
void whole_lost_around(void);
void whole_trapped(void);
void whole_popped_around(void);

static SEEP_NOINLINE uintptr_t call(void (*function)(void))
{
    memset(seen.pcs, 0, sizeof(seen.pcs));
    memset(seen.rule_pcs, 0, sizeof(seen.rule_pcs));
    bounds = (struct seep_stack_bounds){0, 0};
    function();
    return (uintptr_t)__builtin_return_address(0) - 1;
}

/* The walk by rules was cut, the whole one passed the test's own frame. */
static void assert_whole(uintptr_t own_pc, enum seep_cut cut)
{
    size_t own = 0;

    assert_int_equal(seen.rule_end.cut, cut);
    assert_int_equal(seen.end.cut, SEEP_CUT_NONE);
    assert_true(seen.count > seen.rule_count);
    assert_memory_equal(seen.pcs, seen.rule_pcs,
                        seen.rule_count * sizeof(seen.pcs[0]));
    while (own < seen.count && seen.pcs[own] != own_pc) {
        own++;
    }
    assert_true(own < seen.count && own >= 2);
    for (size_t i = 1; i < seen.count; i++) {
        assert_true(seen.sps[i] > seen.sps[i - 1]);
    }
}

static void a_cfa_in_a_register_that_calls_keep_is_found(void **state)
{
    (void)state;
    assert_whole(call(whole_r12), SEEP_CUT_REGISTER);
    assert_false(seen.end.through_signal);
}

static void a_register_that_another_frame_saved_is_restored(void **state)
{
    (void)state;
    assert_whole(call(whole_r13), SEEP_CUT_REGISTER);
}

static void a_cfa_that_is_loaded_and_added_to_is_found(void **state)
{
    (void)state;
    assert_whole(call(whole_loaded), SEEP_CUT_EXPRESSION);
}

static void a_register_that_a_call_may_change_is_not_believed(void **state)
{
    (void)state;
    call(whole_lost);
    assert_int_equal(seen.rule_end.cut, SEEP_CUT_REGISTER);
    assert_int_equal(seen.end.cut, SEEP_CUT_REGISTER);
    assert_int_equal(seen.count, seen.rule_count);
}

static void on_trap(int number)
{
    (void)number;
    whole_called();
}

static void what_a_signal_interrupted_has_all_its_registers(void **state)
{
    (void)state;
    signal(SIGTRAP, on_trap);
    assert_whole(call(whole_trapped), SEEP_CUT_REGISTER);
    assert_true(seen.end.through_signal);
}

static void what_an_epilogue_has_popped_is_still_found(void **state)
{
    (void)state;
    signal(SIGTRAP, on_trap);
    assert_whole(call(whole_popped_around), SEEP_CUT_REGISTER);
}

static void what_a_signal_told_ends_with_the_frame_it_came_to(void **state)
{
    (void)state;
    signal(SIGTRAP, on_trap);
    call(whole_lost_around);
    assert_true(seen.count > seen.rule_count);
    assert_int_equal(seen.end.cut, SEEP_CUT_REGISTER);
}

static void another_stack_than_was_walked_is_left_as_it_is(void **state)
{
    (void)state;
    seen.spoilt = 1;
    call(whole_r12);
    seen.spoilt = 0;
    assert_int_equal(seen.end.cut, SEEP_CUT_REGISTER);
    assert_int_equal(seen.count, seen.rule_count);
    assert_true(seen.pcs[0] == seen.rule_pcs[0] + 1);
    assert_true(seen.pcs[seen.count] == 0);
}
#endif

int main(void)
{
#if defined(__x86_64__)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cfa_in_a_register_that_calls_keep_is_found),
        cmocka_unit_test(a_register_that_another_frame_saved_is_restored),
        cmocka_unit_test(a_cfa_that_is_loaded_and_added_to_is_found),
        cmocka_unit_test(a_register_that_a_call_may_change_is_not_believed),
        cmocka_unit_test(what_a_signal_interrupted_has_all_its_registers),
        cmocka_unit_test(what_an_epilogue_has_popped_is_still_found),
        cmocka_unit_test(what_a_signal_told_ends_with_the_frame_it_came_to),
        cmocka_unit_test(another_stack_than_was_walked_is_left_as_it_is),
    };

    seep_objects_init();
    if (seep_native_init(SEEP_UNWINDER_EH_FRAME) != 0) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    return 77;
#endif
}
