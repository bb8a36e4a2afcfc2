/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arrays and mipmaps.
 *
 * Invariant: as in hooks.h. What is noted is what the format makes of the
 * extents; a sparse array has no memory of its own.
 */
#include "cuda/array_size.h"
#include "cuda/driver.h"
#include "cuda/hooks.h"
#include "cuda/hooks_sparse.h"
#include "cuda/note.h"

static void note(const struct seep_capture_start *from,
                 enum seep_cuda_kind kind, const void *handle,
                 const struct seep_cuda_array3d *array, uint64_t size_bytes)
{
    seep_cuda_ledger_add(from, &(struct seep_cuda_block){
                                   .kind = kind,
                                   .space = SEEP_SPACE_DEVICE,
                                   .device = seep_cuda_driver_device(),
                                   .silent = !seep_cuda_array_has_memory(array),
                                   .value = (uintptr_t)handle,
                                   .size_bytes = size_bytes,
                                   .context = seep_cuda_driver_context(),
                               });
}

static void note_array(const struct seep_capture_start *from,
                       const void *handle, struct seep_cuda_array3d array)
{
    note(from, SEEP_CUDA_ARRAY, handle, &array, seep_cuda_array_bytes(&array));
}

int seep_cuda_cuArrayCreate(void **array,
                            const struct seep_cuda_array_v1 *wanted)
{
    int (*real)(void **, const struct seep_cuda_array_v1 *) =
        SEEP_CUDA_REAL(cuArrayCreate);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(array, wanted);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_array(&start, *array,
                   (struct seep_cuda_array3d){.width = wanted->width,
                                              .height = wanted->height,
                                              .format = wanted->format,
                                              .channels_count =
                                                  wanted->channels_count});
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuArrayCreate);

int seep_cuda_cuArrayCreate_v2(void **array,
                               const struct seep_cuda_array *wanted)
{
    int (*real)(void **, const struct seep_cuda_array *) =
        SEEP_CUDA_REAL(cuArrayCreate_v2);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(array, wanted);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_array(&start, *array,
                   (struct seep_cuda_array3d){.width = wanted->width,
                                              .height = wanted->height,
                                              .format = wanted->format,
                                              .channels_count =
                                                  wanted->channels_count});
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuArrayCreate_v2);

int seep_cuda_cuArray3DCreate(void **array,
                              const struct seep_cuda_array3d_v1 *wanted)
{
    int (*real)(void **, const struct seep_cuda_array3d_v1 *) =
        SEEP_CUDA_REAL(cuArray3DCreate);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(array, wanted);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_array(
            &start, *array,
            (struct seep_cuda_array3d){.width = wanted->width,
                                       .height = wanted->height,
                                       .depth = wanted->depth,
                                       .format = wanted->format,
                                       .channels_count = wanted->channels_count,
                                       .flags = wanted->flags});
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuArray3DCreate);

int seep_cuda_cuArray3DCreate_v2(void **array,
                                 const struct seep_cuda_array3d *wanted)
{
    int (*real)(void **, const struct seep_cuda_array3d *) =
        SEEP_CUDA_REAL(cuArray3DCreate_v2);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(array, wanted);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_array(&start, *array, *wanted);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuArray3DCreate_v2);

int seep_cuda_cuArrayDestroy(void *array)
{
    int (*real)(void *) = SEEP_CUDA_REAL(cuArrayDestroy);
    uint32_t mark = seep_cuda_sparse_mark();
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going =
        seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_ARRAY, (uintptr_t)array);
    result = real(array);
    if (seep_cuda_came(going.nest, result)) {
        seep_cuda_sparse_gone(mark, array);
    }
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuArrayDestroy);

int seep_cuda_cuMipmappedArrayCreate(void **mipmap,
                                     const struct seep_cuda_array3d *wanted,
                                     unsigned int levels_count)
{
    int (*real)(void **, const struct seep_cuda_array3d *, unsigned int) =
        SEEP_CUDA_REAL(cuMipmappedArrayCreate);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(mipmap, wanted, levels_count);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note(&start, SEEP_CUDA_MIPMAP, *mipmap, wanted,
             seep_cuda_mipmap_bytes(wanted, levels_count));
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMipmappedArrayCreate);

int seep_cuda_cuMipmappedArrayDestroy(void *mipmap)
{
    int (*real)(void *) = SEEP_CUDA_REAL(cuMipmappedArrayDestroy);
    uint32_t mark = seep_cuda_sparse_mark();
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going =
        seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_MIPMAP, (uintptr_t)mipmap);
    result = real(mipmap);
    if (seep_cuda_came(going.nest, result)) {
        seep_cuda_sparse_gone(mark, mipmap);
    }
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuMipmappedArrayDestroy);
