/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A recorder for tests of the CUDA part: it keeps what it is told, and counts
 * what can not have happened in that order.
 *
 * Threads: any number.
 */
#ifndef CUDA_RECORDER_H
#define CUDA_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/ledger.h"

/** Forget everything, and be told from now on. */
void cuda_recorder_start(void);

/** Live by what was told; @device -1: of every device. */
uint64_t cuda_recorder_bytes(enum seep_space space, int device);
uint64_t cuda_recorder_count(void);

/** Events that can not be: allocated twice, freed or restored while not. */
uint64_t cuda_recorder_faults(void);

/** Events of each sort so far. */
uint64_t cuda_recorder_allocations(void);
uint64_t cuda_recorder_frees(void);
uint64_t cuda_recorder_restores(void);

/** Once, while the next restore is told: what another thread does then. */
void cuda_recorder_during_restore(void (*act)(void));

#endif
