/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Streams, events and captures. Work is done at the call, so a stream is never
 * behind.
 *
 * Invariant: while a capture in global mode runs, what might synchronise is
 * refused to threads that are not relaxed, and the capture is spoiled by it.
 */
#include "fake.h"

/* flags of a stream: the status of its capture, and its mode above */
#define STATUS 3U
#define MODE_SHIFT 2

static __thread CUstreamCaptureMode thread_mode
    __attribute__((tls_model("initial-exec")));
static unsigned captures;
static unsigned global_captures;

static CUstreamCaptureStatus status_of(const struct fake_object *stream)
{
    return (CUstreamCaptureStatus)(stream->flags & STATUS);
}

static bool is_global(const struct fake_object *stream)
{
    return stream->flags >> MODE_SHIFT == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

bool fake_capturing(void)
{
    return captures != 0;
}

static void spoil(struct fake_object *stream)
{
    if (status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        stream->flags =
            (stream->flags & ~STATUS) | CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    }
}

CUresult fake_capture_forbids(void)
{
    if (global_captures == 0 || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_SUCCESS;
    }
    for (struct fake_object *at = fake_first(FAKE_STREAM); at != NULL;
         at = at->next) {
        if (is_global(at)) {
            spoil(at);
        }
    }
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static bool is_default(CUstream handle)
{
    return handle == NULL || handle == CU_STREAM_LEGACY ||
           handle == CU_STREAM_PER_THREAD;
}

CUresult fake_stream(CUstream handle, struct fake_stream_of *of)
{
    CUresult why;
    struct fake_object *context;

    *of = (struct fake_stream_of){NULL, NULL, 0};
    if (is_default(handle)) {
        context = fake_context(&why);
        of->device = context != NULL ? context->device : 0;
        return why;
    }
    of->stream = fake_check(handle, FAKE_STREAM);
    if (of->stream == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    of->device = of->stream->device;
    if (status_of(of->stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (status_of(of->stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        of->graph = of->stream->target;
    }
    return CUDA_SUCCESS;
}

static CUresult make(void **handle, enum fake_type type)
{
    CUresult why;
    struct fake_object *context = fake_context(&why);
    struct fake_object *object;

    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (context == NULL) {
        return why;
    }
    object = fake_new(type, 0);
    if (object == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->context = context;
    object->device = context->device;
    fake_live(type, 0, 1);
    *handle = object;
    return CUDA_SUCCESS;
}

static void end_capture(struct fake_object *stream)
{
    captures--;
    global_captures -= is_global(stream) ? 1 : 0;
    stream->flags = 0;
    stream->target = NULL;
}

void fake_stream_ends(struct fake_object *stream)
{
    struct fake_object *graph = stream->target;

    if (graph != NULL) {
        end_capture(stream);
        fake_graph_forget(graph);
    }
}

static CUresult unmake(void *handle, enum fake_type type)
{
    struct fake_object *object = fake_check(handle, type);

    if (object == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    fake_end(object);
    return CUDA_SUCCESS;
}

static CUresult use(CUstream handle)
{
    struct fake_stream_of of;

    return fake_stream(handle, &of);
}

static CUresult synchronize(CUstream handle)
{
    struct fake_stream_of of;
    CUresult why = fake_stream(handle, &of);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (of.graph != NULL) {
        spoil(of.stream);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    fake_pool_idle(of.device);
    return CUDA_SUCCESS;
}

static CUresult context_of(CUstream handle, CUcontext *context)
{
    struct fake_stream_of of;
    CUresult why = fake_stream(handle, &of);

    if (context == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (why == CUDA_SUCCESS) {
        *context = (CUcontext)(of.stream != NULL ? of.stream->context
                                                 : fake_context(&why));
    }
    return why;
}

static CUresult begin(CUstream handle, CUstreamCaptureMode mode)
{
    struct fake_stream_of of;
    CUresult why = fake_stream(handle, &of);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (of.stream == NULL) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (of.graph != NULL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    of.stream->target = fake_new(FAKE_GRAPH, 0);
    if (of.stream->target == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    of.stream->target->device = of.device;
    fake_live(FAKE_GRAPH, 0, 1);
    of.stream->flags = CU_STREAM_CAPTURE_STATUS_ACTIVE | (uint32_t)mode
                                                             << MODE_SHIFT;
    captures++;
    global_captures += mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? 1 : 0;
    return CUDA_SUCCESS;
}

static CUresult end(CUstream handle, CUgraph *graph)
{
    struct fake_object *stream = fake_check(handle, FAKE_STREAM);
    struct fake_object *made;
    bool spoilt;

    if (stream == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream->target == NULL || graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = stream->target;
    spoilt = status_of(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    end_capture(stream);
    *graph = spoilt ? NULL : (CUgraph)made;
    if (spoilt) {
        fake_graph_forget(made);
    }
    return spoilt ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream handle, CUstreamCaptureStatus *status)
{
    struct fake_object *stream = fake_check(handle, FAKE_STREAM);

    if (status == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_default(handle) && stream == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *status =
        stream != NULL ? status_of(stream) : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = thread_mode;

    if (mode == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static CUresult event_used(CUevent event, CUstream stream)
{
    return fake_check(event, FAKE_EVENT) == NULL ? CUDA_ERROR_INVALID_HANDLE
                                                 : use(stream);
}

static CUresult event_done(CUevent handle)
{
    struct fake_object *event = fake_check(handle, FAKE_EVENT);

    if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    fake_pool_idle(event->device);
    return CUDA_SUCCESS;
}

static CUresult elapsed(float *milliseconds, CUevent one, CUevent other)
{
    if (fake_check(one, FAKE_EVENT) == NULL ||
        fake_check(other, FAKE_EVENT) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (milliseconds == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *milliseconds = 0.0F;
    return CUDA_SUCCESS;
}

/* The handle 0 of a twin is the thread's own stream. */
static CUstream own(CUstream handle)
{
    return handle == NULL ? CU_STREAM_PER_THREAD : handle;
}

#define BOTH(name, parameters, call, twin_call) \
    FAKE_DEFINE(name, parameters, call)         \
    FAKE_DEFINE(name##_ptsz, parameters, twin_call)

FAKE_DEFINE(cuStreamCreate, (CUstream * stream, unsigned int flags),
            ((void)flags, make((void **)stream, FAKE_STREAM)))
FAKE_DEFINE(cuStreamCreateWithPriority,
            (CUstream * stream, unsigned int flags, int priority),
            ((void)flags, (void)priority, make((void **)stream, FAKE_STREAM)))
FAKE_DEFINE(cuStreamDestroy, (CUstream stream), unmake(stream, FAKE_STREAM))
FAKE_DEFINE(cuStreamDestroy_v2, (CUstream stream), unmake(stream, FAKE_STREAM))
BOTH(cuStreamSynchronize, (CUstream stream), synchronize(stream),
     synchronize(own(stream)))
BOTH(cuStreamQuery, (CUstream stream), use(stream), use(own(stream)))
BOTH(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
     ((void)flags, event_used(event, stream)),
     ((void)flags, event_used(event, own(stream))))
BOTH(cuStreamGetCtx, (CUstream stream, CUcontext *context),
     context_of(stream, context), context_of(own(stream), context))
BOTH(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
     begin(stream, mode), begin(own(stream), mode))
BOTH(cuStreamEndCapture, (CUstream stream, CUgraph *graph), end(stream, graph),
     end(own(stream), graph))
BOTH(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status),
     is_capturing(stream, status), is_capturing(own(stream), status))
FAKE_DEFINE(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode),
            exchange(mode))
FAKE_DEFINE(cuEventCreate, (CUevent * event, unsigned int flags),
            ((void)flags, make((void **)event, FAKE_EVENT)))
BOTH(cuEventRecord, (CUevent event, CUstream stream), event_used(event, stream),
     event_used(event, own(stream)))
FAKE_DEFINE(cuEventQuery, (CUevent event), event_done(event))
FAKE_DEFINE(cuEventSynchronize, (CUevent event), event_done(event))
FAKE_DEFINE(cuEventDestroy, (CUevent event), unmake(event, FAKE_EVENT))
FAKE_DEFINE(cuEventDestroy_v2, (CUevent event), unmake(event, FAKE_EVENT))
FAKE_DEFINE(cuEventElapsedTime, (float *ms, CUevent one, CUevent other),
            elapsed(ms, one, other))
FAKE_DEFINE(cuEventElapsedTime_v2, (float *ms, CUevent one, CUevent other),
            elapsed(ms, one, other))
