/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What ends memory without a free: contexts that go.
 *
 * Invariant: as in hooks.h. What lives in a context is let go after the driver
 * has destroyed it, and nothing that was allocated since the call.
 */
#include "cuda/driver.h"
#include "cuda/hooks.h"
#include "cuda/note.h"

int seep_cuda_cuCtxDestroy(void *context)
{
    int (*real)(void *) = SEEP_CUDA_REAL(cuCtxDestroy);
    struct seep_cuda_nest nest;
    uint32_t mark;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    mark = seep_cuda_ledger_mark();
    result = real(context);
    if (seep_cuda_came(nest, result)) {
        seep_cuda_ledger_context_gone(mark, context);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuCtxDestroy);

int seep_cuda_cuCtxDestroy_v2(void *context)
{
    int (*real)(void *) = SEEP_CUDA_REAL(cuCtxDestroy_v2);
    struct seep_cuda_nest nest;
    uint32_t mark;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    nest = seep_cuda_nest_enter(SEEP_CUDA_FRAME());
    mark = seep_cuda_ledger_mark();
    result = real(context);
    if (seep_cuda_came(nest, result)) {
        seep_cuda_ledger_context_gone(mark, context);
    }
    seep_cuda_nest_leave(nest);
    return result;
}
SEEP_CUDA_EXPORT(cuCtxDestroy_v2);

/* Of a device: the primary context before the call, the mark of then. */
struct primary {
    struct seep_cuda_nest nest;
    const void *context;
    uint32_t mark;
};

static struct primary look_at(uintptr_t frame, int device)
{
    struct primary primary = {.nest = seep_cuda_nest_enter(frame)};

    if (primary.nest.slot != 0) {
        primary.context = seep_cuda_driver_primary(device);
        primary.mark = seep_cuda_ledger_mark();
    }
    return primary;
}

static void settle(const struct primary *primary, bool is_gone)
{
    if (primary->context != NULL && is_gone) {
        seep_cuda_ledger_context_gone(primary->mark, primary->context);
    }
    seep_cuda_nest_leave(primary->nest);
}

int seep_cuda_cuDevicePrimaryCtxReset(int device)
{
    int (*real)(int) = SEEP_CUDA_REAL(cuDevicePrimaryCtxReset);
    struct primary primary;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    primary = look_at(SEEP_CUDA_FRAME(), device);
    result = real(device);
    settle(&primary, result == SEEP_CUDA_SUCCESS);
    return result;
}
SEEP_CUDA_EXPORT(cuDevicePrimaryCtxReset);

int seep_cuda_cuDevicePrimaryCtxRelease(int device)
{
    int (*real)(int) = SEEP_CUDA_REAL(cuDevicePrimaryCtxRelease);
    struct primary primary;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    primary = look_at(SEEP_CUDA_FRAME(), device);
    result = real(device);
    settle(&primary, result == SEEP_CUDA_SUCCESS &&
                         !seep_cuda_driver_has_primary(device));
    return result;
}
SEEP_CUDA_EXPORT(cuDevicePrimaryCtxRelease);

int seep_cuda_cuDevicePrimaryCtxReset_v2(int device)
{
    int (*real)(int) = SEEP_CUDA_REAL(cuDevicePrimaryCtxReset_v2);
    struct primary primary;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    primary = look_at(SEEP_CUDA_FRAME(), device);
    result = real(device);
    settle(&primary, result == SEEP_CUDA_SUCCESS);
    return result;
}
SEEP_CUDA_EXPORT(cuDevicePrimaryCtxReset_v2);

int seep_cuda_cuDevicePrimaryCtxRelease_v2(int device)
{
    int (*real)(int) = SEEP_CUDA_REAL(cuDevicePrimaryCtxRelease_v2);
    struct primary primary;
    int result;

    if (real == NULL) {
        return SEEP_CUDA_NOT_INITIALIZED;
    }
    primary = look_at(SEEP_CUDA_FRAME(), device);
    result = real(device);
    settle(&primary, result == SEEP_CUDA_SUCCESS &&
                         !seep_cuda_driver_has_primary(device));
    return result;
}
SEEP_CUDA_EXPORT(cuDevicePrimaryCtxRelease_v2);
