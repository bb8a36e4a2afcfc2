/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Order statistics of the cohort-flow test: quantiles and the exact test of
 * Mann and Kendall. No value is NaN: the caller has looked.
 */
#include "reader/growth_parts.h"

#define KENDALL_PAIRS (SEEP_GROWTH_BLOCKS * (SEEP_GROWTH_BLOCKS - 1) / 2)

static void swap(double *a, double *b)
{
    double kept = *a;

    *a = *b;
    *b = kept;
}

/* Hoare's selection. Not qsort: glibc's may allocate. */
double seep_growth_rank_select(double *values, size_t count, size_t rank)
{
    ptrdiff_t low = 0;
    ptrdiff_t high = (ptrdiff_t)count - 1;
    ptrdiff_t wanted = (ptrdiff_t)rank;

    while (low < high) {
        double pivot = values[wanted];
        ptrdiff_t i = low;
        ptrdiff_t j = high;
        do {
            while (values[i] < pivot) {
                i++;
            }
            while (pivot < values[j]) {
                j--;
            }
            if (i <= j) {
                swap(&values[i++], &values[j--]);
            }
        } while (i <= j);
        if (j < wanted) {
            low = i;
        }
        if (wanted < i) {
            high = j;
        }
    }
    return values[wanted];
}

double seep_growth_rank_median(double *values, size_t count)
{
    double upper;

    if (count == 0) {
        return 0;
    }
    upper = seep_growth_rank_select(values, count, count / 2);
    if (count % 2 == 1) {
        return upper;
    }
    return (seep_growth_rank_select(values, count, count / 2 - 1) + upper) / 2;
}

double seep_growth_rank_quartile(double *values, size_t count)
{
    return seep_growth_rank_select(values, count, (count - 1) / 4);
}

/*
 * P(at least that many of the pairs are in order) under no trend. The number
 * of inversions of n values is the sum of independent uniforms on 0..k-1,
 * k = 2..n, so its distribution is a chain of convolutions (Kendall 1938).
 */
static double upper_tail(size_t count, size_t inversions)
{
    double share[KENDALL_PAIRS + 1] = {1};
    double sum = 0;

    for (size_t n = 2; n <= count; n++) {
        double next[KENDALL_PAIRS + 1] = {0};
        for (size_t i = 0; i <= inversions; i++) {
            size_t first = i < n ? 0 : i - n + 1;
            for (size_t k = first; k <= i; k++) {
                next[i] += share[k] / (double)n;
            }
        }
        for (size_t i = 0; i <= inversions; i++) {
            share[i] = next[i];
        }
    }
    for (size_t i = 0; i <= inversions; i++) {
        sum += share[i];
    }
    return sum;
}

double seep_growth_rank_kendall(const double *values, size_t count)
{
    int pairs = (int)(count * (count - 1) / 2);
    int ups = 0;
    int downs = 0;
    int score;

    for (size_t i = 1; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            ups += values[i] > values[j];
            downs += values[i] < values[j];
        }
    }
    if (ups + downs == 0) {
        return 1;
    }
    score = ups - downs;
    if ((pairs - score) % 2 != 0) {
        score--; /* ties: the next score that the table has, conservative */
    }
    return score < -pairs ? 1
                          : upper_tail(count, (size_t)((pairs - score) / 2));
}
