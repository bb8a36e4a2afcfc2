/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies and fills, done at the call: device memory is host memory here.
 *
 * Invariant: a device address is touched only where a live object covers all
 * of the range.
 */
#include <string.h>

#include "fake.h"

#define ON_DEVICE                                                         \
    (FAKE_FREED_BY_POINTER | FAKE_BIT(FAKE_IPC) | FAKE_BIT(FAKE_PINNED) | \
     FAKE_BIT(FAKE_REGISTERED))

static bool covered(CUdeviceptr at, size_t bytes)
{
    CUdeviceptr end = at + bytes;
    const struct fake_object *found = fake_around(at, ON_DEVICE);

    if (found != NULL) {
        return bytes <= found->size_bytes - (at - found->address);
    }
    /* Mappings may lie side by side. */
    while (at < end) {
        found = fake_around(at, FAKE_BIT(FAKE_MAP));
        if (found == NULL) {
            return false;
        }
        at = found->address + found->size_bytes;
    }
    return true;
}

static CUresult ready(CUstream stream)
{
    struct fake_stream_of of;

    return fake_stream(stream, &of);
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    if (bytes != 0) {
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    }
    return CUDA_SUCCESS;
}

static CUresult copy_in(CUdeviceptr to, const void *from, size_t bytes,
                        CUstream stream)
{
    CUresult why = ready(stream);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    return !covered(to, bytes) ? CUDA_ERROR_INVALID_VALUE
                               : copy(to, (uintptr_t)from, bytes);
}

static CUresult copy_out(void *to, CUdeviceptr from, size_t bytes,
                         CUstream stream)
{
    CUresult why = ready(stream);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    return !covered(from, bytes) ? CUDA_ERROR_INVALID_VALUE
                                 : copy((uintptr_t)to, from, bytes);
}

static CUresult copy_within(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                            CUstream stream)
{
    return covered(from, bytes)
               ? copy_in(to, (const void *)(uintptr_t)from, bytes, stream)
               : CUDA_ERROR_INVALID_VALUE;
}

/* Any pointer: what no object knows is the caller's host memory. */
static CUresult copy_any(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                         CUstream stream)
{
    CUresult why = ready(stream);

    return why != CUDA_SUCCESS ? why : copy(to, from, bytes);
}

static CUresult fill_bytes(CUdeviceptr to, unsigned char value, size_t count,
                           CUstream stream)
{
    CUresult why = ready(stream);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (!covered(to, count)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset((void *)(uintptr_t)to, value, count);
    return CUDA_SUCCESS;
}

static CUresult fill_words(CUdeviceptr to, unsigned int value, size_t count,
                           CUstream stream)
{
    unsigned int *words = (unsigned int *)(uintptr_t)to;
    CUresult why = ready(stream);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (to % sizeof(value) != 0 || count > SIZE_MAX / sizeof(value) ||
        !covered(to, count * sizeof(value))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        words[i] = value;
    }
    return CUDA_SUCCESS;
}

static CUresult known(CUdeviceptr at, size_t bytes)
{
    CUresult why = fake_no_context();

    return why != CUDA_SUCCESS || covered(at, bytes) ? why
                                                     : CUDA_ERROR_INVALID_VALUE;
}

#define PER_THREAD CU_STREAM_PER_THREAD

/* A synchronous call and its twin differ in the stream that they wait for. */
#define SYNC(name, parameters, function, ...)                  \
    FAKE_DEFINE(name, parameters, function(__VA_ARGS__, NULL)) \
    FAKE_DEFINE(name##_ptds, parameters, function(__VA_ARGS__, PER_THREAD))
#define ASYNC(name, parameters, function, ...)                   \
    FAKE_DEFINE(name, parameters, function(__VA_ARGS__, stream)) \
    FAKE_DEFINE(name##_ptsz, parameters,                         \
                function(__VA_ARGS__, stream == NULL ? PER_THREAD : stream))

SYNC(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes), copy_any, to,
     from, bytes)
SYNC(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes), copy_in,
     to, from, bytes)
SYNC(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes), copy_out, to,
     from, bytes)
SYNC(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
     copy_within, to, from, bytes)
SYNC(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t count),
     fill_bytes, to, value, count)
SYNC(cuMemsetD32_v2, (CUdeviceptr to, unsigned int value, size_t count),
     fill_words, to, value, count)
ASYNC(cuMemcpyAsync,
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
      copy_any, to, from, bytes)
ASYNC(cuMemcpyHtoDAsync_v2,
      (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
      copy_in, to, from, bytes)
ASYNC(cuMemcpyDtoHAsync_v2,
      (void *to, CUdeviceptr from, size_t bytes, CUstream stream), copy_out, to,
      from, bytes)
ASYNC(cuMemcpyDtoDAsync_v2,
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
      copy_within, to, from, bytes)
ASYNC(cuMemsetD8Async,
      (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),
      fill_bytes, to, value, count)
ASYNC(cuMemsetD32Async,
      (CUdeviceptr to, unsigned int value, size_t count, CUstream stream),
      fill_words, to, value, count)

#define BOTH(name, parameters, call)    \
    FAKE_DEFINE(name, parameters, call) \
    FAKE_DEFINE(name##_ptsz, parameters, call)

BOTH(cuMemPrefetchAsync,
     (CUdeviceptr at, size_t bytes, CUdevice to, CUstream stream),
     ((void)to, (void)stream, known(at, bytes)))
BOTH(cuMemPrefetchAsync_v2,
     (CUdeviceptr at, size_t bytes, CUmemLocation to, unsigned int flags,
      CUstream stream),
     ((void)to, (void)flags, (void)stream, known(at, bytes)))
FAKE_DEFINE(cuMemAdvise,
            (CUdeviceptr at, size_t bytes, CUmem_advise advice, CUdevice to),
            ((void)advice, (void)to, known(at, bytes)))
FAKE_DEFINE(cuMemAdvise_v2,
            (CUdeviceptr at, size_t bytes, CUmem_advise advice,
             CUmemLocation to),
            ((void)advice, (void)to, known(at, bytes)))
