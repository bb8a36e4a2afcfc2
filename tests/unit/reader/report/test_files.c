/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is mapped of files in a report, from recordings made by hand: judged as
 * memory is, and in no sum of it.
 */
#include "seep_test.h"

#include <string.h>

#include "device_run.h"
#include "reader/compare/limits.h"
#include "reader/process/vitals.h"

#define RUN_S DEVICE_RUN_S
#define MIB DEVICE_RUN_MIB
#define GIB DEVICE_RUN_GIB
#define BASE (UINT64_C(1) << 40)

static uint32_t file_site(struct device_run *run)
{
    return builder_site(&run->builder,
                        device_run_stack(run, "/opt/app/reload", 1),
                        SEEP_SPACE_FILE);
}

/* @bytes of a file each tenth of a second from @from_s to @to_s, kept. */
static void map_files(struct device_run *run, uint64_t bytes, int from_s,
                      int to_s)
{
    uint32_t site = file_site(run);

    for (int i = 10 * from_s; i < 10 * to_s; i++) {
        builder_push(&run->builder, SEEP_EVENT_MAP,
                     BASE + (uint64_t)i * 2 * bytes, bytes, site,
                     device_run_tick(i / 10.));
    }
}

static void add_moments(struct device_run *run, uint64_t rss, uint64_t more)
{
    for (uint32_t i = 0; i < RUN_S; i++) {
        builder_moment(&run->builder, i, device_run_tick(i) + 1, rss + i * more,
                       0);
    }
}

static void files_mapped_ever_again_are_a_leak_without_a_forecast(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    map_files(run, 64 * MIB, 0, RUN_S);
    add_moments(run, 20 * MIB, 0);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_true(report->verdict.files);
    assert_int_equal(report->verdict.device, -1);
    assert_int_equal(report->sites[0].space, SEEP_SPACE_FILE);
    assert_true(device_run_is_near(report->verdict.growth_bytes_per_s.estimate,
                                   640. * (double)MIB, .05));
    assert_int_equal(report->verdict.forecast.answer, SEEP_FORECAST_UNKNOWN);
}

static void mapped_files_are_neither_tracked_nor_private(void **state)
{
    struct device_run *run = *state;
    const struct seep_report_memory *memory;

    device_run_work(run);
    map_files(run, 64 * MIB, 0, RUN_S);
    add_moments(run, 20 * MIB, 0);
    memory = &device_run_report(run)->memory;

    assert_true(memory->files.valid);
    assert_true(memory->files.last_bytes > 60. * (double)GIB);
    assert_true(device_run_is_near(memory->files.slope_bytes_per_s,
                                   640. * (double)MIB, .05));
    assert_true(memory->tracked.last_bytes < (double)MIB);
    assert_true(memory->unexplained.last_bytes > 19. * (double)MIB);
}

static void without_a_file_there_is_no_row_of_files(void **state)
{
    struct device_run *run = *state;

    device_run_work(run);
    add_moments(run, 20 * MIB, 0);
    assert_false(device_run_report(run)->memory.files.valid);
}

static void a_leak_of_memory_comes_before_one_of_files(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;
    double rate = 10. * 65536;

    device_run_work(run);
    map_files(run, 64 * MIB, 0, RUN_S);
    device_run_leak_host(run, 65536);
    add_moments(run, 20 * MIB, 10 * 65536);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_false(report->verdict.files);
    assert_int_equal(report->verdict.growing_count, 1);
    assert_true(device_run_is_near(report->verdict.growth_bytes_per_s.estimate,
                                   rate, .05));
    assert_int_equal(report->sites[0].space, SEEP_SPACE_HEAP);
    assert_int_equal(report->sites[1].space, SEEP_SPACE_FILE);
    assert_int_equal(report->sites[1].class, SEEP_CLASS_LEAK);
    assert_int_equal(report->verdict.forecast.answer, SEEP_FORECAST_TIME);
}

/* 0.2 % of 40 GiB is 80 MiB. */
static void a_leak_of_memory_is_not_minor_beside_mapped_weights(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    map_files(run, 4 * GIB, 0, 1);
    device_run_leak_host(run, 4096);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_false(report->verdict.files);
    assert_true(report->verdict.floor_bytes <= 2. * (double)MIB);
}

static void weights_that_are_mapped_once_are_no_leak(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    map_files(run, GIB, 30, 31);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_BOUNDED);
    assert_int_equal(report->sites[0].class, SEEP_CLASS_STEP);
}

/* The clock is the work that was done, and a mapping is none. */
static void a_mapping_is_no_work(void **state)
{
    struct device_run *run = *state;
    const struct seep_view *view = &run->builder.view;
    uint64_t mapped = 0;

    device_run_work(run);
    map_files(run, 64 * MIB, 0, RUN_S);
    builder_push(&run->builder, SEEP_EVENT_UNMAP, BASE, GIB, 0,
                 device_run_tick(RUN_S - 1));
    builder_fold(&run->builder);
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        struct seep_rec_flow *flow =
            &view->shards[view->shard_count - 1].flow[i];

        mapped +=
            atomic_load_explicit(&flow->allocated_bytes, memory_order_relaxed) +
            atomic_load_explicit(&flow->freed_bytes, memory_order_relaxed);
    }
    assert_int_equal(mapped, 0);
}

static void a_limit_of_growth_is_broken_by_files(void **state)
{
    struct device_run *run = *state;
    struct seep_check_measure measure;

    device_run_work(run);
    map_files(run, 64 * MIB, 0, RUN_S);
    add_moments(run, 20 * MIB, 0);
    device_run_report(run);

    seep_check_measure(SEEP_CHECK_GROWTH, SEEP_CHECK_ALL_SPACES, run->report,
                       -1, &measure);
    assert_true(measure.value.low > (double)MIB);
    seep_check_measure(SEEP_CHECK_GROWTH, SEEP_SPACE_FILE, run->report, -1,
                       &measure);
    assert_true(measure.value.low > (double)MIB);
    seep_check_measure(SEEP_CHECK_GROWTH, SEEP_SPACE_HEAP, run->report, -1,
                       &measure);
    assert_true(measure.value.high < (double)MIB);
}

/* Folded, and pending in the ring still. */
static void a_probe_counts_no_files_as_memory(void **state)
{
    struct device_run *run = *state;
    struct seep_vitals vitals;

    device_run_work(run);
    device_run_leak_host(run, 4096);
    map_files(run, 64 * MIB, 0, RUN_S / 2);
    builder_fold(&run->builder);
    builder_push(&run->builder, SEEP_EVENT_MAP, BASE / 2, GIB, file_site(run),
                 device_run_tick(RUN_S - 1));
    builder_exit(&run->builder, device_run_tick(RUN_S));
    builder_write(&run->builder, run->path);
    assert_int_equal(seep_vitals_open(run->path, false, NULL, &vitals), 0);

    assert_int_equal(vitals.live_bytes[SEEP_SPACE_FILE], 500 * 64 * MIB + GIB);
    assert_int_equal(vitals.host_bytes, 1000 * 4096);
    assert_true(vitals.host_growth.known);
    assert_true(
        device_run_is_near(vitals.host_growth.bytes_per_s.estimate, 40960, .1));
}

#define TEST(test)                                           \
    cmocka_unit_test_setup_teardown(test, device_run_set_up, \
                                    device_run_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_mapped_ever_again_are_a_leak_without_a_forecast),
        TEST(mapped_files_are_neither_tracked_nor_private),
        TEST(without_a_file_there_is_no_row_of_files),
        TEST(a_leak_of_memory_comes_before_one_of_files),
        TEST(a_leak_of_memory_is_not_minor_beside_mapped_weights),
        TEST(weights_that_are_mapped_once_are_no_leak),
        TEST(a_mapping_is_no_work),
        TEST(a_limit_of_growth_is_broken_by_files),
        TEST(a_probe_counts_no_files_as_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
