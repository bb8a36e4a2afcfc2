/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fake driver's virtual memory management and its imports: physical memory
 * lives while a handle or a mapping does.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_frame.h"

#define UNIT (2 * MIB)

static const CUmemAllocationProp on_device = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};
static const CUmemAccessDesc both_ways = {
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static uint64_t physical(void)
{
    return seep_fake_live_bytes(SEEP_FAKE_PHYSICAL);
}

static void memory_lives_while_a_mapping_does(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;

    (void)state;
    assert_done(cuMemCreate(&handle, UNIT, &on_device, 0));
    assert_done(cuMemAddressReserve(&address, 2 * UNIT, 0, 0, 0));
    assert_done(cuMemMap(address, UNIT, 0, handle, 0));
    assert_done(cuMemRelease(handle));
    assert_int_equal(physical(), UNIT);
    assert_result(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    assert_result(cuMemAddressFree(address, 2 * UNIT),
                  CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemUnmap(address, UNIT));
    assert_int_equal(physical(), 0);
    assert_result(cuMemUnmap(address, UNIT), CUDA_ERROR_INVALID_VALUE);
    assert_result(cuMemAddressFree(address, UNIT), CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemAddressFree(address, 2 * UNIT));
    assert_result(cuMemAddressFree(address, 2 * UNIT),
                  CUDA_ERROR_INVALID_VALUE);
}

static void memory_lives_while_a_handle_does(void **state)
{
    CUmemGenericAllocationHandle handle, again;
    CUdeviceptr address;

    (void)state;
    assert_done(cuMemCreate(&handle, UNIT, &on_device, 0));
    assert_done(cuMemAddressReserve(&address, UNIT, 0, 0, 0));
    assert_done(cuMemMap(address, UNIT, 0, handle, 0));
    assert_done(
        cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(address + 77)));
    assert_true(again == handle);
    assert_done(cuMemRelease(handle));
    assert_done(cuMemUnmap(address, UNIT));
    assert_int_equal(physical(), UNIT);
    assert_done(cuMemRelease(again));
    assert_int_equal(physical(), 0);
    assert_done(cuMemAddressFree(address, UNIT));
}

static void one_unmap_drops_every_mapping_inside(void **state)
{
    CUmemGenericAllocationHandle one, other;
    CUdeviceptr address;

    (void)state;
    assert_done(cuMemCreate(&one, 2 * UNIT, &on_device, 0));
    assert_done(cuMemCreate(&other, UNIT, &on_device, 0));
    assert_done(cuMemAddressReserve(&address, 4 * UNIT, 0, 0, 0));
    assert_done(cuMemMap(address, 2 * UNIT, 0, one, 0));
    assert_done(cuMemMap(address + 2 * UNIT, UNIT, 0, other, 0));
    assert_result(cuMemMap(address + UNIT, UNIT, 0, other, 0),
                  CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemRelease(one));
    assert_done(cuMemRelease(other));
    assert_result(cuMemUnmap(address, UNIT), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(physical(), 3 * UNIT);
    assert_done(cuMemUnmap(address, 3 * UNIT));
    assert_int_equal(physical(), 0);
    assert_done(cuMemAddressFree(address, 4 * UNIT));
}

static void two_mappings_show_the_same_bytes(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    char bytes[8] = "";

    (void)state;
    assert_done(cuMemCreate(&handle, UNIT, &on_device, 0));
    assert_done(cuMemAddressReserve(&address, 2 * UNIT, 0, 0, 0));
    assert_done(cuMemMap(address, UNIT, 0, handle, 0));
    assert_done(cuMemMap(address + UNIT, UNIT, 0, handle, 0));
    assert_done(cuMemSetAccess(address, 2 * UNIT, &both_ways, 1));
    assert_done(cuMemcpyHtoD_v2(address + 9, "twice", 6));
    assert_done(cuMemcpyDtoH_v2(bytes, address + UNIT + 9, 6));
    assert_string_equal(bytes, "twice");
    assert_done(cuMemUnmap(address, 2 * UNIT));
    assert_result(cuMemSetAccess(address, UNIT, &both_ways, 1),
                  CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemRelease(handle));
    assert_done(cuMemAddressFree(address, 2 * UNIT));
}

static void no_context_is_needed_and_none_takes_it_along(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUcontext context;

    (void)state;
    assert_done(cuCtxPopCurrent_v2(&context));
    assert_done(cuMemCreate(&handle, UNIT, &on_device, 0));
    assert_done(cuDevicePrimaryCtxReset(0));
    assert_int_equal(physical(), UNIT);
    assert_done(cuMemRelease(handle));
    assert_done(cuCtxPushCurrent_v2(context));
}

static void sizes_must_be_whole_units(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;

    (void)state;
    assert_result(cuMemCreate(&handle, UNIT - 1, &on_device, 0),
                  CUDA_ERROR_INVALID_VALUE);
    assert_result(cuMemCreate(&handle, 1024 * MIB, &on_device, 0),
                  CUDA_ERROR_OUT_OF_MEMORY);
    assert_result(cuMemAddressReserve(&address, 4096, 0, 0, 0),
                  CUDA_ERROR_INVALID_VALUE);
    assert_result(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
}

static void an_imported_handle_keeps_the_memory(void **state)
{
    CUmemGenericAllocationHandle handle, imported;
    int shared;

    (void)state;
    assert_done(cuMemCreate(&handle, UNIT, &on_device, 0));
    assert_done(cuMemExportToShareableHandle(
        &shared, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_done(cuMemImportFromShareableHandle(
        &imported, (void *)(intptr_t)shared,
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(shared);
    assert_done(cuMemRelease(handle));
    assert_int_equal(physical(), UNIT);
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_IMPORTED), UNIT);
    assert_done(cuMemRelease(imported));
    assert_int_equal(physical(), 0);
}

static void an_ipc_handle_is_counted(void **state)
{
    CUdeviceptr pointer, one, other;
    CUipcMemHandle handle;
    char bytes[8] = "";

    (void)state;
    assert_done(cuMemAlloc_v2(&pointer, 3000));
    assert_done(cuMemcpyHtoD_v2(pointer, "ours", 5));
    assert_done(cuIpcGetMemHandle(&handle, pointer));
    assert_done(cuIpcOpenMemHandle_v2(&one, handle, 1));
    assert_done(cuIpcOpenMemHandle(&other, handle, 1));
    assert_true(one == other);
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_IMPORTED), 3000);
    assert_done(cuMemcpyDtoH_v2(bytes, one, 5));
    assert_string_equal(bytes, "ours");
    assert_done(cuIpcCloseMemHandle(one));
    assert_int_equal(seep_fake_live_count(SEEP_FAKE_IMPORTED), 1);
    assert_done(cuIpcCloseMemHandle(one));
    assert_result(cuIpcCloseMemHandle(one), CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemFree_v2(pointer));
    assert_result(cuIpcOpenMemHandle_v2(&one, handle, 1),
                  CUDA_ERROR_INVALID_VALUE);
}

/* What the next test starts this program again for. */
static int read_as_another(const char *text)
{
    CUipcMemHandle handle;
    CUcontext context;
    CUdeviceptr shared;
    char bytes[8] = "";
    unsigned value;

    for (size_t i = 0; i < sizeof(handle.reserved); i++) {
        if (sscanf(text + 2 * i, "%2x", &value) != 1) {
            return 2;
        }
        handle.reserved[i] = (char)value;
    }
    if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != 0 ||
        cuIpcOpenMemHandle_v2(&shared, handle, 1) != CUDA_SUCCESS ||
        cuMemcpyDtoH_v2(bytes, shared, 7) != CUDA_SUCCESS ||
        strcmp(bytes, "theirs") != 0 ||
        seep_fake_live_bytes(SEEP_FAKE_IMPORTED) != 700) {
        return 1;
    }
    return cuIpcCloseMemHandle(shared) == CUDA_SUCCESS ? 0 : 1;
}

static void another_process_reads_by_an_ipc_handle(void **state)
{
    char text[2 * sizeof(CUipcMemHandle) + 1];
    CUipcMemHandle handle;
    CUdeviceptr pointer;
    int ended = -1;
    pid_t child;

    (void)state;
    assert_done(cuMemAlloc_v2(&pointer, 700));
    assert_done(cuMemcpyHtoD_v2(pointer, "theirs", 7));
    assert_done(cuIpcGetMemHandle(&handle, pointer));
    for (size_t i = 0; i < sizeof(handle.reserved); i++) {
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)handle.reserved[i]);
    }
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "test_fake_vmm", text, (char *)NULL);
        _exit(3);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    assert_done(cuMemFree_v2(pointer));
}

static void a_buffer_outlives_its_external_memory(void **state)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC how;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC part;
    CUexternalMemory memory;
    CUdeviceptr buffer;

    (void)state;
    memset(&how, 0, sizeof(how));
    memset(&part, 0, sizeof(part));
    how.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    how.handle.fd = memfd_create("external", 0);
    how.size = 8192;
    part.size = 4096;
    assert_true(how.handle.fd >= 0);
    assert_int_equal(ftruncate(how.handle.fd, 8192), 0);
    assert_done(cuImportExternalMemory(&memory, &how));
    assert_done(cuExternalMemoryGetMappedBuffer(&buffer, memory, &part));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_EXTERNAL), 12288);
    assert_done(cuDestroyExternalMemory(memory));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_EXTERNAL), 4096);
    assert_done(cuMemsetD8_v2(buffer, 1, 4096));
    assert_done(cuMemFree_v2(buffer));
    assert_result(cuDestroyExternalMemory(memory), CUDA_ERROR_INVALID_HANDLE);
}

static void a_sparse_array_ends_with_what_is_mapped_into_it(void **state)
{
    const CUDA_ARRAY3D_DESCRIPTOR form = {.Width = 64,
                                          .Height = 64,
                                          .Format = CU_AD_FORMAT_FLOAT,
                                          .NumChannels = 1,
                                          .Flags = CUDA_ARRAY3D_SPARSE};
    CUarrayMapInfo map = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
                          .memOperationType = CU_MEM_OPERATION_TYPE_MAP};
    CUmemGenericAllocationHandle handle;
    CUarray array;

    (void)state;
    assert_done(cuMemCreate(&handle, UNIT, &on_device, 0));
    assert_done(cuArray3DCreate_v2(&array, &form));
    map.resource.array = array;
    map.memHandle.memHandle = handle;
    assert_done(cuMemMapArrayAsync(&map, 1, NULL));
    assert_done(cuMemRelease(handle));
    assert_int_equal(physical(), UNIT);
    assert_done(cuArrayDestroy(array));
    assert_int_equal(physical(), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        fake_test(memory_lives_while_a_mapping_does),
        fake_test(memory_lives_while_a_handle_does),
        fake_test(one_unmap_drops_every_mapping_inside),
        fake_test(two_mappings_show_the_same_bytes),
        fake_test(no_context_is_needed_and_none_takes_it_along),
        fake_test(sizes_must_be_whole_units),
        fake_test(an_imported_handle_keeps_the_memory),
        fake_test(an_ipc_handle_is_counted),
        fake_test(another_process_reads_by_an_ipc_handle),
        fake_test(a_buffer_outlives_its_external_memory),
        fake_test(a_sparse_array_ends_with_what_is_mapped_into_it),
    };

    if (argc == 2) {
        return read_as_another(argv[1]);
    }
    return cmocka_run_group_tests(tests, fake_test_group, NULL);
}
