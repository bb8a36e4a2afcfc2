/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuda/abi.h and hooks.def against the driver's own header, where one is
 * installed: layouts, values, and the shape of every function that is wrapped.
 * Built is passed; C++ because it can take a function's type apart.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaTypedefs.h>

#include <array>
#include <cstddef>
#include <type_traits>

#include "cuda/abi.h"

namespace
{

template <class Function> struct Shape;

/* Sizes, and what is a pointer; enumerations and integers are one. */
template <class Result, class... Parameters>
struct Shape<Result (*)(Parameters...)> {
    static constexpr std::array<std::size_t, sizeof...(Parameters) + 1> sizes{
        sizeof(Result), sizeof(Parameters)...};
    static constexpr std::array<bool, sizeof...(Parameters) + 1> pointers{
        std::is_pointer_v<Result>, std::is_pointer_v<Parameters>...};
};

template <class Ours, class Theirs> constexpr bool is_same_shape()
{
    constexpr auto sizes = Shape<Ours>::sizes;
    constexpr auto pointers = Shape<Ours>::pointers;

    if constexpr (sizes.size() != Shape<Theirs>::sizes.size()) {
        return false;
    } else {
        for (std::size_t i = 0; i < sizes.size(); i++) {
            if (sizes[i] != Shape<Theirs>::sizes[i] ||
                pointers[i] != Shape<Theirs>::pointers[i]) {
                return false;
            }
        }
        return true;
    }
}

} // namespace

#define THEIRS_0(base, version) PFN_##base##_v##version
#define THEIRS_1(base, version) PFN_##base##_v##version##_ptsz
#define SEEP_CUDA_HOOK(name, base, version, per_thread, parameters)    \
    static_assert(is_same_shape<int(*) parameters,                     \
                                THEIRS_##per_thread(base, version)>(), \
                  #name " has another form");
#include "cuda/hooks.def"

#define SIZE(ours, theirs) \
    static_assert(sizeof(ours) == sizeof(theirs), #ours " has another size")
#define FIELD(ours, field, theirs, their_field)                             \
    static_assert(offsetof(ours, field) == offsetof(theirs, their_field) && \
                      sizeof(ours::field) == sizeof(theirs::their_field),   \
                  #ours "." #field " lies elsewhere")
#define VALUE(ours, theirs)                                           \
    static_assert(static_cast<int>(ours) == static_cast<int>(theirs), \
                  #ours " has another value")

SIZE(seep_cuda_location, CUmemLocation_v1);
FIELD(seep_cuda_location, type, CUmemLocation_v1, type);
FIELD(seep_cuda_location, id, CUmemLocation_v1, id);
SIZE(seep_cuda_allocation, CUmemAllocationProp_v1);
FIELD(seep_cuda_allocation, location, CUmemAllocationProp_v1, location);
FIELD(seep_cuda_allocation, handle_types, CUmemAllocationProp_v1,
      requestedHandleTypes);
SIZE(seep_cuda_multicast, CUmulticastObjectProp_v1);
FIELD(seep_cuda_multicast, size_bytes, CUmulticastObjectProp_v1, size);
SIZE(seep_cuda_pool, CUmemPoolProps_v1);
FIELD(seep_cuda_pool, location, CUmemPoolProps_v1, location);
SIZE(seep_cuda_array, CUDA_ARRAY_DESCRIPTOR_v2);
FIELD(seep_cuda_array, width, CUDA_ARRAY_DESCRIPTOR_v2, Width);
FIELD(seep_cuda_array, height, CUDA_ARRAY_DESCRIPTOR_v2, Height);
FIELD(seep_cuda_array, format, CUDA_ARRAY_DESCRIPTOR_v2, Format);
FIELD(seep_cuda_array, channels_count, CUDA_ARRAY_DESCRIPTOR_v2, NumChannels);
SIZE(seep_cuda_array3d, CUDA_ARRAY3D_DESCRIPTOR_v2);
FIELD(seep_cuda_array3d, height, CUDA_ARRAY3D_DESCRIPTOR_v2, Height);
FIELD(seep_cuda_array3d, depth, CUDA_ARRAY3D_DESCRIPTOR_v2, Depth);
FIELD(seep_cuda_array3d, format, CUDA_ARRAY3D_DESCRIPTOR_v2, Format);
FIELD(seep_cuda_array3d, channels_count, CUDA_ARRAY3D_DESCRIPTOR_v2,
      NumChannels);
FIELD(seep_cuda_array3d, flags, CUDA_ARRAY3D_DESCRIPTOR_v2, Flags);
SIZE(seep_cuda_ipc_handle, CUipcMemHandle_v1);
SIZE(seep_cuda_external, CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1);
FIELD(seep_cuda_external, size_bytes, CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1,
      size);
SIZE(seep_cuda_external_buffer, CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1);
FIELD(seep_cuda_external_buffer, size_bytes,
      CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1, size);
SIZE(seep_cuda_external_mipmap, CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1);
FIELD(seep_cuda_external_mipmap, array,
      CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1, arrayDesc);
FIELD(seep_cuda_external_mipmap, levels_count,
      CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1, numLevels);
SIZE(seep_cuda_graph_allocation, CUDA_MEM_ALLOC_NODE_PARAMS_v1);
SIZE(seep_cuda_graph_allocation, CUDA_MEM_ALLOC_NODE_PARAMS_v2);
FIELD(seep_cuda_graph_allocation, size_bytes, CUDA_MEM_ALLOC_NODE_PARAMS_v2,
      bytesize);
FIELD(seep_cuda_graph_allocation, pointer, CUDA_MEM_ALLOC_NODE_PARAMS_v2, dptr);
SIZE(seep_cuda_node, CUgraphNodeParams);
FIELD(seep_cuda_node, type, CUgraphNodeParams, type);
FIELD(seep_cuda_node, parameters.allocation, CUgraphNodeParams, alloc);
FIELD(seep_cuda_node, parameters.freed_pointer, CUgraphNodeParams, free.dptr);

VALUE(SEEP_CUDA_SUCCESS, CUDA_SUCCESS);
VALUE(SEEP_CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
VALUE(SEEP_CUDA_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
VALUE(SEEP_CUDA_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
VALUE(SEEP_CUDA_LOOKUP_LEGACY_STREAM, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
VALUE(SEEP_CUDA_LOOKUP_PER_THREAD_STREAM,
      CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
VALUE(SEEP_CUDA_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
VALUE(SEEP_CUDA_POOL_RESERVED_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
VALUE(SEEP_CUDA_POOL_USED_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
VALUE(SEEP_CUDA_GRAPH_USED_CURRENT, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
VALUE(SEEP_CUDA_GRAPH_RESERVED_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
VALUE(SEEP_CUDA_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
VALUE(SEEP_CUDA_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
VALUE(SEEP_CUDA_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
VALUE(SEEP_CUDA_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT16);
VALUE(SEEP_CUDA_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_UNSIGNED_INT32);
VALUE(SEEP_CUDA_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8);
VALUE(SEEP_CUDA_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16);
VALUE(SEEP_CUDA_FORMAT_SIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32);
VALUE(SEEP_CUDA_FORMAT_HALF, CU_AD_FORMAT_HALF);
VALUE(SEEP_CUDA_FORMAT_FLOAT, CU_AD_FORMAT_FLOAT);
VALUE(SEEP_CUDA_FORMAT_NV12, CU_AD_FORMAT_NV12);
VALUE(SEEP_CUDA_FORMAT_BC1_UNORM, CU_AD_FORMAT_BC1_UNORM);
VALUE(SEEP_CUDA_FORMAT_BC4_SNORM, CU_AD_FORMAT_BC4_SNORM);
VALUE(SEEP_CUDA_FORMAT_BC7_UNORM_SRGB, CU_AD_FORMAT_BC7_UNORM_SRGB);
VALUE(SEEP_CUDA_FORMAT_SNORM_INT16X4, CU_AD_FORMAT_SNORM_INT16X4);
VALUE(SEEP_CUDA_FORMAT_UNORM_INT_101010_2, CU_AD_FORMAT_UNORM_INT_101010_2);
VALUE(SEEP_CUDA_ARRAY_LAYERED, CUDA_ARRAY3D_LAYERED);
VALUE(SEEP_CUDA_ARRAY_CUBEMAP, CUDA_ARRAY3D_CUBEMAP);
VALUE(SEEP_CUDA_ARRAY_SPARSE, CUDA_ARRAY3D_SPARSE);
VALUE(SEEP_CUDA_ARRAY_DEFERRED_MAPPING, CUDA_ARRAY3D_DEFERRED_MAPPING);
VALUE(SEEP_CUDA_NODE_ALLOCATION, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
VALUE(SEEP_CUDA_NODE_FREE, CU_GRAPH_NODE_TYPE_MEM_FREE);

int main()
{
    return 0;
}
