/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What we need of the CUDA driver's binary interface, in our own words: no
 * CUDA header is wanted to build, and none would do for every driver.
 *
 * Invariant: sizes, offsets and values are those of the 64-bit Linux driver,
 * the same since each was introduced; a test compares them with cuda.h where
 * one is installed.
 *
 * A result is an int, a device pointer 64 bits, handles of objects are
 * pointers, those of physical memory 64 bits.
 */
#ifndef SEEP_CUDA_ABI_H
#define SEEP_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

enum seep_cuda_result {
    SEEP_CUDA_SUCCESS = 0,
    SEEP_CUDA_OUT_OF_MEMORY = 2,
    SEEP_CUDA_NOT_INITIALIZED = 3,
    SEEP_CUDA_INVALID_CONTEXT = 201
};

/** Flags of cuGetProcAddress. */
enum seep_cuda_lookup {
    SEEP_CUDA_LOOKUP_LEGACY_STREAM = 1,
    SEEP_CUDA_LOOKUP_PER_THREAD_STREAM = 2
};

/** Where memory lies. */
enum seep_cuda_location_type { SEEP_CUDA_LOCATION_DEVICE = 1 };

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
    SEEP_CUDA_POOL_RESERVED_CURRENT = 5,
    SEEP_CUDA_POOL_USED_CURRENT = 7
};

/** CUgraphMem_attribute. */
enum seep_cuda_graph_attribute {
    SEEP_CUDA_GRAPH_USED_CURRENT = 0,
    SEEP_CUDA_GRAPH_RESERVED_CURRENT = 2
};

/** CUstreamCaptureStatus. */
enum seep_cuda_capture_status {
    SEEP_CUDA_CAPTURE_NONE = 0,
    SEEP_CUDA_CAPTURE_ACTIVE = 1
};

/** CUpointer_attribute: the one that is asked for. */
enum seep_cuda_pointer_attribute { SEEP_CUDA_ATTRIBUTE_DEVICE_ORDINAL = 9 };

/** CUarray_format: the compressed from BC2_UNORM to BC7_UNORM_SRGB are alike in
 * size, and what is not here has elements of a byte. */
enum seep_cuda_format {
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
    SEEP_CUDA_FORMAT_BC4_UNORM = 0x97,
    SEEP_CUDA_FORMAT_BC4_SNORM = 0x98,
    SEEP_CUDA_FORMAT_BC7_UNORM = 0x9d,
    SEEP_CUDA_FORMAT_BC7_UNORM_SRGB = 0x9e,
    SEEP_CUDA_FORMAT_NV12 = 0xb0,
    SEEP_CUDA_FORMAT_UNORM_INT16X1 = 0xc3,
    SEEP_CUDA_FORMAT_UNORM_INT16X2 = 0xc4,
    SEEP_CUDA_FORMAT_UNORM_INT16X4 = 0xc5,
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

/** CUDA_ARRAY3D_DESCRIPTOR. */
struct seep_cuda_array3d {
    size_t width;
    size_t height;
    size_t depth;
    int format;
    unsigned int channels_count;
    unsigned int flags;
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
