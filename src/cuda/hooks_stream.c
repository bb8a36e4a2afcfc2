/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory in the order of a stream, and the pools that it comes from.
 *
 * Invariant: as in hooks.h. Such memory outlives contexts and pools. While the
 * stream is captured nothing is allocated: the pointer is that of a graph's
 * node.
 */
#include "cuda/driver.h"
#include "cuda/hooks.h"
#include "cuda/note.h"

int seep_cuda_cuMemAllocAsync(uint64_t *pointer, size_t size_bytes,
                              void *stream)
{
    int (*real)(uint64_t *, size_t, void *) = SEEP_CUDA_REAL(cuMemAllocAsync);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes, stream);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note_pooled(&start, *pointer, size_bytes,
                              seep_cuda_driver_is_capturing(stream, false));
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAllocAsync);

int seep_cuda_cuMemAllocFromPoolAsync(uint64_t *pointer, size_t size_bytes,
                                      void *pool, void *stream)
{
    int (*real)(uint64_t *, size_t, void *, void *) =
        SEEP_CUDA_REAL(cuMemAllocFromPoolAsync);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes, pool, stream);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note_pooled(&start, *pointer, size_bytes,
                              seep_cuda_driver_is_capturing(stream, false));
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAllocFromPoolAsync);

int seep_cuda_cuMemFreeAsync(uint64_t pointer, void *stream)
{
    int (*real)(uint64_t, void *) = SEEP_CUDA_REAL(cuMemFreeAsync);
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going = seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_POINTER, pointer);
    result = real(pointer, stream);
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuMemFreeAsync);

int seep_cuda_cuMemAllocAsync_ptsz(uint64_t *pointer, size_t size_bytes,
                                   void *stream)
{
    int (*real)(uint64_t *, size_t, void *) =
        SEEP_CUDA_REAL(cuMemAllocAsync_ptsz);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes, stream);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note_pooled(&start, *pointer, size_bytes,
                              seep_cuda_driver_is_capturing(stream, true));
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAllocAsync_ptsz);

int seep_cuda_cuMemAllocFromPoolAsync_ptsz(uint64_t *pointer, size_t size_bytes,
                                           void *pool, void *stream)
{
    int (*real)(uint64_t *, size_t, void *, void *) =
        SEEP_CUDA_REAL(cuMemAllocFromPoolAsync_ptsz);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes, pool, stream);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note_pooled(&start, *pointer, size_bytes,
                              seep_cuda_driver_is_capturing(stream, true));
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAllocFromPoolAsync_ptsz);

int seep_cuda_cuMemFreeAsync_ptsz(uint64_t pointer, void *stream)
{
    int (*real)(uint64_t, void *) = SEEP_CUDA_REAL(cuMemFreeAsync_ptsz);
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going = seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_POINTER, pointer);
    result = real(pointer, stream);
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuMemFreeAsync_ptsz);
