/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A shard's live table that is as full as it may be, where blocks all want the
 * same place; and one that is damaged.
 *
 * What these tests cannot catch: how slow it is then (tests/bench).
 */
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "base/hash.h"
#include "empty_recording.h"
#include "format/live.h"

#define WINDOWS 16U /* of the last shard of a small recording */
#define SLOTS (WINDOWS * SEEP_WINDOW_SLOTS)
#define LAST_OF_WINDOW 63U

static struct seep_view view;
static struct seep_live table;
static uint64_t listed[SLOTS];
static uint32_t count;

static int set_up(void **state)
{
    (void)state;
    count = 0;
    if (empty_recording_make(&view) != 0 ||
        !seep_live_init(&table, &view, view.shard_count - 1)) {
        return -1;
    }
    return table.mask + 1 == SLOTS ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    empty_recording_free(&view);
    return 0;
}

static bool insert(uint64_t address)
{
    struct seep_block block = {.address = address, .size = 8, .site = 1};

    return seep_live_insert(&table, &block);
}

/*
 * The next address behind @after whose home is slot @slot of the window that
 * @low chooses: of all 16 windows that is it itself, of fewer a window before.
 */
static uint64_t address_of(uint64_t after, uint32_t low, uint32_t slot)
{
    uint64_t group = after >> SEEP_LIVE_GROUP_LOG2;
    uint32_t hash;

    do {
        hash = (uint32_t)seep_hash_mix(++group);
    } while (hash % WINDOWS != low || hash >> 30 != slot / 16);
    return group << SEEP_LIVE_GROUP_LOG2 | (uint64_t)(slot % 16) << 4;
}

static uint32_t entries(void)
{
    uint32_t there = 0;

    for (uint32_t i = 0; i <= table.mask; i++) {
        there += seep_live_get(&table, i).address != 0;
    }
    return there;
}

static void assert_agrees(void)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_not_equal(seep_live_find(&table, listed[i]), SEEP_LIVE_NONE);
    }
    assert_int_equal(entries(), count);
}

/* Blocks that all want the last slot of one window come until one is refused.
 * Whenever the table has grown there is every one of them. */
static void fill(uint32_t low)
{
    uint64_t address = 0;

    for (;;) {
        uint64_t slots = seep_live_slots(&table);

        address = address_of(address, low, LAST_OF_WINDOW);
        if (!insert(address)) {
            return;
        }
        assert_true(count < SLOTS);
        listed[count++] = address;
        if (seep_live_slots(&table) != slots) {
            assert_agrees();
        }
    }
}

/* The same, while no block that came is counted. */
static void fill_uncounted(uint32_t low)
{
    uint64_t address = count != 0 ? listed[count - 1] : 0;

    for (;;) {
        address = address_of(address, low, LAST_OF_WINDOW);
        seep_word_store(&table.shard->live_count, 0);
        if (!insert(address)) {
            return;
        }
        assert_true(count < SLOTS);
        listed[count++] = address;
    }
}

/* From both ends of the list, so that holes are made all over. */
static void remove_all(void)
{
    for (bool from_end = false; count > 0; from_end = !from_end) {
        uint32_t gone = from_end ? count - 1 : 0;

        seep_live_remove(&table, seep_live_find(&table, listed[gone]));
        listed[gone] = listed[--count];
        if (count % 64 == 0) {
            assert_agrees();
        }
    }
    assert_agrees();
}

/* Refused is one only where 15 of 16 slots are in use, or where those that want
 * the same lie up to the very end and cannot be parted. */
static void blocks_that_want_one_place_fill_the_table(void **state)
{
    for (uint32_t low = 0; low < WINDOWS; low++) {
        fill(low);
        assert_true(count == seep_live_slots(&table) / 16 * 15 - 1 ||
                    seep_live_get(&table, SLOTS - 1).address != 0);
        assert_true(count > SLOTS / 2);
        assert_agrees();
        remove_all();
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
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

/* In a table that may not grow any more, up to the last slot that it has. */
static void a_run_may_end_where_the_table_ends(void **state)
{
    static _Atomic uint64_t no_pages[4096];
    static const struct seep_view_room room = {no_pages, refuse};

    (void)state;
    assert_true(insert(listed[count++] = address_of(0, 0, LAST_OF_WINDOW)));
    view.room = &room;
    fill_uncounted(0);
    view.room = NULL;
    assert_int_equal(seep_live_end(&table), 2 * SEEP_WINDOW_SLOTS);
    assert_agrees();
    for (uint32_t left = SEEP_WINDOW_SLOTS; left > 0; left--) {
        uint32_t last = seep_live_find(&table, listed[count - 1]);

        assert_int_equal(last, LAST_OF_WINDOW + left);
        seep_live_remove(&table, last);
        count--;
        assert_agrees();
    }
}

/* As those leave it that put an entry in, and left before they counted it. */
static void a_table_without_a_free_slot_goes_on(void **state)
{
    uint64_t other = address_of(0, 3, 0);

    for (uint32_t low = 0; low < 7; low += 3) {
        fill_uncounted(low);
        assert_int_equal(count, SLOTS);
        assert_agrees();
        assert_int_equal(seep_live_find(&table, other), SEEP_LIVE_NONE);
        seep_live_remove(&table, seep_live_find(&table, listed[SLOTS / 2]));
        listed[SLOTS / 2] = listed[--count];
        assert_agrees();
        seep_word_store(&table.shard->live_count, 0);
        assert_true(insert(other));
        listed[count++] = other;
        remove_all();
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void no_block_lies_at_address_0(void **state)
{
    (void)state;
    assert_false(insert(0));
    assert_int_equal(entries(), 0);
    assert_int_equal(seep_word_load(&table.shard->live_count), 0);
}

/*
 * Damaged copies: whatever they say, what is there stays, and it ends.
 */

static void put(uint32_t index, uint64_t address)
{
    seep_word_store(&table.entries[index].address, address);
}

/* So that @windows are in use, and as many behind them. */
static void claim(uint32_t windows)
{
    seep_word_store(&table.shard->live_windows, windows);
    seep_word_store(&table.shard->live_end, 2 * windows);
}

/* They belong into window 1, and that and all behind it are full. */
static void what_finds_no_room_where_it_belongs_stays(void **state)
{
    uint64_t address = 0;

    (void)state;
    claim(2);
    for (uint32_t i = 0; i < 4 * SEEP_WINDOW_SLOTS; i++) {
        address = address_of(address, 1, LAST_OF_WINDOW);
        put(i, address);
    }
    seep_live_repair(&table);
    assert_int_equal(entries(), 4 * SEEP_WINDOW_SLOTS);
    assert_int_equal(seep_live_get(&table, 0).address,
                     address_of(0, 1, LAST_OF_WINDOW));
}

/* Each of the second ones takes the place of the other as it moves. */
static void two_blocks_that_are_there_twice_do_not_move_for_ever(void **state)
{
    uint64_t first = address_of(0, 1, 0);
    uint64_t second = address_of(first, 1, 0);

    (void)state;
    claim(2);
    put(SEEP_WINDOW_SLOTS, first);
    put(SEEP_WINDOW_SLOTS + 1, second);
    put(SEEP_WINDOW_SLOTS + 2, first);
    put(SEEP_WINDOW_SLOTS + 3, second);
    seep_live_repair(&table);
    assert_int_equal(entries(), 4);
    assert_int_equal(seep_live_find(&table, first), SEEP_WINDOW_SLOTS);
    assert_int_equal(seep_live_find(&table, second), SEEP_WINDOW_SLOTS + 1);
}

/* Killed behind the store that emptied the place that it moved from; or that
 * never was a move. */
static void a_move_from_or_to_nowhere_changes_nothing(void **state)
{
    uint64_t first = address_of(0, 0, 0);
    const uint64_t moves[] = {
        3, 4, 3 * SEEP_WINDOW_SLOTS, UINT32_MAX, /* from */
    };

    (void)state;
    assert_true(insert(first));
    for (uint32_t i = 0; i < 4; i++) {
        seep_word_store(&table.shard->move, (moves[i] + 1) << 32 | 1);
        seep_live_repair(&table);
        assert_int_equal(seep_live_find(&table, first), 0);
        seep_word_store(&table.shard->move, UINT64_C(1) << 32 | (moves[i] + 1));
        if (moves[i] >= seep_live_end(&table)) {
            seep_live_repair(&table);
            assert_int_equal(seep_live_find(&table, first), 0);
        }
    }
    seep_word_store(&table.shard->move, UINT64_C(1) << 32 | 1);
    seep_live_repair(&table);
    assert_int_equal(seep_live_find(&table, first), 0);
    assert_int_equal(entries(), 1);
}

static void a_table_that_is_not_in_its_section_is_none(void **state)
{
    struct seep_rec_shard *shard = table.shard;
    struct seep_rec_shard saved = *shard;
    const struct {
        uint64_t first;
        uint64_t slots;
        uint32_t windows;
        uint32_t end;
    } bad[] = {
        {saved.live_first, SEEP_WINDOW_SLOTS / 2, 0, 0},
        {saved.live_first, SLOTS - 1, 0, 0},
        {saved.live_first, UINT64_C(1) << 29, 0, 0},
        {(uint64_t)view.live_capacity + 1, SLOTS, 0, 0},
        {UINT64_MAX, SLOTS, 0, 0},
        {saved.live_first, 2 * SLOTS, 0, 0},
        {saved.live_first, SLOTS, 3, 2},
        {saved.live_first, SLOTS, 3, WINDOWS + 1},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        shard->live_first = bad[i].first;
        shard->live_slots = bad[i].slots;
        seep_word_store(&shard->live_windows, bad[i].windows);
        seep_word_store(&shard->live_end, bad[i].end);
        assert_false(seep_live_init(&table, &view, view.shard_count - 1));
    }
    *shard = saved;
    assert_true(seep_live_init(&table, &view, view.shard_count - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        TEST(blocks_that_want_one_place_fill_the_table),
        TEST(a_run_may_end_where_the_table_ends),
        TEST(a_table_without_a_free_slot_goes_on),
        TEST(no_block_lies_at_address_0),
        TEST(what_finds_no_room_where_it_belongs_stays),
        TEST(two_blocks_that_are_there_twice_do_not_move_for_ever),
        TEST(a_move_from_or_to_nowhere_changes_nothing),
        TEST(a_table_that_is_not_in_its_section_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
