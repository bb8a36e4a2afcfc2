/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Allocates on the device: by what it is linked with (LINKED), by dlsym, or,
 * OUTER, by a library that it needs.
 *
 * Invariant: nothing is looked up before the first call.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int seep_deep_allocate(uint64_t *pointer, size_t bytes);

#if defined(OUTER)
extern int seep_deep_inner(uint64_t *pointer, size_t bytes);

int seep_deep_allocate(uint64_t *pointer, size_t bytes)
{
    int volatile result = seep_deep_inner(pointer, bytes);

    return result;
}
#else
#if defined(LINKED)
extern int cuInit(unsigned int flags);
extern int cuDevicePrimaryCtxRetain(void **context, int device);
extern int cuCtxSetCurrent(void *context);
extern int cuMemAlloc_v2(uint64_t *pointer, size_t bytes);

static int begin(void)
{
    return 0;
}
#else
static int (*cuInit)(unsigned int);
static int (*cuDevicePrimaryCtxRetain)(void **, int);
static int (*cuCtxSetCurrent)(void *);
static int (*cuMemAlloc_v2)(uint64_t *, size_t);

static int begin(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);

    if (driver == NULL) {
        return -1;
    }
#define FIND(name) *(void **)(void *)&name = dlsym(driver, #name)
    FIND(cuInit);
    FIND(cuDevicePrimaryCtxRetain);
    FIND(cuCtxSetCurrent);
    FIND(cuMemAlloc_v2);
    return 0;
}
#endif

EXPORT int seep_deep_inner(uint64_t *pointer, size_t bytes);
EXPORT int seep_deep_probe(void);

/* Is there a driver? It does not stay. */
int seep_deep_probe(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int volatile found =
        driver != NULL && dlsym(driver, "cuMemFree_v2") != NULL;

    return driver != NULL && dlclose(driver) == 0 ? found : 0;
}

int seep_deep_inner(uint64_t *pointer, size_t bytes)
{
    static void *context;
    int volatile result = 0;

    if (context == NULL && (begin() != 0 || cuInit(0) != 0 ||
                            cuDevicePrimaryCtxRetain(&context, 0) != 0 ||
                            cuCtxSetCurrent(context) != 0)) {
        return -1;
    }
    result = cuMemAlloc_v2(pointer, bytes);
    return result;
}

int seep_deep_allocate(uint64_t *pointer, size_t bytes)
{
    int volatile result = seep_deep_inner(pointer, bytes);

    return result;
}
#endif
