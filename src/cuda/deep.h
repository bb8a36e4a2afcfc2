/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Objects loaded with RTLD_DEEPBIND, which look into their own scope before
 * the global one and so past this library.
 *
 * Invariant: dlopen is a jump wherever the place of its caller means something
 * (deep.c says where it does not). What was bound past us is bound to us before
 * the program gets the handle, so nothing of it can be unloaded meanwhile; and
 * only where the slot holds just what our wrapper stands for.
 */
#ifndef SEEP_CUDA_DEEP_H
#define SEEP_CUDA_DEEP_H

#include <stdbool.h>
#include <stdint.h>

/** The next dlopen; 0 until the first call. For dlsym.S. */
extern _Atomic uintptr_t seep_cuda_next_dlopen
    __attribute__((visibility("hidden")));

/** Is the dlopen of @file with RTLD_DEEPBIND for the call below? Counts what
 * is not, though we would have to look at it. */
bool seep_cuda_opens_deep(const char *file);

/** dlopen of such a file. */
void *seep_cuda_dlopen(const char *file, int flags);

/** No system calls any more. */
void seep_cuda_deep_restrict(void);

#endif
