/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory that lives by the sparse arrays that it is mapped into: parts that are
 * unmapped, mapped anew, left, and gone with their array.
 *
 * Invariant: every handle is released; prints what the driver still has.
 */
#include <inttypes.h>
#include <stdio.h>

#include "../../fake/seep_fake.h"

#include "../../fake/cuda_abi.h"

#define UNIT ((size_t)2 << 20)

static int failures;

static void expect(CUresult result)
{
    failures += result != CUDA_SUCCESS;
}

static CUmipmappedArray make_array(void)
{
    const CUDA_ARRAY3D_DESCRIPTOR form = {.Width = 1024,
                                          .Height = 1024,
                                          .Format = CU_AD_FORMAT_FLOAT,
                                          .NumChannels = 1,
                                          .Flags = CUDA_ARRAY3D_SPARSE};
    CUmipmappedArray array = NULL;

    expect(cuMipmappedArrayCreate(&array, &form, 4));
    return array;
}

static void change(CUmipmappedArray array, unsigned int level,
                   CUmemOperationType operation,
                   CUmemGenericAllocationHandle handle)
{
    CUarrayMapInfo map = {.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                          .resource = {.mipmap = array},
                          .memOperationType = operation,
                          .memHandle = {handle}};

    map.subresource.sparseLevel.level = level;
    expect(cuMemMapArrayAsync(&map, 1, NULL));
}

static __attribute__((noinline)) void map(CUmipmappedArray array,
                                          unsigned int level, size_t bytes)
{
    const CUmemAllocationProp on_device = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    CUmemGenericAllocationHandle handle = 0;

    expect(cuMemCreate(&handle, bytes, &on_device, 0));
    change(array, level, CU_MEM_OPERATION_TYPE_MAP, handle);
    expect(cuMemRelease(handle));
}

int main(void)
{
    CUcontext context = NULL;
    CUmipmappedArray kept, gone;

    expect(cuInit(0));
    expect(cuDevicePrimaryCtxRetain(&context, 0));
    expect(cuCtxSetCurrent(context));
    kept = make_array();
    gone = make_array();
    for (unsigned int level = 0; level < 3; level++) {
        map(kept, level, UNIT << level);
        map(gone, level, UNIT << level);
    }
    change(kept, 1, CU_MEM_OPERATION_TYPE_UNMAP, 0);
    map(kept, 1, 8 * UNIT);
    change(kept, 0, CU_MEM_OPERATION_TYPE_UNMAP, 0);
    expect(cuMipmappedArrayDestroy(gone));
    printf("{\"failures\": %d, \"physical_bytes\": %" PRIu64 "}\n", failures,
           seep_fake_live_bytes(SEEP_FAKE_PHYSICAL));
    return failures != 0;
}
