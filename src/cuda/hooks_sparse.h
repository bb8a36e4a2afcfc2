/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Sparse arrays, which physical memory is mapped into part by part.
 *
 * Invariant: a part keeps its memory until it is unmapped, mapped anew, or its
 * array is destroyed.
 */
#ifndef SEEP_CUDA_HOOKS_SPARSE_H
#define SEEP_CUDA_HOOKS_SPARSE_H

#include <stdint.h>

/** Around the destruction of an array or mipmap: before it, and after it if the
 * driver did it. */
uint32_t seep_cuda_sparse_mark(void);
void seep_cuda_sparse_gone(uint32_t mark, const void *array);

#endif
