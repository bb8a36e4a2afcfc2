/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* 1 - exp(-x) and log(x), by range reduction and a series, so that neither
 * needs libm; then levels and slopes. */
#include "base/math.h"

#include <stdint.h>
#include <string.h>

#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
#define SQRT_HALF 0.70710678118654752440
#define LEVEL_VARIANCE 1.5

/* 2^-k for 0 <= k <= 1000. */
static double power_of_half(int k)
{
    uint64_t bits = (uint64_t)(1023 - k) << 52;
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* 1 - exp(-r) for |r| <= 0.35: the Taylor series, backwards (Horner). */
static double small_one_minus_exp(double r)
{
    double sum = 1.0;

    for (int n = 17; n >= 2; n--) {
        sum = 1.0 - r / n * sum;
    }
    return r * sum;
}

double seep_math_one_minus_exp(double x)
{
    int k;
    double r;

    if (x < 0.35) {
        return small_one_minus_exp(x);
    }
    if (x > 40.0) {
        return 1.0;
    }
    k = (int)(x / LN2_HIGH + 0.5);
    r = x - k * LN2_HIGH - k * LN2_LOW;
    return 1.0 - power_of_half(k) * (1.0 - small_one_minus_exp(r));
}

double seep_math_log(double x)
{
    uint64_t bits;
    int exponent;
    double mantissa;
    double s;
    double square;
    double sum = 0.0;

    memcpy(&bits, &x, sizeof(bits));
    exponent = (int)(bits >> 52) - 1022;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1022) << 52);
    memcpy(&mantissa, &bits, sizeof(mantissa));
    if (mantissa < SQRT_HALF) {
        mantissa *= 2.0;
        exponent--;
    }
    /* log m = 2 atanh((m - 1) / (m + 1)); |s| < 0.172 */
    s = (mantissa - 1.0) / (mantissa + 1.0);
    square = s * s;
    for (int n = 21; n >= 3; n -= 2) {
        sum = (sum + 1.0 / n) * square;
    }
    return exponent * LN2_HIGH + (2.0 * s * (1.0 + sum) + exponent * LN2_LOW);
}

double seep_math_lower_quartile(const double *values, size_t count)
{
    size_t rank = (count - 1) / 4;
    size_t i = 0;

    for (; i + 1 < count; i++) {
        size_t below = 0;
        size_t equal = 0;

        for (size_t j = 0; j < count; j++) {
            below += values[j] < values[i];
            equal += values[j] == values[i];
        }
        if (below <= rank && rank < below + equal) {
            break;
        }
    }
    return values[i];
}

size_t seep_math_levels(const double *t_s, const double *values, size_t count,
                        double from_s, double to_s, size_t windows,
                        struct seep_math_level *ret_levels)
{
    double width = (to_s - from_s) / (double)windows;
    size_t filled = 0;
    size_t i = 0;

    if (!(width > 0) || !__builtin_isfinite(width)) {
        return 0;
    }
    while (i < count && t_s[i] < from_s) {
        i++;
    }
    for (size_t k = 0; k < windows; k++) {
        double end = from_s + width * (double)(k + 1);
        size_t first = i;

        while (i < count &&
               (t_s[i] < end || (k + 1 == windows && t_s[i] <= to_s))) {
            i++;
        }
        if (i > first) {
            ret_levels[filled].t_s = from_s + width * ((double)k + 0.5);
            ret_levels[filled].value =
                seep_math_lower_quartile(&values[first], i - first);
            filled++;
        }
    }
    return filled;
}

/*
 * Growth from window to window as a random walk with a drift: the drift is the
 * whole growth over the whole time, its error the spread of the parts. A level
 * stands for all of its window, so neighbours differ by less than their ends
 * would: averages of a random walk by 2/3 of its variance. (Without that factor
 * the interval covered 91 % of random walks; with it 95.)
 */
struct seep_math_slope seep_math_slope(const double *t_s, const double *values,
                                       size_t count, double from_s, double to_s)
{
    struct seep_math_level levels[SEEP_MATH_WINDOWS];
    struct seep_math_slope slope = {.levels = 0};
    double span;
    double sum = 0;

    count = seep_math_levels(t_s, values, count, from_s, to_s,
                             SEEP_MATH_WINDOWS, levels);
    if (count < 3) {
        return slope;
    }
    span = levels[count - 1].t_s - levels[0].t_s;
    slope.growth = levels[count - 1].value - levels[0].value;
    slope.per_s = slope.growth / span;
    for (size_t i = 1; i < count; i++) {
        double seconds = levels[i].t_s - levels[i - 1].t_s;
        double off =
            levels[i].value - levels[i - 1].value - slope.per_s * seconds;

        sum += LEVEL_VARIANCE * off * off / seconds;
    }
    slope.variance = sum / (double)(count - 2) / span;
    if (__builtin_isfinite(slope.per_s) && __builtin_isfinite(slope.variance)) {
        slope.levels = count;
    }
    return slope;
}
