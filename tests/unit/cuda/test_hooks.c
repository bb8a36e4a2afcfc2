/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuda/wrappers: what the caller gets, what the driver is asked, and what is
 * told, in which order. The driver is made up.
 */
#include "seep_test.h"

#include <string.h>

#include "capture/native/unwind.h"
#include "cuda/driver.h"
#include "cuda/hooks.h"
#include "cuda/ledger.h"
#include "cuda/resolve.h"

#define REFUSED 719

/* One letter for each thing that happens: the driver's calls small, what is
 * told large. */
static char story[64];
static size_t story_length;

static enum seep_space last_space;
static int last_device;
static uint64_t last_size_bytes;

static void happen(char what)
{
    assert_true(story_length + 1 < sizeof(story));
    story[story_length++] = what;
    story[story_length] = '\0';
}

static void tell_allocated(const struct seep_capture_start *from,
                           enum seep_space space, int device, uint64_t key,
                           uint64_t size_bytes)
{
    assert_true(from->pc != 0 && from->sp > (uintptr_t)&from);
    assert_true(key >> 56 != 0);
    last_space = space;
    last_device = device;
    last_size_bytes = size_bytes;
    happen('A');
}

static struct seep_cuda_out tell_freed(uint64_t key)
{
    (void)key;
    happen('F');
    return (struct seep_cuda_out){true, 1};
}

static void tell_restored(uint64_t key, struct seep_cuda_out out)
{
    (void)key;
    assert_true(out.recorded);
    happen('R');
}

static const struct seep_cuda_events events = {
    .allocated = tell_allocated,
    .freed = tell_freed,
    .restored = tell_restored,
};

/* The driver. */
static int next_result;
static uint64_t next_pointer = 0x100000;
static bool is_capturing;
static bool has_primary;
static char primary_context;
static char other_context;
static void *current_context;

static int answer(char what)
{
    happen(what);
    return next_result;
}

static int driver_alloc(uint64_t *pointer, size_t size_bytes)
{
    (void)size_bytes;
    *pointer = next_pointer;
    return answer('a');
}

/* Allocates by itself, as a driver may. */
static int driver_alloc_inside(uint64_t *pointer, size_t size_bytes)
{
    uint64_t inner;

    happen('n');
    assert_int_equal(seep_cuda_cuMemAlloc_v2(&inner, 1), next_result);
    *pointer = inner + 1;
    return size_bytes != 0 ? 0 : 1;
}

static int driver_pitch(uint64_t *pointer, size_t *pitch_bytes, size_t width,
                        size_t height, unsigned int element)
{
    (void)width;
    (void)height;
    (void)element;
    *pointer = next_pointer;
    *pitch_bytes = 512;
    return answer('a');
}

static int driver_free(uint64_t pointer)
{
    (void)pointer;
    return answer('f');
}

static int driver_alloc_async(uint64_t *pointer, size_t size_bytes,
                              void *stream)
{
    (void)stream;
    return driver_alloc(pointer, size_bytes);
}

static int driver_free_async(uint64_t pointer, void *stream)
{
    (void)stream;
    return driver_free(pointer);
}

static int driver_host_alloc(void **pointer, size_t size_bytes,
                             unsigned int flags)
{
    (void)size_bytes;
    (void)flags;
    *pointer = (void *)(uintptr_t)next_pointer;
    return answer('a');
}

static int driver_free_host(void *pointer)
{
    (void)pointer;
    return answer('f');
}

static int driver_create(uint64_t *handle, size_t size_bytes,
                         const struct seep_cuda_allocation *wanted,
                         unsigned long long flags)
{
    (void)size_bytes;
    (void)wanted;
    (void)flags;
    *handle = 7;
    return answer('c');
}

static int driver_map(uint64_t address, size_t size_bytes, size_t offset,
                      uint64_t handle, unsigned long long flags)
{
    (void)address;
    (void)size_bytes;
    (void)offset;
    (void)handle;
    (void)flags;
    return answer('m');
}

static int driver_unmap(uint64_t address, size_t size_bytes)
{
    (void)address;
    (void)size_bytes;
    return answer('u');
}

static int driver_release(uint64_t handle)
{
    (void)handle;
    return answer('r');
}

static int driver_reset(int device)
{
    (void)device;
    has_primary = false;
    return answer('p');
}

static int driver_release_primary(int device)
{
    (void)device;
    return answer('p');
}

static int ask_context(void **context)
{
    *context = current_context;
    return 0;
}

static unsigned asked_count;

static int ask_device(int *device)
{
    asked_count++;
    *device = 3;
    return 0;
}

static int ask_attribute(void *data, int which, uint64_t pointer)
{
    int device = pointer == next_pointer ? 5 : -1;

    assert_int_equal(which, SEEP_CUDA_ATTRIBUTE_DEVICE_ORDINAL);
    memcpy(data, &device, sizeof(device));
    return 0;
}

static int ask_capturing(void *stream, int *status)
{
    (void)stream;
    *status = is_capturing ? SEEP_CUDA_CAPTURE_ACTIVE : SEEP_CUDA_CAPTURE_NONE;
    return 0;
}

static int ask_state(int device, unsigned int *flags, int *is_active)
{
    (void)device;
    *flags = 0;
    *is_active = has_primary;
    return 0;
}

static int ask_retain(void **context, int device)
{
    (void)device;
    *context = &primary_context;
    return 0;
}

static int ask_release(int device)
{
    (void)device;
    return 0;
}

static uintptr_t find_question(void *how, const char *name)
{
    static const struct {
        const char *name;
        seep_cuda_function *function;
    } all[] = {
        {"cuCtxGetCurrent", (seep_cuda_function *)ask_context},
        {"cuCtxGetDevice", (seep_cuda_function *)ask_device},
        {"cuPointerGetAttribute", (seep_cuda_function *)ask_attribute},
        {"cuStreamIsCapturing", (seep_cuda_function *)ask_capturing},
        {"cuDevicePrimaryCtxGetState", (seep_cuda_function *)ask_state},
        {"cuDevicePrimaryCtxRetain", (seep_cuda_function *)ask_retain},
        {"cuDevicePrimaryCtxRelease", (seep_cuda_function *)ask_release},
    };

    (void)how;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].name, name) == 0) {
            return (uintptr_t)all[i].function;
        }
    }
    return 0;
}

#define SET(name, function)                                        \
    atomic_store_explicit(&seep_cuda_targets[SEEP_CUDA_ID_##name], \
                          (uintptr_t)(function), memory_order_relaxed)

static int begin(void **state)
{
    (void)state;
    story_length = 0;
    story[0] = '\0';
    next_result = 0;
    next_pointer += 0x100000;
    is_capturing = false;
    has_primary = true;
    current_context = &primary_context;
    SET(cuMemAlloc_v2, driver_alloc);
    SET(cuMemAllocManaged, driver_alloc_inside);
    SET(cuMemAllocPitch_v2, driver_pitch);
    SET(cuMemFree_v2, driver_free);
    SET(cuMemAllocAsync, driver_alloc_async);
    SET(cuMemFreeAsync, driver_free_async);
    SET(cuMemHostAlloc, driver_host_alloc);
    SET(cuMemFreeHost, driver_free_host);
    SET(cuMemCreate, driver_create);
    SET(cuMemMap, driver_map);
    SET(cuMemUnmap, driver_unmap);
    SET(cuMemRelease, driver_release);
    SET(cuDevicePrimaryCtxReset, driver_reset);
    SET(cuDevicePrimaryCtxRelease, driver_release_primary);
    seep_cuda_driver_forget();
    seep_cuda_driver_learn(find_question, NULL);
    return 0;
}

static void assert_told(const char *expected)
{
    assert_string_equal(story, expected);
}

static void
memory_is_told_when_it_was_given_and_before_it_is_taken(void **state)
{
    uint64_t pointer = 0;

    (void)state;
    assert_int_equal(seep_cuda_cuMemAlloc_v2(&pointer, 1000), 0);
    assert_true(pointer == next_pointer);
    assert_int_equal(last_space, SEEP_SPACE_DEVICE);
    assert_int_equal(last_device, 3);
    assert_int_equal(last_size_bytes, 1000);
    assert_int_equal(seep_cuda_cuMemFree_v2(pointer), 0);
    assert_told("aAFf");
}

static void what_the_driver_refuses_is_the_callers_to_know(void **state)
{
    uint64_t pointer = 0;

    (void)state;
    next_result = SEEP_CUDA_OUT_OF_MEMORY;
    assert_int_equal(seep_cuda_cuMemAlloc_v2(&pointer, 1000),
                     SEEP_CUDA_OUT_OF_MEMORY);
    assert_told("a");
}

static void a_free_that_is_refused_is_taken_back(void **state)
{
    uint64_t pointer = 0;

    (void)state;
    seep_cuda_cuMemAlloc_v2(&pointer, 1000);
    next_result = REFUSED;
    assert_int_equal(seep_cuda_cuMemFree_v2(pointer), REFUSED);
    next_result = 0;
    assert_int_equal(seep_cuda_cuMemFree_v2(pointer), 0);
    assert_told("aAFfRFf");
}

static void what_was_not_seen_to_come_is_let_go_in_silence(void **state)
{
    (void)state;
    assert_int_equal(seep_cuda_cuMemFree_v2(12345), 0);
    assert_int_equal(seep_cuda_cuMemFree_v2(0), 0);
    assert_told("ff");
}

static void without_a_driver_the_caller_is_told_so(void **state)
{
    uint64_t pointer = 5;

    (void)state;
    SET(cuMemAlloc_v2, NULL);
    SET(cuMemFree_v2, NULL);
    assert_int_equal(seep_cuda_cuMemAlloc_v2(&pointer, 1000),
                     SEEP_CUDA_NOT_INITIALIZED);
    assert_int_equal(seep_cuda_cuMemFree_v2(pointer),
                     SEEP_CUDA_NOT_INITIALIZED);
    assert_true(pointer == 5);
    assert_told("");
}

static void what_the_driver_calls_of_itself_is_not_the_programs(void **state)
{
    uint64_t pointer = 0;

    (void)state;
    assert_int_equal(seep_cuda_cuMemAllocManaged(&pointer, 4096, 1), 0);
    assert_int_equal(last_space, SEEP_SPACE_MANAGED);
    assert_int_equal(last_size_bytes, 4096);
    assert_int_equal(seep_cuda_cuMemFree_v2(pointer), 0);
    assert_told("naAFf");
}

static void rows_take_what_the_driver_makes_of_them(void **state)
{
    uint64_t pointer = 0;
    size_t pitch_bytes = 0;

    (void)state;
    assert_int_equal(
        seep_cuda_cuMemAllocPitch_v2(&pointer, &pitch_bytes, 100, 10, 4), 0);
    assert_int_equal(last_size_bytes, 5120);
    seep_cuda_cuMemFree_v2(pointer);
    assert_told("aAFf");
}

static void either_free_takes_memory_of_either_kind(void **state)
{
    uint64_t pointer = 0;

    (void)state;
    seep_cuda_cuMemAllocAsync(&pointer, 64, NULL);
    assert_int_equal(last_device, 5);
    seep_cuda_cuMemFree_v2(pointer);
    seep_cuda_cuMemAlloc_v2(&pointer, 64);
    seep_cuda_cuMemFreeAsync(pointer, NULL);
    assert_told("aAFfaAFf");
}

static void memory_of_a_captured_stream_is_a_graphs(void **state)
{
    uint64_t pointer = 0;

    (void)state;
    is_capturing = true;
    seep_cuda_cuMemAllocAsync(&pointer, 64, NULL);
    seep_cuda_cuMemFreeAsync(pointer, NULL);
    assert_told("af");
}

static void pinned_memory_is_no_devices(void **state)
{
    void *pointer = NULL;

    (void)state;
    seep_cuda_cuMemHostAlloc(&pointer, 4096, 0);
    assert_int_equal(last_space, SEEP_SPACE_PINNED);
    assert_int_equal(last_device, -1);
    seep_cuda_cuMemFreeHost(pointer);
    assert_told("aAFf");
}

static void physical_memory_lives_while_it_is_held_or_mapped(void **state)
{
    struct seep_cuda_allocation wanted = {
        .location = {SEEP_CUDA_LOCATION_DEVICE, 2}};
    uint64_t handle = 0;

    (void)state;
    seep_cuda_cuMemCreate(&handle, 8192, &wanted, 0);
    assert_int_equal(last_device, 2);
    assert_int_equal(last_size_bytes, 8192);
    seep_cuda_cuMemMap(0x7000, 8192, 0, handle, 0);
    seep_cuda_cuMemRelease(handle);
    assert_told("cAmr");
    seep_cuda_cuMemUnmap(0x7000, 8192);
    assert_told("cAmrFu");
}

static void a_primary_context_that_is_reset_takes_its_memory(void **state)
{
    uint64_t pointer = 0;
    uint64_t pooled = 0;
    uint64_t others = 0;

    (void)state;
    seep_cuda_cuMemAlloc_v2(&pointer, 64);
    next_pointer += 4096;
    seep_cuda_cuMemAllocAsync(&pooled, 64, NULL);
    next_pointer += 4096;
    current_context = &other_context;
    seep_cuda_cuMemAlloc_v2(&others, 64);
    assert_int_equal(seep_cuda_cuDevicePrimaryCtxReset(0), 0);
    assert_told("aAaAaApF");
    seep_cuda_cuMemFreeAsync(pooled, NULL);
    seep_cuda_cuMemFree_v2(others);
    assert_told("aAaAaApFFfFf");
}

static void only_the_last_release_ends_a_primary_context(void **state)
{
    uint64_t pointer = 0;

    (void)state;
    seep_cuda_cuMemAlloc_v2(&pointer, 64);
    assert_int_equal(seep_cuda_cuDevicePrimaryCtxRelease(0), 0);
    assert_told("aAp");
    seep_cuda_cuMemFree_v2(pointer);
    assert_told("aApFf");
}

static void where_nobody_is_told_the_driver_is_asked_nothing(void **state)
{
    uint64_t pointer = 0;

    (void)state;
    asked_count = 0;
    seep_cuda_events_set(NULL);
    assert_int_equal(seep_cuda_cuMemAlloc_v2(&pointer, 64), 0);
    assert_int_equal(seep_cuda_cuMemFree_v2(pointer), 0);
    seep_cuda_events_set(&events);
    assert_int_equal(asked_count, 0);
    seep_cuda_cuMemAlloc_v2(&pointer, 64);
    assert_int_not_equal(asked_count, 0);
    seep_cuda_cuMemFree_v2(pointer);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(memory_is_told_when_it_was_given_and_before_it_is_taken),
        TEST(what_the_driver_refuses_is_the_callers_to_know),
        TEST(a_free_that_is_refused_is_taken_back),
        TEST(what_was_not_seen_to_come_is_let_go_in_silence),
        TEST(without_a_driver_the_caller_is_told_so),
        TEST(what_the_driver_calls_of_itself_is_not_the_programs),
        TEST(rows_take_what_the_driver_makes_of_them),
        TEST(either_free_takes_memory_of_either_kind),
        TEST(memory_of_a_captured_stream_is_a_graphs),
        TEST(pinned_memory_is_no_devices),
        TEST(physical_memory_lives_while_it_is_held_or_mapped),
        TEST(a_primary_context_that_is_reset_takes_its_memory),
        TEST(only_the_last_release_ends_a_primary_context),
        TEST(where_nobody_is_told_the_driver_is_asked_nothing),
    };

    seep_cuda_events_set(&events);
    return cmocka_run_group_tests_name("cuda hooks", tests, NULL, NULL);
}
