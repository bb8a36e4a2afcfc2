/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* record/timeline: moments of GPUs on a grid that widens. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "seep_test.h"

#include "empty_recording.h"
#include "format/layout.h"
#include "format/series.h"
#include "record/timeline.h"

#define FIRST_WIDTH (1U << SEEP_FIRST_WIDTH_LOG2)
#define GIB (UINT64_C(1) << 30)

static struct seep_view view;

static int set_up(void **state)
{
    (void)state;
    seep_devices_start();
    if (empty_recording_make_of(SEEP_LAYOUT_DEFAULT_BYTES, false, &view) != 0) {
        return -1;
    }
    return view.device_count == SEEP_DEVICES_MAX ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    empty_recording_free(&view);
    return 0;
}

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static const struct seep_rec_device *at(uint32_t device, uint32_t bucket)
{
    return &view.devices[(size_t)device * SEEP_BUCKET_COUNT + bucket];
}

static void take(uint32_t device, uint32_t tick, uint64_t free_bytes)
{
    seep_devices_take(&view, device, tick,
                      &(struct seep_devices_sample){.free_bytes = free_bytes,
                                                    .total_bytes = 8 * GIB});
}

static uint64_t taken(uint32_t device)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        count += get(&at(device, i)->tick) != 0;
    }
    return count;
}

static void every_figure_is_kept(void **state)
{
    const struct seep_devices_sample moment = {
        .free_bytes = 1,
        .total_bytes = 2,
        .pool_reserved_bytes = 3,
        .pool_used_bytes = 4,
        .graph_reserved_bytes = 5,
        .graph_used_bytes = 6,
        .tensor_reserved_bytes = 7,
        .tensor_allocated_bytes = 8,
    };

    (void)state;
    seep_devices_take(&view, 0, 3 * FIRST_WIDTH + 1, &moment);
    assert_int_equal(get(&at(0, 3)->tick), 3 * FIRST_WIDTH + 1);
    assert_int_equal(get(&at(0, 3)->free_bytes), 1);
    assert_int_equal(get(&at(0, 3)->low_free_bytes), 1);
    assert_int_equal(get(&at(0, 3)->total_bytes), 2);
    assert_int_equal(get(&at(0, 3)->pool_reserved_bytes), 3);
    assert_int_equal(get(&at(0, 3)->pool_used_bytes), 4);
    assert_int_equal(get(&at(0, 3)->graph_reserved_bytes), 5);
    assert_int_equal(get(&at(0, 3)->graph_used_bytes), 6);
    assert_int_equal(get(&at(0, 3)->tensor_reserved_bytes), 7);
    assert_int_equal(get(&at(0, 3)->tensor_allocated_bytes), 8);
    assert_int_equal(taken(0), 1);
}

/* 0 means that there is none. */
static void the_first_tick_is_one(void **state)
{
    (void)state;
    take(0, 0, GIB);
    assert_int_equal(get(&at(0, 0)->tick), 1);
}

static void the_last_of_a_bucket_stays_with_the_lowest(void **state)
{
    (void)state;
    take(0, 5, 3 * GIB);
    take(0, 6, 1 * GIB);
    take(0, 7, 2 * GIB);
    assert_int_equal(get(&at(0, 0)->tick), 7);
    assert_int_equal(get(&at(0, 0)->free_bytes), 2 * GIB);
    assert_int_equal(get(&at(0, 0)->low_free_bytes), 1 * GIB);
}

/* A thread that was kept waiting between its look and here. */
static void what_comes_late_is_not_the_last(void **state)
{
    (void)state;
    take(0, 9, 3 * GIB);
    take(0, 8, 1 * GIB);
    assert_int_equal(get(&at(0, 0)->tick), 9);
    assert_int_equal(get(&at(0, 0)->free_bytes), 3 * GIB);
    assert_int_equal(get(&at(0, 0)->low_free_bytes), 1 * GIB);
}

static void devices_are_apart(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < view.device_count; i++) {
        take(i, 100 + i, (i + 1) * GIB);
    }
    for (uint32_t i = 0; i < view.device_count; i++) {
        assert_int_equal(taken(i), 1);
        assert_int_equal(get(&at(i, 100 / FIRST_WIDTH)->free_bytes),
                         (i + 1) * GIB);
    }
}

static void more_devices_than_there_is_room_for_are_counted(void **state)
{
    const _Atomic uint64_t *full = &view.counters[SEEP_COUNT_DEVICES_FULL];

    (void)state;
    take(view.device_count, 1, GIB);
    take(UINT32_MAX, 1, GIB);
    assert_int_equal(get(full), 2);
    assert_int_equal(taken(0), 0);
    take(view.device_count - 1, 1, GIB);
    assert_int_equal(get(full), 2);
}

static bool refuse(const struct seep_view *of, uint64_t from, uint64_t end,
                   uint64_t most)
{
    (void)of;
    (void)from;
    (void)end;
    (void)most;
    return false;
}

/* The disk is full: the page is not touched. */
static void a_device_without_room_is_counted(void **state)
{
    static _Atomic uint64_t none[SEEP_LAYOUT_DEFAULT_BYTES / 4096 / 64];
    const struct seep_view_room room = {none, refuse};

    (void)state;
    view.room = &room;
    take(0, 1, GIB);
    view.room = NULL;
    assert_int_equal(get(&view.counters[SEEP_COUNT_DEVICES_FULL]), 1);
    assert_int_equal(taken(0), 0);
    take(0, 1, GIB);
    assert_int_equal(taken(0), 1);
}

/* Two neighbours become one: the later, with the lower low. */
static void a_wider_grid_keeps_the_later_of_two_and_the_lower_low(void **state)
{
    const uint32_t end = SEEP_BUCKET_COUNT * FIRST_WIDTH;

    (void)state;
    take(0, 0 * FIRST_WIDTH + 2, 1 * GIB); /* with a later one */
    take(0, 1 * FIRST_WIDTH + 2, 2 * GIB);
    take(0, 2 * FIRST_WIDTH + 2, 3 * GIB); /* alone */
    take(0, 5 * FIRST_WIDTH + 2, 4 * GIB); /* alone, and the later */
    take(0, end - 1, 5 * GIB);
    assert_int_equal(get(&at(0, 0)->tick), 2);
    take(0, end, 6 * GIB);
    assert_int_equal(get(&at(0, 0)->tick), FIRST_WIDTH + 2);
    assert_int_equal(get(&at(0, 0)->free_bytes), 2 * GIB);
    assert_int_equal(get(&at(0, 0)->low_free_bytes), 1 * GIB);
    assert_int_equal(get(&at(0, 1)->free_bytes), 3 * GIB);
    assert_int_equal(get(&at(0, 2)->low_free_bytes), 4 * GIB);
    assert_int_equal(get(&at(0, SEEP_BUCKET_COUNT / 2 - 1)->free_bytes),
                     5 * GIB);
    assert_int_equal(get(&at(0, SEEP_BUCKET_COUNT / 2)->free_bytes), 6 * GIB);
    assert_int_equal(taken(0), 5);
}

/* One width for all, of the last tick of any. */
static void all_devices_have_one_grid(void **state)
{
    (void)state;
    take(1, 3 * FIRST_WIDTH, GIB);
    take(0, 4 * SEEP_BUCKET_COUNT * FIRST_WIDTH - 1, GIB);
    assert_int_equal(get(&at(1, 0)->tick), 3 * FIRST_WIDTH);
    assert_int_equal(get(&at(1, 3)->tick), 0);
    assert_int_equal(get(&at(0, SEEP_BUCKET_COUNT - 1)->free_bytes), GIB);
}

static void weeks_fit(void **state)
{
    uint32_t tick = 1;
    uint32_t last = 0;

    (void)state;
    for (; tick < UINT32_MAX / 2; tick += tick / 7 + 1000) {
        take(0, tick, 1 + tick);
        last = tick;
    }
    assert_int_equal(
        get(&at(0, last >> seep_series_width_for(last))->free_bytes), 1 + last);
    for (uint32_t i = 1; i < SEEP_BUCKET_COUNT; i++) {
        uint64_t here = get(&at(0, i)->tick);

        assert_true(here == 0 || here >> seep_series_width_for(last) == i);
    }
}

/* A new recording, as in a fork's child: the grid is narrow again. */
static void a_start_forgets_the_width(void **state)
{
    (void)state;
    take(0, 1000 * SEEP_BUCKET_COUNT * FIRST_WIDTH, GIB);
    free(view.header);
    assert_int_equal(set_up(NULL), 0);
    take(0, 5 * FIRST_WIDTH, GIB);
    assert_int_equal(get(&at(0, 5)->free_bytes), GIB);
}

static sigjmp_buf out;

static void jump_out(int number)
{
    (void)number;
    siglongjmp(out, 1);
}

/* As by a program's handler that jumps. */
static void leave_in_the_middle(uint32_t tick)
{
    struct sigaction jump = {.sa_handler = jump_out};
    struct sigaction before;
    struct seep_rec_device *devices = view.devices;
    size_t size = sizeof(*devices) * SEEP_BUCKET_COUNT;
    void *nowhere =
        mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(nowhere, MAP_FAILED);
    sigaction(SIGSEGV, &jump, &before);
    view.devices = nowhere;
    if (sigsetjmp(out, 1) == 0) {
        take(0, tick, GIB);
        fail();
    }
    view.devices = devices;
    sigaction(SIGSEGV, &before, NULL);
    munmap(nowhere, size);
}

static void who_left_in_the_middle_holds_nobody_up_for_good(void **state)
{
    const uint32_t four_s = 4096;

    (void)state;
    leave_in_the_middle(1000);
    take(0, 1000 + four_s / 2, GIB);
    assert_int_equal(taken(0), 0);
    take(0, 1000 + 2 * four_s, GIB);
    assert_int_equal(taken(0), 1);
    take(0, 1000 + 3 * four_s, GIB);
    assert_int_equal(taken(0), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(every_figure_is_kept),
        TEST(the_first_tick_is_one),
        TEST(the_last_of_a_bucket_stays_with_the_lowest),
        TEST(what_comes_late_is_not_the_last),
        TEST(devices_are_apart),
        TEST(more_devices_than_there_is_room_for_are_counted),
        TEST(a_device_without_room_is_counted),
        TEST(a_wider_grid_keeps_the_later_of_two_and_the_lower_low),
        TEST(all_devices_have_one_grid),
        TEST(weeks_fit),
        TEST(a_start_forgets_the_width),
        TEST(who_left_in_the_middle_holds_nobody_up_for_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
