/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pools of allocators inside libraries: what no hook sees into is no comfort.
 */
#include "verdict_process.h"

/* 400 MiB are mapped; whether they are touched is not known. */
static struct seep_site_work *add_pool(const char *id)
{
    struct seep_report_site *site = add(SEEP_CLASS_BACKING, 0);

    site->space = SEEP_SPACE_MAPPED;
    site->pool = "polars' own jemalloc";
    site->live_bytes = (uint64_t)(400 * MIB);
    strcpy(site->id, id);
    return &process.works[process.input.count - 1];
}

static void growth_that_lies_nowhere_else_is_the_pools(void **state)
{
    struct seep_report_site *line = add(SEEP_CLASS_STEADY, 0);

    (void)state;
    strcpy(line->id, "line");
    line->live_bytes = (uint64_t)(40 * MIB);
    line->window_bytes[7] = 20 * MIB;
    add_pool("pool"); /* it was mapped long ago, and is touched now */
    process.input.private_drift = rising(100 * MIB, .5);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "pool");
    assert_true(fabs(process.verdict.first_share - .8) < 1e-9);
    assert_true(process.verdict.in_pool);
    assert_false(process.verdict.reassures);
    assert_true(says("inside a library"));
    assert_int_equal(process.now.basis, SEEP_FORECAST_SUSPECTED);
    line->window_bytes[7] = 60 * MIB;
    line->live_bytes = (uint64_t)(80 * MIB);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT); /* most is the line's */
    assert_string_equal(process.verdict.first_id, "line");
    assert_false(process.verdict.in_pool);
}

/* Nor is what malloc keeps beside its blocks. */
static void growth_of_the_allocator_is_not_the_pools(void **state)
{
    (void)state;
    add_pool("pool");
    process.input.private_drift = rising(100 * MIB, .2);
    process.input.outside.has_overhead = true;
    process.input.outside.overhead_growth_bytes = 90 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_false(process.verdict.in_pool);
}

static void a_small_suspect_does_not_stand_for_a_pool(void **state)
{
    struct seep_report_site *suspect = add(SEEP_CLASS_SUSPECT, 3000);

    (void)state;
    strcpy(suspect->id, "suspect");
    add_pool("pool");
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "suspect");
    process.input.private_drift = rising(100 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "pool");
}

/* 1.2 MiB/min beside 20 MiB/s of a pool: not what its memory is used up by. */
static void a_small_leak_does_not_stand_for_a_pool(void **state)
{
    struct seep_report_site *leak = add(SEEP_CLASS_LEAK, 20000);

    (void)state;
    strcpy(leak->id, "leak");
    add_pool("pool");
    assert_int_equal(decide(), SEEP_VERDICT_LEAK);
    assert_string_equal(process.verdict.first_id, "leak");
    process.input.private_drift = rising(100 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "pool");
    assert_true(says("little of it"));
}

/* All that the process does is done there, so to hooks it seems to wait. */
static void who_works_in_a_pool_only_does_not_wait(void **state)
{
    (void)state;
    add_pool("pool");
    process.input.too_short = "it was mostly waiting";
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    process.input.private_drift = rising(100 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "pool");
    process.input.duration_s = 20;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("waiting"));
}

/* A runtime that maps by itself (Go) does nothing that hooks see. */
static void who_works_where_no_hook_is_does_not_wait(void **state)
{
    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    process.input.too_short = "it was mostly waiting";
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("waiting"));
    process.input.private_drift = rising(100 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("private memory grows"));
    assert_true(process.verdict.has_growth);
    grow_outside();
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    assert_int_equal(process.now.basis, SEEP_FORECAST_GROWS);
    process.input.imports_s = 30;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("waiting"));
    process.input.imports_s = 0;
    process.input.duration_s = 20;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_true(says("waiting"));
}

/* What a row did while it worked for so short a time is no evidence. */
static void a_row_that_rose_while_it_waits_is_no_suspect(void **state)
{
    struct seep_report_site *site = add(SEEP_CLASS_STEADY, 0);

    (void)state;
    site->window_bytes[6] = 80 * MIB;
    site->live_bytes = (uint64_t)(100 * MIB);
    process.input.private_drift = rising(100 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    process.input.too_short = "it was mostly waiting";
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
}

static void of_two_pools_the_one_that_took_more_is_named(void **state)
{
    (void)state;
    add_pool("reserved")->site.live_bytes = (uint64_t)(1024 * MIB);
    add_pool("taking")->site.window_bytes[6] = 50 * MIB;
    process.input.private_drift = rising(100 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "taking");
}

/* It is in mappings that hooks saw: "seen by no hook" would be wrong. */
static void what_is_touched_in_a_pool_is_not_unexplained(void **state)
{
    struct seep_balance_outside *outside = grow_outside();
    struct seep_site_work *pool = add_pool("pool");

    (void)state;
    assert_int_equal(decide(), SEEP_VERDICT_SUSPECT);
    assert_string_equal(process.verdict.first_id, "pool");
    assert_true(process.verdict.growth_bytes_per_s.low == 30000);
    /* mappings that no hook saw do grow */
    process.input.stray_bytes_per_s = 35000;
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    process.input.stray_bytes_per_s = 0;
    pool->site.live_bytes = (uint64_t)(20 * MIB); /* it has no room for it */
    assert_int_equal(decide(), SEEP_VERDICT_UNEXPLAINED);
    pool->site.live_bytes = (uint64_t)(400 * MIB);
    outside->overhead_growth_bytes = 25 * MIB;
    assert_int_equal(decide(), SEEP_VERDICT_RETENTION);
}

static void what_is_free_in_a_pool_may_hide_a_leak(void **state)
{
    double without;

    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    without = process.verdict.hidden_bytes_per_s;
    add_pool("pool");
    assert_int_equal(decide(), SEEP_VERDICT_STEADY);
    assert_true(process.verdict.reassures);
    assert_true(process.verdict.hidden_bytes_per_s >=
                without + 100 * MIB / RUN_S); /* all of private memory */
}

static void a_pool_whose_pages_are_unknown_is_no_comfort(void **state)
{
    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    add_pool("pool");
    process.input.private_drift.known = false;
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_false(process.verdict.reassures);
}

static void a_pool_that_was_given_a_bound_is_not_asked_about(void **state)
{
    (void)state;
    add(SEEP_CLASS_STEADY, 0);
    add_pool("pool")->site.known_bound_bytes = (uint64_t)(500 * MIB);
    process.input.private_drift = rising(100 * MIB, .2);
    assert_int_equal(decide(), SEEP_VERDICT_INSUFFICIENT);
    assert_false(process.verdict.in_pool);
}

#define WITH(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(growth_that_lies_nowhere_else_is_the_pools),
        WITH(growth_of_the_allocator_is_not_the_pools),
        WITH(a_small_suspect_does_not_stand_for_a_pool),
        WITH(a_small_leak_does_not_stand_for_a_pool),
        WITH(who_works_in_a_pool_only_does_not_wait),
        WITH(who_works_where_no_hook_is_does_not_wait),
        WITH(a_row_that_rose_while_it_waits_is_no_suspect),
        WITH(of_two_pools_the_one_that_took_more_is_named),
        WITH(what_is_touched_in_a_pool_is_not_unexplained),
        WITH(what_is_free_in_a_pool_may_hide_a_leak),
        WITH(a_pool_whose_pages_are_unknown_is_no_comfort),
        WITH(a_pool_that_was_given_a_bound_is_not_asked_about),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
