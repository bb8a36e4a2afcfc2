/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The orders in which physical memory comes and goes, and what ends with its
 * context or pool; see cuda_entries.h.
 *
 * Invariant: a context takes what was allocated in it but physical memory and
 * that of pools, and a pool nothing.
 */
#include <stddef.h>
#include <unistd.h>

#include "cuda_entries.h"

#define ORDERS 6
#define SMALL_BYTES 3000
#define ROWS 3

SITE CUresult site_create(CUmemGenericAllocationHandle *handle, int device)
{
    return cuMemCreate(handle, entry_unit_bytes, &entry_physical[device], 0);
}

SITE CUresult site_create_host(CUmemGenericAllocationHandle *handle)
{
    const CUmemAllocationProp how = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0}};

    return cuMemCreate(handle, entry_unit_bytes, &how, 0);
}

SITE CUresult site_reserve(CUdeviceptr *pointer, size_t bytes)
{
    return cuMemAddressReserve(pointer, bytes, 0, 0, 0);
}

SITE CUresult site_map_import(CUdeviceptr pointer,
                              CUmemGenericAllocationHandle handle)
{
    return cuMemMap(pointer, entry_unit_bytes, 0, handle, 0);
}

struct physical {
    int device;
    CUdeviceptr address; /* of two units */
    CUmemGenericAllocationHandle handle;
};

static void create(struct physical *physical)
{
    DONE(site_create(&physical->handle, physical->device));
    entry_count(SITE_CREATE, physical->device, entry_unit_bytes, 1);
}

static void created_is_gone(const struct physical *physical)
{
    entry_count(SITE_CREATE, physical->device, entry_unit_bytes, -1);
}

static CUresult map_half(const struct physical *physical, unsigned half)
{
    return cuMemMap(physical->address + half * entry_unit_bytes,
                    entry_unit_bytes, 0, physical->handle, 0);
}

static CUresult unmap_half(const struct physical *physical, unsigned half)
{
    return cuMemUnmap(physical->address + half * entry_unit_bytes,
                      entry_unit_bytes);
}

/* Released while it is mapped: it lives until it is unmapped. */
static bool release_first(struct physical *one, bool leave)
{
    create(one);
    DONE(map_half(one, 0));
    DONE(cuMemRelease(one->handle));
    if (!leave) {
        DONE(unmap_half(one, 0));
        created_is_gone(one);
    }
    return !leave;
}

static bool unmap_first(struct physical *one, bool leave)
{
    create(one);
    DONE(map_half(one, 1));
    DONE(unmap_half(one, 1));
    if (!leave) {
        DONE(cuMemRelease(one->handle));
        created_is_gone(one);
    }
    return true;
}

static bool two_at_once(struct physical *one, bool leave)
{
    struct physical other = *one;

    create(one);
    create(&other);
    DONE(map_half(one, 0));
    DONE(map_half(&other, 1));
    DONE(cuMemRelease(other.handle));
    DONE(cuMemRelease(one->handle));
    UNKNOWN(cuMemUnmap(one->address, entry_unit_bytes / 2));
    if (!leave) {
        DONE(cuMemUnmap(one->address, 2 * entry_unit_bytes));
        created_is_gone(one);
        created_is_gone(one);
    }
    return !leave;
}

static bool mapped_twice(struct physical *one, bool leave)
{
    create(one);
    DONE(map_half(one, 0));
    DONE(map_half(one, 1));
    DONE(cuMemRelease(one->handle));
    DONE(unmap_half(one, 0));
    if (!leave) {
        DONE(unmap_half(one, 1));
        created_is_gone(one);
    }
    return !leave;
}

static bool retained(struct physical *one, bool leave)
{
    CUmemGenericAllocationHandle again = 0;

    create(one);
    DONE(map_half(one, 0));
    DONE(cuMemRelease(one->handle));
    DONE(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)one->address));
    DONE(unmap_half(one, 0));
    if (!leave) {
        DONE(cuMemRelease(again));
        created_is_gone(one);
    }
    return true;
}

/* What is imported counts where it is mapped; its owner goes on holding it. */
static bool imported(struct physical *one, bool leave)
{
    const CUmemAllocationHandleType type =
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle other = 0;
    int shared = -1;

    create(one);
    DONE(cuMemExportToShareableHandle(&shared, one->handle, type, 0));
    DONE(
        cuMemImportFromShareableHandle(&other, (void *)(intptr_t)shared, type));
    close(shared);
    DONE(site_map_import(one->address, other));
    entry_count(SITE_MAP_IMPORT, NO_DEVICE, entry_unit_bytes, 1);
    DONE(cuMemRelease(other));
    if (!leave) {
        DONE(unmap_half(one, 0));
        entry_count(SITE_MAP_IMPORT, NO_DEVICE, entry_unit_bytes, -1);
        DONE(cuMemRelease(one->handle));
        created_is_gone(one);
    }
    return !leave;
}

/* @return false: something is still mapped there */
typedef bool an_order(struct physical *one, bool leave);

static an_order *const orders[ORDERS] = {
    release_first, unmap_first, two_at_once, mapped_twice, retained, imported};

void entry_vmm(int device, unsigned round, bool leave)
{
    struct physical one = {.device = device};
    CUmemGenericAllocationHandle host = 0;

    DONE(site_reserve(&one.address, 2 * entry_unit_bytes));
    entry_count(SITE_RESERVE, NO_DEVICE, 2 * entry_unit_bytes, 1);
    if (orders[round % ORDERS](&one, leave)) {
        DONE(cuMemAddressFree(one.address, 2 * entry_unit_bytes));
        entry_count(SITE_RESERVE, NO_DEVICE, 2 * entry_unit_bytes, -1);
    }
    DONE(site_create_host(&host));
    entry_count(SITE_CREATE_HOST, NO_DEVICE, entry_unit_bytes, 1);
    if (!leave) {
        DONE(cuMemRelease(host));
        entry_count(SITE_CREATE_HOST, NO_DEVICE, entry_unit_bytes, -1);
    }
}

SITE CUresult site_in_device(CUdeviceptr *pointer)
{
    return cuMemAlloc_v2(pointer, SMALL_BYTES);
}

SITE CUresult site_in_pitch(CUdeviceptr *pointer, size_t *pitch_bytes)
{
    return cuMemAllocPitch_v2(pointer, pitch_bytes, SMALL_BYTES, ROWS, 4);
}

SITE CUresult site_in_managed(CUdeviceptr *pointer)
{
    return cuMemAllocManaged(pointer, SMALL_BYTES, CU_MEM_ATTACH_GLOBAL);
}

SITE CUresult site_in_host(void **pointer)
{
    return cuMemHostAlloc(pointer, SMALL_BYTES, 0);
}

SITE CUresult site_in_array(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *form)
{
    return cuArrayCreate_v2(array, form);
}

SITE CUresult site_out_async(CUdeviceptr *pointer)
{
    return cuMemAllocAsync(pointer, SMALL_BYTES, NULL);
}

SITE CUresult site_out_create(CUmemGenericAllocationHandle *handle, int device)
{
    return cuMemCreate(handle, entry_unit_bytes, &entry_physical[device], 0);
}

/* In the context that is current, which is one of @at. */
struct contents {
    int at;
    CUdeviceptr device, pitched, managed;
    size_t pitch_bytes;
    void *host;
    CUarray array;
};

static void count_contents(const struct contents *in, int number)
{
    entry_count(SITE_IN_DEVICE, in->at, SMALL_BYTES, number);
    entry_count(SITE_IN_PITCH, in->at, ROWS * in->pitch_bytes, number);
    entry_count(SITE_IN_MANAGED, in->at, SMALL_BYTES, number);
    entry_count(SITE_IN_HOST, NO_DEVICE, SMALL_BYTES, number);
    entry_count(SITE_IN_ARRAY, in->at, 64 * 4, number);
}

static void fill(struct contents *in, int device)
{
    const CUDA_ARRAY_DESCRIPTOR form = {
        .Width = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};

    in->at = device;
    DONE(site_in_device(&in->device));
    DONE(site_in_pitch(&in->pitched, &in->pitch_bytes));
    DONE(site_in_managed(&in->managed));
    DONE(site_in_host(&in->host));
    DONE(site_in_array(&in->array, &form));
    count_contents(in, 1);
}

static void drain(const struct contents *in)
{
    DONE(cuMemFree_v2(in->device));
    DONE(cuMemFree_v2(in->pitched));
    DONE(cuMemFree_v2(in->managed));
    DONE(cuMemFreeHost(in->host));
    DONE(cuArrayDestroy(in->array));
    count_contents(in, -1);
}

/* What stays when the context goes. */
static void add_lasting(int device)
{
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr pointer = 0;

    DONE(site_out_async(&pointer));
    entry_count(SITE_OUT_ASYNC, device, SMALL_BYTES, 1);
    DONE(site_out_create(&handle, device));
    entry_count(SITE_OUT_CREATE, device, entry_unit_bytes, 1);
}

static void end_context(bool old)
{
    struct contents in[2];
    struct contents freed;
    CUcontext context = NULL;

    DONE(cuCtxCreate_v2(&context, 0, LAST_DEVICE));
    fill(&in[0], LAST_DEVICE);
    fill(&freed, LAST_DEVICE);
    fill(&in[1], LAST_DEVICE);
    add_lasting(LAST_DEVICE);
    drain(&freed);
    DONE(old ? cuCtxDestroy(context) : cuCtxDestroy_v2(context));
    count_contents(&in[0], -1);
    count_contents(&in[1], -1);
    REFUSED(old ? cuCtxDestroy(context) : cuCtxDestroy_v2(context));
}

/* It goes with its last release. */
static void end_primary(bool old)
{
    struct contents in;
    CUcontext context = NULL;

    DONE(cuDevicePrimaryCtxRetain(&context, LAST_DEVICE));
    DONE(cuDevicePrimaryCtxRetain(&context, LAST_DEVICE));
    DONE(cuCtxSetCurrent(context));
    fill(&in, LAST_DEVICE);
    DONE(old ? cuDevicePrimaryCtxRelease(LAST_DEVICE)
             : cuDevicePrimaryCtxRelease_v2(LAST_DEVICE));
    add_lasting(LAST_DEVICE);
    DONE(old ? cuDevicePrimaryCtxRelease(LAST_DEVICE)
             : cuDevicePrimaryCtxRelease_v2(LAST_DEVICE));
    count_contents(&in, -1);
}

/* Reset, it is empty. Nothing else takes what was in it: each way to do so has
 * a device of its own, whose context is never released. */
static void reset_primary(bool old)
{
    int device = old ? RESET_DEVICE : RESET_DEVICE + 1;
    struct contents in;
    CUcontext context = NULL;

    DONE(cuDevicePrimaryCtxRetain(&context, device));
    DONE(cuCtxSetCurrent(context));
    fill(&in, device);
    add_lasting(device);
    DONE(old ? cuDevicePrimaryCtxReset(device)
             : cuDevicePrimaryCtxReset_v2(device));
    count_contents(&in, -1);
    DONE(cuCtxSetCurrent(NULL));
}

/* Destroyed, a pool is there until its last allocation is freed. */
static void end_pool(void)
{
    const CUmemPoolProps how = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location =
                                    entry_physical[LAST_DEVICE].location};
    CUdeviceptr pointers[3] = {0};
    CUmemoryPool before = NULL;
    CUmemoryPool pool = NULL;

    DONE(cuMemPoolCreate(&pool, &how));
    DONE(cuDeviceGetMemPool(&before, LAST_DEVICE));
    DONE(cuDeviceSetMemPool(LAST_DEVICE, pool));
    for (int i = 0; i < 3; i++) {
        DONE(site_out_async(&pointers[i]));
        entry_count(SITE_OUT_ASYNC, LAST_DEVICE, SMALL_BYTES, 1);
    }
    DONE(cuMemFreeAsync(pointers[0], NULL));
    entry_count(SITE_OUT_ASYNC, LAST_DEVICE, SMALL_BYTES, -1);
    DONE(cuMemPoolTrimTo(pool, 0));
    DONE(cuDeviceSetMemPool(LAST_DEVICE, before));
    DONE(cuMemPoolDestroy(pool));
    DONE(cuMemFreeAsync(pointers[1], NULL));
    entry_count(SITE_OUT_ASYNC, LAST_DEVICE, SMALL_BYTES, -1);
}

void entry_end(bool old)
{
    struct contents left;
    CUcontext context = NULL;

    end_context(old);
    end_primary(old);
    reset_primary(old);
    DONE(cuDevicePrimaryCtxRetain(&context, LAST_DEVICE));
    DONE(cuCtxSetCurrent(context));
    end_pool();
    if (old) {
        DONE(cuDevicePrimaryCtxRelease_v2(LAST_DEVICE));
    } else {
        fill(&left, LAST_DEVICE);
    }
}
