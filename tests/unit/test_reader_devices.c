/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GPUs in a report, from recordings made by hand: whose memory grows, what
 * PyTorch's cache has to do with it, and when a device is full.
 */
#include "seep_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "reader/report.h"
#include "reader/sites.h"
#include "recording_builder.h"

#define RUN_S 100
#define SECONDS(s) ((uint32_t)((s)*BUILDER_TICKS_PER_S))
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define RECORDING_BYTES (8 * MIB)
#define TOTAL_BYTES (8 * GIB)
#define TENTHS (RUN_S * 10)
#define KEY ((uint64_t)1 << 56)
#define TORCH "/opt/torch/lib/libc10_cuda.so"

/* What calls of the process hold of a device, and what PyTorch says. */
struct device {
    uint64_t held[RUN_S]; /* at the end of each second */
    uint64_t reserved[RUN_S];
    uint64_t allocated[RUN_S];
};

struct fixture {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
    struct device devices[2];
    uint64_t next;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    builder_temporary(f->path);
    builder_init(&f->builder, RECORDING_BYTES, true);
    f->next = 0x10000;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    seep_report_close(f->report);
    builder_fini(&f->builder);
    unlink(f->path);
    free(f);
    return 0;
}

/* One entry a path: there is no room for one a site. */
static uint32_t module_of(struct fixture *f, const char *path)
{
    const struct seep_view *view = &f->builder.view;
    uint32_t count =
        atomic_load_explicit(&view->header->module_count, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(seep_view_string(view, view->modules[i].path), path) == 0) {
            return i + 1;
        }
    }
    return builder_module(&f->builder, path, 0xab);
}

static uint32_t stack_in(struct fixture *f, const char *module, uint64_t offset)
{
    uint64_t frame = builder_frame(module_of(f, module), offset);

    return builder_stack(&f->builder, &frame, 1);
}

/* cudaMalloc of the runtime, called by @module, called by the program. */
static uint32_t site_of(struct fixture *f, const char *module,
                        enum seep_space space, uint32_t ordinal)
{
    uint64_t offset = f->next++;
    const uint64_t frames[] = {
        builder_frame(module_of(f, "/opt/libcudart.so.12"), 0x10),
        builder_frame(module_of(f, module), offset),
        builder_frame(module_of(f, "/opt/app/worker"), offset),
    };

    return builder_site_of_device(
        &f->builder, builder_stack(&f->builder, frames, 3), space, ordinal);
}

static uint64_t take(struct fixture *f, uint32_t site, uint64_t bytes,
                     double second)
{
    uint64_t key = KEY | f->next;

    f->next += 0x10000;
    builder_alloc(&f->builder, key, bytes, site, SECONDS(second));
    return key;
}

static void hold(struct fixture *f, uint32_t ordinal, double second,
                 uint64_t bytes)
{
    for (int i = (int)second; i < RUN_S; i++) {
        f->devices[ordinal].held[i] += bytes;
    }
}

/* Requests: what they allocate on the host is given back, and is the clock. */
static void work(struct fixture *f)
{
    uint32_t site = builder_site(&f->builder, stack_in(f, "/opt/app/work", 1),
                                 SEEP_SPACE_HEAP);

    for (int i = 0; i < TENTHS; i++) {
        builder_alloc(&f->builder, f->next, 200000, site, SECONDS(i / 10.));
        builder_free(&f->builder, f->next, SECONDS(i / 10.) + 1);
        f->next += 0x10000;
    }
}

/* @bytes each tenth of a second from @from_s to @to_s, kept. */
static uint32_t grow(struct fixture *f, const char *module, uint32_t ordinal,
                     uint64_t bytes, int from_s, int to_s)
{
    uint32_t site = site_of(f, module, SEEP_SPACE_DEVICE, ordinal);

    for (int i = 10 * from_s; i < 10 * to_s; i++) {
        take(f, site, bytes, i / 10.);
        hold(f, ordinal, i / 10., bytes);
    }
    return site;
}

/* Tensors of 1 MiB: ten live for a second; and each tenth of a second @kept
 * bytes more stay. */
static void make_tensors(struct fixture *f, uint32_t ordinal, uint64_t kept)
{
    uint32_t churn = site_of(f, "/opt/app/forward", SEEP_SPACE_TENSOR, ordinal);
    uint32_t leak = site_of(f, "/opt/app/keep", SEEP_SPACE_TENSOR, ordinal);

    for (int i = 0; i < TENTHS; i++) {
        uint64_t key = take(f, churn, MIB, i / 10.);

        builder_free(&f->builder, key, SECONDS(i / 10. + 1));
        if (kept > 0) {
            take(f, leak, kept, i / 10.);
        }
    }
    for (uint32_t i = 0; i < RUN_S; i++) {
        f->devices[ordinal].allocated[i] = 10 * MIB + (i + 1) * 10 * kept;
    }
}

/* A segment of @bytes every @tenths of a second until @to_s. */
static void take_segments(struct fixture *f, const char *module, uint64_t bytes,
                          int tenths, int to_s)
{
    uint32_t site = site_of(f, module, SEEP_SPACE_DEVICE, 0);

    for (int i = 0; i < 10 * to_s; i += tenths) {
        take(f, site, bytes, i / 10.);
        hold(f, 0, i / 10., bytes);
        for (int k = i / 10; k < RUN_S; k++) {
            f->devices[0].reserved[k] += bytes;
        }
    }
}

/* The driver is asked each second; others hold @other, and @more each second.
 */
static void ask(struct fixture *f, uint32_t ordinal, uint64_t other,
                uint64_t more)
{
    const struct device *device = &f->devices[ordinal];

    for (uint32_t i = 0; i < RUN_S; i++) {
        uint64_t used = device->held[i] + other + i * more;

        builder_device(&f->builder, ordinal, i, SECONDS(i + .99), TOTAL_BYTES,
                       TOTAL_BYTES - used);
        builder_cache(&f->builder, ordinal, i, device->reserved[i],
                      device->allocated[i]);
    }
}

static const struct seep_report *report_of(struct fixture *f)
{
    static const struct seep_report_options options = {.symbols = false};

    builder_fold(&f->builder);
    builder_exit(&f->builder, SECONDS(RUN_S));
    builder_write(&f->builder, f->path);
    seep_report_close(f->report);
    f->report = NULL;
    assert_int_equal(seep_report_open(f->path, &options, NULL, &f->report), 0);
    return f->report;
}

/* The first row of that space; NULL: none. */
static const struct seep_report_site *row_of(const struct seep_report *report,
                                             enum seep_space space)
{
    for (size_t i = 0; i < report->site_count; i++) {
        if (report->sites[i].space == space) {
            return &report->sites[i];
        }
    }
    return NULL;
}

static bool is_near(double value, double expected, double share)
{
    return fabs(value - expected) <= share * fabs(expected);
}

static void a_leak_of_a_cuda_program_is_one_of_its_device(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;
    const struct seep_report_device *device;
    double rate = 10. * (double)MIB / BUILDER_TICKS_PER_S * 953.674;

    work(f);
    grow(f, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
    ask(f, 0, 512 * MIB, 0);
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->verdict.device, 0);
    assert_int_equal(report->sites[0].space, SEEP_SPACE_DEVICE);
    assert_int_equal(report->sites[0].device, 0);
    assert_false(report->sites[0].backs_tensors);
    assert_true(
        is_near(report->verdict.growth_bytes_per_s.estimate, rate, .05));
    assert_int_equal(report->device_count, 1);
    device = &report->devices[0];
    assert_int_equal(device->ordinal, 0);
    assert_int_equal(device->total_bytes, TOTAL_BYTES);
    assert_int_equal(device->free_bytes, TOTAL_BYTES - 1512 * MIB);
    assert_int_equal(device->low_free_bytes, device->free_bytes);
    assert_true(device->used.last_bytes == 1512. * MIB);
    assert_true(is_near(device->tracked.last_bytes, 1000. * MIB, .02));
    assert_true(is_near(device->used.slope_bytes_per_s, rate, .05));
    assert_true(is_near(device->tracked.slope_bytes_per_s, rate, .05));
    assert_true(is_near(device->unexplained.last_bytes, 512. * MIB, .04));
    assert_true(fabs(device->unexplained.slope_bytes_per_s) < .02 * rate);
    assert_false(device->pool_reserved.valid || device->graph_used.valid);
    assert_int_equal(device->forecast.answer, SEEP_FORECAST_TIME);
    assert_int_equal(device->forecast.device, 0);
    assert_true(is_near(device->forecast.seconds.estimate,
                        (double)device->free_bytes / rate, .05));
}

/* By the hash of what the row's stack has, as it was before devices. */
static void ids_change_by_the_device_and_not_without_one(void **state)
{
    struct fixture *f = *state;
    uint32_t stack = stack_in(f, "/opt/app/worker", 0x10);
    uint64_t hash = seep_hash_add(SEEP_HASH_SEED, SEEP_SPACE_DEVICE);
    const struct seep_report *report;
    char id[20];

    hash = seep_hash_add(hash, seep_hash_bytes("worker", 6));
    snprintf(id, sizeof(id), "%016llx",
             (unsigned long long)seep_hash_add(hash, 0x10));
    take(f, builder_site(&f->builder, stack, SEEP_SPACE_DEVICE), 3, 1);
    for (uint32_t i = 0; i < 2; i++) {
        take(f,
             builder_site_of_device(&f->builder, stack, SEEP_SPACE_DEVICE, i),
             2 - i, 1);
    }
    report = report_of(f);

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
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    grow(f, "/opt/app/kernels.so", 0, MIB, 0, 5);
    grow(f, "/opt/app/kernels.so", 1, MIB, 0, RUN_S);
    ask(f, 0, 0, 0);
    ask(f, 1, 0, 0);
    report = report_of(f);

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
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    grow(f, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
    grow(f, "/opt/app/kernels.so", 1, 2 * MIB, 0, RUN_S);
    ask(f, 0, 0, 0);
    ask(f, 1, 0, 0);
    report = report_of(f);

    assert_int_equal(report->verdict.device, -1);
    assert_int_equal(report->verdict.growing_count, 2);
    assert_true(is_near(report->devices[1].forecast.seconds.estimate,
                        report->verdict.forecast.seconds.estimate, 1e-9));
    assert_int_equal(report->verdict.forecast.device, 1);
    assert_true(report->devices[0].forecast.seconds.low >
                report->devices[1].forecast.seconds.high);
}

static void a_neighbour_that_grows_is_no_leak_of_ours(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    grow(f, "/opt/app/kernels.so", 0, MIB, 0, 5);
    ask(f, 0, GIB, 20 * MIB);
    report = report_of(f);

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
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    grow(f, "/opt/app/kernels.so", 0, 32 * MIB, 0, 4);
    for (uint32_t i = 0; i < 4; i++) {
        builder_device(&f->builder, 0, i, SECONDS(i + .99), TOTAL_BYTES,
                       TOTAL_BYTES - f->devices[0].held[i]);
    }
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_STEADY);
    assert_int_equal(report->verdict.device, -1);
    assert_int_equal(report->devices[0].forecast.answer, SEEP_FORECAST_UNKNOWN);
    assert_int_equal(report->verdict.forecast.answer, SEEP_FORECAST_NEVER);
    assert_string_not_equal(report->verdict.forecast.what, "device");
}

static void a_pool_that_fills_is_bounded(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    grow(f, "/opt/app/pool.so", 0, MIB, 0, 40);
    ask(f, 0, 0, 0);
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_BOUNDED);
    assert_int_equal(report->devices[0].forecast.answer, SEEP_FORECAST_NEVER);
}

/* 0.2 % of 7 GiB is 14 MiB: a model is no measure for the host. */
static void a_leak_of_the_host_is_not_minor_beside_a_model(void **state)
{
    struct fixture *f = *state;
    uint32_t site;

    work(f);
    grow(f, "/opt/app/model.so", 0, 180 * MIB, 0, 4);
    site = builder_site(&f->builder, stack_in(f, "/opt/app/leak.so", 1),
                        SEEP_SPACE_HEAP);
    for (int i = 0; i < TENTHS; i++) {
        builder_alloc(&f->builder, f->next, 4096, site, SECONDS(i / 10.));
        f->next += 0x10000;
    }
    assert_int_equal(report_of(f)->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(f->report->verdict.device, -1);
    assert_true(f->report->verdict.floor_bytes <= 2. * (double)MIB);
    assert_int_equal(f->report->sites[0].space, SEEP_SPACE_HEAP);
}

static void the_limit_that_is_reached_first_wins(void **state)
{
    struct fixture *f = *state;
    const struct seep_report_forecast *forecast;
    uint32_t site;

    work(f);
    grow(f, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
    ask(f, 0, 6 * GIB, 0);
    site = builder_site(&f->builder, stack_in(f, "/opt/app/leak.so", 1),
                        SEEP_SPACE_HEAP);
    for (int i = 0; i < TENTHS; i++) {
        builder_alloc(&f->builder, f->next, 65536, site, SECONDS(i / 10.));
        f->next += 0x10000;
    }
    for (uint32_t i = 0; i < RUN_S; i++) {
        builder_moment(&f->builder, i, SECONDS(i) + 1,
                       20 * MIB + i * 10 * 65536, 0);
    }
    forecast = &report_of(f)->verdict.forecast;

    assert_int_equal(forecast->answer, SEEP_FORECAST_TIME);
    assert_string_equal(forecast->what, "device");
    assert_int_equal(forecast->device, 0);
    /* 1 GiB is left, at 10 MiB a second: the host's leak is no part of it. */
    assert_true(is_near(forecast->seconds.estimate,
                        (double)(2 * GIB - 1000 * MIB) / 10 / (double)MIB,
                        .06));
}

static void a_leak_of_the_host_does_not_fill_a_device(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;
    uint32_t site;

    work(f);
    grow(f, "/opt/app/model.so", 0, MIB, 0, 4);
    ask(f, 0, 0, 0);
    site = builder_site(&f->builder, stack_in(f, "/opt/app/leak.so", 1),
                        SEEP_SPACE_HEAP);
    for (int i = 0; i < TENTHS; i++) {
        builder_alloc(&f->builder, f->next, 65536, site, SECONDS(i / 10.));
        f->next += 0x10000;
    }
    builder_moment(&f->builder, RUN_S - 1, SECONDS(RUN_S) - 1, 90 * MIB, 0);
    report = report_of(f);

    assert_int_equal(report->devices[0].forecast.answer, SEEP_FORECAST_NEVER);
    assert_int_equal(report->verdict.forecast.answer, SEEP_FORECAST_TIME);
    assert_string_equal(report->verdict.forecast.what, "ram");
    assert_int_equal(report->verdict.forecast.device, -1);
}

/* 1 MiB of tensors each tenth of a second, in segments of 20 MiB. */
static void leak_tensors(struct fixture *f, const char *module)
{
    work(f);
    make_tensors(f, 0, MIB);
    take_segments(f, module, 20 * MIB, 20, RUN_S);
    ask(f, 0, 512 * MIB, 0);
}

static void assert_tensors_leak(const struct seep_report *report)
{
    const struct seep_report_site *segments = row_of(report, SEEP_SPACE_DEVICE);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->verdict.device, 0);
    assert_int_equal(report->verdict.growing_count, 1);
    assert_true(is_near(report->verdict.growth_bytes_per_s.estimate,
                        10. * (double)MIB, .05));
    assert_int_equal(report->sites[0].space, SEEP_SPACE_TENSOR);
    assert_int_equal(report->sites[0].class, SEEP_CLASS_LEAK);
    assert_string_equal(report->verdict.first_id, report->sites[0].id);
    assert_true(segments->backs_tensors);
    assert_int_equal(segments->class, SEEP_CLASS_BACKING);
    assert_non_null(strstr(segments->class_reason, "tensors"));
    assert_false(report->devices[0].cache_fragments);
}

static void tensors_leak_and_their_segments_are_apart(void **state)
{
    struct fixture *f = *state;

    leak_tensors(f, TORCH);
    assert_tensors_leak(report_of(f));
    assert_true(is_near(f->report->devices[0].tensor_reserved.last_bytes,
                        1000. * (double)MIB, .03));
    assert_true(is_near(f->report->devices[0].tensor_allocated.last_bytes,
                        1010. * (double)MIB, .03));
    /* What is tracked is the segments, not what is in them again. */
    assert_true(is_near(f->report->devices[0].tracked.last_bytes,
                        1000. * (double)MIB, .03));
}

static void segments_are_found_by_what_the_cache_says_of_itself(void **state)
{
    struct fixture *f = *state;

    leak_tensors(f, "/opt/app/allocator.so");
    assert_tensors_leak(report_of(f));
}

static void without_tensors_segments_are_judged(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    take_segments(f, TORCH, 20 * MIB, 5, RUN_S);
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->sites[0].class, SEEP_CLASS_LEAK);
    assert_false(report->sites[0].backs_tensors);
}

static void a_cache_that_grows_alone_falls_to_pieces(void **state)
{
    static const char *const modules[] = {TORCH, "/opt/app/allocator.so"};

    for (int i = 0; i < 2; i++) {
        struct fixture *f = *state;
        const struct seep_report *report;
        const struct seep_report_site *segments;

        work(f);
        make_tensors(f, 0, 0);
        take_segments(f, modules[i], 2 * MIB, 2, RUN_S);
        ask(f, 0, 0, 0);
        report = report_of(f);
        segments = row_of(report, SEEP_SPACE_DEVICE);

        assert_int_equal(report->verdict.class, SEEP_VERDICT_FRAGMENTATION);
        assert_non_null(strstr(report->verdict.reason, "cache of GPU 0"));
        assert_int_equal(report->verdict.device, 0);
        assert_true(is_near(report->verdict.growth_bytes_per_s.estimate,
                            10. * (double)MIB, .06));
        assert_true(report->devices[0].cache_fragments);
        assert_int_equal(segments->class, SEEP_CLASS_BACKING);
        assert_int_equal(report->verdict.forecast.device, 0);
        tear_down(state);
        set_up(state);
    }
}

/* Too few for a test of blocks: 16 in the run. */
static void few_large_segments_fall_to_pieces_too(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    make_tensors(f, 0, 0);
    take_segments(f, TORCH, 64 * MIB, 50, RUN_S);
    ask(f, 0, 0, 0);
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_FRAGMENTATION);
    assert_true(report->devices[0].cache_fragments);
}

static void a_cache_that_has_what_it_needs_is_bounded(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    make_tensors(f, 0, 0);
    take_segments(f, TORCH, 2 * MIB, 2, 35);
    ask(f, 0, 0, 0);
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_BOUNDED);
    assert_false(report->devices[0].cache_fragments);
    assert_int_equal(report->devices[0].forecast.answer, SEEP_FORECAST_NEVER);
}

/* Beside a cache that holds what it held: one is known by its frames, and
 * neither is by what the cache says of itself. */
static void what_leaks_beside_the_cache_is_a_leak(void **state)
{
    static const char *const modules[] = {TORCH, "/opt/app/allocator.so"};

    for (int i = 0; i < 2; i++) {
        struct fixture *f = *state;
        const struct seep_report *report;

        work(f);
        make_tensors(f, 0, 0);
        take_segments(f, modules[i], 2 * MIB, 2, 4);
        grow(f, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
        ask(f, 0, 0, 0);
        report = report_of(f);

        assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
        assert_int_equal(report->sites[0].space, SEEP_SPACE_DEVICE);
        assert_false(report->sites[0].backs_tensors);
        tear_down(state);
        set_up(state);
    }
}

static void a_small_leak_of_tensors_does_not_excuse_a_cache(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    make_tensors(f, 0, 65536);
    take_segments(f, TORCH, 2 * MIB, 2, RUN_S);
    ask(f, 0, 0, 0);
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->sites[0].space, SEEP_SPACE_TENSOR);
    assert_int_equal(report->verdict.growing_count, 1);
    assert_true(report->devices[0].cache_fragments);
}

/* Each second one request needs 2 MiB more than the last did, for a moment. */
static void a_cache_that_peaks_make_grow_is_not_in_pieces(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;
    uint32_t site;

    work(f);
    site = site_of(f, "/opt/app/forward", SEEP_SPACE_TENSOR, 0);
    for (int i = 0; i < RUN_S; i++) {
        uint64_t key = take(f, site, (uint64_t)(i + 1) * 2 * MIB, i + .2);

        builder_free(&f->builder, key, SECONDS(i + .3));
        f->devices[0].allocated[i] = (uint64_t)(i + 1) * 2 * MIB;
    }
    take_segments(f, TORCH, 2 * MIB, 10, RUN_S);
    ask(f, 0, 0, 0);
    report = report_of(f);

    assert_int_not_equal(report->verdict.class, SEEP_VERDICT_FRAGMENTATION);
    assert_false(report->devices[0].cache_fragments);
}

static void growth_at_no_call_site_of_a_device_is_not_steady(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    for (int i = 0; i < 200; i++) {
        take(f, site_of(f, "/opt/app/many", SEEP_SPACE_DEVICE, 1), 5 * MIB,
             i / 2.);
    }
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_INSUFFICIENT);
    assert_int_equal(report->verdict.device, 1);
    assert_non_null(strstr(report->verdict.reason, "device memory"));
}

/* Nobody's line grows by itself, and all of them together do. */
static void tensors_of_many_lines_leave_the_segments_to_be_named(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    make_tensors(f, 0, 0);
    for (int i = 0; i < 200; i++) {
        take(f, site_of(f, "/opt/app/many", SEEP_SPACE_TENSOR, 0), 5 * MIB,
             i / 2.);
    }
    take_segments(f, TORCH, 20 * MIB, 20, RUN_S);
    ask(f, 0, 0, 0);
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->sites[0].space, SEEP_SPACE_DEVICE);
    assert_true(report->sites[0].backs_tensors);
    assert_false(report->devices[0].cache_fragments);
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
static void spoil(struct fixture *f, uint32_t field, uint32_t step,
                  uint64_t value)
{
    for (uint32_t i = 0; i < 2 * SEEP_BUCKET_COUNT; i += step) {
        _Atomic uint64_t *words = &f->builder.view.devices[i].tick;

        atomic_store_explicit(&words[field], value, memory_order_relaxed);
    }
}

static void a_moment_of_a_device_may_hold_anything(void **state)
{
    static const uint64_t values[] = {
        0, 1, 127, 95000, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX,
    };
    struct fixture *f = *state;

    leak_tensors(f, TORCH);
    ask(f, 1, 0, 0);
    report_of(f);
    for (uint32_t field = 0; field < 10; field++) {
        for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
            ask(f, 0, 512 * MIB, 0);
            ask(f, 1, 0, 0);
            spoil(f, field, 1 + 2 * (uint32_t)(i % 2), values[i]);
            report_of(f);
            for (size_t k = 0; k < f->report->device_count; k++) {
                assert_device(&f->report->devices[k]);
            }
        }
    }
}

static void a_moment_without_a_total_tells_no_use(void **state)
{
    struct fixture *f = *state;

    work(f);
    for (uint32_t i = 0; i < RUN_S; i++) {
        builder_device(&f->builder, 0, i, SECONDS(i + .5), 0, GIB);
    }
    report_of(f);
    assert_int_equal(f->report->device_count, 1);
    assert_int_equal(f->report->devices[0].total_bytes, 0);
    assert_int_equal(f->report->devices[0].free_bytes, 0);
    assert_false(f->report->devices[0].used.valid);
    assert_int_equal(f->report->devices[0].forecast.answer,
                     SEEP_FORECAST_UNKNOWN);
}

static void moments_that_go_back_are_left_out(void **state)
{
    struct fixture *f = *state;

    work(f);
    for (uint32_t i = 0; i < 10; i++) {
        builder_device(&f->builder, 0, i, SECONDS(50 - i), TOTAL_BYTES,
                       TOTAL_BYTES - (10 - i) * MIB);
    }
    report_of(f);
    assert_true(f->report->devices[0].used.first_bytes == 10. * (double)MIB);
    assert_true(f->report->devices[0].used.last_bytes == 10. * (double)MIB);
}

static void a_site_may_be_of_any_device(void **state)
{
    static const uint32_t ordinals[] = {
        7, 8, 1023, 1024, INT32_MAX, UINT32_MAX - 1,
    };
    struct fixture *f = *state;
    uint32_t sites[6];
    uint32_t heap;

    work(f);
    for (int i = 0; i < 6; i++) {
        sites[i] = grow(f, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
        f->builder.view.sites[sites[i]].device = ordinals[i] + 1;
    }
    heap = builder_site(&f->builder, stack_in(f, "/opt/a", 1), SEEP_SPACE_HEAP);
    f->builder.view.sites[heap].device = 1;
    builder_alloc(&f->builder, f->next, 1, heap, 5);
    report_of(f);
    assert_int_equal(f->report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(f->report->verdict.device, -1);
    assert_int_equal(f->report->verdict.growing_count, 6);
    for (size_t i = 0; i < f->report->site_count; i++) {
        const struct seep_report_site *site = &f->report->sites[i];

        assert_in_range(site->device + 1, 0, 1024);
        assert_true(site->space != SEEP_SPACE_HEAP || site->device == -1);
    }
}

static void without_a_device_there_is_none(void **state)
{
    struct fixture *f = *state;

    work(f);
    report_of(f);
    assert_int_equal(f->report->device_count, 0);
    assert_int_equal(f->report->verdict.device, -1);
    assert_int_equal(f->report->verdict.forecast.device, -1);
    assert_int_equal(f->report->sites[0].device, -1);
}

#define WITH(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_leak_of_a_cuda_program_is_one_of_its_device),
        WITH(ids_change_by_the_device_and_not_without_one),
        WITH(of_two_devices_the_one_that_grows_is_named),
        WITH(growth_of_both_devices_is_of_neither),
        WITH(a_neighbour_that_grows_is_no_leak_of_ours),
        WITH(a_model_that_was_loaded_does_not_grow),
        WITH(a_pool_that_fills_is_bounded),
        WITH(a_leak_of_the_host_is_not_minor_beside_a_model),
        WITH(the_limit_that_is_reached_first_wins),
        WITH(a_leak_of_the_host_does_not_fill_a_device),
        WITH(tensors_leak_and_their_segments_are_apart),
        WITH(segments_are_found_by_what_the_cache_says_of_itself),
        WITH(without_tensors_segments_are_judged),
        WITH(a_cache_that_grows_alone_falls_to_pieces),
        WITH(few_large_segments_fall_to_pieces_too),
        WITH(a_cache_that_has_what_it_needs_is_bounded),
        WITH(what_leaks_beside_the_cache_is_a_leak),
        WITH(a_small_leak_of_tensors_does_not_excuse_a_cache),
        WITH(a_cache_that_peaks_make_grow_is_not_in_pieces),
        WITH(growth_at_no_call_site_of_a_device_is_not_steady),
        WITH(tensors_of_many_lines_leave_the_segments_to_be_named),
        cmocka_unit_test(tensors_are_in_no_sum),
        WITH(a_moment_of_a_device_may_hold_anything),
        WITH(a_moment_without_a_total_tells_no_use),
        WITH(moments_that_go_back_are_left_out),
        WITH(a_site_may_be_of_any_device),
        WITH(without_a_device_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
