/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cuGetProcAddress in both its forms; see proc_address.h. */
#include "cuda/proc_address.h"

#include "cuda/hooks.h"

typedef int first_form(const char *, void **, int, uint64_t);
typedef int second_form(const char *, void **, int, uint64_t, int *);

/* Flags that would mean another variant than is known here. */
#define KNOWN_FLAGS                              \
    ((uint64_t)(SEEP_CUDA_LOOKUP_LEGACY_STREAM | \
                SEEP_CUDA_LOOKUP_PER_THREAD_STREAM))

/*
 * Above the newest version that is known here, a name may have got a variant
 * of another form: what is not the entry point of the known version is passed
 * on.
 */
static bool is_known_variant(int version, const char *name, uint64_t flags,
                             uintptr_t target, seep_cuda_ask *ask,
                             const void *driver)
{
    return (flags & ~KNOWN_FLAGS) == 0 &&
           (version <= SEEP_CUDA_NEWEST ||
            ask(driver, name, SEEP_CUDA_NEWEST, flags) == target);
}

uintptr_t seep_cuda_exchange(const struct seep_cuda_table *table,
                             const char *name, int version, uint64_t flags,
                             uintptr_t target, seep_cuda_ask *ask,
                             const void *driver)
{
    size_t index = seep_cuda_find_version(table, name, version, flags);

    seep_cuda_door_counted(SEEP_CUDA_LOOKUPS);
    if (index == SEEP_CUDA_NONE || target == 0) {
        return target;
    }
    if (!is_known_variant(version, name, flags, target, ask, driver)) {
        seep_cuda_door_counted(SEEP_CUDA_UNKNOWN_VARIANT);
        return target;
    }
    return seep_cuda_substitute(table, index, target);
}

static uintptr_t ask_first(const void *driver, const char *name, int version,
                           uint64_t flags)
{
    void *found = NULL;

    return ((first_form *)(uintptr_t)driver)(name, &found, version, flags) ==
                   SEEP_CUDA_SUCCESS
               ? (uintptr_t)found
               : 0;
}

static uintptr_t ask_second(const void *driver, const char *name, int version,
                            uint64_t flags)
{
    void *found = NULL;
    int status;

    return ((second_form *)(uintptr_t)driver)(name, &found, version, flags,
                                              &status) == SEEP_CUDA_SUCCESS
               ? (uintptr_t)found
               : 0;
}

int seep_cuda_cuGetProcAddress(const char *name, void **function, int version,
                               uint64_t flags)
{
    first_form *real = SEEP_CUDA_REAL(cuGetProcAddress);
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    result = real(name, function, version, flags);
    if (result == SEEP_CUDA_SUCCESS && name != NULL && function != NULL) {
        *function = (void *)seep_cuda_exchange(
            &seep_cuda_table, name, version, flags, (uintptr_t)*function,
            ask_first, (const void *)(uintptr_t)real);
    }
    return result;
}
SEEP_CUDA_EXPORT(cuGetProcAddress);

int seep_cuda_cuGetProcAddress_v2(const char *name, void **function,
                                  int version, uint64_t flags, int *status)
{
    second_form *real = SEEP_CUDA_REAL(cuGetProcAddress_v2);
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    result = real(name, function, version, flags, status);
    if (result == SEEP_CUDA_SUCCESS && name != NULL && function != NULL) {
        *function = (void *)seep_cuda_exchange(
            &seep_cuda_table, name, version, flags, (uintptr_t)*function,
            ask_second, (const void *)(uintptr_t)real);
    }
    return result;
}
SEEP_CUDA_EXPORT(cuGetProcAddress_v2);
