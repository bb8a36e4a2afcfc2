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
 * (what else is freed in there, tracemalloc's own say, it records).
 *
 * Where blocks are sampled, free need not be wrapped: the one that is recorded
 * is asked of malloc, as large ones are anyway, and its free is seen there.
 *
 * Invariant: a wrapper gives exactly what the allocator beneath it gives; for a
 * block that is to be malloc's, what it gives for 513 bytes, or a twin of what
 * it gives, where that is sure to come back by free(). What is recorded is seen
 * to go, or recorded as freed at once. A mark left behind by a jump is undone
 * by the thread's next wrapper that marks.
 */
#ifndef SEEP_PRELOAD_PYTHON_WRAP_H
#define SEEP_PRELOAD_PYTHON_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEEP_PYTHON_DOMAIN_RAW 0
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

/**
 * What is set for RAW can be seen without a lock: @kept is where Python keeps
 * it, or NULL, and then @get is asked. Small texts are twins (twins.h) as long
 * as that is what it was when they were wrapped.
 */
void seep_python_wrap_watch_raw(const struct seep_python_allocator *kept,
                                seep_python_allocator_call *get);

/** Is it the wrapper of OBJ? */
bool seep_python_wrap_is(const struct seep_python_allocator *it);

/** Frees are left to malloc, which was not asked for the last block that was to
 * be recorded: the program's allocators are others. */
bool seep_python_wrap_is_blind(void);

/** Has OBJ been called since this was last asked? Who comes next is noticed. */
bool seep_python_wrap_doubt(void);

/** Has either been called since then? */
bool seep_python_wrap_is_used(void);

#endif
