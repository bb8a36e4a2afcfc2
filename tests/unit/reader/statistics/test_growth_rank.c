/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pieces of the cohort-flow test against published figures: Kendall's
 * exact p and the standard errors were checked with scipy 1.10.1.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/math.h"
#include "reader/statistics/parts.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void assert_close(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want))) {
        print_error("%.17g instead of %.17g\n", got, want);
        fail();
    }
}

static void kendall_agrees_with_the_exact_table(void **state)
{
    static const struct {
        double p; /* six digits */
        size_t count;
        double values[SEEP_GROWTH_BLOCKS];
    } vectors[] = {
        {0.000178847, 10, {1, 3, 2, 5, 4, 7, 6, 9, 8, 10}},
        {0.00275298, 8, {5, 5, 5, 6, 6, 7, 7, 8}}, /* ties: conservative */
        {0.000473159, 10, {0, 1, 2, 3, 100, 5, 6, 7, 8, 9}},
        {1, 6, {4, 4, 4, 4, 4, 4}},
        {0.998611, 6, {10, 8, 9, 5, 4, 1}},
        {0.000198413, 7, {100, 110, 118, 141, 180, 262, 419}},
        {0.0223684, 12, {0, 10, 20, 2, 12, 22, 4, 14, 24, 6, 16, 26}},
        {4.77948e-14,
         16,
         {0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45}},
        {7.64716e-13,
         16,
         {0, 2, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        {1, 2, {2, 1}},
        {0.5, 2, {1, 2}},
    };

    (void)state;
    for (size_t i = 0; i < LENGTH(vectors); i++) {
        assert_close(seep_rank_kendall(vectors[i].values, vectors[i].count),
                     vectors[i].p, 5e-6);
    }
}

/* Only one of 16! orders is sorted. */
static void a_perfect_trend_has_one_chance_in_16_factorial(void **state)
{
    double rising[SEEP_GROWTH_BLOCKS];
    double falling[SEEP_GROWTH_BLOCKS];

    (void)state;
    for (int i = 0; i < SEEP_GROWTH_BLOCKS; i++) {
        rising[i] = i;
        falling[i] = -i;
    }
    assert_close(seep_rank_kendall(rising, SEEP_GROWTH_BLOCKS),
                 4.779477332387385e-14, 1e-12);
    assert_close(seep_rank_kendall(falling, SEEP_GROWTH_BLOCKS), 1, 1e-12);
}

static void a_quantile_is_one_of_the_values(void **state)
{
    const double values[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, -8, 9, 7};
    double copy[LENGTH(values)];

    (void)state;
    memcpy(copy, values, sizeof(values));
    assert_close(seep_math_lower_quartile(copy, LENGTH(copy)), 2, 0);
    memcpy(copy, values, sizeof(values));
    assert_close(seep_rank_median(copy, LENGTH(copy)), 4.5, 0);
    assert_close(seep_rank_median(copy, 0), 0, 0);
    memcpy(copy, values, sizeof(values));
    assert_close(seep_rank_median(copy, 3), 3, 0);
    assert_close(seep_math_lower_quartile(copy, 1), copy[0], 0);
}

static void the_rate_exponent_is_that_of_the_likelihood(void **state)
{
    static const struct {
        double value, error;
        double bytes[SEEP_GROWTH_WINDOWS];
    } vectors[] = {
        {0, 0.3459657642149377, {0, 0, 10, 10, 10, 10, 10, 10}},
        {-1.0006972306189417,
         0.07005923693861785,
         {0, 0, 400, 286, 222, 182, 154, 133}},
        {0.2132551873370584, 0.47513174343704256, {0, 0, 4, 7, 5, 6, 3, 8}},
        {0, 9, {0}},
    };

    (void)state;
    for (size_t i = 0; i < LENGTH(vectors); i++) {
        struct seep_growth_exponent got = seep_growth_shape_exponent(
            vectors[i].bytes, vectors[i].bytes, 2, 8, 0);
        assert_true(fabs(got.value - vectors[i].value) < 1e-12);
        assert_close(got.error, vectors[i].error, 1e-12);
    }
}

static void the_binomial_is_exact_for_a_coin(void **state)
{
    (void)state;
    assert_close(seep_growth_shape_binomial(0, 0), 1, 0);
    assert_close(seep_growth_shape_binomial(0, 10), 1.0 / 1024, 1e-12);
    assert_close(seep_growth_shape_binomial(2, 10), 56.0 / 1024, 1e-12);
    assert_close(seep_growth_shape_binomial(10, 10), 1, 1e-12);
    assert_close(seep_growth_shape_binomial(0, 1000), exp2(-1000), 1e-12);
    /* where the normal takes over: half, and a standard deviation below */
    assert_close(seep_growth_shape_binomial(5000, 10000), 0.5, 1e-12);
    assert_close(seep_growth_shape_binomial(4950, 10000), 0.158655, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kendall_agrees_with_the_exact_table),
        cmocka_unit_test(a_perfect_trend_has_one_chance_in_16_factorial),
        cmocka_unit_test(a_quantile_is_one_of_the_values),
        cmocka_unit_test(the_rate_exponent_is_that_of_the_likelihood),
        cmocka_unit_test(the_binomial_is_exact_for_a_coin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
