/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When memory is exhausted: figures computed by hand, and the edges. */
#include "seep_test.h"

#include <math.h>
#include <string.h>

#include "reader/judge/verdict.h"

#define GIB ((uint64_t)1 << 30)

static const struct seep_interval ten = {10, 8, 16};

static struct seep_report_forecast forecast_of(uint64_t limit, uint64_t used,
                                               struct seep_interval rate)
{
    struct seep_forecast_limit one = {"cgroup", limit, used, rate};
    struct seep_report_forecast forecast;

    seep_forecast_make(&one, 1, SEEP_FORECAST_GROWS, &forecast);
    return forecast;
}

/* 800 bytes at 10 (8 to 16) a second. */
static void headroom_over_rate_is_the_time(void **state)
{
    struct seep_report_forecast forecast = forecast_of(1000, 200, ten);

    (void)state;
    assert_int_equal(forecast.answer, SEEP_FORECAST_TIME);
    assert_string_equal(forecast.what, "cgroup");
    assert_int_equal(forecast.limit_bytes, 1000);
    assert_int_equal(forecast.used_bytes, 200);
    assert_true(forecast.seconds.estimate == 80);
    assert_true(forecast.seconds.low == 50);
    assert_true(forecast.seconds.high == 100);
    assert_false(forecast.if_suspect);
}

static void growth_that_may_be_none_may_never_end(void **state)
{
    struct seep_interval rate = {10, -1, 21};
    struct seep_report_forecast forecast = forecast_of(1000, 200, rate);

    (void)state;
    assert_int_equal(forecast.answer, SEEP_FORECAST_TIME);
    assert_true(forecast.seconds.estimate == 80);
    assert_true(isinf(forecast.seconds.high));
    rate.low = 0;
    assert_true(isinf(forecast_of(1000, 200, rate).seconds.high));
}

static void what_is_full_or_over_full_is_due_now(void **state)
{
    struct seep_interval rate = {10, -1, 21};
    struct seep_report_forecast full = forecast_of(1000, 1000, rate);
    struct seep_report_forecast over = forecast_of(1000, UINT64_MAX, rate);

    (void)state;
    assert_int_equal(full.answer, SEEP_FORECAST_TIME);
    assert_true(full.seconds.estimate == 0 && full.seconds.high == 0);
    assert_int_equal(over.answer, SEEP_FORECAST_TIME);
    assert_true(over.seconds.estimate == 0 && over.seconds.low == 0);
}

static void what_does_not_grow_never_ends(void **state)
{
    struct seep_interval still = {0, 0, 0};
    struct seep_interval falling = {-5, -9, -1};
    struct seep_interval lull = {-1, -9, 7};

    (void)state;
    assert_int_equal(forecast_of(1000, 200, still).answer, SEEP_FORECAST_NEVER);
    assert_int_equal(forecast_of(1000, 200, falling).answer,
                     SEEP_FORECAST_NEVER);
    assert_int_equal(forecast_of(1000, 200, lull).answer, SEEP_FORECAST_NEVER);
    assert_string_equal(forecast_of(1000, 200, still).what, "cgroup");
}

static void no_limit_or_no_growth_known_is_no_answer(void **state)
{
    struct seep_forecast_limit one = {"ram", 1000, 10, {10, 8, 16}};
    struct seep_report_forecast forecast = forecast_of(0, 200, ten);

    (void)state;
    assert_int_equal(forecast.answer, SEEP_FORECAST_UNKNOWN);
    assert_string_equal(forecast.what, "");
    seep_forecast_make(&one, 1, SEEP_FORECAST_UNTOLD, &forecast);
    assert_int_equal(forecast.answer, SEEP_FORECAST_UNKNOWN);
    seep_forecast_make(NULL, 0, SEEP_FORECAST_GROWS, &forecast);
    assert_int_equal(forecast.answer, SEEP_FORECAST_UNKNOWN);
}

static void a_suspect_is_marked_as_one(void **state)
{
    struct seep_forecast_limit one = {"ram", 1000, 200, {10, 8, 16}};
    struct seep_report_forecast forecast;

    (void)state;
    seep_forecast_make(&one, 1, SEEP_FORECAST_SUSPECTED, &forecast);
    assert_true(forecast.if_suspect);
    assert_true(forecast.seconds.low == 50);
}

static void the_limit_that_is_reached_first_counts(void **state)
{
    struct seep_forecast_limit limits[] = {
        {"cgroup", 0, 0, {10, 8, 16}},
        {"ram", 1000, 200, {10, 8, 16}},
        {"device", 4000, 3900, {1, 1, 1}},
        {"device", 4000, 3990, {0, 0, 0}},
    };
    struct seep_report_forecast forecast;

    (void)state;
    seep_forecast_make(limits, 4, SEEP_FORECAST_GROWS, &forecast);
    assert_string_equal(forecast.what, "ram");
    limits[2].used_bytes = 3930;
    seep_forecast_make(limits, 4, SEEP_FORECAST_GROWS, &forecast);
    assert_string_equal(forecast.what, "device");
    assert_true(forecast.seconds.estimate == 70);
}

/* What is mapped counts for them, and not what is resident. */
static void what_setrlimit_allows_is_a_limit(void **state)
{
    struct seep_report_memory memory = {
        .rss = {.valid = true, .last_bytes = (double)GIB},
        .machine_bytes = 64 * GIB,
        .address_space = {4 * GIB, 3 * GIB},
    };
    struct seep_verdict_now now = {.basis = SEEP_FORECAST_GROWS,
                                   .bytes_per_s = ten};
    struct seep_report_forecast forecast;

    (void)state;
    seep_forecast_of_process(&memory, &now, &forecast);
    assert_string_equal(forecast.what, "address-space");
    assert_int_equal(forecast.used_bytes, 3 * GIB);
    memory.data = (struct seep_report_bound){2 * GIB, 2 * GIB - 100};
    seep_forecast_of_process(&memory, &now, &forecast);
    assert_string_equal(forecast.what, "data");
    assert_true(forecast.seconds.estimate == 10);
    memory.data.limit_bytes = 0;
    memory.address_space.limit_bytes = 0;
    seep_forecast_of_process(&memory, &now, &forecast);
    assert_string_equal(forecast.what, "ram");
}

/* What was allocated before is only used now: it is mapped already. */
static void what_ends_reaches_what_ends_it_before(void **state)
{
    struct seep_report_memory memory = {
        .rss = {.valid = true, .last_bytes = (double)GIB},
        .machine_bytes = 8 * GIB,
        .address_space = {4 * GIB, 4 * GIB - 1},
    };
    struct seep_verdict_now now = {
        .basis = SEEP_FORECAST_GROWS,
        .bytes_per_s = ten,
        .left_bytes = 6.0 * (double)GIB,
        .ends = true,
    };
    struct seep_report_forecast forecast;

    (void)state;
    seep_forecast_of_process(&memory, &now, &forecast);
    assert_int_equal(forecast.answer, SEEP_FORECAST_UNKNOWN);
    assert_int_equal(forecast.limit_bytes, 0);
    now.left_bytes = 8.0 * (double)GIB;
    seep_forecast_of_process(&memory, &now, &forecast);
    assert_int_equal(forecast.answer, SEEP_FORECAST_TIME);
    assert_string_equal(forecast.what, "ram");
}

#define MIB (1024.0 * 1024)

/* 10 MiB a second and 4 MiB of it its own, 500 MiB are left: 20 MiB of them
 * the kernel could drop from what it uses of its 1 GiB. */
static void what_its_cgroup_grows_by_fills_it(void **state)
{
    struct seep_report_memory memory = {
        .rss = {true, 80 * MIB, 480 * MIB, 4 * MIB, MIB},
        .cgroup = {true, 200 * MIB, 544 * MIB, 10 * MIB, MIB},
        .cgroup_held = {true, 180 * MIB, 524 * MIB, 10 * MIB, MIB},
        .cgroup_shmem = {true, 0, 200 * MIB, 3 * MIB, MIB},
        .cgroup_limit_bytes = GIB,
    };
    struct seep_report_verdict verdict = {.forecast = SEEP_FORECAST_NONE};

    (void)state;
    seep_forecast_add_beside(&memory, 0, 60, &verdict);
    assert_true(verdict.beside_bytes_per_s == 6 * MIB);
    assert_true(verdict.beside_is_files);
    assert_int_equal(verdict.forecast.answer, SEEP_FORECAST_TIME);
    assert_true(verdict.forecast.by_others);
    assert_true(verdict.forecast.seconds.estimate == 50);
    /* of what is shared this process has a part itself */
    memory.shared.slope_bytes_per_s = MIB;
    seep_forecast_add_beside(&memory, 0, 60, &verdict);
    assert_false(verdict.beside_is_files);
    /* what others wrote into its own memory is its own */
    verdict = (struct seep_report_verdict){.forecast = SEEP_FORECAST_NONE};
    seep_forecast_add_beside(&memory, 5 * MIB, 60, &verdict);
    assert_true(verdict.beside_bytes_per_s == 0);
    /* what is sooner stands */
    verdict.forecast = forecast_of(1000, 900, ten);
    seep_forecast_add_beside(&memory, 0, 60, &verdict);
    assert_false(verdict.forecast.by_others);
    verdict.forecast = forecast_of(10000, 900, ten);
    seep_forecast_add_beside(&memory, 0, 60, &verdict);
    assert_true(verdict.forecast.by_others);
}

static void assert_alone(const struct seep_report_memory *memory,
                         double duration_s)
{
    struct seep_report_verdict verdict = {.forecast = SEEP_FORECAST_NONE};

    seep_forecast_add_beside(memory, 0, duration_s, &verdict);
    assert_true(verdict.beside_bytes_per_s == 0);
    assert_int_equal(verdict.forecast.answer, SEEP_FORECAST_UNKNOWN);
}

static void what_it_does_itself_is_not_beside_it(void **state)
{
    const struct seep_report_memory beside = {
        .rss = {true, 80 * MIB, 80 * MIB, 0, 0},
        .cgroup_held = {true, 180 * MIB, 524 * MIB, 10 * MIB, MIB},
        .cgroup_limit_bytes = GIB,
    };
    struct seep_report_memory memory = beside;

    (void)state;
    memory.rss.slope_bytes_per_s = 9.1 * MIB;
    assert_alone(&memory, 60);
    /* its pages from before a fork are copied */
    memory = beside;
    memory.forked =
        (struct seep_report_extent){true, 900 * MIB, 300 * MIB, -10 * MIB, 0};
    assert_alone(&memory, 60);
    memory = beside;
    memory.cgroup_held.slope_error = 11 * MIB;
    assert_alone(&memory, 60);
    assert_alone(&beside, 1); /* 10 MiB */
    memory = beside;
    memory.cgroup_limit_bytes = 0;
    assert_alone(&memory, 60);
    memory = beside;
    memory.cgroup_held.valid = false;
    assert_alone(&memory, 60);
    memory = beside;
    memory.cgroup_held.slope_bytes_per_s = NAN;
    assert_alone(&memory, 60);
}

static void of_limits_never_reached_the_nearest_is_named(void **state)
{
    struct seep_forecast_limit limits[] = {
        {"ram", 8 * GIB, GIB, {0, 0, 0}},
        {"cgroup", 4 * GIB, GIB, {0, 0, 0}},
    };
    struct seep_report_forecast forecast;

    (void)state;
    seep_forecast_make(limits, 2, SEEP_FORECAST_GROWS, &forecast);
    assert_int_equal(forecast.answer, SEEP_FORECAST_NEVER);
    assert_string_equal(forecast.what, "cgroup");
}

static void no_rate_however_odd_gives_a_figure_that_is_none(void **state)
{
    const double odd[] = {NAN, INFINITY, -INFINITY, 1e300, 1e-310, 0, -1, 1};
    const size_t count = sizeof(odd) / sizeof(odd[0]);

    (void)state;
    for (size_t i = 0; i < count * count * count; i++) {
        struct seep_interval rate = {odd[i % count], odd[i / count % count],
                                     odd[i / count / count]};
        struct seep_report_forecast forecast = forecast_of(UINT64_MAX, 0, rate);

        assert_true(isfinite(forecast.seconds.estimate));
        assert_true(isfinite(forecast.seconds.low));
        assert_true(!isnan(forecast.seconds.high));
        assert_true(forecast.seconds.low >= 0);
        assert_true(forecast.seconds.high >= forecast.seconds.low);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headroom_over_rate_is_the_time),
        cmocka_unit_test(growth_that_may_be_none_may_never_end),
        cmocka_unit_test(what_is_full_or_over_full_is_due_now),
        cmocka_unit_test(what_does_not_grow_never_ends),
        cmocka_unit_test(no_limit_or_no_growth_known_is_no_answer),
        cmocka_unit_test(a_suspect_is_marked_as_one),
        cmocka_unit_test(the_limit_that_is_reached_first_counts),
        cmocka_unit_test(what_setrlimit_allows_is_a_limit),
        cmocka_unit_test(what_ends_reaches_what_ends_it_before),
        cmocka_unit_test(what_its_cgroup_grows_by_fills_it),
        cmocka_unit_test(what_it_does_itself_is_not_beside_it),
        cmocka_unit_test(of_limits_never_reached_the_nearest_is_named),
        cmocka_unit_test(no_rate_however_odd_gives_a_figure_that_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
