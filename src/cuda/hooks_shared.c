/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of other processes and of other libraries.
 *
 * Invariant: as in hooks.h. It is nobody's growth here, but whoever does not
 * close it keeps it from its owner.
 */
#include "cuda/array_size.h"
#include "cuda/driver.h"
#include "cuda/hooks.h"
#include "cuda/note.h"

static void note_opened(const struct seep_capture_start *from, uint64_t pointer)
{
    seep_cuda_note(from, SEEP_CUDA_IPC, SEEP_SPACE_IMPORTED,
                   seep_cuda_driver_device(), pointer,
                   seep_cuda_driver_size_of(pointer));
}

/* A part of an external memory, which it keeps alive: no bytes of its own. */
static void note_part(const struct seep_capture_start *from,
                      enum seep_cuda_kind kind, uint64_t value,
                      const void *memory, uint64_t size_bytes)
{
    seep_cuda_ledger_add(from, &(struct seep_cuda_block){
                                   .kind = kind,
                                   .space = SEEP_SPACE_IMPORTED,
                                   .device = seep_cuda_driver_device(),
                                   .silent = true,
                                   .value = value,
                                   .size_bytes = size_bytes,
                                   .context = seep_cuda_driver_context(),
                                   .holder = (uintptr_t)memory,
                                   .holder_kind = SEEP_CUDA_EXTERNAL,
                               });
}

int seep_cuda_cuIpcOpenMemHandle(uint64_t *pointer,
                                 struct seep_cuda_ipc_handle handle,
                                 unsigned int flags)
{
    int (*real)(uint64_t *, struct seep_cuda_ipc_handle, unsigned int) =
        SEEP_CUDA_REAL(cuIpcOpenMemHandle);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, handle, flags);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_opened(&start, *pointer);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuIpcOpenMemHandle);

int seep_cuda_cuIpcOpenMemHandle_v2(uint64_t *pointer,
                                    struct seep_cuda_ipc_handle handle,
                                    unsigned int flags)
{
    int (*real)(uint64_t *, struct seep_cuda_ipc_handle, unsigned int) =
        SEEP_CUDA_REAL(cuIpcOpenMemHandle_v2);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, handle, flags);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_opened(&start, *pointer);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuIpcOpenMemHandle_v2);

int seep_cuda_cuIpcCloseMemHandle(uint64_t pointer)
{
    int (*real)(uint64_t) = SEEP_CUDA_REAL(cuIpcCloseMemHandle);
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going = seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_IPC, pointer);
    result = real(pointer);
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuIpcCloseMemHandle);

int seep_cuda_cuMemPoolImportPointer(uint64_t *pointer, void *pool,
                                     void *shared)
{
    int (*real)(uint64_t *, void *, void *) =
        SEEP_CUDA_REAL(cuMemPoolImportPointer);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, pool, shared);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_ledger_add(
            &start, &(struct seep_cuda_block){
                        .kind = SEEP_CUDA_POINTER,
                        .space = SEEP_SPACE_IMPORTED,
                        .device = seep_cuda_driver_device_of(*pointer),
                        .value = *pointer,
                        .size_bytes = seep_cuda_driver_size_of(*pointer)});
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemPoolImportPointer);

int seep_cuda_cuImportExternalMemory(void **memory,
                                     const struct seep_cuda_external *wanted)
{
    int (*real)(void **, const struct seep_cuda_external *) =
        SEEP_CUDA_REAL(cuImportExternalMemory);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(memory, wanted);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note(&start, SEEP_CUDA_EXTERNAL, SEEP_SPACE_IMPORTED,
                       seep_cuda_driver_device(), (uintptr_t)*memory,
                       wanted->size_bytes);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuImportExternalMemory);

int seep_cuda_cuDestroyExternalMemory(void *memory)
{
    int (*real)(void *) = SEEP_CUDA_REAL(cuDestroyExternalMemory);
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going = seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_EXTERNAL,
                           (uintptr_t)memory);
    result = real(memory);
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuDestroyExternalMemory);

int seep_cuda_cuExternalMemoryGetMappedBuffer(
    uint64_t *pointer, void *memory,
    const struct seep_cuda_external_buffer *wanted)
{
    int (*real)(uint64_t *, void *, const struct seep_cuda_external_buffer *) =
        SEEP_CUDA_REAL(cuExternalMemoryGetMappedBuffer);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(pointer, memory, wanted);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_part(&start, SEEP_CUDA_POINTER, *pointer, memory,
                  wanted->size_bytes);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuExternalMemoryGetMappedBuffer);

int seep_cuda_cuExternalMemoryGetMappedMipmappedArray(
    void **mipmap, void *memory, const struct seep_cuda_external_mipmap *wanted)
{
    int (*real)(void **, void *, const struct seep_cuda_external_mipmap *) =
        SEEP_CUDA_REAL(cuExternalMemoryGetMappedMipmappedArray);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(mipmap, memory, wanted);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_part(&start, SEEP_CUDA_MIPMAP, (uintptr_t)*mipmap, memory,
                  seep_cuda_mipmap_bytes(&wanted->array, wanted->levels_count));
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuExternalMemoryGetMappedMipmappedArray);
