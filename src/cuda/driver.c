/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Questions to the driver, and what a device has left; see driver.h.
 *
 * Invariant: errno stays what the program's own call left in it.
 */
#include "cuda/driver.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "base/word.h"
#include "cuda/abi.h"
#include "cuda/ledger.h"
#include "record/timeline.h"

static const char *const names[SEEP_CUDA_QUESTION_COUNT] = {
#define SEEP_CUDA_QUESTION(name, parameters, arguments) #name,
    SEEP_CUDA_QUESTIONS(SEEP_CUDA_QUESTION)
#undef SEEP_CUDA_QUESTION
};

static _Atomic uintptr_t functions[SEEP_CUDA_QUESTION_COUNT];
static _Atomic bool is_learned;
static _Atomic bool is_prepared;

uintptr_t seep_cuda_driver_function(enum seep_cuda_question which)
{
    return seep_word_load(&functions[which]);
}

/* ask_NAME(): @return false if there is no such function, or it failed */
#define SEEP_CUDA_QUESTION(name, parameters, arguments)                       \
    static bool ask_##name parameters                                         \
    {                                                                         \
        int(*ask) parameters = (int(*) parameters)seep_cuda_driver_function(  \
            SEEP_CUDA_ASK_##name);                                            \
        int saved_errno = errno;                                              \
        bool is_answered = ask != NULL && ask arguments == SEEP_CUDA_SUCCESS; \
                                                                              \
        errno = saved_errno;                                                  \
        return is_answered;                                                   \
    }
SEEP_CUDA_QUESTIONS(SEEP_CUDA_QUESTION)
#undef SEEP_CUDA_QUESTION

static void look_up(seep_cuda_by_name *find, void *how)
{
    for (size_t i = 0; i < SEEP_CUDA_QUESTION_COUNT; i++) {
        seep_word_store(&functions[i], find(how, names[i]));
    }
}

void seep_cuda_driver_learn(seep_cuda_by_name *find, void *how)
{
    const struct seep_cuda_events *events = seep_cuda_events();

    if (seep_word_exchange(&is_learned, true)) {
        return;
    }
    if (events != NULL && events->expect != NULL) {
        events->expect();
    }
    if (!seep_word_load(&is_prepared)) {
        look_up(find, how);
    }
}

void seep_cuda_driver_prepare(seep_cuda_by_name *find, void *how)
{
    look_up(find, how);
    seep_word_store(&is_prepared, true);
}

void seep_cuda_driver_forget(void)
{
    for (size_t i = 0; i < SEEP_CUDA_QUESTION_COUNT; i++) {
        seep_word_store(&functions[i], 0);
    }
    seep_word_store(&is_prepared, false);
    seep_word_store(&is_learned, false);
}

const void *seep_cuda_driver_context(void)
{
    void *context = NULL;

    return ask_cuCtxGetCurrent(&context) ? context : NULL;
}

int seep_cuda_driver_device(void)
{
    int device = -1;

    return ask_cuCtxGetDevice(&device) ? device : -1;
}

int seep_cuda_driver_device_of(uint64_t pointer)
{
    int device = -1;

    return ask_cuPointerGetAttribute(
               &device, SEEP_CUDA_ATTRIBUTE_DEVICE_ORDINAL, pointer)
               ? device
               : seep_cuda_driver_device();
}

uint64_t seep_cuda_driver_size_of(uint64_t pointer)
{
    uint64_t start = 0;
    size_t size_bytes = 0;

    return ask_cuMemGetAddressRange_v2(&start, &size_bytes, pointer)
               ? size_bytes
               : 0;
}

bool seep_cuda_driver_is_capturing(void *stream, bool per_thread)
{
    int status = SEEP_CUDA_CAPTURE_NONE;

    return (per_thread ? ask_cuStreamIsCapturing_ptsz(stream, &status)
                       : ask_cuStreamIsCapturing(stream, &status)) &&
           status != SEEP_CUDA_CAPTURE_NONE;
}

bool seep_cuda_driver_has_primary(int device)
{
    unsigned int flags = 0;
    int is_active = 0;

    return ask_cuDevicePrimaryCtxGetState(device, &flags, &is_active) &&
           is_active != 0;
}

/* Held for a moment, which takes nothing from anybody: it is there already,
 * and whoever else holds it goes on doing so. */
const void *seep_cuda_driver_primary(int device)
{
    void *context = NULL;

    if (seep_cuda_driver_function(SEEP_CUDA_ASK_cuDevicePrimaryCtxRelease) ==
            0 ||
        !seep_cuda_driver_has_primary(device) ||
        !ask_cuDevicePrimaryCtxRetain(&context, device)) {
        return NULL;
    }
    ask_cuDevicePrimaryCtxRelease(device);
    return context;
}

/* What a device has left. */

#define PERIOD_LEAST_NS UINT64_C(100000000)
#define PERIOD_MOST_NS UINT64_C(600000000000)
#define PERIOD_FAILED_NS UINT64_C(10000000000)
#define SHARE 1000U
#define MODE_RELAXED 2
#define LEGACY_STREAM ((void *)1)

static _Atomic uint64_t due_ns[SEEP_CUDA_DEVICES_MAX];

static bool is_device(int device)
{
    return device >= 0 && device < SEEP_CUDA_DEVICES_MAX;
}

static bool is_wanted(const struct seep_cuda_events *events)
{
    return events != NULL && events->headroom != NULL;
}

bool seep_cuda_headroom_due(int device, uint64_t now_ns)
{
    return is_device(device) && now_ns >= seep_word_load(&due_ns[device]) &&
           is_wanted(seep_cuda_events());
}

void seep_cuda_headroom_reset(void)
{
    for (int i = 0; i < SEEP_CUDA_DEVICES_MAX; i++) {
        seep_word_store(&due_ns[i], 0);
    }
}

/*
 * The legacy stream answers with an error while a stream that waits for it is
 * captured in this context, and leaves that capture as it is.
 */
static bool may_capture(void)
{
    int status = SEEP_CUDA_CAPTURE_NONE;

    return seep_cuda_driver_function(SEEP_CUDA_ASK_cuStreamIsCapturing) != 0 &&
           (!ask_cuStreamIsCapturing(LEGACY_STREAM, &status) ||
            status != SEEP_CUDA_CAPTURE_NONE);
}

static uint64_t pool_bytes(void *pool, enum seep_cuda_pool_attribute attribute)
{
    uint64_t bytes = 0;

    return ask_cuMemPoolGetAttribute(pool, (int)attribute, &bytes) ? bytes : 0;
}

static uint64_t graph_bytes(int device,
                            enum seep_cuda_graph_attribute attribute)
{
    uint64_t bytes = 0;

    return ask_cuDeviceGetGraphMemAttribute(device, (int)attribute, &bytes)
               ? bytes
               : 0;
}

/* @return false: the driver does not tell */
static bool take(int device, struct seep_devices_sample *ret_sample)
{
    uint64_t held_bytes = seep_cuda_ledger_held_bytes(device);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    void *pool = NULL;

    if (!ask_cuMemGetInfo_v2(&free_bytes, &total_bytes) || total_bytes == 0) {
        return false;
    }
    if (held_bytes != seep_cuda_ledger_held_bytes(device)) {
        held_bytes = 0; /* it changed meanwhile: not known */
    }
    *ret_sample = (struct seep_devices_sample){
        .free_bytes = free_bytes,
        .total_bytes = total_bytes,
        .held_bytes = held_bytes,
        .graph_reserved_bytes =
            graph_bytes(device, SEEP_CUDA_GRAPH_RESERVED_CURRENT),
        .graph_used_bytes = graph_bytes(device, SEEP_CUDA_GRAPH_USED_CURRENT),
    };
    if (ask_cuDeviceGetDefaultMemPool(&pool, device) && pool != NULL) {
        ret_sample->pool_reserved_bytes =
            pool_bytes(pool, SEEP_CUDA_POOL_RESERVED_CURRENT);
        ret_sample->pool_used_bytes =
            pool_bytes(pool, SEEP_CUDA_POOL_USED_CURRENT);
    }
    return true;
}

static uint64_t period_after(uint64_t cost_ns)
{
    if (cost_ns > PERIOD_MOST_NS / SHARE) {
        return PERIOD_MOST_NS;
    }
    return cost_ns * SHARE > PERIOD_LEAST_NS ? cost_ns * SHARE
                                             : PERIOD_LEAST_NS;
}

/* Ask, if no stream may be captured. Other streams are captured unseen: in the
 * relaxed mode no call of this thread can end that.
 * @return when to ask again, from now on */
static uint64_t ask_now(const struct seep_cuda_events *events, int device)
{
    uint64_t started_ns = seep_clock_ns(CLOCK_MONOTONIC);
    struct seep_devices_sample sample;
    int mode = MODE_RELAXED;
    bool is_relaxed;
    bool is_answered;

    if (may_capture()) {
        return PERIOD_LEAST_NS;
    }
    is_relaxed = ask_cuThreadExchangeStreamCaptureMode(&mode);
    is_answered = take(device, &sample);
    if (is_relaxed) {
        ask_cuThreadExchangeStreamCaptureMode(&mode);
    }
    if (!is_answered) {
        return PERIOD_FAILED_NS;
    }
    events->headroom(device, &sample);
    return period_after(seep_clock_ns(CLOCK_MONOTONIC) - started_ns);
}

void seep_cuda_headroom_ask(uint64_t now_ns)
{
    /* Once: another thread may restrict the process while we ask, and then
     * nothing is wanted any more. */
    const struct seep_cuda_events *events = seep_cuda_events();
    int device = -1;
    uint64_t due;

    if (is_wanted(events) && seep_cuda_driver_context() != NULL) {
        device = seep_cuda_driver_device();
    }
    /* One thread a turn: whoever sets the time of the next. */
    if (is_device(device)) {
        due = seep_word_load(&due_ns[device]);
        if (now_ns >= due &&
            seep_word_replace(&due_ns[device], &due, now_ns + PERIOD_MOST_NS)) {
            uint64_t period_ns = ask_now(events, device);

            seep_word_store(&due_ns[device], now_ns + period_ns);
        }
    }
}

void seep_cuda_driver_look(int device)
{
    uint64_t now_ns;

    if (device < 0 || !is_wanted(seep_cuda_events())) {
        return;
    }
    now_ns = seep_clock_monotonic_ns();
    if (seep_cuda_headroom_due(device, now_ns)) {
        seep_cuda_headroom_ask(now_ns);
    }
}
