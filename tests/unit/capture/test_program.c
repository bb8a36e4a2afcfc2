/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The interpreter of call frame instructions and expressions, on programs that
 * are written out by hand, with the registers of x86-64.
 */
#include "seep_test.h"

#include <stdlib.h>
#include <string.h>

#include "capture/native/cfi.h"
#include "capture/native/rule.h"

#if defined(__x86_64__)
#define CODE 0x1000U

/* DW_CFA_* with their operands. */
#define ADVANCE(n) (0x40 | (n))
#define OFFSET(reg, n) (0x80 | (reg)), (n)
#define RESTORE(reg) (0xc0 | (reg))
#define ADVANCE1(n) 0x02, (n)
#define ADVANCE2(n) 0x03, (n), 0
#define ADVANCE4(n) 0x04, (n), 0, 0, 0
#define OFFSET_EXTENDED(reg, n) 0x05, (reg), (n)
#define RESTORE_EXTENDED(reg) 0x06, (reg)
#define UNDEFINED(reg) 0x07, (reg)
#define SAME_VALUE(reg) 0x08, (reg)
#define IN_REGISTER(reg, other) 0x09, (reg), (other)
#define REMEMBER 0x0a
#define RESTORE_STATE 0x0b
#define DEF_CFA(reg, n) 0x0c, (reg), (n)
#define DEF_CFA_REGISTER(reg) 0x0d, (reg)
#define DEF_CFA_OFFSET(n) 0x0e, (n)
#define DEF_CFA_EXPRESSION(n) 0x0f, (n)
#define EXPRESSION(reg, n) 0x10, (reg), (n)
#define OFFSET_EXTENDED_SF(reg, n) 0x11, (reg), (n)
#define DEF_CFA_SF(reg, n) 0x12, (reg), (n)
#define DEF_CFA_OFFSET_SF(n) 0x13, (n)
#define VAL_OFFSET(reg, n) 0x14, (reg), (n)
#define VAL_EXPRESSION(reg, n) 0x16, (reg), (n)
#define GNU_ARGS_SIZE(n) 0x2e, (n)
#define GNU_NEGATIVE(reg, n) 0x2f, (reg), (n)
#define BREG(reg, n) (0x70 | (reg)), (n)
#define BREG_SLEB2(reg, low, high) (0x70 | (reg)), (low), (high)
#define RIP_PLUS(n) 0x80, (n)
#define DEREF 0x06
#define LIT(n) (0x30 + (n))
#define MINUS_1 0x7f
#define MINUS_2 0x7e

/* What every x86-64 CIE says. */
static const uint8_t usual_common[] = {DEF_CFA(7, 8), OFFSET(16, 1)};

static struct seep_cfi_entry entry_of(const uint8_t *own, size_t size)
{
    return (struct seep_cfi_entry){
        .pc_low = CODE,
        .pc_high = CODE + 0x100,
        .code_alignment = 1,
        .data_alignment = -8,
        .common = {usual_common, usual_common + sizeof(usual_common), false},
        .own = {own, own + size, false},
    };
}

static enum seep_cut run(const uint8_t *bytes, size_t size, unsigned int at,
                         struct seep_cfi_row *row)
{
    /* On the heap, to the byte: a sanitizer sees a read behind the end. */
    uint8_t *exact = malloc(size > 0 ? size : 1);
    struct seep_cfi_entry entry = entry_of(exact, size);
    enum seep_cut cut;

    memcpy(exact, bytes, size);
    cut = seep_cfi_run(&entry, CODE + at, row);
    free(exact);
    return cut;
}

#define RUN(at, row, ...)               \
    run((const uint8_t[]){__VA_ARGS__}, \
        sizeof((const uint8_t[]){__VA_ARGS__}), (at), (row))

static void assert_cfa(const struct seep_cfi_row *row, int kind, int base,
                       int offset)
{
    assert_int_equal(row->cfa.kind, kind);
    assert_int_equal(row->cfa.base, base);
    assert_int_equal(row->cfa.offset, offset);
}

static void assert_place(const struct seep_cfi_place *place, int kind,
                         int offset)
{
    assert_int_equal(place->kind, kind);
    assert_int_equal(place->offset, offset);
}

/* push rbp; mov rbp, rsp; ... leave; ret */
static void a_frame_with_rbp_has_a_row_for_each_instruction(void **state)
{
#define WITH_RBP                                              \
    ADVANCE(1), DEF_CFA_OFFSET(16), OFFSET(6, 2), ADVANCE(3), \
        DEF_CFA_REGISTER(6), ADVANCE1(0x30), DEF_CFA(7, 8), RESTORE(6)
    struct seep_cfi_row row;

    (void)state;
    assert_int_equal(RUN(0, &row, WITH_RBP), SEEP_CUT_NONE);
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 7, 8);
    assert_place(seep_cfi_place(&row, 16), SEEP_CFI_AT_CFA, -8);
    assert_place(seep_cfi_place(&row, 6), SEEP_CFI_SAME, 0);
    RUN(1, &row, WITH_RBP);
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 7, 16);
    assert_place(seep_cfi_place(&row, 6), SEEP_CFI_AT_CFA, -16);
    RUN(3, &row, WITH_RBP);
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 7, 16);
    RUN(0x20, &row, WITH_RBP);
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 6, 16);
    RUN(0x34, &row, WITH_RBP);
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 7, 8);
    assert_place(seep_cfi_place(&row, 6), SEEP_CFI_SAME, 0);
}

static void a_remembered_row_comes_back_whole(void **state)
{
#define REMEMBERED                                           \
    DEF_CFA_OFFSET(16), OFFSET(3, 2), ADVANCE2(9), REMEMBER, \
        DEF_CFA_OFFSET(8), RESTORE_EXTENDED(3), ADVANCE4(1), RESTORE_STATE
    struct seep_cfi_row row;

    (void)state;
    RUN(9, &row, REMEMBERED);
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 7, 8);
    assert_place(seep_cfi_place(&row, 3), SEEP_CFI_SAME, 0);
    RUN(10, &row, REMEMBERED);
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 7, 16);
    assert_place(seep_cfi_place(&row, 3), SEEP_CFI_AT_CFA, -16);
}

static void every_operation_is_parsed_to_its_end(void **state)
{
    struct seep_cfi_row row;

    (void)state;
    /* After each comes one whose effect shows that nothing was skipped. */
    assert_int_equal(RUN(0, &row, OFFSET_EXTENDED(12, 3), SAME_VALUE(13),
                         IN_REGISTER(14, 15), GNU_ARGS_SIZE(32),
                         VAL_OFFSET(15, 2), VAL_EXPRESSION(12, 2), BREG(7, 0),
                         EXPRESSION(13, 2), BREG(7, 8), 0x2d, 0x00,
                         OFFSET_EXTENDED_SF(3, 3), GNU_NEGATIVE(6, MINUS_2 & 2),
                         DEF_CFA_SF(7, MINUS_2), DEF_CFA_OFFSET_SF(MINUS_1),
                         DEF_CFA_OFFSET(24)),
                     SEEP_CUT_NONE);
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 7, 24);
    assert_place(seep_cfi_place(&row, 3), SEEP_CFI_AT_CFA, -24);
    assert_place(seep_cfi_place(&row, 6), SEEP_CFI_AT_CFA, 16);
    RUN(0, &row, DEF_CFA_SF(6, MINUS_2));
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 6, 16);
}

static void the_first_frame_of_a_thread_has_no_caller(void **state)
{
    struct seep_cfi_row row;

    (void)state;
    RUN(0, &row, UNDEFINED(16));
    assert_int_equal(seep_rule_pack(&row, false), SEEP_RULE_END);
}

/* What gcc writes where the stack is realigned. */
static void a_realigned_stack_is_loaded_through_rbp(void **state)
{
    struct seep_cfi_row row;
    uint64_t rule;

    (void)state;
    RUN(0, &row, DEF_CFA_EXPRESSION(3), BREG(6, 0x78), DEREF, EXPRESSION(6, 2),
        BREG(6, 0), EXPRESSION(3, 2), BREG(6, 0x70));
    assert_cfa(&row, SEEP_CFI_CFA_LOADED, 6, -8);
    assert_place(seep_cfi_place(&row, 3), SEEP_CFI_AT_REGISTER, -16);
    rule = seep_rule_pack(&row, false);
    assert_int_equal(seep_rule_kind(rule), SEEP_RULE_LOADED_RBP);
    assert_int_equal(seep_rule_offset(rule), -8);
    assert_int_equal(seep_rule_place(rule, SEEP_RULE_RBP_SHIFT),
                     SEEP_RULE_AT_RBP);
    assert_int_equal(seep_rule_place_offset(rule, SEEP_RULE_RBP_SHIFT), 0);
    assert_int_equal(seep_rule_place_offset(rule, SEEP_RULE_RBX_SHIFT), -16);
}

/* OpenSSL's assembler keeps the old rsp in its frame: *(rsp + 40) + 8. */
static void a_cfa_that_is_loaded_and_added_to_is_more_than_a_rule(void **state)
{
    struct seep_cfi_row row;

    (void)state;
    RUN(0, &row, DEF_CFA_EXPRESSION(5), BREG(7, 40), DEREF, 0x23, 8);
    assert_cfa(&row, SEEP_CFI_CFA_LOADED, 7, 40);
    assert_int_equal(row.cfa.added, 8);
    assert_int_equal(seep_rule_pack(&row, false),
                     seep_rule_of_cut(SEEP_CUT_EXPRESSION));
    RUN(0, &row, DEF_CFA_EXPRESSION(5), BREG(6, 0x78), DEREF, 0x23, 8);
    assert_int_equal(seep_rule_pack(&row, false),
                     seep_rule_of_cut(SEEP_CUT_EXPRESSION));
}

static void registers_that_rules_leave_out_are_in_the_row(void **state)
{
    struct seep_cfi_row row;

    (void)state;
    RUN(0, &row, OFFSET(12, 3), OFFSET(15, 4), IN_REGISTER(13, 10),
        VAL_EXPRESSION(14, 2), BREG(3, 16), DEF_CFA(12, 16));
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 12, 16);
    assert_place(seep_cfi_place(&row, 12), SEEP_CFI_AT_CFA, -24);
    assert_place(seep_cfi_place(&row, 15), SEEP_CFI_AT_CFA, -32);
    assert_place(seep_cfi_place(&row, 13), SEEP_CFI_IS_REGISTER, 0);
    assert_int_equal(seep_cfi_place(&row, 13)->base, 10);
    assert_place(seep_cfi_place(&row, 14), SEEP_CFI_IS_REGISTER, 16);
    assert_int_equal(seep_cfi_place(&row, 14)->base, 3);
    RUN(0, &row, OFFSET(12, 3), RESTORE(12));
    assert_place(seep_cfi_place(&row, 12), SEEP_CFI_SAME, 0);
    /* Farther than a place can say: nowhere, but not somewhere else. */
    RUN(0, &row, 0x05, 12, 0x80, 0x80, 0x04);
    assert_int_equal(seep_cfi_place(&row, 12)->kind, SEEP_CFI_UNSUPPORTED);
    for (size_t i = 0; i < SEEP_CFI_PLACES; i++) {
        assert_int_equal(seep_cfi_place_index(seep_cfi_place_number(i)), i);
    }
}

/* breg7+8; rip; and 15; >= 11; << 3; + : 16 bytes after the push in a slot. */
static void a_plt_slot_depends_on_the_pc_alone(void **state)
{
#define PLT                                                                  \
    DEF_CFA_EXPRESSION(11), BREG(7, 8), RIP_PLUS(0), LIT(15), 0x1a, LIT(11), \
        0x2a, LIT(3), 0x24, 0x22
    struct seep_cfi_row row;

    (void)state;
    RUN(0x20 + 10, &row, PLT);
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 7, 8);
    RUN(0x20 + 11, &row, PLT);
    assert_cfa(&row, SEEP_CFI_CFA_REGISTER, 7, 16);
}

static void a_signal_frame_is_known_by_where_the_kernel_saves(void **state)
{
#define SIGNAL_REGISTERS                                                    \
    DEF_CFA_EXPRESSION(4), BREG_SLEB2(7, 0xa0, 1), DEREF, EXPRESSION(3, 3), \
        BREG_SLEB2(7, 0x80, 1), EXPRESSION(6, 3), BREG_SLEB2(7, 0xf8, 0),   \
        EXPRESSION(7, 3), BREG_SLEB2(7, 0xa0, 1)
    struct seep_cfi_row row;

    (void)state;
    RUN(0, &row, SIGNAL_REGISTERS, EXPRESSION(16, 3), BREG_SLEB2(7, 0xa8, 1));
    assert_int_equal(seep_rule_pack(&row, true), SEEP_RULE_SIGNAL);
    RUN(0, &row, SIGNAL_REGISTERS, EXPRESSION(16, 3), BREG_SLEB2(7, 0xb0, 1));
    assert_int_equal(seep_rule_pack(&row, true),
                     seep_rule_of_cut(SEEP_CUT_EXPRESSION));
}

static void what_a_rule_cannot_say_is_a_cut(void **state)
{
    struct seep_cfi_row row;

    (void)state;
    RUN(0, &row, DEF_CFA(10, 0));
    assert_int_equal(seep_rule_pack(&row, false),
                     seep_rule_of_cut(SEEP_CUT_REGISTER));
    RUN(0, &row, DEF_CFA_OFFSET(12));
    assert_int_equal(seep_rule_pack(&row, false),
                     seep_rule_of_cut(SEEP_CUT_EXPRESSION));
    RUN(0, &row, OFFSET(16, 2));
    assert_int_equal(seep_rule_pack(&row, false),
                     seep_rule_of_cut(SEEP_CUT_EXPRESSION));
    RUN(0, &row, IN_REGISTER(7, 10));
    assert_int_equal(seep_rule_pack(&row, false),
                     seep_rule_of_cut(SEEP_CUT_EXPRESSION));
    RUN(0, &row, DEF_CFA_EXPRESSION(2), BREG(7, 8), DEF_CFA_EXPRESSION(1),
        0x96);
    assert_int_equal(seep_rule_pack(&row, false),
                     seep_rule_of_cut(SEEP_CUT_EXPRESSION));
    /* A lost rbp or rbx ends nothing until a rule needs it. */
    RUN(0, &row, IN_REGISTER(6, 10), UNDEFINED(3));
    assert_int_equal(seep_rule_kind(seep_rule_pack(&row, false)),
                     SEEP_RULE_RSP);
    assert_int_equal(
        seep_rule_place(seep_rule_pack(&row, false), SEEP_RULE_RBP_SHIFT),
        SEEP_RULE_LOST);
}

static void large_frames_keep_their_exact_size(void **state)
{
    struct seep_cfi_row row;
    uint64_t rule;

    (void)state;
    RUN(0, &row, 0x0e, 0x88, 0x80, 0x80, 0x08); /* 16 MiB and 8 */
    rule = seep_rule_pack(&row, false);
    assert_int_equal(seep_rule_kind(rule), SEEP_RULE_RSP);
    assert_int_equal(seep_rule_offset(rule), (16 << 20) + 8);
    RUN(0, &row, 0x0e, 0x80, 0x80, 0x80, 0x80, 0x08); /* 2 GiB */
    assert_int_equal(seep_rule_pack(&row, false),
                     seep_rule_of_cut(SEEP_CUT_EXPRESSION));
}

static void a_program_cut_short_is_malformed_and_not_read_beyond(void **state)
{
    static const uint8_t whole[] = {
        DEF_CFA(7, 16),        ADVANCE2(1),   ADVANCE4(1), REMEMBER,
        EXPRESSION(6, 2),      BREG(6, 0),    0x02,        1,
        DEF_CFA_EXPRESSION(4), BREG(6, 0x78), DEREF,       0x96,
        OFFSET_EXTENDED(6, 2), RESTORE_STATE};
    struct seep_cfi_row row;
    size_t malformed = 0;

    (void)state;
    for (size_t size = 0; size <= sizeof(whole); size++) {
        malformed += run(whole, size, 0xff, &row) == SEEP_CUT_MALFORMED;
    }
    assert_true(malformed > 8);
    assert_int_equal(run(whole, sizeof(whole), 0xff, &row), SEEP_CUT_NONE);
}

static void unknown_or_unpaired_operations_are_malformed(void **state)
{
    struct seep_cfi_row row;

    (void)state;
    assert_int_equal(RUN(0, &row, 0x3f), SEEP_CUT_MALFORMED);
    assert_int_equal(RUN(0, &row, RESTORE_STATE), SEEP_CUT_MALFORMED);
    assert_int_equal(RUN(0, &row, REMEMBER, REMEMBER, REMEMBER, REMEMBER,
                         REMEMBER, REMEMBER),
                     SEEP_CUT_MALFORMED);
    assert_int_equal(RUN(0, &row, 0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f, 0),
                     SEEP_CUT_MALFORMED);
}

/* Is the row at @to the same by way of that at @from, which is no later? */
static void assert_goes_on(const uint8_t *bytes, size_t size, unsigned int from,
                           unsigned int to)
{
    struct seep_cfi_entry entry = entry_of(bytes, size);
    struct seep_cfi_machine machine;
    struct seep_cfi_row row;

    assert_true(seep_cfi_begin(&machine, &entry, CODE + from));
    assert_true(seep_cfi_go_on(&machine, CODE + from));
    assert_true(machine.pc <= CODE + from);
    assert_false(machine.by_target);
    assert_true(seep_cfi_go_on(&machine, CODE + to));
    assert_int_equal(run(bytes, size, to, &row), SEEP_CUT_NONE);
    assert_memory_equal(&machine.row, &row, sizeof(row));
}

static void a_program_goes_on_from_where_it_stands(void **state)
{
    static const uint8_t with_rbp[] = {WITH_RBP};
    static const uint8_t remembered[] = {REMEMBERED};

    (void)state;
    for (unsigned int from = 0; from < 0x38; from++) {
        for (unsigned int to = from; to < 0x38; to++) {
            assert_goes_on(with_rbp, sizeof(with_rbp), from, to);
            assert_goes_on(remembered, sizeof(remembered), from, to);
        }
    }
}

static void what_depends_on_the_pc_is_true_there_alone(void **state)
{
    static const uint8_t plt[] = {PLT};
    struct seep_cfi_entry entry = entry_of(plt, sizeof(plt));
    struct seep_cfi_machine machine;

    (void)state;
    assert_true(seep_cfi_begin(&machine, &entry, CODE + 0x20 + 10));
    assert_true(seep_cfi_go_on(&machine, CODE + 0x20 + 10));
    assert_true(machine.by_target);
}

/* Bytes at random: whatever they mean, it ends and reads nothing beyond. */
static void any_bytes_end(void **state)
{
    uint64_t seed = 42;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        uint8_t bytes[24];
        struct seep_cfi_row row;
        enum seep_cut cut;

        for (size_t j = 0; j < sizeof(bytes); j++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            bytes[j] = (uint8_t)(seed >> 56);
        }
        cut = run(bytes, seed >> 33 & 15, 0x40, &row);
        assert_true(cut == SEEP_CUT_NONE || cut == SEEP_CUT_MALFORMED);
        if (cut == SEEP_CUT_NONE) {
            assert_true(seep_rule_pack(&row, i % 2 != 0) != 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_with_rbp_has_a_row_for_each_instruction),
        cmocka_unit_test(a_remembered_row_comes_back_whole),
        cmocka_unit_test(every_operation_is_parsed_to_its_end),
        cmocka_unit_test(the_first_frame_of_a_thread_has_no_caller),
        cmocka_unit_test(a_realigned_stack_is_loaded_through_rbp),
        cmocka_unit_test(a_cfa_that_is_loaded_and_added_to_is_more_than_a_rule),
        cmocka_unit_test(registers_that_rules_leave_out_are_in_the_row),
        cmocka_unit_test(a_plt_slot_depends_on_the_pc_alone),
        cmocka_unit_test(a_signal_frame_is_known_by_where_the_kernel_saves),
        cmocka_unit_test(what_a_rule_cannot_say_is_a_cut),
        cmocka_unit_test(large_frames_keep_their_exact_size),
        cmocka_unit_test(a_program_cut_short_is_malformed_and_not_read_beyond),
        cmocka_unit_test(unknown_or_unpaired_operations_are_malformed),
        cmocka_unit_test(a_program_goes_on_from_where_it_stands),
        cmocka_unit_test(what_depends_on_the_pc_is_true_there_alone),
        cmocka_unit_test(any_bytes_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return 77;
}
#endif
