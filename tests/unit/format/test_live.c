/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A shard's live table as it grows, against a plain list. */
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "empty_recording.h"
#include "format/live.h"

#define BLOCKS 900U

static struct seep_view view;
static struct seep_live table;
static uint64_t listed[BLOCKS];
static uint64_t random_state = 1;

static int set_up(void **state)
{
    (void)state;
    memset(listed, 0, sizeof(listed));
    if (empty_recording_make(&view) != 0) {
        return -1;
    }
    /* The last one is the largest of a small recording. */
    return !seep_live_init(&table, &view, view.shard_count - 1);
}

static int tear_down(void **state)
{
    (void)state;
    empty_recording_free(&view);
    return 0;
}

static uint32_t pick(uint32_t below)
{
    random_state =
        random_state * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (uint32_t)(random_state >> 33) % below;
}

static bool insert(uint64_t address)
{
    struct seep_block block = {.address = address, .size = 8, .site = 1};

    return seep_live_insert(&table, &block);
}

/* Every block of the list is found, once, and nothing else is there. */
static void assert_agrees(const struct seep_live *live)
{
    uint32_t wanted = 0;
    uint32_t there = 0;

    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (listed[i] != 0) {
            wanted++;
            assert_int_not_equal(seep_live_find(live, listed[i]),
                                 SEEP_LIVE_NONE);
        }
    }
    for (uint32_t i = 0; i <= live->mask; i++) {
        uint64_t address = seep_live_get(live, i).address;

        there += address != 0;
        assert_true(address == 0 || seep_live_find(live, address) == i);
        assert_true(address == 0 || i < seep_live_end(live));
    }
    assert_int_equal(there, wanted);
}

/* @dense: blocks of 16 bytes, as close as they can lie. */
static void churn(uint32_t steps, bool dense)
{
    for (uint32_t step = 0; step < steps; step++) {
        uint32_t i = pick(BLOCKS);
        uint64_t address =
            dense ? 0x10000 + 16 * (uint64_t)i : 0x10000 + 5040 * (uint64_t)i;

        if (listed[i] == 0) {
            listed[i] = insert(address) ? address : 0;
        } else if (pick(3) == 0) {
            seep_live_remove(&table, seep_live_find(&table, address));
            listed[i] = 0;
        }
        if (step % 64 == 0) {
            assert_agrees(&table);
        }
    }
}

static void a_table_grows_with_what_is_in_it(void **state)
{
    uint64_t slots = 0;
    uint32_t grew = 0;

    (void)state;
    assert_int_equal(seep_live_slots(&table), 0);
    assert_int_equal(seep_live_find(&table, 0x1000), SEEP_LIVE_NONE);
    for (uint32_t i = 0; i < 200; i++) {
        listed[i] = 0x10000 + 5040 * (uint64_t)i;
        assert_true(insert(listed[i]));
        /* A window at a time. */
        assert_true(seep_live_slots(&table) <= slots + SEEP_WINDOW_SLOTS);
        grew += seep_live_slots(&table) > slots;
        slots = seep_live_slots(&table);
        assert_true(slots >= 2 * i);
        assert_agrees(&table);
    }
    assert_true(grew >= 6);
    assert_true(slots < table.mask);
}

static void a_table_that_churns_as_it_grows_is_a_plain_list(void **state)
{
    (void)state;
    churn(20000, false);
    assert_true(seep_live_slots(&table) >= 12 * SEEP_WINDOW_SLOTS);
}

static void blocks_that_lie_close_find_their_places(void **state)
{
    (void)state;
    churn(20000, true);
    assert_true(seep_live_slots(&table) >= 12 * SEEP_WINDOW_SLOTS);
}

/* As files of before have it; what a reader folds of theirs finds its blocks.
 */
static void a_table_of_older_groups_is_a_plain_list(void **state)
{
    (void)state;
    table.shard->live_group_log2 = 0;
    assert_true(seep_live_init(&table, &view, view.shard_count - 1));
    churn(20000, false);
}

/* How many entries the removals of a heap pass, one of each of its blocks,
 * which are of some 160 bytes in pages that are chosen by chance. */
static uint64_t entries_passed(void)
{
    uint64_t sum = 0;
    uint64_t run = 0;

    for (uint32_t count = 0; count < 440;) {
        uint64_t page = (uint64_t)(16 + pick(1 << 20)) << 12;

        for (uint64_t at = 0; at < 4000; at += 16 * (1 + pick(19)), count++) {
            if (seep_live_find(&table, page + at) == SEEP_LIVE_NONE) {
                assert_true(insert(page + at));
            }
        }
    }
    for (uint32_t i = seep_live_end(&table); i-- > 0;) {
        run = seep_live_get(&table, i).address != 0 ? run + 1 : 0;
        sum += run;
    }
    return sum / seep_word_load(&table.shard->live_count);
}

/* With groups of 1 KiB, and windows that were split when they were full, it was
 * 55 in a program of 20,000 blocks. */
static void removals_in_a_heap_pass_few_entries(void **state)
{
    uint64_t old = 0;
    uint64_t now = 0;

    for (unsigned round = 0; round < 20; round++) {
        now += entries_passed();
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
        table.shard->live_group_log2 = 0;
        assert_true(seep_live_init(&table, &view, view.shard_count - 1));
        old += entries_passed();
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
    print_message("%.1f entries, and %.1f by groups of 1 KiB\n",
                  (double)now / 20, (double)old / 20);
    assert_true(now <= 20 * 4);
    assert_true(now < old);
}

/* A KiB of the smallest blocks, which fills a window. */
static void insert_dense(uint64_t from)
{
    for (uint64_t i = 0; i < SEEP_WINDOW_SLOTS; i++) {
        assert_true(insert(from + 16 * i));
        assert_int_not_equal(seep_live_find(&table, from + 16 * i),
                             SEEP_LIVE_NONE);
    }
}

static void remove_dense(uint64_t from)
{
    for (uint64_t i = 0; i < SEEP_WINDOW_SLOTS; i++) {
        seep_live_remove(&table, seep_live_find(&table, from + 16 * i));
    }
}

/* What has its home in one of the last windows goes on behind it, more than one
 * window far. */
static void dense_blocks_find_room_behind_the_end(void **state)
{
    for (uint32_t round = 0; round < 500; round++) {
        uint64_t kept[16] = {0};
        uint32_t most = 2 + pick(7); /* half of the table at most */

        for (uint32_t step = 0; step < 60; step++) {
            uint64_t *from = &kept[pick(most)];

            if (*from != 0) {
                remove_dense(*from);
                *from = 0;
                continue;
            }
            do {
                *from = (64 + pick(1 << 20)) * UINT64_C(1024);
            } while (seep_live_find(&table, *from) != SEEP_LIVE_NONE);
            insert_dense(*from);
        }
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

/* Killed between the word that says that there is a window more and the moves
 * into it; and in the midst of one of those. */
static void a_kill_while_it_grows_is_repaired(void **state)
{
    struct seep_rec_shard *shard = table.shard;
    uint32_t moved = 0;

    (void)state;
    for (uint32_t i = 0; i < BLOCKS && seep_live_end(&table) <= table.mask;
         i++) {
        uint32_t windows =
            atomic_load_explicit(&shard->live_windows, memory_order_relaxed);

        listed[i] = 0x10000 + 720 * (uint64_t)i;
        assert_true(insert(listed[i]));
        windows += windows == 0;
        /* As a folder leaves it that dies behind its first store. */
        atomic_store_explicit(&shard->live_end, windows + 2,
                              memory_order_relaxed);
        atomic_store_explicit(&shard->live_windows, windows + 1,
                              memory_order_relaxed);
        for (uint32_t k = 0; k <= i; k++) {
            moved += seep_live_find(&table, listed[k]) == SEEP_LIVE_NONE;
        }
        seep_live_repair(&table);
        assert_agrees(&table);
        seep_live_repair(&table);
        assert_agrees(&table);
    }
    assert_true(moved > 0);
}

static bool refuse(const struct seep_view *unused, uint64_t from, uint64_t end,
                   uint64_t most)
{
    (void)unused;
    (void)from;
    (void)end;
    (void)most;
    return false;
}

static void a_table_that_may_not_grow_is_a_full_one(void **state)
{
    static _Atomic uint64_t no_pages[4096];
    static const struct seep_view_room room = {no_pages, refuse};
    uint32_t refused = 0;
    uint64_t slots;

    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        listed[i] = 0x10000 + 5040 * (uint64_t)i;
        assert_true(insert(listed[i]));
    }
    slots = seep_live_slots(&table);
    view.room = &room;
    for (uint32_t i = 40; i < BLOCKS; i++) {
        uint64_t address = 0x10000 + 5040 * (uint64_t)i;

        listed[i] = insert(address) ? address : 0;
        refused += listed[i] == 0;
    }
    assert_true(refused > 600);
    assert_true(seep_live_slots(&table) <= slots + SEEP_WINDOW_SLOTS);
    assert_agrees(&table);
    view.room = NULL;
    assert_true(insert(0x7000));
}

/* An entry of address 0 is a place that is free. */
static void a_block_at_0_is_none(void **state)
{
    (void)state;
    assert_false(insert(0));
    assert_int_equal(atomic_load(&table.shard->live_count), 0);
    assert_true(insert(0x7000));
    assert_int_equal(atomic_load(&table.shard->live_count), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        TEST(a_block_at_0_is_none),
        TEST(a_table_grows_with_what_is_in_it),
        TEST(a_table_that_churns_as_it_grows_is_a_plain_list),
        TEST(blocks_that_lie_close_find_their_places),
        TEST(a_table_of_older_groups_is_a_plain_list),
        TEST(removals_in_a_heap_pass_few_entries),
        TEST(dense_blocks_find_room_behind_the_end),
        TEST(a_kill_while_it_grows_is_repaired),
        TEST(a_table_that_may_not_grow_is_a_full_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
