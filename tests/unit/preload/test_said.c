/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What programs say and ask (preload/calls.c), where a real process cannot be
 * made to: whether there is a recording, and its figures, are as a test wants.
 */
#define SEEP_NO_CALLS
#include "seep/seep.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "seep_test.h"

#include "base/word.h"
#include "format/view.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "record/program.h"
#include "record/recorder.h"

void seep_progress(uint64_t units);
int seep_stats(struct seep_stats *ret_stats);

static struct {
    enum seep_life_state state;
    bool is_seen;    /* without the guard */
    bool is_guarded; /* it lets this thread in */
    int entered;
    struct seep_stats_figures figures;
} world;
static struct seep_rec_header header;
static const struct seep_view view = {.header = &header};
static struct seep_thread thread;

bool seep_identity_is_ours(void)
{
    return true;
}

bool seep_life_has_waited(void)
{
    return false;
}

enum seep_life_state seep_life_state(void)
{
    return world.state;
}

const struct seep_view *seep_recorder_view(void)
{
    return world.is_seen ? &view : NULL;
}

const struct seep_view *
seep_guard_enter_recording(uintptr_t frame, struct seep_thread **ret_thread)
{
    (void)frame;
    world.entered++;
    *ret_thread = &thread;
    return world.is_guarded ? &view : NULL;
}

void seep_guard_leave(struct seep_thread *left)
{
    (void)left;
}

uint32_t seep_recorder_tick(void)
{
    return 1;
}

void seep_recorder_settle(struct seep_thread *settled)
{
    (void)settled;
}

void seep_marks_moment(const struct seep_view *of, uint32_t tick,
                       const char *name)
{
    (void)of;
    (void)tick;
    (void)name;
}

void seep_marks_label(const struct seep_view *of, uint32_t tick,
                      const char *key, const char *value)
{
    (void)of;
    (void)tick;
    (void)key;
    (void)value;
}

void seep_stats_take(const struct seep_view *of, uint32_t tick,
                     struct seep_stats_figures *ret_figures)
{
    (void)of;
    (void)tick;
    *ret_figures = world.figures;
}

static int begin(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    memset(&header, 0, sizeof(header));
    world.state = SEEP_LIFE_ON;
    world.is_seen = true;
    world.is_guarded = true;
    return 0;
}

static uint64_t units(void)
{
    return seep_word_load(&header.progress_units);
}

static struct seep_stats ask(void)
{
    struct seep_stats stats = {.size_bytes = sizeof(stats)};

    assert_int_equal(seep_stats(&stats), 0);
    return stats;
}

static void units_are_added_at_once_where_the_recording_is_there(void **state)
{
    (void)state;
    seep_progress(3);
    assert_int_equal(units(), 3);
    assert_int_equal(world.entered, 0);
}

/* On a machine that shows one thread's stores to others in another order. */
static void a_recording_that_is_not_seen_yet_is_asked_for(void **state)
{
    (void)state;
    world.is_seen = false;
    seep_progress(3);
    assert_int_equal(units(), 3);
    assert_int_equal(world.entered, 1);
}

static void units_of_before_count_once_it_has_begun(void **state)
{
    (void)state;
    world.state = SEEP_LIFE_STARTING;
    world.is_guarded = false;
    seep_progress(3);
    assert_int_equal(units(), 0);
    world.state = SEEP_LIFE_ON;
    seep_progress(1);
    assert_int_equal(units(), 4);
}

static void units_are_forgotten_where_nothing_is_recorded(void **state)
{
    static const enum seep_life_state closed[] = {SEEP_LIFE_OFF,
                                                  SEEP_LIFE_DONE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin(NULL);
        world.state = closed[i];
        world.is_guarded = false;
        seep_progress(3);
        world.state = SEEP_LIFE_ON;
        seep_progress(1);
        assert_int_equal(units(), 1);
    }
}

static void what_is_not_known_is_said_to_be(void **state)
{
    struct seep_stats stats;

    (void)state;
    stats = ask();
    assert_true(stats.headroom_bytes == SEEP_UNKNOWN);
    assert_true(stats.rss_bytes == SEEP_UNKNOWN);
    assert_true(stats.device_total_bytes == SEEP_UNKNOWN);
    assert_true(stats.device_free_bytes == SEEP_UNKNOWN);
    world.figures.cgroup_limit_bytes = 1000; /* and what is used is not read */
    assert_true(ask().headroom_bytes == SEEP_UNKNOWN);
}

static void room_in_a_container_is_what_its_limit_leaves(void **state)
{
    (void)state;
    world.figures.cgroup_limit_bytes = 1000;
    world.figures.cgroup_bytes = 400;
    assert_int_equal(ask().headroom_bytes, 600);
    world.figures.cgroup_bytes = 1000;
    assert_int_equal(ask().headroom_bytes, 0);
    world.figures.cgroup_bytes = 1001; /* the kernel lets it pass a little */
    assert_int_equal(ask().headroom_bytes, 0);
}

/* A full device has none free, which is known. */
static void a_device_that_is_known_is_told(void **state)
{
    struct seep_stats stats;

    (void)state;
    world.figures.device_total_bytes = 80;
    world.figures.device_free_bytes = 0;
    stats = ask();
    assert_int_equal(stats.device_total_bytes, 80);
    assert_int_equal(stats.device_free_bytes, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(units_are_added_at_once_where_the_recording_is_there),
        TEST(a_recording_that_is_not_seen_yet_is_asked_for),
        TEST(units_of_before_count_once_it_has_begun),
        TEST(units_are_forgotten_where_nothing_is_recorded),
        TEST(what_is_not_known_is_said_to_be),
        TEST(room_in_a_container_is_what_its_limit_leaves),
        TEST(a_device_that_is_known_is_told),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
