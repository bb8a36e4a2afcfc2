/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Python's own objects: the allocators of its domains MEM and OBJ, wrapped.
 *
 * Small objects come from arenas that malloc never sees. So the wrappers record
 * every block of their domains, whatever lies below (pymalloc's arenas, malloc
 * for what is larger), as space `python`; and while the real allocator works
 * its thread is marked, so that the hooks beneath do not record it again. The
 * mark is a countdown that no block ends, with the wrapper's frame in it:
 * malloc passes without a look at it.
 *
 * Invariant: a wrapper gives exactly what the allocator beneath it gives. A
 * mark left behind by a jump is undone by the next look from a frame that is
 * not below the wrapper's.
 */
#ifndef SEEP_PRELOAD_PYTHON_OBJECTS_H
#define SEEP_PRELOAD_PYTHON_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "record/sampler.h"
#include "seep/stack.h"

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

/**
 * From the constructor, after seep_stacks_init() and before there is a second
 * thread: find Python's allocators and wrap them, if that was asked for.
 */
void seep_python_objects_init(void);

/** The part of it that knows no interpreter. */
void seep_python_objects_wrap(seep_python_allocator_call *get,
                              seep_python_allocator_call *set);

/** What became of it, by a look at who is in front now. Takes no lock. */
enum seep_python_objects seep_python_objects_look(void);

/** The mark is there: is it left from a wrapper that is gone? Then undo it. */
bool seep_python_objects_unmark(uintptr_t frame);

/** Is this thread, here at @frame, inside of Python's allocator? */
SEEP_INLINE bool seep_python_objects_is_inside(uintptr_t frame)
{
    return seep_unlikely(seep_thread.countdown_bytes > SEEP_SAMPLER_NEVER) &&
           !seep_python_objects_unmark(frame);
}

/** In the child of a fork, which a signal handler may have made in there. */
SEEP_INLINE void seep_python_objects_after_fork(void)
{
    if (seep_unlikely(seep_thread.countdown_bytes > SEEP_SAMPLER_NEVER)) {
        seep_python_objects_unmark(UINTPTR_MAX);
    }
}

#endif
