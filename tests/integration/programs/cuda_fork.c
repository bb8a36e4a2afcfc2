/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fork beside the driver, which is of no use to the child of a process that
 * used it:
 *
 *   cuda_fork after    the driver was used: the child's calls are refused
 *   cuda_fork before   it was not: the child uses it
 *
 * Invariant: prints, as JSON, what each process allocated and freed, by site.
 * Each also makes a block of the heap, so that each has a recording.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../fake/cuda_abi.h"
#include "../../fake/seep_fake.h"
#include "fake_torch/fake_torch.h"

#define BYTES 4096
#define HEAP_BYTES 8000000
#define SITE __attribute__((noinline)) static

SITE CUresult site_parent(CUdeviceptr *pointer)
{
    return cuMemAlloc_v2(pointer, BYTES);
}

SITE CUresult site_child(CUdeviceptr *pointer)
{
    return cuMemAlloc_v2(pointer, BYTES);
}

static void *volatile heap;

static void start(void)
{
    CUcontext context;

    if (cuInit(0) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        exit(2);
    }
}

/* What a child does with its parent's tensors is nobody's news, and the driver
 * must not be asked anything. */
static int report_tensors(void)
{
    /* Longer than until a device would be asked again what it has left. */
    static const struct timespec while_due = {0, 150000000};
    uint64_t calls = seep_fake_calls(NULL);
    static char blocks[10];

    nanosleep(&while_due, NULL);
    for (int i = 0; i < 10; i++) {
        report_memory(&blocks[i], BYTES, BYTES, BYTES,
                      (struct device){DEVICE_CUDA, 0});
    }
    return seep_fake_calls(NULL) == calls ? 0 : 6;
}

/* As destructors of a framework do in a child, of what was its parent's. */
static int be_refused(CUdeviceptr parents)
{
    CUdeviceptr pointer = 0;
    CUmemGenericAllocationHandle handle = 0;

    heap = malloc(HEAP_BYTES);
    for (int i = 0; i < 100; i++) {
        if (site_child(&pointer) != CUDA_ERROR_NOT_INITIALIZED ||
            cuMemAllocAsync(&pointer, BYTES, NULL) !=
                CUDA_ERROR_NOT_INITIALIZED ||
            cuMemFree_v2(parents) != CUDA_ERROR_NOT_INITIALIZED ||
            cuMemRelease(handle) != CUDA_ERROR_NOT_INITIALIZED ||
            cuDevicePrimaryCtxReset_v2(0) != CUDA_ERROR_NOT_INITIALIZED) {
            return 3;
        }
    }
    return report_tensors();
}

static int use_it(void)
{
    CUdeviceptr pointer = 0;
    CUdeviceptr freed = 0;

    heap = malloc(HEAP_BYTES);
    start();
    return site_child(&pointer) == CUDA_SUCCESS &&
                   site_child(&freed) == CUDA_SUCCESS &&
                   cuMemFree_v2(freed) == CUDA_SUCCESS
               ? 0
               : 3;
}

int main(int argc, char **argv)
{
    int is_after = argc > 1 && strcmp(argv[1], "after") == 0;
    CUdeviceptr pointer = 0;
    int status = 0;
    pid_t child;

    heap = malloc(HEAP_BYTES);
    if (is_after) {
        start();
        site_parent(&pointer);
    }
    child = fork();
    if (child == 0) {
        exit(is_after ? be_refused(pointer) : use_it());
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "cuda_fork: the child ended with %#x\n",
                (unsigned)status);
        return 4;
    }
    if (is_after) {
        site_parent(&pointer);
        if (cuMemFree_v2(pointer) != CUDA_SUCCESS) {
            return 5;
        }
    }
    printf("{\"child\": %d, \"sites\": [{\"function\": \"%s\", \"space\": "
           "\"device\", \"live_bytes\": %d, \"live_count\": 1, "
           "\"allocated_bytes\": %d, \"allocated_count\": 2}]}\n",
           (int)child, is_after ? "site_parent" : "site_child", BYTES,
           2 * BYTES);
    return 0;
}
