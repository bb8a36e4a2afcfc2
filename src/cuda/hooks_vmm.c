/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Physical memory, reserved addresses, and the mappings between them.
 *
 * Invariant: as in hooks.h. Bytes belong to who created the handle, for as long
 * as it is held or mapped; addresses alone are no memory. No context is needed
 * for any of this; where there is one, its device is looked at.
 */
#include "cuda/driver.h"
#include "cuda/hooks.h"
#include "cuda/note.h"

/* Memory of a device, or of the host as what is pinned. */
static void note_handle(const struct seep_capture_start *from, uint64_t handle,
                        uint64_t size_bytes,
                        const struct seep_cuda_location *location)
{
    bool is_device = location->type == SEEP_CUDA_LOCATION_DEVICE;

    seep_cuda_ledger_add(
        from, &(struct seep_cuda_block){
                  .kind = SEEP_CUDA_HANDLE,
                  .space = is_device ? SEEP_SPACE_DEVICE : SEEP_SPACE_PINNED,
                  .device = is_device ? location->id : -1,
                  .value = handle,
                  .size_bytes = size_bytes,
              });
    seep_cuda_driver_look(seep_cuda_driver_device());
}

/* A handle of memory that is not this process's, or that is none. */
static void note_silent(const struct seep_capture_start *from, uint64_t handle,
                        uint64_t size_bytes, enum seep_space space)
{
    seep_cuda_ledger_add(from, &(struct seep_cuda_block){
                                   .kind = SEEP_CUDA_HANDLE,
                                   .space = space,
                                   .device = -1,
                                   .silent = true,
                                   .value = handle,
                                   .size_bytes = size_bytes,
                               });
}

int seep_cuda_cuMemCreate(uint64_t *handle, size_t size_bytes,
                          const struct seep_cuda_allocation *wanted,
                          unsigned long long flags)
{
    int (*real)(uint64_t *, size_t, const struct seep_cuda_allocation *,
                unsigned long long) = SEEP_CUDA_REAL(cuMemCreate);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(handle, size_bytes, wanted, flags);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_handle(&start, *handle, size_bytes, &wanted->location);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemCreate);

int seep_cuda_cuMemRelease(uint64_t handle)
{
    int (*real)(uint64_t) = SEEP_CUDA_REAL(cuMemRelease);
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going = seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_HANDLE, handle);
    result = real(handle);
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuMemRelease);

int seep_cuda_cuMemRetainAllocationHandle(uint64_t *handle, void *address)
{
    int (*real)(uint64_t *, void *) =
        SEEP_CUDA_REAL(cuMemRetainAllocationHandle);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(handle, address);
    if (seep_cuda_came(nest, result)) {
        seep_cuda_ledger_retain(SEEP_CUDA_HANDLE, *handle);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemRetainAllocationHandle);

/* Its size is not told: its mappings are noted, where they are made. */
int seep_cuda_cuMemImportFromShareableHandle(uint64_t *handle, void *shared,
                                             int type)
{
    int (*real)(uint64_t *, void *, int) =
        SEEP_CUDA_REAL(cuMemImportFromShareableHandle);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(handle, shared, type);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_silent(&start, *handle, 0, SEEP_SPACE_IMPORTED);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemImportFromShareableHandle);

int seep_cuda_cuMemMap(uint64_t address, size_t size_bytes, size_t offset,
                       uint64_t handle, unsigned long long flags)
{
    int (*real)(uint64_t, size_t, size_t, uint64_t, unsigned long long) =
        SEEP_CUDA_REAL(cuMemMap);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(address, size_bytes, offset, handle, flags);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_ledger_map(&start, address, size_bytes, handle);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemMap);

int seep_cuda_cuMemUnmap(uint64_t address, size_t size_bytes)
{
    int (*real)(uint64_t, size_t) = SEEP_CUDA_REAL(cuMemUnmap);
    struct seep_cuda_leave_range range = {0};
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    if (nest.slot != 0) {
        range = seep_cuda_ledger_unmap(address, size_bytes);
    }
    result = real(address, size_bytes);
    if (nest.slot != 0) {
        seep_cuda_ledger_unmap_settle(&range, result == SEEP_CUDA_SUCCESS);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemUnmap);

int seep_cuda_cuMemAddressReserve(uint64_t *address, size_t size_bytes,
                                  size_t alignment_bytes, uint64_t wanted,
                                  unsigned long long flags)
{
    int (*real)(uint64_t *, size_t, size_t, uint64_t, unsigned long long) =
        SEEP_CUDA_REAL(cuMemAddressReserve);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(address, size_bytes, alignment_bytes, wanted, flags);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_ledger_add(
            &start, &(struct seep_cuda_block){.kind = SEEP_CUDA_RESERVED,
                                              .space = SEEP_SPACE_RESERVED,
                                              .device = -1,
                                              .value = *address,
                                              .size_bytes = size_bytes});
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAddressReserve);

int seep_cuda_cuMemAddressFree(uint64_t address, size_t size_bytes)
{
    int (*real)(uint64_t, size_t) = SEEP_CUDA_REAL(cuMemAddressFree);
    struct seep_cuda_going going;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    going = seep_cuda_goes(SEEP_CUDA_FRAME(), SEEP_CUDA_RESERVED, address);
    result = real(address, size_bytes);
    seep_cuda_went(&going, result);
    return result;
}
SEEP_CUDA_EXPORT(cuMemAddressFree);

/* An object that memory is bound to, and has none of its own. */
int seep_cuda_cuMulticastCreate(uint64_t *handle,
                                const struct seep_cuda_multicast *wanted)
{
    int (*real)(uint64_t *, const struct seep_cuda_multicast *) =
        SEEP_CUDA_REAL(cuMulticastCreate);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(handle, wanted);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_silent(&start, *handle, wanted->size_bytes, SEEP_SPACE_DEVICE);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuMulticastCreate);
