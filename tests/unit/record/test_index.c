/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finding entries by key, by several threads at once. */
#include <pthread.h>
#include <stdatomic.h>

#include "seep_test.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(threads_that_claim_one_key_get_one_entry),
        TEST(threads_that_claim_other_keys_get_other_entries),
        TEST(a_full_table_says_so_and_still_finds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
