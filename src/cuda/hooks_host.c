/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of the host: pinned, which the driver allocates, and registered, which
 * somebody else has.
 *
 * Invariant: as in hooks.h. Registered memory is no new memory: it is counted
 * by itself, and where it was allocated too.
 */
#include "cuda/hooks.h"
#include "cuda/note.h"

int seep_cuda_cuMemHostAlloc(void **pointer, size_t size_bytes,
                             unsigned int flags)
{
    int (*real)(void **, size_t, unsigned int) = SEEP_CUDA_REAL(cuMemHostAlloc);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes, flags);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note(&start, SEEP_CUDA_HOST, SEEP_SPACE_PINNED, -1,
                       (uintptr_t)*pointer, size_bytes);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemHostAlloc);

int seep_cuda_cuMemAllocHost(void **pointer, unsigned int size_bytes)
{
    int (*real)(void **, unsigned int) = SEEP_CUDA_REAL(cuMemAllocHost);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note(&start, SEEP_CUDA_HOST, SEEP_SPACE_PINNED, -1,
                       (uintptr_t)*pointer, size_bytes);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAllocHost);

int seep_cuda_cuMemAllocHost_v2(void **pointer, size_t size_bytes)
{
    int (*real)(void **, size_t) = SEEP_CUDA_REAL(cuMemAllocHost_v2);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note(&start, SEEP_CUDA_HOST, SEEP_SPACE_PINNED, -1,
                       (uintptr_t)*pointer, size_bytes);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAllocHost_v2);

int seep_cuda_cuMemFreeHost(void *pointer)
{
    int (*real)(void *) = SEEP_CUDA_REAL(cuMemFreeHost);
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going =
        seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_HOST, (uintptr_t)pointer);
    result = real(pointer);
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuMemFreeHost);

int seep_cuda_cuMemHostRegister(void *pointer, size_t size_bytes,
                                unsigned int flags)
{
    int (*real)(void *, size_t, unsigned int) =
        SEEP_CUDA_REAL(cuMemHostRegister);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes, flags);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note(&start, SEEP_CUDA_REGISTERED, SEEP_SPACE_REGISTERED, -1,
                       (uintptr_t)pointer, size_bytes);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemHostRegister);

int seep_cuda_cuMemHostRegister_v2(void *pointer, size_t size_bytes,
                                   unsigned int flags)
{
    int (*real)(void *, size_t, unsigned int) =
        SEEP_CUDA_REAL(cuMemHostRegister_v2);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes, flags);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note(&start, SEEP_CUDA_REGISTERED, SEEP_SPACE_REGISTERED, -1,
                       (uintptr_t)pointer, size_bytes);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemHostRegister_v2);

int seep_cuda_cuMemHostUnregister(void *pointer)
{
    int (*real)(void *) = SEEP_CUDA_REAL(cuMemHostUnregister);
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going = seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_REGISTERED,
                           (uintptr_t)pointer);
    result = real(pointer);
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuMemHostUnregister);
