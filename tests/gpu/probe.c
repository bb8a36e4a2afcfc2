/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Questions to a driver whose answers the design rests on, one JSON line each:
 *
 *   same_pointer    does cuGetProcAddress give what dlsym gives?
 *   reset_keeps     what outlives the reset of a primary context?
 *   memory_info     what does cuMemGetInfo cost, alone and beside four threads
 *                   that allocate, and does it disturb a capture?
 *   pair            what does a cuMemAllocAsync with its cuMemFreeAsync cost?
 *   multicast       does a binding keep memory whose handle is released?
 *
 * Invariant: each question is answered whatever the others said; a call that
 * the driver refuses is an answer, with its code.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "../fake/cuda_abi.h"

#define CALLS(X)                     \
    X(cuInit)                        \
    X(cuDriverGetVersion)            \
    X(cuGetProcAddress_v2)           \
    X(cuDevicePrimaryCtxRetain)      \
    X(cuDevicePrimaryCtxReset_v2)    \
    X(cuCtxSetCurrent)               \
    X(cuCtxSynchronize)              \
    X(cuMemGetInfo_v2)               \
    X(cuMemAlloc_v2)                 \
    X(cuMemFree_v2)                  \
    X(cuMemAllocAsync)               \
    X(cuMemFreeAsync)                \
    X(cuMemCreate)                   \
    X(cuMemRelease)                  \
    X(cuMemGetAllocationGranularity) \
    X(cuStreamCreate)                \
    X(cuStreamBeginCapture_v2)       \
    X(cuStreamEndCapture)            \
    X(cuMulticastCreate)             \
    X(cuMulticastAddDevice)          \
    X(cuMulticastBindMem)            \
    X(cuMulticastUnbind)

#define BYTES ((size_t)64 << 20)
#define NON_BLOCKING 1

static struct {
#define FIELD(name) __typeof__(name) *name;
    CALLS(FIELD)
#undef FIELD
} cu;

static void *driver;
static CUcontext context;
static CUstream stream;
static _Atomic bool is_over;

static const CUmemAllocationProp on_device = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static bool find(void)
{
    bool is_whole = true;

    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) {
        return false;
    }
#define FIND(name)                                     \
    *(void **)(void *)&cu.name = dlsym(driver, #name); \
    is_whole = is_whole && cu.name != NULL;
    CALLS(FIND)
#undef FIND
    return is_whole;
}

static void ask_same_pointer(void)
{
    static const struct {
        const char *exported, *base;
        int version;
    } names[] = {
        {"cuMemAlloc_v2", "cuMemAlloc", 3020},
        {"cuMemFree_v2", "cuMemFree", 3020},
        {"cuMemAllocAsync", "cuMemAllocAsync", 11020},
        {"cuMemHostAlloc", "cuMemHostAlloc", 2020},
        {"cuMemCreate", "cuMemCreate", 10020},
        {"cuMemGetInfo_v2", "cuMemGetInfo", 3020},
        {"cuCtxGetCurrent", "cuCtxGetCurrent", 4000},
        {"cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxReset", 11000}};
    int same = 0, other = 0, refused = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CUdriverProcAddressQueryResult status;
        void *found = NULL;

        if (cu.cuGetProcAddress_v2(names[i].base, &found, names[i].version, 0,
                                   &status) != CUDA_SUCCESS ||
            found == NULL) {
            refused++;
        } else if (found == dlsym(driver, names[i].exported)) {
            same++;
        } else {
            other++;
        }
    }
    printf("{\"question\": \"same_pointer\", \"same\": %d, \"other\": %d, "
           "\"refused\": %d}\n",
           same, other, refused);
}

static long long free_bytes(void)
{
    size_t available = 0, total = 0;

    return cu.cuMemGetInfo_v2(&available, &total) == CUDA_SUCCESS
               ? (long long)available
               : -1;
}

static double info_ns(int times)
{
    double start = now_ns();

    for (int i = 0; i < times; i++) {
        free_bytes();
    }
    return (now_ns() - start) / times;
}

static void *allocate_on(void *unused)
{
    (void)unused;
    cu.cuCtxSetCurrent(context);
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        CUdeviceptr pointer = 0;

        if (cu.cuMemAlloc_v2(&pointer, 1 << 20) == CUDA_SUCCESS) {
            cu.cuMemFree_v2(pointer);
        }
    }
    return NULL;
}

static void ask_memory_info(void)
{
    pthread_t threads[4];
    int started = 0;
    double alone_ns = info_ns(2000);
    double beside_ns;
    CUgraph graph = NULL;
    int begun, asked, ended;
    size_t available = 0, total = 0;

    while (started < 4 &&
           pthread_create(&threads[started], NULL, allocate_on, NULL) == 0) {
        started++;
    }
    beside_ns = info_ns(2000);
    atomic_store_explicit(&is_over, true, memory_order_relaxed);
    while (started > 0) {
        pthread_join(threads[--started], NULL);
    }
    begun = cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    asked = cu.cuMemGetInfo_v2(&available, &total);
    ended = cu.cuStreamEndCapture(stream, &graph);
    printf("{\"question\": \"memory_info\", \"alone_ns\": %.0f, "
           "\"beside_ns\": %.0f, \"capture_begun\": %d, \"in_capture\": %d, "
           "\"capture_ended\": %d}\n",
           alone_ns, beside_ns, begun, asked, ended);
}

static void ask_pair(void)
{
    enum { PAIRS = 20000 };
    double start = 0;
    int result = 0;

    for (int i = -1000; i < PAIRS && result == 0; i++) {
        CUdeviceptr pointer = 0;

        start = i <= 0 ? now_ns() : start;
        result = cu.cuMemAllocAsync(&pointer, 4096, stream);
        if (result == 0) {
            result = cu.cuMemFreeAsync(pointer, stream);
        }
    }
    printf("{\"question\": \"pair\", \"error\": %d, \"ns\": %.0f}\n", result,
           (now_ns() - start) / PAIRS);
}

static void ask_multicast(void)
{
    size_t bytes = 0;
    CUmulticastObjectProp how = {.numDevices = 1};
    CUmemGenericAllocationHandle memory = 0, object = 0;
    long long before = free_bytes();
    long long bound = 0, released = 0;
    CUresult error;

    cu.cuMemGetAllocationGranularity(&bytes, &on_device,
                                     CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    bytes *= 32;
    how.size = bytes;
    error = cu.cuMulticastCreate(&object, &how);
    error = error != 0 ? error : cu.cuMulticastAddDevice(object, 0);
    error = error != 0 ? error : cu.cuMemCreate(&memory, bytes, &on_device, 0);
    error = error != 0 ? error
                       : cu.cuMulticastBindMem(object, 0, memory, 0, bytes, 0);
    if (memory != 0) {
        bound = before - free_bytes();
        cu.cuMemRelease(memory);
        released = before - free_bytes();
    }
    if (error == 0) {
        cu.cuMulticastUnbind(object, 0, 0, bytes);
    }
    if (object != 0) {
        cu.cuMemRelease(object);
    }
    printf("{\"question\": \"multicast\", \"error\": %d, \"bytes\": %zu, "
           "\"taken_when_bound\": %lld, \"taken_when_released\": %lld, "
           "\"taken_in_the_end\": %lld}\n",
           (int)error, bytes, bound, released, before - free_bytes());
}

/* The last: nothing of the context is usable behind it. */
static void ask_reset(void)
{
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr pooled = 0, plain = 0;
    size_t granularity = 1;
    long long before, after;
    int reset, free_pooled, free_plain, release;

    cu.cuMemGetAllocationGranularity(&granularity, &on_device,
                                     CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    cu.cuMemAlloc_v2(&plain, BYTES);
    cu.cuMemAllocAsync(&pooled, BYTES, NULL);
    cu.cuMemCreate(&handle, (BYTES / granularity + 1) * granularity, &on_device,
                   0);
    cu.cuCtxSynchronize();
    before = free_bytes();
    reset = cu.cuDevicePrimaryCtxReset_v2(0);
    cu.cuDevicePrimaryCtxRetain(&context, 0);
    cu.cuCtxSetCurrent(context);
    after = free_bytes();
    free_plain = cu.cuMemFree_v2(plain);
    free_pooled = cu.cuMemFree_v2(pooled);
    release = cu.cuMemRelease(handle);
    printf("{\"question\": \"reset_keeps\", \"reset\": %d, "
           "\"given_back_bytes\": %lld, \"each_bytes\": %zu, "
           "\"free_plain\": %d, \"free_pooled\": %d, \"release\": %d}\n",
           reset, after - before, BYTES, free_plain, free_pooled, release);
}

int main(void)
{
    int version = 0;

    if (!find()) {
        printf("{\"skipped\": \"no driver, or one before CUDA 12.1\"}\n");
        return 77;
    }
    if (cu.cuInit(0) != CUDA_SUCCESS ||
        cu.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cu.cuCtxSetCurrent(context) != CUDA_SUCCESS ||
        cu.cuStreamCreate(&stream, NON_BLOCKING) != CUDA_SUCCESS) {
        printf("{\"skipped\": \"the driver gives no context\"}\n");
        return 77;
    }
    cu.cuDriverGetVersion(&version);
    printf("{\"question\": \"version\", \"driver\": %d}\n", version);
    ask_same_pointer();
    ask_memory_info();
    ask_pair();
    ask_multicast();
    ask_reset();
    return 0;
}
