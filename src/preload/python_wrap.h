/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The wrappers around Python's allocators of the domains MEM and OBJ.
 *
 * Small objects come from arenas that malloc never sees. So the wrappers record
 * every block of their domains, whatever lies below (pymalloc's arenas, malloc
 * for what is larger), as space `python`; and where the real allocator may call
 * malloc its thread is marked, so that the hooks beneath do not record the
 * block again. The mark is a countdown that no block ends, with the wrapper's
 * frame in it: malloc passes without a look at it.
 *
 * Invariant: a wrapper gives exactly what the allocator beneath it gives. A
 * mark left behind by a jump is undone by the next look from a frame that is
 * not below the wrapper's.
 */
#ifndef SEEP_PRELOAD_PYTHON_WRAP_H
#define SEEP_PRELOAD_PYTHON_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "record/sampler.h"

/** Python's own numbers of its domains. */
#define SEEP_PYTHON_DOMAIN_MEM 1
#define SEEP_PYTHON_DOMAIN_OBJ 2

/** PyMemAllocatorEx of CPython 3.5 and later. */
struct seep_python_allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
};

/** PyMem_GetAllocator and PyMem_SetAllocator. */
typedef void seep_python_allocator_call(int domain,
                                        struct seep_python_allocator *it);

/** Stand before what is set: once, and for good, since others may come to
 * stand before us. */
void seep_python_wrap(seep_python_allocator_call *get,
                      seep_python_allocator_call *set);

/** Is it the wrapper of OBJ? */
bool seep_python_wrap_is(const struct seep_python_allocator *it);

/** Has OBJ been called since this was last asked? Who comes next is noticed. */
bool seep_python_wrap_doubt(void);

/** Has either been called since then? */
bool seep_python_wrap_is_used(void);

/** A mark of the wrapper at @frame: more than any countdown. */
int64_t seep_python_wrap_mark(uintptr_t frame);

/** The mark is there: is it left from a wrapper that is gone? Then undo it. */
bool seep_python_wrap_unmark(uintptr_t frame);

/** Is this thread, here at @frame, inside of Python's allocator? */
SEEP_INLINE bool seep_python_wrap_is_inside(uintptr_t frame)
{
    return seep_unlikely(seep_thread.countdown_bytes > SEEP_SAMPLER_NEVER) &&
           !seep_python_wrap_unmark(frame);
}

/** In the child of a fork, which a signal handler may have made in there. */
SEEP_INLINE void seep_python_wrap_after_fork(void)
{
    if (seep_unlikely(seep_thread.countdown_bytes > SEEP_SAMPLER_NEVER)) {
        seep_python_wrap_unmark(UINTPTR_MAX);
    }
}

/** Mark the thread. @return false: it is marked already, and passes through */
SEEP_INLINE bool seep_python_wrap_enter(uintptr_t frame,
                                        int64_t *ret_countdown_bytes)
{
    if (seep_python_wrap_is_inside(frame)) {
        return false;
    }
    *ret_countdown_bytes = seep_thread.countdown_bytes;
    seep_thread.countdown_bytes = seep_python_wrap_mark(frame);
    return true;
}

SEEP_INLINE void seep_python_wrap_leave(int64_t countdown_bytes)
{
    seep_thread.countdown_bytes = countdown_bytes;
}

#endif
