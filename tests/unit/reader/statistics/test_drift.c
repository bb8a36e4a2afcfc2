/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What grows, over series of known shape with noise that is always the same. */
#include "seep_test.h"

#include <math.h>
#include <string.h>

#include "reader/statistics/window.h"

#define MIB 1048576.0
#define POINTS 100
#define RUN_S 100.0
#define RUNS 200

static uint32_t word = 1;

/* Pseudo-random in [0, 1), the same every time. */
static double uniform(void)
{
    word = word * 1664525 + 1013904223;
    return (double)(word >> 8) / (double)(1U << 24);
}

/* Of mean 0 and standard deviation 1. */
static double noise(void)
{
    double sum = -6;

    for (int i = 0; i < 12; i++) {
        sum += uniform();
    }
    return sum;
}

static int begin(void **state)
{
    (void)state;
    word = 1;
    return 0;
}

struct shape {
    double (*level)(const struct shape *, double share); /* MiB at 0 .. 1 */
    double a;
    double b;
    double noise; /* MiB */
    double walk;  /* MiB, standard deviation at the end */
    double phase; /* uniform, drawn for each run */
};

static struct seep_drift drift_of(struct shape shape)
{
    struct seep_window_series series = {.count = 0};
    struct seep_drift drift;
    double walked = 0;

    shape.phase = uniform();
    for (int i = 1; i <= POINTS; i++) {
        double share = (double)i / POINTS;

        walked += shape.walk * noise() / sqrt(POINTS);
        seep_window_add(&series, share * RUN_S,
                        MIB * (100 + shape.level(&shape, share) + walked +
                               shape.noise * noise()));
    }
    seep_drift_of(&series, 0, RUN_S, MIB, &drift);
    assert_true(drift.known);
    return drift;
}

/* Of 100 runs. */
static double growing(struct shape shape)
{
    int count = 0;

    for (int i = 0; i < RUNS; i++) {
        count += drift_of(shape).grows;
    }
    return 100. * count / RUNS;
}

static double going_on(struct shape shape)
{
    int count = 0;

    for (int i = 0; i < RUNS; i++) {
        struct seep_drift drift = drift_of(shape);

        assert_true(drift.may_go_on == (drift.need_s > 0));
        count += drift.may_go_on;
    }
    return 100. * count / RUNS;
}

static double slowing(struct shape shape)
{
    int count = 0;

    for (int i = 0; i < RUNS; i++) {
        count += drift_of(shape).slows;
    }
    return 100. * count / RUNS;
}

static double flat(const struct shape *shape, double share)
{
    (void)shape;
    (void)share;
    return 0;
}

/* @a MiB, in a straight line from share @b of the run on. */
static double later(const struct shape *shape, double share)
{
    return shape->a * fmax(0, share - shape->b) / (1 - shape->b);
}

/* @a MiB, full at share @b of the run. */
static double filling(const struct shape *shape, double share)
{
    return shape->a * fmin(1, share / shape->b);
}

/* @a MiB, 63 % full at share @b of the run. */
static double saturating(const struct shape *shape, double share)
{
    return shape->a * (1 - exp(-share / shape->b));
}

/* @a MiB, given back each share @b of the run. */
static double tooth(const struct shape *shape, double share)
{
    return shape->a * fmod(share / shape->b + shape->phase, 1);
}

static void what_grows_all_the_while_grows(void **state)
{
    struct seep_drift drift;

    (void)state;
    assert_true(growing((struct shape){later, 5, 0, .2, .5, 0}) > 95);
    assert_true(growing((struct shape){later, 100, 0, 3, 5, 0}) > 99);
    drift = drift_of((struct shape){later, 100, 0, 1, 0, 0});
    assert_true(drift.bytes_per_s.low < MIB && drift.bytes_per_s.high > MIB);
    assert_true(drift.from_s == .2 * RUN_S);
}

/* 33 s of work, then 10 MiB/s for 21 s; and later. */
static void what_begins_late_grows(void **state)
{
    (void)state;
    for (int i = 5; i <= 8; i++) {
        assert_true(growing((struct shape){later, 50, i / 10., .3, 0, 0}) > 95);
    }
    assert_true(drift_of((struct shape){later, 200, .61, 1, 0, 0}).from_s >=
                .5 * RUN_S);
}

static void what_stands_still_or_comes_and_goes_does_not_grow(void **state)
{
    (void)state;
    assert_true(growing((struct shape){flat, 0, 0, 1, 0, 0}) == 0);
    assert_true(growing((struct shape){flat, 0, 0, 10, 0, 0}) == 0);
    assert_true(growing((struct shape){tooth, 20, .11, .2, 0, 0}) < 1);
    assert_true(growing((struct shape){tooth, 20, .3, .2, 0, 0}) < 1);
    assert_true(growing((struct shape){tooth, 20, .5, .2, 0, 0}) < 1);
    assert_true(growing((struct shape){tooth, 20, .7, .2, 0, 0}) < 1);
}

static void a_random_walk_grows_by_chance_only(void **state)
{
    (void)state;
    assert_true(growing((struct shape){flat, 0, 0, 0, 3, 0}) <= 5);
    assert_true(growing((struct shape){flat, 0, 0, 0, 30, 0}) <= 7);
}

static void a_cache_that_has_filled_does_not_grow(void **state)
{
    (void)state;
    assert_true(growing((struct shape){filling, 50, .3, .3, 0, 0}) == 0);
    assert_true(growing((struct shape){filling, 50, .5, .3, 0, 0}) == 0);
    assert_true(growing((struct shape){filling, 50, .6, .3, 0, 0}) < 1);
    assert_true(growing((struct shape){saturating, 50, .1, .3, 0, 0}) < 1);
    assert_true(growing((struct shape){filling, 50, .95, .3, 0, 0}) > 95);
}

static void only_what_fills_slows(void **state)
{
    (void)state;
    assert_true(slowing((struct shape){saturating, 50, .4, .3, 0, 0}) > 95);
    assert_true(slowing((struct shape){saturating, 50, .8, .3, 0, 0}) > 90);
    assert_true(slowing((struct shape){later, 10, 0, .5, 3, 0}) <= 5);
    assert_true(slowing((struct shape){later, 100, 0, .5, 5, 0}) <= 5);
    assert_true(slowing((struct shape){later, 100, 0, 1, 0, 0}) <= 5);
}

/* @a MiB in all, @b times in the run, the last of them near its end. */
static double steps(const struct shape *shape, double share)
{
    return shape->a * floor(share * shape->b + .3) / shape->b;
}

/* @a MiB, once, at share @b of the run. */
static double once(const struct shape *shape, double share)
{
    return share < shape->b ? 0 : shape->a;
}

/* Five bursts of one tenant, the last 4 s ago: that is no stop. */
static void a_pause_is_a_stop_where_it_is_improbable(void **state)
{
    struct seep_drift drift;

    (void)state;
    assert_true(going_on((struct shape){steps, 50, 5, .3, 0, 0}) > 99);
    assert_true(going_on((struct shape){steps, 50, 3, .3, 0, 0}) > 99);
    assert_true(going_on((struct shape){once, 20, .3, .1, 0, 0}) == 0);
    assert_true(going_on((struct shape){once, 20, .8, .1, 0, 0}) == 100);
    assert_true(going_on((struct shape){filling, 50, .3, .3, 0, 0}) == 0);
    assert_true(going_on((struct shape){filling, 50, .6, .3, 0, 0}) == 0);
    assert_true(going_on((struct shape){filling, 50, .95, .3, 0, 0}) > 95);
    assert_true(going_on((struct shape){tooth, 20, .11, .2, 0, 0}) < 1);
    drift = drift_of((struct shape){once, 20, .8, 0, 0, 0});
    assert_true(drift.need_s > 45 && drift.need_s < 70); /* 150 s in all */
    assert_true(drift.rise_bytes == 20 * MIB);
}

static void below_the_floor_nothing_grows(void **state)
{
    struct seep_window_series series = {.count = 0};
    struct seep_drift drift;

    (void)state;
    for (int i = 1; i <= POINTS; i++) {
        seep_window_add(&series, i, MIB * (100 + i / 50.));
    }
    seep_drift_of(&series, 0, RUN_S, 1.5 * MIB, &drift);
    assert_true(drift.grows);
    seep_drift_of(&series, 0, RUN_S, 1.7 * MIB, &drift);
    assert_false(drift.grows);
    assert_true(seep_drift_floor_bytes(0) == MIB);
    assert_true(seep_drift_floor_bytes(1000 * MIB) == 5 * MIB);
}

static void of_too_few_figures_nothing_is_known(void **state)
{
    struct seep_window_series series = {.count = 0};
    struct seep_drift drift;

    (void)state;
    seep_drift_of(&series, 0, RUN_S, MIB, &drift);
    assert_false(drift.known || drift.grows);
    seep_window_add(&series, 50, 1);
    seep_window_add(&series, 90, 1e9);
    seep_drift_of(&series, 0, RUN_S, MIB, &drift);
    assert_false(drift.known || drift.grows);
    seep_drift_of(&series, 0, 0, MIB, &drift);
    assert_false(drift.known || drift.grows);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup(test, begin)
    const struct CMUnitTest tests[] = {
        WITH(what_grows_all_the_while_grows),
        WITH(what_begins_late_grows),
        WITH(what_stands_still_or_comes_and_goes_does_not_grow),
        WITH(a_random_walk_grows_by_chance_only),
        WITH(a_cache_that_has_filled_does_not_grow),
        WITH(only_what_fills_slows),
        WITH(a_pause_is_a_stop_where_it_is_improbable),
        WITH(below_the_floor_nothing_grows),
        WITH(of_too_few_figures_nothing_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
