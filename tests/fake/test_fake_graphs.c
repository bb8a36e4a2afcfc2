/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fake driver's graphs: memory at the launch and not at the node, and what
 * a capture makes of the calls that it catches.
 */
#include "test_frame.h"

static CUgraph graph_with(uint64_t bytes, CUdeviceptr *pointer)
{
    CUDA_MEM_ALLOC_NODE_PARAMS how = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
        .bytesize = bytes,
    };
    CUgraphNode node;
    CUgraph graph;

    assert_done(cuGraphCreate(&graph, 0));
    assert_done(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &how));
    *pointer = how.dptr;
    return graph;
}

static uint64_t graph_figure(CUgraphMem_attribute which)
{
    cuuint64_t value = UINT64_MAX;

    assert_done(cuDeviceGetGraphMemAttribute(0, which, &value));
    return value;
}

static void memory_comes_with_the_launch(void **state)
{
    CUdeviceptr pointer;
    CUgraph graph = graph_with(3 * MIB, &pointer);
    CUgraphExec exec;

    (void)state;
    assert_true(pointer != 0);
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_GRAPH), 0);
    assert_result(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
    assert_done(cuGraphInstantiateWithFlags(&exec, graph, 0));
    assert_done(cuGraphDestroy(graph));
    assert_done(cuGraphLaunch(exec, NULL));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_GRAPH), 3 * MIB);
    assert_int_equal(graph_figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 3 * MIB);
    assert_result(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_done(cuMemFree_v2(pointer));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_GRAPH), 0);
    assert_int_equal(graph_figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT),
                     4 * MIB);
    assert_done(cuDeviceGraphMemTrim(0));
    assert_int_equal(graph_figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_done(cuGraphExecDestroy(exec));
}

static void a_launch_may_free_what_is_left(void **state)
{
    CUdeviceptr pointer;
    CUgraph graph = graph_with(1000, &pointer);
    CUgraphExec exec, second;

    (void)state;
    assert_done(cuGraphInstantiateWithFlags(
        &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    assert_result(cuGraphInstantiateWithFlags(&second, graph, 0),
                  CUDA_ERROR_NOT_SUPPORTED);
    for (int i = 0; i < 5; i++) {
        assert_done(cuGraphLaunch_ptsz(exec, NULL));
    }
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_GRAPH), 1000);
    assert_done(cuGraphExecDestroy(exec));
    assert_done(cuGraphDestroy(graph));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_GRAPH), 1000);
    assert_done(cuMemFreeAsync(pointer, NULL));
    assert_result(cuMemFreeAsync(pointer, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_done(cuDeviceGraphMemTrim(0));
}

static void a_free_node_ends_it_inside(void **state)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = 0};
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
    CUdeviceptr pointer, found;
    CUgraph graph = graph_with(4096, &pointer);
    CUgraphNode node;
    CUgraphExec exec;

    (void)state;
    params.free.dptr = pointer;
    assert_done(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    assert_result(cuGraphAddMemFreeNode(&node, graph, NULL, 0, pointer),
                  CUDA_ERROR_INVALID_VALUE);
    assert_done(cuGraphMemFreeNodeGetParams(node, &found));
    assert_true(found == pointer);
    assert_result(cuGraphDestroyNode(node), CUDA_ERROR_NOT_SUPPORTED);
    assert_done(cuGraphInstantiateWithParams(&exec, graph, &how));
    assert_done(cuGraphLaunch(exec, NULL));
    assert_done(cuGraphLaunch(exec, NULL));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_GRAPH), 0);
    assert_done(cuGraphExecDestroy(exec));
    assert_done(cuGraphDestroy(graph));
    assert_done(cuDeviceGraphMemTrim(0));
}

static void a_capture_makes_nodes_of_what_it_catches(void **state)
{
    CUstreamCaptureStatus status;
    CUdeviceptr pointer;
    CUgraphExec exec;
    CUstream stream;
    CUgraph graph;

    (void)state;
    assert_done(cuStreamCreate(&stream, 0));
    assert_done(
        cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_done(cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_done(cuMemAllocAsync(&pointer, 2048, stream));
    assert_done(cuMemFreeAsync(pointer, stream));
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_ASYNC), 0);
    assert_done(cuStreamEndCapture(stream, &graph));
    assert_done(cuGraphInstantiateWithFlags(&exec, graph, 0));
    assert_done(cuGraphLaunch(exec, stream));
    assert_int_equal(graph_figure(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) > 0, 1);
    assert_int_equal(seep_fake_live_bytes(SEEP_FAKE_GRAPH), 0);
    assert_done(cuGraphExecDestroy(exec));
    assert_done(cuGraphDestroy(graph));
    assert_done(cuStreamDestroy_v2(stream));
    assert_done(cuDeviceGraphMemTrim(0));
}

static void a_global_capture_is_spoilt_by_an_allocation(void **state)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr pointer;
    CUstream stream;
    CUgraph graph;
    size_t bytes;
    uint64_t asked = seep_fake_asked_in_capture();

    (void)state;
    assert_done(cuStreamCreate(&stream, 0));
    assert_done(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_done(cuMemGetInfo_v2(&bytes, &bytes));
    assert_int_equal(seep_fake_asked_in_capture() - asked, 1);
    assert_done(cuThreadExchangeStreamCaptureMode(&mode));
    assert_done(cuMemAlloc_v2(&pointer, 100));
    assert_done(cuMemFree_v2(pointer));
    assert_done(cuThreadExchangeStreamCaptureMode(&mode));
    assert_result(cuMemAlloc_v2(&pointer, 100),
                  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_result(cuStreamEndCapture(stream, &graph),
                  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_null(graph);
    assert_done(cuMemAlloc_v2(&pointer, 100));
    assert_done(cuMemFree_v2(pointer));
    assert_done(cuStreamDestroy_v2(stream));
}

static void a_capture_ends_with_its_stream(void **state)
{
    CUdeviceptr pointer;
    CUcontext context;
    CUstream stream;

    (void)state;
    assert_done(cuCtxCreate_v2(&context, 0, 1));
    assert_done(cuStreamCreate(&stream, 0));
    assert_done(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_done(cuMemAllocAsync(&pointer, 64, stream));
    assert_done(cuCtxDestroy_v2(context));
    assert_done(cuMemAlloc_v2(&pointer, 100));
    assert_done(cuMemFree_v2(pointer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fake_test(memory_comes_with_the_launch),
        fake_test(a_launch_may_free_what_is_left),
        fake_test(a_free_node_ends_it_inside),
        fake_test(a_capture_makes_nodes_of_what_it_catches),
        fake_test(a_global_capture_is_spoilt_by_an_allocation),
        fake_test(a_capture_ends_with_its_stream),
    };

    return cmocka_run_group_tests(tests, fake_test_group, NULL);
}
