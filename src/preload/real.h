/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The next definition of every hooked name, the memory until they are known,
 * and the allocator among them: what it says of itself.
 *
 * Invariant: seep_real.malloc is set last, by one thread; while it is NULL no
 * hook of the malloc family reads anything that a relocation fills, for the
 * first calls can come before this library is relocated (IFUNC resolvers).
 */
#ifndef SEEP_PRELOAD_REAL_H
#define SEEP_PRELOAD_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/own.h"
#include "base/word.h"
#include "capture/native/unwind.h"

struct dl_phdr_info;

struct seep_real {
#define SEEP_HOOK(name, result, parameters) result(*name) parameters;
#include "preload/hooks.def"
#undef SEEP_HOOK
};

extern struct seep_real seep_real __attribute__((visibility("hidden")));

/**
 * Look everything up, unless that is done or under way.
 * @return true when seep_real is complete
 */
bool seep_real_resolve(void);

/** What a refused call leaves in errno; nothing while this library is not
 * relocated, and errno cannot be reached. */
void seep_real_set_errno(int error);

/** The answer of a system call as libc's wrapper of it gives it. */
long seep_real_as_libc(long result);

/**
 * The C++ library may be loaded later, out of the global scope: look @name up
 * among the loaded C++ runtimes. NULL if there is none.
 */
void *seep_real_find_cxx(const char *name);

/** True if the allocator itself defines operator new: then it never passes
 * through malloc, and ours must count it. */
bool seep_real_new_is_allocators(void);

/** The object that defines malloc: its first address and the one behind it.
 * After seep_objects_init(). */
void seep_real_allocator(const void **ret_start, const void **ret_end,
                         const char **ret_path);

/**
 * The global malloc is not ours: the program brings its own, or another
 * library stands before us. Set with the pointers.
 */
extern bool seep_real_is_behind __attribute__((visibility("hidden")));

/*
 * Memory before the next malloc is known: for callers inside IFUNC resolvers,
 * and for dlsym's own while it is being asked.
 *
 * Invariant: blocks lie in a few arenas, are known by their address for ever,
 * are aligned to 16 or what was asked for, remember their size, and are never
 * given to libc. Nothing here needs a relocation of this library.
 */

/** What dlsym() asks for while it is being asked is in .bss. */
#define SEEP_BOOTSTRAP_FIRST_BYTES (32U << 10)
/** Where that is not enough as much is mapped. */
#define SEEP_BOOTSTRAP_BYTES (4U << 20)
/** twins.c gives blocks of it, and takes them back. */
#define SEEP_TWINS_BYTES ((2U << 20) + (32U << 10))

/** All arenas lie between. Only ever wider. */
extern struct seep_arena {
    _Atomic uintptr_t low;
    _Atomic uintptr_t end;
} seep_arenas __attribute__((visibility("hidden")));

extern seep_own_table seep_twins_table __attribute__((visibility("hidden")));

/** @block lies between the arenas: is it of one? */
bool seep_arena_holds(const void *block);

/** Of whatever kind: libc does not know it. */
SEEP_INLINE bool seep_arena_owns(const void *block)
{
    /* Relaxed: who has a block of an arena has it from who widened this. */
    return seep_unlikely((uintptr_t)block >= seep_word_load(&seep_arenas.low) &&
                         (uintptr_t)block < seep_word_load(&seep_arenas.end)) &&
           seep_arena_holds(block);
}

/** From now on they reach over @bytes at @start. */
void seep_arena_widen(const void *start, size_t bytes);

/** @return NULL when the arena is spent; zeroed memory otherwise */
void *seep_bootstrap_allocate(size_t alignment, size_t size_bytes);

/** Size that a block of the arena was asked with: the word in front of it. */
SEEP_INLINE size_t seep_arena_size(const void *block)
{
    return ((const size_t *)block)[-1];
}

/*
 * The allocator's own figures: who it is, what it can be asked, and when.
 *
 * Invariant: it is asked only where the calling thread certainly holds none of
 * its locks: in a hook of malloc's family after the real call, on a stack that
 * was walked to its end, that is the thread's own, and that passes no signal
 * handler, no fork and nothing of the allocator; with signals blocked, so that
 * none of the program's handlers runs while its locks are held; and in no
 * child but of a fork that the C library made.
 */

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
