/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Modules and libraries: no code is run, but what is loaded takes memory of
 * the device that no allocating call shows.
 *
 * Invariant: the device is charged for a module while it is loaded in a living
 * context.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake.h"

static CUresult load(void **handle, enum fake_type type)
{
    uint64_t bytes = fake_settings.code_bytes;
    CUresult why;
    struct fake_object *context = fake_context(&why);
    struct fake_object *made;

    if (context == NULL) {
        return why;
    }
    if (!fake_charge(context->device, bytes) &&
        (!fake_pools_trim(context->device) ||
         !fake_charge(context->device, bytes))) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made = fake_new(type, 0);
    if (made == NULL) {
        fake_discharge(context->device, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->context = context;
    made->device = context->device;
    made->size_bytes = bytes;
    made->charged_bytes = bytes;
    fake_live(type, (int64_t)bytes, 1);
    *handle = made;
    return CUDA_SUCCESS;
}

static CUresult load_image(void *handle, const void *image, enum fake_type type)
{
    return handle == NULL || image == NULL ? CUDA_ERROR_INVALID_VALUE
                                           : load(handle, type);
}

static CUresult load_file(void *handle, const char *path, enum fake_type type)
{
    int fd;

    if (handle == NULL || path == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    syscall(SYS_close, fd);
    return load(handle, type);
}

static CUresult unload(const void *handle, enum fake_type type)
{
    struct fake_object *found = fake_check(handle, type);

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    fake_end(found);
    return CUDA_SUCCESS;
}

/* Any name is found; a function is its module. */
static CUresult function(CUfunction *made, CUmodule module, const char *name)
{
    if (made == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (fake_check(module, FAKE_MODULE) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *made = (CUfunction)(void *)module;
    return CUDA_SUCCESS;
}

static CUresult no_global(CUmodule module, const char *name)
{
    if (name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return fake_check(module, FAKE_MODULE) == NULL ? CUDA_ERROR_INVALID_HANDLE
                                                   : CUDA_ERROR_NOT_FOUND;
}

static CUresult loading_mode(CUmoduleLoadingMode *mode)
{
    if (mode == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

static CUresult no_module(CUlibrary library)
{
    return fake_check(library, FAKE_LIBRARY) == NULL ? CUDA_ERROR_INVALID_HANDLE
                                                     : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult launch(CUfunction kernel, CUstream stream)
{
    struct fake_stream_of of;

    return fake_check(kernel, FAKE_MODULE) == NULL ? CUDA_ERROR_INVALID_HANDLE
                                                   : fake_stream(stream, &of);
}

FAKE_DEFINE(cuModuleLoad, (CUmodule * module, const char *path),
            load_file(module, path, FAKE_MODULE))
FAKE_DEFINE(cuModuleLoadData, (CUmodule * module, const void *image),
            load_image(module, image, FAKE_MODULE))
FAKE_DEFINE(cuModuleLoadDataEx,
            (CUmodule * module, const void *image, unsigned int count,
             CUjit_option *options, void **values),
            ((void)count, (void)options, (void)values,
             load_image(module, image, FAKE_MODULE)))
FAKE_DEFINE(cuModuleLoadFatBinary, (CUmodule * module, const void *image),
            load_image(module, image, FAKE_MODULE))
FAKE_DEFINE(cuModuleUnload, (CUmodule module), unload(module, FAKE_MODULE))
FAKE_DEFINE(cuModuleGetFunction,
            (CUfunction * made, CUmodule module, const char *name),
            function(made, module, name))
FAKE_DEFINE(cuModuleGetGlobal_v2,
            (CUdeviceptr * pointer, size_t *bytes, CUmodule module,
             const char *name),
            ((void)pointer, (void)bytes, no_global(module, name)))
FAKE_DEFINE(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode),
            loading_mode(mode))
FAKE_DEFINE(cuLibraryLoadData,
            (CUlibrary * library, const void *code, CUjit_option *options,
             void **values, unsigned int count, CUlibraryOption *more,
             void **more_values, unsigned int more_count),
            ((void)options, (void)values, (void)count, (void)more,
             (void)more_values, (void)more_count,
             load_image(library, code, FAKE_LIBRARY)))
FAKE_DEFINE(cuLibraryLoadFromFile,
            (CUlibrary * library, const char *path, CUjit_option *options,
             void **values, unsigned int count, CUlibraryOption *more,
             void **more_values, unsigned int more_count),
            ((void)options, (void)values, (void)count, (void)more,
             (void)more_values, (void)more_count,
             load_file(library, path, FAKE_LIBRARY)))
FAKE_DEFINE(cuLibraryUnload, (CUlibrary library), unload(library, FAKE_LIBRARY))
FAKE_DEFINE(cuLibraryGetModule, (CUmodule * module, CUlibrary library),
            ((void)module, no_module(library)))

#define GRID                                                              \
    unsigned int x, unsigned int y, unsigned int z, unsigned int block_x, \
        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes
#define UNUSED_GRID                                                         \
    (void)x, (void)y, (void)z, (void)block_x, (void)block_y, (void)block_z, \
        (void)shared_bytes

FAKE_DEFINE(cuLaunchKernel,
            (CUfunction kernel, GRID, CUstream stream, void **values,
             void **extra),
            (UNUSED_GRID, (void)values, (void)extra, launch(kernel, stream)))
FAKE_DEFINE(cuLaunchKernel_ptsz,
            (CUfunction kernel, GRID, CUstream stream, void **values,
             void **extra),
            (UNUSED_GRID, (void)values, (void)extra,
             launch(kernel, stream == NULL ? CU_STREAM_PER_THREAD : stream)))
