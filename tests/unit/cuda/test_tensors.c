/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuda/wrappers in front of two libraries that are loaded as Python loads
 * PyTorch: seen by nobody but each other.
 */
#include "seep_test.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/native/elf.h"
#include "cuda/abi.h"
#include "cuda/driver.h"
#include "cuda/hooks.h"
#include "cuda_recorder.h"
#include "record/timeline.h"

#define HOST 0
#define CUDA 1

typedef void report_function(void *block, int64_t size_bytes,
                             uint64_t allocated_bytes, uint64_t reserved_bytes,
                             int8_t type, int8_t index);

static void *library;
static report_function *report;
static uint64_t *seen;
static char blocks[4];

static void load(void)
{
    const char *path = getenv("SEEP_FIXTURE_C10");
    void *function;

    assert_non_null(path);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    function = dlsym(library, "fixture_report");
    memcpy(&report, &function, sizeof(report));
    seen = dlsym(library, "fixture_seen");
    assert_non_null(seen);
}

static int start(void **state)
{
    (void)state;
    if (library == NULL) {
        seep_objects_init();
        load();
    }
    cuda_recorder_start();
    seep_cuda_tensors_set(true);
    memset(seen, 0, 6 * sizeof(*seen));
    return 0;
}

struct device {
    int8_t type;
    int8_t index;
};

void report_here(void *block, int64_t size_bytes, uint64_t allocated_bytes,
                 uint64_t reserved_bytes,
                 struct device device) __asm__("_ZN3c1027reportMemoryUsageToPro"
                                               "filerEPvlmmNS_6DeviceE");

/* As by a jump: what returns here is not who meant to call. */
static void a_caller_who_does_not_know_it_is_not_the_last_word(void **state)
{
    (void)state;
    report_here(&blocks[0], 0, 0, 0, (struct device){CUDA, 0});
    assert_int_equal(seen[0], 0);
    report(&blocks[0], 0, 0, 0, CUDA, 0);
    assert_int_equal(seen[0], 1);
    report_here(&blocks[0], 0, 0, 0, (struct device){CUDA, 0});
    assert_int_equal(seen[0], 2);
}

static void a_tensor_is_live_until_it_is_freed(void **state)
{
    (void)state;
    report(&blocks[0], 1000, 1000, 2000, CUDA, 2);
    report(&blocks[1], 10, 1010, 2000, CUDA, 3);
    assert_int_equal(cuda_recorder_bytes(SEEP_SPACE_TENSOR, -1), 1010);
    assert_int_equal(cuda_recorder_bytes(SEEP_SPACE_TENSOR, 2), 1000);
    report(&blocks[0], -1000, 10, 2000, CUDA, 2);
    assert_int_equal(cuda_recorder_bytes(SEEP_SPACE_TENSOR, -1), 10);
    report(&blocks[1], -10, 0, 2000, CUDA, 3);
    assert_int_equal(cuda_recorder_count(), 0);
    assert_int_equal(cuda_recorder_faults(), 0);
}

static void the_profiler_is_told_what_it_would_be_told(void **state)
{
    (void)state;
    report(&blocks[2], -77, UINT64_MAX, UINT64_C(1) << 40, CUDA, 5);
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], (uintptr_t)&blocks[2]);
    assert_int_equal(seen[2], (uint64_t)-77);
    assert_true(seen[3] == UINT64_MAX);
    assert_true(seen[4] == UINT64_C(1) << 40);
    assert_int_equal(seen[5], CUDA << 8 | 5);
    report(NULL, 0, 1, 2, HOST, -1);
    assert_int_equal(seen[0], 2);
    assert_int_equal(seen[5], 0xff);
}

static void what_the_host_gave_is_passed_on_and_not_recorded(void **state)
{
    (void)state;
    report(&blocks[0], 1000, 0, 0, HOST, -1);
    report(NULL, 1000, 0, 0, CUDA, 0);
    report(&blocks[0], 0, 0, 0, CUDA, 0);
    assert_int_equal(cuda_recorder_allocations(), 0);
    assert_int_equal(seen[0], 3);
}

static void the_totals_are_those_told_last(void **state)
{
    uint64_t allocated = 1;
    uint64_t reserved = 1;

    (void)state;
    assert_false(seep_cuda_tensors_totals(7, &allocated, &reserved));
    assert_false(seep_cuda_tensors_totals(-1, &allocated, &reserved));
    assert_false(seep_cuda_tensors_totals(64, &allocated, &reserved));
    assert_int_equal(reserved, 1);
    report(&blocks[0], 10, 30, 40, CUDA, 7);
    report(&blocks[0], -10, 20, 50, CUDA, 7);
    report(&blocks[0], 10, 999, 999, HOST, 7);
    assert_true(seep_cuda_tensors_totals(7, &allocated, &reserved));
    assert_int_equal(allocated, 20);
    assert_int_equal(reserved, 50);
}

static void off_means_passed_on_only(void **state)
{
    (void)state;
    seep_cuda_tensors_set(false);
    report(&blocks[0], 1000, 1000, 2000, CUDA, 2);
    seep_cuda_tensors_set(true);
    seep_cuda_events_set(NULL);
    report(&blocks[0], 1000, 1000, 2000, CUDA, 2);
    assert_int_equal(cuda_recorder_allocations(), 0);
    assert_int_equal(seen[0], 2);
}

static int current_context(void **context)
{
    *context = blocks;
    return SEEP_CUDA_SUCCESS;
}

static int current_device(int *device)
{
    *device = 5;
    return SEEP_CUDA_SUCCESS;
}

static int memory(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = 10;
    *total_bytes = 20;
    return SEEP_CUDA_SUCCESS;
}

static uintptr_t find(void *how, const char *name)
{
    (void)how;
    return strcmp(name, "cuCtxGetCurrent") == 0   ? (uintptr_t)current_context
           : strcmp(name, "cuCtxGetDevice") == 0  ? (uintptr_t)current_device
           : strcmp(name, "cuMemGetInfo_v2") == 0 ? (uintptr_t)memory
                                                  : 0;
}

static int told_device;
static struct seep_devices_sample told;

static void hear(int device, struct seep_devices_sample *sample)
{
    told_device = device;
    told = *sample;
    seep_cuda_tensors_totals(device, &told.tensor_allocated_bytes,
                             &told.tensor_reserved_bytes);
}

/* A cache that is full asks nothing of the driver for hours. */
static void a_report_is_a_moment_to_ask_what_is_left(void **state)
{
    struct seep_cuda_events hearing = *seep_cuda_events();

    (void)state;
    hearing.headroom = hear;
    seep_cuda_events_set(&hearing);
    seep_cuda_driver_learn(find, NULL);
    seep_cuda_headroom_reset();
    report(&blocks[0], 1000, 1000, 2000, HOST, 5);
    assert_int_equal(told.total_bytes, 0);
    report(&blocks[0], 1000, 1000, 2000, CUDA, 5);
    assert_int_equal(told_device, 5);
    assert_int_equal(told.free_bytes, 10);
    assert_int_equal(told.tensor_allocated_bytes, 1000);
    seep_cuda_events_set(NULL);
    seep_cuda_driver_forget();
}

static void errno_stays(void **state)
{
    (void)state;
    errno = EDOM;
    report(&blocks[0], 0, 0, 0, CUDA, 0);
    assert_int_equal(errno, EDOM);
}

static void libraries_that_are_loaded_again_are_found_again(void **state)
{
    (void)state;
    seep_objects_unload_begin();
    assert_int_equal(dlclose(library), 0);
    seep_objects_unload_end();
    load();
    report(&blocks[0], 0, 0, 0, CUDA, 0);
    assert_int_equal(seen[0], 1);
    seep_objects_unload_begin();
    seep_objects_unload_end();
    report(&blocks[0], 0, 0, 0, CUDA, 0);
    assert_int_equal(seen[0], 2);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_caller_who_does_not_know_it_is_not_the_last_word),
        TEST(errno_stays),
        TEST(a_tensor_is_live_until_it_is_freed),
        TEST(the_profiler_is_told_what_it_would_be_told),
        TEST(what_the_host_gave_is_passed_on_and_not_recorded),
        TEST(a_report_is_a_moment_to_ask_what_is_left),
        TEST(the_totals_are_those_told_last),
        TEST(off_means_passed_on_only),
        TEST(libraries_that_are_loaded_again_are_found_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
