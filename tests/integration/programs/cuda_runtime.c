/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The vendor's runtime on the fake driver: it asks for every entry point that
 * it knows, then stops at its own check of the driver, as it should.
 *
 *   cuda_runtime LIBCUDART     by dlopen
 *   cuda_runtime_static        linked in
 *
 * Invariant: prints what the runtime said and what the driver counted, and
 * nothing that differs between two runs.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#ifdef RUNTIME_STATIC
int cudaMalloc(void **pointer, size_t bytes);
#endif

typedef int allocate_function(void **, size_t);

static allocate_function *find(const char *path)
{
    allocate_function *found = NULL;

#ifdef RUNTIME_STATIC
    (void)path;
    found = cudaMalloc;
#else
    void *runtime = path != NULL ? dlopen(path, RTLD_NOW) : NULL;

    if (runtime != NULL) {
        *(void **)(void *)&found = dlsym(runtime, "cudaMalloc");
    }
#endif
    return found;
}

int main(int argc, char **argv)
{
    /* Held, or the runtime would unload it with its counters. */
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    allocate_function *allocate = find(argc > 1 ? argv[1] : NULL);
    uint64_t (*calls)(const char *) = NULL;
    void *pointer = NULL;
    int first, second;

    if (driver != NULL) {
        *(void **)(void *)&calls = dlsym(driver, "seep_fake_calls");
    }
    if (calls == NULL || allocate == NULL) {
        fprintf(stderr, "cuda_runtime: no runtime, or no fake driver\n");
        return 2;
    }
    first = allocate(&pointer, 100);
    second = allocate(&pointer, 100);
    printf("{\"first\": %d, \"second\": %d, \"pointer\": %s, "
           "\"look_ups\": %" PRIu64 ", \"tables\": %" PRIu64
           ", \"starts\": %" PRIu64 ", \"calls\": %" PRIu64 "}\n",
           first, second, pointer == NULL ? "null" : "true",
           calls("cuGetProcAddress_v2"), calls("cuGetExportTable"),
           calls("cuInit"), calls(NULL));
    return 0;
}
