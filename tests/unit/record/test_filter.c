/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The filter: a recorded block is never missed, others seldom seen. */
#include <pthread.h>
#include <stdlib.h>

#include "seep_test.h"

#include "record/ring.h"

static int set_up(void **state)
{
    (void)state;
    seep_filter_start();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    seep_filter_fill(false);
    return 0;
}

/* First: the cells are there from the second on. */
static void without_cells_a_page_is_told_from_others(void **state)
{
    (void)state;
    assert_null(seep_own_get(&seep_filter_words));
    assert_false(seep_filter_maybe(0x12340));
    assert_true(seep_filter_add(0x12340));
    assert_true(seep_filter_maybe(0x12340));
    assert_true(seep_filter_maybe(0x12350)); /* who is not to be told from it */
    assert_false(seep_filter_maybe(0x45340));
    seep_filter_forget(0x12350); /* which was not added */
    assert_true(seep_filter_maybe(0x12340));
    seep_filter_fill(true);
    assert_true(seep_filter_maybe(0x45340));
}

static void an_added_block_is_seen_until_it_is_forgotten(void **state)
{
    (void)state;
    assert_false(seep_filter_maybe(0x12340));
    assert_true(seep_filter_add(0x12340));
    assert_true(seep_filter_maybe(0x12340));
    seep_filter_forget(0x12340);
    assert_false(seep_filter_maybe(0x12340));
}

static unsigned count_of_page(uintptr_t address)
{
    return seep_filter_pages[seep_filter_page(seep_filter_page_hash(address))];
}

static void a_page_of_which_all_is_forgotten_is_not_looked_into(void **state)
{
    (void)state;
    for (uintptr_t i = 0; i < 200; i++) {
        seep_filter_add(0x12000 + i * 16);
    }
    assert_int_equal(count_of_page(0x12000), 200);
    for (uintptr_t i = 0; i < 200; i++) {
        assert_true(seep_filter_maybe(0x12000 + i * 16));
        seep_filter_forget(0x12000 + i * 16);
    }
    assert_int_equal(count_of_page(0x12000), 0);
}

static void
a_page_with_more_than_can_be_counted_is_looked_into_for_good(void **state)
{
    (void)state;
    for (uintptr_t i = 0; i < 512; i++) {
        seep_filter_add(0x12000 + i % 256 * 16);
    }
    for (uintptr_t i = 0; i < 511; i++) {
        seep_filter_forget(0x12000 + i % 256 * 16);
    }
    assert_true(seep_filter_maybe(0x12000 + 255 * 16));
    assert_false(seep_filter_maybe(0x12000));
}

static void a_full_cell_keeps_its_page_looked_into(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        seep_filter_add(0x12340);
    }
    assert_int_equal(count_of_page(0x12340), 15);
    for (int i = 0; i < 20; i++) {
        seep_filter_forget(0x12340);
    }
    assert_true(seep_filter_maybe(0x12340));
}

static void a_full_cell_stays_set(void **state)
{
    (void)state;
    for (int i = 0; i < 14; i++) {
        assert_true(seep_filter_add(0x12340));
    }
    assert_false(seep_filter_add(0x12340));
    for (int i = 0; i < 100; i++) {
        seep_filter_forget(0x12340);
    }
    assert_true(seep_filter_maybe(0x12340));
}

static void forgetting_what_was_never_added_takes_from_nobody(void **state)
{
    (void)state;
    seep_filter_forget(0x12340);
    assert_false(seep_filter_maybe(0x12340));
    seep_filter_add(0x12340);
    assert_true(seep_filter_maybe(0x12340));
}

static void everything_is_seen_in_exact_mode(void **state)
{
    (void)state;
    seep_filter_fill(true);
    for (uintptr_t i = 0; i < 100000; i++) {
        assert_true(seep_filter_maybe(i * 48));
    }
    seep_filter_forget(0);
    assert_true(seep_filter_maybe(0));
}

static void few_others_look_recorded(void **state)
{
    size_t seen = 0;

    (void)state;
    for (uintptr_t i = 0; i < 2000; i++) {
        seep_filter_add(0x7f0000000000 + i * 524288 + i % 200 * 16);
    }
    for (uintptr_t i = 0; i < 100000; i++) {
        seen += seep_filter_maybe(0x550000000000 + i * 80);
    }
    assert_true(seen < 1000); /* 2000 of a million cells: 0.2 % */
}

/*
 * The trap: a cell's last block is forgotten by one thread while another
 * block's is added by a second. Each thread's own block must be seen always.
 */
static void *hammer(void *argument)
{
    uintptr_t address = (uintptr_t)argument;
    uintptr_t missed = 0;

    for (int i = 0; i < 300000; i++) {
        seep_filter_add(address);
        missed += !seep_filter_maybe(address);
        seep_filter_forget(address);
    }
    return (void *)missed;
}

static void a_block_is_not_missed_while_others_are_forgotten(void **state)
{
    pthread_t threads[4];
    uintptr_t address = 0x12340;
    void *missed;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        /* Two in one cell, two beside it in the same word. */
        assert_int_equal(pthread_create(&threads[i], NULL, hammer,
                                        (void *)(address + i / 2 * 16)),
                         0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], &missed);
        assert_int_equal((uintptr_t)missed, 0);
    }
    assert_false(seep_filter_maybe(address));
    assert_false(seep_filter_maybe(address + 16));
    assert_int_equal(count_of_page(address), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        cmocka_unit_test_teardown(without_cells_a_page_is_told_from_others,
                                  tear_down),
        TEST(an_added_block_is_seen_until_it_is_forgotten),
        TEST(a_full_cell_stays_set),
        TEST(a_page_of_which_all_is_forgotten_is_not_looked_into),
        TEST(a_page_with_more_than_can_be_counted_is_looked_into_for_good),
        TEST(a_full_cell_keeps_its_page_looked_into),
        TEST(forgetting_what_was_never_added_takes_from_nobody),
        TEST(everything_is_seen_in_exact_mode),
        TEST(few_others_look_recorded),
        TEST(a_block_is_not_missed_while_others_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
