/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Contexts: each thread's stack of them, the primary ones, and what dies with
 * one.
 *
 * Invariant: a context takes along what was allocated in it by pointer, array,
 * module, stream and event; never physical memory of cuMemCreate, mappings,
 * reserved addresses, or what came from a pool.
 */
#include "fake.h"

#define STACK_MOST 16

struct level {
    struct fake_object *context;
    uint32_t generation;
};

/* Initial-exec: the first access of a thread must not call malloc. */
static __thread struct level stack[STACK_MOST]
    __attribute__((tls_model("initial-exec")));
static __thread unsigned depth __attribute__((tls_model("initial-exec")));

/* flags of a context */
#define PRIMARY 1U
#define ACTIVE 2U

static bool is_alive(const struct level *level)
{
    return fake_check(level->context, FAKE_CONTEXT) != NULL &&
           level->context->generation == level->generation &&
           (level->context->flags & ACTIVE) != 0;
}

struct fake_object *fake_context(CUresult *why)
{
    if (depth == 0) {
        *why = CUDA_ERROR_INVALID_CONTEXT;
        return NULL;
    }
    if (!is_alive(&stack[depth - 1])) {
        *why = CUDA_ERROR_CONTEXT_IS_DESTROYED;
        return NULL;
    }
    *why = CUDA_SUCCESS;
    return stack[depth - 1].context;
}

CUresult fake_no_context(void)
{
    CUresult why;

    (void)fake_context(&why);
    return why;
}

/* By dependants first: levels before mipmaps end with them. */
void fake_context_empty(struct fake_object *context)
{
    static const enum fake_type taken[] = {
        FAKE_STREAM, FAKE_EVENT,      FAKE_DEVICE,  FAKE_MANAGED,
        FAKE_PINNED, FAKE_REGISTERED, FAKE_MIPMAP,  FAKE_ARRAY,
        FAKE_IPC,    FAKE_MODULE,     FAKE_LIBRARY,
    };

    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        struct fake_object *next;
        bool again;

        do {
            again = false;
            for (struct fake_object *at = fake_first(taken[i]);
                 at != NULL && !again; at = next) {
                next = at->next;
                if (at->context == context) {
                    fake_end(at);
                    again = true;
                }
            }
        } while (again);
    }
}

static bool charge(struct fake_object *context)
{
    uint64_t bytes = fake_settings.context_bytes;

    if (!fake_charge(context->device, bytes)) {
        return false;
    }
    context->charged_bytes = bytes;
    context->size_bytes = bytes;
    context->flags |= ACTIVE;
    fake_live(FAKE_CONTEXT, (int64_t)bytes, 1);
    return true;
}

static void discharge(struct fake_object *context)
{
    fake_live(FAKE_CONTEXT, -(int64_t)context->size_bytes, -1);
    fake_discharge(context->device, context->charged_bytes);
    context->charged_bytes = 0;
    context->size_bytes = 0;
    context->flags &= ~ACTIVE;
}

static CUresult push(struct fake_object *context)
{
    if (depth == STACK_MOST) {
        return CUDA_ERROR_UNKNOWN;
    }
    stack[depth++] = (struct level){context, context->generation};
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext *made, CUdevice device)
{
    struct fake_object *context;

    if (made == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device < 0 || device >= fake_settings.devices) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (depth == STACK_MOST) {
        return CUDA_ERROR_UNKNOWN;
    }
    context = fake_new(FAKE_CONTEXT, 0);
    if (context == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->device = device;
    if (!charge(context)) {
        fake_delete(context);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (CUcontext)context;
    return push(context);
}

static CUresult destroy(CUcontext handle)
{
    struct fake_object *context = fake_check(handle, FAKE_CONTEXT);

    if (context == NULL || (context->flags & PRIMARY) != 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (depth > 0 && stack[depth - 1].context == context) {
        depth--;
    }
    fake_context_empty(context);
    discharge(context);
    fake_delete(context);
    return CUDA_SUCCESS;
}

static CUresult push_current(CUcontext handle)
{
    struct fake_object *context = fake_check(handle, FAKE_CONTEXT);

    return context == NULL ? CUDA_ERROR_INVALID_CONTEXT : push(context);
}

static CUresult pop_current(CUcontext *popped)
{
    if (depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    depth--;
    if (popped != NULL) {
        *popped = (CUcontext)stack[depth].context;
    }
    return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext handle)
{
    struct fake_object *context = fake_check(handle, FAKE_CONTEXT);

    if (handle != NULL && context == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    depth -= depth > 0 ? 1 : 0;
    return context != NULL ? push(context) : CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *handle)
{
    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *handle = depth > 0 ? (CUcontext)stack[depth - 1].context : NULL;
    return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device, CUcontext handle)
{
    CUresult why = CUDA_ERROR_INVALID_CONTEXT;
    struct fake_object *context =
        handle == NULL ? fake_context(&why) : fake_check(handle, FAKE_CONTEXT);

    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (context == NULL) {
        return why;
    }
    *device = context->device;
    return CUDA_SUCCESS;
}

static CUresult synchronize(CUcontext handle)
{
    CUresult why = CUDA_ERROR_INVALID_CONTEXT;
    struct fake_object *context =
        handle == NULL ? fake_context(&why) : fake_check(handle, FAKE_CONTEXT);

    if (context == NULL) {
        return why;
    }
    fake_pool_idle(context->device);
    return fake_capture_forbids();
}

static CUresult one_number(unsigned int *number, unsigned int value)
{
    CUresult why = fake_no_context();

    if (number == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *number = value;
    return why;
}

static CUresult limit(size_t *bytes)
{
    CUresult why = fake_no_context();

    if (bytes != NULL) {
        *bytes = 1024;
    }
    return bytes == NULL ? CUDA_ERROR_INVALID_VALUE : why;
}

static CUresult primary_retain(CUcontext *handle, CUdevice device)
{
    struct fake_object *context;

    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device < 0 || device >= fake_settings.devices) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    context = fake_devices[device].primary;
    if (context == NULL) {
        context = fake_new(FAKE_CONTEXT, 0);
        if (context == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        context->device = device;
        context->refs = 0;
        context->flags = PRIMARY;
        fake_devices[device].primary = context;
    }
    if ((context->flags & ACTIVE) == 0 && !charge(context)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->refs++;
    *handle = (CUcontext)context;
    return CUDA_SUCCESS;
}

static CUresult primary_reset(CUdevice device)
{
    struct fake_object *context;

    if (device < 0 || device >= fake_settings.devices) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    context = fake_devices[device].primary;
    if (context != NULL && (context->flags & ACTIVE) != 0) {
        fake_context_empty(context);
        discharge(context);
        /* Who still holds it goes on with an empty one. */
        if (context->refs > 0) {
            (void)charge(context);
        }
    }
    return CUDA_SUCCESS;
}

static CUresult primary_release(CUdevice device)
{
    struct fake_object *context;

    if (device < 0 || device >= fake_settings.devices) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    context = fake_devices[device].primary;
    if (context == NULL || context->refs == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return --context->refs == 0 ? primary_reset(device) : CUDA_SUCCESS;
}

static CUresult primary_state(CUdevice device, unsigned int *flags, int *active)
{
    const struct fake_object *context;

    if (device < 0 || device >= fake_settings.devices) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (flags == NULL || active == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    context = fake_devices[device].primary;
    *flags = 0;
    *active = context != NULL && (context->flags & ACTIVE) != 0;
    return CUDA_SUCCESS;
}

static CUresult primary_flags(CUdevice device)
{
    return device < 0 || device >= fake_settings.devices
               ? CUDA_ERROR_INVALID_DEVICE
               : CUDA_SUCCESS;
}

FAKE_DEFINE(cuCtxCreate, (CUcontext * made, unsigned int flags, CUdevice at),
            ((void)flags, create(made, at)))
FAKE_DEFINE(cuCtxCreate_v2, (CUcontext * made, unsigned int flags, CUdevice at),
            ((void)flags, create(made, at)))
FAKE_DEFINE(cuCtxCreate_v3,
            (CUcontext * made, CUexecAffinityParam *affinity, int count,
             unsigned int flags, CUdevice at),
            ((void)affinity, (void)count, (void)flags, create(made, at)))
FAKE_DEFINE(cuCtxCreate_v4,
            (CUcontext * made, CUctxCreateParams *how, unsigned int flags,
             CUdevice at),
            ((void)how, (void)flags, create(made, at)))
FAKE_DEFINE(cuCtxDestroy, (CUcontext context), destroy(context))
FAKE_DEFINE(cuCtxDestroy_v2, (CUcontext context), destroy(context))
FAKE_DEFINE(cuCtxPushCurrent, (CUcontext context), push_current(context))
FAKE_DEFINE(cuCtxPushCurrent_v2, (CUcontext context), push_current(context))
FAKE_DEFINE(cuCtxPopCurrent, (CUcontext * context), pop_current(context))
FAKE_DEFINE(cuCtxPopCurrent_v2, (CUcontext * context), pop_current(context))
FAKE_DEFINE(cuCtxSetCurrent, (CUcontext context), set_current(context))
FAKE_DEFINE(cuCtxGetCurrent, (CUcontext * context), get_current(context))
FAKE_DEFINE(cuCtxGetDevice, (CUdevice * device), get_device(device, NULL))
FAKE_DEFINE(cuCtxGetDevice_v2, (CUdevice * device, CUcontext context),
            get_device(device, context))
FAKE_DEFINE(cuCtxSynchronize, (void), synchronize(NULL))
FAKE_DEFINE(cuCtxSynchronize_v2, (CUcontext context), synchronize(context))
FAKE_DEFINE(cuCtxGetApiVersion, (CUcontext context, unsigned int *version),
            ((void)context, one_number(version, 3020)))
FAKE_DEFINE(cuCtxGetFlags, (unsigned int *flags), one_number(flags, 0))
FAKE_DEFINE(cuCtxSetLimit, (CUlimit which, size_t bytes),
            ((void)which, (void)bytes, fake_no_context()))
FAKE_DEFINE(cuCtxGetLimit, (size_t * bytes, CUlimit which),
            ((void)which, limit(bytes)))
FAKE_DEFINE(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags),
            ((void)peer, (void)flags, fake_no_context()))
FAKE_DEFINE(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device),
            primary_retain(context, device))
FAKE_DEFINE(cuDevicePrimaryCtxRelease, (CUdevice device),
            primary_release(device))
FAKE_DEFINE(cuDevicePrimaryCtxRelease_v2, (CUdevice device),
            primary_release(device))
FAKE_DEFINE(cuDevicePrimaryCtxReset, (CUdevice device), primary_reset(device))
FAKE_DEFINE(cuDevicePrimaryCtxReset_v2, (CUdevice device),
            primary_reset(device))
FAKE_DEFINE(cuDevicePrimaryCtxGetState,
            (CUdevice device, unsigned int *flags, int *active),
            primary_state(device, flags, active))
FAKE_DEFINE(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned int flags),
            ((void)flags, primary_flags(device)))
FAKE_DEFINE(cuDevicePrimaryCtxSetFlags_v2,
            (CUdevice device, unsigned int flags),
            ((void)flags, primary_flags(device)))
