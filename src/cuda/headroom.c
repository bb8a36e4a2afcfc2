/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a device has left; see headroom.h. */
#include "cuda/headroom.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/word.h"
#include "cuda/abi.h"
#include "cuda/events.h"
#include "cuda/ledger.h"

#define PERIOD_LEAST_NS UINT64_C(100000000)
#define PERIOD_MOST_NS UINT64_C(600000000000)
#define PERIOD_FAILED_NS UINT64_C(10000000000)
#define SHARE 1000U
#define MODE_RELAXED 2
#define MODE_NONE (-1)
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

/* The device of the context that is current; -1: there is none. */
static int current_device(const struct seep_cuda_headroom_driver *driver)
{
    void *context = NULL;
    int device = -1;

    if (driver->current_context == NULL || driver->current_device == NULL ||
        driver->memory == NULL ||
        driver->current_context(&context) != SEEP_CUDA_SUCCESS ||
        context == NULL ||
        driver->current_device(&device) != SEEP_CUDA_SUCCESS) {
        return -1;
    }
    return device;
}

/*
 * The legacy stream answers with an error while a stream that waits for it is
 * captured in this context, and leaves that capture as it is.
 */
static bool may_capture(const struct seep_cuda_headroom_driver *driver)
{
    int status = SEEP_CUDA_CAPTURE_NONE;

    return driver->is_capturing != NULL &&
           (driver->is_capturing(LEGACY_STREAM, &status) != SEEP_CUDA_SUCCESS ||
            status != SEEP_CUDA_CAPTURE_NONE);
}

/* Other streams are captured unseen: in the relaxed mode no call of this
 * thread can end that. */
static int relax(const struct seep_cuda_headroom_driver *driver)
{
    int mode = MODE_RELAXED;

    if (driver->exchange_mode == NULL ||
        driver->exchange_mode(&mode) != SEEP_CUDA_SUCCESS) {
        return MODE_NONE;
    }
    return mode;
}

static void restore(const struct seep_cuda_headroom_driver *driver, int mode)
{
    if (mode != MODE_NONE) {
        driver->exchange_mode(&mode);
    }
}

static uint64_t pool_bytes(const struct seep_cuda_headroom_driver *driver,
                           void *pool, enum seep_cuda_pool_attribute attribute)
{
    uint64_t bytes = 0;

    return driver->pool_attribute(pool, (int)attribute, &bytes) ==
                   SEEP_CUDA_SUCCESS
               ? bytes
               : 0;
}

static uint64_t graph_bytes(const struct seep_cuda_headroom_driver *driver,
                            int device,
                            enum seep_cuda_graph_attribute attribute)
{
    uint64_t bytes = 0;

    return driver->graph_attribute != NULL &&
                   driver->graph_attribute(device, (int)attribute, &bytes) ==
                       SEEP_CUDA_SUCCESS
               ? bytes
               : 0;
}

/* @return false: the driver does not tell */
static bool take(const struct seep_cuda_headroom_driver *driver, int device,
                 struct seep_cuda_headroom *ret_headroom)
{
    struct seep_cuda_headroom headroom = {.device = device};
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    void *pool = NULL;

    uint64_t held_bytes = seep_cuda_ledger_held_bytes(device);

    if (driver->memory(&free_bytes, &total_bytes) != SEEP_CUDA_SUCCESS ||
        total_bytes == 0) {
        return false;
    }
    if (held_bytes == seep_cuda_ledger_held_bytes(device)) {
        headroom.held_bytes = held_bytes;
    }
    headroom.free_bytes = free_bytes;
    headroom.total_bytes = total_bytes;
    if (driver->default_pool != NULL && driver->pool_attribute != NULL &&
        driver->default_pool(&pool, device) == SEEP_CUDA_SUCCESS &&
        pool != NULL) {
        headroom.pool_reserved_bytes =
            pool_bytes(driver, pool, SEEP_CUDA_POOL_RESERVED_CURRENT);
        headroom.pool_used_bytes =
            pool_bytes(driver, pool, SEEP_CUDA_POOL_USED_CURRENT);
    }
    headroom.graph_reserved_bytes =
        graph_bytes(driver, device, SEEP_CUDA_GRAPH_RESERVED_CURRENT);
    headroom.graph_used_bytes =
        graph_bytes(driver, device, SEEP_CUDA_GRAPH_USED_CURRENT);
    *ret_headroom = headroom;
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

/* Ask, if no stream may be captured. @return when to ask again, from now on */
static uint64_t ask_now(const struct seep_cuda_headroom_driver *driver,
                        const struct seep_cuda_events *events, int device)
{
    uint64_t started_ns = seep_clock_ns(CLOCK_MONOTONIC);
    struct seep_cuda_headroom headroom;
    bool is_told;
    int mode;

    if (may_capture(driver)) {
        return PERIOD_LEAST_NS;
    }
    mode = relax(driver);
    is_told = take(driver, device, &headroom);
    restore(driver, mode);
    if (!is_told) {
        return PERIOD_FAILED_NS;
    }
    events->headroom(&headroom);
    return period_after(seep_clock_ns(CLOCK_MONOTONIC) - started_ns);
}

void seep_cuda_headroom_ask(const struct seep_cuda_headroom_driver *driver,
                            uint64_t now_ns)
{
    /* Once: another thread may restrict the process while we ask, and then
     * nothing is wanted any more. */
    const struct seep_cuda_events *events = seep_cuda_events();
    int saved_errno = errno;
    int device = is_wanted(events) ? current_device(driver) : -1;
    uint64_t due;

    /* One thread a turn: whoever sets the time of the next. */
    if (is_device(device)) {
        due = seep_word_load(&due_ns[device]);
        if (now_ns >= due && atomic_compare_exchange_strong_explicit(
                                 &due_ns[device], &due, now_ns + PERIOD_MOST_NS,
                                 memory_order_relaxed, memory_order_relaxed)) {
            uint64_t period_ns = ask_now(driver, events, device);

            seep_word_store(&due_ns[device], now_ns + period_ns);
        }
    }
    errno = saved_errno;
}
