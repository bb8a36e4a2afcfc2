/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of a device, and managed memory, given and taken at once.
 *
 * Invariant: as in hooks.h. What is noted is what was asked for, but of a
 * pitched allocation what its rows take.
 */
#include "cuda/hooks.h"
#include "cuda/note.h"

int seep_cuda_cuMemAlloc(uint32_t *pointer, unsigned int size_bytes)
{
    int (*real)(uint32_t *, unsigned int) = SEEP_CUDA_REAL(cuMemAlloc);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note_pointer(&start, SEEP_SPACE_DEVICE, *pointer, size_bytes);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAlloc);

int seep_cuda_cuMemAlloc_v2(uint64_t *pointer, size_t size_bytes)
{
    int (*real)(uint64_t *, size_t) = SEEP_CUDA_REAL(cuMemAlloc_v2);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note_pointer(&start, SEEP_SPACE_DEVICE, *pointer, size_bytes);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAlloc_v2);

int seep_cuda_cuMemAllocPitch(uint32_t *pointer, unsigned int *pitch_bytes,
                              unsigned int width_bytes, unsigned int height,
                              unsigned int element_bytes)
{
    int (*real)(uint32_t *, unsigned int *, unsigned int, unsigned int,
                unsigned int) = SEEP_CUDA_REAL(cuMemAllocPitch);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, pitch_bytes, width_bytes, height, element_bytes);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note_pointer(&start, SEEP_SPACE_DEVICE, *pointer,
                               (uint64_t)*pitch_bytes * height);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAllocPitch);

int seep_cuda_cuMemAllocPitch_v2(uint64_t *pointer, size_t *pitch_bytes,
                                 size_t width_bytes, size_t height,
                                 unsigned int element_bytes)
{
    int (*real)(uint64_t *, size_t *, size_t, size_t, unsigned int) =
        SEEP_CUDA_REAL(cuMemAllocPitch_v2);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, pitch_bytes, width_bytes, height, element_bytes);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note_pointer(&start, SEEP_SPACE_DEVICE, *pointer,
                               *pitch_bytes * height);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAllocPitch_v2);

int seep_cuda_cuMemAllocManaged(uint64_t *pointer, size_t size_bytes,
                                unsigned int flags)
{
    int (*real)(uint64_t *, size_t, unsigned int) =
        SEEP_CUDA_REAL(cuMemAllocManaged);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, size_bytes, flags);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note_pointer(&start, SEEP_SPACE_MANAGED, *pointer,
                               size_bytes);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAllocManaged);

int seep_cuda_cuMemFree(uint32_t pointer)
{
    int (*real)(uint32_t) = SEEP_CUDA_REAL(cuMemFree);
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going = seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_POINTER, pointer);
    result = real(pointer);
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuMemFree);

int seep_cuda_cuMemFree_v2(uint64_t pointer)
{
    int (*real)(uint64_t) = SEEP_CUDA_REAL(cuMemFree_v2);
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going = seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_POINTER, pointer);
    result = real(pointer);
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuMemFree_v2);
