/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The wrappers of hooks.def, and what they are made of that a test can ask by
 * itself: which thread is inside the driver, and the size of an array; and what
 * is set and asked of the hooks in front of PyTorch.
 *
 * Invariant: a wrapper calls its real target with the caller's arguments, once,
 * and gives back what that gave. The one error of our own is for a caller
 * whose driver cannot be found, who could not have called without us.
 *
 * A thread is inside a wrapper at most once: what the driver calls of itself is
 * not the program's. One that was left by a jump is known by its frame, from
 * which an entry at the same height or above can not have come. The 64 bytes of
 * thread-local storage are taken, so threads inside the driver stand in a fixed
 * table, each by the address of its own storage.
 */
#ifndef SEEP_CUDA_HOOKS_H
#define SEEP_CUDA_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/abi.h"

#define SEEP_CUDA_HOOK(name, base, version, per_thread, parameters) \
    int seep_cuda_##name parameters;
#include "cuda/hooks.def"

/** Of the wrapper's stack. */
struct seep_cuda_nest {
    uint32_t slot; /* index + 1; 0: passes through, nothing is recorded */
};

/**
 * @param frame  of the wrapper: its frame address
 * @return .slot 0 if the wrapper has only to make the real call
 */
struct seep_cuda_nest seep_cuda_nest_enter(uintptr_t frame);
void seep_cuda_nest_leave(struct seep_cuda_nest nest);

/** How many bytes an array was asked for; 0: more than there can be. The driver
 * pads; that is in none of these figures. */
uint64_t seep_cuda_array_bytes(const struct seep_cuda_array3d *array);

/** All levels of a mipmap. */
uint64_t seep_cuda_mipmap_bytes(const struct seep_cuda_array3d *array,
                                unsigned int levels_count);

/** Has it memory of its own? A sparse one is mapped piece by piece. */
bool seep_cuda_array_has_memory(const struct seep_cuda_array3d *array);

/*
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
