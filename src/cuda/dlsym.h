/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The program's dlsym and dlvsym.
 *
 * Invariant: what is no name of the driver's reaches the next dlsym by a jump,
 * with the caller's registers, stack and return address: RTLD_NEXT and
 * RTLD_DEFAULT mean the caller's place in the order of objects. What is one is
 * looked up first, and only an answer is exchanged, never its absence.
 */
#ifndef SEEP_CUDA_DLSYM_H
#define SEEP_CUDA_DLSYM_H

#include <stdbool.h>
#include <stdint.h>

/** The next definitions; 0 until the first call. For dlsym.S. */
extern _Atomic uintptr_t seep_cuda_next_dlsym
    __attribute__((visibility("hidden")));
extern _Atomic uintptr_t seep_cuda_next_dlvsym
    __attribute__((visibility("hidden")));

/** Find both. From dlsym.S, at the first call. */
void seep_cuda_open_doors(void);

/** Is the look-up of @name, which begins as the driver's do, for one of the two
 * below? Counts it. */
bool seep_cuda_answers(void *handle, const char *name);

/** dlsym and dlvsym of a name that is wrapped. */
void *seep_cuda_dlsym(void *handle, const char *name);
void *seep_cuda_dlvsym(void *handle, const char *name, const char *version);

/** What dlsym finds for this library: RTLD_NEXT is behind it. */
uintptr_t seep_cuda_symbol(void *handle, const char *name);

/** dlclose, past our own hook. */
void seep_cuda_close(void *handle);

#endif
