/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the rest is of what private memory grows by. */
#include "verdict_process.h"

static struct seep_report_memory memory;

static struct seep_report_extent growing(double mib_per_s, double error)
{
    return (struct seep_report_extent){
        .valid = true,
        .last_bytes = 100 * MIB,
        .slope_bytes_per_s = mib_per_s * MIB,
        .slope_error = error * MIB,
    };
}

/* A leak of 1 MiB/s, give or take a tenth, where private memory grows by 2. */
static void begin_leak(void)
{
    process = (struct process){.input = {.duration_s = RUN_S}};
    process.verdict = (struct seep_report_verdict){
        .class = SEEP_VERDICT_LEAK,
        .device = -1,
        .floor_bytes = MIB,
        .has_growth = true,
        .growth_bytes_per_s = {MIB, .9 * MIB, 1.1 * MIB},
    };
    memory = (struct seep_report_memory){
        .valid = true,
        .anonymous = growing(2, .05),
        .tracked = growing(1, .1),
    };
}

static bool has_rest(void)
{
    seep_verdict_add_rest(&process.input, &memory, &process.verdict);
    return process.verdict.rest_bytes_per_s > 0;
}

static void what_is_more_than_the_headline_is_told(void **state)
{
    (void)state;
    begin_leak();
    assert_true(has_rest());
    assert_true(fabs(process.verdict.rest_bytes_per_s - MIB) < 1);
    assert_true(fabs(process.verdict.private_bytes_per_s - 2 * MIB) < 1);
    assert_int_equal(process.verdict.rest, SEEP_REST_UNKNOWN);
}

static void what_the_intervals_allow_is_not(void **state)
{
    (void)state;
    begin_leak();
    memory.anonymous = growing(1.2, .15);
    assert_false(has_rest());
    memory.anonymous = growing(1.2, .05);
    assert_true(has_rest());
    begin_leak();
    process.verdict.growth_bytes_per_s.high = 2 * MIB;
    assert_false(has_rest());
}

/* Less than 1 MiB over the run, or of no memory of the host. */
static void a_little_of_it_is_not_nor_are_others(void **state)
{
    (void)state;
    begin_leak();
    memory.anonymous = growing(1.1005, 0);
    assert_false(has_rest());
    begin_leak();
    process.verdict.device = 0;
    assert_false(has_rest());
    begin_leak();
    process.verdict.files = true;
    assert_false(has_rest());
    begin_leak();
    memory.anonymous.valid = false;
    assert_false(has_rest());
}

static void most_of_it_is_where_the_balance_finds_it(void **state)
{
    (void)state;
    begin_leak();
    memory.tracked = growing(1.7, .1);
    assert_true(has_rest());
    assert_int_equal(process.verdict.rest, SEEP_REST_SITES);
    begin_leak();
    memory.allocator_overhead = growing(.6, .1);
    assert_true(has_rest());
    assert_int_equal(process.verdict.rest, SEEP_REST_FREE);
    begin_leak();
    memory.allocator_overhead = growing(.4, .1);
    assert_true(has_rest());
    assert_int_equal(process.verdict.rest, SEEP_REST_UNKNOWN);
    begin_leak();
    memory.unexplained = growing(.9, .1);
    process.input.stray_bytes_per_s = .8 * MIB;
    assert_true(has_rest());
    assert_int_equal(process.verdict.rest, SEEP_REST_MAPPINGS);
    begin_leak();
    memory.unexplained = growing(.9, .1);
    process.input.outside.unseen_growth_bytes = .9 * MIB * RUN_S;
    assert_true(has_rest());
    assert_int_equal(process.verdict.rest, SEEP_REST_BLOCKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_more_than_the_headline_is_told),
        cmocka_unit_test(what_the_intervals_allow_is_not),
        cmocka_unit_test(a_little_of_it_is_not_nor_are_others),
        cmocka_unit_test(most_of_it_is_where_the_balance_finds_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
