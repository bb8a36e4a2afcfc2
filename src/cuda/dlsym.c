/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Look-ups of the driver's names; see dlsym.h.
 *
 * Invariant: the real look-up is the last of the loader's functions that is
 * called before a failure is answered, so that dlerror() tells of the
 * program's own.
 */
#include "cuda/dlsym.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "cuda/deep.h"
#include "cuda/next.h"
#include "cuda/resolve.h"

typedef void *dlsym_function(void *, const char *);
typedef void *dlvsym_function(void *, const char *, const char *);
typedef int dlclose_function(void *);

_Atomic uintptr_t seep_cuda_next_dlsym __attribute__((visibility("hidden")));
_Atomic uintptr_t seep_cuda_next_dlvsym __attribute__((visibility("hidden")));
_Atomic uintptr_t seep_cuda_next_dlopen __attribute__((visibility("hidden")));
static _Atomic uintptr_t next_dlclose;

void seep_cuda_open_doors(void)
{
    atomic_store_explicit(&next_dlclose, seep_cuda_next("dlclose"),
                          memory_order_relaxed);
    atomic_store_explicit(&seep_cuda_next_dlopen, seep_cuda_next("dlopen"),
                          memory_order_relaxed);
    atomic_store_explicit(&seep_cuda_next_dlvsym, seep_cuda_next("dlvsym"),
                          memory_order_relaxed);
    atomic_store_explicit(&seep_cuda_next_dlsym, seep_cuda_next("dlsym"),
                          memory_order_relaxed);
}

/* One of the next definitions; 0 if it cannot be had. */
static uintptr_t next(_Atomic uintptr_t *function)
{
    if (atomic_load_explicit(function, memory_order_relaxed) == 0) {
        seep_cuda_open_doors();
    }
    return atomic_load_explicit(function, memory_order_relaxed);
}

/* Never by a jump: the caller that dlsym sees is this library. */
static void *call_dlsym(void *handle, const char *name)
{
    uintptr_t function = next(&seep_cuda_next_dlsym);
    void *volatile found = NULL;

    if (function != 0) {
        found = ((dlsym_function *)function)(handle, name);
    }
    return found;
}

static void *call_dlvsym(void *handle, const char *name, const char *version)
{
    uintptr_t function = next(&seep_cuda_next_dlvsym);
    void *volatile found = NULL;

    if (function != 0) {
        found = ((dlvsym_function *)function)(handle, name, version);
    }
    return found;
}

void seep_cuda_close(void *handle)
{
    uintptr_t function = next(&next_dlclose);

    if (function != 0) {
        ((dlclose_function *)function)(handle);
    }
}

uintptr_t seep_cuda_symbol(void *handle, const char *name)
{
    return (uintptr_t)call_dlsym(handle, name);
}

/*
 * RTLD_DEFAULT is answered here only from the global scope, where no place of
 * the caller's matters. What is not there, he may have in a scope of his own.
 */
bool seep_cuda_answers(void *handle, const char *name)
{
    seep_cuda_door_counted(SEEP_CUDA_LOOKUPS);
    return seep_cuda_find_exact(&seep_cuda_table, name) != SEEP_CUDA_NONE &&
           (handle != RTLD_DEFAULT || call_dlsym(RTLD_DEFAULT, name) != NULL);
}

/* Of a library that stands before us in the global scope, and may well call
 * us: it is no target of ours. */
static bool is_before_us(const char *name, const void *found)
{
    return found == call_dlsym(RTLD_DEFAULT, name) &&
           found != call_dlsym(RTLD_NEXT, name);
}

/* @found by the program, at @handle. */
static void *exchange(const char *name, void *handle, void *found)
{
    size_t index = seep_cuda_find_exact(&seep_cuda_table, name);

    if (found == NULL || index == SEEP_CUDA_NONE) {
        return found;
    }
    if (!is_before_us(name, found)) {
        seep_cuda_meet_driver(handle, (uintptr_t)found);
        found = (void *)seep_cuda_substitute(&seep_cuda_table, index,
                                             (uintptr_t)found);
    }
    dlerror(); /* of a question of ours: the program's look-up succeeded */
    return found;
}

void *seep_cuda_dlsym(void *handle, const char *name)
{
    return exchange(name, handle, call_dlsym(handle, name));
}

void *seep_cuda_dlvsym(void *handle, const char *name, const char *version)
{
    return exchange(name, handle, call_dlvsym(handle, name, version));
}
