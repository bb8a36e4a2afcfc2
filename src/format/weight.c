/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Horvitz-Thompson weights of sampled blocks; see weight.h. */
#include "format/weight.h"

#include "base/math.h"
#include "seep/recording.h"

double seep_weight_probability(uint64_t size_bytes, unsigned sample_log2)
{
    if (sample_log2 == 0) {
        return 1.0;
    }
    /* A block of no bytes is never sampled by itself, yet can be recorded:
     * exact mode keeps it. It is treated as one byte. */
    if (size_bytes == 0) {
        size_bytes = 1;
    }
    return seep_math_one_minus_exp((double)size_bytes /
                                   (double)(UINT64_C(1) << sample_log2));
}

struct seep_weight seep_weight_of(uint64_t size_bytes, unsigned sample_log2)
{
    struct seep_weight weight = {size_bytes, SEEP_COUNT_ONE};
    double p;

    if (sample_log2 == 0) {
        return weight;
    }
    p = seep_weight_probability(size_bytes, sample_log2);
    weight.bytes = (uint64_t)((double)size_bytes / p + 0.5);
    weight.count_q16 = (uint64_t)((double)SEEP_COUNT_ONE / p + 0.5);
    return weight;
}
