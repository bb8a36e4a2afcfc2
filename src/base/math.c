/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* exp and log by range reduction and a series; see math.h for the promise. */
#include "base/math.h"

#include <stdint.h>
#include <string.h>

#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
#define SQRT_HALF 0.70710678118654752440

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
