/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory by pointer: device, managed, pinned and registered, and what the
 * driver says of a pointer.
 *
 * Invariant: what is not the base of a live allocation is refused with the
 * real driver's code and changes nothing.
 */
#include "fake.h"

#define PITCH_BYTES 512
/* What cuMemGetAddressRange and the copies know as memory of a device. */
#define ON_DEVICE \
    (FAKE_FREED_BY_POINTER | FAKE_BIT(FAKE_IPC) | FAKE_BIT(FAKE_MAP))
#define ON_HOST (FAKE_BIT(FAKE_PINNED) | FAKE_BIT(FAKE_REGISTERED))

static CUresult may_allocate(struct fake_object **context)
{
    CUresult why;

    *context = fake_context(&why);
    if (*context == NULL) {
        return why;
    }
    why = fake_capture_forbids();
    return why != CUDA_SUCCESS ? why : fake_fault();
}

static CUresult allocate(uint64_t *pointer, enum fake_type type, uint64_t bytes)
{
    struct fake_object *context;
    struct fake_object *made = NULL;
    CUresult why = may_allocate(&context);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (pointer == NULL || bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    why = fake_allocate(&made, type, context->device, bytes);
    if (why == CUDA_SUCCESS) {
        made->context = context;
        *pointer = made->address;
    }
    return why;
}

static CUresult allocate_device(CUdeviceptr *pointer, enum fake_type type,
                                size_t bytes)
{
    uint64_t got = 0;
    CUresult why = allocate(pointer != NULL ? &got : NULL, type, bytes);

    if (why == CUDA_SUCCESS) {
        *pointer = got;
    }
    return why;
}

static CUresult allocate_host(void **pointer, size_t bytes, unsigned int flags)
{
    uint64_t got = 0;
    CUresult why = (flags & ~7U) != 0 ? CUDA_ERROR_INVALID_VALUE
                                      : allocate(pointer != NULL ? &got : NULL,
                                                 FAKE_PINNED, bytes);

    if (why == CUDA_SUCCESS) {
        *pointer = (void *)(uintptr_t)got;
    }
    return why;
}

static CUresult allocate_pitch(CUdeviceptr *pointer, size_t *pitch,
                               size_t width, size_t height, unsigned element)
{
    size_t row = (size_t)fake_rounded(width, PITCH_BYTES);
    size_t bytes;
    CUresult why;

    if (pitch == NULL || width == 0 || height == 0 ||
        (element != 4 && element != 8 && element != 16) ||
        __builtin_mul_overflow(row, height, &bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    why = allocate_device(pointer, FAKE_DEVICE, bytes);
    if (why == CUDA_SUCCESS) {
        *pitch = row;
    }
    return why;
}

static CUresult allocate_managed(CUdeviceptr *pointer, size_t bytes,
                                 unsigned int flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate_device(pointer, FAKE_MANAGED, bytes);
}

CUresult fake_free_pointer(CUdeviceptr pointer, CUstream stream, bool async)
{
    struct fake_object *found = fake_at(pointer, FAKE_FREED_BY_POINTER);
    struct fake_stream_of of = {NULL, NULL, 0};
    CUresult why = async ? fake_stream(stream, &of) : fake_no_context();

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (of.graph != NULL) {
        struct fake_object *node;

        return fake_graph_free_node(of.graph, pointer, &node);
    }
    if (!async) {
        why = fake_capture_forbids();
        if (why != CUDA_SUCCESS || pointer == 0) {
            return why;
        }
    }
    if (found == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (found->type == FAKE_MEMORY) {
        if ((found->flags & 1) == 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        fake_graph_returned(found);
        return CUDA_SUCCESS;
    }
    fake_end(found);
    return CUDA_SUCCESS;
}

static CUresult free_host(void *pointer)
{
    struct fake_object *found =
        fake_at((uintptr_t)pointer, FAKE_BIT(FAKE_PINNED));
    CUresult why = fake_no_context();

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (found == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fake_end(found);
    return CUDA_SUCCESS;
}

static bool overlaps(uint64_t address, uint64_t bytes, enum fake_type type)
{
    for (struct fake_object *at = fake_first(type); at != NULL; at = at->next) {
        if (address < at->address + at->size_bytes &&
            at->address < address + bytes) {
            return true;
        }
    }
    return false;
}

static CUresult register_host(void *pointer, size_t bytes, unsigned int flags)
{
    uint64_t address = (uintptr_t)pointer;
    struct fake_object *context;
    struct fake_object *made;
    CUresult why = may_allocate(&context);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (pointer == NULL || bytes == 0 || (flags & ~15U) != 0 ||
        address + bytes < address) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (overlaps(address, bytes, FAKE_REGISTERED) ||
        overlaps(address, bytes, FAKE_PINNED)) {
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    made = fake_new(FAKE_REGISTERED, address);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->context = context;
    made->device = context->device;
    made->size_bytes = bytes;
    fake_live(FAKE_REGISTERED, (int64_t)bytes, 1);
    return CUDA_SUCCESS;
}

static CUresult unregister_host(void *pointer)
{
    struct fake_object *found =
        fake_at((uintptr_t)pointer, FAKE_BIT(FAKE_REGISTERED));
    CUresult why = fake_no_context();

    if (why != CUDA_SUCCESS || pointer == NULL) {
        return why != CUDA_SUCCESS ? why : CUDA_ERROR_INVALID_VALUE;
    }
    if (found == NULL) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    fake_end(found);
    return CUDA_SUCCESS;
}

static CUresult host_device_pointer(CUdeviceptr *pointer, void *host)
{
    CUresult why = fake_no_context();

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (pointer == NULL || fake_around((uintptr_t)host, ON_HOST) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pointer = (uintptr_t)host;
    return CUDA_SUCCESS;
}

static CUresult host_flags(unsigned int *flags, void *host)
{
    if (flags == NULL ||
        fake_around((uintptr_t)host, FAKE_BIT(FAKE_PINNED)) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = 0;
    return CUDA_SUCCESS;
}

static CUresult info(size_t *free_bytes, size_t *total_bytes)
{
    CUresult why;
    const struct fake_object *context = fake_context(&why);

    fake_asked();
    if (context == NULL) {
        return why;
    }
    if (free_bytes != NULL) {
        *free_bytes = fake_free_bytes(context->device);
    }
    if (total_bytes != NULL) {
        *total_bytes = fake_settings.memory_bytes;
    }
    return CUDA_SUCCESS;
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes,
                              CUdeviceptr pointer)
{
    const struct fake_object *found =
        fake_around(pointer, ON_DEVICE | FAKE_BIT(FAKE_PINNED));

    if (found == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (base != NULL) {
        *base = found->address;
    }
    if (bytes != NULL) {
        *bytes = found->size_bytes;
    }
    return CUDA_SUCCESS;
}

static CUmemorytype type_of(const struct fake_object *found)
{
    return (FAKE_BIT(found->type) & ON_HOST) != 0 ? CU_MEMORYTYPE_HOST
                                                  : CU_MEMORYTYPE_DEVICE;
}

/* Into *data what the attribute is of; nothing is known of no object. */
static CUresult attribute(void *data, CUpointer_attribute which,
                          const struct fake_object *of, CUdeviceptr pointer)
{
    switch ((int)which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = (CUcontext)of->context;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(CUmemorytype *)data = type_of(of);
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = pointer;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (type_of(of) != CU_MEMORYTYPE_HOST && of->type != FAKE_MANAGED) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *(void **)data = (void *)(uintptr_t)pointer;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = fake_number(of);
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned int *)data = of->type == FAKE_MANAGED;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = of->device;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = of->address;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = of->size_bytes;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned int *)data = 1;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data =
            of->type == FAKE_ASYNC ? (CUmemoryPool)of->owner : NULL;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult pointer_attribute(void *data, CUpointer_attribute which,
                                  CUdeviceptr pointer)
{
    const struct fake_object *found = fake_around(pointer, ON_DEVICE | ON_HOST);

    fake_asked();
    if (data == NULL || found == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return attribute(data, which, found, pointer);
}

/* Of an unknown pointer the plural form gives zeros, and no error. */
static CUresult pointer_attributes(unsigned int count,
                                   CUpointer_attribute *which, void **data,
                                   CUdeviceptr pointer)
{
    const struct fake_object *found = fake_around(pointer, ON_DEVICE | ON_HOST);

    fake_asked();
    if (which == NULL || data == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned int i = 0; i < count; i++) {
        if (found != NULL) {
            (void)attribute(data[i], which[i], found, pointer);
        } else if (which[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
                   which[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                   which[i] == CU_POINTER_ATTRIBUTE_MAPPED) {
            *(unsigned int *)data[i] = 0;
        } else if (which[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
            *(int *)data[i] = -2;
        } else {
            *(uint64_t *)data[i] = 0;
        }
    }
    return CUDA_SUCCESS;
}

FAKE_DEFINE(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes),
            allocate_device(pointer, FAKE_DEVICE, bytes))
FAKE_DEFINE(cuMemAllocPitch_v2,
            (CUdeviceptr * pointer, size_t *pitch, size_t width, size_t height,
             unsigned int element),
            allocate_pitch(pointer, pitch, width, height, element))
FAKE_DEFINE(cuMemAllocManaged,
            (CUdeviceptr * pointer, size_t bytes, unsigned int flags),
            allocate_managed(pointer, bytes, flags))
FAKE_DEFINE(cuMemFree_v2, (CUdeviceptr pointer),
            fake_free_pointer(pointer, NULL, false))
FAKE_DEFINE(cuMemGetInfo_v2, (size_t * free_bytes, size_t *total_bytes),
            info(free_bytes, total_bytes))
FAKE_DEFINE(cuMemGetAddressRange_v2,
            (CUdeviceptr * base, size_t *bytes, CUdeviceptr pointer),
            address_range(base, bytes, pointer))
FAKE_DEFINE(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned int flags),
            allocate_host(pointer, bytes, flags))
FAKE_DEFINE(cuMemAllocHost_v2, (void **pointer, size_t bytes),
            allocate_host(pointer, bytes, 0))
FAKE_DEFINE(cuMemFreeHost, (void *pointer), free_host(pointer))
FAKE_DEFINE(cuMemHostGetDevicePointer_v2,
            (CUdeviceptr * pointer, void *host, unsigned int flags),
            ((void)flags, host_device_pointer(pointer, host)))
FAKE_DEFINE(cuMemHostGetFlags, (unsigned int *flags, void *host),
            host_flags(flags, host))
FAKE_DEFINE(cuMemHostRegister,
            (void *pointer, size_t bytes, unsigned int flags),
            register_host(pointer, bytes, flags))
FAKE_DEFINE(cuMemHostRegister_v2,
            (void *pointer, size_t bytes, unsigned int flags),
            register_host(pointer, bytes, flags))
FAKE_DEFINE(cuMemHostUnregister, (void *pointer), unregister_host(pointer))
FAKE_DEFINE(cuPointerGetAttribute,
            (void *data, CUpointer_attribute which, CUdeviceptr pointer),
            pointer_attribute(data, which, pointer))
FAKE_DEFINE(cuPointerGetAttributes,
            (unsigned int count, CUpointer_attribute *which, void **data,
             CUdeviceptr pointer),
            pointer_attributes(count, which, data, pointer))
