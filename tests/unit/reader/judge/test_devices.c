/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GPUs in a report, from recordings made by hand: whose memory grows, and when
 * a device is full.
 */
#include "seep_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "device_run.h"
#include "reader/judge/sites.h"

#define RUN_S DEVICE_RUN_S
#define MIB DEVICE_RUN_MIB
#define GIB DEVICE_RUN_GIB
#define TOTAL_BYTES DEVICE_RUN_TOTAL_BYTES

static void a_leak_of_a_cuda_program_is_one_of_its_device(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;
    const struct seep_report_device *device;
    double rate = 10. * (double)MIB / BUILDER_TICKS_PER_S * 953.674;

    device_run_work(run);
    device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
    device_run_ask(run, 0, 512 * MIB, 0);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->verdict.device, 0);
    assert_int_equal(report->sites[0].space, SEEP_SPACE_DEVICE);
    assert_int_equal(report->sites[0].device, 0);
    assert_false(report->sites[0].backs_tensors);
    assert_true(device_run_is_near(report->verdict.growth_bytes_per_s.estimate,
                                   rate, .05));
    assert_int_equal(report->device_count, 1);
    device = &report->devices[0];
    assert_int_equal(device->ordinal, 0);
    assert_int_equal(device->total_bytes, TOTAL_BYTES);
    assert_int_equal(device->free_bytes, TOTAL_BYTES - 1512 * MIB);
    assert_int_equal(device->low_free_bytes, device->free_bytes);
    assert_true(device->used.last_bytes == 1512. * MIB);
    assert_true(
        device_run_is_near(device->tracked.last_bytes, 1000. * MIB, .02));
    assert_true(device_run_is_near(device->used.slope_bytes_per_s, rate, .05));
    assert_true(
        device_run_is_near(device->tracked.slope_bytes_per_s, rate, .05));
    assert_true(
        device_run_is_near(device->unexplained.last_bytes, 512. * MIB, .04));
    assert_true(fabs(device->unexplained.slope_bytes_per_s) < .02 * rate);
    assert_false(device->pool_reserved.valid || device->graph_used.valid);
    assert_int_equal(device->forecast.answer, SEEP_FORECAST_TIME);
    assert_int_equal(device->forecast.device, 0);
    assert_true(device_run_is_near(device->forecast.seconds.estimate,
                                   (double)device->free_bytes / rate, .05));
    assert_false(device->forecast.by_others);
}

/* By the hash of what the row's stack has, as it was before devices. */
static void ids_change_by_the_device_and_not_without_one(void **state)
{
    struct device_run *run = *state;
    uint32_t stack = device_run_stack(run, "/opt/app/worker", 0x10);
    uint64_t hash = seep_hash_add(SEEP_HASH_SEED, SEEP_SPACE_DEVICE);
    const struct seep_report *report;
    char id[20];

    hash = seep_hash_add(hash, seep_hash_bytes("worker", 6));
    snprintf(id, sizeof(id), "%016llx",
             (unsigned long long)seep_hash_add(hash, 0x10));
    device_run_take(run, builder_site(&run->builder, stack, SEEP_SPACE_DEVICE),
                    3, 1);
    for (uint32_t i = 0; i < 2; i++) {
        device_run_take(
            run,
            builder_site_of_device(&run->builder, stack, SEEP_SPACE_DEVICE, i),
            2 - i, 1);
    }
    report = device_run_report(run);

    assert_int_equal(report->site_count, 3);
    assert_string_equal(report->sites[0].id, id);
    assert_int_equal(report->sites[0].device, -1);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(report->sites[i].device, i - 1);
        assert_string_not_equal(report->sites[i].id, id);
    }
    assert_string_not_equal(report->sites[1].id, report->sites[2].id);
}

static void of_two_devices_the_one_that_grows_is_named(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, 5);
    device_run_grow(run, "/opt/app/kernels.so", 1, MIB, 0, RUN_S);
    device_run_ask(run, 0, 0, 0);
    device_run_ask(run, 1, 0, 0);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->verdict.device, 1);
    assert_int_equal(report->verdict.growing_count, 1);
    assert_int_equal(report->device_count, 2);
    assert_int_equal(report->devices[0].forecast.answer, SEEP_FORECAST_NEVER);
    assert_int_equal(report->devices[1].forecast.answer, SEEP_FORECAST_TIME);
    assert_string_equal(report->verdict.forecast.what, "device");
    assert_int_equal(report->verdict.forecast.device, 1);
}

static void growth_of_both_devices_is_of_neither(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
    device_run_grow(run, "/opt/app/kernels.so", 1, 2 * MIB, 0, RUN_S);
    device_run_ask(run, 0, 0, 0);
    device_run_ask(run, 1, 0, 0);
    report = device_run_report(run);

    assert_int_equal(report->verdict.device, -1);
    assert_int_equal(report->verdict.growing_count, 2);
    assert_true(device_run_is_near(report->devices[1].forecast.seconds.estimate,
                                   report->verdict.forecast.seconds.estimate,
                                   1e-9));
    assert_int_equal(report->verdict.forecast.device, 1);
    assert_true(report->devices[0].forecast.seconds.low >
                report->devices[1].forecast.seconds.high);
}

static void a_neighbour_that_grows_is_no_leak_of_ours(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, 5);
    device_run_ask(run, 0, GIB, 20 * MIB);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_STEADY);
    assert_false(report->verdict.has_growth);
    assert_true(report->devices[0].unexplained.slope_bytes_per_s >
                10. * (double)MIB);
    assert_true(fabs(report->devices[0].tracked.slope_bytes_per_s) < 1);
    /* The device is full soon, whoever it is. */
    assert_int_equal(report->verdict.forecast.answer, SEEP_FORECAST_TIME);
    assert_int_equal(report->verdict.forecast.device, 0);
}

/* The driver was not asked again once the model was there. */
static void a_model_that_was_loaded_does_not_grow(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_grow(run, "/opt/app/kernels.so", 0, 32 * MIB, 0, 4);
    for (uint32_t i = 0; i < 4; i++) {
        builder_device(&run->builder, 0, i, device_run_tick(i + .99),
                       TOTAL_BYTES, TOTAL_BYTES - run->devices[0].held[i]);
    }
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_STEADY);
    assert_int_equal(report->verdict.device, -1);
    assert_int_equal(report->devices[0].forecast.answer, SEEP_FORECAST_UNKNOWN);
    assert_int_equal(report->verdict.forecast.answer, SEEP_FORECAST_NEVER);
    assert_string_not_equal(report->verdict.forecast.what, "device");
}

/* The driver was asked once, in the middle of the load: what came behind it
 * took of what it said is free. */
static void what_calls_took_since_the_last_question_is_used(void **state)
{
    struct device_run *run = *state;
    const struct seep_report_device *device;
    uint32_t site;
    uint64_t key;

    device_run_work(run);
    site = device_run_site(run, "/opt/app/model", SEEP_SPACE_DEVICE, 0);
    device_run_take(run, site, GIB, 1.08);
    builder_device(&run->builder, 0, 1, device_run_tick(1.1), TOTAL_BYTES,
                   TOTAL_BYTES - GIB - 64 * MIB);
    device_run_take(run, site, GIB, 1.2);
    device_run_take(run, device_run_site(run, "/a", SEEP_SPACE_MANAGED, 0), GIB,
                    1.3);
    device_run_take(run, device_run_site(run, "/a", SEEP_SPACE_TENSOR, 0), MIB,
                    1.3);
    key = device_run_take(run, site, GIB, 9);
    builder_free(&run->builder, key, device_run_tick(20));
    device = &device_run_report(run)->devices[0];

    assert_true(device->used.first_bytes == (double)(GIB + 64 * MIB));
    assert_true(device->tracked.first_bytes == (double)GIB);
    assert_true(device->unexplained.first_bytes == 64. * (double)MIB);
    assert_true(device->unexplained.last_bytes == 64. * (double)MIB);
    assert_true(device->tracked.last_bytes == 3. * (double)GIB);
    assert_int_equal(device->free_bytes, TOTAL_BYTES - 3 * GIB - 64 * MIB);
    assert_int_equal(device->low_free_bytes, device->free_bytes);
    assert_int_equal(device->forecast.answer, SEEP_FORECAST_UNKNOWN);
    assert_true(device->peak_bytes == 4. * (double)GIB);
    assert_true(device->peak_s > 9 && device->peak_s < 20);
}

static void a_device_holds_no_more_than_it_has(void **state)
{
    struct device_run *run = *state;
    uint32_t site;

    device_run_work(run);
    site = device_run_site(run, "/opt/app/model", SEEP_SPACE_DEVICE, 0);
    builder_device(&run->builder, 0, 1, device_run_tick(1.1), TOTAL_BYTES, GIB);
    device_run_take(run, site, 2 * GIB, 1.2);
    device_run_report(run);
    assert_int_equal(run->report->devices[0].free_bytes, 0);
    assert_true(run->report->devices[0].used.last_bytes == (double)TOTAL_BYTES);
}

static void a_block_may_be_born_at_any_time(void **state)
{
    struct device_run *run = *state;
    const struct seep_view *view = &run->builder.view;

    device_run_work(run);
    device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, 5);
    device_run_ask(run, 0, 0, 0);
    builder_fold(&run->builder);
    for (uint32_t i = 0; i < view->live_capacity; i++) {
        atomic_store_explicit(&view->live[i].birth_tick, UINT32_MAX - i,
                              memory_order_relaxed);
    }
    device_run_report(run);
    assert_true(run->report->devices[0].tracked.last_bytes ==
                50. * (double)MIB);
}

static void a_pool_that_fills_is_bounded(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_grow(run, "/opt/app/pool.so", 0, MIB, 0, 40);
    device_run_ask(run, 0, 0, 0);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_BOUNDED);
    assert_int_equal(report->devices[0].forecast.answer, SEEP_FORECAST_NEVER);
    assert_int_equal(report->verdict.forecast.answer, SEEP_FORECAST_NEVER);
    assert_string_equal(report->verdict.forecast.what, "ram");
}

/* 0.2 % of 7 GiB is 14 MiB: a model is no measure for the host. */
static void a_leak_of_the_host_is_not_minor_beside_a_model(void **state)
{
    struct device_run *run = *state;

    device_run_work(run);
    device_run_grow(run, "/opt/app/model.so", 0, 180 * MIB, 0, 4);
    device_run_leak_host(run, 4096);
    assert_int_equal(device_run_report(run)->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(run->report->verdict.device, -1);
    assert_true(run->report->verdict.floor_bytes <= 2. * (double)MIB);
    assert_int_equal(run->report->sites[0].space, SEEP_SPACE_HEAP);
}

static void the_limit_that_is_reached_first_wins(void **state)
{
    struct device_run *run = *state;
    const struct seep_report_forecast *forecast;

    device_run_work(run);
    device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
    device_run_ask(run, 0, 6 * GIB, 0);
    device_run_leak_host(run, 65536);
    for (uint32_t i = 0; i < RUN_S; i++) {
        builder_moment(&run->builder, i, device_run_tick(i) + 1,
                       20 * MIB + i * 10 * 65536, 0);
    }
    forecast = &device_run_report(run)->verdict.forecast;

    assert_int_equal(forecast->answer, SEEP_FORECAST_TIME);
    assert_string_equal(forecast->what, "device");
    assert_int_equal(forecast->device, 0);
    /* 1 GiB is left, at 10 MiB per second: the host's leak is no part of it. */
    assert_true(device_run_is_near(
        forecast->seconds.estimate,
        (double)(2 * GIB - 1000 * MIB) / 10 / (double)MIB, .06));
}

static void a_device_that_is_full_later_does_not_win(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
    device_run_leak_host(run, 2 * MIB);
    device_run_ask(run, 0, 0, 0);
    builder_moment(&run->builder, RUN_S - 1, device_run_tick(RUN_S) - 1,
                   2 * GIB, 0);
    report = device_run_report(run);

    assert_string_equal(report->verdict.forecast.what, "ram");
    assert_int_equal(report->verdict.forecast.device, -1);
    assert_int_equal(report->verdict.device, -1);
    assert_true(report->devices[0].forecast.seconds.low >
                report->verdict.forecast.seconds.high);
}

static void a_leak_and_a_neighbour_fill_a_device_together(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
    device_run_ask(run, 0, 2 * GIB, 20 * MIB);
    report = device_run_report(run);

    assert_true(device_run_is_near(report->verdict.growth_bytes_per_s.estimate,
                                   10. * (double)MIB, .06));
    assert_true(device_run_is_near(
        report->devices[0].forecast.seconds.estimate,
        (double)report->devices[0].free_bytes / 30 / (double)MIB, .06));
    assert_true(report->devices[0].forecast.by_others);
}

/* What others give back meanwhile they may not have for ever. */
static void a_leak_fills_a_device_that_others_leave(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
    device_run_ask(run, 0, 2 * GIB, -(10 * MIB));
    report = device_run_report(run);

    assert_true(fabs(report->devices[0].used.slope_bytes_per_s) < (double)MIB);
    assert_int_equal(report->devices[0].forecast.answer, SEEP_FORECAST_TIME);
    assert_true(device_run_is_near(
        report->devices[0].forecast.seconds.estimate,
        (double)report->devices[0].free_bytes / 10 / (double)MIB, .06));
}

static void a_leak_of_the_host_does_not_fill_a_device(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_grow(run, "/opt/app/model.so", 0, MIB, 0, 4);
    device_run_ask(run, 0, 0, 0);
    device_run_leak_host(run, 65536);
    builder_moment(&run->builder, RUN_S - 1, device_run_tick(RUN_S) - 1,
                   90 * MIB, 0);
    report = device_run_report(run);

    assert_int_equal(report->devices[0].forecast.answer, SEEP_FORECAST_NEVER);
    assert_int_equal(report->verdict.forecast.answer, SEEP_FORECAST_TIME);
    assert_string_equal(report->verdict.forecast.what, "ram");
    assert_int_equal(report->verdict.forecast.device, -1);
}

static void tensors_are_in_no_sum(void **state)
{
    (void)state;
    assert_false(seep_sites_space_holds(SEEP_SPACE_TENSOR));
    assert_true(seep_sites_space_is_judged(SEEP_SPACE_TENSOR));
    assert_true(seep_sites_space_holds(SEEP_SPACE_DEVICE));
    assert_true(seep_sites_space_is_judged(SEEP_SPACE_HEAP));
    assert_false(seep_sites_space_is_judged(SEEP_SPACE_IMPORTED));
    assert_false(seep_sites_space_is_judged(SEEP_SPACE_RESERVED));
    assert_false(seep_sites_space_is_judged(SEEP_SPACE_REGISTERED));
}

static void assert_extent(const struct seep_report_extent *extent)
{
    assert_true(isfinite(extent->first_bytes) && extent->first_bytes >= 0);
    assert_true(isfinite(extent->last_bytes) && extent->last_bytes >= 0);
    assert_true(isfinite(extent->slope_bytes_per_s));
    assert_true(isfinite(extent->slope_error));
}

static void assert_device(const struct seep_report_device *device)
{
    assert_in_range(device->ordinal, 0, SEEP_DEVICES_MAX - 1);
    assert_true(device->free_bytes <= device->total_bytes);
    assert_true(device->low_free_bytes <= device->free_bytes);
    assert_extent(&device->used);
    assert_extent(&device->tracked);
    assert_extent(&device->unexplained);
    assert_extent(&device->pool_reserved);
    assert_extent(&device->pool_used);
    assert_extent(&device->graph_reserved);
    assert_extent(&device->graph_used);
    assert_extent(&device->tensor_reserved);
    assert_extent(&device->tensor_allocated);
    assert_true(!isnan(device->forecast.seconds.estimate));
    assert_true(!isnan(device->forecast.seconds.low));
    assert_true(!isnan(device->forecast.seconds.high));
    assert_true(device->forecast.device == -1 ||
                device->forecast.device == (int)device->ordinal);
}

/* Word @field of every moment, or of one in three. */
static void spoil(struct device_run *run, uint32_t field, uint32_t step,
                  uint64_t value)
{
    for (uint32_t i = 0; i < 2 * SEEP_BUCKET_COUNT; i += step) {
        _Atomic uint64_t *words = &run->builder.view.devices[i].tick;

        atomic_store_explicit(&words[field], value, memory_order_relaxed);
    }
}

static void a_moment_of_a_device_may_hold_anything(void **state)
{
    static const uint64_t values[] = {
        0, 1, 127, 95000, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX,
    };
    struct device_run *run = *state;

    device_run_work(run);
    device_run_tensors(run, MIB);
    device_run_segments(run, DEVICE_RUN_TORCH, 20 * MIB, 20, RUN_S);
    device_run_ask(run, 1, 0, 0);
    device_run_report(run);
    for (uint32_t field = 0; field < 10; field++) {
        for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
            device_run_ask(run, 0, 512 * MIB, 0);
            device_run_ask(run, 1, 0, 0);
            spoil(run, field, 1 + 2 * (uint32_t)(i % 2), values[i]);
            device_run_report(run);
            for (size_t k = 0; k < run->report->device_count; k++) {
                assert_device(&run->report->devices[k]);
            }
        }
    }
}

static void a_moment_without_a_total_tells_no_use(void **state)
{
    struct device_run *run = *state;

    device_run_work(run);
    for (uint32_t i = 0; i < RUN_S; i++) {
        builder_device(&run->builder, 0, i, device_run_tick(i + .5), 0, GIB);
    }
    device_run_report(run);
    assert_int_equal(run->report->device_count, 1);
    assert_int_equal(run->report->devices[0].total_bytes, 0);
    assert_int_equal(run->report->devices[0].free_bytes, 0);
    assert_false(run->report->devices[0].used.valid);
    assert_int_equal(run->report->devices[0].forecast.answer,
                     SEEP_FORECAST_UNKNOWN);
}

static void moments_that_go_back_are_left_out(void **state)
{
    struct device_run *run = *state;

    device_run_work(run);
    for (uint32_t i = 0; i < 10; i++) {
        builder_device(&run->builder, 0, i, device_run_tick(50 - i),
                       TOTAL_BYTES, TOTAL_BYTES - (10 - i) * MIB);
    }
    device_run_report(run);
    assert_true(run->report->devices[0].used.first_bytes == 10. * (double)MIB);
    assert_true(run->report->devices[0].used.last_bytes == 10. * (double)MIB);
}

static void a_site_may_be_of_any_device(void **state)
{
    static const uint32_t ordinals[] = {
        7, 8, 1023, 1024, INT32_MAX, UINT32_MAX - 1,
    };
    struct device_run *run = *state;
    uint32_t sites[6];
    uint32_t heap;

    device_run_work(run);
    for (int i = 0; i < 6; i++) {
        sites[i] =
            device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
        run->builder.view.sites[sites[i]].device = ordinals[i] + 1;
    }
    heap = builder_site(&run->builder, device_run_stack(run, "/opt/a", 1),
                        SEEP_SPACE_HEAP);
    run->builder.view.sites[heap].device = 1;
    builder_alloc(&run->builder, run->next, 1, heap, 5);
    device_run_report(run);
    assert_int_equal(run->report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(run->report->verdict.device, -1);
    assert_int_equal(run->report->verdict.growing_count, 6);
    for (size_t i = 0; i < run->report->site_count; i++) {
        const struct seep_report_site *site = &run->report->sites[i];

        assert_in_range(site->device + 1, 0, 1024);
        assert_true(site->space != SEEP_SPACE_HEAP || site->device == -1);
    }
}

/* Of a process that was killed nothing else may tell of its last seconds. */
static void a_run_goes_on_to_the_last_moment_of_a_device(void **state)
{
    struct device_run *run = *state;

    builder_device(&run->builder, 0, 9, device_run_tick(9), TOTAL_BYTES, GIB);
    builder_write(&run->builder, run->path);
    assert_int_equal(seep_report_open(run->path, NULL, NULL, &run->report), 0);
    assert_true(run->report->duration_s > 8.9);
    assert_true(run->report->devices[0].used.last_bytes == 7. * (double)GIB);
}

static void without_a_device_there_is_none(void **state)
{
    struct device_run *run = *state;

    device_run_work(run);
    device_run_report(run);
    assert_int_equal(run->report->device_count, 0);
    assert_int_equal(run->report->verdict.device, -1);
    assert_int_equal(run->report->verdict.forecast.device, -1);
    assert_int_equal(run->report->sites[0].device, -1);
}

#define WITH(name)                                           \
    cmocka_unit_test_setup_teardown(name, device_run_set_up, \
                                    device_run_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_leak_of_a_cuda_program_is_one_of_its_device),
        WITH(ids_change_by_the_device_and_not_without_one),
        WITH(of_two_devices_the_one_that_grows_is_named),
        WITH(growth_of_both_devices_is_of_neither),
        WITH(a_neighbour_that_grows_is_no_leak_of_ours),
        WITH(a_model_that_was_loaded_does_not_grow),
        WITH(what_calls_took_since_the_last_question_is_used),
        WITH(a_device_holds_no_more_than_it_has),
        WITH(a_block_may_be_born_at_any_time),
        WITH(a_pool_that_fills_is_bounded),
        WITH(a_leak_of_the_host_is_not_minor_beside_a_model),
        WITH(the_limit_that_is_reached_first_wins),
        WITH(a_device_that_is_full_later_does_not_win),
        WITH(a_leak_and_a_neighbour_fill_a_device_together),
        WITH(a_leak_fills_a_device_that_others_leave),
        WITH(a_leak_of_the_host_does_not_fill_a_device),
        cmocka_unit_test(tensors_are_in_no_sum),
        WITH(a_moment_of_a_device_may_hold_anything),
        WITH(a_moment_without_a_total_tells_no_use),
        WITH(moments_that_go_back_are_left_out),
        WITH(a_site_may_be_of_any_device),
        WITH(a_run_goes_on_to_the_last_moment_of_a_device),
        WITH(without_a_device_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
