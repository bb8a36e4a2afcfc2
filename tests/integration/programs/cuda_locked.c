/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A call into the driver, or a report of a tensor, while another thread loads
 * a library whose constructor waits for a lock of the caller's:
 *
 *   cuda_locked driver|tensor LIBRARY
 *   cuda_locked_plugin PLUGIN LIBRARY      which is linked with the driver
 *
 * Invariant: whoever asks the loader for anything in that call waits for ever.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../fake/cuda_abi.h"
#include "fake_torch/fake_torch.h"

#define BYTES 4096
#define LIMIT_S 20

void locked_construct(void) __attribute__((visibility("default")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

/* From the constructor of the library. */
void locked_construct(void)
{
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static void *load(void *path)
{
    return dlopen(path, RTLD_NOW);
}

#ifdef PLUGIN
static int (*allocate)(uint64_t *pointer, size_t bytes);

static int call_driver(void)
{
    uint64_t pointer = 0;

    return allocate(&pointer, BYTES);
}

static int (*choose(const char *how))(void)
{
    void *plugin = dlopen(how, RTLD_NOW | RTLD_LOCAL);

    if (plugin != NULL) {
        *(void **)(void *)&allocate = dlsym(plugin, "seep_deep_allocate");
    }
    return allocate != NULL ? call_driver : NULL;
}
#else
static int call_driver(void)
{
    CUdeviceptr pointer = 0;

    return (int)cuMemAlloc_v2(&pointer, BYTES);
}

static int report_tensor(void)
{
    static char block;

    report_memory(&block, BYTES, BYTES, BYTES, (struct device){DEVICE_CUDA, 0});
    return fake_torch_reports() != 1;
}

static int (*choose(const char *how))(void)
{
    CUcontext context = NULL;

    if (cuInit(0) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        return NULL;
    }
    return strcmp(how, "tensor") == 0 ? report_tensor : call_driver;
}
#endif

int main(int argc, char **argv)
{
    int (*call)(void) = argc == 3 ? choose(argv[1]) : NULL;
    void *loaded = NULL;
    pthread_t thread;

    if (call == NULL) {
        return 2;
    }
    alarm(LIMIT_S);
    pthread_barrier_init(&both, NULL, 2);
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, load, argv[2]);
    pthread_barrier_wait(&both);
    printf("%d\n", call());
    pthread_mutex_unlock(&lock);
    pthread_join(thread, &loaded);
    printf("%d\n", loaded != NULL);
    return 0;
}
