/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Limits against reports made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_world.h"

#define LIMIT 100.0

static enum seep_check_outcome growth_against(double limit)
{
    struct seep_check_limit one = {
        .kind = SEEP_CHECK_GROWTH,
        .space = SEEP_CHECK_ALL_SPACES,
        .value = limit,
    };

    return check_world_one(&one, false).outcome;
}

static enum seep_check_outcome decide(enum seep_check_kind kind, double low,
                                      double high)
{
    struct seep_interval value = {(low + high) / 2, low, high};

    return seep_check_decide(kind, LIMIT, &value);
}

static void the_interval_decides_and_not_the_point(void **state)
{
    (void)state;
    assert_int_equal(decide(SEEP_CHECK_GROWTH, 101, 300), SEEP_CHECK_FAIL);
    assert_int_equal(decide(SEEP_CHECK_GROWTH, 10, 99), SEEP_CHECK_PASS);
    assert_int_equal(decide(SEEP_CHECK_GROWTH, 99, 900),
                     SEEP_CHECK_INSUFFICIENT);
    assert_int_equal(decide(SEEP_CHECK_GROWTH, -500, 101),
                     SEEP_CHECK_INSUFFICIENT);
}

static void what_is_exactly_the_limit_keeps_it(void **state)
{
    (void)state;
    assert_int_equal(decide(SEEP_CHECK_CAP, LIMIT, LIMIT), SEEP_CHECK_PASS);
    assert_int_equal(decide(SEEP_CHECK_GPU_FREE, LIMIT, LIMIT),
                     SEEP_CHECK_PASS);
    assert_int_equal(decide(SEEP_CHECK_CAP, LIMIT, LIMIT + 1),
                     SEEP_CHECK_INSUFFICIENT);
}

static void a_least_is_broken_from_below(void **state)
{
    (void)state;
    assert_int_equal(decide(SEEP_CHECK_GPU_FREE, 10, 99), SEEP_CHECK_FAIL);
    assert_int_equal(decide(SEEP_CHECK_GPU_FREE, 101, 200), SEEP_CHECK_PASS);
    assert_int_equal(decide(SEEP_CHECK_GPU_FREE, 99, 101),
                     SEEP_CHECK_INSUFFICIENT);
}

static void an_open_or_unknown_bound_decides_nothing(void **state)
{
    (void)state;
    assert_int_equal(decide(SEEP_CHECK_GROWTH, 0, INFINITY),
                     SEEP_CHECK_INSUFFICIENT);
    assert_int_equal(decide(SEEP_CHECK_GROWTH, NAN, NAN),
                     SEEP_CHECK_INSUFFICIENT);
    assert_int_equal(decide(SEEP_CHECK_GPU_FREE, NAN, NAN),
                     SEEP_CHECK_INSUFFICIENT);
}

static void nothing_that_grows_keeps_any_limit(void **state)
{
    (void)state;
    assert_int_equal(growth_against(1), SEEP_CHECK_PASS);
}

static void a_leak_is_over_a_lower_and_under_a_higher_limit(void **state)
{
    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000);
    assert_int_equal(growth_against(900), SEEP_CHECK_FAIL);
    assert_int_equal(growth_against(1000), SEEP_CHECK_INSUFFICIENT);
    assert_int_equal(growth_against(1100), SEEP_CHECK_PASS);
}

static void what_breaks_a_limit_is_named(void **state)
{
    struct seep_check_limit limit = {.space = SEEP_CHECK_ALL_SPACES,
                                     .value = 1};
    struct seep_check_result result;

    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000);
    check_world_add(&check_now, "b", SEEP_CLASS_STEADY, 0)->has_growth = false;
    result = check_world_one(&limit, false);
    assert_int_equal(result.site_count, 1);
    assert_string_equal(result.sites[0]->id, "a");
}

static void small_leaks_count_together(void **state)
{
    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_MINOR, 600);
    check_world_add(&check_now, "b", SEEP_CLASS_MINOR, 600);
    assert_int_equal(growth_against(1000), SEEP_CHECK_FAIL);
}

/* 1000 a second, and somewhere between -4900 and 5100 besides. */
static void what_is_not_known_well_takes_nothing_back(void **state)
{
    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000);
    check_world_add(&check_now, "b", SEEP_CLASS_MINOR, 100)
        ->growth_bytes_per_s = (struct seep_interval){100, -4900, 5100};
    assert_int_equal(growth_against(900), SEEP_CHECK_FAIL);
    assert_int_equal(growth_against(1000), SEEP_CHECK_INSUFFICIENT);
    check_now.sites[1].growth_bytes_per_s =
        (struct seep_interval){-2000, -4900, 900};
    assert_int_equal(growth_against(900), SEEP_CHECK_FAIL);
}

/* Of nearly all of it the class tells, and of a little nobody does. */
static void what_is_open_beside_the_class_does_not_pass(void **state)
{
    (void)state;
    check_now.report.verdict.class = SEEP_VERDICT_BOUNDED;
    assert_int_equal(growth_against(1000), SEEP_CHECK_PASS);
    check_now.report.verdict.reassures = false;
    check_now.report.verdict.open_reason = "too few blocks";
    assert_int_equal(growth_against(1e9), SEEP_CHECK_INSUFFICIENT);
    assert_string_equal(
        check_world_measure(SEEP_CHECK_GROWTH, SEEP_CHECK_ALL_SPACES).reason,
        "too few blocks");
    assert_string_equal(
        check_world_measure(SEEP_CHECK_GROWTH, SEEP_SPACE_HEAP).reason,
        "too few blocks");
}

static void a_suspect_neither_passes_nor_fails(void **state)
{
    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_SUSPECT, 1000);
    check_now.report.verdict.class = SEEP_VERDICT_SUSPECT;
    check_now.report.verdict.reassures = false;
    check_now.report.verdict.reason = "half of it";
    assert_int_equal(growth_against(900), SEEP_CHECK_INSUFFICIENT);
    assert_int_equal(growth_against(1e9), SEEP_CHECK_INSUFFICIENT);
    assert_string_equal(
        check_world_measure(SEEP_CHECK_GROWTH, SEEP_CHECK_ALL_SPACES).reason,
        "half of it");
}

/* The report says LEAK 6000, of both. */
static void a_suspect_in_step_with_a_leak_fails_with_it(void **state)
{
    struct seep_report_site *part;

    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 500);
    part = check_world_add(&check_now, "b", SEEP_CLASS_SUSPECT, 5500);
    check_now.report.verdict.class = SEEP_VERDICT_LEAK;
    check_now.report.verdict.reassures = false;
    assert_int_equal(growth_against(900), SEEP_CHECK_INSUFFICIENT);
    part->leaks_in_step = true;
    assert_int_equal(growth_against(900), SEEP_CHECK_FAIL);
}

static void a_cache_that_still_fills_is_no_failure_and_no_pass(void **state)
{
    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_WARMING, 1000);
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        check_now.moments[i].private_bytes += 10000.0 * i;
    }
    check_now.report.verdict.class = SEEP_VERDICT_BOUNDED;
    check_now.report.verdict.filling = true;
    check_now.report.verdict.reassures = false;
    assert_int_equal(growth_against(500), SEEP_CHECK_INSUFFICIENT);
}

/* It rises to 60 % of the run. */
static void what_has_stopped_passes_by_the_part_that_shows_it(void **state)
{
    (void)state;
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        check_now.moments[i].private_bytes += CHECK_MIB * (i < 55 ? i : 55);
    }
    check_now.report.verdict.class = SEEP_VERDICT_BOUNDED;
    check_now.report.verdict.hidden_bytes_per_s = 900;
    assert_int_equal(growth_against(1000), SEEP_CHECK_PASS);
    check_now.report.verdict.hidden_bytes_per_s = 1100;
    assert_int_equal(growth_against(1000), SEEP_CHECK_PASS);
    for (int i = 0; i < CHECK_MOMENTS; i++) { /* and stops at 70 % */
        check_now.moments[i].private_bytes += CHECK_MIB * (i < 70 ? i : 70);
    }
    assert_int_equal(growth_against(1000), SEEP_CHECK_INSUFFICIENT);
    assert_int_equal(growth_against(1200), SEEP_CHECK_PASS);
    check_now.report.verdict.hidden_bytes_per_s = 900;
    check_now.report.verdict.reassures = false;
    check_now.report.verdict.filling = true;
    assert_int_equal(growth_against(1000), SEEP_CHECK_INSUFFICIENT);
    assert_int_equal(growth_against(1e9), SEEP_CHECK_INSUFFICIENT);
}

static void what_is_not_enough_for_a_verdict_is_not_for_a_pass(void **state)
{
    (void)state;
    check_now.report.verdict.class = SEEP_VERDICT_INSUFFICIENT;
    check_now.report.verdict.reassures = false;
    check_now.report.verdict.reason = "too short";
    assert_int_equal(growth_against(1e12), SEEP_CHECK_INSUFFICIENT);
    assert_string_equal(
        check_world_measure(SEEP_CHECK_GROWTH, SEEP_CHECK_ALL_SPACES).reason,
        "too short");
}

/* By how much it grows at the most is known. */
static void what_grows_a_little_passes_below_a_limit_above_that(void **state)
{
    (void)state;
    check_now.report.verdict.class = SEEP_VERDICT_INSUFFICIENT;
    check_now.report.verdict.reassures = false;
    check_now.report.verdict.too_little = true;
    check_now.report.verdict.reason = "too little";
    assert_int_equal(growth_against(1200), SEEP_CHECK_PASS);
    check_now.report.verdict.too_little = false;
    assert_int_equal(growth_against(1200), SEEP_CHECK_INSUFFICIENT);
}

static void growth_that_no_call_site_has_fails_too(void **state)
{
    (void)state;
    check_now.report.verdict = (struct seep_report_verdict){
        .class = SEEP_VERDICT_UNEXPLAINED,
        .reason = "nobody",
        .has_growth = true,
        .growth_bytes_per_s = {1000, 950, 1050},
    };
    assert_int_equal(growth_against(900), SEEP_CHECK_FAIL);
}

static void what_is_suppressed_or_has_a_known_bound_does_not_count(void **state)
{
    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000)->suppressed_by =
        "x";
    assert_int_equal(growth_against(900), SEEP_CHECK_PASS);
    check_now.sites[0].suppressed_by = NULL;
    check_now.sites[0].known_bound_bytes = 1;
    assert_int_equal(growth_against(900), SEEP_CHECK_PASS);
}

/* Private memory has it, and live blocks of the space. */
static void what_is_suppressed_is_no_part_of_the_upper_bound(void **state)
{
    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000)->suppressed_by =
        "x";
    check_now.report.verdict.suppressed_bytes_per_s = 1000;
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        check_now.moments[i].private_bytes += 10000.0 * i;
    }
    assert_int_equal(growth_against(900), SEEP_CHECK_PASS);
    assert_true(
        check_world_measure(SEEP_CHECK_GROWTH, SEEP_SPACE_HEAP).value.high ==
        0);
}

static void a_limit_of_a_space_is_of_that_alone(void **state)
{
    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000)->space =
        SEEP_SPACE_DEVICE;
    assert_true(
        check_world_measure(SEEP_CHECK_GROWTH, SEEP_SPACE_DEVICE).value.low >
        900);
    assert_true(
        check_world_measure(SEEP_CHECK_GROWTH, SEEP_SPACE_HEAP).value.high ==
        0);
    assert_int_equal(growth_against(900), SEEP_CHECK_FAIL);
}

static void what_was_never_sampled_may_be_there(void **state)
{
    (void)state;
    check_now.report.sample_bytes = 512 << 10;
    assert_true(
        check_world_measure(SEEP_CHECK_GROWTH, SEEP_SPACE_HEAP).value.high >
        3 * 512 * 1024 / 1000.0);
    /* Of devices every block is known. */
    assert_true(
        check_world_measure(SEEP_CHECK_GROWTH, SEEP_SPACE_DEVICE).value.high ==
        0);
}

static void growth_of_a_unit_is_that_of_the_run_by_its_work(void **state)
{
    struct seep_check_measure measured;

    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000);
    assert_false(
        check_world_measure(SEEP_CHECK_GROWTH_PER_UNIT, SEEP_CHECK_ALL_SPACES)
            .valid);
    check_now.report.units = 10000; /* ten a second */
    measured =
        check_world_measure(SEEP_CHECK_GROWTH_PER_UNIT, SEEP_CHECK_ALL_SPACES);
    assert_true(fabs(measured.value.estimate - 100) < 1e-6);
    assert_true(fabs(measured.value.low - 99) < 1e-6);
}

/* 1 MiB a moment all the while: of 80 moments 7/8 lie between the levels. */
static void drift_is_from_the_end_of_the_warm_up_to_the_end(void **state)
{
    struct seep_check_measure measured;

    (void)state;
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        check_now.moments[i].private_bytes +=
            CHECK_MIB * (i < 20 ? 20 * i : 400 + i);
    }
    measured = check_world_measure(SEEP_CHECK_DRIFT, SEEP_CHECK_ALL_SPACES);
    assert_true(measured.value.low <= 70 * CHECK_MIB);
    assert_true(fabs(measured.value.estimate - 70 * CHECK_MIB) < CHECK_MIB);
    assert_true(measured.value.high < 80 * CHECK_MIB);
}

static void a_drift_that_goes_up_and_down_is_not_known_well(void **state)
{
    struct seep_check_measure measured;

    (void)state;
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        check_now.moments[i].private_bytes += CHECK_MIB * (i / 10 % 2);
    }
    measured = check_world_measure(SEEP_CHECK_DRIFT, SEEP_CHECK_ALL_SPACES);
    assert_true(measured.value.high > measured.value.estimate + CHECK_MIB / 2);
    assert_true(measured.value.low < measured.value.estimate - CHECK_MIB / 2);
}

static void a_run_shorter_than_its_warm_up_tells_nothing(void **state)
{
    struct seep_check_measure measured;

    (void)state;
    seep_check_measure(SEEP_CHECK_DRIFT, SEEP_CHECK_ALL_SPACES,
                       &check_now.report, CHECK_RUN_S, &measured);
    assert_false(measured.valid);
    seep_check_measure(SEEP_CHECK_CAP, SEEP_CHECK_ALL_SPACES, &check_now.report,
                       CHECK_RUN_S, &measured);
    assert_true(measured.valid); /* a cap holds from the start */
}

static struct seep_check_measure drift_after(double warmup_s, const char *mark)
{
    struct seep_check_options options = {.warmup_s = warmup_s,
                                         .warmup_mark = mark};
    struct seep_check_measure measured;

    seep_check_measure(
        SEEP_CHECK_DRIFT, SEEP_CHECK_ALL_SPACES, &check_now.report,
        seep_check_warmup_of(&options, &check_now.report), &measured);
    return measured;
}

/* It grows until 600 s, and the program says so. */
static void the_warm_up_ends_at_the_first_mark_of_its_name(void **state)
{
    static const struct seep_report_mark marks[] = {
        {100, "loaded", 0}, {600, "warm-up done", 0}, {900, "warm-up done", 0}};
    double share = SEEP_CHECK_WARMUP_UNKNOWN;

    (void)state;
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        check_now.moments[i].private_bytes += CHECK_MIB * (i < 60 ? i : 60);
    }
    assert_true(drift_after(share, NULL).value.estimate > 10 * CHECK_MIB);
    check_now.report.marks = marks;
    check_now.report.mark_count = 3;
    assert_true(fabs(drift_after(share, NULL).value.high) < CHECK_MIB);
    /* What is named goes before it. */
    assert_true(drift_after(200, NULL).value.estimate > 10 * CHECK_MIB);
    assert_true(drift_after(share, "loaded").value.estimate > 10 * CHECK_MIB);
    assert_true(drift_after(200, "warm-up done").value.high < CHECK_MIB);
}

static void a_mark_that_was_not_made_is_not_enough_data(void **state)
{
    struct seep_check_measure measured = drift_after(200, "warm-up don");

    (void)state;
    assert_false(measured.valid);
    assert_non_null(strstr(measured.reason, "mark"));
}

static void a_cap_is_held_against_the_most_of_all_moments(void **state)
{
    (void)state;
    check_now.moments[3].held_bytes = 900 * CHECK_MIB;
    assert_true(
        check_world_measure(SEEP_CHECK_CAP, SEEP_CHECK_ALL_SPACES).value.low ==
        900 * CHECK_MIB);
}

static void a_cap_of_a_space_counts_what_is_suppressed_too(void **state)
{
    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000)->suppressed_by =
        "x";
    assert_true(check_world_measure(SEEP_CHECK_CAP, SEEP_SPACE_HEAP).value.low >
                990000);
}

static void the_gpu_that_had_least_free_decides(void **state)
{
    struct seep_check_measure measured;

    (void)state;
    assert_false(
        check_world_measure(SEEP_CHECK_GPU_FREE, SEEP_CHECK_ALL_SPACES).valid);
    check_now.devices[0] = (struct seep_report_device){
        .ordinal = 0, .total_bytes = 100, .low_free_bytes = 20};
    check_now.devices[1] = (struct seep_report_device){
        .ordinal = 1, .total_bytes = 100, .low_free_bytes = 50};
    check_now.report.device_count = 2;
    measured = check_world_measure(SEEP_CHECK_GPU_FREE, SEEP_CHECK_ALL_SPACES);
    assert_int_equal(measured.device, 0);
    assert_true(measured.value.low == 20);
}

static void a_gpu_that_is_full_names_no_site_of_another_memory(void **state)
{
    struct seep_check_limit limit = {.kind = SEEP_CHECK_GPU_FREE,
                                     .space = SEEP_CHECK_ALL_SPACES,
                                     .value = 60};
    struct seep_check_result result;

    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000)->device = -1;
    check_world_add(&check_now, "b", SEEP_CLASS_LEAK, 10)->device = 0;
    assert_int_equal(check_world_one(&limit, false).site_count,
                     0); /* not measured */
    check_now.devices[0] =
        (struct seep_report_device){.total_bytes = 100, .low_free_bytes = 50};
    check_now.report.device_count = 1;
    result = check_world_one(&limit, false);
    assert_int_equal(result.outcome, SEEP_CHECK_FAIL);
    assert_int_equal(result.site_count, 1);
    assert_string_equal(result.sites[0]->id, "b");
}

static void a_label_has_its_own_limit_in_the_place_of_the_others(void **state)
{
    struct seep_check_limit limits[] = {
        {.space = SEEP_CHECK_ALL_SPACES, .value = 900},
        {.space = SEEP_CHECK_ALL_SPACES, .value = 2000, .label = "model=bert"},
    };
    const struct seep_report *report = &check_now.report;
    struct seep_check_options options = {
        .limits = limits, .count = 2, .warmup_s = SEEP_CHECK_WARMUP_UNKNOWN};
    struct seep_check_result *results;
    size_t count;

    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000);
    assert_int_equal(seep_check_run(&options, &report, 1, &results, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(results[0].outcome, SEEP_CHECK_PASS);
    free(results);
}

static void a_label_that_no_process_has_is_not_enough_data(void **state)
{
    struct seep_check_limit limit = {
        .space = SEEP_CHECK_ALL_SPACES, .value = 900, .label = "model=ber"};
    struct seep_check_result result = check_world_one(&limit, false);

    (void)state;
    assert_int_equal(result.outcome, SEEP_CHECK_INSUFFICIENT);
    assert_null(result.report);
}

static void nothing_checked_is_no_pass(void **state)
{
    (void)state;
    assert_int_equal(seep_check_worst(NULL, 0), SEEP_CHECK_INSUFFICIENT);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, check_world_set_up)
    const struct CMUnitTest tests[] = {
        CASE(the_interval_decides_and_not_the_point),
        CASE(what_is_exactly_the_limit_keeps_it),
        CASE(a_least_is_broken_from_below),
        CASE(an_open_or_unknown_bound_decides_nothing),
        CASE(nothing_that_grows_keeps_any_limit),
        CASE(a_leak_is_over_a_lower_and_under_a_higher_limit),
        CASE(what_breaks_a_limit_is_named),
        CASE(small_leaks_count_together),
        CASE(what_is_not_known_well_takes_nothing_back),
        CASE(what_is_open_beside_the_class_does_not_pass),
        CASE(a_suspect_neither_passes_nor_fails),
        CASE(a_suspect_in_step_with_a_leak_fails_with_it),
        CASE(a_cache_that_still_fills_is_no_failure_and_no_pass),
        CASE(what_has_stopped_passes_by_the_part_that_shows_it),
        CASE(what_is_not_enough_for_a_verdict_is_not_for_a_pass),
        CASE(what_grows_a_little_passes_below_a_limit_above_that),
        CASE(growth_that_no_call_site_has_fails_too),
        CASE(what_is_suppressed_or_has_a_known_bound_does_not_count),
        CASE(what_is_suppressed_is_no_part_of_the_upper_bound),
        CASE(a_limit_of_a_space_is_of_that_alone),
        CASE(what_was_never_sampled_may_be_there),
        CASE(growth_of_a_unit_is_that_of_the_run_by_its_work),
        CASE(drift_is_from_the_end_of_the_warm_up_to_the_end),
        CASE(a_drift_that_goes_up_and_down_is_not_known_well),
        CASE(a_run_shorter_than_its_warm_up_tells_nothing),
        CASE(the_warm_up_ends_at_the_first_mark_of_its_name),
        CASE(a_mark_that_was_not_made_is_not_enough_data),
        CASE(a_cap_is_held_against_the_most_of_all_moments),
        CASE(a_cap_of_a_space_counts_what_is_suppressed_too),
        CASE(the_gpu_that_had_least_free_decides),
        CASE(a_gpu_that_is_full_names_no_site_of_another_memory),
        CASE(a_label_has_its_own_limit_in_the_place_of_the_others),
        CASE(a_label_that_no_process_has_is_not_enough_data),
        CASE(nothing_checked_is_no_pass),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
