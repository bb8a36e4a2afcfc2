/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory nodes of graphs.
 *
 * Invariant: as in hooks.h. A node has an address from the beginning, and
 * memory of the device's graph pool only while it runs: it is known, so that
 * its free is, and its bytes are told by the pool.
 */
#include "cuda/hooks.h"
#include "cuda/note.h"

static void note_freed(uint64_t pointer)
{
    struct seep_cuda_leave leave =
        seep_cuda_ledger_leave(SEEP_CUDA_POINTER, pointer);

    seep_cuda_ledger_settle(&leave, true);
}

static void note_node(const struct seep_capture_start *from,
                      const struct seep_cuda_node *node)
{
    const struct seep_cuda_graph_allocation *allocation =
        &node->parameters.allocation;

    if (node->type == SEEP_CUDA_NODE_ALLOCATION) {
        seep_cuda_note_pooled(from, allocation->pointer, allocation->size_bytes,
                              true);
    } else if (node->type == SEEP_CUDA_NODE_FREE) {
        note_freed(node->parameters.freed_pointer);
    }
}

int seep_cuda_cuGraphAddMemAllocNode(void **node, void *graph,
                                     void *const *before, size_t before_count,
                                     struct seep_cuda_graph_allocation *wanted)
{
    int (*real)(void **, void *, void *const *, size_t,
                struct seep_cuda_graph_allocation *) =
        SEEP_CUDA_REAL(cuGraphAddMemAllocNode);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(node, graph, before, before_count, wanted);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_cuda_note_pooled(&start, wanted->pointer, wanted->size_bytes,
                              true);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuGraphAddMemAllocNode);

int seep_cuda_cuGraphAddMemFreeNode(void **node, void *graph,
                                    void *const *before, size_t before_count,
                                    uint64_t pointer)
{
    int (*real)(void **, void *, void *const *, size_t, uint64_t) =
        SEEP_CUDA_REAL(cuGraphAddMemFreeNode);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(node, graph, before, before_count, pointer);
    if (seep_cuda_came(nest, result)) {
        note_freed(pointer);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuGraphAddMemFreeNode);

int seep_cuda_cuGraphAddNode(void **node, void *graph, void *const *before,
                             size_t before_count, struct seep_cuda_node *wanted)
{
    int (*real)(void **, void *, void *const *, size_t,
                struct seep_cuda_node *) = SEEP_CUDA_REAL(cuGraphAddNode);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(node, graph, before, before_count, wanted);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_node(&start, wanted);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuGraphAddNode);

int seep_cuda_cuGraphAddNode_v2(void **node, void *graph, void *const *before,
                                const void *edges, size_t before_count,
                                struct seep_cuda_node *wanted)
{
    int (*real)(void **, void *, void *const *, const void *, size_t,
                struct seep_cuda_node *) = SEEP_CUDA_REAL(cuGraphAddNode_v2);
    struct seep_cuda_nest nest;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    result = real(node, graph, before, edges, before_count, wanted);
    if (seep_cuda_came(nest, result)) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        note_node(&start, wanted);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuGraphAddNode_v2);
