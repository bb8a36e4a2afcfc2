/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fake driver's pools: what is used, what is reserved, and how they end.
 */
#include "test_frame.h"

static const CUmemPoolProps on_device = {
    .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
    .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};

static uint64_t figure(CUmemoryPool pool, CUmemPool_attribute which)
{
    cuuint64_t value = UINT64_MAX;

    assert_done(cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

static void what_is_freed_stays_reserved_until_the_device_is_idle(void **state)
{
    CUmemoryPool pool;
    CUdeviceptr pointer;

    (void)state;
    assert_done(cuMemPoolCreate(&pool, &on_device));
    assert_done(cuMemAllocFromPoolAsync(&pointer, 3 * MIB, pool, NULL));
    assert_int_equal(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 3 * MIB);
    assert_int_equal(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
                     4 * MIB);
    assert_done(cuMemFreeAsync(pointer, NULL));
    assert_int_equal(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    assert_int_equal(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 3 * MIB);
    assert_int_equal(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
                     4 * MIB);
    assert_done(cuStreamSynchronize(NULL));
    assert_int_equal(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_int_equal(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 4 * MIB);
    assert_done(cuMemPoolDestroy(pool));
}

static void a_threshold_keeps_and_a_trim_gives_back(void **state)
{
    cuuint64_t keep = UINT64_MAX;
    uint64_t before = seep_fake_device_used(0);
    CUmemoryPool pool;
    CUdeviceptr pointer;

    (void)state;
    assert_done(cuMemPoolCreate(&pool, &on_device));
    assert_done(
        cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    assert_done(cuMemAllocFromPoolAsync_ptsz(&pointer, 7 * MIB, pool, NULL));
    assert_done(cuMemFreeAsync_ptsz(pointer, NULL));
    assert_done(cuCtxSynchronize());
    assert_int_equal(seep_fake_device_used(0) - before, 8 * MIB);
    assert_done(cuMemPoolTrimTo(pool, 3 * MIB));
    assert_int_equal(seep_fake_device_used(0) - before, 4 * MIB);
    assert_done(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(seep_fake_device_used(0), before);
    assert_done(cuMemPoolDestroy(pool));
}

static void a_pool_gives_way_before_memory_is_out(void **state)
{
    cuuint64_t keep = UINT64_MAX;
    CUmemoryPool pool;
    CUdeviceptr pointer;

    (void)state;
    assert_done(cuDeviceGetDefaultMemPool(&pool, 0));
    assert_done(
        cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    assert_done(cuMemAllocAsync(&pointer, 200 * MIB, NULL));
    assert_done(cuMemFreeAsync(pointer, NULL));
    assert_done(cuCtxSynchronize());
    assert_int_equal(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
                     200 * MIB);
    assert_done(cuMemAlloc_v2(&pointer, 200 * MIB));
    assert_done(cuMemFree_v2(pointer));
    keep = 0;
    assert_done(
        cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    assert_done(cuCtxSynchronize());
}

static void a_destroyed_pool_ends_with_its_last_allocation(void **state)
{
    uint64_t before = seep_fake_device_used(0);
    CUmemoryPool pool, current;
    CUdeviceptr one, other;
    uint64_t pools;

    (void)state;
    assert_done(cuDeviceGetDefaultMemPool(&current, 0));
    pools = seep_fake_live_count(SEEP_FAKE_OTHER);
    assert_done(cuMemPoolCreate(&pool, &on_device));
    assert_done(cuDeviceSetMemPool(0, pool));
    assert_done(cuMemAllocAsync(&one, 100, NULL));
    assert_done(cuMemPoolDestroy(pool));
    assert_done(cuDeviceGetMemPool(&current, 0));
    assert_ptr_not_equal(current, pool);
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_ASYNC), 100);
    assert_int_equal(seep_fake_device_used(0), before + 2 * MIB);
    assert_int_equal(seep_fake_live_count(SEEP_FAKE_OTHER), pools + 1);
    assert_result(cuMemAllocFromPoolAsync(&other, 8, pool, NULL),
                  CUDA_ERROR_INVALID_VALUE);
    assert_result(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemFree_v2(one));
    assert_int_equal(seep_fake_device_used(0), before);
    assert_int_equal(seep_fake_live_count(SEEP_FAKE_OTHER), pools);
    assert_result(cuMemPoolDestroy(current), CUDA_ERROR_INVALID_VALUE);
}

static void a_pool_outlives_the_context_that_used_it(void **state)
{
    CUcontext context;
    CUdeviceptr pointer;

    (void)state;
    assert_done(cuCtxCreate_v2(&context, 0, 0));
    assert_done(cuMemAllocAsync(&pointer, 4096, NULL));
    assert_done(cuCtxDestroy_v2(context));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_ASYNC), 4096);
    assert_done(cuMemFreeAsync(pointer, NULL));
}

static void a_pointer_travels_through_a_pool(void **state)
{
    CUmemPoolPtrExportData data;
    CUdeviceptr pointer, imported;
    CUmemoryPool pool, other;
    char bytes[8] = "";
    int handle;

    (void)state;
    assert_done(cuMemPoolCreate(&pool, &on_device));
    assert_done(cuMemAllocFromPoolAsync(&pointer, 5000, pool, NULL));
    assert_done(cuMemcpyHtoD_v2(pointer, "shared", 7));
    assert_done(cuMemPoolExportToShareableHandle(
        &handle, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_done(cuMemPoolImportFromShareableHandle(
        &other, (void *)(intptr_t)handle,
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_done(cuMemPoolExportPointer(&data, pointer));
    assert_done(cuMemPoolImportPointer(&imported, other, &data));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_IMPORTED), 5000);
    assert_done(cuMemcpyDtoH_v2(bytes, imported, 7));
    assert_string_equal(bytes, "shared");
    assert_done(cuMemFreeAsync(imported, NULL));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_ASYNC), 5000);
    assert_done(cuMemFreeAsync(pointer, NULL));
    assert_done(cuMemPoolDestroy(other));
    assert_done(cuMemPoolDestroy(pool));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fake_test(what_is_freed_stays_reserved_until_the_device_is_idle),
        fake_test(a_threshold_keeps_and_a_trim_gives_back),
        fake_test(a_pool_gives_way_before_memory_is_out),
        fake_test(a_destroyed_pool_ends_with_its_last_allocation),
        fake_test(a_pool_outlives_the_context_that_used_it),
        fake_test(a_pointer_travels_through_a_pool),
    };

    return cmocka_run_group_tests(tests, fake_test_group, NULL);
}
