/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Graphs with nodes that allocate and free: addresses when a node is added,
 * memory of the device's graph pool when the graph is launched.
 *
 * Invariant: the memory of a node lives from a launch until it is freed by a
 * node, by cuMemFree or cuMemFreeAsync, or by the next launch that frees what
 * is left; neither the graph's end nor its executable's frees it.
 */
#include "fake.h"

/* flags of a graph's memory */
#define LIVE 1U
/* flags of a node */
#define FREES 1U
/* flags of an executable graph */
#define AUTO_FREE 1U

static void used(int device, int64_t bytes)
{
    struct fake_device *of = &fake_devices[device];

    of->graph_used_bytes += (uint64_t)bytes;
    if (of->graph_used_bytes > of->graph_used_high_bytes) {
        of->graph_used_high_bytes = of->graph_used_bytes;
    }
}

static void trim(int device)
{
    struct fake_device *of = &fake_devices[device];
    uint64_t least = fake_rounded(of->graph_used_bytes, FAKE_GRANULARITY_BYTES);

    if (of->graph_reserved_bytes > least) {
        fake_discharge(device, of->graph_reserved_bytes - least);
        of->graph_reserved_bytes = least;
    }
}

static bool make_live(struct fake_object *memory)
{
    struct fake_device *of = &fake_devices[memory->device];
    uint64_t bytes = fake_rounded(memory->size_bytes, FAKE_BLOCK_BYTES);
    uint64_t wanted =
        fake_rounded(of->graph_used_bytes + bytes, FAKE_GRANULARITY_BYTES);

    if (wanted > of->graph_reserved_bytes) {
        if (!fake_charge(memory->device, wanted - of->graph_reserved_bytes)) {
            return false;
        }
        of->graph_reserved_bytes = wanted;
        if (wanted > of->graph_reserved_high_bytes) {
            of->graph_reserved_high_bytes = wanted;
        }
    }
    used(memory->device, (int64_t)bytes);
    memory->flags |= LIVE;
    fake_live(FAKE_MEMORY, (int64_t)memory->size_bytes, 1);
    return true;
}

void fake_graph_returned(struct fake_object *memory)
{
    used(memory->device,
         -(int64_t)fake_rounded(memory->size_bytes, FAKE_BLOCK_BYTES));
    fake_live(FAKE_MEMORY, -(int64_t)memory->size_bytes, -1);
    memory->flags &= ~LIVE;
    if (memory->uses == 0) {
        fake_end(memory);
    }
}

static struct fake_object *add_node(struct fake_object *graph,
                                    struct fake_object *memory, uint32_t flags)
{
    struct fake_object *node = fake_new(FAKE_NODE, 0);

    if (node != NULL) {
        node->owner = graph;
        node->target = memory;
        node->flags = flags;
        /* In the order in which they came; a list of objects is newest first.
         */
        node->numbers[0] = graph->numbers[0]++;
        if (memory != NULL) {
            memory->uses++;
        }
        fake_live(FAKE_NODE, 0, 1);
    }
    return node;
}

CUresult fake_graph_memory(struct fake_object *graph, int device,
                           uint64_t bytes, CUdeviceptr *pointer,
                           struct fake_object **made_node)
{
    struct fake_object *memory;
    uint64_t offset = 0;
    uint64_t address = bytes <= fake_settings.memory_bytes
                           ? fake_take(device, bytes, &offset)
                           : 0;

    memory = address != 0 ? fake_new(FAKE_MEMORY, address) : NULL;
    if (memory == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory->device = device;
    memory->size_bytes = bytes;
    memory->offset_bytes = offset;
    *made_node = add_node(graph, memory, 0);
    if (*made_node == NULL) {
        fake_end(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pointer = address;
    return CUDA_SUCCESS;
}

CUresult fake_graph_free_node(struct fake_object *graph, CUdeviceptr pointer,
                              struct fake_object **made_node)
{
    struct fake_object *memory = fake_at(pointer, FAKE_BIT(FAKE_MEMORY));

    if (memory == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* Once in all graphs. */
    for (struct fake_object *at = fake_first(FAKE_NODE); at != NULL;
         at = at->next) {
        if (at->target == memory && (at->flags & FREES) != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    *made_node = add_node(graph, memory, FREES);
    return *made_node == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static void end_node(struct fake_object *node)
{
    struct fake_object *memory = node->target;

    fake_end(node);
    if (memory != NULL && --memory->uses == 0 && (memory->flags & LIVE) == 0) {
        fake_end(memory);
    }
}

static void end_graph(struct fake_object *graph)
{
    struct fake_object *next;

    for (struct fake_object *at = fake_first(FAKE_NODE); at != NULL;
         at = next) {
        next = at->next;
        if (at->owner == graph) {
            end_node(at);
        }
    }
    fake_end(graph);
}

/* The executable needs its nodes for as long as it lives. */
void fake_graph_forget(struct fake_object *graph)
{
    graph->refs = 0;
    if (graph->uses == 0) {
        end_graph(graph);
    }
}

static struct fake_object *graph_of(CUgraph handle)
{
    struct fake_object *graph = fake_check(handle, FAKE_GRAPH);

    return graph != NULL && graph->refs > 0 ? graph : NULL;
}

static CUresult create(CUgraph *handle)
{
    struct fake_object *graph;

    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    graph = fake_new(FAKE_GRAPH, 0);
    if (graph == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fake_live(FAKE_GRAPH, 0, 1);
    *handle = (CUgraph)graph;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUgraph handle)
{
    struct fake_object *graph = graph_of(handle);

    if (graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fake_graph_forget(graph);
    return CUDA_SUCCESS;
}

static CUresult add_alloc(CUgraphNode *node, CUgraph handle,
                          CUDA_MEM_ALLOC_NODE_PARAMS *how)
{
    struct fake_object *graph = graph_of(handle);
    struct fake_object *made = NULL;
    CUresult why = fake_fault();

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (node == NULL || graph == NULL || how == NULL || how->bytesize == 0 ||
        how->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        how->poolProps.location.id < 0 ||
        how->poolProps.location.id >= fake_settings.devices) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    why = fake_graph_memory(graph, how->poolProps.location.id, how->bytesize,
                            &how->dptr, &made);
    if (why == CUDA_SUCCESS) {
        *node = (CUgraphNode)made;
    }
    return why;
}

static CUresult add_free(CUgraphNode *node, CUgraph handle, CUdeviceptr pointer)
{
    struct fake_object *graph = graph_of(handle);
    struct fake_object *made = NULL;
    CUresult why;

    if (node == NULL || graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    why = fake_graph_free_node(graph, pointer, &made);
    if (why == CUDA_SUCCESS) {
        *node = (CUgraphNode)made;
    }
    return why;
}

static CUresult add_any(CUgraphNode *node, CUgraph handle,
                        CUgraphNodeParams *how)
{
    struct fake_object *made;

    if (how == NULL || node == NULL || graph_of(handle) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch ((int)how->type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return add_alloc(node, handle, (void *)&how->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return add_free(node, handle, how->free.dptr);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        made = add_node(graph_of(handle), NULL, 0);
        *node = (CUgraphNode)made;
        return made == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static CUresult node_memory(CUgraphNode handle, bool frees,
                            const struct fake_object **memory)
{
    const struct fake_object *node = fake_check(handle, FAKE_NODE);

    if (node == NULL || node->target == NULL ||
        ((node->flags & FREES) != 0) != frees) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *memory = node->target;
    return CUDA_SUCCESS;
}

static CUresult alloc_parameters(CUgraphNode handle,
                                 CUDA_MEM_ALLOC_NODE_PARAMS *into)
{
    const struct fake_object *memory = NULL;
    CUresult why = node_memory(handle, false, &memory);

    if (into == NULL || why != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *into = (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE,
                                   memory->device}},
        .bytesize = memory->size_bytes,
        .dptr = memory->address,
    };
    return CUDA_SUCCESS;
}

static CUresult free_parameters(CUgraphNode handle, CUdeviceptr *into)
{
    const struct fake_object *memory = NULL;
    CUresult why = node_memory(handle, true, &memory);

    if (into == NULL || why != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *into = memory->address;
    return CUDA_SUCCESS;
}

static CUresult destroy_node(CUgraphNode handle)
{
    struct fake_object *node = fake_check(handle, FAKE_NODE);

    if (node == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (node->target != NULL) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    end_node(node);
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *handle, CUgraph of, cuuint64_t flags)
{
    struct fake_object *graph = graph_of(of);
    struct fake_object *exec;

    if (handle == NULL || graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* A graph with memory has one executable at a time. */
    if (graph->uses != 0 && graph->numbers[0] != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    exec = fake_new(FAKE_EXEC, 0);
    if (exec == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    exec->owner = graph;
    exec->flags = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0
                      ? AUTO_FREE
                      : 0;
    graph->uses++;
    fake_live(FAKE_EXEC, 0, 1);
    *handle = (CUgraphExec)exec;
    return CUDA_SUCCESS;
}

static CUresult instantiate_with(CUgraphExec *handle, CUgraph of,
                                 CUDA_GRAPH_INSTANTIATE_PARAMS *how)
{
    CUresult why;

    if (how == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    why = instantiate(handle, of, how->flags);
    how->result_out = why == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                                          : CUDA_GRAPH_INSTANTIATE_ERROR;
    return why;
}

static CUresult run(const struct fake_object *node, uint32_t flags)
{
    struct fake_object *memory = node->target;

    if (memory == NULL) {
        return CUDA_SUCCESS;
    }
    if ((node->flags & FREES) != 0) {
        if ((memory->flags & LIVE) == 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        fake_graph_returned(memory);
        return CUDA_SUCCESS;
    }
    if ((memory->flags & LIVE) != 0) {
        if ((flags & AUTO_FREE) == 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        fake_graph_returned(memory);
    }
    return make_live(memory) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static const struct fake_object *node_at(const struct fake_object *graph,
                                         uint64_t place)
{
    const struct fake_object *at = fake_first(FAKE_NODE);

    while (at != NULL && (at->owner != graph || at->numbers[0] != place)) {
        at = at->next;
    }
    return at;
}

static CUresult launch(CUgraphExec handle, CUstream stream)
{
    const struct fake_object *exec = fake_check(handle, FAKE_EXEC);
    const struct fake_object *node;
    struct fake_stream_of of;
    CUresult why = fake_stream(stream, &of);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (uint64_t i = 0; i < exec->owner->numbers[0] && why == CUDA_SUCCESS;
         i++) {
        node = node_at(exec->owner, i);
        why = node != NULL ? run(node, exec->flags) : CUDA_SUCCESS;
    }
    return why;
}

static CUresult destroy_exec(CUgraphExec handle)
{
    struct fake_object *exec = fake_check(handle, FAKE_EXEC);
    struct fake_object *graph;

    if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    graph = exec->owner;
    fake_end(exec);
    if (--graph->uses == 0 && graph->refs == 0) {
        end_graph(graph);
    }
    return CUDA_SUCCESS;
}

static CUresult trim_device(CUdevice device)
{
    if (device < 0 || device >= fake_settings.devices) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    trim(device);
    return CUDA_SUCCESS;
}

static CUresult get(CUdevice device, CUgraphMem_attribute which, void *value)
{
    const struct fake_device *of;

    fake_asked();
    if (device < 0 || device >= fake_settings.devices) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    of = &fake_devices[device];
    if (value == NULL || which > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *(cuuint64_t *)value =
        which == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ? of->graph_used_bytes
        : which == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH  ? of->graph_used_high_bytes
        : which == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
            ? of->graph_reserved_bytes
            : of->graph_reserved_high_bytes;
    return CUDA_SUCCESS;
}

static CUresult set(CUdevice device, CUgraphMem_attribute which,
                    const void *value)
{
    struct fake_device *of;

    if (device < 0 || device >= fake_settings.devices) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    of = &fake_devices[device];
    if (value == NULL || *(const cuuint64_t *)value != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch ((int)which) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        of->graph_used_high_bytes = of->graph_used_bytes;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        of->graph_reserved_high_bytes = of->graph_reserved_bytes;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

#define OWN(stream) ((stream) == NULL ? CU_STREAM_PER_THREAD : (stream))

FAKE_DEFINE(cuGraphCreate, (CUgraph * graph, unsigned int flags),
            ((void)flags, create(graph)))
FAKE_DEFINE(cuGraphDestroy, (CUgraph graph), destroy(graph))
FAKE_DEFINE(cuGraphAddMemAllocNode,
            (CUgraphNode * node, CUgraph graph, const CUgraphNode *after,
             size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *how),
            ((void)after, (void)count, add_alloc(node, graph, how)))
FAKE_DEFINE(cuGraphAddMemFreeNode,
            (CUgraphNode * node, CUgraph graph, const CUgraphNode *after,
             size_t count, CUdeviceptr pointer),
            ((void)after, (void)count, add_free(node, graph, pointer)))
FAKE_DEFINE(cuGraphAddNode,
            (CUgraphNode * node, CUgraph graph, const CUgraphNode *after,
             size_t count, CUgraphNodeParams *how),
            ((void)after, (void)count, add_any(node, graph, how)))
FAKE_DEFINE(cuGraphAddNode_v2,
            (CUgraphNode * node, CUgraph graph, const CUgraphNode *after,
             const CUgraphEdgeData *edges, size_t count,
             CUgraphNodeParams *how),
            ((void)after, (void)edges, (void)count, add_any(node, graph, how)))
FAKE_DEFINE(cuGraphMemAllocNodeGetParams,
            (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *into),
            alloc_parameters(node, into))
FAKE_DEFINE(cuGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr *into),
            free_parameters(node, into))
FAKE_DEFINE(cuGraphDestroyNode, (CUgraphNode node), destroy_node(node))
FAKE_DEFINE(cuGraphInstantiateWithFlags,
            (CUgraphExec * exec, CUgraph graph, unsigned long long flags),
            instantiate(exec, graph, flags))
FAKE_DEFINE(cuGraphInstantiateWithParams,
            (CUgraphExec * exec, CUgraph graph,
             CUDA_GRAPH_INSTANTIATE_PARAMS *how),
            instantiate_with(exec, graph, how))
FAKE_DEFINE(cuGraphInstantiateWithParams_ptsz,
            (CUgraphExec * exec, CUgraph graph,
             CUDA_GRAPH_INSTANTIATE_PARAMS *how),
            instantiate_with(exec, graph, how))
FAKE_DEFINE(cuGraphLaunch, (CUgraphExec exec, CUstream stream),
            launch(exec, stream))
FAKE_DEFINE(cuGraphLaunch_ptsz, (CUgraphExec exec, CUstream stream),
            launch(exec, OWN(stream)))
FAKE_DEFINE(cuGraphExecDestroy, (CUgraphExec exec), destroy_exec(exec))
FAKE_DEFINE(cuDeviceGraphMemTrim, (CUdevice device), trim_device(device))
FAKE_DEFINE(cuDeviceGetGraphMemAttribute,
            (CUdevice device, CUgraphMem_attribute which, void *value),
            get(device, which, value))
FAKE_DEFINE(cuDeviceSetGraphMemAttribute,
            (CUdevice device, CUgraphMem_attribute which, void *value),
            set(device, which, value))
