/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first ABI, with pointers and sizes of 32 bits: still exported by the real
 * driver, and of no use on a machine of 64.
 *
 * Invariant: each refuses; a caller that came here was given the wrong variant.
 */
#include "fake.h"

#define REFUSED CUDA_ERROR_NOT_SUPPORTED

FAKE_DEFINE(cuMemGetInfo, (unsigned int *free_bytes, unsigned int *total),
            ((void)free_bytes, (void)total, REFUSED))
FAKE_DEFINE(cuMemAlloc, (CUdeviceptr_v1 * pointer, unsigned int bytes),
            ((void)pointer, (void)bytes, REFUSED))
FAKE_DEFINE(cuMemAllocPitch,
            (CUdeviceptr_v1 * pointer, unsigned int *pitch, unsigned int width,
             unsigned int height, unsigned int element),
            ((void)pointer, (void)pitch, (void)width, (void)height,
             (void)element, REFUSED))
FAKE_DEFINE(cuMemFree, (CUdeviceptr_v1 pointer), ((void)pointer, REFUSED))
FAKE_DEFINE(cuMemGetAddressRange,
            (CUdeviceptr_v1 * base, unsigned int *bytes,
             CUdeviceptr_v1 pointer),
            ((void)base, (void)bytes, (void)pointer, REFUSED))
FAKE_DEFINE(cuMemAllocHost, (void **pointer, unsigned int bytes),
            ((void)pointer, (void)bytes, REFUSED))
FAKE_DEFINE(cuMemHostGetDevicePointer,
            (CUdeviceptr_v1 * pointer, void *host, unsigned int flags),
            ((void)pointer, (void)host, (void)flags, REFUSED))
