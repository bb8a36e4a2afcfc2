/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is said beside the class: a little that cannot be told, and what rose
 * most and has stopped. */
#include "verdict_process.h"

/* A cache of 90 MiB that is full, and evicts. */
static struct seep_site_work *fill(void)
{
    struct seep_report_site *site = add(SEEP_CLASS_TURNOVER, MIB / 10);
    struct seep_site_work *work = &process.works[process.input.count - 1];

    site->live_bytes = (uint64_t)(90 * MIB);
    for (int k = 0; k < SEEP_GROWTH_WINDOWS; k++) {
        site->window_bytes[k] = 9 * MIB;
    }
    strcpy(site->id, "cache");
    site->has_growth = false;
    work->growth.flat = true;
    work->growth.rate = site->growth_bytes_per_s;
    return work;
}

/* So many MiB over the run, by a row of too few blocks to be a suspect. */
static struct seep_report_site *keep_a_little(double mib)
{
    struct seep_report_site *site =
        add(SEEP_CLASS_INSUFFICIENT, mib * MIB / RUN_S);

    strcpy(site->id, "names");
    return site;
}

static void a_little_that_is_unknown_hides_no_answer(void **state)
{
    (void)state;
    fill();
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_true(process.verdict.reassures);
    assert_int_equal(process.now.basis, SEEP_FORECAST_GROWS); /* never */
    assert_null(process.verdict.open_reason);
    assert_null(seep_verdict_open_reason(&process.verdict));
    keep_a_little(3);
    assert_int_equal(decide(), SEEP_VERDICT_BOUNDED);
    assert_string_equal(process.verdict.first_id, "cache");
    /* And is no "no leak". */
    assert_false(process.verdict.reassures);
    assert_non_null(seep_verdict_open_reason(&process.verdict));
    assert_string_equal(process.verdict.open_id, "names");
    assert_true(process.verdict.open_bytes_per_s.estimate == 3 * MIB / RUN_S);
    assert_true(process.verdict.open_bytes_per_s.high >
                process.verdict.open_bytes_per_s.estimate);
    assert_true(process.verdict.need_s > 0);
    assert_int_equal(process.now.basis, SEEP_FORECAST_UNTOLD);
}

static void more_that_is_unknown_is_the_answer(void **state)
{
    (void)state;
    fill();
    keep_a_little(10);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_string_equal(process.verdict.first_id, "names");
    assert_null(process.verdict.open_reason);
}

/* Where nothing rose and has stopped there is no other answer. */
static void what_is_unknown_alone_is_the_answer(void **state)
{
    (void)state;
    keep_a_little(3);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    add(SEEP_CLASS_STEADY, 0)->live_bytes = (uint64_t)(90 * MIB);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
}

/* A cache that still fills is none that has stopped. */
static void beside_what_fills_it_is_the_answer(void **state)
{
    (void)state;
    fill();
    keep_a_little(3);
    add(SEEP_CLASS_WARMING, 1e4);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
}

static void no_other_doubt_is_left_out_for_it(void **state)
{
    (void)state;
    fill();
    keep_a_little(3);
    process.input.unreachable = true;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    process.input.unreachable = false;
    process.input.private_drift = rising(400 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(process.verdict.private_grows);
}

/* 60 MiB that the allocator keeps are an answer as well. */
static void what_the_allocator_keeps_is_an_answer(void **state)
{
    struct seep_balance_outside *outside = &process.input.outside;

    (void)state;
    keep_a_little(2);
    outside->has_overhead = true;
    outside->rise_bytes = 60 * MIB;
    outside->overhead_bytes = 60 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_RETENTION);
    assert_false(process.verdict.reassures);
    assert_string_equal(process.verdict.open_id, "names");
}

static void beside_free_memory_as_much_that_lives_is_named(void **state)
{
    struct seep_balance_outside *outside = &process.input.outside;

    (void)state;
    fill();
    outside->has_overhead = true;
    outside->rise_bytes = 60 * MIB;
    outside->overhead_bytes = 60 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_RETENTION);
    assert_string_equal(process.verdict.stopped_id, "cache");
    outside->overhead_bytes = 130 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_RETENTION);
    assert_string_equal(process.verdict.stopped_id, "");
}

static void a_small_suspect_is_one_and_the_cache_is_named(void **state)
{
    struct seep_report_site *site = keep_a_little(3);

    (void)state;
    site->class = SEEP_CLASS_SUSPECT;
    fill();
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "names");
    assert_string_equal(process.verdict.stopped_id, "cache");
    site->class = SEEP_CLASS_LEAK;
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_string_equal(process.verdict.stopped_id, "cache");
    site->growth_bytes_per_s =
        (struct seep_interval){MIB / 10, MIB / 11, MIB / 9};
    assert_int_equal(decide(), SEEP_VERDICT_LEAK); /* as much as the cache */
    assert_string_equal(process.verdict.stopped_id, "");
}

static void
beside_memory_that_grows_nothing_is_said_to_have_stopped(void **state)
{
    (void)state;
    keep_a_little(3)->class = SEEP_CLASS_LEAK;
    fill();
    process.input.private_drift.may_go_on = true; /* the site knows better */
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_string_equal(process.verdict.stopped_id, "cache");
    process.input.private_drift = rising(400 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_string_equal(process.verdict.stopped_id, "");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        CASE(a_little_that_is_unknown_hides_no_answer),
        CASE(more_that_is_unknown_is_the_answer),
        CASE(what_is_unknown_alone_is_the_answer),
        CASE(beside_what_fills_it_is_the_answer),
        CASE(no_other_doubt_is_left_out_for_it),
        CASE(what_the_allocator_keeps_is_an_answer),
        CASE(beside_free_memory_as_much_that_lives_is_named),
        CASE(a_small_suspect_is_one_and_the_cache_is_named),
        CASE(beside_memory_that_grows_nothing_is_said_to_have_stopped),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
