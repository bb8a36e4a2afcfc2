/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finding entries by key, by several threads at once. */
#include <pthread.h>
#include <stdatomic.h>

#include "seep_test.h"

#include "base/word.h"
#include "empty_recording.h"
#include "record/sites.h"

#define THREADS 4
/* In the smallest recording: were all made anew by each, they would still fit.
 */
#define KEYS 120U
#define ROUNDS 50U

static struct seep_view view;
static void *memory;
static _Atomic unsigned arrived;
static _Atomic uint32_t new_count;

struct claimer {
    pthread_t thread;
    unsigned number;
    uint32_t entries[KEYS];
};

/* What another thread does while an entry is being taken, once. */
static void (*meanwhile)(void);

static bool reserve(const struct seep_view *of, uint64_t from, uint64_t end,
                    uint64_t most)
{
    void (*action)(void) = meanwhile;

    (void)of;
    (void)from;
    (void)end;
    (void)most;
    meanwhile = NULL;
    if (action != NULL) {
        action();
    }
    return true;
}

static void let_happen(void (*action)(void))
{
    static _Atomic uint64_t none[SEEP_LAYOUT_DEFAULT_BYTES / 4096 / 64];
    static const struct seep_view_room room = {none, reserve};

    view.room = &room;
    meanwhile = action;
}

static int set_up(void **state)
{
    (void)state;
    if (empty_recording_make(&view) != 0) {
        return -1;
    }
    memory = calloc(1, seep_index_bytes(view.header));
    seep_index_start(&view, memory);
    atomic_store(&arrived, 0);
    atomic_store(&new_count, 0);
    return memory == NULL;
}

/* A table that has more entries than a search has steps. */
static int set_up_large(void **state)
{
    (void)state;
    if (empty_recording_make_of(SEEP_LAYOUT_DEFAULT_BYTES, true, &view) != 0) {
        return -1;
    }
    memory = calloc(1, seep_index_bytes(view.header));
    seep_index_start(&view, memory);
    return memory == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    seep_index_start(&view, NULL);
    free(memory);
    empty_recording_free(&view);
    return 0;
}

/* Many of them begin their search at the same slots, and yet a full table is
 * found full before a search is given up. */
static uint64_t key_of(unsigned i)
{
    return (uint64_t)(i + 1) << 32 | i % 8 * 128;
}

static void meet(unsigned count)
{
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < count) {
    }
}

static void claim(struct claimer *claimer, unsigned i)
{
    enum seep_index_answer answer = seep_index_claim(
        &view, SEEP_INDEX_STACKS, key_of(i), &claimer->entries[i]);

    if (answer == SEEP_INDEX_NEW) {
        atomic_fetch_add(&new_count, 1);
    } else if (answer != SEEP_INDEX_FOUND) {
        claimer->entries[i] = 0; /* never given */
    }
}

static void *claim_the_same(void *context)
{
    struct claimer *claimer = context;

    meet(THREADS);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < KEYS; i++) {
            claim(claimer, i);
        }
    }
    return NULL;
}

static void *claim_own(void *context)
{
    struct claimer *claimer = context;

    meet(THREADS);
    for (unsigned i = claimer->number; i < KEYS; i += THREADS) {
        claim(claimer, i);
    }
    return NULL;
}

static void race(struct claimer *claimers, void *(*body)(void *))
{
    for (unsigned i = 0; i < THREADS; i++) {
        claimers[i].number = i;
        assert_int_equal(
            pthread_create(&claimers[i].thread, NULL, body, &claimers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(claimers[i].thread, NULL), 0);
    }
}

/* No two keys have one entry, and each entry has its key. */
static void check_entries(const uint32_t *entries)
{
    bool taken[KEYS * THREADS + 1] = {false};

    for (unsigned i = 0; i < KEYS; i++) {
        assert_in_range(entries[i], 1, KEYS * THREADS);
        assert_false(taken[entries[i]]);
        taken[entries[i]] = true;
        assert_int_equal(atomic_load(&view.stacks[entries[i]].key), key_of(i));
        assert_true(seep_index_has(&view, SEEP_INDEX_STACKS, key_of(i)));
    }
}

/* One of them makes it, all of them get it. */
static void threads_that_claim_one_key_get_one_entry(void **state)
{
    static struct claimer claimers[THREADS];

    (void)state;
    race(claimers, claim_the_same);
    for (unsigned i = 1; i < THREADS; i++) {
        assert_memory_equal(claimers[i].entries, claimers[0].entries,
                            sizeof(claimers[0].entries));
    }
    assert_int_equal(atomic_load(&new_count), KEYS);
    check_entries(claimers[0].entries);
}

static void threads_that_claim_other_keys_get_other_entries(void **state)
{
    static struct claimer claimers[THREADS];
    uint32_t entries[KEYS];

    (void)state;
    race(claimers, claim_own);
    for (unsigned i = 0; i < KEYS; i++) {
        entries[i] = claimers[i % THREADS].entries[i];
    }
    assert_int_equal(atomic_load(&new_count), KEYS);
    check_entries(entries);
}

/* What two made at once and one did not need is given to the next. */
static void a_full_table_says_so_and_still_finds(void **state)
{
    uint32_t entry;
    uint32_t first;
    unsigned i = 0;

    (void)state;
    assert_int_equal(
        seep_index_claim(&view, SEEP_INDEX_CODES, key_of(0), &first),
        SEEP_INDEX_NEW);
    while (seep_index_claim(&view, SEEP_INDEX_CODES, key_of(++i), &entry) ==
           SEEP_INDEX_NEW) {
    }
    assert_int_equal(i,
                     view.header->sections[SEEP_SECTION_CODES].entry_count - 1);
    assert_int_equal(
        seep_index_claim(&view, SEEP_INDEX_CODES, key_of(i), &entry),
        SEEP_INDEX_FULL);
    assert_int_equal(
        seep_index_claim(&view, SEEP_INDEX_CODES, key_of(0), &entry),
        SEEP_INDEX_FOUND);
    assert_int_equal(entry, first);
    assert_false(seep_index_has(&view, SEEP_INDEX_CODES, key_of(i)));
}

/* All of them begin their search at slot 0. */
static enum seep_index_answer claim_in_one_place(uint32_t i,
                                                 uint32_t *ret_entry)
{
    return seep_index_claim(&view, SEEP_INDEX_STACKS, (uint64_t)(i + 1) << 32,
                            ret_entry);
}

/* Until it is refused. @return how many there are */
static uint32_t crowd(void)
{
    uint32_t i = 0;
    uint32_t entry;

    while (claim_in_one_place(i, &entry) == SEEP_INDEX_NEW) {
        i++;
    }
    return i;
}

static void a_search_ends_though_the_table_is_not_full(void **state)
{
    uint32_t count = crowd();
    uint32_t entry;

    (void)state;
    assert_in_range(count, 100, view.stack_capacity - 2);
    assert_int_equal(claim_in_one_place(count, &entry), SEEP_INDEX_FULL);
    assert_false(
        seep_index_has(&view, SEEP_INDEX_STACKS, (uint64_t)(count + 1) << 32));
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(claim_in_one_place(i, &entry), SEEP_INDEX_FOUND);
        assert_int_equal(entry, i + 1);
    }
    assert_int_equal(
        seep_index_claim(&view, SEEP_INDEX_STACKS, key_of(1) + 4096, &entry),
        SEEP_INDEX_NEW);
}

static void claim_the_first(void)
{
    uint32_t entry;

    assert_int_equal(claim_in_one_place(0, &entry), SEEP_INDEX_NEW);
    assert_int_equal(entry, 1);
}

/* Both have taken an entry: the second's is given to the next that comes. */
static void who_is_second_finds_the_firsts_entry(void **state)
{
    uint32_t entry;

    (void)state;
    let_happen(claim_the_first);
    assert_int_equal(claim_in_one_place(0, &entry), SEEP_INDEX_FOUND);
    assert_int_equal(entry, 1);
    assert_int_equal(claim_in_one_place(1, &entry), SEEP_INDEX_NEW);
    assert_int_equal(entry, 2);
}

static void crowd_meanwhile(void)
{
    crowd();
}

static void who_finds_all_slots_taken_meanwhile_is_refused(void **state)
{
    uint32_t count = 0;
    uint32_t entry;

    (void)state;
    let_happen(crowd_meanwhile);
    assert_int_equal(claim_in_one_place(100000, &entry), SEEP_INDEX_FULL);
    while (seep_word_load(&view.stacks[count + 1].key) != 0) {
        count++;
    }
    assert_true(count >= 100);
    /* The entry that it had taken is the next one's. */
    assert_int_equal(
        seep_index_claim(&view, SEEP_INDEX_STACKS, key_of(1) + 4096, &entry),
        SEEP_INDEX_NEW);
    assert_int_equal(entry, count + 1);
}

static void without_an_index_there_is_nothing(void **state)
{
    uint32_t entry;

    (void)state;
    claim_the_first();
    seep_index_start(&view, NULL);
    assert_int_equal(claim_in_one_place(0, &entry), SEEP_INDEX_FULL);
    assert_false(seep_index_has(&view, SEEP_INDEX_STACKS, UINT64_C(1) << 32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(threads_that_claim_one_key_get_one_entry),
        TEST(threads_that_claim_other_keys_get_other_entries),
        TEST(a_full_table_says_so_and_still_finds),
        TEST(who_is_second_finds_the_firsts_entry),
        TEST(without_an_index_there_is_nothing),
#define LARGE(name) \
    cmocka_unit_test_setup_teardown(name, set_up_large, tear_down)
        LARGE(a_search_ends_though_the_table_is_not_full),
        LARGE(who_finds_all_slots_taken_meanwhile_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
