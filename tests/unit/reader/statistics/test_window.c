/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Levels and slopes of a series, with figures computed by hand. */
#include "seep_test.h"

#include <math.h>
#include <string.h>

#include "reader/statistics/window.h"

static struct seep_window_series series;

static int begin(void **state)
{
    (void)state;
    memset(&series, 0, sizeof(series));
    return 0;
}

/* Pseudo-random in [0, 1), the same every time. */
static double noise(void)
{
    static uint32_t word = 1;

    word = word * 1664525 + 1013904223;
    return (double)(word >> 8) / (double)(1U << 24);
}

static void between_two_figures_it_is_linear(void **state)
{
    (void)state;
    assert_true(seep_window_at(&series, 5) == 0);
    seep_window_add(&series, 10, 100);
    seep_window_add(&series, 20, 300);
    assert_true(seep_window_at(&series, 0) == 100);
    assert_true(seep_window_at(&series, 15) == 200);
    assert_true(seep_window_at(&series, 20) == 300);
    assert_true(seep_window_at(&series, 99) == 300);
}

static void what_is_no_figure_or_not_later_is_left_out(void **state)
{
    (void)state;
    seep_window_add(&series, 10, 100);
    seep_window_add(&series, 10, 200);
    seep_window_add(&series, 5, 200);
    seep_window_add(&series, NAN, 200);
    seep_window_add(&series, 20, NAN);
    seep_window_add(&series, 20, INFINITY);
    seep_window_add(&series, INFINITY, 1);
    assert_int_equal(series.count, 1);
    for (int i = 0; i < 1000; i++) {
        seep_window_add(&series, 20 + i, 1);
    }
    assert_int_equal(series.count, SEEP_WINDOW_POINTS);
}

/* Four figures a window: the second lowest is its level. */
static void a_level_is_the_lower_quartile_of_its_window(void **state)
{
    struct seep_math_level levels[SEEP_WINDOW_LEVELS];

    (void)state;
    for (int i = 0; i < 8; i++) {
        seep_window_add(&series, i + .5, i % 4 == 0 ? 1000 : 10 * i);
    }
    assert_int_equal(seep_window_levels_of(&series, 0, 8, 2, levels), 2);
    assert_true(levels[0].t_s == 2 && levels[0].value == 10);
    assert_true(levels[1].t_s == 6 && levels[1].value == 50);
    /* the middle two of four windows hold nothing */
    series.count = 1;
    seep_window_add(&series, 7, 5);
    assert_int_equal(seep_window_levels_of(&series, 0, 8, 4, levels), 2);
    assert_true(levels[1].t_s == 7 && levels[1].value == 5);
    assert_int_equal(seep_window_levels_of(&series, 8, 8, 4, levels), 0);
    assert_int_equal(seep_window_levels_of(&series, 0, NAN, 4, levels), 0);
}

static void a_straight_line_has_its_slope_and_no_error(void **state)
{
    struct seep_window_slope slope;

    (void)state;
    for (int i = 0; i <= 100; i++) {
        seep_window_add(&series, i, 7.0 * i);
    }
    slope = seep_window_slope_of(&series, 20, 100);
    assert_true(slope.valid);
    assert_true(fabs(slope.per_s - 7) < .05);
    assert_true(slope.error < .2);
}

/* Levels 0, 30, 30 a second apart: 15 a second; steps of +15 and -15 around
 * it: error 12.706 sqrt(1.5 (225 + 225) / 1 / 2). */
static void the_error_is_the_spread_of_the_steps(void **state)
{
    struct seep_window_slope slope;

    (void)state;
    seep_window_add(&series, .5, 0);
    seep_window_add(&series, 1.5, 30);
    seep_window_add(&series, 2.5, 30);
    slope = seep_window_slope_of(&series, 0, 8);
    assert_true(slope.valid);
    assert_true(fabs(slope.per_s - 15) < 1e-9);
    assert_true(fabs(slope.error - 12.706 * 15 * sqrt(1.5)) < 1e-6);
    assert_true(fabs(slope.growth_bytes - 30) < 1e-9);
}

static void fewer_than_three_windows_have_no_slope(void **state)
{
    (void)state;
    assert_false(seep_window_slope_of(&series, 0, 8).valid);
    seep_window_add(&series, .5, 0);
    seep_window_add(&series, 7.5, 30);
    assert_false(seep_window_slope_of(&series, 0, 8).valid);
}

/* Where least squares are wrong in two of three: a sum of noise has no trend,
 * and the interval must say so. */
static void a_random_walk_is_covered_by_its_interval(void **state)
{
    int covered = 0;

    (void)state;
    for (int run = 0; run < 1000; run++) {
        struct seep_window_slope slope;
        double level = 0;

        memset(&series, 0, sizeof(series));
        for (int i = 0; i <= 128; i++) {
            level += noise() - .5;
            seep_window_add(&series, i, level);
        }
        slope = seep_window_slope_of(&series, 25, 128);
        covered += fabs(slope.per_s) <= slope.error;
    }
    assert_in_range(covered, 930, 980);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup(test, begin)
    const struct CMUnitTest tests[] = {
        WITH(between_two_figures_it_is_linear),
        WITH(what_is_no_figure_or_not_later_is_left_out),
        WITH(a_level_is_the_lower_quartile_of_its_window),
        WITH(a_straight_line_has_its_slope_and_no_error),
        WITH(the_error_is_the_spread_of_the_steps),
        WITH(fewer_than_three_windows_have_no_slope),
        WITH(a_random_walk_is_covered_by_its_interval),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
