/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Briefs at their bounds: what they cannot have, or have no room for, they
 * refuse as they were, and a series says the same.
 *
 * What these tests cannot catch: how a brief stands to a series in the course
 * of a run (tests/unit/reader/recording/test_series.c).
 */
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "format/account.h"
#include "format/fold.h"
#include "format/layout.h"
#include "format/live.h"
#include "format/series.h"
#include "recording_builder.h"

#define WIDTH 16U                    /* ticks of a bucket, as it begins */
#define OFF_GRID (UINT32_C(1) << 20) /* of the first width */
#define ERA (SEEP_ERA_BUCKETS * WIDTH)

static const struct seep_weight weight = {100, SEEP_COUNT_ONE};
static const struct seep_weight heavy = {250, 3 * SEEP_COUNT_ONE};

/* The same told to both. */
struct two {
    struct seep_rec_brief brief;
    struct seep_rec_series series;
};

static struct two start(uint32_t tick, uint64_t live_bytes)
{
    struct two two;

    memset((void *)&two, 0, sizeof(two));
    seep_brief_start(&two.brief, 1, tick, live_bytes);
    seep_series_start(&two.series, 1, tick, live_bytes);
    return two;
}

static void allocate(struct two *two, uint32_t tick, uint64_t live_bytes)
{
    assert_true(seep_brief_allocated(&two->brief, tick, live_bytes, weight));
    seep_series_allocated(&two->series, tick, live_bytes, weight);
}

static void release(struct two *two, struct seep_series_moment when,
                    uint32_t birth_tick, uint64_t live_bytes)
{
    assert_true(
        seep_brief_freed(&two->brief, when, birth_tick, live_bytes, weight));
    seep_series_freed(&two->series, when, birth_tick, live_bytes, weight);
}

static void reweigh(struct two *two, uint32_t birth_tick)
{
    assert_true(seep_brief_reweighed(&two->brief, birth_tick, weight, heavy));
    seep_series_reweighed(&two->series, birth_tick, weight, heavy);
}

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

#define SAME(field) assert_int_equal(get(&a->field), get(&b->field))

static void assert_same_buckets(const struct seep_rec_series *left,
                                const struct seep_rec_series *right)
{
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        const struct seep_rec_bucket *a = &left->buckets[i];
        const struct seep_rec_bucket *b = &right->buckets[i];

        SAME(allocated_bytes);
        SAME(freed_bytes);
        SAME(born_count_q16);
        SAME(born_freed_bytes);
        SAME(born_freed_count_q16);
        SAME(died_bytes);
        SAME(died_count_q16);
    }
}

/* What @series says of the era at @edge; NULL: nothing. */
static const struct seep_rec_era *era_at(const struct seep_rec_series *series,
                                         uint32_t edge)
{
    for (uint32_t i = 0; i < SEEP_ERAS_KEPT; i++) {
        if (seep_word_load(&series->era_edges[i]) == edge) {
            return &series->eras[i];
        }
    }
    return NULL;
}

/* An era whose one death was taken back is one of those that a series keeps:
 * in its place @expanded may have an older one. */
static void assert_same_eras(const struct seep_rec_series *expanded,
                             const struct seep_rec_series *series)
{
    static const struct seep_rec_era nothing;
    uint32_t oldest = seep_word_load(&series->era_edges[SEEP_ERAS_KEPT - 1]);

    for (uint32_t i = 0; i < SEEP_ERAS_KEPT; i++) {
        uint32_t edge = seep_word_load(&series->era_edges[i]);
        const struct seep_rec_era *era = era_at(expanded, edge);

        assert_memory_equal(era != NULL ? era : &nothing, &series->eras[i],
                            sizeof(*era));
        edge = seep_word_load(&expanded->era_edges[i]);
        assert_true(edge < oldest || era_at(series, edge) != NULL);
    }
}

static void assert_same(const struct two *two)
{
    static struct seep_rec_series expanded;
    const struct seep_rec_series *a = &expanded;
    const struct seep_rec_series *b = &two->series;

    memset((void *)&expanded, 0, sizeof(expanded));
    seep_brief_expand(&two->brief, &expanded);
    assert_int_equal(seep_word_load(&a->width_log2),
                     seep_word_load(&b->width_log2));
    assert_int_equal(seep_word_load(&a->last), seep_word_load(&b->last));
    assert_int_equal(seep_word_load(&a->first_tick),
                     seep_word_load(&b->first_tick));
    SAME(base_bytes);
    assert_same_buckets(a, b);
    assert_same_eras(a, b);
}

static uint64_t born_freed(const struct two *two)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        sum += get(&two->series.buckets[i].born_freed_bytes);
    }
    return sum;
}

/* Of a damaged entry: no event made the grid so long. */
static void a_birth_behind_the_grid_is_in_no_cohort(void **state)
{
    struct two two = start(5, 0);

    (void)state;
    allocate(&two, 5, 0);
    release(&two, (struct seep_series_moment){40, 0}, OFF_GRID, 100);
    assert_int_equal(born_freed(&two), 0);
    assert_same(&two);
    release(&two, (struct seep_series_moment){40, 2 * OFF_GRID}, OFF_GRID, 100);
    assert_same(&two);
    reweigh(&two, OFF_GRID);
    assert_int_equal(get(&two.series.base_bytes), 150);
    assert_same(&two);
}

/* It is in the base, whatever it weighs. */
static void what_was_there_before_is_reweighed_in_the_base(void **state)
{
    struct two two = start(5, 70);

    (void)state;
    reweigh(&two, 5);
    reweigh(&two, 2);
    assert_int_equal(get(&two.series.base_bytes), 70 + 2 * 150);
    assert_same(&two);
    allocate(&two, 6, 370);
    reweigh(&two, 6);
    assert_int_equal(get(&two.series.base_bytes), 70 + 2 * 150);
    assert_int_equal(get(&two.series.buckets[0].allocated_bytes), 250);
    assert_same(&two);
}

/* Of a damaged event: the tick of what it takes back was told. */
static void a_death_behind_the_grid_is_not_taken_back(void **state)
{
    struct two two = start(5, 0);
    struct two saved;

    (void)state;
    allocate(&two, 5, 0);
    memcpy((void *)&saved, (void *)&two, sizeof(two));
    assert_false(seep_brief_restored(
        &two.brief, (struct seep_series_moment){OFF_GRID, 0}, 5, weight));
    seep_series_restored(&two.series, (struct seep_series_moment){OFF_GRID, 0},
                         5, weight);
    assert_memory_equal(&two, &saved, sizeof(two));
}

/* Of those born in its first bucket one died in each era that a brief keeps. */
static void a_brief_that_knows_enough_eras_refuses_another(void **state)
{
    struct two two = start(0, 0);
    struct two saved;
    struct seep_series_moment when = {WIDTH, 0};

    (void)state;
    for (uint32_t i = 0; i < SEEP_BRIEF_DIED + 1; i++) {
        allocate(&two, 0, 100 * i);
    }
    for (when.edge = 1; when.edge <= SEEP_BRIEF_DIED; when.edge++) {
        release(&two, when, 0, 100);
    }
    assert_same(&two);
    memcpy((void *)&saved, (void *)&two, sizeof(two));
    assert_false(seep_brief_freed(&two.brief, when, 0, 100, weight));
    assert_false(seep_brief_restored(&two.brief, when, 0, weight));
    assert_memory_equal(&two, &saved, sizeof(two));
    when.edge--;
    release(&two, when, 0, 100);
    assert_same(&two);
}

static void a_brief_without_a_bucket_reweighs_none(void **state)
{
    struct two two = start(0, 0);
    struct two saved;

    (void)state;
    for (uint32_t i = 0; i < SEEP_BRIEF_BUCKETS; i++) {
        allocate(&two, i * WIDTH, 100 * i);
    }
    memcpy((void *)&saved, (void *)&two, sizeof(two));
    assert_false(seep_brief_reweighed(&two.brief, SEEP_BRIEF_BUCKETS * WIDTH,
                                      weight, heavy));
    assert_memory_equal(&two, &saved, sizeof(two));
    reweigh(&two, WIDTH);
    assert_same(&two);
}

/* Of a damaged copy: the last bucket was never begun. */
static void a_brief_whose_last_bucket_is_not_there_goes_on(void **state)
{
    struct two two = start(0, 0);

    (void)state;
    allocate(&two, 0, 0);
    seep_word_store(&two.brief.last, 77);
    seep_word_store(&two.series.last, 77);
    release(&two, (struct seep_series_moment){WIDTH, 0}, 0, 100);
    assert_same(&two);
}

/* A row of figures that is the same in each run. */
static uint32_t pick(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)(*seed >> 8) * below) >> 24);
}

struct told {
    uint32_t births[64];
    uint32_t count; /* of those that are live */
    uint32_t tick;
    uint32_t final_tick;
    uint64_t live_bytes;
};

static bool tell_birth(struct two *two, struct told *told, uint32_t tick)
{
    if (!seep_brief_allocated(&two->brief, tick, told->live_bytes, weight)) {
        return false;
    }
    seep_series_allocated(&two->series, tick, told->live_bytes, weight);
    told->births[told->count++] = tick;
    told->live_bytes += weight.bytes;
    return true;
}

/* @kept: it is taken back. */
static bool tell_death(struct two *two, struct told *told, uint32_t index,
                       uint32_t tick, bool kept)
{
    struct seep_series_moment when = {tick,
                                      seep_series_edge(tick, told->final_tick)};
    uint32_t birth = told->births[index];

    if (!seep_brief_freed(&two->brief, when, birth, told->live_bytes, weight)) {
        return false;
    }
    seep_series_freed(&two->series, when, birth, told->live_bytes, weight);
    if (kept) {
        assert_true(seep_brief_restored(&two->brief, when, birth, weight));
        seep_series_restored(&two->series, when, birth, weight);
        return true;
    }
    told->births[index] = told->births[--told->count];
    told->live_bytes -= weight.bytes;
    return true;
}

/* @late: events of other shards come later than they were. @return false: the
 * brief refused */
static bool tell_one(struct two *two, struct told *told, uint32_t *seed,
                     bool late)
{
    uint32_t tick = told->tick;

    told->tick += pick(seed, 3) == 0 ? pick(seed, 700) : 0;
    if (told->final_tick == 0 && pick(seed, 30) == 0) {
        told->final_tick = told->tick;
    }
    if (late && pick(seed, 3) == 0) {
        tick -= pick(seed, tick + 1);
    }
    if (told->count == 0 || (told->count < 60 && pick(seed, 5) < 3)) {
        return tell_birth(two, told, tick);
    }
    return tell_death(two, told, pick(seed, told->count), tick,
                      pick(seed, 5) == 0);
}

/* Where something happened. */
static void assert_same_lows(const struct two *two)
{
    static struct seep_rec_series expanded;

    memset((void *)&expanded, 0, sizeof(expanded));
    seep_brief_expand(&two->brief, &expanded);
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        const struct seep_rec_bucket *a = &expanded.buckets[i];
        const struct seep_rec_bucket *b = &two->series.buckets[i];

        if (get(&b->allocated_bytes) + get(&b->freed_bytes) != 0) {
            SAME(low_bytes);
        }
    }
}

static void a_brief_says_what_a_series_would(void **state)
{
    uint32_t seed = 1;
    uint32_t refused = 0;
    uint32_t events = 0;

    (void)state;
    for (uint32_t round = 0; round < 4000; round++) {
        struct told told = {.tick = pick(&seed, 3000)};
        struct two two = start(told.tick, 0);
        bool late = round % 2 != 0;

        for (uint32_t i = 0; i < 40; i++, events++) {
            if (!tell_one(&two, &told, &seed, late)) {
                refused++;
                break;
            }
            assert_same(&two);
            if (!late) {
                assert_same_lows(&two);
            }
        }
    }
    assert_true(refused > 500 && events > 20000);
}

/*
 * What becomes of a site whose brief refuses.
 */

struct site_fixture {
    struct recording_builder builder;
    uint32_t site;
};

static void begin(struct site_fixture *f)
{
    uint64_t frame = builder_frame(0, 0x1000);

    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, true);
    f->site = builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                           SEEP_SPACE_HEAP);
}

static void push(struct site_fixture *f, enum seep_event_kind kind,
                 uint64_t address, uint32_t tick)
{
    builder_push(&f->builder, kind, address, kind == SEEP_EVENT_ALLOC ? 100 : 0,
                 f->site, tick);
    builder_fold(&f->builder);
}

static uint32_t track_of(const struct site_fixture *f)
{
    return seep_word_load(&f->builder.view.sites[f->site].series);
}

static const struct seep_rec_series *series_of(const struct site_fixture *f,
                                               struct seep_rec_series *scratch)
{
    return builder_series(&f->builder.view, f->site, scratch);
}

/* Six buckets, and a death of the first in each of five eras. */
static void fill_brief(struct site_fixture *f)
{
    for (uint64_t i = 0; i < 10; i++) {
        push(f, SEEP_EVENT_ALLOC, 0x1000 * (i + 1), 0);
    }
    for (uint32_t i = 1; i <= SEEP_BRIEF_DIED; i++) {
        push(f, SEEP_EVENT_FREE, 0x1000 * i, ERA * i);
    }
    push(f, SEEP_EVENT_ALLOC, 0x20000, ERA * SEEP_BRIEF_DIED);
    assert_true((track_of(f) & SEEP_SERIES_IS_BRIEF) != 0);
}

/* exit() was called in the tick of a realloc that then failed: its death is in
 * another era now, of which the brief has no room to know. */
static void a_death_that_a_brief_cannot_take_back_a_series_does(void **state)
{
    static struct seep_rec_series scratch[2];
    struct site_fixture with;
    struct site_fixture without;
    uint32_t tick = ERA * SEEP_BRIEF_DIED + 3;

    (void)state;
    begin(&with);
    begin(&without);
    fill_brief(&with);
    fill_brief(&without);
    push(&with, SEEP_EVENT_REALLOC_OUT, 0x20000, tick);
    assert_true((track_of(&with) & SEEP_SERIES_IS_BRIEF) != 0);
    seep_word_store(&with.builder.view.header->final_tick, tick);
    push(&with, SEEP_EVENT_RESTORE, 0x20000, tick);
    assert_true(track_of(&with) != 0 &&
                (track_of(&with) & SEEP_SERIES_IS_BRIEF) == 0);
    assert_int_equal(
        seep_account_live_bytes(&with.builder.view.sites[with.site]), 600);
    assert_same_buckets(series_of(&with, &scratch[0]),
                        series_of(&without, &scratch[1]));
    builder_fini(&with.builder);
    builder_fini(&without.builder);
}

/* Of a damaged copy: no block was born there. */
static void a_birth_that_a_brief_cannot_have_a_series_has(void **state)
{
    static struct seep_rec_series scratch;
    struct site_fixture f;
    struct seep_live live;
    const struct seep_rec_series *series;
    const struct seep_rec_site *site;
    uint64_t sum;

    (void)state;
    begin(&f);
    fill_brief(&f);
    assert_true(seep_live_init(&live, &f.builder.view,
                               seep_view_shard_of(&f.builder.view, 0x20000)));
    seep_word_store(&live.entries[seep_live_find(&live, 0x20000)].birth_tick,
                    ERA + WIDTH);
    seep_word_store(&f.builder.view.header->sample_log2, 3);
    builder_fold(&f.builder);
    assert_true(track_of(&f) != 0 &&
                (track_of(&f) & SEEP_SERIES_IS_BRIEF) == 0);
    site = &f.builder.view.sites[f.site];
    series = series_of(&f, &scratch);
    sum = get(&series->base_bytes);
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        sum += get(&series->buckets[i].allocated_bytes) -
               get(&series->buckets[i].freed_bytes);
    }
    assert_int_equal(sum, seep_account_live_bytes(site));
    assert_int_equal(get(&series->buckets[ERA / WIDTH + 1].allocated_bytes),
                     seep_weight_of(100, 3).bytes - 100);
    builder_fini(&f.builder);
}

/* Nothing was freed of them, in bytes: but two are live. */
static void two_blocks_of_no_bytes_are_not_one_that_was_freed(void **state)
{
    struct site_fixture f;

    (void)state;
    begin(&f);
    builder_alloc(&f.builder, 0x1000, 0, f.site, 1);
    builder_fold(&f.builder);
    assert_true(seep_account_is_whole(&f.builder.view.sites[f.site]));
    builder_alloc(&f.builder, 0x2000, 0, f.site, 1);
    builder_fold(&f.builder);
    assert_false(seep_account_is_whole(&f.builder.view.sites[f.site]));
    builder_fini(&f.builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_birth_behind_the_grid_is_in_no_cohort),
        cmocka_unit_test(what_was_there_before_is_reweighed_in_the_base),
        cmocka_unit_test(a_death_behind_the_grid_is_not_taken_back),
        cmocka_unit_test(a_brief_that_knows_enough_eras_refuses_another),
        cmocka_unit_test(a_brief_without_a_bucket_reweighs_none),
        cmocka_unit_test(a_brief_whose_last_bucket_is_not_there_goes_on),
        cmocka_unit_test(a_brief_says_what_a_series_would),
        cmocka_unit_test(a_death_that_a_brief_cannot_take_back_a_series_does),
        cmocka_unit_test(a_birth_that_a_brief_cannot_have_a_series_has),
        cmocka_unit_test(two_blocks_of_no_bytes_are_not_one_that_was_freed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
