/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints sizes and offsets of the structures that cross the ABI; built with
 * our declarations and with the vendor's, both must print the same.
 */
#include <stdio.h>

#include "cuda_abi.h"

#define SIZE(type) printf("%s %zu\n", #type, sizeof(type))
#define FIELD(type, field)                                          \
    printf("%s.%s %zu %zu\n", #type, #field, offsetof(type, field), \
           sizeof(((type *)0)->field))
#define VALUE(name) printf("%s %lld\n", #name, (long long)name)

static void print_memory(void)
{
    SIZE(CUmemLocation);
    FIELD(CUmemAllocationProp, location);
    FIELD(CUmemAllocationProp, allocFlags);
    SIZE(CUmemAllocationProp);
    FIELD(CUmemAccessDesc, flags);
    SIZE(CUmulticastObjectProp);
    FIELD(CUmulticastObjectProp, size);
    FIELD(CUmemPoolProps, location);
    FIELD(CUmemPoolProps, maxSize);
    SIZE(CUmemPoolProps);
    SIZE(CUmemPoolPtrExportData);
    SIZE(CUipcMemHandle);
    SIZE(CUuuid);
    SIZE(CUresult);
    FIELD(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size);
    SIZE(CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
    FIELD(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size);
    SIZE(CUDA_EXTERNAL_MEMORY_BUFFER_DESC);
    FIELD(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, numLevels);
}

static void print_arrays_and_graphs(void)
{
    SIZE(CUDA_ARRAY_DESCRIPTOR_v1);
    SIZE(CUDA_ARRAY3D_DESCRIPTOR_v1);
    FIELD(CUDA_ARRAY_DESCRIPTOR, NumChannels);
    FIELD(CUDA_ARRAY3D_DESCRIPTOR, Format);
    FIELD(CUDA_ARRAY3D_DESCRIPTOR, Flags);
    SIZE(CUDA_ARRAY3D_DESCRIPTOR);
    SIZE(CUDA_ARRAY_MEMORY_REQUIREMENTS);
    FIELD(CUarrayMapInfo, subresourceType);
    FIELD(CUarrayMapInfo, subresource);
    FIELD(CUarrayMapInfo, memOperationType);
    FIELD(CUarrayMapInfo, memHandle);
    FIELD(CUarrayMapInfo, deviceBitMask);
    SIZE(CUarrayMapInfo);
    FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, bytesize);
    FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
    SIZE(CUDA_MEM_ALLOC_NODE_PARAMS);
    SIZE(CUDA_MEM_FREE_NODE_PARAMS);
    FIELD(CUgraphNodeParams, alloc);
    FIELD(CUgraphNodeParams, free);
    SIZE(CUgraphNodeParams);
    SIZE(CUgraphEdgeData);
    FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
    SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS);
}

static void print_values(void)
{
    VALUE(CUDA_ERROR_INVALID_CONTEXT);
    VALUE(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    VALUE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    VALUE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    VALUE(CUDA_ERROR_NOT_SUPPORTED);
    VALUE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    VALUE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    VALUE(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
    VALUE(CU_POINTER_ATTRIBUTE_RANGE_SIZE);
    VALUE(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
    VALUE(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
    VALUE(CU_MEMPOOL_ATTR_USED_MEM_HIGH);
    VALUE(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
    VALUE(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
    VALUE(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    VALUE(CU_GRAPH_NODE_TYPE_MEM_FREE);
    VALUE(CU_AD_FORMAT_HALF);
    VALUE(CUDA_ARRAY3D_SPARSE);
    VALUE(CUDA_ARRAY3D_DEFERRED_MAPPING);
    VALUE(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    VALUE(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    VALUE((uintptr_t)CU_STREAM_PER_THREAD);
}

int main(void)
{
    print_memory();
    print_arrays_and_graphs();
    print_values();
    return 0;
}
