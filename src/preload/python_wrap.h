/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The wrappers around Python's allocators of the domains MEM and OBJ.
 *
 * Small objects come from arenas that malloc never sees. So the wrappers record
 * every block of their domains, whatever lies below (pymalloc's arenas, malloc
 * for what is larger), as space `python`; and where the real allocator may call
 * malloc its thread is marked, so that the hooks beneath do not record the
 * block again. The mark is a countdown that no block ends, with the block that
 * is freed in it: malloc passes without a look at it, and free knows that one
 * (what else is freed in there, tracemalloc's own say, it tells).
 *
 * Where blocks are sampled, free need not be wrapped: the one that is recorded
 * is asked of malloc, as large ones are anyway, and its free is seen there.
 *
 * Invariant: a wrapper gives exactly what the allocator beneath it gives; for a
 * block that is to be malloc's, what it gives for 513 bytes. What is recorded
 * is seen to go, or told to go at once. A mark left behind by a jump is undone
 * by the thread's next wrapper that marks.
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

/**
 * Stand before what is set: once, and for good, since others may come to stand
 * before us. @leave_frees: free is left as it is, and what is recorded is
 * malloc's. Not where much is recorded: small blocks take 513 bytes then.
 */
void seep_python_wrap(seep_python_allocator_call *get,
                      seep_python_allocator_call *set, bool leave_frees);

/** Is it the wrapper of OBJ? */
bool seep_python_wrap_is(const struct seep_python_allocator *it);

/** Frees are left to malloc, which was not asked for the last block that was to
 * be recorded: the program's allocators are others. */
bool seep_python_wrap_is_blind(void);

/** Has OBJ been called since this was last asked? Who comes next is noticed. */
bool seep_python_wrap_doubt(void);

/** Has either been called since then? */
bool seep_python_wrap_is_used(void);

/** A mark is more than any countdown. What is malloced beneath is taken from
 * it: 128 KiB before it names another block. */
SEEP_INLINE int64_t seep_python_wrap_mark(const void *block)
{
    /* That of no block is the last: no thread mallocs as much under it. */
    uint64_t granule =
        (((uintptr_t)block >> 4) - 1) & ((UINT64_C(1) << 44) - 1);

    return SEEP_SAMPLER_NEVER + (int64_t)((granule + 1) << 17);
}

/** Is this thread inside of Python's allocator? */
SEEP_INLINE bool seep_python_wrap_is_inside(void)
{
    return seep_unlikely(seep_thread.countdown_bytes > SEEP_SAMPLER_NEVER);
}

/** And is it for @block, whose end was told? */
SEEP_INLINE bool seep_python_wrap_holds(const void *block)
{
    return seep_python_wrap_is_inside() &&
           (uint64_t)(seep_python_wrap_mark(block) -
                      seep_thread.countdown_bytes) < UINT64_C(1) << 17;
}

/** The thread is as one that was never seen: a threshold is drawn at its next
 * block. The process has no memory, so nothing is lost by that. */
SEEP_INLINE void seep_python_wrap_unmark(void)
{
    if (seep_python_wrap_is_inside()) {
        seep_thread.sample_log2 = 0;
        seep_thread.countdown_bytes = 0;
    }
}

/** Mark the thread; @block is the one that will go, or NULL.
 * @return for leave() */
SEEP_INLINE int64_t seep_python_wrap_enter(const void *block)
{
    int64_t countdown_bytes;

    seep_python_wrap_unmark(); /* one that a jump has left */
    countdown_bytes = seep_thread.countdown_bytes;
    seep_thread.countdown_bytes = seep_python_wrap_mark(block);
    return countdown_bytes;
}

SEEP_INLINE void seep_python_wrap_leave(int64_t countdown_bytes)
{
    seep_thread.countdown_bytes = countdown_bytes;
}

#endif
