/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which site is which, and what is new, worse, the same, better or gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_world.h"
#include "reader/compare/diff.h"
#include "reader/compare/patterns.h"

static struct check_world check_third;

static struct seep_diff run(void)
{
    const struct seep_report *before = &check_before.report;
    const struct seep_report *now = &check_now.report;
    struct seep_diff diff;

    assert_int_equal(seep_diff_run(&before, 1, &now, 1, &diff), 0);
    return diff;
}

/* The outcome of the only site that grows, or did. */
static enum seep_diff_outcome outcome(enum seep_diff_answer expected)
{
    struct seep_diff diff = run();
    enum seep_diff_outcome found;

    assert_int_equal(diff.row_count, 1);
    found = diff.rows[0].outcome;
    assert_int_equal(seep_diff_answer_of(&diff), expected);
    seep_diff_fini(&diff);
    return found;
}

static struct seep_report_site *before(const char *id, double rate)
{
    return check_world_add(&check_before, id, SEEP_CLASS_LEAK, rate);
}

static struct seep_report_site *now(const char *id, double rate)
{
    return check_world_add(&check_now, id, SEEP_CLASS_LEAK, rate);
}

static void what_leaks_and_was_not_there_is_new(void **state)
{
    (void)state;
    now("a", 1000);
    assert_int_equal(outcome(SEEP_DIFF_LEAKS), SEEP_DIFF_NEW);
    /* Seen before, and seen not to grow. */
    before("a", 1000)->class = SEEP_CLASS_STEADY;
    assert_int_equal(outcome(SEEP_DIFF_LEAKS), SEEP_DIFF_NEW);
}

static void what_no_longer_leaks_is_gone(void **state)
{
    (void)state;
    before("a", 1000);
    assert_int_equal(outcome(SEEP_DIFF_FINE), SEEP_DIFF_GONE);
    now("a", 1000)->class = SEEP_CLASS_PLATEAU;
    assert_int_equal(outcome(SEEP_DIFF_FINE), SEEP_DIFF_GONE);
}

static void the_interval_of_the_difference_decides(void **state)
{
    struct seep_report_site *site;

    (void)state;
    before("a", 1000)->growth_bytes_per_s =
        (struct seep_interval){1000, 900, 1100};
    site = now("a", 1130);
    site->growth_bytes_per_s = (struct seep_interval){1130, 1030, 1230};
    /* Each is outside of the other's interval, and the difference can be 0. */
    assert_int_equal(outcome(SEEP_DIFF_FINE), SEEP_DIFF_SAME);
    site->growth_bytes_per_s = (struct seep_interval){1150, 1050, 1250};
    assert_int_equal(outcome(SEEP_DIFF_LEAKS), SEEP_DIFF_WORSE);
    site->growth_bytes_per_s = (struct seep_interval){850, 750, 950};
    assert_int_equal(outcome(SEEP_DIFF_FINE), SEEP_DIFF_BETTER);
}

static void a_difference_of_few_percent_is_none(void **state)
{
    (void)state;
    before("a", 1000)->growth_bytes_per_s =
        (struct seep_interval){1000, 999, 1001};
    now("a", 1040)->growth_bytes_per_s =
        (struct seep_interval){1040, 1039, 1041};
    assert_int_equal(outcome(SEEP_DIFF_FINE), SEEP_DIFF_SAME);
}

static void where_half_as_much_again_is_possible_nothing_is_told(void **state)
{
    (void)state;
    before("a", 1000)->growth_bytes_per_s =
        (struct seep_interval){1000, 300, 1700};
    now("a", 1000)->growth_bytes_per_s =
        (struct seep_interval){1000, 300, 1700};
    assert_int_equal(outcome(SEEP_DIFF_INSUFFICIENT), SEEP_DIFF_UNTOLD);
}

static void a_new_suspect_is_not_enough_data(void **state)
{
    (void)state;
    now("a", 1000)->class = SEEP_CLASS_SUSPECT;
    assert_int_equal(outcome(SEEP_DIFF_INSUFFICIENT), SEEP_DIFF_UNTOLD);
}

static void what_is_minor_or_fills_weighs_nothing(void **state)
{
    (void)state;
    now("a", 1000)->class = SEEP_CLASS_MINOR;
    assert_int_equal(outcome(SEEP_DIFF_FINE), SEEP_DIFF_NEW);
    check_now.sites[0].class = SEEP_CLASS_WARMING;
    assert_int_equal(outcome(SEEP_DIFF_FINE), SEEP_DIFF_UNTOLD);
}

static void what_was_too_short_before_makes_nothing_new(void **state)
{
    struct seep_diff diff;

    (void)state;
    now("a", 1000);
    check_before.report.verdict.class = SEEP_VERDICT_INSUFFICIENT;
    diff = run();
    assert_int_equal(seep_diff_answer_of(&diff), SEEP_DIFF_INSUFFICIENT);
    assert_int_equal(diff.rows[0].outcome, SEEP_DIFF_UNTOLD);
    assert_non_null(diff.before.reason);
    seep_diff_fini(&diff);
}

/* In 1,000 s up to 3 samples of 512 KiB may have been missed: 1.6 KB/s. */
static void what_sampling_may_have_missed_is_not_new(void **state)
{
    (void)state;
    check_before.report.sample_bytes = 512 * 1024;
    now("a", 1500)->space = SEEP_SPACE_HEAP;
    assert_int_equal(outcome(SEEP_DIFF_INSUFFICIENT), SEEP_DIFF_UNTOLD);
    check_now.sites[0].growth_bytes_per_s =
        (struct seep_interval){2000, 1990, 2010};
    assert_int_equal(outcome(SEEP_DIFF_LEAKS), SEEP_DIFF_NEW);
}

static void busier_is_the_same_where_both_tell_work(void **state)
{
    (void)state;
    before("a", 1000);
    now("a", 2000);
    assert_int_equal(outcome(SEEP_DIFF_LEAKS), SEEP_DIFF_WORSE);
    check_before.report.units = 10000;
    check_now.report.units = 20000;
    assert_int_equal(outcome(SEEP_DIFF_FINE), SEEP_DIFF_SAME);
    check_now.report.units = 10000;
    assert_int_equal(outcome(SEEP_DIFF_LEAKS), SEEP_DIFF_WORSE);
}

static void what_is_suppressed_is_not_compared(void **state)
{
    struct seep_diff diff;

    (void)state;
    now("a", 1000)->suppressed_by = "leak:handle";
    diff = run();
    assert_int_equal(diff.row_count, 0);
    assert_int_equal(diff.now.excused_count, 1);
    seep_diff_fini(&diff);
}

static void what_no_hook_sees_is_new_too(void **state)
{
    struct seep_diff diff;

    (void)state;
    check_now.report.verdict.class = SEEP_VERDICT_UNEXPLAINED;
    check_now.report.verdict.has_growth = true;
    check_now.report.verdict.growth_bytes_per_s =
        (struct seep_interval){1e6, 9e5, 1.1e6};
    check_before.report.memory.valid = true;
    check_before.report.memory.unexplained = (struct seep_report_extent){
        .valid = true, .slope_bytes_per_s = 1e4, .slope_error = 1e4};
    diff = run();
    assert_int_equal(diff.row_count, 1);
    assert_true(diff.rows[0].is_outside);
    assert_int_equal(diff.rows[0].outcome, SEEP_DIFF_NEW);
    assert_int_equal(seep_diff_answer_of(&diff), SEEP_DIFF_LEAKS);
    seep_diff_fini(&diff);
}

static struct seep_diff run_two(void)
{
    const struct seep_report *before_one = &check_before.report;
    const struct seep_report *both[] = {&check_now.report, &check_third.report};
    struct seep_diff diff;

    assert_int_equal(seep_diff_run(&before_one, 1, both, 2, &diff), 0);
    return diff;
}

static void several_processes_are_a_mean_by_their_time(void **state)
{
    struct seep_diff diff;

    (void)state;
    before("a", 1000);
    now("a", 1000);
    check_third = check_now;
    check_third.report.sites = check_third.sites;
    check_third.report.duration_s = 3000;
    check_third.sites[0].growth_bytes_per_s =
        (struct seep_interval){2000, 1980, 2020};
    diff = run_two();
    assert_int_equal(diff.row_count, 1);
    assert_int_equal(diff.rows[0].now.process_count, 2);
    assert_true(fabs(diff.rows[0].now.per_s.estimate - 1750) < 1);
    /* They differ among themselves by more than from before. */
    assert_int_equal(diff.rows[0].outcome, SEEP_DIFF_UNTOLD);
    seep_diff_fini(&diff);
}

static void a_process_that_was_too_short_adds_no_time(void **state)
{
    struct seep_diff diff;

    (void)state;
    before("a", 1000);
    now("a", 1000);
    check_third = check_now;
    check_third.report.sites = check_third.sites;
    check_third.report.verdict.class = SEEP_VERDICT_INSUFFICIENT;
    diff = run_two();
    assert_int_equal(diff.now.judged_count, 1);
    assert_true(fabs(diff.rows[0].now.per_s.estimate - 1000) < 1);
    assert_int_equal(diff.rows[0].outcome, SEEP_DIFF_SAME);
    assert_int_equal(seep_diff_answer_of(&diff), SEEP_DIFF_FINE);
    seep_diff_fini(&diff);
    /* Not if its private memory grows. */
    check_third.report.verdict.private_grows = true;
    check_third.report.verdict.reason = "private memory grows";
    diff = run_two();
    assert_int_equal(seep_diff_answer_of(&diff), SEEP_DIFF_INSUFFICIENT);
    assert_string_equal(diff.now.reason, "private memory grows");
    seep_diff_fini(&diff);
}

static void of_many_that_leak_one_by_chance_is_no_news(void **state)
{
    static const char *const ids[] = {"a", "b", "c", "d"};
    struct seep_diff diff;

    (void)state;
    for (int i = 0; i < 4; i++) {
        before(ids[i], 1000)->where = ids[i];
        now(ids[i], 1000)->where = ids[i];
        check_before.sites[i].growth_bytes_per_s =
            (struct seep_interval){1000, 900, 1100};
        check_now.sites[i].growth_bytes_per_s =
            (struct seep_interval){1000, 900, 1100};
    }
    /* By 2.1 standard errors: at one site that is news, at one of four not. */
    check_now.sites[0].growth_bytes_per_s =
        (struct seep_interval){1152, 1052, 1252};
    diff = run();
    assert_int_equal(diff.row_count, 4);
    assert_int_equal(seep_diff_answer_of(&diff), SEEP_DIFF_FINE);
    seep_diff_fini(&diff);
}

/* A site that holds @mib from the start to the end, in private memory. */
static struct seep_report_site *hold(struct check_world *world, const char *id,
                                     double mib)
{
    struct seep_report_site *site =
        check_world_add(world, id, SEEP_CLASS_STEADY, 0);

    site->has_growth = false;
    site->where = id;
    site->live_bytes = (uint64_t)(mib * CHECK_MIB);
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        site->series = world->points[world->report.site_count - 1];
        world->points[world->report.site_count - 1][i].live_bytes =
            site->live_bytes;
        world->moments[i].private_bytes += mib * CHECK_MIB;
    }
    return site;
}

static void check_held(enum seep_diff_outcome outcome,
                       enum seep_diff_answer answer, const char *first)
{
    struct seep_diff diff = run();

    assert_int_equal(seep_diff_held_outcome(&diff), outcome);
    assert_int_equal(seep_diff_answer_of(&diff), answer);
    assert_int_equal(diff.first_held == NULL, first == NULL);
    if (first != NULL) {
        assert_string_equal(
            diff.first_held->site == NULL ? "" : diff.first_held->site->id,
            first);
    }
    seep_diff_fini(&diff);
}

static void more_that_is_held_is_worse_and_less_is_better(void **state)
{
    (void)state;
    hold(&check_before, "cache", 100);
    hold(&check_now, "cache", 800);
    check_held(SEEP_DIFF_WORSE, SEEP_DIFF_LEAKS, "cache");
    check_world_set_up(NULL);
    hold(&check_before, "cache", 800);
    hold(&check_now, "cache", 100);
    check_held(SEEP_DIFF_BETTER, SEEP_DIFF_FINE, "cache");
    check_world_set_up(NULL);
    hold(&check_before, "cache", 800);
    hold(&check_now, "cache", 840);
    check_held(SEEP_DIFF_SAME, SEEP_DIFF_FINE, NULL);
}

/* What was never written to, and what has another name now. */
static void more_at_a_site_alone_is_not_worse(void **state)
{
    (void)state;
    hold(&check_before, "pool", 100);
    hold(&check_now, "pool", 800);
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        check_now.moments[i] = check_before.moments[i];
    }
    check_held(SEEP_DIFF_SAME, SEEP_DIFF_FINE, NULL);
    check_world_set_up(NULL);
    hold(&check_before, "old name", 800);
    hold(&check_now, "new name", 800);
    check_held(SEEP_DIFF_SAME, SEEP_DIFF_FINE, NULL);
}

static void what_is_at_no_site_is_worse_too(void **state)
{
    (void)state;
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        check_now.moments[i].private_bytes += 100 * CHECK_MIB;
    }
    check_held(SEEP_DIFF_WORSE, SEEP_DIFF_LEAKS, "");
}

static void memory_of_devices_is_held_too(void **state)
{
    (void)state;
    check_before.report.device_count = check_now.report.device_count = 1;
    check_before.devices[0].tracked.last_bytes = 100 * CHECK_MIB;
    check_now.devices[0].tracked.last_bytes = 800 * CHECK_MIB;
    check_held(SEEP_DIFF_WORSE, SEEP_DIFF_LEAKS, "");
    check_now.devices[0].tracked.last_bytes = 105 * CHECK_MIB;
    check_held(SEEP_DIFF_SAME, SEEP_DIFF_FINE, NULL);
}

static void a_peak_counts_by_itself(void **state)
{
    struct seep_report_site *site;

    (void)state;
    hold(&check_before, "burst", 10);
    site = hold(&check_now, "burst", 10);
    ((struct seep_report_point *)site->series)[40].live_bytes +=
        (uint64_t)(500 * CHECK_MIB);
    check_now.moments[40].private_bytes += 500 * CHECK_MIB;
    check_held(SEEP_DIFF_WORSE, SEEP_DIFF_LEAKS, "burst");
}

static void what_swings_by_more_is_the_same(void **state)
{
    (void)state;
    hold(&check_before, "cache", 100);
    hold(&check_now, "cache", 120);
    for (int i = 0; i < CHECK_MOMENTS; i += 2) {
        check_now.moments[i].private_bytes -= 100 * CHECK_MIB;
    }
    check_held(SEEP_DIFF_SAME, SEEP_DIFF_FINE, NULL);
}

/* It fills for 900 s: what it holds at 400 s is what it held then. */
static void lives_of_other_lengths_are_compared_at_one_age(void **state)
{
    struct seep_diff diff;

    (void)state;
    hold(&check_before, "cache", 0);
    hold(&check_now, "cache", 0);
    for (int i = 0; i < CHECK_MOMENTS; i++) {
        double bytes = CHECK_MIB * (i < 90 ? i : 90);

        check_before.points[0][i].live_bytes = (uint64_t)bytes;
        check_now.points[0][i].live_bytes = (uint64_t)bytes;
        check_before.moments[i].private_bytes += bytes;
        check_now.moments[i].private_bytes += bytes;
    }
    check_now.report.duration_s = 400;
    check_now.report.memory.moment_count = 40;
    check_now.sites[0].point_count = 40;
    diff = run();
    assert_true(diff.age_s > 399 && diff.age_s < 401);
    assert_int_equal(seep_diff_held_outcome(&diff), SEEP_DIFF_SAME);
    seep_diff_fini(&diff);
}

static void what_is_suppressed_is_not_held_against_it(void **state)
{
    (void)state;
    hold(&check_before, "cache", 100)->suppressed_by = "leak:cache";
    hold(&check_now, "cache", 800)->suppressed_by = "leak:cache";
    check_held(SEEP_DIFF_SAME, SEEP_DIFF_FINE, NULL);
}

static void a_pattern_speaks_for_many_sites(void **state)
{
    static const struct seep_pattern pattern = {.id = "onednn",
                                                .name = "oneDNN"};
    static const char *const ids[] = {"a", "b", "c"};
    struct seep_diff diff;

    (void)state;
    for (int i = 0; i < 3; i++) {
        hold(&check_before, ids[i], 10)->pattern = &pattern;
        hold(&check_now, ids[i], 110)->pattern = &pattern;
    }
    diff = run();
    assert_int_equal(seep_diff_held_outcome(&diff), SEEP_DIFF_WORSE);
    assert_int_equal(diff.first_held->holder, SEEP_DIFF_HOLDER_PATTERN);
    assert_int_equal(diff.first_held->site_count, 3);
    assert_true(fabs(diff.first_held->change.estimate - 300 * CHECK_MIB) <
                CHECK_MIB);
    seep_diff_fini(&diff);
}

/* Of the process, as its verdict tells it. */
static void grow(struct check_world *world, double rate)
{
    struct seep_report_verdict *verdict = &world->report.verdict;

    verdict->class = SEEP_VERDICT_LEAK;
    verdict->reassures = false;
    verdict->has_growth = true;
    verdict->growth_bytes_per_s =
        (struct seep_interval){rate, .9 * rate, 1.1 * rate};
}

static void what_a_leak_hides_does_not_decide(void **state)
{
    struct seep_report_site *small;
    struct seep_diff diff;

    (void)state;
    before("a", 1e6)->where = "a";
    now("a", 1e6)->where = "a";
    small = now("b", 1e4);
    small->where = "b";
    small->class = SEEP_CLASS_SUSPECT;
    diff = run(); /* of nothing that is sure to grow it is a trifle */
    assert_int_equal(seep_diff_answer_of(&diff), SEEP_DIFF_INSUFFICIENT);
    seep_diff_fini(&diff);
    grow(&check_before, 1e6);
    grow(&check_now, 1e6);
    diff = run();
    assert_int_equal(seep_diff_answer_of(&diff), SEEP_DIFF_FINE);
    seep_diff_fini(&diff);
    small->class = SEEP_CLASS_LEAK; /* what is proved decides */
    diff = run();
    assert_int_equal(seep_diff_answer_of(&diff), SEEP_DIFF_LEAKS);
    seep_diff_fini(&diff);
    small->class = SEEP_CLASS_SUSPECT;
    small->growth_bytes_per_s = (struct seep_interval){1e5, 9e4, 1.1e5};
    diff = run(); /* 10 % of it */
    assert_int_equal(seep_diff_answer_of(&diff), SEEP_DIFF_INSUFFICIENT);
    seep_diff_fini(&diff);
}

/* It leaks three times as fast, and frees @freed times as much. */
static void run_faster(double freed, enum seep_diff_outcome outcome,
                       double pace)
{
    struct seep_diff diff;

    before("a", 1e4)->where = "a";
    now("a", 3e4)->where = "a";
    check_before.sites[1].freed_bytes = 1 << 30;
    check_now.sites[1].freed_bytes = (uint64_t)(freed * (1 << 30));
    diff = run();
    assert_int_equal(diff.row_count, 1);
    assert_int_equal(diff.rows[0].outcome, outcome);
    assert_true(fabs(diff.pace - pace) < 0.01);
    assert_int_equal(seep_diff_answer_of(&diff), outcome == SEEP_DIFF_WORSE
                                                     ? SEEP_DIFF_LEAKS
                                                     : SEEP_DIFF_INSUFFICIENT);
    seep_diff_fini(&diff);
}

static void what_holds_less_may_only_have_worked_faster(void **state)
{
    (void)state;
    hold(&check_before, "cache", 800);
    hold(&check_now, "cache", 100);
    run_faster(3, SEEP_DIFF_UNTOLD, 3);
    check_world_set_up(NULL);
    hold(&check_before, "cache", 800);
    hold(&check_now, "cache", 100);
    run_faster(1.5, SEEP_DIFF_WORSE, 0);
    /* As much is held: faster is worse. */
    check_world_set_up(NULL);
    hold(&check_before, "cache", 800);
    hold(&check_now, "cache", 800);
    run_faster(3, SEEP_DIFF_WORSE, 0);
}

/* What imports freed tells nothing of how fast the work behind them was. */
static void what_start_up_freed_is_no_work(void **state)
{
    (void)state;
    hold(&check_before, "cache", 800);
    hold(&check_now, "cache", 100)->is_start = true;
    check_now.sites[0].freed_bytes = UINT64_C(1) << 33;
    run_faster(1.5, SEEP_DIFF_WORSE, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, check_world_set_up)
    const struct CMUnitTest tests[] = {
        CASE(what_leaks_and_was_not_there_is_new),
        CASE(what_no_longer_leaks_is_gone),
        CASE(the_interval_of_the_difference_decides),
        CASE(a_difference_of_few_percent_is_none),
        CASE(where_half_as_much_again_is_possible_nothing_is_told),
        CASE(a_new_suspect_is_not_enough_data),
        CASE(what_is_minor_or_fills_weighs_nothing),
        CASE(what_was_too_short_before_makes_nothing_new),
        CASE(what_sampling_may_have_missed_is_not_new),
        CASE(busier_is_the_same_where_both_tell_work),
        CASE(what_is_suppressed_is_not_compared),
        CASE(what_no_hook_sees_is_new_too),
        CASE(several_processes_are_a_mean_by_their_time),
        CASE(a_process_that_was_too_short_adds_no_time),
        CASE(of_many_that_leak_one_by_chance_is_no_news),
        CASE(more_that_is_held_is_worse_and_less_is_better),
        CASE(more_at_a_site_alone_is_not_worse),
        CASE(what_is_at_no_site_is_worse_too),
        CASE(memory_of_devices_is_held_too),
        CASE(a_peak_counts_by_itself),
        CASE(what_swings_by_more_is_the_same),
        CASE(lives_of_other_lengths_are_compared_at_one_age),
        CASE(what_is_suppressed_is_not_held_against_it),
        CASE(a_pattern_speaks_for_many_sites),
        CASE(what_a_leak_hides_does_not_decide),
        CASE(what_holds_less_may_only_have_worked_faster),
        CASE(what_start_up_freed_is_no_work),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
