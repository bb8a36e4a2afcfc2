/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stream-ordered memory and its pools. A pool reserves memory of its device in
 * steps, keeps what is freed until it is trimmed or its device is idle, and
 * then keeps what its threshold says.
 *
 * Invariant: used <= reserved, and reserved is what the device is charged; a
 * destroyed pool lives on until its last allocation is freed.
 */
#include <string.h>

#include "fake.h"

/* numbers of a pool */
enum { USED, USED_HIGH, RESERVED, RESERVED_HIGH, THRESHOLD, DESTROYED };

/* flags of a pool */
#define IS_DEFAULT 1U
#define IS_IMPORTED 2U

static void reserve(struct fake_object *pool, uint64_t bytes)
{
    pool->numbers[RESERVED] = bytes;
    if (bytes > pool->numbers[RESERVED_HIGH]) {
        pool->numbers[RESERVED_HIGH] = bytes;
    }
}

/* Gives back what is unused over keep_bytes. */
static bool trim(struct fake_object *pool, uint64_t keep_bytes)
{
    uint64_t least = fake_rounded(pool->numbers[USED], FAKE_GRANULARITY_BYTES);

    keep_bytes = keep_bytes > UINT64_MAX - FAKE_GRANULARITY_BYTES
                     ? UINT64_MAX
                     : fake_rounded(keep_bytes, FAKE_GRANULARITY_BYTES);
    least = least < keep_bytes ? keep_bytes : least;
    if (pool->numbers[RESERVED] <= least) {
        return false;
    }
    fake_discharge(pool->device, pool->numbers[RESERVED] - least);
    reserve(pool, least);
    return true;
}

bool fake_pools_trim(int device)
{
    bool any = false;

    for (struct fake_object *at = fake_first(FAKE_POOL); at != NULL;
         at = at->next) {
        any = (at->device == device && trim(at, 0)) || any;
    }
    return any;
}

void fake_pool_idle(int device)
{
    for (struct fake_object *at = fake_first(FAKE_POOL); at != NULL;
         at = at->next) {
        if (at->device == device) {
            (void)trim(at, at->numbers[THRESHOLD]);
        }
    }
}

static void end_if_done(struct fake_object *pool)
{
    if (pool->numbers[DESTROYED] != 0 && pool->uses == 0) {
        (void)trim(pool, 0);
        fake_end(pool);
    }
}

void fake_pool_returned(struct fake_object *allocation)
{
    struct fake_object *pool = allocation->owner;

    pool->numbers[USED] -= allocation->charged_bytes;
    pool->uses--;
    end_if_done(pool);
}

static struct fake_object *make(int device)
{
    struct fake_object *pool = fake_new(FAKE_POOL, 0);

    if (pool != NULL) {
        pool->device = device;
        fake_live(FAKE_POOL, 0, 1);
    }
    return pool;
}

struct fake_object *fake_pool_default(int device)
{
    struct fake_device *of = &fake_devices[device];

    if (of->default_pool == NULL) {
        of->default_pool = make(device);
        if (of->default_pool != NULL) {
            of->default_pool->flags = IS_DEFAULT;
        }
    }
    if (of->pool == NULL) {
        of->pool = of->default_pool;
    }
    return of->default_pool;
}

static bool grow(struct fake_object *pool, uint64_t used)
{
    uint64_t wanted = fake_rounded(used, FAKE_GRANULARITY_BYTES);
    uint64_t more;

    if (wanted <= pool->numbers[RESERVED]) {
        return true;
    }
    more = wanted - pool->numbers[RESERVED];
    if (!fake_charge(pool->device, more) &&
        (!fake_pools_trim(pool->device) || !fake_charge(pool->device, more))) {
        return false;
    }
    reserve(pool, pool->numbers[RESERVED] + more);
    return true;
}

static CUresult from_pool(CUdeviceptr *pointer, size_t bytes,
                          struct fake_object *pool)
{
    uint64_t charged = fake_rounded(bytes, FAKE_BLOCK_BYTES);
    struct fake_object *made;
    uint64_t address;
    uint64_t offset = 0;

    if (charged > fake_settings.memory_bytes ||
        !grow(pool, pool->numbers[USED] + charged)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    address = fake_take(pool->device, bytes, &offset);
    made = address != 0 ? fake_new(FAKE_ASYNC, address) : NULL;
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->device = pool->device;
    made->owner = pool;
    made->size_bytes = bytes;
    made->charged_bytes = charged;
    made->offset_bytes = offset;
    pool->uses++;
    pool->numbers[USED] += charged;
    if (pool->numbers[USED] > pool->numbers[USED_HIGH]) {
        pool->numbers[USED_HIGH] = pool->numbers[USED];
    }
    fake_live(FAKE_ASYNC, (int64_t)bytes, 1);
    *pointer = address;
    return CUDA_SUCCESS;
}

/* pool NULL: the current one of the stream's device */
static CUresult allocate(CUdeviceptr *pointer, size_t bytes,
                         struct fake_object *pool, CUstream stream)
{
    struct fake_stream_of of;
    struct fake_object *node;
    CUresult why = fake_stream(stream, &of);

    if (why == CUDA_SUCCESS) {
        why = fake_fault();
    }
    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (pointer == NULL || bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (of.graph != NULL) {
        return fake_graph_memory(of.graph, of.device, bytes, pointer, &node);
    }
    if (pool == NULL) {
        (void)fake_pool_default(of.device);
        pool = fake_devices[of.device].pool;
    }
    if (pool == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return (pool->flags & IS_IMPORTED) != 0 ? CUDA_ERROR_INVALID_VALUE
                                            : from_pool(pointer, bytes, pool);
}

static struct fake_object *pool_of(CUmemoryPool handle)
{
    struct fake_object *pool = fake_check(handle, FAKE_POOL);

    return pool != NULL && pool->numbers[DESTROYED] == 0 ? pool : NULL;
}

static CUresult allocate_from(CUdeviceptr *pointer, size_t bytes,
                              CUmemoryPool handle, CUstream stream)
{
    struct fake_object *pool = pool_of(handle);

    return pool == NULL ? CUDA_ERROR_INVALID_VALUE
                        : allocate(pointer, bytes, pool, stream);
}

static bool is_device(int device)
{
    return device >= 0 && device < fake_settings.devices;
}

static CUresult create(CUmemoryPool *handle, const CUmemPoolProps *how)
{
    struct fake_object *pool;

    if (handle == NULL || how == NULL ||
        how->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        how->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(how->location.id)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pool = make(how->location.id);
    if (pool == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (CUmemoryPool)pool;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUmemoryPool handle)
{
    struct fake_object *pool = pool_of(handle);

    if (pool == NULL || (pool->flags & IS_DEFAULT) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (fake_devices[pool->device].pool == pool) {
        fake_devices[pool->device].pool = fake_pool_default(pool->device);
    }
    pool->numbers[DESTROYED] = 1;
    end_if_done(pool);
    return CUDA_SUCCESS;
}

static CUresult trim_to(CUmemoryPool handle, size_t keep_bytes)
{
    struct fake_object *pool = pool_of(handle);

    if (pool == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    (void)trim(pool, keep_bytes);
    return CUDA_SUCCESS;
}

static CUresult get(CUmemoryPool handle, CUmemPool_attribute which, void *value)
{
    static const int place[] = {
        [CU_MEMPOOL_ATTR_RELEASE_THRESHOLD] = THRESHOLD,
        [CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT] = RESERVED,
        [CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH] = RESERVED_HIGH,
        [CU_MEMPOOL_ATTR_USED_MEM_CURRENT] = USED,
        [CU_MEMPOOL_ATTR_USED_MEM_HIGH] = USED_HIGH,
    };
    const struct fake_object *pool = pool_of(handle);

    fake_asked();
    if (pool == NULL || value == NULL || which == 0 ||
        which > CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (which < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        *(int *)value = 1;
    } else {
        *(cuuint64_t *)value = pool->numbers[place[which]];
    }
    return CUDA_SUCCESS;
}

static CUresult set(CUmemoryPool handle, CUmemPool_attribute which,
                    const void *value)
{
    struct fake_object *pool = pool_of(handle);

    if (pool == NULL || value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        pool->numbers[THRESHOLD] = *(const cuuint64_t *)value;
        return CUDA_SUCCESS;
    }
    if (which == CU_MEMPOOL_ATTR_USED_MEM_HIGH ||
        which == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
        /* Only back to what is now. */
        if (*(const cuuint64_t *)value != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        pool->numbers[which == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? USED_HIGH
                                                             : RESERVED_HIGH] =
            pool->numbers[which == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? USED
                                                                 : RESERVED];
        return CUDA_SUCCESS;
    }
    return which < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? CUDA_SUCCESS
                                                     : CUDA_ERROR_INVALID_VALUE;
}

static CUresult access_set(CUmemoryPool handle)
{
    return pool_of(handle) == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult access_get(CUmemAccess_flags *flags, CUmemoryPool handle)
{
    if (flags == NULL || pool_of(handle) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

static CUresult device_pool(CUmemoryPool *handle, int device, bool current)
{
    struct fake_object *pool;

    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pool = fake_pool_default(device);
    *handle = (CUmemoryPool)(current ? fake_devices[device].pool : pool);
    return CUDA_SUCCESS;
}

static CUresult device_set_pool(int device, CUmemoryPool handle)
{
    struct fake_object *pool = pool_of(handle);

    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (pool == NULL || pool->device != device) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fake_devices[device].pool = pool;
    return CUDA_SUCCESS;
}

static CUresult location_pool(CUmemoryPool *handle, const CUmemLocation *at,
                              CUmemAllocationType type, bool current)
{
    if (at == NULL || at->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        type != CU_MEM_ALLOCATION_TYPE_PINNED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return device_pool(handle, at->id, current);
}

static CUresult location_set_pool(const CUmemLocation *at,
                                  CUmemAllocationType type, CUmemoryPool pool)
{
    if (at == NULL || at->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        type != CU_MEM_ALLOCATION_TYPE_PINNED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return device_set_pool(at->id, pool);
}

static CUresult export_pool(void *into, CUmemoryPool handle,
                            CUmemAllocationHandleType type)
{
    const struct fake_object *pool = pool_of(handle);

    if (into == NULL || pool == NULL ||
        type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *(int *)into = fake_name_file(pool);
    return *(int *)into < 0 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult import_pool(CUmemoryPool *handle, void *from,
                            CUmemAllocationHandleType type)
{
    struct fake_name name;
    struct fake_object *pool;

    if (handle == NULL || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !fake_name_from_file((int)(intptr_t)from, &name)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pool = make(name.device < fake_settings.devices ? name.device : 0);
    if (pool == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool->flags = IS_IMPORTED;
    *handle = (CUmemoryPool)pool;
    return CUDA_SUCCESS;
}

static CUresult export_pointer(CUmemPoolPtrExportData *into, CUdeviceptr at)
{
    const struct fake_object *found = fake_at(at, FAKE_BIT(FAKE_ASYNC));

    if (into == NULL || found == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(into, 0, sizeof(*into));
    fake_name_write(into, found);
    return CUDA_SUCCESS;
}

/* The importer's view of the exporter's memory; freed by cuMemFree(Async). */
static CUresult import_pointer(CUdeviceptr *pointer, CUmemoryPool handle,
                               const CUmemPoolPtrExportData *from)
{
    struct fake_object *pool = pool_of(handle);
    struct fake_name name;
    struct fake_object *made;
    uint64_t address;

    if (pointer == NULL || pool == NULL || from == NULL ||
        (pool->flags & IS_IMPORTED) == 0 || !fake_name_read(from, &name)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    address = fake_name_map(&name);
    made = address != 0 ? fake_new(FAKE_SHARED, address) : NULL;
    if (made == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made->device = pool->device;
    made->size_bytes = name.size_bytes;
    fake_live(FAKE_SHARED, (int64_t)name.size_bytes, 1);
    *pointer = made->address;
    return CUDA_SUCCESS;
}

#define OWN(stream) ((stream) == NULL ? CU_STREAM_PER_THREAD : (stream))

FAKE_DEFINE(cuMemAllocAsync,
            (CUdeviceptr * pointer, size_t bytes, CUstream stream),
            allocate(pointer, bytes, NULL, stream))
FAKE_DEFINE(cuMemAllocAsync_ptsz,
            (CUdeviceptr * pointer, size_t bytes, CUstream stream),
            allocate(pointer, bytes, NULL, OWN(stream)))
FAKE_DEFINE(cuMemAllocFromPoolAsync,
            (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool,
             CUstream stream),
            allocate_from(pointer, bytes, pool, stream))
FAKE_DEFINE(cuMemAllocFromPoolAsync_ptsz,
            (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool,
             CUstream stream),
            allocate_from(pointer, bytes, pool, OWN(stream)))
FAKE_DEFINE(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream),
            fake_free_pointer(pointer, stream, true))
FAKE_DEFINE(cuMemFreeAsync_ptsz, (CUdeviceptr pointer, CUstream stream),
            fake_free_pointer(pointer, OWN(stream), true))
FAKE_DEFINE(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *how),
            create(pool, how))
FAKE_DEFINE(cuMemPoolDestroy, (CUmemoryPool pool), destroy(pool))
FAKE_DEFINE(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep_bytes),
            trim_to(pool, keep_bytes))
FAKE_DEFINE(cuMemPoolSetAttribute,
            (CUmemoryPool pool, CUmemPool_attribute which, void *value),
            set(pool, which, value))
FAKE_DEFINE(cuMemPoolGetAttribute,
            (CUmemoryPool pool, CUmemPool_attribute which, void *value),
            get(pool, which, value))
FAKE_DEFINE(cuMemPoolSetAccess,
            (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count),
            ((void)map, (void)count, access_set(pool)))
FAKE_DEFINE(cuMemPoolGetAccess,
            (CUmemAccess_flags * flags, CUmemoryPool pool, CUmemLocation *at),
            ((void)at, access_get(flags, pool)))
FAKE_DEFINE(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device),
            device_pool(pool, device, false))
FAKE_DEFINE(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device),
            device_pool(pool, device, true))
FAKE_DEFINE(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool),
            device_set_pool(device, pool))
FAKE_DEFINE(cuMemGetDefaultMemPool,
            (CUmemoryPool * pool, CUmemLocation *at, CUmemAllocationType type),
            location_pool(pool, at, type, false))
FAKE_DEFINE(cuMemGetMemPool,
            (CUmemoryPool * pool, CUmemLocation *at, CUmemAllocationType type),
            location_pool(pool, at, type, true))
FAKE_DEFINE(cuMemSetMemPool,
            (CUmemLocation * at, CUmemAllocationType type, CUmemoryPool pool),
            location_set_pool(at, type, pool))
FAKE_DEFINE(cuMemPoolExportToShareableHandle,
            (void *into, CUmemoryPool pool, CUmemAllocationHandleType type,
             unsigned long long flags),
            ((void)flags, export_pool(into, pool, type)))
FAKE_DEFINE(cuMemPoolImportFromShareableHandle,
            (CUmemoryPool * pool, void *from, CUmemAllocationHandleType type,
             unsigned long long flags),
            ((void)flags, import_pool(pool, from, type)))
FAKE_DEFINE(cuMemPoolExportPointer,
            (CUmemPoolPtrExportData * into, CUdeviceptr pointer),
            export_pointer(into, pointer))
FAKE_DEFINE(cuMemPoolImportPointer,
            (CUdeviceptr * pointer, CUmemoryPool pool,
             CUmemPoolPtrExportData *from),
            import_pointer(pointer, pool, from))
