/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A thread is inside a wrapper of the driver at most once: what the driver
 * calls of itself is not the program's.
 *
 * Invariant: only the outermost wrapper of a thread records. One that was left
 * by a jump is known by its frame, from which an entry at the same height or
 * above can not have come.
 *
 * The 64 bytes of thread-local storage are taken, so threads inside the driver
 * stand in a fixed table, each by the address of its own storage.
 */
#ifndef SEEP_CUDA_NESTING_H
#define SEEP_CUDA_NESTING_H

#include <stdbool.h>
#include <stdint.h>

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

/** Is this thread inside the driver? Its mallocs are then the driver's. */
bool seep_cuda_nest_inside(void);

#endif
