/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The next definition of every hooked name.
 *
 * Invariant: seep_real.malloc is set last, by one thread; while it is NULL no
 * hook of the malloc family reads anything that a relocation fills, for the
 * first calls can come before this library is relocated (IFUNC resolvers).
 */
#ifndef SEEP_PRELOAD_REAL_H
#define SEEP_PRELOAD_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

/**
 * The C++ library may be loaded later, out of the global scope: look @name up
 * among the loaded C++ runtimes. NULL if there is none.
 */
void *seep_real_find_cxx(const char *name);

/** True if the allocator itself defines operator new: then it never passes
 * through malloc, and ours must count it. */
bool seep_real_new_is_allocators(void);

/** The object that defines malloc: its first address and the one behind it. */
void seep_real_allocator(const void **ret_start, const void **ret_end,
                         const char **ret_path);

/**
 * The global malloc is not ours: the program brings its own, or another
 * library stands before us. Set with the pointers.
 */
extern bool seep_real_is_behind __attribute__((visibility("hidden")));

#endif
