/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Questions to the driver; see driver.h.
 *
 * Invariant: errno stays what the program's own call left in it.
 */
#include "cuda/driver.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/clock.h"
#include "cuda/abi.h"
#include "cuda/events.h"
#include "cuda/headroom.h"

#define SEEP_CUDA_QUESTION(name, parameters) typedef int form_##name parameters;
SEEP_CUDA_QUESTIONS(SEEP_CUDA_QUESTION)
#undef SEEP_CUDA_QUESTION

#define FUNCTION(name) \
    ((form_##name *)seep_cuda_driver_function(SEEP_CUDA_ASK_##name))

static const char *const names[SEEP_CUDA_QUESTION_COUNT] = {
#define SEEP_CUDA_QUESTION(name, parameters) #name,
    SEEP_CUDA_QUESTIONS(SEEP_CUDA_QUESTION)
#undef SEEP_CUDA_QUESTION
};

static _Atomic uintptr_t functions[SEEP_CUDA_QUESTION_COUNT];
static _Atomic bool is_learned;
static _Atomic bool is_prepared;

uintptr_t seep_cuda_driver_function(enum seep_cuda_question which)
{
    return atomic_load_explicit(&functions[which], memory_order_relaxed);
}

static void look_up(seep_cuda_by_name *find, void *how)
{
    for (size_t i = 0; i < SEEP_CUDA_QUESTION_COUNT; i++) {
        atomic_store_explicit(&functions[i], find(how, names[i]),
                              memory_order_relaxed);
    }
}

void seep_cuda_driver_learn(seep_cuda_by_name *find, void *how)
{
    const struct seep_cuda_events *events = seep_cuda_events();

    if (atomic_exchange_explicit(&is_learned, true, memory_order_relaxed)) {
        return;
    }
    if (events != NULL && events->expect != NULL) {
        events->expect();
    }
    if (!atomic_load_explicit(&is_prepared, memory_order_relaxed)) {
        look_up(find, how);
    }
}

void seep_cuda_driver_prepare(seep_cuda_by_name *find, void *how)
{
    look_up(find, how);
    atomic_store_explicit(&is_prepared, true, memory_order_relaxed);
}

void seep_cuda_driver_forget(void)
{
    for (size_t i = 0; i < SEEP_CUDA_QUESTION_COUNT; i++) {
        atomic_store_explicit(&functions[i], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&is_prepared, false, memory_order_relaxed);
    atomic_store_explicit(&is_learned, false, memory_order_relaxed);
}

const void *seep_cuda_driver_context(void)
{
    form_cuCtxGetCurrent *ask = FUNCTION(cuCtxGetCurrent);
    int saved_errno = errno;
    void *context = NULL;
    bool told = ask != NULL && ask(&context) == SEEP_CUDA_SUCCESS;

    errno = saved_errno;
    return told ? context : NULL;
}

int seep_cuda_driver_device(void)
{
    form_cuCtxGetDevice *ask = FUNCTION(cuCtxGetDevice);
    int saved_errno = errno;
    int device = -1;
    bool told = ask != NULL && ask(&device) == SEEP_CUDA_SUCCESS;

    errno = saved_errno;
    return told ? device : -1;
}

int seep_cuda_driver_device_of(uint64_t pointer)
{
    form_cuPointerGetAttribute *ask = FUNCTION(cuPointerGetAttribute);
    int saved_errno = errno;
    int device = -1;
    bool told = ask != NULL && ask(&device, SEEP_CUDA_ATTRIBUTE_DEVICE_ORDINAL,
                                   pointer) == SEEP_CUDA_SUCCESS;

    errno = saved_errno;
    return told ? device : seep_cuda_driver_device();
}

uint64_t seep_cuda_driver_size_of(uint64_t pointer)
{
    form_cuMemGetAddressRange_v2 *ask = FUNCTION(cuMemGetAddressRange_v2);
    int saved_errno = errno;
    uint64_t start = 0;
    size_t size_bytes = 0;
    bool told =
        ask != NULL && ask(&start, &size_bytes, pointer) == SEEP_CUDA_SUCCESS;

    errno = saved_errno;
    return told ? size_bytes : 0;
}

bool seep_cuda_driver_is_capturing(void *stream, bool per_thread)
{
    form_cuStreamIsCapturing *ask = per_thread
                                        ? FUNCTION(cuStreamIsCapturing_ptsz)
                                        : FUNCTION(cuStreamIsCapturing);
    int saved_errno = errno;
    int status = SEEP_CUDA_CAPTURE_NONE;
    bool told = ask != NULL && ask(stream, &status) == SEEP_CUDA_SUCCESS;

    errno = saved_errno;
    return told && status != SEEP_CUDA_CAPTURE_NONE;
}

void seep_cuda_driver_look(int device)
{
    const struct seep_cuda_events *events = seep_cuda_events();
    uint64_t now_ns;

    if (events == NULL || events->headroom == NULL || device < 0) {
        return;
    }
    now_ns = seep_clock_monotonic_ns();
    if (seep_cuda_headroom_due(device, now_ns)) {
        const struct seep_cuda_headroom_driver driver = {
            .current_context = FUNCTION(cuCtxGetCurrent),
            .current_device = FUNCTION(cuCtxGetDevice),
            .memory = FUNCTION(cuMemGetInfo_v2),
            .is_capturing = FUNCTION(cuStreamIsCapturing),
            .exchange_mode = FUNCTION(cuThreadExchangeStreamCaptureMode),
            .default_pool = FUNCTION(cuDeviceGetDefaultMemPool),
            .pool_attribute = FUNCTION(cuMemPoolGetAttribute),
            .graph_attribute = FUNCTION(cuDeviceGetGraphMemAttribute),
        };

        seep_cuda_headroom_ask(&driver, now_ns);
    }
}

bool seep_cuda_driver_has_primary(int device)
{
    form_cuDevicePrimaryCtxGetState *ask = FUNCTION(cuDevicePrimaryCtxGetState);
    int saved_errno = errno;
    unsigned int flags = 0;
    int is_active = 0;
    bool told =
        ask != NULL && ask(device, &flags, &is_active) == SEEP_CUDA_SUCCESS;

    errno = saved_errno;
    return told && is_active != 0;
}

/* Held for a moment, which takes nothing from anybody: it is there already,
 * and whoever else holds it goes on doing so. */
const void *seep_cuda_driver_primary(int device)
{
    form_cuDevicePrimaryCtxRetain *retain = FUNCTION(cuDevicePrimaryCtxRetain);
    form_cuDevicePrimaryCtxRelease *release =
        FUNCTION(cuDevicePrimaryCtxRelease);
    int saved_errno = errno;
    void *context = NULL;
    bool is_held = retain != NULL && release != NULL &&
                   seep_cuda_driver_has_primary(device) &&
                   retain(&context, device) == SEEP_CUDA_SUCCESS;

    if (is_held) {
        release(device);
    }
    errno = saved_errno;
    return is_held ? context : NULL;
}
