/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* reader/family_age: what grows with the age of processes that come and go. */
#include <math.h>

#include "reader/judge/family.h"
#include "seep_test.h"

#define assert_near(value, expected, error) \
    assert_true(fabs((value) - (expected)) <= (error))

#define CHILDREN 12
#define POINTS 60
#define LIFE_S 20.0
#define MIB 1048576.0

static struct seep_report_point points[CHILDREN][POINTS];
static struct seep_family_ages ages[CHILDREN];

/* Of @count children each holds @share of what it keeps, at an age, as a part
 * of its life; @spread more in one and less in the next. */
static struct seep_family_age test(size_t count, double (*share)(double),
                                   double spread)
{
    struct seep_family_age age;

    for (size_t i = 0; i < count; i++) {
        struct seep_report_site site = {.series = points[i],
                                        .point_count = POINTS};
        double bytes = 20 * MIB * (1 + spread * (i % 2 == 0 ? 1 : -1));

        ages[i] = (struct seep_family_ages){.life_s = LIFE_S};
        for (size_t k = 0; k < POINTS; k++) {
            points[i][k] = (struct seep_report_point){
                .start_s = LIFE_S * (double)k / POINTS,
                .width_s = LIFE_S / POINTS,
                .live_bytes = (uint64_t)(bytes * share((double)k / POINTS)),
            };
        }
        seep_family_age_add(&site, LIFE_S, &ages[i]);
    }
    seep_family_age_test(ages, count, 3, MIB, &age);
    return age;
}

static double leak(double age)
{
    return age;
}

static double late_leak(double age)
{
    return fmax(0, age - 0.4);
}

static double cache(double age)
{
    return 1 - exp(-5 * age);
}

static double start(double age)
{
    return fmin(1, 20 * age);
}

static double stopped(double age)
{
    return fmin(1, age / 0.8);
}

static void a_leak_in_all_of_them_is_one(void **state)
{
    struct seep_family_age age = test(5, leak, 0.1);

    (void)state;
    assert_int_equal(age.trend, SEEP_FAMILY_GROWS);
    assert_int_equal(age.count, 5);
    assert_int_equal(age.rising, 5);
    assert_true(age.rate.low > 0 && age.rate.low < MIB);
    assert_near(age.rate.estimate, MIB, 0.05 * MIB);
    age = test(5, late_leak, 0.1);
    assert_int_equal(age.trend, SEEP_FAMILY_GROWS);
}

static void a_cache_flattens_at_one_age_and_is_none(void **state)
{
    struct seep_family_age age = test(8, cache, 0.1);

    (void)state;
    assert_int_equal(age.trend, SEEP_FAMILY_UNTOLD);
    assert_true(age.flattens);
    age = test(8, stopped, 0.1);
    assert_int_equal(age.trend, SEEP_FAMILY_UNTOLD);
    assert_true(age.flattens);
}

static void what_each_has_as_it_begins_does_not_grow(void **state)
{
    struct seep_family_age age = test(8, start, 0.1);

    (void)state;
    assert_int_equal(age.trend, SEEP_FAMILY_UNTOLD);
    assert_false(age.flattens);
}

/* The interpreter of a tool that ends at once grows to its last moment. */
static void who_lives_for_a_moment_only_begins(void **state)
{
    struct seep_family_age age;

    (void)state;
    test(8, leak, 0.1);
    for (size_t i = 0; i < 8; i++) {
        ages[i].life_s = 0.9 * SEEP_FAMILY_BRIEF_S;
    }
    seep_family_age_test(ages, 8, 3, MIB, &age);
    assert_int_equal(age.trend, SEEP_FAMILY_UNTOLD);
    ages[7].life_s = 1.1 * SEEP_FAMILY_BRIEF_S;
    seep_family_age_test(ages, 8, 3, MIB, &age);
    assert_int_equal(age.trend, SEEP_FAMILY_GROWS);
}

static void of_two_nothing_is_told(void **state)
{
    (void)state;
    assert_int_equal(test(2, leak, 0.1).count, 0);
    assert_int_equal(test(2, leak, 0.1).trend, SEEP_FAMILY_UNTOLD);
}

static void where_they_differ_too_much_it_is_not_sure(void **state)
{
    (void)state;
    assert_int_equal(test(4, leak, 0.9).trend, SEEP_FAMILY_UNTOLD);
    assert_int_equal(test(12, leak, 0.6).trend, SEEP_FAMILY_GROWS);
}

/* A line of two of eight is no leak of the others. */
static void what_grows_in_few_of_them_is_not_told_of_all(void **state)
{
    struct seep_family_age age;

    (void)state;
    test(8, leak, 0);
    for (size_t i = 2; i < 8; i++) {
        ages[i] = (struct seep_family_ages){.life_s = LIFE_S};
    }
    seep_family_age_test(ages, 8, 3, MIB, &age);
    assert_int_equal(age.trend, SEEP_FAMILY_UNTOLD);
    assert_int_equal(age.rising, 2);
}

/* It may be what the longer ones have filled. */
static void who_lived_less_than_half_as_long_is_not_asked(void **state)
{
    struct seep_family_age age;

    (void)state;
    test(8, leak, 0);
    for (size_t i = 0; i < 2; i++) {
        ages[i].life_s = 3 * LIFE_S;
        ages[i].level[0] = ages[i].level[4];
    }
    seep_family_age_test(ages, 8, 3, MIB, &age);
    assert_int_equal(age.trend, SEEP_FAMILY_UNTOLD);
    assert_int_equal(age.count, 0);
}

static void what_is_no_number_tells_nothing(void **state)
{
    struct seep_family_age age;

    (void)state;
    test(5, leak, 0.1);
    ages[3].level[2] = NAN;
    seep_family_age_test(ages, 5, 3, MIB, &age);
    assert_int_not_equal(age.trend, SEEP_FAMILY_GROWS);
    ages[3].level[0] = INFINITY;
    seep_family_age_test(ages, 5, 3, MIB, &age);
    assert_int_equal(age.trend, SEEP_FAMILY_UNTOLD);
}

static void what_is_too_small_for_a_word_gets_none(void **state)
{
    struct seep_family_age age;

    (void)state;
    test(5, leak, 0.1);
    seep_family_age_test(ages, 5, 3, 1e3 * MIB, &age);
    assert_int_equal(age.trend, SEEP_FAMILY_UNTOLD);
}

/* Tables of Student's t; of the normal distribution for many. */
static void quantiles_are_those_of_the_tables(void **state)
{
    (void)state;
    assert_near(seep_family_student(0.025, 1), 12.7062, 1e-4);
    assert_near(seep_family_student(0.025, 2), 4.30265, 1e-4);
    assert_near(seep_family_student(0.0005, 3), 12.9240, 1e-3);
    assert_near(seep_family_student(0.025, 4), 2.77645, 1e-4);
    assert_near(seep_family_student(0.005, 9), 3.24984, 1e-4);
    assert_near(seep_family_student(0.05, 30), 1.69726, 1e-4);
    assert_near(seep_family_student(0.025, 100000), 1.96, 0.015);
    assert_true(isinf(seep_family_student(0.025, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leak_in_all_of_them_is_one),
        cmocka_unit_test(a_cache_flattens_at_one_age_and_is_none),
        cmocka_unit_test(what_each_has_as_it_begins_does_not_grow),
        cmocka_unit_test(who_lives_for_a_moment_only_begins),
        cmocka_unit_test(of_two_nothing_is_told),
        cmocka_unit_test(where_they_differ_too_much_it_is_not_sure),
        cmocka_unit_test(what_grows_in_few_of_them_is_not_told_of_all),
        cmocka_unit_test(who_lived_less_than_half_as_long_is_not_asked),
        cmocka_unit_test(what_is_no_number_tells_nothing),
        cmocka_unit_test(what_is_too_small_for_a_word_gets_none),
        cmocka_unit_test(quantiles_are_those_of_the_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
