/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is new or worse than in a baseline, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_world.h"

static enum seep_check_outcome against_baseline(void)
{
    struct seep_check_limit limit = {.kind = SEEP_CHECK_BASELINE,
                                     .space = SEEP_CHECK_ALL_SPACES};

    return check_world_one(&limit, true).outcome;
}

static void what_grew_as_much_before_is_no_failure(void **state)
{
    (void)state;
    check_world_add(&check_before, "a", SEEP_CLASS_LEAK, 1000);
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1005);
    assert_int_equal(against_baseline(), SEEP_CHECK_PASS);
    check_now.sites[0].growth_bytes_per_s =
        (struct seep_interval){1100, 1090, 1110};
    assert_int_equal(against_baseline(), SEEP_CHECK_FAIL);
}

static void what_is_new_fails_and_a_new_suspect_does_not(void **state)
{
    (void)state;
    check_world_add(&check_before, "a", SEEP_CLASS_LEAK, 1000);
    check_world_add(&check_now, "b", SEEP_CLASS_LEAK, 1000)->where =
        "other.py:2 get";
    assert_int_equal(against_baseline(), SEEP_CHECK_FAIL);
    check_now.sites[0].class = SEEP_CLASS_SUSPECT;
    assert_int_equal(against_baseline(), SEEP_CHECK_INSUFFICIENT);
}

static void what_is_open_is_not_known_to_be_no_news(void **state)
{
    (void)state;
    assert_int_equal(against_baseline(), SEEP_CHECK_PASS);
    check_now.report.verdict.open_reason = "too few blocks";
    assert_int_equal(against_baseline(), SEEP_CHECK_INSUFFICIENT);
}

static void a_line_that_moved_is_the_same_site(void **state)
{
    (void)state;
    check_world_add(&check_before, "a", SEEP_CLASS_LEAK, 1000)->where =
        "serve.py:29 handle";
    check_world_add(&check_now, "b", SEEP_CLASS_LEAK, 1000);
    assert_int_equal(against_baseline(), SEEP_CHECK_PASS);
    check_now.sites[0].where = "serve.py:29 handled";
    assert_int_equal(against_baseline(), SEEP_CHECK_FAIL);
}

static void a_site_that_is_still_there_excuses_no_other(void **state)
{
    (void)state;
    check_world_add(&check_before, "a", SEEP_CLASS_LEAK, 1000)->where =
        "serve.py:29 handle";
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000)->where =
        "serve.py:29 handle";
    check_world_add(&check_now, "b", SEEP_CLASS_LEAK, 1000);
    assert_int_equal(against_baseline(), SEEP_CHECK_FAIL);
}

static void busier_is_not_worse_where_work_was_told(void **state)
{
    (void)state;
    check_world_add(&check_before, "a", SEEP_CLASS_LEAK, 1000);
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 2000);
    assert_int_equal(against_baseline(), SEEP_CHECK_FAIL);
    check_before.sites[0].has_growth_per_unit = true;
    check_now.sites[0].has_growth_per_unit = true;
    check_before.sites[0].growth_bytes_per_unit =
        (struct seep_interval){64, 63, 65};
    check_now.sites[0].growth_bytes_per_unit =
        (struct seep_interval){64, 63, 65};
    assert_int_equal(against_baseline(), SEEP_CHECK_PASS);
}

static void
a_baseline_that_tells_nothing_excuses_and_fails_nothing(void **state)
{
    (void)state;
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1000);
    check_before.report.verdict.class = SEEP_VERDICT_INSUFFICIENT;
    assert_int_equal(against_baseline(), SEEP_CHECK_INSUFFICIENT);
    check_before.report.verdict.class = SEEP_VERDICT_STEADY;
    check_before.report.executable = "/bin/sh";
    assert_int_equal(against_baseline(), SEEP_CHECK_INSUFFICIENT);
}

static void
a_limit_that_was_broken_before_is_forgiven_unless_worse(void **state)
{
    struct seep_check_limit limit = {.kind = SEEP_CHECK_GROWTH,
                                     .space = SEEP_CHECK_ALL_SPACES,
                                     .value = 500};

    (void)state;
    check_world_add(&check_before, "a", SEEP_CLASS_LEAK, 1000);
    check_world_add(&check_now, "a", SEEP_CLASS_LEAK, 1005);
    assert_int_equal(check_world_one(&limit, false).outcome, SEEP_CHECK_FAIL);
    assert_int_equal(check_world_one(&limit, true).outcome, SEEP_CHECK_PASS);
    assert_true(check_world_one(&limit, true).forgiven);
    check_now.sites[0].growth_bytes_per_s =
        (struct seep_interval){1100, 1090, 1110};
    assert_int_equal(check_world_one(&limit, true).outcome, SEEP_CHECK_FAIL);
}

/* Within the limit before: that it is over it now is news. */
static void a_limit_that_was_kept_before_is_not_forgiven(void **state)
{
    struct seep_check_limit limit = {.kind = SEEP_CHECK_CAP,
                                     .space = SEEP_CHECK_ALL_SPACES,
                                     .value = 60.5 * CHECK_MIB};

    (void)state;
    check_now.moments[3].held_bytes = 61 * CHECK_MIB;
    assert_int_equal(check_world_one(&limit, true).outcome, SEEP_CHECK_FAIL);
    check_before.moments[3].held_bytes = 61 * CHECK_MIB;
    assert_int_equal(check_world_one(&limit, true).outcome, SEEP_CHECK_PASS);
    /* One figure differs from run to run: by 5 % it is no worse. */
    check_now.moments[3].held_bytes = 63 * CHECK_MIB;
    assert_int_equal(check_world_one(&limit, true).outcome, SEEP_CHECK_PASS);
    check_now.moments[3].held_bytes = 65 * CHECK_MIB;
    assert_int_equal(check_world_one(&limit, true).outcome, SEEP_CHECK_FAIL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, check_world_set_up)
    const struct CMUnitTest tests[] = {
        CASE(what_grew_as_much_before_is_no_failure),
        CASE(what_is_new_fails_and_a_new_suspect_does_not),
        CASE(what_is_open_is_not_known_to_be_no_news),
        CASE(a_line_that_moved_is_the_same_site),
        CASE(a_site_that_is_still_there_excuses_no_other),
        CASE(busier_is_not_worse_where_work_was_told),
        CASE(a_limit_that_was_kept_before_is_not_forgiven),
        CASE(a_baseline_that_tells_nothing_excuses_and_fails_nothing),
        CASE(a_limit_that_was_broken_before_is_forgiven_unless_worse),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
