/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* record/program: a process's figures of itself. */
#include <math.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/word.h"
#include "empty_recording.h"
#include "format/layout.h"
#include "format/series.h"
#include "reader/process/vitals.h"
#include "reader/report/report.h"
#include "record/program.h"
#include "recording_builder.h"

#define TICKS_PER_S (1e9 / (1 << SEEP_TICK_LOG2_NS))

static struct seep_view view;
static struct seep_stats_figures figures;

static int set_up(void **state)
{
    (void)state;
    return empty_recording_make(&view);
}

static int tear_down(void **state)
{
    (void)state;
    empty_recording_free(&view);
    return 0;
}

static struct seep_rec_flow *flow(uint32_t shard, uint32_t bucket)
{
    return &view.shards[shard].flow[bucket];
}

/* 1,000 bytes a bucket, over the first 100 buckets of 16 ticks. */
static uint32_t leak(uint32_t shard)
{
    for (uint32_t i = 0; i < 100; i++) {
        seep_word_store(&flow(shard, i)->allocated_bytes, 3000);
        seep_word_store(&flow(shard, i)->freed_bytes, 2000);
    }
    return 100 * 16 - 1;
}

static void live_is_what_came_less_what_went(void **state)
{
    (void)state;
    seep_stats_take(&view, leak(3), &figures);
    assert_int_equal(figures.live_bytes, 100000);
}

static void growth_leaves_out_what_came_at_the_start(void **state)
{
    (void)state;
    seep_word_store(&flow(5, 0)->allocated_bytes, UINT64_C(1) << 30);
    seep_stats_take(&view, leak(3), &figures);
    assert_true(figures.has_growth);
    assert_true(fabs(figures.growth_bytes_per_s / (1000 / 16.0 * TICKS_PER_S) -
                     1) < 0.01);
}

static void a_shard_that_folds_rarely_has_buckets_of_its_own(void **state)
{
    (void)state;
    leak(3); /* of 16 ticks still, where the run is at 64 */
    seep_stats_take(&view, 128 * 64 - 1, &figures);
    assert_int_equal(figures.live_bytes, 100000);
    assert_true(fabs(figures.growth_bytes_per_s) < 1);
}

/* Two ways to one figure: what a process is told of itself, and what the report
 * says of it. Weights that are loaded at a tenth of the run, more than all that
 * leaks, are growth to neither; a cache that fills until its middle is to both,
 * by as much, as least squares would not have it. */
static void growth_is_that_of_the_report(void **state)
{
    struct recording_builder builder;
    struct seep_report *report;
    struct seep_vitals vitals;
    char path[BUILDER_PATH_BYTES];
    uint64_t frame = builder_frame(0, 0x10);
    const uint32_t end = 100 * BUILDER_TICKS_PER_S;
    uint32_t heap;

    (void)state;
    builder_init(&builder, SEEP_LAYOUT_LEAST_BYTES, true);
    builder_temporary(path);
    heap = builder_site(&builder, builder_stack(&builder, &frame, 1),
                        SEEP_SPACE_HEAP);
    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t size = i == 100 ? UINT64_C(100) << 20 : i < 500 ? 20000 : 8000;

        builder_alloc(&builder, 0x10000 + i * UINT64_C(0x10000), size, heap,
                      i * end / 1000);
    }
    builder_exit(&builder, end);
    builder_fold(&builder);
    builder_write(&builder, path);
    seep_stats_take(&builder.view, end, &figures);
    assert_int_equal(seep_report_open(path, NULL, NULL, &report), 0);
    assert_int_equal(seep_vitals_open(path, false, NULL, &vitals), 0);

    assert_int_equal(report->space_count, 1);
    assert_true(figures.has_growth);
    assert_true(figures.growth_bytes_per_s > 80000);
    assert_true(fabs(figures.growth_bytes_per_s -
                     report->spaces[0].slope_bytes_per_s) < 1);
    assert_true(fabs(figures.growth_bytes_per_s -
                     vitals.host_growth.bytes_per_s.estimate) < 1e-3);
    seep_report_close(report);
    builder_fini(&builder);
    unlink(path);
}

static void of_a_short_run_no_growth_is_told(void **state)
{
    (void)state;
    seep_word_store(&flow(0, 0)->allocated_bytes, 100);
    seep_stats_take(&view, 100, &figures);
    assert_false(figures.has_growth);
    assert_int_equal(figures.live_bytes, 100);
}

static void memory_of_devices_is_none_of_the_host(void **state)
{
    uint32_t tick = leak(3);

    (void)state;
    view.sites[7].space = SEEP_SPACE_TENSOR;
    seep_series_start(&view.series[0], 7, tick, 0);
    seep_word_store(&view.series[0].base_bytes, 500);
    seep_word_store(&view.series[0].buckets[40].allocated_bytes, 60000);
    seep_word_store(&view.series[0].buckets[60].freed_bytes, 10000);
    view.sites[8].space = SEEP_SPACE_PYTHON;
    seep_series_start(&view.series[1], 8, tick, 0);
    seep_word_store(&view.series[1].buckets[40].allocated_bytes, 1000);
    atomic_store_explicit(&view.header->series_count, 2, memory_order_relaxed);
    seep_stats_take(&view, tick, &figures);
    assert_int_equal(figures.live_bytes, 100000 - 50500);
}

/* A site that has had few events has a brief series, after one it has none. */
static void
memory_of_devices_is_none_of_the_host_with_a_brief_series_or_none(void **state)
{
    uint32_t tick = leak(3);
    struct seep_rec_brief *brief = &view.briefs[0];

    (void)state;
    view.sites[7].space = SEEP_SPACE_TENSOR;
    seep_word_store(&view.sites[7].series, 1 | SEEP_SERIES_IS_BRIEF);
    seep_word_store(&brief->width_log2, seep_series_width_for(tick));
    seep_word_store(&brief->first_tick, 200);
    seep_word_store(&brief->base_bytes, 500);
    seep_word_store(&brief->numbers, UINT64_C(51) << 8);
    seep_word_store(&brief->buckets[0].allocated_bytes, 1); /* not in use */
    seep_word_store(&brief->buckets[1].allocated_bytes, 6000);
    seep_word_store(&brief->buckets[1].freed_bytes, 1000);
    view.sites[8].space = SEEP_SPACE_TENSOR; /* of another, or of none */
    seep_word_store(&view.sites[8].series, 1);
    view.sites[9].space = SEEP_SPACE_TENSOR;
    seep_word_store(&view.sites[9].series, UINT32_MAX);
    view.sites[10].space = SEEP_SPACE_TENSOR;
    seep_word_store(&view.sites[10].first_tick, 400);
    seep_word_store(&view.sites[10].allocated_bytes, 900);
    seep_word_store(&view.sites[10].freed_bytes, 200);
    seep_word_store(&view.header->site_count, 10);
    seep_stats_take(&view, tick, &figures);
    assert_int_equal(figures.live_bytes, 100000 - 500 - 5000 - 700);
}

/* By another thread, while the figures are taken in the last tick of a grid. */
static void what_comes_after_the_tick_is_in_the_last_bucket(void **state)
{
    uint32_t tick = 128 * 16 - 1;

    (void)state;
    leak(3);
    view.sites[7].space = SEEP_SPACE_TENSOR;
    seep_word_store(&view.sites[7].first_tick, tick + 1);
    seep_word_store(&view.sites[7].allocated_bytes, 900);
    seep_word_store(&view.header->site_count, 7);
    seep_stats_take(&view, tick, &figures);
    assert_int_equal(figures.live_bytes, 100000 - 900);
    assert_true(figures.has_growth);
}

/* The flow has none of them: there is nothing to take off. */
static void files_are_not_taken_off_the_host(void **state)
{
    uint32_t tick = leak(3);

    (void)state;
    view.sites[7].space = SEEP_SPACE_FILE;
    seep_series_start(&view.series[0], 7, tick, 0);
    seep_word_store(&view.series[0].buckets[40].allocated_bytes, 60000);
    atomic_store_explicit(&view.header->series_count, 1, memory_order_relaxed);
    seep_stats_take(&view, tick, &figures);
    assert_int_equal(figures.live_bytes, 100000);
}

static void the_last_moment_counts(void **state)
{
    (void)state;
    seep_word_store(&view.timeline[3].tick, 50);
    seep_word_store(&view.timeline[3].rss_bytes, 7);
    seep_word_store(&view.timeline[3].cgroup_bytes, 60);
    seep_word_store(&view.timeline[3].cgroup_limit_bytes, 100);
    seep_word_store(&view.timeline[4].tick, 66);
    seep_word_store(&view.timeline[4].rss_bytes, 8);
    seep_word_store(&view.header->progress_units, 11);
    seep_stats_take(&view, 70, &figures);
    assert_int_equal(figures.rss_bytes, 8);
    assert_int_equal(figures.cgroup_bytes, 60);
    assert_int_equal(figures.cgroup_limit_bytes, 100);
    assert_int_equal(figures.units, 11);
}

/* What the recording says of itself may be damaged: it is the file's. */
static void what_lies_behind_a_table_is_none_of_it(void **state)
{
    uint32_t tick = leak(3);
    struct seep_rec_site *site = &view.sites[view.site_capacity];
    struct seep_rec_series *series = &view.series[view.series_capacity];

    (void)state;
    site->space = SEEP_SPACE_TENSOR;
    seep_word_store(&site->allocated_bytes, 900);
    seep_word_store(&view.header->site_count, view.site_capacity);
    view.sites[7].space = SEEP_SPACE_TENSOR;
    seep_series_start(series, 7, tick, 0);
    seep_word_store(&series->base_bytes, 500);
    seep_word_store(&view.header->series_count, view.series_capacity + 1);
    seep_stats_take(&view, tick, &figures);
    assert_int_equal(figures.live_bytes, 100000);
}

/* Taken, and not begun yet; and damaged. */
static void a_series_of_no_site_counts_nothing(void **state)
{
    uint32_t tick = leak(3);

    (void)state;
    view.sites[0].space = SEEP_SPACE_TENSOR;
    view.sites[view.site_capacity].space = SEEP_SPACE_TENSOR;
    seep_series_start(&view.series[0], 0, tick, 0);
    seep_word_store(&view.series[0].base_bytes, 500);
    seep_series_start(&view.series[1], view.site_capacity, tick, 0);
    seep_word_store(&view.series[1].base_bytes, 600);
    seep_word_store(&view.header->series_count, 2);
    seep_stats_take(&view, tick, &figures);
    assert_int_equal(figures.live_bytes, 100000);
}

#define DEVICES 3

static void put_moment(struct seep_rec_device *moment, uint64_t tick,
                       uint64_t free_bytes, uint64_t total_bytes)
{
    seep_word_store(&moment->tick, tick);
    seep_word_store(&moment->free_bytes, free_bytes);
    seep_word_store(&moment->total_bytes, total_bytes);
}

/* By the last moment of each, which is not the last of the table where that
 * has gone round. */
static void the_device_with_the_least_left_is_told(void **state)
{
    static struct seep_rec_device devices[DEVICES * SEEP_BUCKET_COUNT];
    struct seep_view many = view;

    (void)state;
    many.devices = devices;
    many.device_count = DEVICES;
    put_moment(&devices[1], 20, 300, 1000);
    put_moment(&devices[2], 40, 90, 1000);
    put_moment(&devices[3], 10, 5, 1000);
    put_moment(&devices[SEEP_BUCKET_COUNT], 40, 91, 2000);
    seep_stats_take(&many, 70, &figures);
    assert_int_equal(figures.device_free_bytes, 90);
    assert_int_equal(figures.device_total_bytes, 1000);
    put_moment(&devices[(size_t)2 * SEEP_BUCKET_COUNT], 40, 89, 3000);
    seep_stats_take(&many, 70, &figures);
    assert_int_equal(figures.device_free_bytes, 89);
    assert_int_equal(figures.device_total_bytes, 3000);
}

static void where_nothing_is_known_all_is_0(void **state)
{
    (void)state;
    seep_stats_take(&view, 0, &figures);
    assert_int_equal(figures.live_bytes, 0);
    assert_false(figures.has_growth);
    assert_int_equal(figures.rss_bytes, 0);
    assert_int_equal(figures.device_total_bytes, 0);
}

int main(void)
{
#define STATS_TEST(name) \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        STATS_TEST(live_is_what_came_less_what_went),
        STATS_TEST(growth_leaves_out_what_came_at_the_start),
        STATS_TEST(a_shard_that_folds_rarely_has_buckets_of_its_own),
        cmocka_unit_test(growth_is_that_of_the_report),
        STATS_TEST(of_a_short_run_no_growth_is_told),
        STATS_TEST(memory_of_devices_is_none_of_the_host),
        STATS_TEST(
            memory_of_devices_is_none_of_the_host_with_a_brief_series_or_none),
        STATS_TEST(what_comes_after_the_tick_is_in_the_last_bucket),
        STATS_TEST(files_are_not_taken_off_the_host),
        STATS_TEST(what_lies_behind_a_table_is_none_of_it),
        STATS_TEST(a_series_of_no_site_counts_nothing),
        STATS_TEST(the_last_moment_counts),
        STATS_TEST(the_device_with_the_least_left_is_told),
        STATS_TEST(where_nothing_is_known_all_is_0),
    };
#undef STATS_TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
