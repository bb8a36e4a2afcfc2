/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fold: blocks whose free is ready when their allocation is folded.
 *
 * What these tests cannot catch: a process that is killed between the two
 * events of such a pair (tests/model).
 */
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "format/account.h"
#include "format/fold.h"
#include "format/live.h"
#include "recording_builder.h"

#define SITES 12U /* more than the fold has entries for */
#define EVENTS 40000U
#define SLOTS 64U

struct fixture {
    struct recording_builder builder;
    uint32_t sites[SITES];
};

static struct fixture *make(int exact)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    builder_init(&f->builder, UINT64_C(8) << 20, exact);
    for (uint32_t i = 0; i < SITES; i++) {
        uint64_t frame = builder_frame(0, 0x1000 * (i + 1));

        f->sites[i] =
            builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                         SEEP_SPACE_HEAP);
    }
    return f;
}

static int set_up(void **state)
{
    *state = make(1);
    return 0;
}

static void release(struct fixture *f)
{
    builder_fini(&f->builder);
    free(f);
}

static int tear_down(void **state)
{
    release(*state);
    return 0;
}

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void fold_all(struct fixture *f)
{
    for (uint32_t i = 0; i < f->builder.view.shard_count; i++) {
        while (seep_fold_shard(&f->builder.fold, i, UINT32_MAX) > 0) {
        }
    }
}

static const struct seep_rec_site *site(const struct fixture *f, uint32_t i)
{
    return &f->builder.view.sites[f->sites[i]];
}

static uint64_t counted(const struct fixture *f, unsigned counter)
{
    return get(&f->builder.view.counters[counter]);
}

static bool is_live(const struct fixture *f, uint64_t address)
{
    const struct seep_view *view = &f->builder.view;
    struct seep_live live;

    assert_true(seep_live_init(&live, view, seep_view_shard_of(view, address)));
    return seep_live_find(&live, address) != SEEP_LIVE_NONE;
}

static void a_pair_is_told_and_is_never_live(void **state)
{
    struct fixture *f = *state;

    builder_alloc(&f->builder, 0x1000, 100, f->sites[0], 7);
    builder_free(&f->builder, 0x1000, 9);
    assert_int_equal(
        seep_fold_shard(&f->builder.fold,
                        seep_view_shard_of(&f->builder.view, 0x1000),
                        UINT32_MAX),
        2);
    assert_int_equal(get(&site(f, 0)->allocated_bytes), 100);
    assert_int_equal(get(&site(f, 0)->freed_bytes), 100);
    assert_int_equal(get(&site(f, 0)->peak_bytes), 100);
    assert_int_equal(get(&site(f, 0)->event_count), 2);
    assert_int_equal(site(f, 0)->first_tick, 7);
    assert_int_equal(site(f, 0)->last_tick, 9);
    assert_false(is_live(f, 0x1000));
    assert_int_equal(counted(f, SEEP_COUNT_FOREIGN_FREES), 0);
}

/* Half of a batch is folded: the free of what is in it stands behind that. */
static void a_free_behind_the_limit_is_not_told_twice(void **state)
{
    struct fixture *f = *state;
    uint32_t shard = seep_view_shard_of(&f->builder.view, 0x1000);

    builder_alloc(&f->builder, 0x1000, 100, f->sites[0], 1);
    builder_alloc(&f->builder, 0x1100, 50, f->sites[0], 1);
    builder_free(&f->builder, 0x1000, 1);
    assert_int_equal(seep_fold_shard(&f->builder.fold, shard, 1), 1);
    assert_int_equal(get(&site(f, 0)->freed_bytes), 100);
    fold_all(f);
    assert_int_equal(get(&site(f, 0)->allocated_bytes), 150);
    assert_int_equal(get(&site(f, 0)->freed_bytes), 100);
    assert_int_equal(counted(f, SEEP_COUNT_FOREIGN_FREES), 0);
    assert_true(is_live(f, 0x1100));
}

static void blocks_that_are_young_together_are_a_peak(void **state)
{
    struct fixture *f = *state;

    for (uint64_t i = 0; i < 30; i++) {
        builder_alloc(&f->builder, 0x1000 + 16 * i, 100, f->sites[0], 1);
    }
    builder_alloc(&f->builder, 0x1800, 7, f->sites[0], 1);
    for (uint64_t i = 0; i < 30; i++) {
        builder_free(&f->builder, 0x1000 + 16 * i, 1);
    }
    builder_alloc(&f->builder, 0x1900, 7, f->sites[0], 1);
    fold_all(f);
    assert_int_equal(get(&site(f, 0)->peak_bytes), 30 * 100 + 7);
    assert_int_equal(seep_account_live_bytes(site(f, 0)), 14);
}

/* Two sites at one entry of those: what goes of the one is still there of the
 * other. */
static void a_young_block_of_another_site_is_not_in_the_peak(void **state)
{
    struct fixture *f = *state;

    builder_alloc(&f->builder, 0x1000, 100, f->sites[0], 1);
    builder_alloc(&f->builder, 0x1010, 50, f->sites[SEEP_FOLD_YOUNG_SITES], 1);
    builder_free(&f->builder, 0x1010, 1);
    builder_alloc(&f->builder, 0x1020, 7, f->sites[0], 1);
    builder_free(&f->builder, 0x1000, 1);
    fold_all(f);
    assert_int_equal(get(&site(f, 0)->peak_bytes), 107);
    assert_int_equal(get(&site(f, SEEP_FOLD_YOUNG_SITES)->peak_bytes), 50);
}

/* A coin decides first: of a byte under a mean of a GiB it says no. */
static void a_pair_that_is_too_dense_does_not_count(void **state)
{
    struct fixture *f = *state;

    builder_alloc(&f->builder, 0x1000, 1, f->sites[0], 1);
    builder_free(&f->builder, 0x1000, 1);
    seep_word_store(&f->builder.view.header->sample_log2, 30);
    fold_all(f);
    assert_int_equal(get(&site(f, 0)->event_count), 0);
    assert_int_equal(get(&site(f, 0)->allocated_bytes), 0);
    assert_int_equal(counted(f, SEEP_COUNT_FOREIGN_FREES), 1);
}

/* More call sites than the fold keeps apart: what is large counts in each. */
static void a_large_block_is_in_the_peak_of_any_site(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < SITES; i++) {
        builder_alloc(&f->builder, 0x1000 + 32 * i, 1 << 20, f->sites[i], 1);
        builder_alloc(&f->builder, 0x1010 + 32 * i, 1 << 20, f->sites[i], 1);
    }
    for (uint32_t i = 0; i < 2 * SITES; i++) {
        builder_free(&f->builder, 0x1000 + 16 * i, 1);
    }
    fold_all(f);
    for (uint32_t i = 0; i < SITES; i++) {
        assert_int_equal(get(&site(f, i)->peak_bytes), 2 << 20);
        assert_int_equal(seep_account_live_bytes(site(f, i)), 0);
    }
}

static void a_lost_free_before_a_pair_is_closed(void **state)
{
    struct fixture *f = *state;

    builder_alloc(&f->builder, 0x1000, 100, f->sites[0], 1);
    builder_alloc(&f->builder, 0x1000, 30, f->sites[1], 2);
    builder_free(&f->builder, 0x1000, 3);
    fold_all(f);
    assert_int_equal(seep_account_live_bytes(site(f, 0)), 0);
    assert_int_equal(seep_account_live_bytes(site(f, 1)), 0);
    assert_int_equal(counted(f, SEEP_COUNT_LOST_FREES_CLOSED), 1);
    assert_false(is_live(f, 0x1000));
}

static void a_realloc_that_fails_is_taken_back_in_one_batch(void **state)
{
    struct fixture *f = *state;

    builder_alloc(&f->builder, 0x1000, 100, f->sites[0], 1);
    builder_push(&f->builder, SEEP_EVENT_REALLOC_OUT, 0x1000, 0, 0, 1);
    builder_push(&f->builder, SEEP_EVENT_RESTORE, 0x1000, 0, 0, 1);
    fold_all(f);
    assert_int_equal(seep_account_live_bytes(site(f, 0)), 100);
    assert_true(is_live(f, 0x1000));
    builder_free(&f->builder, 0x1000, 2);
    fold_all(f);
    assert_int_equal(seep_account_live_bytes(site(f, 0)), 0);
}

/* Killed before .head moved: the slots are the next ones to fold, and free for
 * the next lap. What was told is not told again, alone or as one of a pair. */
static void what_the_dead_had_given_back_is_passed_over(void **state)
{
    struct fixture *f = *state;
    const struct seep_view *view = &f->builder.view;
    uint32_t shard = seep_view_shard_of(view, 0x1000);
    struct seep_rec_event *ring = seep_view_ring(view, shard);

    builder_alloc(&f->builder, 0x1000, 100, f->sites[0], 1);
    builder_alloc(&f->builder, 0x1010, 30, f->sites[0], 1);
    builder_free(&f->builder, 0x1000, 1);
    builder_free(&f->builder, 0x1010, 1);
    builder_alloc(&f->builder, 0x1020, 7, f->sites[0], 1);
    seep_word_store(&ring[0].state,
                    seep_view_state(view, view->ring_slots, SEEP_SLOT_FREE, 0));
    assert_int_equal(seep_fold_shard(&f->builder.fold, shard, UINT32_MAX), 4);
    assert_int_equal(get(&view->shards[shard].head), 5);
    assert_int_equal(get(&site(f, 0)->allocated_bytes), 37);
    assert_int_equal(get(&site(f, 0)->freed_bytes), 30);
    assert_int_equal(counted(f, SEEP_COUNT_FOREIGN_FREES), 1);
    assert_true(is_live(f, 0x1020));
}

static void a_pair_at_a_site_that_is_held_waits_whole(void **state)
{
    struct fixture *f = *state;
    _Atomic uint64_t *lock = &f->builder.view.sites[f->sites[0]].lock;

    builder_alloc(&f->builder, 0x1000, 100, f->sites[0], 1);
    builder_free(&f->builder, 0x1000, 1);
    assert_true(seep_fold_try_lock(lock, 2));
    fold_all(f);
    assert_int_equal(get(&site(f, 0)->allocated_bytes), 0);
    seep_fold_unlock(lock, 2);
    fold_all(f);
    assert_int_equal(get(&site(f, 0)->allocated_bytes), 100);
    assert_int_equal(get(&site(f, 0)->freed_bytes), 100);
    assert_int_equal(counted(f, SEEP_COUNT_FOREIGN_FREES), 0);
}

/*
 * Whatever comes, in batches and one by one it is the same.
 */

static uint64_t random_state;

static uint32_t pick(uint32_t most)
{
    random_state =
        random_state * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (uint32_t)(random_state >> 33) % most;
}

struct two {
    struct fixture *batches;
    struct fixture *single;
};

static void push(struct two *two, enum seep_event_kind kind, uint64_t address,
                 uint64_t size, uint32_t which, uint32_t tick)
{
    builder_push(&two->batches->builder, kind, address, size,
                 two->batches->sites[which], tick);
    builder_push(&two->single->builder, kind, address, size,
                 two->single->sites[which], tick);
    fold_all(two->single);
}

/* Of blocks at SLOTS addresses most are freed soon; some by a realloc, some by
 * one that fails, some free is lost. */
static void churn(struct two *two)
{
    bool alive[SLOTS] = {false};

    for (uint32_t i = 0; i < EVENTS; i++) {
        uint32_t slot = pick(4) != 0 ? i / 8 % SLOTS : pick(SLOTS);
        uint64_t address = 0x10000 + slot * 48;
        uint32_t tick = i / 16;
        uint32_t what = pick(40);

        if (!alive[slot] || what == 0) {
            push(two, SEEP_EVENT_ALLOC, address, 1 + pick(3000), pick(SITES),
                 tick);
            alive[slot] = true;
        } else if (what < 4) {
            push(two, SEEP_EVENT_REALLOC_OUT, address, 0, 0, tick);
            if (what == 1) {
                push(two, SEEP_EVENT_RESTORE, address, 0, 0, tick);
            } else {
                alive[slot] = false;
            }
        } else {
            push(two, SEEP_EVENT_FREE, address, 0, 0, tick);
            alive[slot] = false;
        }
    }
    fold_all(two->batches);
}

#define SAME(field) assert_int_equal(get(&a->field), get(&b->field))

static void assert_same_series(const struct two *two, uint32_t index)
{
    static struct seep_rec_series first;
    static struct seep_rec_series second;
    const struct seep_rec_series *s =
        builder_series(&two->batches->builder.view, index, &first);
    const struct seep_rec_series *t =
        builder_series(&two->single->builder.view, index, &second);

    assert_int_equal(s->width_log2, t->width_log2);
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        const struct seep_rec_bucket *a = &s->buckets[i];
        const struct seep_rec_bucket *b = &t->buckets[i];

        SAME(allocated_bytes);
        SAME(freed_bytes);
        SAME(born_count_q16);
        SAME(born_freed_bytes);
        SAME(born_freed_count_q16);
        SAME(died_bytes);
        SAME(died_count_q16);
        /* What was young when an old block went is not among it. */
        assert_true(get(&a->low_bytes) <= get(&b->low_bytes));
        assert_true(get(&a->low_bytes) + SLOTS * 3000 > get(&b->low_bytes));
    }
    assert_memory_equal(s->eras, t->eras, sizeof(s->eras));
}

static void assert_same(const struct two *two)
{
    for (uint32_t i = 0; i < SITES; i++) {
        const struct seep_rec_site *a = site(two->batches, i);
        const struct seep_rec_site *b = site(two->single, i);

        SAME(allocated_bytes);
        SAME(freed_bytes);
        SAME(allocated_count_q16);
        SAME(freed_count_q16);
        SAME(largest_bytes);
        SAME(event_count);
        assert_true(get(&a->peak_bytes) <= get(&b->peak_bytes));
        assert_int_equal(a->first_tick, b->first_tick);
        assert_int_equal(a->last_tick, b->last_tick);
        assert_same_series(two, two->batches->sites[i]);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        assert_int_equal(is_live(two->batches, 0x10000 + i * 48),
                         is_live(two->single, 0x10000 + i * 48));
    }
    assert_int_equal(counted(two->batches, SEEP_COUNT_FOREIGN_FREES),
                     counted(two->single, SEEP_COUNT_FOREIGN_FREES));
    assert_int_equal(counted(two->batches, SEEP_COUNT_LOST_FREES_CLOSED),
                     counted(two->single, SEEP_COUNT_LOST_FREES_CLOSED));
}

static void in_batches_it_is_as_one_by_one(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct two two = {make(1), make(1)};

        random_state = seed;
        churn(&two);
        assert_same(&two);
        release(two.batches);
        release(two.single);
    }
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_pair_is_told_and_is_never_live),
        WITH(a_free_behind_the_limit_is_not_told_twice),
        WITH(blocks_that_are_young_together_are_a_peak),
        WITH(a_young_block_of_another_site_is_not_in_the_peak),
        WITH(a_pair_that_is_too_dense_does_not_count),
        WITH(a_large_block_is_in_the_peak_of_any_site),
        WITH(a_lost_free_before_a_pair_is_closed),
        WITH(a_realloc_that_fails_is_taken_back_in_one_batch),
        WITH(what_the_dead_had_given_back_is_passed_over),
        WITH(a_pair_at_a_site_that_is_held_waits_whole),
        cmocka_unit_test(in_batches_it_is_as_one_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
