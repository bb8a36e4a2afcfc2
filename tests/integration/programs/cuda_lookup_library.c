/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Libraries that look up names: FIRST stands before SECOND and asks for the
 * next of its own name, as LLVM's OpenMP does with ompt_start_tool; PLUGIN is
 * loaded for itself and needs PRIVATE, which nobody else sees; NEEDS_DRIVER is
 * a PLUGIN that needs the driver too.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

#if defined(FIRST)
typedef const char *chain_function(void);

EXPORT void *ompt_start_tool(unsigned int version, const char *runtime);
EXPORT const char *seep_lookup_chain(void);
extern int seep_lookup_second;

void *ompt_start_tool(unsigned int version, const char *runtime)
{
    void *(*volatile next)(unsigned int, const char *) =
        (void *(*)(unsigned int, const char *))(uintptr_t)dlsym(
            RTLD_NEXT, "ompt_start_tool");

    return next != NULL ? next(version, runtime) : NULL;
}

const char *seep_lookup_chain(void)
{
    chain_function *volatile next =
        (chain_function *)(uintptr_t)dlsym(RTLD_NEXT, "seep_lookup_chain");

    ompt_start_tool(0, "");
    return next != NULL && seep_lookup_second != 0 ? next() : "none";
}
#elif defined(SECOND)
EXPORT const char *seep_lookup_chain(void);
EXPORT extern int seep_lookup_second;

int seep_lookup_second = 1;

const char *seep_lookup_chain(void)
{
    return "second";
}
#elif defined(FRONT)
typedef int allocate_function(uint64_t *, size_t);

EXPORT int cuMemAlloc_v2(uint64_t *pointer, size_t size_bytes);

/* The next of its name, or that of a driver that is loaded. */
static allocate_function *find(void)
{
    void *found = dlsym(RTLD_NEXT, "cuMemAlloc_v2");

    if (found == NULL) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

        found = driver != NULL ? dlsym(driver, "cuMemAlloc_v2") : NULL;
    }
    return (allocate_function *)(uintptr_t)found;
}

int cuMemAlloc_v2(uint64_t *pointer, size_t size_bytes)
{
    allocate_function *volatile next = find();

    return next != NULL ? next(pointer, size_bytes) : 999;
}
#elif defined(PRIVATE)
EXPORT int seep_lookup_private(void);

int seep_lookup_private(void)
{
    return 1;
}
#else
#if defined(NEEDS_DRIVER)
extern int cuDriverGetVersion(int *version);
int (*volatile needed)(int *) = cuDriverGetVersion;
#else
extern int seep_lookup_private(void);
int (*volatile needed)(void) = seep_lookup_private;
#endif

EXPORT int cudnnCreate(void **handle);
EXPORT void *seep_lookup_default(const char *name);
EXPORT void *seep_lookup_next(const char *name);

int cudnnCreate(void **handle)
{
    *handle = NULL;
    return 0;
}

void *seep_lookup_default(const char *name)
{
    void *volatile found = dlsym(RTLD_DEFAULT, name);

    return found;
}

void *seep_lookup_next(const char *name)
{
    void *volatile found = dlsym(RTLD_NEXT, name);

    return found;
}
#endif
