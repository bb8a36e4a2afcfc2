/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Eras: how a site stood at an edge, told from the recording as it is behind
 * it, against a plain list of blocks. Shards are folded when their rings are
 * full, so what happened on one side of an edge comes after the other.
 */
#include <math.h>
#include <stdlib.h>

#include "seep_test.h"

#include "format/account.h"
#include "format/fold.h"
#include "format/layout.h"
#include "format/series.h"
#include "recording_builder.h"

#define BLOCKS 60000U
#define SLOTS 2000U
#define NEVER UINT32_MAX

struct block {
    uint32_t born;
    uint32_t died;
    uint32_t size;
};

struct fixture {
    struct recording_builder builder;
    uint32_t site;
    struct block *blocks;
    uint32_t block_count;
    uint32_t at[SLOTS]; /* address -> block + 1 */
    uint64_t random;
    uint32_t tick;
};

static int set_up(void **state, uint64_t size, int exact)
{
    struct fixture *f = calloc(1, sizeof(*f));
    uint64_t frame = builder_frame(0, 0x1000);

    if (f == NULL) {
        return -1;
    }
    f->blocks = calloc(BLOCKS + 1, sizeof(*f->blocks));
    f->random = 1;
    f->tick = 1;
    builder_init(&f->builder, size, exact);
    f->site = builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                           SEEP_SPACE_HEAP);
    *state = f;
    return f->blocks != NULL ? 0 : -1;
}

static int set_up_exact(void **state)
{
    return set_up(state, UINT64_C(8) << 20, 1);
}

static int set_up_small(void **state)
{
    return set_up(state, SEEP_LAYOUT_LEAST_BYTES, 1);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    builder_fini(&f->builder);
    free(f->blocks);
    free(f);
    return 0;
}

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint32_t get32(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t pick(struct fixture *f, uint64_t below)
{
    f->random =
        f->random * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (f->random >> 33) % below;
}

static uint64_t address_of(uint32_t slot)
{
    return 0x100000 + (uint64_t)slot * 4096; /* each another shard */
}

static void set_final(struct fixture *f, uint32_t tick)
{
    atomic_store_explicit(&f->builder.view.header->final_tick, tick,
                          memory_order_relaxed);
}

/* Born or freed; at times it is a realloc that failed, and nothing was. */
static void step(struct fixture *f)
{
    uint32_t slot = (uint32_t)pick(f, SLOTS);
    uint64_t address = address_of(slot);
    uint32_t *at = &f->at[slot];

    if (*at == 0) {
        struct block *block = &f->blocks[f->block_count++];

        *block = (struct block){f->tick, NEVER, 16 + (uint32_t)pick(f, 500)};
        *at = f->block_count;
        builder_alloc(&f->builder, address, block->size, f->site, f->tick);
    } else if (pick(f, 8) == 0) {
        builder_push(&f->builder, SEEP_EVENT_REALLOC_OUT, address, 0, 0,
                     f->tick);
        builder_push(&f->builder, SEEP_EVENT_RESTORE, address, 0, 0, f->tick);
    } else {
        f->blocks[*at - 1].died = f->tick;
        *at = 0;
        builder_free(&f->builder, address, f->tick);
    }
}

static void run_until(struct fixture *f, uint32_t end, uint32_t step_ticks)
{
    while (f->tick < end && f->block_count < BLOCKS) {
        step(f);
        f->tick += (uint32_t)pick(f, step_ticks + 1);
    }
}

static void free_all(struct fixture *f)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (f->at[i] != 0) {
            f->blocks[f->at[i] - 1].died = f->tick;
            f->at[i] = 0;
            builder_free(&f->builder, address_of(i), f->tick);
        }
    }
}

static const struct seep_rec_series *series_of(struct fixture *f)
{
    static struct seep_rec_series scratch;
    const struct seep_rec_series *series =
        builder_series(&f->builder.view, f->site, &scratch);

    assert_non_null(series);
    return series;
}

/* What the series says died at @edge or later, of those born before. */
static void died_since(const struct seep_rec_series *series, uint32_t edge,
                       double *ret_bytes, double *ret_blocks)
{
    for (uint32_t era = 0; era < SEEP_ERAS_KEPT; era++) {
        if (get32(&series->era_edges[era]) < edge) {
            continue;
        }
        for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
            struct seep_series_died died =
                seep_series_died(get(&series->eras[era].died[i]));

            ret_bytes[i] += (double)died.bytes;
            ret_blocks[i] += (double)died.blocks;
        }
    }
}

static void assert_deaths_since(struct fixture *f, uint32_t edge)
{
    const struct seep_rec_series *series = series_of(f);
    uint32_t width = get32(&series->width_log2);
    double bytes[SEEP_BUCKET_COUNT] = {0};
    double blocks[SEEP_BUCKET_COUNT] = {0};
    double true_bytes[SEEP_BUCKET_COUNT] = {0};
    double true_blocks[SEEP_BUCKET_COUNT] = {0};

    died_since(series, edge, bytes, blocks);
    for (uint32_t i = 0; i < f->block_count; i++) {
        const struct block *block = &f->blocks[i];

        if (block->born < edge && block->died >= edge && block->died != NEVER) {
            true_bytes[block->born >> width] += block->size;
            true_blocks[block->born >> width] += 1;
        }
    }
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT && i << width < edge; i++) {
        assert_true(bytes[i] == true_bytes[i]);
        assert_true(blocks[i] == true_blocks[i]);
    }
}

/* The site's own copy of its totals at the edge. */
static void assert_totals_at_its_edge(struct fixture *f)
{
    const struct seep_rec_site *site = &f->builder.view.sites[f->site];
    uint32_t edge = get32(&site->edge_tick);
    uint64_t allocated = 0;
    uint64_t freed = 0;
    uint64_t live = 0;

    for (uint32_t i = 0; i < f->block_count; i++) {
        const struct block *block = &f->blocks[i];

        if (block->born < edge) {
            bool gone = block->died < edge;

            allocated += block->size;
            freed += gone ? block->size : 0;
            live += gone ? 0 : SEEP_COUNT_ONE;
        }
    }
    assert_int_equal(get(&site->edge_allocated_bytes), allocated);
    assert_int_equal(get(&site->edge_freed_bytes), freed);
    assert_int_equal(get(&site->edge_live_count_q16), live);
}

static void an_edge_is_every_eighth_bucket_of_the_narrowest_width(void **state)
{
    (void)state;
    for (uint64_t tick = 0; tick < UINT32_MAX; tick += 1 + tick / 97) {
        uint32_t width = seep_series_width_for(tick);
        uint32_t edge = seep_series_edge((uint32_t)tick, 0);

        assert_int_equal(edge, tick >> width >> 3 << 3 << width);
        assert_int_equal(seep_series_edge(edge, 0), edge);
    }
}

static void behind_the_final_moment_is_no_other_edge(void **state)
{
    (void)state;
    assert_int_equal(seep_series_edge(1000, 1001), seep_series_edge(1000, 0));
    assert_int_equal(seep_series_edge(1001, 1001), 1001);
    assert_int_equal(seep_series_edge(900000, 1001), 1001);
}

static void what_died_in_the_last_three_eras_is_known(void **state)
{
    struct fixture *f = *state;
    /* Ends in all sorts of places of an era, over five widths. */
    static const uint32_t ends[] = {130,   700,   1023,  1024,  1025,
                                    2300,  5000,  9990,  16384, 17000,
                                    40000, 65535, 65537, 90000};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        uint32_t edge;

        run_until(f, ends[i], 8);
        builder_fold(&f->builder);
        edge = seep_series_edge(f->tick - 1, 0);
        assert_deaths_since(f, edge);
        for (uint32_t back = 1; back < SEEP_ERAS_KEPT && edge != 0; back++) {
            edge = seep_series_edge(edge - 1, 0);
            assert_deaths_since(f, edge);
        }
        assert_totals_at_its_edge(f);
    }
}

static void a_site_that_frees_all_at_its_end_is_known_before_it(void **state)
{
    struct fixture *f = *state;
    uint32_t edge;

    run_until(f, 30000, 8);
    free_all(f);
    builder_fold(&f->builder);

    edge = seep_series_edge(f->tick, 0);
    assert_int_equal(seep_account_live_bytes(&f->builder.view.sites[f->site]),
                     0);
    assert_deaths_since(f, edge);
    assert_totals_at_its_edge(f);
    assert_true(get(&f->builder.view.sites[f->site].edge_live_count_q16) >
                SLOTS / 4 * SEEP_COUNT_ONE);
}

static void a_long_end_behind_exit_keeps_the_moment_of_exit(void **state)
{
    struct fixture *f = *state;
    uint32_t final;
    uint32_t edge;

    run_until(f, 30000, 8);
    final = f->tick;
    set_final(f, final);
    run_until(f, 44000, 8); /* three regular eras */
    free_all(f);
    builder_fold(&f->builder);

    edge = seep_series_edge(final - 1, 0);
    assert_deaths_since(f, final);
    assert_deaths_since(f, edge);
    assert_deaths_since(f, seep_series_edge(edge - 1, 0));
    assert_int_equal(get32(&f->builder.view.sites[f->site].edge_tick), final);
    assert_totals_at_its_edge(f);
}

/* Thinning changes what blocks weigh, of the living: who lived at an edge and
 * who died since must go on adding up to what stood there. */
static void thinning_keeps_an_edge_consistent(void **state)
{
    struct fixture *f = *state;
    const struct seep_rec_site *site = &f->builder.view.sites[f->site];
    uint32_t thinned = 0;

    for (uint32_t i = 0; i < 40000; i++) {
        double bytes[SEEP_BUCKET_COUNT] = {0};
        double blocks[SEEP_BUCKET_COUNT] = {0};
        double sum = 0;
        double stood;
        uint32_t edge;

        builder_alloc(&f->builder, address_of(i), 100, f->site, f->tick);
        if (i % 4 == 3) {
            builder_free(&f->builder, address_of(i - (uint32_t)pick(f, i)),
                         f->tick);
        }
        f->tick += i % 8 == 0;
        builder_fold(&f->builder);
        if (i % 97 != 0 || i == 0) {
            continue;
        }
        edge = get32(&site->edge_tick);
        died_since(series_of(f), edge, bytes, blocks);
        for (uint32_t b = 0; b << get32(&series_of(f)->width_log2) < edge;
             b++) {
            const struct seep_rec_bucket *bucket = &series_of(f)->buckets[b];

            sum += bytes[b] + (double)(get(&bucket->allocated_bytes) -
                                       get(&bucket->born_freed_bytes));
        }
        stood = (double)(get(&site->edge_allocated_bytes) -
                         get(&site->edge_freed_bytes));
        assert_true(fabs(sum - stood) <= 1 + sum * 1e-5);
        thinned = get32(&f->builder.view.header->sample_log2);
    }
    assert_true(thinned > 0);
}

/* The part of a mapping that is unmapped has bytes and is no block. */
static void a_piece_of_a_mapping_counts_without_a_block(void **state)
{
    struct fixture *f = *state;
    const struct seep_rec_series *series;
    struct seep_series_died died;

    builder_push(&f->builder, SEEP_EVENT_MAP, UINT64_C(1) << 40, 65536, f->site,
                 10);
    builder_push(&f->builder, SEEP_EVENT_UNMAP, (UINT64_C(1) << 40) + 4096,
                 8192, 0, 200);
    builder_fold(&f->builder);

    series = series_of(f);
    assert_int_equal(get32(&series->era_edges[0]), 128);
    died = seep_series_died(get(&series->eras[0].died[0]));
    assert_true(died.bytes == 8192);
    assert_true(died.blocks == 0);
}

#define TEST(name, fixture) \
    cmocka_unit_test_setup_teardown(name, fixture, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edge_is_every_eighth_bucket_of_the_narrowest_width),
        cmocka_unit_test(behind_the_final_moment_is_no_other_edge),
        TEST(what_died_in_the_last_three_eras_is_known, set_up_exact),
        TEST(a_site_that_frees_all_at_its_end_is_known_before_it, set_up_exact),
        TEST(a_long_end_behind_exit_keeps_the_moment_of_exit, set_up_exact),
        TEST(thinning_keeps_an_edge_consistent, set_up_small),
        TEST(a_piece_of_a_mapping_counts_without_a_block, set_up_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
