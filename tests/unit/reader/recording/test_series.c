/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The time of a run: a site's buckets, and the clock of the work done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/layout.h"
#include "format/series.h"
#include "reader/judge/sites.h"
#include "recording_builder.h"

/* A death in the first era: no other began before. */
#define AT(tick)                \
    (struct seep_series_moment) \
    {                           \
        (tick), 0               \
    }

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-3;
}

static struct seep_weight exact(uint64_t bytes)
{
    return seep_weight_of(bytes, 0);
}

static void quiet_buckets_keep_the_live_bytes(void **state)
{
    struct seep_rec_series series;
    struct seep_series_table table;

    (void)state;
    memset(&series, 0, sizeof(series));
    seep_series_start(&series, 1, 0, 0);
    seep_series_allocated(&series, 0, 0, exact(100));
    seep_series_freed(&series, AT(160), 0, 100, exact(40));
    seep_series_read(seep_series_source_whole(&series), 0,
                     seep_series_grid_of(1600), &table);

    assert_int_equal(table.width_log2, 4);
    assert_int_equal(table.count, 101);
    assert_int_equal(table.buckets[9].live_bytes, 100);
    assert_int_equal(table.buckets[9].low_bytes, 100);
    assert_int_equal(table.buckets[10].live_bytes, 60);
    assert_int_equal(table.buckets[10].low_bytes, 60);
    assert_int_equal(table.buckets[100].live_bytes, 60);
    assert_int_equal(table.buckets[100].low_bytes, 60);
    assert_int_equal(table.buckets[0].born_freed_bytes, 40);
}

/* A site that was quiet since keeps a narrow series in a long run. */
static void a_narrow_series_is_widened_to_the_run(void **state)
{
    struct seep_rec_series series;
    struct seep_series_table table;

    (void)state;
    memset(&series, 0, sizeof(series));
    seep_series_start(&series, 1, 0, 0);
    seep_series_allocated(&series, 10, 0, exact(100));
    seep_series_allocated(&series, 100, 100, exact(50));
    seep_series_freed(&series, AT(101), 10, 150, exact(100));
    seep_series_read(seep_series_source_whole(&series), 10,
                     seep_series_grid_of(100000), &table);

    assert_int_equal(table.width_log2, 10);
    assert_int_equal(table.count, 98);
    assert_int_equal(table.buckets[0].allocated_bytes, 150);
    assert_int_equal(table.buckets[0].freed_bytes, 100);
    assert_int_equal(table.buckets[0].low_bytes, 0);
    assert_int_equal(table.buckets[97].live_bytes, 50);
    assert_int_equal(table.buckets[97].low_bytes, 50);
}

/* Ages widen as all else: the death at 91 ticks lies in the first bucket of
 * 1024, and one of before the series began is where its age is. */
static void deaths_by_age_are_widened_to_the_run(void **state)
{
    struct seep_rec_series series;
    struct seep_series_table table;

    (void)state;
    memset(&series, 0, sizeof(series));
    seep_series_start(&series, 1, 3000, 300);
    seep_series_allocated(&series, 3010, 300, exact(100));
    seep_series_freed(&series, AT(3101), 3010, 400, exact(100));
    seep_series_freed(&series, AT(3200), 100, 300, exact(300));
    seep_series_read(seep_series_source_whole(&series), 10,
                     seep_series_grid_of(100000), &table);

    assert_int_equal(table.width_log2, 10);
    assert_int_equal(table.buckets[0].died_bytes, 100);
    assert_int_equal(table.buckets[3].died_bytes, 300);
    assert_int_equal(table.buckets[3].died_count_q16, SEEP_COUNT_ONE);
    assert_int_equal(table.buckets[0].born_freed_bytes, 0);
}

static void what_a_late_series_began_with_counts(void **state)
{
    struct seep_rec_series series;
    struct seep_series_table table;

    (void)state;
    memset(&series, 0, sizeof(series));
    seep_series_start(&series, 1, 320, 70);
    seep_series_allocated(&series, 321, 70, exact(30));
    seep_series_read(seep_series_source_whole(&series), 160,
                     seep_series_grid_of(640), &table);

    assert_int_equal(table.first, 20);
    assert_int_equal(table.buckets[9].live_bytes, 0);
    assert_int_equal(table.buckets[10].live_bytes, 70);
    assert_int_equal(table.buckets[20].live_bytes, 100);
    assert_int_equal(table.buckets[20].low_bytes, 70);
}

/* Blocks of one site lie in many rings, which are folded one by one: the second
 * block's event can come first, when the first is not live yet. */
static void an_event_folded_late_lowers_no_quiet_bucket(void **state)
{
    struct seep_rec_series series;
    struct seep_series_table table;

    (void)state;
    memset(&series, 0, sizeof(series));
    seep_series_start(&series, 1, 0, 0);
    seep_series_allocated(&series, 160, 0, exact(50));
    seep_series_allocated(&series, 16, 50, exact(100));
    seep_series_read(seep_series_source_whole(&series), 16,
                     seep_series_grid_of(320), &table);

    assert_int_equal(table.buckets[1].live_bytes, 100);
    assert_int_equal(table.buckets[5].live_bytes, 100);
    assert_int_equal(table.buckets[5].low_bytes, 100);
    assert_int_equal(table.buckets[10].live_bytes, 150);
    assert_true(table.buckets[10].low_bytes <= 100);
}

static struct recording_builder *built(void)
{
    static struct recording_builder builder;

    builder_init(&builder, SEEP_LAYOUT_LEAST_BYTES, true);
    return &builder;
}

/* A row of figures that is the same in each run. */
static uint32_t next_of(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)(*seed >> 8) * below) >> 24);
}

/* What a site without a series may have been told. */
static void fill_brief(uint32_t *seed, struct seep_rec_brief *brief)
{
    uint32_t tick = next_of(seed, 5000);
    uint64_t live = next_of(seed, 2) * 1000;

    memset((void *)brief, 0, sizeof(*brief));
    seep_brief_start(brief, 1, tick, live);
    for (uint32_t i = next_of(seed, 12); i > 0; i--) {
        struct seep_weight weight = exact(1 + next_of(seed, 300));

        tick += next_of(seed, 3) * next_of(seed, 2000);
        if (next_of(seed, 2) == 0) {
            live += seep_brief_allocated(brief, tick, live, weight)
                        ? weight.bytes
                        : 0;
        } else if (live >= weight.bytes &&
                   seep_brief_freed(brief, AT(tick), tick - tick / 2, live,
                                    weight)) {
            live -= weight.bytes;
        }
    }
}

/* The same table, and of that what the course says. */
static void assert_reads_as(struct seep_series_source source,
                            struct seep_rec_series *series, uint32_t site_first,
                            uint64_t end_tick)
{
    struct seep_series_grid grid = seep_series_grid_of(end_tick);
    struct seep_series_table expected;
    struct seep_series_table table;
    struct seep_series_course course;
    uint64_t live[SEEP_BUCKET_COUNT];
    uint32_t next = 0;

    seep_series_read(seep_series_source_whole(series), site_first, grid,
                     &expected);
    seep_series_read(source, site_first, grid, &table);
    assert_memory_equal(&table, &expected,
                        offsetof(struct seep_series_table, buckets) +
                            expected.count * sizeof(table.buckets[0]));
    seep_series_read_course(source, site_first, grid, &course);
    assert_int_equal(course.width_log2, expected.width_log2);
    assert_int_equal(course.count, expected.count);
    seep_series_fill_live(&course, live);
    for (uint32_t i = 0; i < expected.count; i++) {
        uint64_t allocated = 0;

        if (next < course.step_count && course.steps[next].bucket == i) {
            allocated = course.steps[next++].allocated_bytes;
        }
        assert_true(allocated == expected.buckets[i].allocated_bytes);
        assert_true(live[i] == expected.buckets[i].live_bytes);
        assert_true(seep_series_live_at(&course, i) == live[i]);
    }
    assert_int_equal(next, course.step_count);
}

#define ROUNDS 4000U

static void a_brief_reads_as_the_series_it_expands_to(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct seep_rec_brief brief;
        struct seep_rec_series series;
        struct seep_series_source source = {SEEP_SERIES_BRIEF,
                                            {.brief = &brief}};

        fill_brief(&seed, &brief);
        for (uint32_t i = round % 2 * next_of(&seed, 4); i > 0; i--) {
            /* Of a damaged file it may be anything. */
            ((unsigned char *)&brief)[next_of(&seed, 64)] =
                (unsigned char)next_of(&seed, 256);
        }
        memset((void *)&series, 0, sizeof(series));
        seep_brief_expand(&brief, &series);
        assert_reads_as(source, &series, next_of(&seed, 9000),
                        1 + next_of(&seed, 60000));
        assert_reads_as(seep_series_source_whole(&series), &series,
                        next_of(&seed, 9000), 1 + next_of(&seed, 60000));
    }
}

static void totals_that_say_all_read_as_the_series_they_become(void **state)
{
    struct recording_builder *b = built();
    uint32_t index = builder_site(b, 0, SEEP_SPACE_HEAP);
    struct seep_rec_site *site = &b->view.sites[index];
    uint32_t seed = 2;

    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t events = 1 + next_of(&seed, 2);
        uint64_t bytes = next_of(&seed, 3000);
        struct seep_rec_series series;
        struct seep_series_source source;

        seep_word_store(&site->state, SEEP_PUBLISHED);
        seep_word_store(&site->event_count, events);
        seep_word_store(&site->allocated_bytes, bytes);
        seep_word_store(&site->allocated_count_q16, SEEP_COUNT_ONE);
        seep_word_store(&site->freed_bytes, events == 2 ? bytes : 0);
        seep_word_store(&site->freed_count_q16,
                        events == 2 ? SEEP_COUNT_ONE : 0);
        seep_word_store(&site->first_tick, next_of(&seed, 20000));
        seep_word_store(&site->last_tick, next_of(&seed, 40000));
        source = seep_series_source_of(&b->view, index);
        assert_int_equal(source.kind, SEEP_SERIES_TOTALS);
        assert_reads_as(source,
                        (struct seep_rec_series *)(uintptr_t)builder_series(
                            &b->view, index, &series),
                        seep_word_load(&site->first_tick),
                        1 + next_of(&seed, 90000));
    }
    builder_fini(b);
}

static void without_work_time_is_the_clock(void **state)
{
    struct recording_builder *b = built();
    struct seep_clock clock;

    (void)state;
    seep_clock_init(&clock, &b->view, seep_series_grid_of(10000));
    assert_int_equal(clock.kind, SEEP_CLOCK_WALL);
    assert_true(near(seep_clock_at(&clock, 0), 0));
    assert_true(near(seep_clock_at(&clock, 2500), .25));
    assert_true(near(seep_clock_at(&clock, 9999.9), 1));
    assert_true(near(seep_clock_at(&clock, 1e9), 1));
    seep_clock_init(&clock, &b->view, seep_series_grid_of(0));
    assert_true(near(seep_clock_at(&clock, 0), 1));
    builder_fini(b);
}

/* All the work in the first half; then the second half is no time at all. */
static void allocated_bytes_are_work(void **state)
{
    struct recording_builder *b = built();
    struct seep_clock clock;
    uint32_t site = builder_site(b, 0, SEEP_SPACE_HEAP);

    (void)state;
    for (uint32_t i = 0; i < 5120; i++) {
        builder_alloc(b, 0x1000 * (i + 1), 100, site, i);
    }
    builder_fold(b);
    seep_clock_init(&clock, &b->view, seep_series_grid_of(10240));
    assert_int_equal(clock.kind, SEEP_CLOCK_BYTES);
    assert_true(fabs(seep_clock_at(&clock, 2560) - .5) < .01);
    assert_true(fabs(seep_clock_at(&clock, 5120) - 1) < .01);
    builder_fini(b);
}

/* Loading the weights is most of the bytes and little of the work. */
static void one_burst_is_clipped(void **state)
{
    struct recording_builder *b = built();
    struct seep_clock clock;
    uint32_t site = builder_site(b, 0, SEEP_SPACE_HEAP);

    (void)state;
    builder_alloc(b, 0x800, UINT64_C(1) << 30, site, 0);
    for (uint32_t i = 0; i < 5120; i++) {
        builder_alloc(b, 0x1000 * (i + 1), 100, site, 2 * i);
    }
    builder_fold(b);
    seep_clock_init(&clock, &b->view, seep_series_grid_of(10240));
    assert_true(seep_clock_at(&clock, 200) < .06);
    builder_fini(b);
}

static void units_of_work_are_the_best_clock(void **state)
{
    struct recording_builder *b = built();
    struct seep_clock clock;
    uint32_t site = builder_site(b, 0, SEEP_SPACE_HEAP);

    (void)state;
    builder_alloc(b, 0x1000, 100, site, 100);
    for (uint32_t i = 1; i <= 100; i++) {
        /* twice as fast in the second half */
        builder_moment(b, i, 100 * i, 1000, i <= 50 ? i : 2 * i - 50);
    }
    seep_clock_init(&clock, &b->view, seep_series_grid_of(10000));
    assert_int_equal(clock.kind, SEEP_CLOCK_UNITS);
    assert_true(fabs(seep_clock_at(&clock, 5000) - 1 / 3.) < .01);
    assert_int_equal(clock.units, 150);
    builder_fini(b);
}

/* All work in the first half: it stands still then, and nothing is done now. */
static void the_clock_runs_back_to_time(void **state)
{
    struct recording_builder *b = built();
    struct seep_clock clock;

    (void)state;
    for (uint32_t i = 1; i <= 50; i++) {
        builder_moment(b, i, 100 * i, 1000, i);
    }
    seep_clock_init(&clock, &b->view, seep_series_grid_of(10000));
    assert_int_equal(clock.kind, SEEP_CLOCK_UNITS);
    assert_true(seep_clock_tick_at(&clock, 0) == 0);
    assert_true(fabs(seep_clock_tick_at(&clock, .5) - 2500) < 30);
    assert_true(fabs(seep_clock_tick_at(&clock, 1) - 5000) < 200);
    assert_true(seep_clock_tick_at(&clock, 2) == 10000);
    assert_true(near(seep_clock_late_pace(&clock), 0));
    assert_true(near(seep_clock_units_per_s(&clock), 0));
    seep_clock_init(&clock, &b->view, seep_series_grid_of(5000));
    assert_true(fabs(seep_clock_late_pace(&clock) - 1) < .05);
    builder_fini(b);
}

static void units_told_once_are_no_clock(void **state)
{
    struct recording_builder *b = built();
    struct seep_clock clock;

    (void)state;
    for (uint32_t i = 1; i <= 100; i++) {
        builder_moment(b, i, 100 * i, 1000, i < 50 ? 0 : 1000);
    }
    seep_clock_init(&clock, &b->view, seep_series_grid_of(10000));
    assert_int_not_equal(clock.kind, SEEP_CLOCK_UNITS);
    builder_fini(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_buckets_keep_the_live_bytes),
        cmocka_unit_test(a_narrow_series_is_widened_to_the_run),
        cmocka_unit_test(deaths_by_age_are_widened_to_the_run),
        cmocka_unit_test(what_a_late_series_began_with_counts),
        cmocka_unit_test(an_event_folded_late_lowers_no_quiet_bucket),
        cmocka_unit_test(a_brief_reads_as_the_series_it_expands_to),
        cmocka_unit_test(totals_that_say_all_read_as_the_series_they_become),
        cmocka_unit_test(without_work_time_is_the_clock),
        cmocka_unit_test(allocated_bytes_are_work),
        cmocka_unit_test(one_burst_is_clipped),
        cmocka_unit_test(units_of_work_are_the_best_clock),
        cmocka_unit_test(the_clock_runs_back_to_time),
        cmocka_unit_test(units_told_once_are_no_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
