/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shape of the survivors over age. Every result is finite for finite,
 * non-negative input.
 */
#include "reader/growth_parts.h"

#include <math.h>

#define NEWTON_STEPS 12
#define NEWTON_STRIDE 1.0
#define EXPONENT_LIMIT 6.0
#define BINOMIAL_EXACT 1000.0 /* above, the normal distribution will do */

static double clamp(double value, double low, double high)
{
    return fmax(low, fmin(high, value));
}

struct moments {
    double mean;
    double variance;
};

/* Of x under weights exp(exponent * x): what a rate of that shape expects. */
static struct moments expected(const double *x, int count, double exponent)
{
    double share[SEEP_GROWTH_WINDOWS];
    struct moments result = {0, 0};
    double middle = 0;
    double sum = 0;

    for (int i = 0; i < count; i++) {
        middle += x[i];
    }
    middle /= count;
    for (int i = 0; i < count; i++) {
        share[i] = exp(exponent * (x[i] - middle));
        sum += share[i];
    }
    for (int i = 0; i < count; i++) {
        share[i] /= sum;
        result.mean += share[i] * x[i];
    }
    for (int i = 0; i < count; i++) {
        double off = x[i] - result.mean;
        result.variance += share[i] * off * off;
    }
    return result;
}

struct seep_growth_exponent
seep_growth_shape_exponent(const double bytes[SEEP_GROWTH_WINDOWS],
                           const double squares[SEEP_GROWTH_WINDOWS], int first,
                           int end, double origin)
{
    double x[SEEP_GROWTH_WINDOWS];
    struct moments moments = {0, 1};
    double sum = 0;
    double square_sum = 0;
    double mean = 0;
    double exponent = 0;
    double information;
    int count = end - first;

    for (int i = 0; i < count; i++) {
        x[i] = log(first + i + 0.5 - origin);
        sum += bytes[first + i];
        square_sum += squares[first + i];
        mean += bytes[first + i] * x[i];
    }
    if (sum <= 0) {
        return (struct seep_growth_exponent){0, 9};
    }
    mean /= sum;
    for (int step = 0; step < NEWTON_STEPS; step++) {
        moments = expected(x, count, exponent);
        exponent += clamp((mean - moments.mean) / fmax(moments.variance, 1e-9),
                          -NEWTON_STRIDE, NEWTON_STRIDE);
        exponent = clamp(exponent, -EXPONENT_LIMIT, EXPONENT_LIMIT);
    }
    /* sum^2 / sum of squares: how many blocks of equal weight it is worth */
    information = sum * sum / fmax(square_sum, 1e-300) * moments.variance;
    return (struct seep_growth_exponent){
        exponent, 1 / sqrt(clamp(information, 1e-9, 1e300))};
}

double seep_growth_shape_binomial(double died, double total)
{
    double term;
    double sum;

    if (total > BINOMIAL_EXACT) {
        return 0.5 * erfc((total / 2 - died) / sqrt(total / 4) / sqrt(2));
    }
    total = round(total);
    term = exp2(-total);
    sum = term;
    for (double i = 1; i <= died && i <= total; i++) {
        term *= (total - i + 1) / i;
        sum += term;
    }
    return fmin(1, sum);
}
