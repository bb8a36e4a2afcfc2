/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every kind of the driver's memory by one door, from some threads: half of it
 * is freed by another thread than allocated it, the rest is left.
 *
 *   driver_cases DOOR
 *
 * The doors are those of ../integration/programs/cuda_doors_open.c. Only calls
 * that are right are made: the real driver is not asked to refuse what it is
 * not bound to check.
 *
 * Invariant: each site is one function and makes the one call that it is named
 * for. Prints what is left at each, the truth that a recording must tell.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../integration/programs/cuda_doors.h"

#define THREADS 8
#define ROUNDS 8 /* blocks of a thread at each site: the odd ones are freed */
#define PAGE 4096
#define SITE static __attribute__((noinline))

#define SITES(X)                \
    X(device, "device")         \
    X(pitch, "device")          \
    X(managed, "managed")       \
    X(async, "device")          \
    X(pool, "device")           \
    X(host, "pinned")           \
    X(registered, "registered") \
    X(physical, "device")       \
    X(reserved, "reserved")     \
    X(array, "device")

enum site {
#define SITE_VALUE(name, space) SITE_##name,
    SITES(SITE_VALUE)
#undef SITE_VALUE
        SITE_COUNT
};

struct block {
    uint64_t value;
    uint64_t bytes;
    uint64_t address; /* where it is mapped */
};

static struct cuda_doors cu;
static CUcontext context;
static CUmemoryPool pool;
static CUstream stream;
static size_t granularity;
static struct block blocks[THREADS][SITE_COUNT][ROUNDS];
static char pages[THREADS][ROUNDS][PAGE] __attribute__((aligned(PAGE)));
static _Atomic uint64_t errors;

static const CUmemAllocationProp on_device = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};

static void expect(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, (int)result);
        atomic_fetch_add_explicit(&errors, 1, memory_order_relaxed);
    }
}

SITE void site_device(struct block *block)
{
    CUdeviceptr pointer = 0;

    expect(cu.cuMemAlloc_v2(&pointer, block->bytes), "cuMemAlloc");
    block->value = pointer;
}

SITE void site_pitch(struct block *block)
{
    size_t pitch = 0;
    CUdeviceptr pointer = 0;

    expect(cu.cuMemAllocPitch_v2(&pointer, &pitch, block->bytes, 3, 4),
           "cuMemAllocPitch");
    block->value = pointer;
    block->bytes = pitch * 3;
}

SITE void site_managed(struct block *block)
{
    CUdeviceptr pointer = 0;

    expect(cu.cuMemAllocManaged(&pointer, block->bytes, CU_MEM_ATTACH_GLOBAL),
           "cuMemAllocManaged");
    block->value = pointer;
}

SITE void site_async(struct block *block)
{
    CUdeviceptr pointer = 0;

    expect(cu.cuMemAllocAsync(&pointer, block->bytes, stream),
           "cuMemAllocAsync");
    block->value = pointer;
}

SITE void site_pool(struct block *block)
{
    CUdeviceptr pointer = 0;

    expect(cu.cuMemAllocFromPoolAsync(&pointer, block->bytes, pool, stream),
           "cuMemAllocFromPoolAsync");
    block->value = pointer;
}

SITE void site_host(struct block *block)
{
    void *pointer = NULL;

    expect(cu.cuMemHostAlloc(&pointer, block->bytes, 0), "cuMemHostAlloc");
    block->value = (uintptr_t)pointer;
}

SITE void site_registered(struct block *block)
{
    expect(cu.cuMemHostRegister_v2((void *)(uintptr_t)block->value, PAGE, 0),
           "cuMemHostRegister");
    block->bytes = PAGE;
}

/* Mapped, and its handle released at once: it lives by its mapping. */
SITE void site_physical(struct block *block)
{
    CUmemGenericAllocationHandle handle = 0;

    expect(cu.cuMemCreate(&handle, block->bytes, &on_device, 0), "cuMemCreate");
    expect(cu.cuMemMap(block->address, block->bytes, 0, handle, 0), "cuMemMap");
    expect(cu.cuMemRelease(handle), "cuMemRelease");
}

SITE void site_reserved(struct block *block)
{
    CUdeviceptr address = 0;

    expect(cu.cuMemAddressReserve(&address, block->bytes, 0, 0, 0),
           "cuMemAddressReserve");
    block->value = address;
}

SITE void site_array(struct block *block)
{
    CUDA_ARRAY3D_DESCRIPTOR form = {.Width = 64,
                                    .Height = 16,
                                    .Format = CU_AD_FORMAT_FLOAT,
                                    .NumChannels = 4};
    CUarray array = NULL;

    expect(cu.cuArray3DCreate_v2(&array, &form), "cuArray3DCreate");
    block->value = (uintptr_t)array;
    block->bytes = form.Width * form.Height * 16;
}

typedef void make_function(struct block *);

static const struct {
    const char *function, *space;
    make_function *make;
} sites[] = {
#define SITE_ROW(name, space) {"site_" #name, space, site_##name},
    SITES(SITE_ROW)
#undef SITE_ROW
};

/* @place: the addresses of what is physical, made with it. */
static void make(enum site site, struct block *block, struct block *place,
                 void *page)
{
    if (site == SITE_reserved) {
        return;
    }
    block->bytes = 1000 + (uintptr_t)page / PAGE % 7 * 100;
    block->value = (uintptr_t)page;
    if (site == SITE_physical) {
        block->bytes = granularity;
        place->bytes = granularity;
        site_reserved(place);
        block->address = place->value;
    }
    sites[site].make(block);
}

static void *make_all(void *argument)
{
    uintptr_t thread = (uintptr_t)argument;

    expect(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (enum site site = 0; site < SITE_COUNT; site++) {
            make(site, &blocks[thread][site][round],
                 &blocks[thread][SITE_reserved][round], pages[thread][round]);
        }
    }
    return NULL;
}

static void unmake(enum site site, struct block *block)
{
    void *host = (void *)(uintptr_t)block->value;

    if (site == SITE_host) {
        expect(cu.cuMemFreeHost(host), "cuMemFreeHost");
    } else if (site == SITE_registered) {
        expect(cu.cuMemHostUnregister(host), "cuMemHostUnregister");
    } else if (site == SITE_physical) {
        expect(cu.cuMemUnmap(block->address, block->bytes), "cuMemUnmap");
    } else if (site == SITE_reserved) {
        expect(cu.cuMemAddressFree(block->value, block->bytes),
               "cuMemAddressFree");
    } else if (site == SITE_array) {
        expect(cu.cuArrayDestroy((CUarray)host), "cuArrayDestroy");
    } else if (site == SITE_async || site == SITE_pool) {
        expect(cu.cuMemFreeAsync(block->value, stream), "cuMemFreeAsync");
    } else {
        expect(cu.cuMemFree_v2(block->value), "cuMemFree");
    }
    block->bytes = 0;
}

/* Of the next thread's blocks. */
static void *unmake_half(void *argument)
{
    uintptr_t thread = ((uintptr_t)argument + 1) % THREADS;

    expect(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    for (unsigned round = 1; round < ROUNDS; round += 2) {
        for (enum site site = 0; site < SITE_COUNT; site++) {
            unmake(site, &blocks[thread][site][round]);
        }
    }
    return NULL;
}

static void on_threads(void *(*work)(void *))
{
    pthread_t threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0) {
            exit(2);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void prepare(void)
{
    CUmemPoolProps how = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = on_device.location};

    expect(cu.cuDevicePrimaryCtxRetain(&context, 0),
           "cuDevicePrimaryCtxRetain");
    expect(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    expect(cu.cuStreamCreate(&stream, 0), "cuStreamCreate");
    expect(cu.cuMemPoolCreate(&pool, &how), "cuMemPoolCreate");
    expect(cu.cuMemGetAllocationGranularity(&granularity, &on_device,
                                            CU_MEM_ALLOC_GRANULARITY_MINIMUM),
           "cuMemGetAllocationGranularity");
}

static void print(void)
{
    printf("{\"sites\": [");
    for (enum site site = 0; site < SITE_COUNT; site++) {
        uint64_t bytes = 0;

        for (int i = 0; i < THREADS * ROUNDS; i++) {
            bytes += blocks[i / ROUNDS][site][i % ROUNDS].bytes;
        }
        printf("%s\n  {\"function\": \"%s\", \"space\": \"%s\", "
               "\"live_bytes\": %" PRIu64 "}",
               site > 0 ? "," : "", sites[site].function, sites[site].space,
               bytes);
    }
    printf("],\n \"errors\": %" PRIu64 "}\n",
           atomic_load_explicit(&errors, memory_order_relaxed));
}

int main(int argc, char **argv)
{
    const char *door = argc > 1 ? argv[1] : "dlsym";

    if (!cuda_doors_open(door, &cu)) {
        printf("{\"skipped\": \"no way to a driver by %s\"}\n", door);
        return 77;
    }
    if (cu.cuInit(0) != CUDA_SUCCESS) {
        printf("{\"skipped\": \"cuInit refuses\"}\n");
        return 77;
    }
    prepare();
    on_threads(make_all);
    on_threads(unmake_half);
    print();
    return atomic_load_explicit(&errors, memory_order_relaxed) != 0;
}
