/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Virtual memory management: physical memory, reserved addresses, mappings.
 *
 * Invariant: physical memory lives while a handle or a mapping of it does; an
 * imported handle uses what it was exported from.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "fake.h"

#define HANDLES (FAKE_BIT(FAKE_PHYSICAL) | FAKE_BIT(FAKE_HANDLE))
#define GRANULARITY FAKE_GRANULARITY_BYTES

/* numbers of a physical memory */
enum { LOCATION_TYPE, LOCATION_ID };

static struct fake_object *handle_of(CUmemGenericAllocationHandle handle)
{
    struct fake_object *found =
        fake_by_number(handle, HANDLES | FAKE_BIT(FAKE_MULTICAST));

    return found != NULL && found->refs > 0 ? found : NULL;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes,
                       const CUmemAllocationProp *how)
{
    bool on_device;
    struct fake_object *made = NULL;
    CUresult why = fake_fault();

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (handle == NULL || how == NULL || bytes == 0 ||
        bytes % GRANULARITY != 0 ||
        how->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        how->location.type == CU_MEM_LOCATION_TYPE_INVALID ||
        how->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    on_device = how->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (on_device &&
        (how->location.id < 0 || how->location.id >= fake_settings.devices)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    why = fake_allocate(&made, FAKE_PHYSICAL, on_device ? how->location.id : -1,
                        bytes);
    if (why != CUDA_SUCCESS) {
        return why;
    }
    /* It has no address until it is mapped. */
    fake_place(made, 0);
    made->numbers[LOCATION_TYPE] = how->location.type;
    made->numbers[LOCATION_ID] = (uint64_t)how->location.id;
    *handle = fake_number(made);
    return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
    struct fake_object *found = handle_of(handle);

    if (found == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    found->refs--;
    if (found->refs == 0 && found->uses == 0) {
        fake_end(found);
    }
    return CUDA_SUCCESS;
}

static CUresult retain(CUmemGenericAllocationHandle *handle, void *address)
{
    const struct fake_object *map =
        fake_around((uintptr_t)address, FAKE_BIT(FAKE_MAP));

    if (handle == NULL || map == NULL || map->owner == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    map->owner->refs++;
    *handle = fake_number(map->owner);
    return CUDA_SUCCESS;
}

static bool maps_within(uint64_t address, uint64_t bytes, bool *any)
{
    *any = false;
    for (struct fake_object *at = fake_first(FAKE_MAP); at != NULL;
         at = at->next) {
        if (at->address == 0 || at->address >= address + bytes ||
            at->address + at->size_bytes <= address) {
            continue;
        }
        *any = true;
        if (at->address < address ||
            at->address + at->size_bytes > address + bytes) {
            return false;
        }
    }
    return true;
}

static uint64_t mapped_bytes(uint64_t address, uint64_t bytes)
{
    uint64_t sum = 0;

    for (struct fake_object *at = fake_first(FAKE_MAP); at != NULL;
         at = at->next) {
        if (at->address >= address &&
            at->address + at->size_bytes <= address + bytes) {
            sum += at->size_bytes;
        }
    }
    return sum;
}

static bool place_bytes(const struct fake_object *memory, uint64_t address,
                        uint64_t bytes, uint64_t offset)
{
    int fd = memory->fd >= 0 ? memory->fd : fake_memory_file();

    if (memory->type == FAKE_MULTICAST) {
        return true;
    }
    return fake_map_file(address, bytes, fd, memory->offset_bytes + offset,
                         false);
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle,
                    unsigned long long flags)
{
    struct fake_object *memory = handle_of(handle);
    const struct fake_object *space =
        fake_around(address, FAKE_BIT(FAKE_RESERVED));
    struct fake_object *made;
    bool any;

    if (memory == NULL || space == NULL || flags != 0 || bytes == 0 ||
        address % GRANULARITY != 0 || bytes % GRANULARITY != 0 ||
        offset % GRANULARITY != 0 || offset > memory->size_bytes ||
        bytes > memory->size_bytes - offset ||
        bytes > space->size_bytes - (address - space->address)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!maps_within(address, bytes, &any) || any) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!place_bytes(memory, address, bytes, offset)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made = fake_new(FAKE_MAP, address);
    if (made == NULL) {
        fake_map_nothing(address, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->owner = memory;
    made->device = memory->device;
    made->size_bytes = bytes;
    made->offset_bytes = offset;
    memory->uses++;
    fake_live(FAKE_MAP, (int64_t)bytes, 1);
    return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr address, size_t bytes)
{
    struct fake_object *next;
    bool any;

    if (bytes == 0 || !maps_within(address, bytes, &any) || !any) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (struct fake_object *at = fake_first(FAKE_MAP); at != NULL; at = next) {
        next = at->next;
        if (at->address >= address && at->address < address + bytes) {
            fake_end(at);
        }
    }
    return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *pointer, size_t bytes, size_t align,
                        CUdeviceptr hint)
{
    struct fake_object *made;
    uint64_t address;

    if (pointer == NULL || bytes == 0 || bytes % GRANULARITY != 0 ||
        (align & (align - 1)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    address =
        fake_map_space(bytes, align > GRANULARITY ? align : GRANULARITY, hint);
    made = address != 0 ? fake_new(FAKE_RESERVED, address) : NULL;
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->size_bytes = bytes;
    fake_live(FAKE_RESERVED, (int64_t)bytes, 1);
    *pointer = address;
    return CUDA_SUCCESS;
}

static CUresult unreserve(CUdeviceptr address, size_t bytes)
{
    struct fake_object *found = fake_at(address, FAKE_BIT(FAKE_RESERVED));
    bool any;

    if (found == NULL || found->size_bytes != bytes ||
        !maps_within(address, bytes, &any) || any) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fake_end(found);
    return CUDA_SUCCESS;
}

static CUresult set_access(CUdeviceptr address, size_t bytes,
                           const CUmemAccessDesc *access, size_t count)
{
    if (access == NULL || count == 0 || bytes == 0 ||
        mapped_bytes(address, bytes) != bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fake_protect(address, bytes, access[0].flags);
    return CUDA_SUCCESS;
}

static CUresult get_access(unsigned long long *flags, CUdeviceptr address)
{
    if (flags == NULL || fake_around(address, FAKE_BIT(FAKE_MAP)) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

static CUresult granularity(size_t *bytes, const void *how)
{
    if (bytes == NULL || how == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *bytes = GRANULARITY;
    return CUDA_SUCCESS;
}

static CUresult properties(CUmemAllocationProp *how,
                           CUmemGenericAllocationHandle handle)
{
    const struct fake_object *found = handle_of(handle);

    if (how == NULL || found == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *how = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {(CUmemLocationType)found->numbers[LOCATION_TYPE],
                     (int)found->numbers[LOCATION_ID]},
    };
    return CUDA_SUCCESS;
}

static CUresult export_handle(void *into, CUmemGenericAllocationHandle handle,
                              CUmemAllocationHandleType type)
{
    const struct fake_object *found = handle_of(handle);

    if (into == NULL || found == NULL || found->type == FAKE_MULTICAST ||
        type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *(int *)into = fake_name_file(found);
    return *(int *)into < 0 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult import_handle(CUmemGenericAllocationHandle *handle, void *from,
                              CUmemAllocationHandleType type)
{
    struct fake_object *exported = NULL;
    struct fake_object *made;
    struct fake_name name;
    int fd = -1;

    if (handle == NULL || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !fake_name_from_file((int)(intptr_t)from, &name)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (fake_name_is_ours(&name)) {
        exported = fake_by_number(name.number, HANDLES);
    } else {
        fd = fake_name_open(&name);
    }
    made = exported != NULL || fd >= 0 ? fake_new(FAKE_HANDLE, 0) : NULL;
    if (made == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made->fd = fd;
    made->owner = exported;
    made->device = name.device < fake_settings.devices ? name.device : 0;
    made->size_bytes = name.size_bytes;
    made->offset_bytes = name.offset_bytes;
    made->numbers[LOCATION_TYPE] = CU_MEM_LOCATION_TYPE_DEVICE;
    made->numbers[LOCATION_ID] = (uint64_t)made->device;
    if (exported != NULL) {
        exported->uses++;
    }
    fake_live(FAKE_HANDLE, (int64_t)name.size_bytes, 1);
    *handle = fake_number(made);
    return CUDA_SUCCESS;
}

/* What an array's sparse part is mapped to; told apart by array and offset. */
static CUresult map_array(const CUarrayMapInfo *one)
{
    struct fake_object *array =
        one->resourceType == CU_RESOURCE_TYPE_ARRAY
            ? fake_check(one->resource.array, FAKE_ARRAY)
            : fake_check(one->resource.mipmap, FAKE_MIPMAP);
    struct fake_object *memory = handle_of(one->memHandle.memHandle);
    uint64_t level =
        one->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL
            ? one->subresource.sparseLevel.level
            : UINT64_MAX;
    struct fake_object *at = fake_first(FAKE_MAP);

    while (at != NULL && (at->target != array || at->numbers[0] != level)) {
        at = at->next;
    }
    if (array == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (one->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP) {
        if (at != NULL) {
            fake_end(at);
        }
        return CUDA_SUCCESS;
    }
    if (memory == NULL || at != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    at = fake_new(FAKE_MAP, 0);
    if (at == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    at->owner = memory;
    at->target = array;
    at->numbers[0] = level;
    memory->uses++;
    fake_live(FAKE_MAP, 0, 1);
    return CUDA_SUCCESS;
}

static CUresult map_arrays(const CUarrayMapInfo *list, unsigned int count,
                           CUstream stream)
{
    struct fake_stream_of of;
    CUresult why = fake_stream(stream, &of);

    if (list == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned int i = 0; i < count && why == CUDA_SUCCESS; i++) {
        why = map_array(&list[i]);
    }
    return why;
}

static CUresult multicast(CUmemGenericAllocationHandle *handle,
                          const CUmulticastObjectProp *how)
{
    struct fake_object *made;

    if (handle == NULL || how == NULL || how->numDevices == 0 ||
        how->size == 0 || how->size % GRANULARITY != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = fake_new(FAKE_MULTICAST, 0);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->size_bytes = how->size;
    fake_live(FAKE_MULTICAST, (int64_t)how->size, 1);
    *handle = fake_number(made);
    return CUDA_SUCCESS;
}

static CUresult multicast_used(CUmemGenericAllocationHandle handle)
{
    return fake_by_number(handle, FAKE_BIT(FAKE_MULTICAST)) == NULL
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

typedef CUmemGenericAllocationHandle handle_number;

FAKE_DEFINE(cuMemCreate,
            (handle_number * handle, size_t bytes,
             const CUmemAllocationProp *how, unsigned long long flags),
            ((void)flags, create(handle, bytes, how)))
FAKE_DEFINE(cuMemRelease, (handle_number handle), release(handle))
FAKE_DEFINE(cuMemRetainAllocationHandle,
            (handle_number * handle, void *address), retain(handle, address))
FAKE_DEFINE(cuMemMap,
            (CUdeviceptr address, size_t bytes, size_t offset,
             handle_number handle, unsigned long long flags),
            map(address, bytes, offset, handle, flags))
FAKE_DEFINE(cuMemUnmap, (CUdeviceptr address, size_t bytes),
            unmap(address, bytes))
FAKE_DEFINE(cuMemAddressReserve,
            (CUdeviceptr * pointer, size_t bytes, size_t align,
             CUdeviceptr hint, unsigned long long flags),
            ((void)flags, reserve(pointer, bytes, align, hint)))
FAKE_DEFINE(cuMemAddressFree, (CUdeviceptr address, size_t bytes),
            unreserve(address, bytes))
FAKE_DEFINE(cuMemSetAccess,
            (CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
             size_t count),
            set_access(address, bytes, access, count))
FAKE_DEFINE(cuMemGetAccess,
            (unsigned long long *flags, const CUmemLocation *at,
             CUdeviceptr address),
            ((void)at, get_access(flags, address)))
FAKE_DEFINE(cuMemGetAllocationGranularity,
            (size_t * bytes, const CUmemAllocationProp *how,
             CUmemAllocationGranularity_flags which),
            ((void)which, granularity(bytes, how)))
FAKE_DEFINE(cuMemGetAllocationPropertiesFromHandle,
            (CUmemAllocationProp * how, handle_number handle),
            properties(how, handle))
FAKE_DEFINE(cuMemExportToShareableHandle,
            (void *into, handle_number handle, CUmemAllocationHandleType type,
             unsigned long long flags),
            ((void)flags, export_handle(into, handle, type)))
FAKE_DEFINE(cuMemImportFromShareableHandle,
            (handle_number * handle, void *from,
             CUmemAllocationHandleType type),
            import_handle(handle, from, type))
FAKE_DEFINE(cuMemMapArrayAsync,
            (CUarrayMapInfo * list, unsigned int count, CUstream stream),
            map_arrays(list, count, stream))
FAKE_DEFINE(cuMemMapArrayAsync_ptsz,
            (CUarrayMapInfo * list, unsigned int count, CUstream stream),
            map_arrays(list, count,
                       stream == NULL ? CU_STREAM_PER_THREAD : stream))
FAKE_DEFINE(cuMulticastCreate,
            (handle_number * handle, const CUmulticastObjectProp *how),
            multicast(handle, how))
FAKE_DEFINE(cuMulticastAddDevice, (handle_number handle, CUdevice device),
            ((void)device, multicast_used(handle)))
FAKE_DEFINE(cuMulticastBindMem,
            (handle_number handle, size_t at, handle_number memory,
             size_t offset, size_t bytes, unsigned long long flags),
            ((void)at, (void)memory, (void)offset, (void)bytes, (void)flags,
             multicast_used(handle)))
FAKE_DEFINE(cuMulticastBindAddr,
            (handle_number handle, size_t at, CUdeviceptr address, size_t bytes,
             unsigned long long flags),
            ((void)at, (void)address, (void)bytes, (void)flags,
             multicast_used(handle)))
FAKE_DEFINE(cuMulticastUnbind,
            (handle_number handle, CUdevice device, size_t at, size_t bytes),
            ((void)device, (void)at, (void)bytes, multicast_used(handle)))
FAKE_DEFINE(cuMulticastGetGranularity,
            (size_t * bytes, const CUmulticastObjectProp *how,
             CUmulticastGranularity_flags which),
            ((void)which, granularity(bytes, how)))
