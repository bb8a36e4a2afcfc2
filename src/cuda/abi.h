/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What we need of the CUDA driver's binary interface, in our own words: no
 * CUDA header is wanted to build, and none would do for every driver.
 *
 * Invariant: sizes, offsets and values are those of the 64-bit Linux driver,
 * the same since each was introduced; a test compares them with cuda.h where
 * one is installed.
 *
 * A result is an int, a device pointer 64 bits (32 in the first versions,
 * which carry _v1 here), handles of objects are pointers, those of physical
 * memory 64 bits.
 */
#ifndef SEEP_CUDA_ABI_H
#define SEEP_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

enum seep_cuda_result {
    SEEP_CUDA_SUCCESS = 0,
    SEEP_CUDA_INVALID_VALUE = 1,
    SEEP_CUDA_OUT_OF_MEMORY = 2,
    SEEP_CUDA_NOT_INITIALIZED = 3,
    SEEP_CUDA_DEINITIALIZED = 4,
    SEEP_CUDA_INVALID_CONTEXT = 201,
    SEEP_CUDA_NOT_FOUND = 500
};

/** Flags of cuGetProcAddress. */
enum seep_cuda_lookup {
    SEEP_CUDA_LOOKUP_DEFAULT = 0,
    SEEP_CUDA_LOOKUP_LEGACY_STREAM = 1,
    SEEP_CUDA_LOOKUP_PER_THREAD_STREAM = 2
};

/** Where memory lies. */
enum seep_cuda_location_type {
    SEEP_CUDA_LOCATION_NONE = 0,
    SEEP_CUDA_LOCATION_DEVICE = 1,
    SEEP_CUDA_LOCATION_HOST = 2,
    SEEP_CUDA_LOCATION_HOST_NUMA = 3,
    SEEP_CUDA_LOCATION_HOST_NUMA_CURRENT = 4
};

struct seep_cuda_location {
    int type;
    int id;
};

/** CUmemAllocationProp, of cuMemCreate. */
struct seep_cuda_allocation {
    int type;
    int handle_types;
    struct seep_cuda_location location;
    void *win32_metadata;
    uint8_t compression_type;
    uint8_t gpu_direct_rdma_capable;
    uint16_t usage;
    uint8_t reserved[4];
};

/** CUmulticastObjectProp. */
struct seep_cuda_multicast {
    unsigned int devices_count;
    size_t size_bytes;
    unsigned long long handle_types;
    unsigned long long flags;
};

/** CUmemPoolProps. */
struct seep_cuda_pool {
    int type;
    int handle_types;
    struct seep_cuda_location location;
    void *win32_security_attributes;
    size_t most_bytes;
    uint16_t usage;
    uint8_t reserved[54];
};

/** CUmemPool_attribute. */
enum seep_cuda_pool_attribute {
    SEEP_CUDA_POOL_RELEASE_THRESHOLD = 4,
    SEEP_CUDA_POOL_RESERVED_CURRENT = 5,
    SEEP_CUDA_POOL_RESERVED_HIGH = 6,
    SEEP_CUDA_POOL_USED_CURRENT = 7,
    SEEP_CUDA_POOL_USED_HIGH = 8
};

/** CUgraphMem_attribute. */
enum seep_cuda_graph_attribute {
    SEEP_CUDA_GRAPH_USED_CURRENT = 0,
    SEEP_CUDA_GRAPH_USED_HIGH = 1,
    SEEP_CUDA_GRAPH_RESERVED_CURRENT = 2,
    SEEP_CUDA_GRAPH_RESERVED_HIGH = 3
};

/** CUstreamCaptureStatus. */
enum seep_cuda_capture_status {
    SEEP_CUDA_CAPTURE_NONE = 0,
    SEEP_CUDA_CAPTURE_ACTIVE = 1,
    SEEP_CUDA_CAPTURE_INVALIDATED = 2
};

/** CUpointer_attribute: the one that is asked for. */
enum seep_cuda_pointer_attribute { SEEP_CUDA_ATTRIBUTE_DEVICE_ORDINAL = 9 };

/** Flags of cuMemHostRegister. */
enum seep_cuda_register { SEEP_CUDA_REGISTER_IOMEMORY = 4 };

/** CUarray_format: those with a plain element size, and the compressed. */
enum seep_cuda_format {
    SEEP_CUDA_FORMAT_UNSIGNED_INT8 = 0x01,
    SEEP_CUDA_FORMAT_UNSIGNED_INT16 = 0x02,
    SEEP_CUDA_FORMAT_UNSIGNED_INT32 = 0x03,
    SEEP_CUDA_FORMAT_SIGNED_INT8 = 0x08,
    SEEP_CUDA_FORMAT_SIGNED_INT16 = 0x09,
    SEEP_CUDA_FORMAT_SIGNED_INT32 = 0x0a,
    SEEP_CUDA_FORMAT_HALF = 0x10,
    SEEP_CUDA_FORMAT_FLOAT = 0x20,
    SEEP_CUDA_FORMAT_UNORM_INT_101010_2 = 0x50,
    SEEP_CUDA_FORMAT_BC1_UNORM = 0x91,
    SEEP_CUDA_FORMAT_BC1_UNORM_SRGB = 0x92,
    SEEP_CUDA_FORMAT_BC2_UNORM = 0x93,
    SEEP_CUDA_FORMAT_BC2_UNORM_SRGB = 0x94,
    SEEP_CUDA_FORMAT_BC3_UNORM = 0x95,
    SEEP_CUDA_FORMAT_BC3_UNORM_SRGB = 0x96,
    SEEP_CUDA_FORMAT_BC4_UNORM = 0x97,
    SEEP_CUDA_FORMAT_BC4_SNORM = 0x98,
    SEEP_CUDA_FORMAT_BC5_UNORM = 0x99,
    SEEP_CUDA_FORMAT_BC5_SNORM = 0x9a,
    SEEP_CUDA_FORMAT_BC6H_UF16 = 0x9b,
    SEEP_CUDA_FORMAT_BC6H_SF16 = 0x9c,
    SEEP_CUDA_FORMAT_BC7_UNORM = 0x9d,
    SEEP_CUDA_FORMAT_BC7_UNORM_SRGB = 0x9e,
    SEEP_CUDA_FORMAT_NV12 = 0xb0,
    SEEP_CUDA_FORMAT_UNORM_INT8X1 = 0xc0,
    SEEP_CUDA_FORMAT_UNORM_INT8X2 = 0xc1,
    SEEP_CUDA_FORMAT_UNORM_INT8X4 = 0xc2,
    SEEP_CUDA_FORMAT_UNORM_INT16X1 = 0xc3,
    SEEP_CUDA_FORMAT_UNORM_INT16X2 = 0xc4,
    SEEP_CUDA_FORMAT_UNORM_INT16X4 = 0xc5,
    SEEP_CUDA_FORMAT_SNORM_INT8X1 = 0xc6,
    SEEP_CUDA_FORMAT_SNORM_INT8X2 = 0xc7,
    SEEP_CUDA_FORMAT_SNORM_INT8X4 = 0xc8,
    SEEP_CUDA_FORMAT_SNORM_INT16X1 = 0xc9,
    SEEP_CUDA_FORMAT_SNORM_INT16X2 = 0xca,
    SEEP_CUDA_FORMAT_SNORM_INT16X4 = 0xcb
};

/** Flags of arrays. */
enum seep_cuda_array_flag {
    SEEP_CUDA_ARRAY_LAYERED = 0x01,
    SEEP_CUDA_ARRAY_CUBEMAP = 0x04,
    SEEP_CUDA_ARRAY_SPARSE = 0x40,
    SEEP_CUDA_ARRAY_DEFERRED_MAPPING = 0x80
};

/** CUDA_ARRAY_DESCRIPTOR. */
struct seep_cuda_array {
    size_t width;
    size_t height;
    int format;
    unsigned int channels_count;
};

struct seep_cuda_array_v1 {
    unsigned int width;
    unsigned int height;
    int format;
    unsigned int channels_count;
};

/** CUDA_ARRAY3D_DESCRIPTOR. */
struct seep_cuda_array3d {
    size_t width;
    size_t height;
    size_t depth;
    int format;
    unsigned int channels_count;
    unsigned int flags;
};

struct seep_cuda_array3d_v1 {
    unsigned int width;
    unsigned int height;
    unsigned int depth;
    int format;
    unsigned int channels_count;
    unsigned int flags;
};

/** CUarraySparseSubresourceType and CUmemOperationType. */
enum { SEEP_CUDA_PART_LEVEL = 0, SEEP_CUDA_PART_TAIL = 1 };
enum { SEEP_CUDA_ARRAY_MAP = 1, SEEP_CUDA_ARRAY_UNMAP = 2 };

/** CUarrayMapInfo. */
struct seep_cuda_array_map {
    int array_type;
    void *array; /* or mipmap */
    int part_type;
    union {
        struct {
            unsigned int level;
            unsigned int layer;
            unsigned int offset[3];
            unsigned int extent[3];
        } level;
        struct {
            unsigned int layer;
            unsigned long long offset;
            unsigned long long size_bytes;
        } tail;
    } part;
    int operation;
    int handle_type;
    uint64_t handle;
    unsigned long long offset;
    unsigned int devices;
    unsigned int flags;
    unsigned int reserved[2];
};

/** CUipcMemHandle, passed by value. */
struct seep_cuda_ipc_handle {
    char reserved[64];
};

/** CUDA_EXTERNAL_MEMORY_HANDLE_DESC. */
struct seep_cuda_external {
    int type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
        const void *nvscibuf;
    } handle;
    unsigned long long size_bytes;
    unsigned int flags;
    unsigned int reserved[16];
};

/** CUDA_EXTERNAL_MEMORY_BUFFER_DESC. */
struct seep_cuda_external_buffer {
    unsigned long long offset;
    unsigned long long size_bytes;
    unsigned int flags;
    unsigned int reserved[16];
};

/** CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC. */
struct seep_cuda_external_mipmap {
    unsigned long long offset;
    struct seep_cuda_array3d array;
    unsigned int levels_count;
    unsigned int reserved[16];
};

/** CUDA_MEM_ALLOC_NODE_PARAMS. */
struct seep_cuda_graph_allocation {
    struct seep_cuda_pool pool;
    const void *access;
    size_t access_count;
    size_t size_bytes;
    uint64_t pointer; /* out */
};

/** CUgraphNodeType: those that are looked at. */
enum seep_cuda_node_type {
    SEEP_CUDA_NODE_ALLOCATION = 10,
    SEEP_CUDA_NODE_FREE = 11
};

/** CUgraphNodeParams. */
struct seep_cuda_node {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        struct seep_cuda_graph_allocation allocation;
        uint64_t freed_pointer;
    } parameters;
    long long reserved2;
};

#endif
