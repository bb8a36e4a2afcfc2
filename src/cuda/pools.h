/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The memory pools that the program made, for who asks what they hold.
 *
 * Invariant: a pool stands here from its creation to the call that destroys
 * it, never after it. Beyond the table's room pools are not seen.
 */
#ifndef SEEP_CUDA_POOLS_H
#define SEEP_CUDA_POOLS_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/abi.h"

/** Slots to go through with seep_cuda_pools_get(). */
#define SEEP_CUDA_POOLS_MOST 256U

void seep_cuda_pools_add(void *pool, int device);

/** @return the device that it was added with; -1 if it was not */
int seep_cuda_pools_remove(void *pool);

/** The pool in a slot; NULL: none. */
void *seep_cuda_pools_get(size_t slot, int *ret_device);

#endif
