/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of others: IPC handles and external memory.
 *
 * Invariant: an import is no memory of this process's device; an IPC handle
 * that is opened again is counted, and goes with its last close.
 */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake.h"

/* numbers of an IPC mapping */
enum { NUMBER, PROCESS };

static CUresult get_handle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
    const struct fake_object *found =
        fake_around(pointer, FAKE_BIT(FAKE_DEVICE));
    CUresult why = fake_no_context();

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (handle == NULL || found == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(handle, 0, sizeof(*handle));
    fake_name_write(handle, found);
    return CUDA_SUCCESS;
}

static struct fake_object *opened(const struct fake_name *name)
{
    struct fake_object *at = fake_first(FAKE_IPC);

    while (at != NULL && (at->numbers[NUMBER] != name->number ||
                          at->numbers[PROCESS] != (uint64_t)name->pid)) {
        at = at->next;
    }
    return at;
}

static CUresult open_handle(CUdeviceptr *pointer, const CUipcMemHandle *handle,
                            unsigned int flags)
{
    CUresult why;
    struct fake_object *context = fake_context(&why);
    struct fake_name name;
    struct fake_object *made;
    uint64_t address;

    if (context == NULL) {
        return why;
    }
    if (pointer == NULL || flags > 1 || !fake_name_read(handle, &name)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (fake_name_is_ours(&name) &&
        fake_by_number(name.number, FAKE_BIT(FAKE_DEVICE)) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = opened(&name);
    if (made != NULL) {
        made->refs++;
        *pointer = made->address;
        return CUDA_SUCCESS;
    }
    address = fake_name_map(&name);
    made = address != 0 ? fake_new(FAKE_IPC, address) : NULL;
    if (made == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made->context = context;
    made->device = context->device;
    made->size_bytes = name.size_bytes;
    made->numbers[NUMBER] = name.number;
    made->numbers[PROCESS] = (uint64_t)name.pid;
    fake_live(FAKE_IPC, (int64_t)name.size_bytes, 1);
    *pointer = address;
    return CUDA_SUCCESS;
}

static CUresult close_handle(CUdeviceptr pointer)
{
    struct fake_object *found = fake_at(pointer, FAKE_BIT(FAKE_IPC));
    CUresult why = fake_no_context();

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (found == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (--found->refs == 0) {
        fake_end(found);
    }
    return CUDA_SUCCESS;
}

/* The descriptor is the driver's from here on, and closed with the object. */
static CUresult import(CUexternalMemory *handle,
                       const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *how)
{
    CUresult why;
    const struct fake_object *context = fake_context(&why);
    struct fake_object *made;

    if (context == NULL) {
        return why;
    }
    if (handle == NULL || how == NULL || how->size == 0 ||
        how->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = fake_new(FAKE_EXTERNAL, 0);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->fd = how->handle.fd;
    made->device = context->device;
    made->size_bytes = how->size;
    fake_live(FAKE_EXTERNAL, (int64_t)how->size, 1);
    *handle = (CUexternalMemory)made;
    return CUDA_SUCCESS;
}

static CUresult forget(CUexternalMemory handle)
{
    struct fake_object *found = fake_check(handle, FAKE_EXTERNAL);

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    fake_end(found);
    return CUDA_SUCCESS;
}

static CUresult map_buffer(CUdeviceptr *pointer, CUexternalMemory handle,
                           const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *how)
{
    const struct fake_object *memory = fake_check(handle, FAKE_EXTERNAL);
    struct fake_object *made;
    uint64_t bytes, address;

    if (memory == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (pointer == NULL || how == NULL || how->size == 0 ||
        how->offset > memory->size_bytes ||
        how->size > memory->size_bytes - how->offset) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bytes = fake_rounded(how->size, 4096);
    address = fake_map_space(bytes, 4096, 0);
    /* What cannot be mapped, as a pipe's end, is mapped to nothing. */
    if (address != 0 && how->offset % 4096 == 0) {
        (void)fake_map_file(address, bytes, memory->fd, how->offset, true);
    }
    made = address != 0 ? fake_new(FAKE_BUFFER, address) : NULL;
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->device = memory->device;
    made->size_bytes = how->size;
    fake_live(FAKE_BUFFER, (int64_t)how->size, 1);
    *pointer = address;
    return CUDA_SUCCESS;
}

static CUresult map_mipmap(CUmipmappedArray *mipmap, CUexternalMemory handle,
                           const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *how)
{
    const struct fake_object *memory = fake_check(handle, FAKE_EXTERNAL);
    struct fake_object *made;

    if (memory == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (mipmap == NULL || how == NULL || how->numLevels == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = fake_new(FAKE_MIPMAP, 0);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->device = memory->device;
    fake_live(FAKE_MIPMAP, 0, 1);
    *mipmap = (CUmipmappedArray)made;
    return CUDA_SUCCESS;
}

FAKE_DEFINE(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr pointer),
            get_handle(handle, pointer))
FAKE_DEFINE(cuIpcOpenMemHandle,
            (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags),
            open_handle(pointer, &handle, flags))
FAKE_DEFINE(cuIpcOpenMemHandle_v2,
            (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags),
            open_handle(pointer, &handle, flags))
FAKE_DEFINE(cuIpcCloseMemHandle, (CUdeviceptr pointer), close_handle(pointer))
FAKE_DEFINE(cuImportExternalMemory,
            (CUexternalMemory * memory,
             const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *how),
            import(memory, how))
FAKE_DEFINE(cuDestroyExternalMemory, (CUexternalMemory memory), forget(memory))
FAKE_DEFINE(cuExternalMemoryGetMappedBuffer,
            (CUdeviceptr * pointer, CUexternalMemory memory,
             const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *how),
            map_buffer(pointer, memory, how))
FAKE_DEFINE(cuExternalMemoryGetMappedMipmappedArray,
            (CUmipmappedArray * mipmap, CUexternalMemory memory,
             const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *how),
            map_mipmap(mipmap, memory, how))
