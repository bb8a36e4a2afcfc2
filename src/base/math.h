/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Arithmetic inside another program's malloc, where there is no libm: the two
 * transcendental functions that sampling needs, and the slope of a figure.
 *
 * Invariant: pure, no errno, no floating-point environment, no memory; the
 * functions have an error below 1e-14 relative over the ranges given.
 */
#ifndef SEEP_BASE_MATH_H
#define SEEP_BASE_MATH_H

#include <stddef.h>

/** 1 - exp(-x) for x >= 0, exact for small x too (expm1). */
double seep_math_one_minus_exp(double x);

/** Natural logarithm of a normal x > 0. */
double seep_math_log(double x);

/** The value of rank (count - 1) / 4, of one value at least, and no NaN. */
double seep_math_lower_quartile(const double *values, size_t count);

/*
 * The one slope of a figure of the process over time, of the target process's
 * own figures and of all that a reader says.
 *
 * Memory is a sum of what came and went, so neighbouring figures are not
 * independent, and the standard error of least squares is far too small. Here
 * a slope is the mean of the growth from window to window, and the spread of
 * those its error: right for a random walk, too wide for white noise.
 */

/** Share of the run's time that is start-up, and not judged. */
#define SEEP_MATH_SETTLE 0.2
#define SEEP_MATH_WINDOWS 8 /* that a slope is made of */

struct seep_math_level {
    double t_s;   /* the middle of its window */
    double value; /* the lower quartile: what it does not fall below */
};

/**
 * The levels of @windows equal parts of [@from_s, @to_s], of @count finite
 * values at ascending times.
 *
 * @return how many held a figure; only those are filled, in order
 */
size_t seep_math_levels(const double *t_s, const double *values, size_t count,
                        double from_s, double to_s, size_t windows,
                        struct seep_math_level *ret_levels);

struct seep_math_slope {
    size_t levels; /* three at least; 0: it is not known */
    double growth; /* from the first level to the last */
    double per_s;
    double variance; /* of .per_s, by .levels - 2 degrees of freedom */
};

struct seep_math_slope seep_math_slope(const double *t_s, const double *values,
                                       size_t count, double from_s,
                                       double to_s);

#endif
