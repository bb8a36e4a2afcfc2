/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What being recorded adds to a cuMemAllocAsync/cuMemFreeAsync pair, at the end
 * of a stack of some thirty frames, on the driver of the tests: to be run under
 * the preload. With --check the added cost is judged as so many times
 * unw_backtrace of the same stack in the same run: a time belongs to a machine.
 *
 * Invariant: pairs by the wrappers, by the driver itself and unw_backtrace take
 * turns, and of each the least is told: the others were disturbed. The inner
 * tenth of the stack is another one each time.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "../fake/cuda_abi.h"
#include "capture_frames.h"

#define NOINLINE __attribute__((noinline))
#define ROUNDS 100U
#define CALLS 500U
#define TRIES 20U
#define SKIP 77
#define BYTES 4096
#define FRAMES 30
#define INNER_FRAMES 3
/* main and libc's below, the two of the pair above */
#define OUTER_FRAMES (FRAMES - INNER_FRAMES - 6)

/* A microsecond, where unw_backtrace took 218 ns for these frames and a
 * recorded pair 740 ns more than a bare one: 3.4 of it. */
#define MOST_BACKTRACES 4.6

typedef void *look_up_function(void *, const char *);
typedef CUresult allocate_function(CUdeviceptr *, size_t, CUstream);
typedef CUresult free_function(CUdeviceptr, CUstream);

struct way {
    allocate_function *allocate;
    free_function *free;
    double least_ns;
};

static struct way wrapped, bare;
static double nothing_ns, backtrace_ns;
static int frame_count;
static CUcontext context;

static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static NOINLINE int pair(void *argument)
{
    const struct way *way = argument;
    CUdeviceptr pointer = 0;
    CUresult result = way->allocate(&pointer, BYTES, NULL);

    return (int)result + (int)way->free(pointer, NULL);
}

static NOINLINE int do_nothing(void *argument)
{
    return argument == NULL;
}

static NOINLINE int backtrace_here(void *argument)
{
    static void *frames[128];

    (void)argument;
    frame_count = unw_backtrace(frames, 128);
    return frame_count;
}

static void take(double *least, bottom_function *bottom, void *argument)
{
    double begin = now_ns();
    double spent;

    for (unsigned i = 0; i < CALLS; i++) {
        ways_by_rsp[i % BENCH_WAYS](INNER_FRAMES, bottom, argument);
    }
    spent = (now_ns() - begin) / CALLS;
    if (*least == 0 || spent < *least) {
        *least = spent;
    }
}

static NOINLINE int measure(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        take(&bare.least_ns, pair, &bare);
        take(&wrapped.least_ns, pair, &wrapped);
        take(&backtrace_ns, backtrace_here, NULL);
        take(&nothing_ns, do_nothing, NULL);
    }
    return 0;
}

static bool open_way(struct way *way, look_up_function *look_up, void *driver)
{
    *(void **)(void *)&way->allocate = look_up(driver, "cuMemAllocAsync");
    *(void **)(void *)&way->free = look_up(driver, "cuMemFreeAsync");
    return way->allocate != NULL && way->free != NULL;
}

/* By our dlsym and by libc's, which is found by it. */
static bool open_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    CUresult (*start)(unsigned int) = NULL;
    CUresult (*retain)(CUcontext *, CUdevice) = NULL;
    CUresult (*enter)(CUcontext) = NULL;
    look_up_function *look_up = NULL;

    if (driver == NULL || libc == NULL) {
        return false;
    }
    *(void **)(void *)&look_up = dlsym(libc, "dlsym");
    *(void **)(void *)&start = dlsym(driver, "cuInit");
    *(void **)(void *)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
    *(void **)(void *)&enter = dlsym(driver, "cuCtxSetCurrent");
    return look_up != NULL && start != NULL && retain != NULL &&
           enter != NULL && start(0) == CUDA_SUCCESS &&
           retain(&context, 0) == CUDA_SUCCESS &&
           enter(context) == CUDA_SUCCESS &&
           open_way(&wrapped, dlsym, driver) &&
           open_way(&bare, look_up, driver);
}

static double added_backtraces(void)
{
    return (wrapped.least_ns - bare.least_ns) / (backtrace_ns - nothing_ns);
}

/* It is of no use to anybody, but that it is there. */
static bool was_recorded(void)
{
    const char *path = getenv("SEEP_OUT");

    return path == NULL || unlink(path) == 0;
}

int main(int argc, char **argv)
{
    bool check = argc > 1 && strcmp(argv[1], "--check") == 0;
    unsigned tries = check ? TRIES : 1;

    if (!open_driver()) {
        fprintf(stderr, "cuda_pair: there is no driver\n");
        return SKIP;
    }
    if ((uintptr_t)wrapped.allocate == (uintptr_t)bare.allocate) {
        fprintf(stderr, "cuda_pair: not under the preload\n");
        return SKIP;
    }
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
    do {
        descend_by_rsp(OUTER_FRAMES, measure, NULL);
    } while (--tries != 0 && added_backtraces() > MOST_BACKTRACES);
    printf("a pair from %d frames: driver %.0f ns, recorded %.0f ns, added "
           "%.0f ns, unw_backtrace %.0f ns: %.2f of it, at most %.2f\n",
           frame_count, bare.least_ns - nothing_ns,
           wrapped.least_ns - nothing_ns, wrapped.least_ns - bare.least_ns,
           backtrace_ns - nothing_ns, added_backtraces(), MOST_BACKTRACES);
    if (!was_recorded()) {
        fprintf(stderr, "cuda_pair: nothing was recorded\n");
        return 1;
    }
    return check && added_backtraces() > MOST_BACKTRACES ? 1 : 0;
}
