/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The driver's entry points as a program got hold of them, by one door. */
#ifndef SEEP_TESTS_CUDA_DOORS_H
#define SEEP_TESTS_CUDA_DOORS_H

#include <stdbool.h>

#include "../../fake/cuda_abi.h"

/* X(exported name, base name, version): none of these has a twin ... */
#define CUDA_DOORS_PLAIN(X)                                                \
    X(cuInit, cuInit, 2000)                                                \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)            \
    X(cuCtxSetCurrent, cuCtxSetCurrent, 4000)                              \
    X(cuStreamCreate, cuStreamCreate, 2000)                                \
    X(cuMemAlloc_v2, cuMemAlloc, 3020)                                     \
    X(cuMemAllocPitch_v2, cuMemAllocPitch, 3020)                           \
    X(cuMemAllocManaged, cuMemAllocManaged, 6000)                          \
    X(cuMemFree_v2, cuMemFree, 3020)                                       \
    X(cuMemHostAlloc, cuMemHostAlloc, 2020)                                \
    X(cuMemAllocHost_v2, cuMemAllocHost, 3020)                             \
    X(cuMemFreeHost, cuMemFreeHost, 2000)                                  \
    X(cuMemHostRegister_v2, cuMemHostRegister, 6050)                       \
    X(cuMemHostUnregister, cuMemHostUnregister, 4000)                      \
    X(cuMemPoolCreate, cuMemPoolCreate, 11020)                             \
    X(cuMemCreate, cuMemCreate, 10020)                                     \
    X(cuMemRelease, cuMemRelease, 10020)                                   \
    X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000)     \
    X(cuMemMap, cuMemMap, 10020)                                           \
    X(cuMemUnmap, cuMemUnmap, 10020)                                       \
    X(cuMemSetAccess, cuMemSetAccess, 10020)                               \
    X(cuMemAddressReserve, cuMemAddressReserve, 10020)                     \
    X(cuMemAddressFree, cuMemAddressFree, 10020)                           \
    X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity, 10020) \
    X(cuArray3DCreate_v2, cuArray3DCreate, 3020)                           \
    X(cuArrayDestroy, cuArrayDestroy, 2000)                                \
    X(cuMipmappedArrayCreate, cuMipmappedArrayCreate, 5000)                \
    X(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy, 5000)              \
    X(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010)                          \
    X(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle, 11000)                    \
    X(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010)

/* ... and each of these has one, whose default stream is the thread's own. */
#define CUDA_DOORS_TWINS(X)                                    \
    X(cuMemAllocAsync, cuMemAllocAsync, 11020)                 \
    X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020) \
    X(cuMemFreeAsync, cuMemFreeAsync, 11020)

struct cuda_doors {
#define CUDA_DOORS_FIELD(name, base, version) __typeof__(name) *name;
    CUDA_DOORS_PLAIN(CUDA_DOORS_FIELD)
    CUDA_DOORS_TWINS(CUDA_DOORS_FIELD)
#undef CUDA_DOORS_FIELD
    void *library; /* NULL: linked */
};

/* false: there is no such door here, or it does not lead to every name. */
bool cuda_doors_open(const char *door, struct cuda_doors *into);

#endif
