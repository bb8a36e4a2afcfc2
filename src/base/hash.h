/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The one hash of the project, for tables and identities.
 *
 * Invariant: the value for given input is part of the format (fixed_hash, the
 * ids of call sites): it never changes within a major version of it.
 */
#ifndef SEEP_BASE_HASH_H
#define SEEP_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define SEEP_HASH_SEED UINT64_C(0x9e3779b97f4a7c15)

/** Spread 64 bits: the finaliser of splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t seep_hash_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/** Fold one more word into a running hash. */
static inline uint64_t seep_hash_add(uint64_t hash, uint64_t word)
{
    return seep_hash_mix(hash ^ word) + SEEP_HASH_SEED;
}

/** Hash of @count words; never 0, so that 0 can mean "empty". */
static inline uint64_t seep_hash_words(uint64_t seed, const uint64_t *words,
                                       size_t count)
{
    uint64_t hash = seed ^ SEEP_HASH_SEED;

    for (size_t i = 0; i < count; i++) {
        hash = seep_hash_add(hash, words[i]);
    }
    return hash != 0 ? hash : 1;
}

/** Hash of @size bytes; never 0. */
static inline uint64_t seep_hash_bytes(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t hash = SEEP_HASH_SEED ^ size;

    for (; size >= 8; at += 8, size -= 8) {
        /* One load: compilers know it, unrolled. */
        uint64_t word = (uint64_t)at[0] | (uint64_t)at[1] << 8 |
                        (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
                        (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 |
                        (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;

        hash = seep_hash_add(hash, word);
    }
    if (size > 0) {
        uint64_t word = 0;

        for (size_t j = 0; j < size; j++) {
            word |= (uint64_t)at[j] << (8 * j);
        }
        hash = seep_hash_add(hash, word);
    }
    return hash != 0 ? hash : 1;
}

/** The next number of a generator, xorshift64* (Vigna 2016), whose state is
 * not 0, nor becomes it. The upper bits are the best. */
static inline uint64_t seep_hash_random(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

#endif
