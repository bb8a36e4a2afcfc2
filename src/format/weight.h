/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a sampled block stands for.
 *
 * A block of s bytes is kept with p = 1 - exp(-s / mean) and counts as s / p
 * bytes and 1 / p blocks: unbiased (Horvitz, Thompson 1952). Rounded to whole
 * bytes and to 1/65536 blocks, in a way that depends on nothing but the two
 * arguments: what was added for a block is what is taken away for it.
 */
#ifndef SEEP_FORMAT_WEIGHT_H
#define SEEP_FORMAT_WEIGHT_H

#include <stdint.h>

struct seep_weight {
    uint64_t bytes;
    uint64_t count_q16;
};

/** @param sample_log2 mean interval is 2^this bytes; 0: exact */
struct seep_weight seep_weight_of(uint64_t size_bytes, unsigned sample_log2);

/** The probability p itself. */
double seep_weight_probability(uint64_t size_bytes, unsigned sample_log2);

#endif
