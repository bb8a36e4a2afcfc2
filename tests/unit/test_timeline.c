/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may take a moment, on a recording in memory. */
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/clock.h"
#include "format/layout.h"
#include "format/view.h"
#include "record/timeline.h"

static struct seep_rec_header *recording;
static struct seep_view view;
static jmp_buf out;

static int set_up(void **state)
{
    struct seep_rec_header header = {0};

    (void)state;
    if (seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, true, false, &header) != 0) {
        return -1;
    }
    recording = calloc(1, header.file_bytes);
    if (recording == NULL) {
        return -1;
    }
    header.start_monotonic_ns = seep_clock_monotonic_ns();
    header.pid = (uint32_t)getpid();
    memcpy((void *)recording, (void *)&header, sizeof(header));
    seep_layout_start(recording);
    seep_view_init(&view, recording);
    seep_timeline_start();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    seep_timeline_set_allocator(NULL);
    free(recording);
    return 0;
}

static uint32_t own_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

static void *tell_id(void *argument)
{
    *(uint32_t *)argument = own_id();
    return NULL;
}

/* The number of a thread that is gone. */
static uint32_t gone_id(void)
{
    pthread_t thread;
    uint32_t id = 0;

    assert_int_equal(pthread_create(&thread, NULL, tell_id, &id), 0);
    pthread_join(thread, NULL);
    while (syscall(SYS_tgkill, getpid(), id, 0) == 0) {
        usleep(100);
    }
    return id;
}

static int jump_out(struct seep_timeline_figures *ret_figures)
{
    (void)ret_figures;
    longjmp(out, 1);
}

/* The moment of tick 1 is taken, and @id stays in it. */
static void stay_in_a_moment(uint32_t id)
{
    seep_timeline_set_allocator(jump_out);
    seep_timeline_take(&view, own_id(), 1);
    assert_true(seep_timeline_wants_allocator());
    if (setjmp(out) == 0) {
        seep_timeline_ask_allocator(&view, id, 1);
        fail();
    }
}

static bool takes_a_moment(uint32_t id, uint32_t tick)
{
    uint32_t index = tick >> SEEP_FIRST_WIDTH_LOG2;

    seep_timeline_take(&view, id, tick);
    return atomic_load_explicit(&view.timeline[index].tick,
                                memory_order_relaxed) != 0;
}

static void the_moments_go_on_when_a_thread_is_gone(void **state)
{
    (void)state;
    stay_in_a_moment(gone_id());
    assert_true(takes_a_moment(own_id(), 100));
    assert_false(seep_timeline_wants_allocator());
}

/* Its number may have been given to the next that comes. */
static void the_moments_go_on_with_the_number_of_one_gone(void **state)
{
    uint32_t id = own_id();

    (void)state;
    stay_in_a_moment(id);
    assert_true(takes_a_moment(id, 200));
}

static void a_moment_of_a_living_thread_is_its_own(void **state)
{
    (void)state;
    stay_in_a_moment(own_id());
    assert_false(takes_a_moment(own_id() + 1, 300));
    seep_timeline_recover(&view, own_id());
    assert_true(takes_a_moment(own_id() + 1, 301));
}

static void a_process_that_is_restricted_asks_for_nobody(void **state)
{
    (void)state;
    stay_in_a_moment(gone_id());
    seep_timeline_restrict();
    assert_false(takes_a_moment(own_id(), 400));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(the_moments_go_on_when_a_thread_is_gone),
        TEST(the_moments_go_on_with_the_number_of_one_gone),
        TEST(a_moment_of_a_living_thread_is_its_own),
        TEST(a_process_that_is_restricted_asks_for_nobody), /* for good: last */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
