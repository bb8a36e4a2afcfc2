/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Weights of sampled blocks, and the two functions they need, against libm. */
#include <math.h>

#include "seep_test.h"

#include "base/math.h"
#include "format/view.h"
#include "seep/recording.h"

static void an_exact_block_weighs_itself(void **state)
{
    struct seep_weight weight = seep_weight_of(12345, 0);

    (void)state;
    assert_int_equal(weight.bytes, 12345);
    assert_int_equal(weight.count_q16, SEEP_COUNT_ONE);
    assert_int_equal(seep_weight_of(0, 0).bytes, 0);
}

static void
a_sampled_block_stands_for_its_size_over_its_probability(void **state)
{
    static const uint64_t sizes[] = {1,      64,      4096,    65536,
                                     524288, 2097152, 16777216};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        double p = -expm1(-(double)sizes[i] / 524288.0);
        struct seep_weight weight = seep_weight_of(sizes[i], 19);

        assert_true(fabs(seep_weight_probability(sizes[i], 19) - p) <
                    1e-13 * p);
        assert_true(fabs((double)weight.bytes - (double)sizes[i] / p) <= 0.5);
        assert_true(fabs((double)weight.count_q16 / 65536.0 - 1.0 / p) <
                    1e-5 / p);
    }
}

static void a_block_of_no_bytes_weighs_nothing_and_counts(void **state)
{
    (void)state;
    assert_int_equal(seep_weight_of(0, 19).bytes, 0);
    assert_true(seep_weight_of(0, 19).count_q16 > 500000 * SEEP_COUNT_ONE);
}

/* A level that only a damaged recording has: 1/p would not fit. */
static void a_weight_that_does_not_fit_is_the_largest(void **state)
{
    (void)state;
    assert_int_equal(seep_weight_of(1, 63).count_q16, UINT64_C(1) << 63);
    assert_int_equal(seep_weight_of(UINT64_MAX, 1).bytes, UINT64_C(1) << 63);
}

static void the_exponential_agrees_with_libm(void **state)
{
    (void)state;
    for (double x = 1e-9; x < 60.0; x *= 1.01) {
        double expected = -expm1(-x);

        assert_true(fabs(seep_math_one_minus_exp(x) - expected) <=
                    1e-14 * expected);
    }
}

static void the_logarithm_agrees_with_libm(void **state)
{
    (void)state;
    for (double x = 0x1p-53; x < 1e9; x *= 1.013) {
        double expected = log(x);

        assert_true(fabs(seep_math_log(x) - expected) <=
                    1e-14 * fabs(expected) + 1e-15);
    }
    assert_true(seep_math_log(1.0) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exact_block_weighs_itself),
        cmocka_unit_test(
            a_sampled_block_stands_for_its_size_over_its_probability),
        cmocka_unit_test(a_block_of_no_bytes_weighs_nothing_and_counts),
        cmocka_unit_test(a_weight_that_does_not_fit_is_the_largest),
        cmocka_unit_test(the_exponential_agrees_with_libm),
        cmocka_unit_test(the_logarithm_agrees_with_libm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
