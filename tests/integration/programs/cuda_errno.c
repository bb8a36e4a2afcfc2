/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What calls of the driver leave in errno, each by its result and its number.
 *
 * Invariant: a call's line depends on nothing but the driver.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "../../fake/cuda_abi.h"
#include "../../fake/seep_fake.h"
#include "fake_torch/fake_torch.h"

#define BYTES ((size_t)2 << 20)

#define SHOW(call)                                             \
    do {                                                       \
        int result;                                            \
                                                               \
        errno = 1;                                             \
        result = (int)(call);                                  \
        /* As an argument it might be read before the call. */ \
        printf("%s: %d, errno %d\n", #call, result, errno);    \
    } while (0)

static int report(void *block, int64_t bytes)
{
    report_memory(block, bytes, BYTES, BYTES, (struct device){DEVICE_CUDA, 0});
    return 0;
}

static void allocate(void)
{
    CUdeviceptr pointer = 0;
    void *host = NULL;
    size_t pitch = 0;

    SHOW(cuMemAlloc_v2(&pointer, BYTES));
    SHOW(cuMemFree_v2(pointer));
    SHOW(cuMemFree_v2(pointer));
    SHOW(cuMemAlloc_v2(&pointer, (size_t)1 << 50));
    SHOW(cuMemAllocPitch_v2(&pointer, &pitch, 100, 100, 4));
    SHOW(cuMemFreeAsync(pointer, NULL));
    SHOW(cuMemAllocManaged(&pointer, BYTES, 1));
    SHOW(cuMemFree_v2(pointer));
    SHOW(cuMemAllocAsync(&pointer, BYTES, NULL));
    SHOW(cuMemFreeAsync(pointer, NULL));
    SHOW(cuMemHostAlloc(&host, BYTES, 0));
    SHOW(cuMemFreeHost(host));
}

static void map(void)
{
    CUmemAllocationProp wanted = {.type = 1, .location = {.type = 1}};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;

    SHOW(cuMemCreate(&handle, BYTES, &wanted, 0));
    SHOW(cuMemAddressReserve(&address, BYTES, 0, 0, 0));
    SHOW(cuMemMap(address, BYTES, 0, handle, 0));
    SHOW(cuMemRelease(handle));
    SHOW(cuMemUnmap(address, BYTES));
    SHOW(cuMemAddressFree(address, BYTES));
}

int main(void)
{
    static char block;
    CUcontext context = NULL;

    SHOW(cuInit(0));
    SHOW(cuDevicePrimaryCtxRetain(&context, 0));
    SHOW(cuCtxSetCurrent(context));
    for (int i = 0; i < 2; i++) {
        allocate();
        map();
    }
    SHOW(report(&block, BYTES));
    SHOW(report(&block, -(int64_t)BYTES));
    SHOW(cuDevicePrimaryCtxReset_v2(0));
    SHOW(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}
