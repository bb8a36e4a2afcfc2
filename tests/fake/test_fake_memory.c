/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fake driver's memory by pointer: accounts, limits, the errors of wrong
 * calls, and what a context takes along.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_frame.h"

static void an_allocation_is_live_until_it_is_freed(void **state)
{
    CUdeviceptr one, other;

    (void)state;
    assert_done(cuMemAlloc_v2(&one, 1000));
    assert_done(cuMemAlloc_v2(&other, 24));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_DEVICE), 1024);
    assert_int_equal(seep_fake_live_count(SEEP_FAKE_DEVICE), 2);
    assert_done(cuMemFree_v2(one));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_DEVICE), 24);
    assert_done(cuMemFree_v2(other));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_DEVICE), 0);
}

static void a_freed_address_is_given_out_again(void **state)
{
    CUdeviceptr one, other;

    (void)state;
    assert_done(cuMemAlloc_v2(&one, 70000));
    assert_done(cuMemFree_v2(one));
    assert_done(cuMemAlloc_v2(&other, 70000));
    assert_true(one == other);
    assert_done(cuMemFree_v2(other));
}

static void wrong_calls_get_the_drivers_own_errors(void **state)
{
    CUdeviceptr pointer;
    CUcontext context;
    void *host;

    (void)state;
    assert_result(cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
    assert_result(cuMemAlloc_v2(NULL, 8), CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemFree_v2(0));
    assert_result(cuMemFree_v2(4096), CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemAlloc_v2(&pointer, 8));
    assert_result(cuMemFree_v2(pointer + 1), CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemFree_v2(pointer));
    assert_result(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
    assert_result(cuMemFreeHost(&pointer), CUDA_ERROR_INVALID_VALUE);
    assert_result(cuMemHostUnregister(&pointer),
                  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    assert_result(cuMemHostAlloc(&host, 8, 64), CUDA_ERROR_INVALID_VALUE);
    assert_result(cuDevicePrimaryCtxRetain(&context, 16),
                  CUDA_ERROR_INVALID_DEVICE);
}

static void what_does_not_fit_is_out_of_memory(void **state)
{
    CUdeviceptr pointer = 7;
    CUdeviceptr rest;
    size_t free_bytes, total;

    (void)state;
    assert_done(cuMemGetInfo_v2(&free_bytes, &total));
    assert_result(cuMemAlloc_v2(&pointer, free_bytes + 1),
                  CUDA_ERROR_OUT_OF_MEMORY);
    assert_true(pointer == 7);
    assert_result(cuMemAlloc_v2(&pointer, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    assert_done(cuMemAlloc_v2(&rest, free_bytes));
    assert_result(cuMemAlloc_v2(&pointer, 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_done(cuMemFree_v2(rest));
    assert_done(cuMemAlloc_v2(&pointer, 1));
    assert_done(cuMemFree_v2(pointer));
}

static void what_is_used_is_what_the_driver_tells(void **state)
{
    size_t before, after, total;
    CUdeviceptr pointer;
    void *host;

    (void)state;
    assert_done(cuMemGetInfo_v2(&before, &total));
    assert_done(cuMemAlloc_v2(&pointer, 3 * MIB));
    assert_done(cuMemHostAlloc(&host, 5 * MIB, 0));
    assert_done(cuMemGetInfo_v2(&after, NULL));
    assert_int_equal(before - after, 3 * MIB);
    assert_int_equal(total - after, seep_fake_device_used(0));
    assert_done(cuMemFree_v2(pointer));
    assert_done(cuMemFreeHost(host));
}

static void others_hold(uint64_t bytes)
{
    const uint64_t of_each[] = {bytes, 0};
    FILE *file = fopen(getenv("SEEP_FAKE_CUDA_OTHERS"), "w");

    assert_non_null(file);
    assert_int_equal(fwrite(of_each, sizeof(of_each), 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

static void what_others_hold_is_not_free(void **state)
{
    CUdeviceptr pointer;
    size_t before_bytes, free_bytes;

    (void)state;
    assert_done(cuMemGetInfo_v2(&before_bytes, NULL));
    others_hold(before_bytes - 10 * MIB);
    assert_done(cuMemGetInfo_v2(&free_bytes, NULL));
    assert_int_equal(free_bytes, 10 * MIB);
    assert_result(cuMemAlloc_v2(&pointer, 11 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    assert_done(cuMemAlloc_v2(&pointer, 9 * MIB));
    others_hold(UINT64_MAX);
    assert_done(cuMemGetInfo_v2(&free_bytes, NULL));
    assert_int_equal(free_bytes, 0);
    others_hold(0);
    assert_done(cuMemFree_v2(pointer));
    assert_done(cuMemGetInfo_v2(&free_bytes, NULL));
    assert_int_equal(free_bytes, before_bytes);
}

static void a_pitch_is_counted_with_its_padding(void **state)
{
    CUdeviceptr pointer;
    size_t pitch;

    (void)state;
    assert_result(cuMemAllocPitch_v2(&pointer, &pitch, 100, 3, 5),
                  CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemAllocPitch_v2(&pointer, &pitch, 100, 3, 4));
    assert_int_equal(pitch, 512);
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_DEVICE), 1536);
    assert_done(cuMemFree_v2(pointer));
}

static void a_range_is_registered_once(void **state)
{
    static char block[8192];

    (void)state;
    assert_done(cuMemHostRegister_v2(block, 4096, 0));
    assert_result(cuMemHostRegister_v2(block + 100, 8, 0),
                  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_REGISTERED), 4096);
    assert_result(cuMemHostUnregister(block + 1),
                  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    assert_done(cuMemHostUnregister(block));
    assert_done(cuMemHostRegister(block, 8192, 0));
    assert_done(cuMemHostUnregister(block));
}

static void bytes_come_back_as_they_went(void **state)
{
    char out[16] = "";
    CUdeviceptr one, other;

    (void)state;
    assert_done(cuMemAlloc_v2(&one, 16));
    assert_done(cuMemAllocManaged(&other, 16, CU_MEM_ATTACH_GLOBAL));
    assert_done(cuMemcpyHtoD_v2(one, "to and fro", 11));
    assert_done(cuMemcpyDtoDAsync_v2(other, one, 11, NULL));
    assert_done(cuMemcpyDtoH_v2_ptds(out, other, 11));
    assert_string_equal(out, "to and fro");
    assert_result(cuMemcpyDtoH_v2(out, one, 17), CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemsetD32_v2(one, 0x41414141, 4));
    assert_done(cuMemcpyDtoH_v2(out, one + 8, 4));
    assert_memory_equal(out, "AAAA", 4);
    assert_done(cuMemFree_v2(one));
    assert_done(cuMemFree_v2(other));
}

static void a_context_takes_its_own_along(void **state)
{
    CUcontext context, found;
    CUdeviceptr mine, its;
    void *host;

    (void)state;
    assert_done(cuMemAlloc_v2(&mine, 100));
    assert_done(cuCtxCreate_v2(&context, 0, 1));
    assert_done(cuMemAlloc_v2(&its, 4000));
    assert_done(cuMemAllocHost_v2(&host, 300));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_DEVICE), 4100);
    assert_done(cuCtxDestroy_v2(context));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_DEVICE), 100);
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_PINNED), 0);
    assert_int_equal(seep_fake_device_used(1), 0);
    assert_done(cuCtxGetCurrent(&found));
    assert_ptr_not_equal(found, context);
    assert_result(cuMemFree_v2(its), CUDA_ERROR_INVALID_VALUE);
    assert_result(cuCtxDestroy_v2(context), CUDA_ERROR_INVALID_CONTEXT);
    assert_done(cuMemFree_v2(mine));
}

static void a_reset_empties_the_primary_context(void **state)
{
    CUdeviceptr pointer, pooled;
    CUcontext current;

    (void)state;
    assert_done(cuMemAlloc_v2(&pointer, 100));
    assert_done(cuMemAllocAsync(&pooled, 200, NULL));
    assert_done(cuDevicePrimaryCtxReset(0));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_DEVICE), 0);
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_ASYNC), 200);
    assert_done(cuCtxGetCurrent(&current));
    assert_non_null(current);
    assert_done(cuMemAlloc_v2(&pointer, 100));
    assert_done(cuDevicePrimaryCtxReset_v2(0));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_DEVICE), 0);
    assert_done(cuMemFreeAsync(pooled, NULL));
}

static void without_a_context_nothing_is_allocated(void **state)
{
    CUcontext context;
    CUdeviceptr pointer;
    size_t bytes;

    (void)state;
    assert_done(cuCtxPopCurrent_v2(&context));
    assert_result(cuMemAlloc_v2(&pointer, 8), CUDA_ERROR_INVALID_CONTEXT);
    assert_result(cuMemAllocAsync(&pointer, 8, NULL),
                  CUDA_ERROR_INVALID_CONTEXT);
    assert_result(cuMemGetInfo_v2(&bytes, &bytes), CUDA_ERROR_INVALID_CONTEXT);
    assert_done(cuCtxPushCurrent_v2(context));
}

static void a_pointer_is_known_by_its_attributes(void **state)
{
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    unsigned int type = 7;
    size_t bytes = 7;
    void *values[] = {&type, &bytes};
    CUdeviceptr pointer, base;
    int ordinal = -1;

    (void)state;
    assert_done(cuMemAlloc_v2(&pointer, 600));
    assert_done(cuPointerGetAttribute(
        &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer + 5));
    assert_int_equal(ordinal, 0);
    assert_done(cuPointerGetAttributes(2, which, values, pointer + 599));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(bytes, 600);
    assert_done(cuMemGetAddressRange_v2(&base, &bytes, pointer + 30));
    assert_true(base == pointer);
    assert_result(cuPointerGetAttribute(
                      &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4096),
                  CUDA_ERROR_INVALID_VALUE);
    assert_done(cuPointerGetAttributes(2, which, values, 4096));
    assert_int_equal(type, 0);
    assert_done(cuMemFree_v2(pointer));
}

static void the_planted_failure_comes_once(void **state)
{
    CUdeviceptr one, other;

    (void)state;
    seep_fake_fail(2, CUDA_ERROR_OUT_OF_MEMORY);
    assert_done(cuMemAlloc_v2(&one, 8));
    assert_result(cuMemAllocAsync(&other, 8, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    assert_done(cuMemAlloc_v2(&other, 8));
    assert_done(cuMemFree_v2(one));
    assert_done(cuMemFree_v2(other));
}

static void an_array_has_the_size_of_its_form(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR form = {.Width = 10,
                                    .Height = 4,
                                    .Format = CU_AD_FORMAT_FLOAT,
                                    .NumChannels = 2};
    CUmipmappedArray mipmap;
    CUarray array, level;

    (void)state;
    assert_done(cuArray3DCreate_v2(&array, &form));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_ARRAY), 320);
    assert_done(cuArrayDestroy(array));
    assert_result(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
    assert_done(cuMipmappedArrayCreate(&mipmap, &form, 3));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_ARRAY), 320 + 80 + 16);
    assert_done(cuMipmappedArrayGetLevel(&level, mipmap, 1));
    assert_result(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
    assert_done(cuMipmappedArrayDestroy(mipmap));
    form.Flags = CUDA_ARRAY3D_SPARSE;
    assert_done(cuArray3DCreate_v2(&array, &form));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_ARRAY), 0);
    assert_done(cuArrayDestroy(array));
}

static void a_module_takes_memory_that_no_allocation_shows(void **state)
{
    uint64_t before;
    CUmodule module;

    (void)state;
    before = seep_fake_device_used(0);
    assert_done(cuModuleLoadData(&module, "image"));
    assert_true(seep_fake_device_used(0) > before);
    assert_done(cuModuleUnload(module));
    assert_int_equal(seep_fake_device_used(0), before);
    assert_result(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
}

struct work {
    CUcontext context;
    unsigned seed;
    uint64_t left_bytes;
};

/* Allocates and frees at random; keeps what it holds at the end. */
static void *be_busy(void *argument)
{
    struct work *work = argument;
    CUdeviceptr held[64] = {0};
    uint64_t bytes[64] = {0};

    cuCtxSetCurrent(work->context);
    for (int i = 0; i < 4000; i++) {
        unsigned place = (work->seed = work->seed * 1103515245 + 12345) >> 26;

        if (held[place] != 0) {
            cuMemFree_v2(held[place]);
            work->left_bytes -= bytes[place];
            held[place] = 0;
        } else {
            bytes[place] = 1 + work->seed % 5000;
            if ((place % 2 == 0 ? cuMemAlloc_v2(&held[place], bytes[place])
                                : cuMemAllocAsync(&held[place], bytes[place],
                                                  NULL)) == CUDA_SUCCESS) {
                work->left_bytes += bytes[place];
            }
        }
    }
    return NULL;
}

static void eight_threads_leave_the_truth(void **state)
{
    struct work work[8] = {0};
    pthread_t threads[8];
    uint64_t left_bytes = 0;
    CUcontext context;

    (void)state;
    assert_done(cuCtxGetCurrent(&context));
    for (unsigned i = 0; i < 8; i++) {
        work[i] = (struct work){.context = context, .seed = i};
        assert_int_equal(pthread_create(&threads[i], NULL, be_busy, &work[i]),
                         0);
    }
    for (unsigned i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        left_bytes += work[i].left_bytes;
    }
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_DEVICE) +
                         seep_fake_live_bytes(SEEP_FAKE_ASYNC),
                     left_bytes);
    assert_true(left_bytes > 0);
}

/* Pool allocations outlive their context: this one comes last. */
static int leave(void **state)
{
    (void)state;
    return cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fake_test(an_allocation_is_live_until_it_is_freed),
        fake_test(a_freed_address_is_given_out_again),
        fake_test(wrong_calls_get_the_drivers_own_errors),
        fake_test(what_does_not_fit_is_out_of_memory),
        fake_test(what_is_used_is_what_the_driver_tells),
        fake_test(what_others_hold_is_not_free),
        fake_test(a_pitch_is_counted_with_its_padding),
        fake_test(a_range_is_registered_once),
        fake_test(bytes_come_back_as_they_went),
        fake_test(a_context_takes_its_own_along),
        fake_test(a_reset_empties_the_primary_context),
        fake_test(without_a_context_nothing_is_allocated),
        fake_test(a_pointer_is_known_by_its_attributes),
        fake_test(the_planted_failure_comes_once),
        fake_test(an_array_has_the_size_of_its_form),
        fake_test(a_module_takes_memory_that_no_allocation_shows),
        cmocka_unit_test_setup_teardown(eight_threads_leave_the_truth,
                                        fake_test_begin, leave),
    };

    return cmocka_run_group_tests(tests, fake_test_group, NULL);
}
