/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What holds for every site: the unit of bytes and the order of survivors
 * tell nothing, and no input whatever crashes or makes a figure that is none.
 *
 * SEEP_TEST_ROUNDS sets the number of hostile inputs (10,000).
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "reader/statistics/growth.h"
#include "test_growth_site.h"

#define SITES 300

static struct site_input site;
static uint64_t seed;

/* splitmix64: the same on every machine */
static uint64_t next(void)
{
    uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double uniform(void)
{
    return (double)(next() >> 11) * 0x1p-53;
}

static size_t below(size_t limit)
{
    return (size_t)(next() % limit);
}

/* Some keep, some free soon, some late, some stop: every class comes up. */
static void build_any(void)
{
    static struct site_block blocks[SITE_BLOCKS_MAX];
    size_t count = 10 + below(400);
    double kept = uniform() < .3 ? 1 : uniform();
    double life = pow(10, -3 * uniform());
    double bend = uniform() < .5 ? 1 : 3 * uniform();
    double end = uniform() < .7 ? 1 : uniform();

    for (size_t i = 0; i < count; i++) {
        double birth = end * pow(uniform(), bend);
        double death =
            uniform() < kept ? SITE_NEVER : birth - life * log(1 - uniform());
        blocks[i] =
            (struct site_block){birth, death, (double)(1 + below(1 << 20))};
    }
    site_build(blocks, count, &site);
}

static struct seep_growth judge(void)
{
    struct seep_growth growth;

    seep_growth_analyse(&site.input, &growth);
    return growth;
}

static void assert_close(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) {
        print_error("%.17g instead of %.17g\n", got, want);
        fail();
    }
}

static void assert_same(const struct seep_growth *got,
                        const struct seep_growth *want, double factor)
{
    assert_int_equal(got->class, want->class);
    assert_int_equal(got->onset, want->onset);
    assert_close(got->rate.estimate, factor * want->rate.estimate);
    assert_close(got->rate.high, factor * want->rate.high);
    assert_close(got->p, want->p);
    assert_int_equal(got->tested, want->tested);
}

static void scale(double factor)
{
    for (size_t i = 0; i < site.input.survivor_count; i++) {
        site.survivors[i].weight *= factor;
        site.survivors[i].variance *= factor * factor;
    }
    for (size_t i = 0; i < SITE_BUCKETS; i++) {
        site.live_bytes[i] *= factor;
        site.low_bytes[i] *= factor;
    }
}

static void the_unit_of_bytes_changes_no_class(void **state)
{
    const double factors[] = {0x1p-10, 3.7, 0x1p20};
    bool seen[SEEP_CLASS_COUNT] = {false};

    (void)state;
    for (seed = 1; seed < SITES; seed++) {
        uint64_t number = seed;
        struct seep_growth want;
        build_any();
        want = judge();
        seen[want.class] = true;
        for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
            struct seep_growth got;
            seed = number;
            build_any();
            scale(factors[i]);
            got = judge();
            assert_same(&got, &want, factors[i]);
        }
        seed = number;
    }
    /* else the property was shown of little */
    assert_true(seen[SEEP_CLASS_LEAK] && seen[SEEP_CLASS_SUSPECT] &&
                seen[SEEP_CLASS_WARMING] && seen[SEEP_CLASS_PLATEAU] &&
                seen[SEEP_CLASS_TURNOVER] && seen[SEEP_CLASS_AGING] &&
                seen[SEEP_CLASS_STEADY]);
}

static void the_order_of_survivors_changes_nothing(void **state)
{
    (void)state;
    for (seed = 1; seed < SITES; seed++) {
        uint64_t number = seed;
        struct seep_growth want;
        struct seep_growth got;
        build_any();
        want = judge();
        for (size_t i = site.input.survivor_count; i > 1; i--) {
            size_t other = below(i);
            struct seep_survivor kept = site.survivors[i - 1];
            site.survivors[i - 1] = site.survivors[other];
            site.survivors[other] = kept;
        }
        got = judge();
        assert_same(&got, &want, 1);
        seed = number;
    }
}

static double hostile(void)
{
    const double values[] = {
        0,        -0.0,    NAN,     INFINITY, -INFINITY, DBL_MAX,
        -DBL_MAX, DBL_MIN, 5e-324,  1e-300,   1e150,     1e154,
        -1,       1,       0.1,     0.8,      1 + 1e-7,  1e9,
        1e18,     0.2,     0.99999, 0x1p63,   uniform(), 1e6 * uniform(),
    };

    return values[below(sizeof(values) / sizeof(values[0]))];
}

/* Few faults go deep, many do not get past the door: both must be safe. */
static void spoil(void)
{
    size_t faults = below(4) == 0 ? 100 : below(4);

    for (size_t i = 0; i < faults; i++) {
        struct seep_survivor *survivor = &site.survivors[below(400)];
        double *const targets[] = {
            &survivor->birth,
            &survivor->weight,
            &survivor->variance,
            &site.live_bytes[below(SITE_BUCKETS)],
            &site.low_bytes[below(SITE_BUCKETS)],
            &site.bucket_end[below(SITE_BUCKETS)],
            &site.allocations[below(SITE_BUCKETS)],
            &site.input.died_old,
            &site.input.live_old,
            &site.input.live_count,
        };
        *targets[below(sizeof(targets) / sizeof(targets[0]))] = hostile();
    }
    if (below(20) == 0) {
        site.input.bucket_count = below(SITE_BUCKETS + 1);
    }
    if (below(20) == 0) {
        scale(hostile());
    }
    if (below(20) == 0) { /* all work in a few buckets */
        double step = pow(2, (double)below(60));
        for (size_t i = 0; i < SITE_BUCKETS; i++) {
            site.bucket_end[i] = pow(site.bucket_end[i], step);
        }
    }
}

static void assert_sound(const struct seep_growth *growth)
{
    double counted = 0;

    assert_in_range(growth->class, 0, SEEP_CLASS_COUNT - 1);
    assert_int_not_equal(growth->class, SEEP_CLASS_MINOR);
    assert_non_null(growth->reason);
    assert_true(isfinite(growth->rate.estimate));
    assert_true(isfinite(growth->rate.low) && isfinite(growth->rate.high));
    assert_true(growth->rate.low <= growth->rate.estimate);
    assert_true(growth->rate.estimate <= growth->rate.high);
    assert_true(growth->confidence >= 0 && growth->confidence <= 0.999);
    assert_true(growth->p >= 0 && growth->p <= 1);
    assert_true(isfinite(growth->zs));
    assert_true(isfinite(growth->effective_count));
    assert_in_range(growth->onset, 2, 9);
    for (size_t i = 0; i < SEEP_GROWTH_WINDOWS; i++) {
        assert_true(isfinite(growth->window_bytes[i]));
        assert_true(growth->window_bytes[i] >= 0);
        counted += growth->window_count[i];
    }
    assert_true(counted == 0 || counted == (double)site.input.survivor_count);
}

static void no_input_makes_a_figure_that_is_none(void **state)
{
    const char *text = getenv("SEEP_TEST_ROUNDS");
    uint64_t rounds = text != NULL ? strtoull(text, NULL, 10) : 10000;

    (void)state;
    for (uint64_t round = 0; round < rounds; round++) {
        struct seep_growth growth;
        seed = round << 20;
        build_any();
        spoil();
        growth = judge();
        assert_sound(&growth);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_unit_of_bytes_changes_no_class),
        cmocka_unit_test(the_order_of_survivors_changes_nothing),
        cmocka_unit_test(no_input_makes_a_figure_that_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
