/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The allocator's own figures: who it is, what it can be asked, and when.
 *
 * Invariant: it is asked only where the calling thread certainly holds none of
 * its locks: in a hook of malloc's family after the real call, on a stack that
 * was walked to its end, that is the thread's own, and that passes no signal
 * handler, no fork and nothing of the allocator; with signals blocked, so that
 * none of the program's handlers runs while its locks are held; and in no
 * child but of a fork that the C library made.
 */
#ifndef SEEP_PRELOAD_ALLOCATOR_H
#define SEEP_PRELOAD_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/native.h"

/**
 * Look up what the allocator at [@start, @end) offers, from the constructor.
 * glibc's, jemalloc and gperftools' tcmalloc are known, by the name of @path.
 * mimalloc is not: it tells what it took, but not what it handed out.
 */
void seep_allocator_init(const void *start, const void *end, const char *path);

/** Is this thread, on this stack, outside of the allocator? */
bool seep_allocator_is_outside(const struct seep_capture_start *start,
                               const struct seep_stack_bounds *bounds,
                               const struct seep_capture_end *end,
                               const uintptr_t *pcs, size_t count);

#endif
