/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* record/program: what a program says of itself, and how much of it is kept. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "seep_test.h"

#include "empty_recording.h"
#include "record/program.h"

static struct seep_view view;

static int set_up(void **state)
{
    (void)state;
    return empty_recording_make(&view);
}

static int tear_down(void **state)
{
    (void)state;
    empty_recording_free(&view);
    return 0;
}

static uint64_t refused(void)
{
    return atomic_load_explicit(&view.counters[SEEP_COUNT_MARKS_FULL],
                                memory_order_relaxed);
}

static uint32_t used(void)
{
    return atomic_load_explicit(&view.header->mark_count, memory_order_relaxed);
}

static uint64_t string_bytes(void)
{
    return atomic_load_explicit(&view.header->string_bytes_used,
                                memory_order_relaxed);
}

static const char *name_of(uint32_t index)
{
    return seep_view_string(&view, view.marks[index].name);
}

static void a_mark_has_its_name_its_time_and_the_work_done(void **state)
{
    (void)state;
    atomic_store_explicit(&view.header->progress_units, 42,
                          memory_order_relaxed);
    seep_marks_moment(&view, 1000, "warm-up done");
    assert_int_equal(used(), 1);
    assert_int_equal(atomic_load(&view.marks[0].state), SEEP_PUBLISHED);
    assert_int_equal(view.marks[0].kind, SEEP_MARK_MOMENT);
    assert_int_equal(atomic_load(&view.marks[0].tick), 1000);
    assert_int_equal(view.marks[0].units, 42);
    assert_string_equal(name_of(0), "warm-up done");
}

static void a_name_takes_room_once(void **state)
{
    uint64_t after_one;

    (void)state;
    seep_marks_moment(&view, 1, "batch");
    after_one = string_bytes();
    seep_marks_moment(&view, 2, "batch");
    assert_int_equal(used(), 2);
    assert_int_equal(string_bytes(), after_one);
}

static void marks_of_no_name_are_none(void **state)
{
    (void)state;
    seep_marks_moment(&view, 1, "");
    seep_marks_label(&view, 1, "", "bert");
    assert_int_equal(used(), 0);
}

static void what_finds_no_room_is_refused_and_counted(void **state)
{
    uint32_t room = view.mark_capacity - view.mark_capacity / 4;

    (void)state;
    for (uint32_t i = 0; i < room + 7; i++) {
        seep_marks_moment(&view, i, "again");
    }
    assert_int_equal(used(), room);
    assert_int_equal(refused(), 7);
}

static void many_marks_leave_room_for_labels(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2 * view.mark_capacity; i++) {
        seep_marks_moment(&view, i, "again");
    }
    seep_marks_label(&view, 1, "model", "bert");
    assert_string_equal(name_of(used() - 1), "model");
}

static void a_label_that_comes_back_takes_no_room(void **state)
{
    uint64_t after_two;

    (void)state;
    seep_marks_label(&view, 1, "model", "bert-13");
    seep_marks_label(&view, 2, "model", "bert-14");
    after_two = string_bytes();
    for (uint32_t i = 3; i < 1000; i++) {
        seep_marks_label(&view, i, "model", i % 2 != 0 ? "bert-13" : "bert-14");
    }
    assert_int_equal(used(), 2);
    assert_int_equal(string_bytes(), after_two);
    assert_int_equal(refused(), 0);
    assert_int_equal(atomic_load(&view.marks[0].tick), 999);
    assert_true(atomic_load(&view.marks[0].order) >
                atomic_load(&view.marks[1].order));
}

/* As where a thread was overtaken between its turn and its store. */
static void a_label_given_late_does_not_take_back_its_turn(void **state)
{
    (void)state;
    seep_marks_label(&view, 5, "model", "bert");
    atomic_store(&view.marks[0].order, 100);
    atomic_store(&view.marks[0].tick, 50);
    seep_marks_label(&view, 7, "model", "bert");
    assert_int_equal(used(), 1);
    assert_int_equal(atomic_load(&view.marks[0].order), 100);
    assert_int_equal(atomic_load(&view.marks[0].tick), 50);
}

static void labels_for_ever_new_stay_bounded(void **state)
{
    char value[32];

    (void)state;
    for (uint32_t i = 0; i < 10000; i++) {
        snprintf(value, sizeof(value), "request-%u", i);
        seep_marks_label(&view, i, "id", value);
    }
    assert_int_equal(used(), view.mark_capacity);
    assert_int_equal(refused(), 10000 - view.mark_capacity);
    assert_true(string_bytes() < view.string_bytes / 2);
}

static void a_long_name_is_cut_between_characters(void **state)
{
    char name[2 * SEEP_MARKS_TEXT_BYTES] = "x";

    (void)state;
    while (strlen(name) + 2 < sizeof(name)) {
        strcat(name, "\xc3\xa9");
    }
    seep_marks_moment(&view, 1, name);
    assert_int_equal(strlen(name_of(0)), SEEP_MARKS_TEXT_BYTES - 1);
    assert_int_equal((unsigned char)name_of(0)[SEEP_MARKS_TEXT_BYTES - 2],
                     0xa9);
}

/* Bytes that only ever go on with a character: there is no place to cut. */
static void a_long_name_of_no_character_is_none(void **state)
{
    char name[2 * SEEP_MARKS_TEXT_BYTES];

    (void)state;
    memset(name, '\x80', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    seep_marks_moment(&view, 1, name);
    assert_int_equal(used(), 0);
}

/* Half a label would be another one. */
static void where_a_value_finds_no_room_there_is_no_label(void **state)
{
    (void)state;
    atomic_store_explicit(&view.header->string_bytes_used,
                          view.string_bytes - 8, memory_order_relaxed);
    seep_marks_label(&view, 1, "key", "value");
    assert_int_equal(refused(), 1);
    assert_int_equal(atomic_load(&view.marks[0].state), 0);
    seep_marks_moment(&view, 1, "m"); /* for which there is room */
    assert_string_equal(name_of(1), "m");
}

static void where_names_find_no_room_there_is_no_mark(void **state)
{
    (void)state;
    atomic_store_explicit(&view.header->string_bytes_used, view.string_bytes,
                          memory_order_relaxed);
    seep_marks_moment(&view, 1, "lost");
    assert_int_equal(refused(), 1);
    assert_int_equal(atomic_load(&view.marks[0].state), 0);
}

static void a_recording_of_nothing_takes_no_marks(void **state)
{
    struct seep_view none = view;

    (void)state;
    none.mark_capacity = 0;
    seep_marks_moment(&none, 1, "x");
    seep_marks_label(&none, 1, "x", "y");
    assert_int_equal(used(), 0);
    assert_int_equal(refused(), 2);
}

static void *speak(void *name)
{
    for (uint32_t i = 0; i < 20; i++) {
        seep_marks_moment(&view, i, name);
        seep_marks_label(&view, i, "who", name);
    }
    return NULL;
}

static void threads_that_speak_at_once_are_all_heard(void **state)
{
    static char names[4][8] = {"one", "two", "three", "four"};
    pthread_t threads[4];
    uint32_t heard = 0;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, speak, names[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < used(); i++) {
        assert_int_equal(atomic_load(&view.marks[i].state), SEEP_PUBLISHED);
        heard += view.marks[i].kind == SEEP_MARK_MOMENT;
    }
    assert_int_equal(heard, 80);
    assert_int_equal(refused(), 0);
}

int main(void)
{
#define MARKS_TEST(name) \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        MARKS_TEST(a_mark_has_its_name_its_time_and_the_work_done),
        MARKS_TEST(a_name_takes_room_once),
        MARKS_TEST(marks_of_no_name_are_none),
        MARKS_TEST(what_finds_no_room_is_refused_and_counted),
        MARKS_TEST(many_marks_leave_room_for_labels),
        MARKS_TEST(a_label_that_comes_back_takes_no_room),
        MARKS_TEST(a_label_given_late_does_not_take_back_its_turn),
        MARKS_TEST(labels_for_ever_new_stay_bounded),
        MARKS_TEST(a_long_name_is_cut_between_characters),
        MARKS_TEST(a_long_name_of_no_character_is_none),
        MARKS_TEST(where_a_value_finds_no_room_there_is_no_label),
        MARKS_TEST(where_names_find_no_room_there_is_no_mark),
        MARKS_TEST(a_recording_of_nothing_takes_no_marks),
        MARKS_TEST(threads_that_speak_at_once_are_all_heard),
    };
#undef MARKS_TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
