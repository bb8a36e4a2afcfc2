/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ways by which programs come to the driver:
 *
 *   link       the symbols themselves (the program that is linked with it)
 *   dlsym      dlopen and dlsym of final names, as Triton does
 *   noload     the same by a second handle, RTLD_NOLOAD, as PyTorch did
 *   default    RTLD_GLOBAL, and dlsym of RTLD_DEFAULT
 *   twins      dlsym of the per-thread twins where there are any
 *   address1   cuGetProcAddress, as runtimes of CUDA 11 do
 *   address2   cuGetProcAddress_v2
 *   address2twins  the same with the flag for per-thread streams
 *   runtime    as the static runtime of CUDA 13: one dlsym, a probe with an
 *              empty name, the look-up asked for itself, both flags for what
 *              has a twin, all kept in a table of its own
 *
 * Invariant: but for `link` nothing here refers to the driver at link time.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cuda_doors.h"

#define VERSION_V1 11030
#define VERSION_V2 12000

typedef __typeof__(cuGetProcAddress) *look_up_v1;
typedef __typeof__(cuGetProcAddress_v2) *look_up_v2;

/* What a look-up needs to know of a name. */
struct wanted {
    const char *name, *twin, *base;
    int version;
    void **place;
};

#define COUNT(name, base, version) +1
enum { WANTED = 0 CUDA_DOORS_PLAIN(COUNT) CUDA_DOORS_TWINS(COUNT) };

static void list(struct wanted *wanted, struct cuda_doors *into)
{
    int i = 0;

#define PLAIN(name, base, version)                             \
    wanted[i++] = (struct wanted){#name, NULL, #base, version, \
                                  (void **)(void *)&into->name};
#define TWIN(name, base, version)                                       \
    wanted[i++] = (struct wanted){#name, #name "_ptsz", #base, version, \
                                  (void **)(void *)&into->name};
    CUDA_DOORS_PLAIN(PLAIN)
    CUDA_DOORS_TWINS(TWIN)
#undef PLAIN
#undef TWIN
}

static bool by_dlsym(void *handle, const struct wanted *wanted, bool twins)
{
    for (int i = 0; i < WANTED; i++) {
        const char *name =
            twins && wanted[i].twin != NULL ? wanted[i].twin : wanted[i].name;

        *wanted[i].place = dlsym(handle, name);
        if (*wanted[i].place == NULL) {
            return false;
        }
    }
    return true;
}

static bool by_address_1(void *handle, const struct wanted *wanted)
{
    look_up_v1 look_up;

    *(void **)(void *)&look_up = dlsym(handle, "cuGetProcAddress");
    for (int i = 0; look_up != NULL && i < WANTED; i++) {
        if (look_up(wanted[i].base, wanted[i].place, wanted[i].version,
                    CU_GET_PROC_ADDRESS_DEFAULT) != CUDA_SUCCESS) {
            return false;
        }
    }
    return look_up != NULL;
}

static bool ask(look_up_v2 look_up, const struct wanted *wanted,
                cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status;

    return look_up(wanted->base, wanted->place, wanted->version, flags,
                   &status) == CUDA_SUCCESS &&
           status == CU_GET_PROC_ADDRESS_SUCCESS && *wanted->place != NULL;
}

static bool by_address_2(void *handle, const struct wanted *wanted,
                         cuuint64_t flags)
{
    look_up_v2 look_up;

    *(void **)(void *)&look_up = dlsym(handle, "cuGetProcAddress_v2");
    for (int i = 0; look_up != NULL && i < WANTED; i++) {
        if (!ask(look_up, &wanted[i], flags)) {
            return false;
        }
    }
    return look_up != NULL;
}

/* Frees by the twin what was allocated by the plain one. */
static bool by_runtime(void *handle, const struct wanted *wanted)
{
    const cuuint64_t own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    CUdriverProcAddressQueryResult status;
    look_up_v2 look_up;
    look_up_v1 first = NULL;
    void *nothing = NULL;

    *(void **)(void *)&look_up = dlsym(handle, "cuGetProcAddress_v2");
    if (look_up == NULL ||
        look_up("", &nothing, 0, 0, &status) != CUDA_SUCCESS ||
        nothing != NULL ||
        look_up("cuGetProcAddress", (void **)(void *)&first, VERSION_V1, 0,
                NULL) != CUDA_SUCCESS ||
        look_up("cuGetProcAddress", (void **)(void *)&look_up, VERSION_V2, 0,
                &status) != CUDA_SUCCESS ||
        first == NULL || (uintptr_t)first == (uintptr_t)look_up) {
        return false;
    }
    for (int i = 0; i < WANTED; i++) {
        if (!ask(look_up, &wanted[i], 0) ||
            (strcmp(wanted[i].base, "cuMemFreeAsync") == 0 &&
             !ask(look_up, &wanted[i], own))) {
            return false;
        }
    }
    return true;
}

#ifdef DOOR_LINK
static bool by_link(struct cuda_doors *into)
{
#define LINKED(name, base, version) into->name = name;
    CUDA_DOORS_PLAIN(LINKED)
    CUDA_DOORS_TWINS(LINKED)
#undef LINKED
    into->library = NULL;
    return true;
}
#endif

bool cuda_doors_open(const char *door, struct cuda_doors *into)
{
    const cuuint64_t own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    struct wanted wanted[WANTED];
    bool is_global = strcmp(door, "default") == 0;
    void *handle;

#ifdef DOOR_LINK
    if (strcmp(door, "link") == 0) {
        return by_link(into);
    }
#endif
    list(wanted, into);
    handle = dlopen("libcuda.so.1", RTLD_NOW | (is_global ? RTLD_GLOBAL : 0));
    into->library = handle;
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    if (strcmp(door, "noload") == 0) {
        handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        return handle != NULL && by_dlsym(handle, wanted, false);
    }
    return is_global                    ? by_dlsym(RTLD_DEFAULT, wanted, false)
           : strcmp(door, "dlsym") == 0 ? by_dlsym(handle, wanted, false)
           : strcmp(door, "twins") == 0 ? by_dlsym(handle, wanted, true)
           : strcmp(door, "address1") == 0 ? by_address_1(handle, wanted)
           : strcmp(door, "address2") == 0 ? by_address_2(handle, wanted, 0)
           : strcmp(door, "address2twins") == 0
               ? by_address_2(handle, wanted, own)
           : strcmp(door, "runtime") == 0 ? by_runtime(handle, wanted)
                                          : false;
}
