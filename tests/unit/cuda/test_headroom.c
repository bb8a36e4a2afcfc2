/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cuda/headroom, over a driver that notes what it was asked, and how. */
#include "seep_test.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "cuda/abi.h"
#include "cuda/driver.h"
#include "cuda/hooks.h"
#include "cuda/ledger.h"
#include "cuda/resolve.h"
#include "record/timeline.h"

#define GIB (UINT64_C(1) << 30)
#define SECOND_NS UINT64_C(1000000000)

/* How the driver is, and what was seen of us. */
static struct {
    void *context;
    int device;
    int result; /* of cuMemGetInfo */
    int capture_result;
    int capture_status;
    int mode;
    int mode_while_asked;
    unsigned asked;
    unsigned told;
    uint64_t slow_ns;
    bool restricts; /* another thread restricts the process meanwhile */
    int last_device;
    struct seep_devices_sample last;
} seen;

static int a_context;
static const struct seep_cuda_events without = {.headroom = NULL};

static int current_context(void **context)
{
    *context = seen.context;
    errno = EIO;
    return SEEP_CUDA_SUCCESS;
}

static int current_device(int *device)
{
    *device = seen.device;
    return SEEP_CUDA_SUCCESS;
}

static int memory(size_t *free_bytes, size_t *total_bytes)
{
    struct timespec slow = {.tv_nsec = (long)seen.slow_ns};

    seen.asked++;
    seen.mode_while_asked = seen.mode;
    nanosleep(&slow, NULL);
    if (seen.restricts) {
        seep_cuda_events_set(&without);
    }
    *free_bytes = 3 * GIB;
    *total_bytes = 80 * GIB;
    return seen.result;
}

static int is_capturing(void *stream, int *status)
{
    (void)stream;
    *status = seen.capture_status;
    return seen.capture_result;
}

static int exchange_mode(int *mode)
{
    int before = seen.mode;

    seen.mode = *mode;
    *mode = before;
    return SEEP_CUDA_SUCCESS;
}

static int default_pool(void **pool, int device)
{
    (void)device;
    *pool = &a_context;
    return SEEP_CUDA_SUCCESS;
}

static int pool_attribute(void *pool, int attribute, void *value)
{
    assert_ptr_equal(pool, &a_context);
    *(uint64_t *)value = attribute == SEEP_CUDA_POOL_RESERVED_CURRENT ? 2 * GIB
                         : attribute == SEEP_CUDA_POOL_USED_CURRENT   ? GIB
                                                                      : 0;
    return SEEP_CUDA_SUCCESS;
}

static int graph_attribute(int device, int attribute, void *value)
{
    (void)device;
    *(uint64_t *)value = attribute == SEEP_CUDA_GRAPH_RESERVED_CURRENT ? 7
                         : attribute == SEEP_CUDA_GRAPH_USED_CURRENT   ? 5
                                                                       : 0;
    return SEEP_CUDA_SUCCESS;
}

/* What an old driver has stands first. */
static const struct {
    const char *name;
    seep_cuda_function *function;
} functions[] = {
    {"cuCtxGetCurrent", (seep_cuda_function *)current_context},
    {"cuCtxGetDevice", (seep_cuda_function *)current_device},
    {"cuMemGetInfo_v2", (seep_cuda_function *)memory},
    {"cuStreamIsCapturing", (seep_cuda_function *)is_capturing},
    {"cuThreadExchangeStreamCaptureMode", (seep_cuda_function *)exchange_mode},
    {"cuDeviceGetDefaultMemPool", (seep_cuda_function *)default_pool},
    {"cuMemPoolGetAttribute", (seep_cuda_function *)pool_attribute},
    {"cuDeviceGetGraphMemAttribute", (seep_cuda_function *)graph_attribute},
};
static size_t old_count = 3;
static size_t count = sizeof(functions) / sizeof(functions[0]);

/* @how: of how many functions. */
static uintptr_t find_question(void *how, const char *name)
{
    for (size_t i = 0; i < *(size_t *)how; i++) {
        if (strcmp(functions[i].name, name) == 0) {
            return (uintptr_t)functions[i].function;
        }
    }
    return 0;
}

static void headroom(int device, struct seep_devices_sample *sample)
{
    seen.told++;
    seen.last_device = device;
    seen.last = *sample;
}

static const struct seep_cuda_events events = {.headroom = headroom};

static int start(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof(seen));
    seen.context = &a_context;
    seen.device = 3;
    seep_cuda_headroom_reset();
    seep_cuda_events_set(&events);
    seep_cuda_driver_forget();
    seep_cuda_driver_learn(find_question, &count);
    return 0;
}

static void what_is_left_is_told(void **state)
{
    (void)state;
    seep_cuda_headroom_ask(SECOND_NS);
    assert_int_equal(seen.told, 1);
    assert_int_equal(seen.last_device, 3);
    assert_int_equal(seen.last.free_bytes, 3 * GIB);
    assert_int_equal(seen.last.total_bytes, 80 * GIB);
    assert_int_equal(seen.last.pool_reserved_bytes, 2 * GIB);
    assert_int_equal(seen.last.pool_used_bytes, GIB);
    assert_int_equal(seen.last.graph_reserved_bytes, 7);
    assert_int_equal(seen.last.graph_used_bytes, 5);
}

static void a_process_that_restricts_itself_while_we_ask_goes_on(void **state)
{
    (void)state;
    seen.restricts = true;
    seep_cuda_headroom_ask(SECOND_NS);
    assert_int_equal(seen.asked, 1);
    seep_cuda_headroom_ask(1000 * SECOND_NS);
    assert_int_equal(seen.asked, 1);
}

static void without_a_context_nothing_is_asked(void **state)
{
    (void)state;
    seen.context = NULL;
    seep_cuda_headroom_ask(SECOND_NS);
    assert_int_equal(seen.asked, 0);
    assert_true(seep_cuda_headroom_due(3, SECOND_NS));
}

static void while_a_stream_is_captured_nothing_is_asked(void **state)
{
    (void)state;
    seen.capture_status = SEEP_CUDA_CAPTURE_ACTIVE;
    seep_cuda_headroom_ask(SECOND_NS);
    seen.capture_status = SEEP_CUDA_CAPTURE_NONE;
    seen.capture_result = 906; /* implicit capture */
    seep_cuda_headroom_ask(2 * SECOND_NS);
    assert_int_equal(seen.asked, 0);
    seen.capture_result = SEEP_CUDA_SUCCESS;
    seep_cuda_headroom_ask(3 * SECOND_NS);
    assert_int_equal(seen.told, 1);
}

static void a_capture_of_another_stream_is_not_ended(void **state)
{
    (void)state;
    seen.mode = 1;
    seep_cuda_headroom_ask(SECOND_NS);
    assert_int_equal(seen.mode_while_asked, 2);
    assert_int_equal(seen.mode, 1);
}

static void errno_stays(void **state)
{
    (void)state;
    errno = EDOM;
    seep_cuda_headroom_ask(SECOND_NS);
    assert_int_equal(errno, EDOM);
    seen.context = NULL;
    seep_cuda_headroom_ask(SECOND_NS);
    assert_int_equal(errno, EDOM);
}

static void each_device_has_its_time(void **state)
{
    (void)state;
    seep_cuda_headroom_ask(SECOND_NS);
    seep_cuda_headroom_ask(SECOND_NS + 1);
    assert_int_equal(seen.told, 1);
    assert_false(seep_cuda_headroom_due(3, SECOND_NS + 1));
    assert_true(seep_cuda_headroom_due(4, SECOND_NS + 1));
    seen.device = 4;
    seep_cuda_headroom_ask(SECOND_NS + 1);
    assert_int_equal(seen.told, 2);
    assert_int_equal(seen.last_device, 4);
    seen.device = 3;
    seep_cuda_headroom_ask(1000 * SECOND_NS);
    assert_int_equal(seen.told, 3);
}

static void a_slow_answer_is_wanted_less_often(void **state)
{
    (void)state;
    seen.slow_ns = 5000000;
    seep_cuda_headroom_ask(SECOND_NS);
    assert_int_equal(seen.told, 1);
    assert_false(seep_cuda_headroom_due(3, SECOND_NS + 4 * SECOND_NS));
    assert_true(seep_cuda_headroom_due(3, SECOND_NS + 600 * SECOND_NS));
}

static void a_driver_that_does_not_tell_is_left_alone_for_a_while(void **state)
{
    (void)state;
    seen.result = SEEP_CUDA_INVALID_CONTEXT;
    seep_cuda_headroom_ask(SECOND_NS);
    assert_int_equal(seen.asked, 1);
    assert_int_equal(seen.told, 0);
    assert_false(seep_cuda_headroom_due(3, 2 * SECOND_NS));
    assert_true(seep_cuda_headroom_due(3, 12 * SECOND_NS));
}

static void an_old_driver_tells_what_it_can(void **state)
{
    (void)state;
    seep_cuda_driver_forget();
    seep_cuda_driver_learn(find_question, &old_count);
    seep_cuda_headroom_ask(SECOND_NS);
    assert_int_equal(seen.told, 1);
    assert_int_equal(seen.last.total_bytes, 80 * GIB);
    assert_int_equal(seen.last.pool_reserved_bytes, 0);
}

static void what_nobody_wants_is_not_asked(void **state)
{
    (void)state;
    seep_cuda_events_set(&without);
    assert_false(seep_cuda_headroom_due(3, SECOND_NS));
    seep_cuda_headroom_ask(SECOND_NS);
    seep_cuda_events_set(NULL);
    assert_false(seep_cuda_headroom_due(3, SECOND_NS));
    seep_cuda_headroom_ask(SECOND_NS);
    assert_int_equal(seen.asked, 0);
}

static void a_device_that_can_not_be_is_never_due(void **state)
{
    (void)state;
    assert_false(seep_cuda_headroom_due(-1, SECOND_NS));
    assert_false(seep_cuda_headroom_due(SEEP_CUDA_DEVICES_MAX, SECOND_NS));
    seen.device = SEEP_CUDA_DEVICES_MAX;
    seep_cuda_headroom_ask(SECOND_NS);
    assert_int_equal(seen.asked, 0);
}

static int allocation_result;

static int allocate(uint64_t *pointer, size_t size_bytes)
{
    (void)pointer;
    (void)size_bytes;
    return allocation_result;
}

static void whoever_finds_no_memory_looks_what_is_left(void **state)
{
    uint64_t pointer = 0;

    (void)state;
    atomic_store_explicit(&seep_cuda_targets[SEEP_CUDA_ID_cuMemAlloc_v2],
                          (uintptr_t)allocate, memory_order_relaxed);
    allocation_result = SEEP_CUDA_NOT_INITIALIZED;
    seep_cuda_cuMemAlloc_v2(&pointer, 1);
    assert_int_equal(seen.told, 0);
    allocation_result = SEEP_CUDA_OUT_OF_MEMORY;
    errno = ENOENT;
    assert_int_equal(seep_cuda_cuMemAlloc_v2(&pointer, 1),
                     SEEP_CUDA_OUT_OF_MEMORY);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(seen.told, 1);
    assert_int_equal(seen.last.free_bytes, 3 * GIB);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_left_is_told),
        TEST(a_process_that_restricts_itself_while_we_ask_goes_on),
        TEST(without_a_context_nothing_is_asked),
        TEST(while_a_stream_is_captured_nothing_is_asked),
        TEST(a_capture_of_another_stream_is_not_ended),
        TEST(errno_stays),
        TEST(each_device_has_its_time),
        TEST(a_slow_answer_is_wanted_less_often),
        TEST(a_driver_that_does_not_tell_is_left_alone_for_a_while),
        TEST(an_old_driver_tells_what_it_can),
        TEST(what_nobody_wants_is_not_asked),
        TEST(a_device_that_can_not_be_is_never_due),
        TEST(whoever_finds_no_memory_looks_what_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
