/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Deaths by age: the buckets of a series against a plain list of who died.
 *
 * The list takes weight and birth from the live table just before the event,
 * so that these tests hold the ages alone: test_fold.c holds the table.
 */
#include <stdlib.h>

#include "seep_test.h"

#include "format/account.h"
#include "format/fold.h"
#include "format/layout.h"
#include "format/live.h"
#include "format/series.h"
#include "recording_builder.h"

#define PAGE UINT64_C(4096)
#define SLOTS 512U
#define RANGES (UINT64_C(1) << 40)
#define RANGE_PAGES 64U

struct death {
    uint32_t site;
    uint32_t age_ticks;
    struct seep_weight weight;
};

struct fixture {
    struct recording_builder builder;
    uint32_t sites[3]; /* the last is of ranges */
    struct death *deaths;
    size_t death_count;
    size_t last_count; /* of them from the last event */
    uint32_t tick;
    uint64_t random;
};

static int set_up(void **state, uint64_t size, int exact)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        return -1;
    }
    f->deaths = calloc(1 << 20, sizeof(*f->deaths));
    f->random = 1;
    builder_init(&f->builder, size, exact);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t frame = builder_frame(0, 0x1000 * (i + 1));

        f->sites[i] =
            builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                         i < 2 ? SEEP_SPACE_HEAP : SEEP_SPACE_MAPPED);
    }
    *state = f;
    return 0;
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
    free(f->deaths);
    free(f);
    return 0;
}

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static const struct seep_rec_series *series_of(struct fixture *f, uint32_t site)
{
    static struct seep_rec_series scratch;

    return builder_series(&f->builder.view, site, &scratch);
}

static void push(struct fixture *f, enum seep_event_kind kind, uint64_t address,
                 uint64_t size, uint32_t site)
{
    builder_push(&f->builder, kind, address, size, site, f->tick);
    builder_fold(&f->builder);
}

/* Who dies should [start, end) of @shard go. */
static void doom(struct fixture *f, uint32_t shard, uint64_t start,
                 uint64_t end)
{
    struct seep_live table;

    assert_true(seep_live_init(&table, &f->builder.view, shard));
    for (uint32_t i = 0; i <= table.mask; i++) {
        struct seep_block block = seep_live_get(&table, i);
        bool range = shard + 1 == f->builder.view.shard_count;
        uint64_t block_end = block.address + (range ? block.size : 1);
        struct death *death = &f->deaths[f->death_count];
        uint64_t from = start > block.address ? start : block.address;
        uint64_t to = end < block_end ? end : block_end;

        if (block.address == 0 || from >= to) {
            continue;
        }
        death->site = block.site;
        death->age_ticks = f->tick - block.birth_tick;
        death->weight = seep_account_weight(&block);
        if (to - from < block_end - block.address) {
            death->weight = (struct seep_weight){to - from, 0};
        }
        f->death_count++;
        f->last_count++;
    }
}

/* Push what takes [address, address + size) out, or one block if size is 0. */
static void take_out(struct fixture *f, enum seep_event_kind kind,
                     uint64_t address, uint64_t size)
{
    const struct seep_view *view = &f->builder.view;
    bool range = kind >= SEEP_EVENT_MAP;
    size_t kept;

    f->last_count = 0;
    doom(f, range ? view->shard_count - 1 : seep_view_shard_of(view, address),
         address, address + (range ? size : 1));
    push(f, kind, address, size, range ? f->sites[2] : f->sites[0]);
    kept = f->death_count - f->last_count;
    for (size_t i = kept; i < f->death_count; i++) {
        if (series_of(f, f->deaths[i].site) != NULL) {
            f->deaths[kept++] = f->deaths[i]; /* a series saw it */
        }
    }
    f->last_count -= f->death_count - kept;
    f->death_count = kept;
}

static void restore(struct fixture *f, uint64_t address, uint64_t size)
{
    push(f, SEEP_EVENT_RESTORE, address, size, f->sites[0]);
    f->death_count -= f->last_count;
    f->last_count = 0;
}

static void assert_deaths_agree(struct fixture *f)
{
    for (uint32_t s = 0; s < 3; s++) {
        const struct seep_rec_series *series = series_of(f, f->sites[s]);
        uint64_t bytes[SEEP_BUCKET_COUNT] = {0};
        uint64_t counts[SEEP_BUCKET_COUNT] = {0};
        uint64_t sum;

        if (series == NULL) {
            continue;
        }
        sum = get(&series->base_bytes);
        for (size_t i = 0; i < f->death_count; i++) {
            const struct death *death = &f->deaths[i];
            uint32_t age =
                death->age_ticks >>
                atomic_load_explicit(&series->width_log2, memory_order_relaxed);

            if (death->site == f->sites[s]) {
                bytes[age] += death->weight.bytes;
                counts[age] += death->weight.count_q16;
            }
        }
        for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
            const struct seep_rec_bucket *bucket = &series->buckets[i];

            assert_int_equal(get(&bucket->died_bytes), bytes[i]);
            assert_int_equal(get(&bucket->died_count_q16), counts[i]);
            sum += get(&bucket->allocated_bytes) - get(&bucket->freed_bytes);
        }
        assert_int_equal(
            sum, seep_account_live_bytes(&f->builder.view.sites[f->sites[s]]));
    }
}

static uint64_t pick(struct fixture *f, uint64_t below)
{
    f->random =
        f->random * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (f->random >> 33) % below;
}

static bool is_live(struct fixture *f, uint64_t address)
{
    struct seep_live table;

    assert_true(seep_live_init(&table, &f->builder.view,
                               seep_view_shard_of(&f->builder.view, address)));
    return seep_live_find(&table, address) != SEEP_LIVE_NONE;
}

/* One random event of blocks: born, freed, moved, kept after all, overlaid. */
static void block_step(struct fixture *f, uint32_t slots)
{
    uint64_t address = 0x10000 + 64 * pick(f, slots);
    uint32_t site = f->sites[pick(f, 2)];
    uint64_t what = pick(f, 16);

    if (!is_live(f, address)) {
        push(f, SEEP_EVENT_ALLOC, address, 1 + pick(f, 3000), site);
    } else if (what < 9) {
        take_out(f, SEEP_EVENT_FREE, address, 0);
    } else if (what < 12) {
        take_out(f, SEEP_EVENT_REALLOC_OUT, address, 0);
        push(f, SEEP_EVENT_ALLOC, address, 1 + pick(f, 3000), site);
    } else if (what < 14) {
        take_out(f, SEEP_EVENT_REALLOC_OUT, address, 0);
        restore(f, address, 0);
    } else {
        /* Its free was lost: the allocation at its address ends it. */
        size_t before = f->death_count;

        f->last_count = 0;
        doom(f, seep_view_shard_of(&f->builder.view, address), address,
             address + 1);
        push(f, SEEP_EVENT_ALLOC, address, 1 + pick(f, 3000), site);
        if (series_of(f, f->deaths[before].site) == NULL) {
            f->death_count = before;
        }
    }
}

static void range_step(struct fixture *f)
{
    uint64_t address = RANGES + PAGE * pick(f, RANGE_PAGES);
    uint64_t size = PAGE * (1 + pick(f, 8));

    switch (pick(f, 3)) {
    case 0:
        take_out(f, SEEP_EVENT_UNMAP, address, size); /* as MAP_FIXED does */
        push(f, SEEP_EVENT_MAP, address, size, f->sites[2]);
        break;
    case 1:
        take_out(f, SEEP_EVENT_UNMAP, address, size);
        break;
    default:
        take_out(f, SEEP_EVENT_REMAP_OUT, address, size);
        restore(f, address, size);
        break;
    }
}

/* @return the ticks of the run */
static uint32_t churn(struct fixture *f, uint32_t steps, uint32_t slots)
{
    for (uint32_t i = 0; i < steps; i++) {
        f->tick += (uint32_t)pick(f, 1 + i / 16);
        block_step(f, slots);
        if (i % 8 == 0) {
            range_step(f);
        }
        if (i % 1024 == 0) {
            assert_deaths_agree(f);
        }
    }
    assert_deaths_agree(f);
    return f->tick;
}

static void a_block_dies_at_its_age(void **state)
{
    struct fixture *f = *state;
    const struct seep_rec_series *series;

    f->tick = 100;
    push(f, SEEP_EVENT_ALLOC, 0x1000, 70, f->sites[0]);
    f->tick = 1000;
    push(f, SEEP_EVENT_FREE, 0x1000, 0, 0);
    series = series_of(f, f->sites[0]);

    assert_int_equal(get(&series->buckets[900 >> 4].died_bytes), 70);
    assert_int_equal(get(&series->buckets[900 >> 4].died_count_q16),
                     SEEP_COUNT_ONE);
    assert_int_equal(get(&series->buckets[1000 >> 4].died_bytes), 0);
}

static void ages_stay_true_when_the_width_doubles(void **state)
{
    struct fixture *f = *state;
    const struct seep_rec_series *series;

    push(f, SEEP_EVENT_ALLOC, 0x1000, 70, f->sites[0]);
    f->tick = 100;
    push(f, SEEP_EVENT_FREE, 0x1000, 0, 0);
    f->tick = 40000; /* buckets of 512 ticks */
    push(f, SEEP_EVENT_ALLOC, 0x1000, 1, f->sites[0]);
    series = series_of(f, f->sites[0]);

    assert_int_equal(get(&series->buckets[0].died_bytes), 70);
    assert_int_equal(get(&series->buckets[100 >> 4].died_bytes), 0);
}

/* The grid may have become coarser since the realloc took the block out. */
static void a_death_is_taken_back_on_a_coarser_grid(void **state)
{
    struct fixture *f = *state;

    push(f, SEEP_EVENT_ALLOC, 0x1000, 70, f->sites[0]);
    f->tick = 900;
    take_out(f, SEEP_EVENT_REALLOC_OUT, 0x1000, 0);
    f->tick = 40000;
    push(f, SEEP_EVENT_ALLOC, 0x2000, 1, f->sites[0]);
    f->tick = 900;
    restore(f, 0x1000, 0);

    assert_int_equal(f->death_count, 0);
    assert_deaths_agree(f);
}

static void a_part_of_a_mapping_that_goes_is_bytes_and_no_block(void **state)
{
    struct fixture *f = *state;
    const struct seep_rec_series *series;

    push(f, SEEP_EVENT_MAP, RANGES, 8 * PAGE, f->sites[2]);
    f->tick = 160;
    push(f, SEEP_EVENT_UNMAP, RANGES + PAGE, 2 * PAGE, f->sites[2]);
    series = series_of(f, f->sites[2]);

    assert_int_equal(get(&series->buckets[10].died_bytes), 2 * PAGE);
    assert_int_equal(get(&series->buckets[10].died_count_q16), 0);
}

static void deaths_by_age_are_what_a_plain_list_says(void **state)
{
    struct fixture *f = *state;
    uint32_t ticks = churn(f, 20000, SLOTS);

    assert_true(ticks > UINT32_C(1) << 20); /* widened ten times */
    assert_true(f->death_count > 5000);
}

/* A block that a coin flip drops did not die; those left weigh more then. */
static void a_block_dropped_by_thinning_is_no_death(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < 3; i++) {
        for (uint64_t k = 0; k < 9000; k++) {
            builder_alloc(&f->builder, (8 << 20) + 64 * (9000 * i + k), 500,
                          f->sites[k % 2], f->tick);
        }
        builder_fold(&f->builder);
        churn(f, 4000, 4 * SLOTS);
    }

    assert_true(get(&f->builder.view.counters[SEEP_COUNT_THINNINGS]) >= 2);
    assert_true(get(&f->builder.view.counters[SEEP_COUNT_THINNED_BLOCKS]) > 0);
    assert_true(f->death_count > 2000);
}

static void no_brief_is_left(struct fixture *f)
{
    atomic_store_explicit(&f->builder.view.header->brief_count,
                          f->builder.view.brief_capacity, memory_order_relaxed);
}

/* So that a site must have been there for a second to get one, if its totals
 * do not say all: it has had two events. */
static void a_quarter_is_used(struct fixture *f)
{
    no_brief_is_left(f);
    atomic_store_explicit(&f->builder.view.header->series_count,
                          f->builder.view.series_capacity / 4 + 1,
                          memory_order_relaxed);
}

/* What a program makes as it starts comes once; its pool of series is for what
 * comes again. */
static void a_site_gets_a_series_the_later_the_fewer_are_left(void **state)
{
    struct fixture *f = *state;
    _Atomic uint32_t *used = &f->builder.view.header->series_count;
    static const uint32_t after_ticks[] = {0, 1000, 4000, 16000};

    no_brief_is_left(f);
    for (uint32_t quarter = 1; quarter < 4; quarter++) {
        uint32_t site = builder_site(&f->builder, 0, SEEP_SPACE_HEAP);
        uint32_t start = f->tick;

        atomic_store_explicit(used,
                              f->builder.view.series_capacity * quarter / 4 + 1,
                              memory_order_relaxed);
        push(f, SEEP_EVENT_ALLOC, 0x1000 * quarter, 70000, site);
        f->tick = start + after_ticks[quarter] - 1;
        push(f, SEEP_EVENT_ALLOC, 0x1000 * quarter + 64, 64, site);
        assert_null(series_of(f, site));
        f->tick = start + after_ticks[quarter];
        push(f, SEEP_EVENT_ALLOC, 0x1000 * quarter + 128, 64, site);
        assert_non_null(series_of(f, site));
    }
    atomic_store_explicit(used, 0, memory_order_relaxed);
    push(f, SEEP_EVENT_ALLOC, 0x9000, 64, f->sites[0]);
    assert_non_null(series_of(f, f->sites[0]));
}

/* Folded late, from another shard: that it is older says nothing of how long
 * the site has been there. */
static void an_event_from_before_its_site_earns_no_series(void **state)
{
    struct fixture *f = *state;

    a_quarter_is_used(f);
    f->tick = 5000;
    push(f, SEEP_EVENT_ALLOC, 0x1000, 70000, f->sites[0]);
    push(f, SEEP_EVENT_ALLOC, 0x1800, 10, f->sites[0]);
    f->tick = 4999;
    push(f, SEEP_EVENT_ALLOC, 0x2000, 10, f->sites[0]);
    assert_null(series_of(f, f->sites[0]));
    f->tick = 4999 + 999;
    push(f, SEEP_EVENT_ALLOC, 0x3000, 10, f->sites[0]);
    assert_null(series_of(f, f->sites[0]));
    f->tick = 4999 + 1000;
    push(f, SEEP_EVENT_ALLOC, 0x4000, 10, f->sites[0]);
    assert_non_null(series_of(f, f->sites[0]));
}

static void what_is_older_than_the_series_has_an_age_too(void **state)
{
    struct fixture *f = *state;

    a_quarter_is_used(f);
    push(f, SEEP_EVENT_ALLOC, 0x1000, 70000, f->sites[0]);
    push(f, SEEP_EVENT_ALLOC, 0x1800, 10, f->sites[0]);
    assert_null(series_of(f, f->sites[0]));
    f->tick = 1500;
    push(f, SEEP_EVENT_ALLOC, 0x2000, 10, f->sites[0]);
    assert_non_null(series_of(f, f->sites[0]));
    f->tick = 2000;
    take_out(f, SEEP_EVENT_FREE, 0x1000, 0);

    assert_int_equal(f->death_count, 1);
    assert_deaths_agree(f);
    atomic_store_explicit(&f->builder.view.header->brief_count, 0,
                          memory_order_relaxed);
    churn(f, 5000, SLOTS);
}

/* The series began after the realloc took the block out and before it came
 * back: it saw no death, and what it began with lacks the block. */
static void a_death_that_no_series_saw_is_not_taken_back(void **state)
{
    struct fixture *f = *state;

    a_quarter_is_used(f);
    push(f, SEEP_EVENT_ALLOC, 0x1000, 50, f->sites[0]);
    push(f, SEEP_EVENT_ALLOC, 0x1800, 10, f->sites[0]);
    f->tick = 90;
    take_out(f, SEEP_EVENT_REALLOC_OUT, 0x1000, 0);
    assert_null(series_of(f, f->sites[0]));
    f->tick = 1090;
    push(f, SEEP_EVENT_ALLOC, 0x2000, 70000, f->sites[0]);
    push(f, SEEP_EVENT_ALLOC, 0x3000, 10, f->sites[0]);
    assert_non_null(series_of(f, f->sites[0]));
    restore(f, 0x1000, 0);

    assert_deaths_agree(f);
    f->tick = 1300;
    take_out(f, SEEP_EVENT_FREE, 0x1000, 0);
    assert_deaths_agree(f);
}

/* The free that began the series, of a site that held more: it is in a bucket
 * of before the first cohort, and must be found there again. */
static void the_death_that_began_a_series_is_taken_back(void **state)
{
    struct fixture *f = *state;

    a_quarter_is_used(f);
    push(f, SEEP_EVENT_ALLOC, 0x1000, 70000, f->sites[0]);
    push(f, SEEP_EVENT_ALLOC, 0x1800, 10, f->sites[0]);
    push(f, SEEP_EVENT_ALLOC, 0x2000, 10, f->sites[1]);
    f->tick = 1090;
    take_out(f, SEEP_EVENT_REALLOC_OUT, 0x1000, 0);
    assert_non_null(series_of(f, f->sites[0]));
    restore(f, 0x1000, 0);

    assert_deaths_agree(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define EXACT(test) \
    cmocka_unit_test_setup_teardown(test, set_up_exact, tear_down)
        EXACT(a_block_dies_at_its_age),
        EXACT(ages_stay_true_when_the_width_doubles),
        EXACT(a_death_is_taken_back_on_a_coarser_grid),
        EXACT(a_part_of_a_mapping_that_goes_is_bytes_and_no_block),
        EXACT(deaths_by_age_are_what_a_plain_list_says),
        cmocka_unit_test_setup_teardown(a_block_dropped_by_thinning_is_no_death,
                                        set_up_small, tear_down),
        EXACT(a_site_gets_a_series_the_later_the_fewer_are_left),
        EXACT(an_event_from_before_its_site_earns_no_series),
        EXACT(what_is_older_than_the_series_has_an_age_too),
        EXACT(a_death_that_no_series_saw_is_not_taken_back),
        EXACT(the_death_that_began_a_series_is_taken_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
