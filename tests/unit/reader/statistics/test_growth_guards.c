/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is damaged, contradicts itself or is too short gets no verdict, and is
 * told why. Each test spoils one thing in a site that is a leak otherwise.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "reader/statistics/growth.h"
#include "test_growth_site.h"

static struct site_input site;

static struct seep_growth judge(void)
{
    struct seep_growth growth;

    seep_growth_analyse(&site.input, &growth);
    return growth;
}

static int build(void **state)
{
    (void)state;
    site_build_leak(200, &site);
    return 0;
}

static void assert_refused(const char *reason)
{
    struct seep_growth growth = judge();

    assert_int_equal(growth.class, SEEP_CLASS_INSUFFICIENT);
    assert_non_null(strstr(growth.reason, reason));
}

/* A spoilt input has no rate: not even as a hint. */
static void assert_damaged(const char *reason)
{
    struct seep_growth growth = judge();

    assert_refused(reason);
    assert_true(growth.rate.estimate == 0 && growth.rate.high == 0);
    assert_true(growth.p == 1 && growth.confidence == 0);
    assert_false(growth.tested);
}

static void the_site_is_a_leak_when_nothing_is_spoilt(void **state)
{
    (void)state;
    assert_int_equal(judge().class, SEEP_CLASS_LEAK);
}

static void no_bucket_is_no_verdict(void **state)
{
    (void)state;
    memset(&site.input, 0, sizeof(site.input));
    assert_damaged("no series");
}

/* One bucket, and a run whose whole work was done before the first ended. */
static void one_bucket_is_no_verdict(void **state)
{
    (void)state;
    site.input.bucket_count = 1;
    site.bucket_end[0] = 1;
    assert_damaged("too short");
}

static void a_clock_that_stands_still_is_no_leak(void **state)
{
    (void)state;
    for (size_t i = 0; i < SITE_BUCKETS; i++) {
        site.bucket_end[i] = 1;
    }
    for (size_t i = 0; i < site.input.survivor_count; i++) {
        site.survivors[i].birth = 1;
    }
    assert_int_not_equal(judge().class, SEEP_CLASS_LEAK);
}

/* Nine tenths of the work in one bucket: hours of sleep before and after. */
static void a_clock_that_jumps_is_a_clock(void **state)
{
    struct seep_growth growth;

    (void)state;
    for (size_t i = 0; i < SITE_BUCKETS; i++) {
        site.bucket_end[i] = i < 64 ? 0.05 : i == 127 ? 1 : 0.95;
    }
    growth = judge();
    assert_in_range(growth.class, 0, SEEP_CLASS_COUNT - 1);
    assert_true(isfinite(growth.rate.estimate));
}

/* The first count buckets of the run, as if it had ended there. */
static void shorten(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        site.bucket_end[i] = (double)(i + 1) / (double)count;
    }
    site.input.bucket_count = count;
}

static void fewer_than_32_buckets_are_too_few(void **state)
{
    (void)state;
    shorten(31);
    assert_damaged("too short");
}

static void thirty_two_buckets_are_enough(void **state)
{
    (void)state;
    shorten(32);
    assert_int_equal(judge().class, SEEP_CLASS_LEAK);
}

static void more_buckets_than_any_recording_has_are_refused(void **state)
{
    (void)state;
    site.input.bucket_count = SEEP_GROWTH_BUCKET_LIMIT + 1;
    assert_damaged("more intervals");
}

static void no_work_is_no_verdict(void **state)
{
    (void)state;
    memset(site.bucket_end, 0, sizeof(site.bucket_end));
    assert_damaged("no work");
    for (size_t i = 0; i < SITE_BUCKETS; i++) {
        site.bucket_end[i] = NAN; /* 0 / 0 */
    }
    assert_damaged("work clock");
}

static void a_clock_that_goes_back_is_no_clock(void **state)
{
    (void)state;
    site.bucket_end[60] = site.bucket_end[58];
    assert_damaged("work clock");
}

static void a_clock_that_does_not_end_at_one_is_no_clock(void **state)
{
    (void)state;
    for (size_t i = 0; i < SITE_BUCKETS; i++) {
        site.bucket_end[i] *= 0.5;
    }
    assert_damaged("work clock");
}

static void a_clock_that_pauses_is_fine(void **state)
{
    (void)state;
    site.bucket_end[60] = site.bucket_end[59];
    assert_int_equal(judge().class, SEEP_CLASS_LEAK);
}

static void a_figure_that_is_none_is_damage(void **state)
{
    double *const figures[] = {
        &site.live_bytes[7],       &site.low_bytes[7],
        &site.survivors[7].weight, &site.survivors[7].variance,
        &site.input.died_old,      &site.input.live_old,
        &site.input.live_count,    &site.allocations[SITE_BUCKETS - 1],
    };
    const double spoilt[] = {NAN, INFINITY, -INFINITY};

    (void)state;
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        double kept = *figures[i];
        for (size_t k = 0; k < sizeof(spoilt) / sizeof(spoilt[0]); k++) {
            *figures[i] = spoilt[k];
            assert_damaged("damaged");
        }
        *figures[i] = kept;
    }
    site.survivors[7].birth = NAN;
    assert_damaged("damaged");
}

static void a_negative_weight_is_damage(void **state)
{
    (void)state;
    site.survivors[7].weight = -1;
    assert_damaged("damaged");
    site.survivors[7].weight = 1000;
    site.survivors[7].variance = -1;
    assert_damaged("damaged");
}

static void figures_that_overflow_are_out_of_range(void **state)
{
    (void)state;
    for (size_t i = 0; i < site.input.survivor_count; i++) {
        site.survivors[i].weight = 1e200; /* its square is infinite */
    }
    assert_damaged("out of range");
}

/* Each is finite, and so is its square; their sum is not. */
static void sums_that_overflow_are_out_of_range(void **state)
{
    (void)state;
    for (size_t i = 0; i < site.input.survivor_count; i++) {
        site.survivors[i].weight = 1e153;
        site.survivors[i].variance = 1.7e308;
    }
    assert_true(isfinite(judge().rate.high));
    for (size_t i = 0; i < site.input.survivor_count; i++) {
        site.survivors[i].weight = 1.3e154;
        site.survivors[i].variance = 0;
    }
    assert_damaged("out of range");
}

/* A weight whose mean over the windows is rounded to nothing. */
static void weights_that_vanish_make_no_rate(void **state)
{
    (void)state;
    for (size_t i = 0; i < site.input.survivor_count; i++) {
        site.survivors[i].weight = i % 20 == 0 ? 5e-324 : 0;
    }
    assert_true(isfinite(judge().rate.estimate));
    assert_true(isfinite(judge().zs));
}

static void negative_live_bytes_are_no_leak(void **state)
{
    (void)state;
    for (size_t i = 0; i < SITE_BUCKETS; i++) {
        site.live_bytes[i] = -site.live_bytes[i];
        site.low_bytes[i] = -site.low_bytes[i];
    }
    assert_int_not_equal(judge().class, SEEP_CLASS_LEAK);
    assert_true(isfinite(judge().rate.estimate));
}

static void a_birth_outside_of_the_run_is_moved_to_its_edge(void **state)
{
    struct seep_growth growth;

    (void)state;
    site.survivors[100].birth = -3;
    site.survivors[101].birth = 1.5;
    site.survivors[102].birth = -INFINITY;
    site.survivors[103].birth = INFINITY;
    growth = judge();
    assert_true(growth.window_count[0] == 22);
    assert_true(growth.window_count[9] == 22);
    assert_true(growth.window_count[5] == 16);
}

static void a_flat_series_with_survivors_is_a_contradiction(void **state)
{
    (void)state;
    for (size_t i = 0; i < SITE_BUCKETS; i++) {
        site.live_bytes[i] = 200e3;
        site.low_bytes[i] = 200e3;
    }
    assert_refused("do not agree");
}

static void a_series_of_zeros_with_survivors_is_a_contradiction(void **state)
{
    (void)state;
    memset(site.live_bytes, 0, sizeof(site.live_bytes));
    memset(site.low_bytes, 0, sizeof(site.low_bytes));
    assert_refused("do not agree");
    site.input.survivor_count = 3; /* no chain: the same holds */
    assert_refused("do not agree");
}

/* A pool of a fixed size that replaces its blocks at random. */
static void a_series_without_survivors_is_a_contradiction(void **state)
{
    (void)state;
    site.input.survivors = NULL;
    site.input.survivor_count = 0;
    site.input.live_count = 0;
    assert_refused("do not agree");
    for (size_t i = 0; i < SITE_BUCKETS; i++) { /* what is left of rounding */
        site.live_bytes[i] = i < 100 ? 200e3 : 1e-6;
        site.low_bytes[i] = 0;
    }
    assert_int_not_equal(judge().class, SEEP_CLASS_INSUFFICIENT);
}

static void a_flat_series_is_fine_where_old_blocks_die(void **state)
{
    (void)state;
    for (size_t i = 0; i < SITE_BUCKETS; i++) {
        site.live_bytes[i] = 200e3;
        site.low_bytes[i] = 200e3;
    }
    site.input.died_old = 100;
    assert_int_equal(judge().class, SEEP_CLASS_TURNOVER);
}

static void a_site_that_holds_nothing_is_steady(void **state)
{
    (void)state;
    memset(site.live_bytes, 0, sizeof(site.live_bytes));
    memset(site.low_bytes, 0, sizeof(site.low_bytes));
    site.input.survivors = NULL;
    site.input.survivor_count = 0;
    assert_int_equal(judge().class, SEEP_CLASS_STEADY);
}

static void allocations_need_not_be_known(void **state)
{
    (void)state;
    site.input.allocations = NULL;
    assert_int_equal(judge().class, SEEP_CLASS_LEAK);
}

static void five_exact_survivors_are_enough(void **state)
{
    (void)state;
    site_build_leak(8, &site);
    assert_true(judge().mature_count == 4);
    assert_false(judge().tested);
    site_build_leak(9, &site);
    assert_true(judge().mature_count == 5);
    assert_true(judge().tested);
}

static void sampled_sites_need_twelve_survivors(void **state)
{
    (void)state;
    site_build_leak(19, &site); /* 11 of them are mature */
    assert_true(judge().mature_count == 11);
    assert_true(judge().tested);
    for (size_t i = 0; i < site.input.survivor_count; i++) {
        site.survivors[i].variance = 999e3;
    }
    assert_false(judge().tested);
    assert_refused("too few");
    site_build_leak(20, &site);
    for (size_t i = 0; i < site.input.survivor_count; i++) {
        site.survivors[i].variance = 999e3;
    }
    assert_true(judge().mature_count == 12);
    assert_true(judge().tested);
}

/* Windows that differ by more than chance hold fewer independent events. */
static void blocks_that_come_in_clumps_count_less(void **state)
{
    struct seep_growth even;
    struct seep_growth clumped;

    (void)state;
    even = judge();
    assert_true(even.effective_count == even.mature_count);
    for (size_t i = 0; i < site.input.survivor_count; i++) {
        bool heavy = (int)(site.survivors[i].birth * 10) % 2 == 0;
        site.survivors[i].weight = heavy ? 1900 : 100;
    }
    clumped = judge();
    assert_true(clumped.mature_count == even.mature_count);
    assert_true(clumped.effective_count < even.effective_count / 2);
}

#define GUARD(test) cmocka_unit_test_setup(test, build)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GUARD(the_site_is_a_leak_when_nothing_is_spoilt),
        GUARD(no_bucket_is_no_verdict),
        GUARD(one_bucket_is_no_verdict),
        GUARD(a_clock_that_stands_still_is_no_leak),
        GUARD(a_clock_that_jumps_is_a_clock),
        GUARD(fewer_than_32_buckets_are_too_few),
        GUARD(thirty_two_buckets_are_enough),
        GUARD(more_buckets_than_any_recording_has_are_refused),
        GUARD(no_work_is_no_verdict),
        GUARD(a_clock_that_goes_back_is_no_clock),
        GUARD(a_clock_that_does_not_end_at_one_is_no_clock),
        GUARD(a_clock_that_pauses_is_fine),
        GUARD(a_figure_that_is_none_is_damage),
        GUARD(a_negative_weight_is_damage),
        GUARD(figures_that_overflow_are_out_of_range),
        GUARD(sums_that_overflow_are_out_of_range),
        GUARD(weights_that_vanish_make_no_rate),
        GUARD(negative_live_bytes_are_no_leak),
        GUARD(a_birth_outside_of_the_run_is_moved_to_its_edge),
        GUARD(a_flat_series_with_survivors_is_a_contradiction),
        GUARD(a_series_of_zeros_with_survivors_is_a_contradiction),
        GUARD(a_series_without_survivors_is_a_contradiction),
        GUARD(a_flat_series_is_fine_where_old_blocks_die),
        GUARD(a_site_that_holds_nothing_is_steady),
        GUARD(allocations_need_not_be_known),
        GUARD(blocks_that_come_in_clumps_count_less),
        GUARD(five_exact_survivors_are_enough),
        GUARD(sampled_sites_need_twelve_survivors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
