/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * How many bytes an array was asked for.
 *
 * Invariant: no overflow: what cannot be is 0. The driver pads; that is in
 * none of these figures.
 */
#ifndef SEEP_CUDA_ARRAY_SIZE_H
#define SEEP_CUDA_ARRAY_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/abi.h"

uint64_t seep_cuda_array_bytes(const struct seep_cuda_array3d *array);

/** All levels of a mipmap. */
uint64_t seep_cuda_mipmap_bytes(const struct seep_cuda_array3d *array,
                                unsigned int levels_count);

/** Has it memory of its own? A sparse one is mapped piece by piece. */
bool seep_cuda_array_has_memory(const struct seep_cuda_array3d *array);

#endif
