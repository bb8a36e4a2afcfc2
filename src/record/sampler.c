/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Thresholds of the sampler; see sampler.h. */
#include "record/sampler.h"

#include "base/hash.h"
#include "base/math.h"

void seep_sampler_seed(struct seep_thread *thread, uint64_t entropy)
{
    thread->random = seep_hash_mix(entropy) | 1;
}

/* Uniform in (0, 1], from xorshift64* (Vigna 2016). */
static double uniform(struct seep_thread *thread)
{
    uint64_t x = thread->random;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    thread->random = x;
    return (double)(((x * UINT64_C(0x2545f4914f6cdd1d)) >> 11) + 1) * 0x1p-53;
}

void seep_sampler_draw(struct seep_thread *thread, unsigned sample_log2)
{
    double mean = (double)(UINT64_C(1) << sample_log2);

    thread->sample_log2 = (uint8_t)sample_log2;
    if (sample_log2 == 0) {
        thread->countdown_bytes = 0;
        return;
    }
    thread->countdown_bytes =
        (int64_t)(-seep_math_log(uniform(thread)) * mean) + 1;
}
