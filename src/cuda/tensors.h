/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The tensors inside PyTorch's cache, of which the driver sees only segments.
 *
 * PyTorch's allocators report every block that they hand out or take back to
 * c10::reportMemoryUsageToProfiler, whether or not a profiler is on. This
 * library stands in front of it, under the names that the releases with a
 * pointer and totals gave it, and passes every call on as it came.
 *
 * Invariant: what the profiler behind is told is what it would be told without
 * us. Blocks of the host are not recorded: malloc gave them.
 *
 * The reports are made under the allocator's own lock, so those of one block
 * come in the order of what happened, and no table of ours is needed.
 */
#ifndef SEEP_CUDA_TENSORS_H
#define SEEP_CUDA_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

/** Record tensors from now on, or no more. Off at first. */
void seep_cuda_tensors_set(bool is_on);

/**
 * What the allocator of one device said of itself last.
 *
 * @param ret_allocated_bytes  in blocks that were handed out
 * @param ret_reserved_bytes   in segments: the rest is its cache
 * @return false, and both untouched, if it said nothing so far
 */
bool seep_cuda_tensors_totals(int device, uint64_t *ret_allocated_bytes,
                              uint64_t *ret_reserved_bytes);

#endif
