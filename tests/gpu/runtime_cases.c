/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory by the CUDA runtime: by the shared library that is given, or by the
 * static one (RUNTIME_STATIC).
 *
 *   runtime_cases [LIBCUDART]
 *
 * Invariant: as in driver_cases.c. A runtime that refuses the driver is a skip,
 * and says with which code.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 16
#define BYTES 300000
#define SITE static __attribute__((noinline))

#define RUNTIME(X)                                        \
    X(cudaMalloc, (void **, size_t))                      \
    X(cudaMallocAsync, (void **, size_t, void *))         \
    X(cudaMallocManaged, (void **, size_t, unsigned int)) \
    X(cudaHostAlloc, (void **, size_t, unsigned int))     \
    X(cudaFree, (void *))                                 \
    X(cudaFreeAsync, (void *, void *))                    \
    X(cudaFreeHost, (void *))                             \
    X(cudaDeviceSynchronize, (void))

#define DECLARE(name, parameters) extern int name parameters;
#define FIELD(name, parameters) int(*name) parameters;
#ifdef RUNTIME_STATIC
RUNTIME(DECLARE)
#endif

static struct {
    RUNTIME(FIELD)
} cuda;

static int error;

static void expect(int result)
{
    error = error == 0 ? result : error;
}

SITE void site_malloc(void **pointer)
{
    expect(cuda.cudaMalloc(pointer, BYTES));
}

SITE void site_async(void **pointer)
{
    expect(cuda.cudaMallocAsync(pointer, BYTES, NULL));
}

SITE void site_managed(void **pointer)
{
    expect(cuda.cudaMallocManaged(pointer, BYTES, 1));
}

SITE void site_host(void **pointer)
{
    expect(cuda.cudaHostAlloc(pointer, BYTES, 0));
}

static int find(const char *path)
{
    int is_whole = 1;

#ifdef RUNTIME_STATIC
#define TAKE(name, parameters) cuda.name = name;
    (void)path;
#else
    void *library = path != NULL ? dlopen(path, RTLD_NOW) : NULL;

#define TAKE(name, parameters)                          \
    *(void **)(void *)&cuda.name =                      \
        library != NULL ? dlsym(library, #name) : NULL; \
    is_whole = is_whole && cuda.name != NULL;
#endif
    RUNTIME(TAKE)
    return is_whole;
}

static void half(void (*make)(void **), int (*unmake)(void *))
{
    for (int i = 0; i < ROUNDS; i++) {
        void *pointer = NULL;

        make(&pointer);
        if (i % 2 != 0 && error == 0) {
            expect(unmake(pointer));
        }
    }
}

static int free_async(void *pointer)
{
    return cuda.cudaFreeAsync(pointer, NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *function, *space;
    } sites[] = {{"site_malloc", "device"},
                 {"site_async", "device"},
                 {"site_managed", "managed"},
                 {"site_host", "pinned"}};
    void *first = NULL;

    if (!find(argc > 1 ? argv[1] : NULL)) {
        printf("{\"skipped\": \"no CUDA runtime\"}\n");
        return 77;
    }
    error = cuda.cudaMalloc(&first, 1);
    if (error != 0) {
        printf("{\"skipped\": \"the runtime refuses: %d\"}\n", error);
        return 77;
    }
    expect(cuda.cudaFree(first));
    half(site_malloc, cuda.cudaFree);
    half(site_async, free_async);
    half(site_managed, cuda.cudaFree);
    half(site_host, cuda.cudaFreeHost);
    expect(cuda.cudaDeviceSynchronize());
    printf("{\"sites\": [");
    for (int i = 0; i < 4; i++) {
        printf("%s{\"function\": \"%s\", \"space\": \"%s\", "
               "\"live_bytes\": %d}",
               i > 0 ? ", " : "", sites[i].function, sites[i].space,
               BYTES * ROUNDS / 2);
    }
    printf("], \"errors\": %d}\n", error);
    return error != 0;
}
