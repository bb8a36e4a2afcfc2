/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The two transcendental functions that sampling needs. Inside another
 * program's malloc there is no libm.
 *
 * Invariant: pure, no errno, no floating-point environment, error below 1e-14
 * relative over the ranges given.
 */
#ifndef SEEP_BASE_MATH_H
#define SEEP_BASE_MATH_H

/** 1 - exp(-x) for x >= 0, exact for small x too (expm1). */
double seep_math_one_minus_exp(double x);

/** Natural logarithm of a normal x > 0. */
double seep_math_log(double x);

#endif
