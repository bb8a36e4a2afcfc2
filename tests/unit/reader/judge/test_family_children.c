/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* reader/family_children: a line through what short children keep. */
#include <math.h>

#include "reader/judge/family.h"
#include "seep_test.h"

#define RUNS 2000
#define CHILDREN 12

static void check_kept(const double *length, const double *bytes, size_t count,
                       enum seep_family_trend trend)
{
    struct seep_family_kept kept;

    seep_family_kept_test(length, bytes, count, 1, 1, &kept);
    assert_int_equal(kept.trend, trend);
}

static void nothing_is_told_of_what_cannot_be_compared(void **state)
{
    const double alike[] = {5, 5, 5, 5, 5, 5, 5, 5};
    const double odd[] = {1, NAN, 3, 4, INFINITY, 6, 7, 8};
    const double bytes[] = {1e7, 2e7, 3e7, 4e7, 5e7, 6e7, 7e7, 8e7};
    const double length[] = {1, 2, 3, 4, 5, 6, 7, 8};

    (void)state;
    check_kept(alike, bytes, 8, SEEP_FAMILY_UNTOLD);
    check_kept(odd, bytes, 8, SEEP_FAMILY_UNTOLD);
    check_kept(length, odd, 8, SEEP_FAMILY_UNTOLD);
    check_kept(length, bytes, 5, SEEP_FAMILY_UNTOLD);
    check_kept(length, bytes, 8, SEEP_FAMILY_MAY_GROW);
    check_kept(length, bytes, 0, SEEP_FAMILY_UNTOLD);
}

/* A cache of 20 MB that the longer ones have filled is no leak for sure. */
static void what_levels_off_is_no_more_than_suspected(void **state)
{
    double length[40];
    double bytes[40];

    (void)state;
    for (size_t i = 0; i < 40; i++) {
        length[i] = 1 + 0.2 * (double)i;
        bytes[i] = 2e7 * (1 - exp(-length[i]));
    }
    check_kept(length, bytes, 40, SEEP_FAMILY_MAY_GROW);
}

static uint64_t seed;

static double uniform(void)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (double)(seed >> 33) / 2147483648.0;
}

static double normal(void)
{
    double sum = -6;

    for (size_t i = 0; i < 12; i++) {
        sum += uniform();
    }
    return sum;
}

struct tally {
    size_t trend[SEEP_FAMILY_TREND_COUNT];
    size_t covered;
};

/* Pools of children of 3 to 6 s that keep @once and @each more a second, and a
 * tenth more or less. */
static struct tally try(double once, double each)
{
    struct tally tally = {.covered = 0};

    seed = 12345;
    for (size_t run = 0; run < RUNS; run++) {
        double length[CHILDREN];
        double bytes[CHILDREN];
        struct seep_family_kept kept;

        for (size_t i = 0; i < CHILDREN; i++) {
            length[i] = 3 + 3 * uniform();
            bytes[i] = (once + each * length[i]) * (1 + 0.1 * normal());
        }
        seep_family_kept_test(length, bytes, CHILDREN, 1, 1, &kept);
        tally.trend[kept.trend]++;
        tally.covered += kept.slope.low <= each && each <= kept.slope.high;
    }
    return tally;
}

/* 2.5 % by design: one side of an interval of 95 %. */
static void chance_alone_seldom_grows(void **state)
{
    struct tally tally = try(1e7, 0);

    (void)state;
    assert_in_range(tally.trend[SEEP_FAMILY_MAY_GROW] +
                        tally.trend[SEEP_FAMILY_GROWS],
                    1, RUNS * 3 / 100);
    assert_true(tally.covered > RUNS * 94 / 100);
}

static void a_leak_is_found_and_never_told_to_be_kept_once(void **state)
{
    struct tally leak = try(0, 2e6);
    struct tally both = try(1e7, 2e6);

    (void)state;
    assert_true(leak.trend[SEEP_FAMILY_MAY_GROW] +
                    leak.trend[SEEP_FAMILY_GROWS] >
                RUNS * 95 / 100);
    assert_true(leak.covered > RUNS * 94 / 100);
    assert_int_equal(leak.trend[SEEP_FAMILY_ONCE], 0);
    assert_in_range(both.trend[SEEP_FAMILY_ONCE], 0, RUNS / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_told_of_what_cannot_be_compared),
        cmocka_unit_test(what_levels_off_is_no_more_than_suspected),
        cmocka_unit_test(chance_alone_seldom_grows),
        cmocka_unit_test(a_leak_is_found_and_never_told_to_be_kept_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
