/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fold: events in, totals, cohorts and live table out.
 *
 * What these tests cannot catch: races between folders (test_ring.c and the
 * integration tests), and what the kernel leaves of a killed one
 * (tests/integration/test_kill.py).
 */
#include <math.h>
#include <stdlib.h>

#include "seep_test.h"

#include "format/account.h"
#include "format/fold.h"
#include "format/layout.h"
#include "format/live.h"
#include "format/series.h"
#include "recording_builder.h"

#define PAGE UINT64_C(4096)

struct fixture {
    struct recording_builder builder;
    uint32_t site;
    uint32_t other;
};

static int set_up(void **state, uint64_t size, int exact)
{
    struct fixture *f = calloc(1, sizeof(*f));
    uint64_t frame[1];

    if (f == NULL) {
        return -1;
    }
    builder_init(&f->builder, size, exact);
    frame[0] = builder_frame(0, 0x1000);
    f->site = builder_site(&f->builder, builder_stack(&f->builder, frame, 1),
                           SEEP_SPACE_HEAP);
    frame[0] = builder_frame(0, 0x2000);
    f->other = builder_site(&f->builder, builder_stack(&f->builder, frame, 1),
                            SEEP_SPACE_MAPPED);
    *state = f;
    return 0;
}

static int set_up_exact(void **state)
{
    return set_up(state, UINT64_C(8) << 20, 1);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    builder_fini(&f->builder);
    free(f);
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

static void range(struct fixture *f, enum seep_event_kind kind,
                  uint64_t address, uint64_t size)
{
    builder_push(&f->builder, kind, address, size, f->other, 20);
}

static const struct seep_rec_site *site(struct fixture *f)
{
    fold_all(f);
    return &f->builder.view.sites[f->site];
}

static const struct seep_rec_site *mapped(struct fixture *f)
{
    fold_all(f);
    return &f->builder.view.sites[f->other];
}

static uint64_t live_count(const struct seep_rec_site *s)
{
    return (get(&s->allocated_count_q16) - get(&s->freed_count_q16)) >> 16;
}

/* allocated - freed = live for the site's series and each of its cohorts. */
static void assert_cohorts_agree(struct fixture *f, uint32_t index)
{
    const struct seep_view *view = &f->builder.view;
    const struct seep_rec_site *s = &view->sites[index];
    static struct seep_rec_series scratch;
    const struct seep_rec_series *series =
        builder_series(view, index, &scratch);
    uint32_t width =
        atomic_load_explicit(&series->width_log2, memory_order_relaxed);
    uint64_t live[SEEP_BUCKET_COUNT] = {0};
    uint64_t sum = get(&series->base_bytes);

    for (uint32_t shard = 0; shard < view->shard_count; shard++) {
        struct seep_live table;

        assert_true(seep_live_init(&table, view, shard));
        for (uint32_t i = 0; i <= table.mask; i++) {
            struct seep_block block = seep_live_get(&table, i);

            if (block.address != 0 && block.site == index) {
                live[block.birth_tick >> width] +=
                    seep_account_weight(&block).bytes;
            }
        }
    }
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        const struct seep_rec_bucket *b = &series->buckets[i];

        assert_int_equal(get(&b->allocated_bytes) - get(&b->born_freed_bytes),
                         live[i]);
        sum += get(&b->allocated_bytes) - get(&b->freed_bytes);
    }
    assert_int_equal(sum, seep_account_live_bytes(s));
}

static void a_freed_block_is_not_live(void **state)
{
    struct fixture *f = *state;

    builder_alloc(&f->builder, 0x1000, 100, f->site, 1);
    builder_alloc(&f->builder, 0x2000, 50, f->site, 2);
    builder_free(&f->builder, 0x1000, 3);

    assert_int_equal(get(&site(f)->allocated_bytes), 150);
    assert_int_equal(get(&site(f)->freed_bytes), 100);
    assert_int_equal(live_count(site(f)), 1);
    assert_cohorts_agree(f, f->site);
}

static void a_free_of_an_unknown_block_is_foreign(void **state)
{
    struct fixture *f = *state;

    builder_free(&f->builder, 0x9000, 3);
    fold_all(f);

    assert_int_equal(get(&f->builder.view.counters[SEEP_COUNT_FOREIGN_FREES]),
                     1);
}

/* Its free was lost: the allocator would not give out a live block. */
static void an_allocation_at_a_live_address_closes_the_old_block(void **state)
{
    struct fixture *f = *state;

    builder_alloc(&f->builder, 0x1000, 100, f->site, 1);
    builder_alloc(&f->builder, 0x1000, 30, f->site, 2);

    assert_int_equal(seep_account_live_bytes(site(f)), 30);
    assert_int_equal(live_count(site(f)), 1);
    assert_int_equal(
        get(&f->builder.view.counters[SEEP_COUNT_LOST_FREES_CLOSED]), 1);
}

static void a_failed_realloc_leaves_everything_as_it_was(void **state)
{
    struct fixture *f = *state;

    builder_alloc(&f->builder, 0x1000, 100, f->site, 1);
    builder_push(&f->builder, SEEP_EVENT_REALLOC_OUT, 0x1000, 0, 0, 40);
    assert_int_equal(seep_account_live_bytes(site(f)), 0);
    builder_push(&f->builder, SEEP_EVENT_RESTORE, 0x1000, 0, 0, 40);

    assert_int_equal(seep_account_live_bytes(site(f)), 100);
    assert_int_equal(get(&site(f)->freed_bytes), 0);
    assert_cohorts_agree(f, f->site);
    builder_free(&f->builder, 0x1000, 50);
    assert_int_equal(seep_account_live_bytes(site(f)), 0);
}

/* In place at the same address, then one that fails: only the second block
 * may come back. */
static void only_the_last_realloc_is_taken_back(void **state)
{
    struct fixture *f = *state;

    builder_alloc(&f->builder, 0x1000, 100, f->site, 1);
    builder_push(&f->builder, SEEP_EVENT_REALLOC_OUT, 0x1000, 0, 0, 40);
    builder_alloc(&f->builder, 0x1000, 30, f->site, 40);
    builder_push(&f->builder, SEEP_EVENT_REALLOC_OUT, 0x1000, 0, 0, 41);
    builder_push(&f->builder, SEEP_EVENT_RESTORE, 0x1000, 0, 0, 41);

    assert_int_equal(seep_account_live_bytes(site(f)), 30);
    assert_int_equal(live_count(site(f)), 1);
    assert_cohorts_agree(f, f->site);
}

static void munmap_may_take_the_head_the_tail_and_the_middle(void **state)
{
    struct fixture *f = *state;

    range(f, SEEP_EVENT_MAP, 0x100000, 16 * PAGE);
    range(f, SEEP_EVENT_UNMAP, 0x100000, 2 * PAGE);
    assert_int_equal(seep_account_live_bytes(mapped(f)), 14 * PAGE);
    range(f, SEEP_EVENT_UNMAP, 0x100000 + 14 * PAGE, 2 * PAGE);
    assert_int_equal(seep_account_live_bytes(mapped(f)), 12 * PAGE);
    range(f, SEEP_EVENT_UNMAP, 0x100000 + 6 * PAGE, PAGE);
    assert_int_equal(seep_account_live_bytes(mapped(f)), 11 * PAGE);
    assert_int_equal(live_count(mapped(f)), 1);
    assert_cohorts_agree(f, f->other);

    range(f, SEEP_EVENT_UNMAP, 0x100000, 16 * PAGE);
    assert_int_equal(seep_account_live_bytes(mapped(f)), 0);
    assert_int_equal(live_count(mapped(f)), 0);
    assert_cohorts_agree(f, f->other);
}

static void one_munmap_may_end_several_mappings(void **state)
{
    struct fixture *f = *state;

    for (uint64_t i = 0; i < 8; i++) {
        range(f, SEEP_EVENT_MAP, 0x100000 + i * 4 * PAGE, 4 * PAGE);
    }
    range(f, SEEP_EVENT_UNMAP, 0x100000 + 2 * PAGE, 26 * PAGE);

    assert_int_equal(seep_account_live_bytes(mapped(f)), 6 * PAGE);
    assert_int_equal(live_count(mapped(f)), 2);
    assert_cohorts_agree(f, f->other);
}

/* MAP_FIXED: the pages are of the one or of the other. */
static void a_file_takes_the_pages_that_it_is_mapped_over(void **state)
{
    struct fixture *f = *state;
    uint64_t frame = builder_frame(0, 0x3000);
    uint32_t file = builder_site(
        &f->builder, builder_stack(&f->builder, &frame, 1), SEEP_SPACE_FILE);
    const struct seep_rec_site *of_file = &f->builder.view.sites[file];

    range(f, SEEP_EVENT_MAP, 0x100000, 16 * PAGE);
    range(f, SEEP_EVENT_UNMAP, 0x100000 + 4 * PAGE, 4 * PAGE);
    builder_push(&f->builder, SEEP_EVENT_MAP, 0x100000 + 4 * PAGE, 4 * PAGE,
                 file, 20);
    assert_int_equal(seep_account_live_bytes(mapped(f)), 12 * PAGE);
    assert_int_equal(seep_account_live_bytes(of_file), 4 * PAGE);

    /* A munmap over the end of the one and the head of the other, that fails */
    range(f, SEEP_EVENT_REMAP_OUT, 0x100000 + 2 * PAGE, 4 * PAGE);
    assert_int_equal(seep_account_live_bytes(mapped(f)), 10 * PAGE);
    assert_int_equal(seep_account_live_bytes(of_file), 2 * PAGE);
    range(f, SEEP_EVENT_RESTORE, 0x100000 + 2 * PAGE, PAGE);
    assert_int_equal(seep_account_live_bytes(mapped(f)), 12 * PAGE);
    assert_int_equal(seep_account_live_bytes(of_file), 4 * PAGE);
    assert_cohorts_agree(f, file);

    range(f, SEEP_EVENT_UNMAP, 0x100000, 16 * PAGE);
    assert_int_equal(seep_account_live_bytes(mapped(f)), 0);
    assert_int_equal(seep_account_live_bytes(of_file), 0);
    assert_int_equal(live_count(of_file), 0);
    assert_cohorts_agree(f, f->other);
    assert_cohorts_agree(f, file);
}

/* Else it would be live for ever, whoever unmaps it. */
static void a_piece_that_finds_no_room_is_not_live(void **state)
{
    struct fixture *f = *state;
    const _Atomic uint64_t *full =
        &f->builder.view.counters[SEEP_COUNT_RANGES_FULL];
    uint64_t count = 0;

    for (; get(full) == 0; count++) {
        range(f, SEEP_EVENT_MAP, (count + 1) << 20, 16 * PAGE);
        fold_all(f);
    }
    for (uint64_t i = 0; i < count; i++) {
        range(f, SEEP_EVENT_UNMAP, ((i + 1) << 20) + 4 * PAGE, 4 * PAGE);
        fold_all(f);
    }
    assert_int_equal(seep_account_live_bytes(mapped(f)),
                     (count - 1) * 4 * PAGE);
    for (uint64_t i = 0; i < count; i++) {
        range(f, SEEP_EVENT_UNMAP, (i + 1) << 20, 16 * PAGE);
        fold_all(f);
    }
    assert_int_equal(seep_account_live_bytes(mapped(f)), 0);
    assert_int_equal(live_count(mapped(f)), 0);
    assert_cohorts_agree(f, f->other);
}

static void a_failed_munmap_is_taken_back(void **state)
{
    struct fixture *f = *state;

    range(f, SEEP_EVENT_MAP, 0x100000, 16 * PAGE);
    range(f, SEEP_EVENT_REMAP_OUT, 0x100000 + 4 * PAGE, 4 * PAGE);
    assert_int_equal(seep_account_live_bytes(mapped(f)), 12 * PAGE);
    range(f, SEEP_EVENT_RESTORE, 0x100000 + 4 * PAGE, PAGE);

    assert_int_equal(seep_account_live_bytes(mapped(f)), 16 * PAGE);
    assert_cohorts_agree(f, f->other);
}

/* Random churn against a plain array of what is live. */
static void churn_leaves_what_a_plain_table_says(void **state)
{
    struct fixture *f = *state;
    uint64_t sizes[4096] = {0};
    uint64_t live = 0;
    uint64_t random = 1;

    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t slot;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
        slot = (uint32_t)(random >> 52);
        if (sizes[slot] != 0) {
            builder_free(&f->builder, 0x10000 + slot * 16, i / 64);
            live -= sizes[slot];
            sizes[slot] = 0;
        } else {
            sizes[slot] = 1 + (random >> 40) % 1000;
            live += sizes[slot];
            builder_alloc(&f->builder, 0x10000 + slot * 16, sizes[slot],
                          f->site, i / 64);
        }
    }

    assert_int_equal(seep_account_live_bytes(site(f)), live);
    assert_cohorts_agree(f, f->site);
    assert_int_equal(get(&f->builder.view.counters[SEEP_COUNT_FOREIGN_FREES]),
                     0);
    assert_int_equal(
        get(&f->builder.view.counters[SEEP_COUNT_LOST_FREES_CLOSED]), 0);
}

static void a_long_run_stays_on_the_grid(void **state)
{
    struct fixture *f = *state;

    for (uint32_t tick = 0; tick < 3000000; tick += 997) {
        builder_alloc(&f->builder, 0x10000 + (uint64_t)tick * 16, 10, f->site,
                      tick);
        if (tick >= 997 * 100) {
            builder_free(&f->builder,
                         0x10000 + (uint64_t)(tick - 997 * 100) * 16, tick);
        }
    }

    assert_int_equal(seep_account_live_bytes(site(f)), 1000);
    assert_cohorts_agree(f, f->site);
}

/* A series that begins late has what was there in its base: when that goes,
 * also what was born in the very same tick, no cohort must lose it. */
static void what_is_in_the_base_is_in_no_cohort(void **state)
{
    struct seep_rec_series series = {0};
    struct seep_weight weight = {70, SEEP_COUNT_ONE};

    (void)state;
    seep_series_start(&series, 1, 5, 70);
    seep_series_freed(&series, (struct seep_series_moment){9, 0}, 5, 70,
                      weight);

    assert_int_equal(get(&series.buckets[0].born_freed_bytes), 0);
    assert_int_equal(get(&series.buckets[0].freed_bytes), 70);
}

/* The table is far too small for what lives: it must be thinned again and
 * again, and every estimate stay within its own error. */
static void thinning_keeps_memory_fixed_and_totals_unbiased(void **state)
{
    struct fixture *f = *state;
    uint64_t truth = 0;
    double variance = 0.0;
    double estimate;

    for (uint64_t i = 0; i < 400000; i++) {
        uint64_t size = 16 + i * 7919 % 3000;

        builder_alloc(&f->builder, 0x100000 + i * 4096, size, f->site,
                      (uint32_t)(i / 100));
        if (i % 3 == 0) {
            builder_free(&f->builder, 0x100000 + i * 4096, (uint32_t)(i / 100));
        } else {
            truth += size;
        }
    }
    estimate = (double)seep_account_live_bytes(site(f));
    for (uint32_t shard = 0; shard + 1 < f->builder.view.shard_count; shard++) {
        struct seep_live table;

        assert_true(seep_live_init(&table, &f->builder.view, shard));
        for (uint32_t i = 0; i <= table.mask; i++) {
            struct seep_block block = seep_live_get(&table, i);
            double p;
            double weight;

            if (block.address != 0) {
                p = seep_weight_probability(block.size, block.sample_log2);
                weight = (double)block.size / p;
                variance += weight * weight * (1.0 - p);
            }
        }
    }

    assert_true(get(&f->builder.view.counters[SEEP_COUNT_THINNINGS]) >= 4);
    assert_int_equal(get(&f->builder.view.counters[SEEP_COUNT_LIVE_FULL]), 0);
    assert_true(fabs(estimate - (double)truth) < 4.0 * sqrt(variance));
    assert_cohorts_agree(f, f->site);
}

/* A part of the table at a time, as a hook may wait for it. */
static void thinning_goes_on_where_it_ended(void **state)
{
    struct fixture *f = *state;
    struct seep_live table;
    uint32_t folds = 0;

    for (uint64_t i = 0; i < 40000; i++) {
        builder_alloc(&f->builder, 0x100000 + i * 4096, 1 << 20, f->site, 1);
    }
    fold_all(f);
    assert_true(seep_live_init(&table, &f->builder.view, 0));
    assert_int_equal(seep_word_load(&table.shard->thin_level), 0);
    seep_word_store(&f->builder.view.header->sample_log2, 3);
    while (folds < 20 && seep_word_load(&table.shard->thin_level) != 3) {
        seep_fold_shard(&f->builder.fold, 0, UINT32_MAX);
        folds++;
    }
    assert_true(folds > 4 && folds < 20);
    for (uint32_t i = 0; i <= table.mask; i++) {
        struct seep_block block = seep_live_get(&table, i);

        assert_true(block.address == 0 || block.sample_log2 == 3);
    }
}

static int set_up_small(void **state)
{
    return set_up(state, SEEP_LAYOUT_LEAST_BYTES, 1);
}

/* A folder that was killed in the middle of a shift leaves a block twice. */
static void an_interrupted_move_is_completed(void **state)
{
    struct fixture *f = *state;
    struct seep_live table;
    uint32_t from = SEEP_LIVE_NONE;
    uint64_t before;
    uint64_t after = 0;

    for (uint64_t i = 0; i < 30000; i++) {
        builder_alloc(&f->builder, 0x100000 + i * 32, 10, f->site, 1);
    }
    fold_all(f);
    assert_true(seep_live_init(&table, &f->builder.view, 0));
    for (uint32_t i = 0; i < table.mask && from == SEEP_LIVE_NONE; i++) {
        if (seep_live_get(&table, i).address != 0 &&
            seep_live_get(&table, i + 1).address != 0 &&
            seep_live_find(&table, seep_live_get(&table, i + 1).address) ==
                i + 1) {
            from = i;
        }
    }
    assert_int_not_equal(from, SEEP_LIVE_NONE);
    before = get(&table.shard->live_count);
    /* The hole at .from was about to be filled with its neighbour. */
    atomic_store_explicit(&table.shard->move,
                          ((uint64_t)from + 2) << 32 | (from + 1),
                          memory_order_relaxed);
    seep_fold_repair_shard(&f->builder.fold, 0);

    for (uint32_t i = 0; i <= table.mask; i++) {
        struct seep_block block = seep_live_get(&table, i);

        after += block.address != 0;
        assert_true(block.address == 0 ||
                    seep_live_find(&table, block.address) == i);
    }
    assert_int_equal(get(&table.shard->move), 0);
    assert_int_equal(after, before - 1);
}

/* The same of a mapping: the munmap of an end must find even the last one. */
static void a_count_left_too_low_hides_no_mapping(void **state)
{
    struct fixture *f = *state;
    uint32_t shard = f->builder.view.shard_count - 1;
    struct seep_rec_shard *header = &f->builder.view.shards[shard];

    for (uint64_t i = 0; i < 8; i++) {
        range(f, SEEP_EVENT_MAP, 0x100000 + i * 4 * PAGE, 4 * PAGE);
    }
    atomic_store_explicit(&header->live_count, 7, memory_order_relaxed);
    seep_fold_repair_shard(&f->builder.fold, shard);
    for (uint64_t i = 0; i < 8; i++) {
        range(f, SEEP_EVENT_UNMAP, 0x100000 + (i * 4 + 3) * PAGE, PAGE);
    }

    assert_int_equal(seep_account_live_bytes(mapped(f)), 8 * 3 * PAGE);
    assert_int_equal(get(&header->live_count), 8);
}

/* A thread that jumped out of a fold had put the entry in, and not counted. */
static void a_count_left_too_low_does_not_wrap(void **state)
{
    struct fixture *f = *state;
    struct seep_live table;
    struct seep_block block = {.address = 0x1000, .size = 10, .site = f->site};

    assert_true(seep_live_init(&table, &f->builder.view, 0));
    assert_true(seep_live_insert(&table, &block));
    atomic_store_explicit(&table.shard->live_count, 0, memory_order_relaxed);
    atomic_store_explicit(&table.shard->live_bytes, 0, memory_order_relaxed);
    seep_live_remove(&table, seep_live_find(&table, block.address));
    assert_int_equal(get(&table.shard->live_count), 0);
    assert_int_equal(get(&table.shard->live_bytes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define EXACT(test) \
    cmocka_unit_test_setup_teardown(test, set_up_exact, tear_down)
        EXACT(a_freed_block_is_not_live),
        EXACT(a_free_of_an_unknown_block_is_foreign),
        EXACT(an_allocation_at_a_live_address_closes_the_old_block),
        EXACT(a_failed_realloc_leaves_everything_as_it_was),
        EXACT(only_the_last_realloc_is_taken_back),
        EXACT(munmap_may_take_the_head_the_tail_and_the_middle),
        EXACT(one_munmap_may_end_several_mappings),
        EXACT(a_piece_that_finds_no_room_is_not_live),
        EXACT(a_file_takes_the_pages_that_it_is_mapped_over),
        EXACT(a_failed_munmap_is_taken_back),
        EXACT(churn_leaves_what_a_plain_table_says),
        EXACT(a_long_run_stays_on_the_grid),
        EXACT(what_is_in_the_base_is_in_no_cohort),
        cmocka_unit_test_setup_teardown(
            thinning_keeps_memory_fixed_and_totals_unbiased, set_up_small,
            tear_down),
        EXACT(thinning_goes_on_where_it_ended),
        EXACT(an_interrupted_move_is_completed),
        EXACT(a_count_left_too_low_hides_no_mapping),
        EXACT(a_count_left_too_low_does_not_wrap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
