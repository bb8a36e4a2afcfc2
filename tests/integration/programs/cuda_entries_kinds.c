/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One round of every kind of the driver's memory that cuda_doors has not; see
 * cuda_entries.h.
 *
 * Invariant: as there. Sites whose name says so are never to be seen in a
 * recording: what they make has no memory of its own (sparse arrays, parts of
 * an external memory, multicast objects), or only while a graph runs.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda_entries.h"

#define PAGE 4096
#define EXTERNAL_BYTES 16384

static CUDA_ARRAY3D_DESCRIPTOR form_of(unsigned round, size_t depth,
                                       unsigned flags)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = 32 + round % 4 * 8,
                                     .Height = 16,
                                     .Depth = depth,
                                     .Format = CU_AD_FORMAT_HALF,
                                     .NumChannels = 4,
                                     .Flags = flags};
}

static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *form, unsigned level)
{
    return (form->Width >> level) * (form->Height >> level) *
           (form->Depth >> level) * form->NumChannels * 2;
}

SITE CUresult site_array_2d(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *form)
{
    return cuArrayCreate_v2(array, form);
}

SITE CUresult site_array_3d(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *form)
{
    return cuArray3DCreate_v2(array, form);
}

SITE CUresult site_array_sparse(CUarray *array,
                                const CUDA_ARRAY3D_DESCRIPTOR *form)
{
    return cuArray3DCreate_v2(array, form);
}

SITE CUresult site_mipmap_3d(CUmipmappedArray *mipmap,
                             const CUDA_ARRAY3D_DESCRIPTOR *form)
{
    return cuMipmappedArrayCreate(mipmap, form, 3);
}

static void arrays(int device, unsigned round, bool leave)
{
    const CUDA_ARRAY3D_DESCRIPTOR form = form_of(round, 8, 0);
    const CUDA_ARRAY3D_DESCRIPTOR sparse =
        form_of(round, 8, CUDA_ARRAY3D_SPARSE);
    const CUDA_ARRAY_DESCRIPTOR flat = {
        .Width = 100 + round, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
    uint64_t flat_bytes = (100 + round) * 8;
    uint64_t levels_bytes =
        bytes_of(&form, 0) + bytes_of(&form, 1) + bytes_of(&form, 2);
    CUmipmappedArray mipmap = NULL;
    CUarray two = NULL;
    CUarray three = NULL;
    CUarray empty = NULL;

    DONE(site_array_2d(&two, &flat));
    entry_count(SITE_ARRAY_2D, device, flat_bytes, 1);
    DONE(site_array_3d(&three, &form));
    entry_count(SITE_ARRAY_3D, device, bytes_of(&form, 0), 1);
    DONE(site_mipmap_3d(&mipmap, &form));
    entry_count(SITE_MIPMAP_3D, device, levels_bytes, 1);
    DONE(site_array_sparse(&empty, &sparse));
    if (leave) {
        return;
    }
    DONE(cuArrayDestroy(two));
    entry_count(SITE_ARRAY_2D, device, flat_bytes, -1);
    DONE(cuArrayDestroy(three));
    entry_count(SITE_ARRAY_3D, device, bytes_of(&form, 0), -1);
    DONE(cuMipmappedArrayDestroy(mipmap));
    entry_count(SITE_MIPMAP_3D, device, levels_bytes, -1);
    DONE(cuArrayDestroy(empty));
}

SITE CUresult site_exported(CUdeviceptr *pointer, size_t bytes)
{
    return cuMemAlloc_v2(pointer, bytes);
}

SITE CUresult site_ipc_old(CUdeviceptr *pointer, CUipcMemHandle handle)
{
    return cuIpcOpenMemHandle(pointer, handle, 1);
}

/* Opened twice, it is one import, and stays until the second close. */
static void imports(int device, unsigned round, bool leave)
{
    uint64_t bytes = 1000 + round;
    CUdeviceptr mine = 0;
    CUdeviceptr shared = 0;
    CUdeviceptr again = 0;
    CUipcMemHandle handle;

    DONE(site_exported(&mine, bytes));
    entry_count(SITE_EXPORTED, device, bytes, 1);
    DONE(cuIpcGetMemHandle(&handle, mine));
    DONE(site_ipc_old(&shared, handle));
    entry_count(SITE_IPC_OLD, device, bytes, 1);
    DONE(site_ipc_old(&again, handle));
    DONE(cuIpcCloseMemHandle(shared));
    if (leave) {
        return;
    }
    DONE(cuIpcCloseMemHandle(again));
    entry_count(SITE_IPC_OLD, device, bytes, -1);
    DONE(cuMemFree_v2(mine));
    entry_count(SITE_EXPORTED, device, bytes, -1);
}

SITE CUresult site_external(CUexternalMemory *memory,
                            const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *how)
{
    return cuImportExternalMemory(memory, how);
}

SITE CUresult site_external_part(CUdeviceptr *pointer, CUexternalMemory memory,
                                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *how)
{
    return cuExternalMemoryGetMappedBuffer(pointer, memory, how);
}

SITE CUresult
site_external_mipmap(CUmipmappedArray *mipmap, CUexternalMemory memory,
                     const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *how)
{
    return cuExternalMemoryGetMappedMipmappedArray(mipmap, memory, how);
}

/* It lives as long as it is not destroyed, or a part of it is mapped. */
static void externals(int device, unsigned round, bool leave)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC how = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
        .size = EXTERNAL_BYTES};
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = {.size = 4096};
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC levels = {
        .arrayDesc = form_of(round, 1, 0), .numLevels = 1};
    CUexternalMemory memory = NULL;
    CUmipmappedArray mipmap = NULL;
    CUdeviceptr buffer = 0;

    how.handle.fd = memfd_create("cuda_entries", MFD_CLOEXEC);
    if (how.handle.fd < 0 || ftruncate(how.handle.fd, EXTERNAL_BYTES) != 0) {
        REFUSED(CUDA_SUCCESS);
        return;
    }
    DONE(site_external(&memory, &how));
    entry_count(SITE_EXTERNAL, device, EXTERNAL_BYTES, 1);
    DONE(site_external_part(&buffer, memory, &part));
    DONE(site_external_mipmap(&mipmap, memory, &levels));
    DONE(cuDestroyExternalMemory(memory));
    DONE(cuMipmappedArrayDestroy(mipmap));
    if (!leave) {
        DONE(cuMemFree_v2(buffer));
        entry_count(SITE_EXTERNAL, device, EXTERNAL_BYTES, -1);
    }
}

SITE CUresult site_node(CUgraphNode *node, CUgraph graph,
                        CUDA_MEM_ALLOC_NODE_PARAMS *how)
{
    return cuGraphAddMemAllocNode(node, graph, NULL, 0, how);
}

SITE CUresult site_node_general(CUgraphNode *node, CUgraph graph,
                                CUgraphNodeParams *how)
{
    return cuGraphAddNode(node, graph, NULL, 0, how);
}

SITE CUresult site_node_edges(CUgraphNode *node, CUgraph graph,
                              CUgraphNodeParams *how)
{
    return cuGraphAddNode_v2(node, graph, NULL, NULL, 0, how);
}

SITE CUresult site_node_captured(CUdeviceptr *pointer, size_t bytes,
                                 CUstream stream)
{
    return cuMemAllocAsync(pointer, bytes, stream);
}

static void launch(CUgraph graph, CUdeviceptr pointer)
{
    CUgraphExec exec = NULL;

    DONE(cuGraphInstantiateWithFlags(
        &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    DONE(cuGraphLaunch(exec, NULL));
    DONE(cuGraphLaunch(exec, NULL));
    if (pointer != 0) {
        DONE(cuMemFreeAsync(pointer, NULL));
    }
    DONE(cuGraphExecDestroy(exec));
    DONE(cuGraphDestroy(graph));
}

/* A node of each form, freed by the program, by another node, or captured. */
static void graphs(int device, unsigned round)
{
    CUgraphNodeParams how = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    CUgraphNodeParams end = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
    CUdeviceptr pointer = 0;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphNode node = NULL;

    how.alloc = (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}},
        .bytesize = 3000 + round};
    DONE(cuGraphCreate(&graph, 0));
    DONE(site_node(&node, graph, &how.alloc));
    launch(graph, how.alloc.dptr);
    DONE(cuGraphCreate(&graph, 0));
    DONE(site_node_edges(&node, graph, &how));
    launch(graph, how.alloc.dptr);
    DONE(cuGraphCreate(&graph, 0));
    DONE(site_node_general(&node, graph, &how));
    end.free.dptr = how.alloc.dptr;
    DONE(site_node_edges(&node, graph, &end));
    launch(graph, 0);
    DONE(cuGraphCreate(&graph, 0));
    DONE(site_node_edges(&node, graph, &how));
    DONE(cuGraphAddMemFreeNode(&node, graph, NULL, 0, how.alloc.dptr));
    launch(graph, 0);
    DONE(cuGraphCreate(&graph, 0));
    DONE(site_node(&node, graph, &how.alloc));
    end.free.dptr = how.alloc.dptr;
    DONE(site_node_general(&node, graph, &end));
    launch(graph, 0);
    DONE(cuStreamCreate(&stream, 0));
    DONE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    DONE(site_node_captured(&pointer, 2048, stream));
    DONE(cuMemFreeAsync(pointer, stream));
    DONE(cuStreamEndCapture(stream, &graph));
    launch(graph, 0);
    DONE(cuStreamDestroy_v2(stream));
}

SITE CUresult site_pool_twin(CUdeviceptr *pointer, size_t bytes,
                             CUmemoryPool pool)
{
    return cuMemAllocFromPoolAsync_ptsz(pointer, bytes, pool, NULL);
}

SITE CUresult site_async_twin(CUdeviceptr *pointer, size_t bytes)
{
    return cuMemAllocAsync_ptsz(pointer, bytes, CU_STREAM_PER_THREAD);
}

SITE CUresult site_pool_import(CUdeviceptr *pointer, CUmemoryPool pool,
                               CUmemPoolPtrExportData *data)
{
    return cuMemPoolImportPointer(pointer, pool, data);
}

static void pools(int device, unsigned round, bool leave)
{
    const CUmemAllocationHandleType type =
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    const CUmemPoolProps how = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .handleTypes = type,
                                .location = entry_physical[device].location};
    uint64_t bytes = 5000 + round;
    CUmemPoolPtrExportData data;
    CUdeviceptr own = 0;
    CUdeviceptr pointer = 0;
    CUdeviceptr imported = 0;
    CUmemoryPool pool = NULL;
    CUmemoryPool other = NULL;
    int shared = -1;

    DONE(cuMemPoolCreate(&pool, &how));
    DONE(site_pool_twin(&pointer, bytes, pool));
    entry_count(SITE_POOL_TWIN, device, bytes, 1);
    DONE(site_async_twin(&own, bytes));
    entry_count(SITE_ASYNC_TWIN, device, bytes, 1);
    DONE(cuMemPoolExportToShareableHandle(&shared, pool, type, 0));
    DONE(cuMemPoolImportFromShareableHandle(&other, (void *)(intptr_t)shared,
                                            type, 0));
    close(shared);
    DONE(cuMemPoolExportPointer(&data, pointer));
    DONE(site_pool_import(&imported, other, &data));
    entry_count(SITE_POOL_IMPORT, device, bytes, 1);
    DONE(cuMemPoolDestroy(pool));
    if (leave) {
        return;
    }
    DONE(cuMemFreeAsync_ptsz(imported, NULL));
    entry_count(SITE_POOL_IMPORT, device, bytes, -1);
    DONE(round % 2 == 0 ? cuMemFree_v2(pointer)
                        : cuMemFreeAsync_ptsz(pointer, NULL));
    entry_count(SITE_POOL_TWIN, device, bytes, -1);
    DONE(round % 2 == 0 ? cuMemFreeAsync(own, NULL) : cuMemFree_v2(own));
    entry_count(SITE_ASYNC_TWIN, device, bytes, -1);
    DONE(cuMemPoolDestroy(other));
}

SITE CUresult site_register_old(void *pointer, size_t bytes)
{
    return cuMemHostRegister(pointer, bytes, 0);
}

SITE CUresult site_multicast(CUmemGenericAllocationHandle *handle,
                             const CUmulticastObjectProp *how)
{
    return cuMulticastCreate(handle, how);
}

static void others(bool leave)
{
    const CUmulticastObjectProp how = {
        .numDevices = 1, .size = entry_unit_bytes, .handleTypes = 1};
    CUmemGenericAllocationHandle handle = 0;
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    DONE(site_register_old(page, PAGE));
    entry_count(SITE_REGISTER_OLD, NO_DEVICE, PAGE, 1);
    DONE(site_multicast(&handle, &how));
    DONE(cuMemRelease(handle));
    if (!leave) {
        DONE(cuMemHostUnregister(page));
        entry_count(SITE_REGISTER_OLD, NO_DEVICE, PAGE, -1);
        munmap(page, PAGE);
    }
}

void entry_round(int device, unsigned round, bool leave)
{
    arrays(device, round, leave);
    imports(device, round, leave);
    externals(device, round, leave);
    graphs(device, round);
    pools(device, round, leave);
    others(leave);
    entry_vmm(device, round, leave);
}

static void free_all_twice(int device)
{
    const CUDA_ARRAY3D_DESCRIPTOR form = form_of(0, 8, 0);
    const CUDA_ARRAY_DESCRIPTOR flat = {
        .Width = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    uint64_t levels_bytes =
        bytes_of(&form, 0) + bytes_of(&form, 1) + bytes_of(&form, 2);
    CUmipmappedArray mipmap = NULL;
    CUarray array = NULL;
    CUdeviceptr pointer = 0;

    DONE(site_array_2d(&array, &flat));
    entry_count(SITE_ARRAY_2D, device, 32, 1);
    DONE(cuArrayDestroy(array));
    entry_count(SITE_ARRAY_2D, device, 32, -1);
    UNKNOWN(cuArrayDestroy(array));
    DONE(site_mipmap_3d(&mipmap, &form));
    entry_count(SITE_MIPMAP_3D, device, levels_bytes, 1);
    DONE(cuMipmappedArrayDestroy(mipmap));
    entry_count(SITE_MIPMAP_3D, device, levels_bytes, -1);
    UNKNOWN(cuMipmappedArrayDestroy(mipmap));
    DONE(site_async_twin(&pointer, 100));
    entry_count(SITE_ASYNC_TWIN, device, 100, 1);
    DONE(cuMemFreeAsync_ptsz(pointer, NULL));
    entry_count(SITE_ASYNC_TWIN, device, 100, -1);
    UNKNOWN(cuMemFreeAsync_ptsz(pointer, NULL));
    UNKNOWN(cuMemFree_v2(pointer));
}

void entry_refuse(int device)
{
    const CUDA_ARRAY3D_DESCRIPTOR huge = {.Width = 1 << 20,
                                          .Height = 1 << 20,
                                          .Depth = 1 << 10,
                                          .Format = CU_AD_FORMAT_FLOAT,
                                          .NumChannels = 4};
    CUmipmappedArray mipmap = NULL;
    CUarray array = NULL;
    CUdeviceptr pointer = 0;
    CUmemPoolPtrExportData nothing;
    char page[64];

    memset(&nothing, 0, sizeof(nothing));
    REFUSED(site_array_3d(&array, &huge));
    REFUSED(site_mipmap_3d(&mipmap, &huge));
    REFUSED(site_exported(&pointer, TOO_MANY));
    REFUSED(site_async_twin(&pointer, TOO_MANY));
    REFUSED(site_pool_twin(&pointer, 100, NULL));
    REFUSED(site_pool_import(&pointer, NULL, &nothing));
    REFUSED(site_external(NULL, NULL));
    REFUSED(site_register_old(NULL, 0));
    UNKNOWN(cuMemHostUnregister(page));
    UNKNOWN(cuIpcCloseMemHandle(4096));
    UNKNOWN(cuMemUnmap(4096, entry_unit_bytes));
    UNKNOWN(cuMemAddressFree(4096, entry_unit_bytes));
    REFUSED(cuDestroyExternalMemory(NULL));
    free_all_twice(device);
}
