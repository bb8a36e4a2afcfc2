/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PyTorch's cache in a report, from recordings made by hand: tensors that leak
 * in it, a cache that grows by itself, and what is neither.
 */
#include "seep_test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device_run.h"
#include "reader/compare/suppress.h"

#define RUN_S DEVICE_RUN_S
#define MIB DEVICE_RUN_MIB
#define TORCH DEVICE_RUN_TORCH

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

/* 1 MiB of tensors each tenth of a second, in segments of 20 MiB. */
static void leak_tensors(struct device_run *run, const char *module)
{
    device_run_work(run);
    device_run_tensors(run, MIB);
    device_run_segments(run, module, 20 * MIB, 20, RUN_S);
    device_run_ask(run, 0, 512 * MIB, 0);
}

static void assert_tensors_leak(const struct seep_report *report)
{
    const struct seep_report_site *segments = row_of(report, SEEP_SPACE_DEVICE);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->verdict.device, 0);
    assert_int_equal(report->verdict.growing_count, 1);
    assert_true(device_run_is_near(report->verdict.growth_bytes_per_s.estimate,
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
    struct device_run *run = *state;

    leak_tensors(run, TORCH);
    assert_tensors_leak(device_run_report(run));
    assert_true(
        device_run_is_near(run->report->devices[0].tensor_reserved.last_bytes,
                           1000. * (double)MIB, .03));
    assert_true(
        device_run_is_near(run->report->devices[0].tensor_allocated.last_bytes,
                           1010. * (double)MIB, .03));
    /* What is tracked is the segments, not what is in them again. */
    assert_true(device_run_is_near(run->report->devices[0].tracked.last_bytes,
                                   1000. * (double)MIB, .03));
}

static void segments_are_found_by_what_the_cache_says_of_itself(void **state)
{
    struct device_run *run = *state;

    leak_tensors(run, "/opt/app/allocator.so");
    assert_tensors_leak(device_run_report(run));
}

static void without_tensors_segments_are_judged(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_segments(run, TORCH, 20 * MIB, 5, RUN_S);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->sites[0].class, SEEP_CLASS_LEAK);
    assert_false(report->sites[0].backs_tensors);
}

static void a_cache_that_grows_alone_falls_to_pieces(void **state)
{
    static const char *const modules[] = {TORCH, "/opt/app/allocator.so"};

    for (int i = 0; i < 2; i++) {
        struct device_run *run = *state;
        const struct seep_report *report;
        const struct seep_report_site *segments;

        device_run_work(run);
        device_run_tensors(run, 0);
        device_run_segments(run, modules[i], 2 * MIB, 2, RUN_S);
        device_run_ask(run, 0, 0, 0);
        report = device_run_report(run);
        segments = row_of(report, SEEP_SPACE_DEVICE);

        assert_int_equal(report->verdict.class, SEEP_VERDICT_FRAGMENTATION);
        assert_non_null(strstr(report->verdict.reason, "cache on GPU 0"));
        assert_int_equal(report->verdict.device, 0);
        assert_true(
            device_run_is_near(report->verdict.growth_bytes_per_s.estimate,
                               10. * (double)MIB, .06));
        assert_true(report->devices[0].cache_fragments);
        assert_int_equal(segments->class, SEEP_CLASS_BACKING);
        assert_int_equal(report->verdict.forecast.device, 0);
        device_run_tear_down(state);
        device_run_set_up(state);
    }
}

/* The driver did not tell, or was not asked: then blocks do. */
static void a_cache_in_pieces_is_told_by_its_segments_alone(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_tensors(run, 0);
    device_run_segments(run, TORCH, 2 * MIB, 2, RUN_S);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_FRAGMENTATION);
    assert_int_equal(report->device_count, 0);
    assert_true(device_run_is_near(report->verdict.growth_bytes_per_s.estimate,
                                   10. * (double)MIB, .06));
}

/* Too few for a test of blocks: 10 in the run, and no more questions. */
static void few_large_segments_fall_to_pieces_too(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_tensors(run, 0);
    device_run_segments(run, TORCH, 64 * MIB, 100, RUN_S);
    device_run_ask(run, 0, 0, 0);
    for (uint32_t i = 0; i < RUN_S; i++) {
        if (i % 10 != 0) {
            builder_device(&run->builder, 0, i, 0, 0, 0);
        }
    }
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_FRAGMENTATION);
    assert_true(report->devices[0].cache_fragments);
}

static void a_cache_that_has_what_it_needs_is_bounded(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_tensors(run, 0);
    device_run_segments(run, TORCH, 2 * MIB, 2, 35);
    device_run_ask(run, 0, 0, 0);
    report = device_run_report(run);

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
        struct device_run *run = *state;
        const struct seep_report *report;

        device_run_work(run);
        device_run_tensors(run, 0);
        device_run_segments(run, modules[i], 2 * MIB, 2, 4);
        device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
        device_run_ask(run, 0, 0, 0);
        report = device_run_report(run);

        assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
        assert_int_equal(report->sites[0].space, SEEP_SPACE_DEVICE);
        assert_false(report->sites[0].backs_tensors);
        device_run_tear_down(state);
        device_run_set_up(state);
    }
}

/* PyTorch called what called the runtime. */
static void what_pytorch_calls_is_not_its_cache(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;
    const uint64_t frames[] = {
        builder_frame(builder_module(&run->builder, "/opt/libcudart.so", 1), 1),
        builder_frame(builder_module(&run->builder, "/opt/kernels.so", 2), 2),
        builder_frame(builder_module(&run->builder, TORCH, 3), 3),
    };
    uint32_t site = builder_site_of_device(
        &run->builder, builder_stack(&run->builder, frames, 3),
        SEEP_SPACE_DEVICE, 0);

    device_run_work(run);
    device_run_tensors(run, 0);
    device_run_segments(run, TORCH, 2 * MIB, 2, 4);
    for (int i = 0; i < RUN_S * 10; i++) {
        device_run_take(run, site, MIB, i / 10.);
    }
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_false(report->sites[0].backs_tensors);
}

/* 8 MiB of 4 GiB. */
static void a_cache_that_hardly_grows_is_not_in_pieces(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_tensors(run, 0);
    device_run_grow(run, "/opt/app/model.so", 0, 128 * MIB, 0, 4);
    device_run_segments(run, TORCH, 8192, 1, RUN_S);
    device_run_ask(run, 0, 0, 0);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_STEADY);
    assert_false(report->devices[0].cache_fragments);
}

/* Known of the cache only from the middle of the run on: what it held before
 * did not come then. */
static void a_cache_that_is_known_late_did_not_grow_then(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_tensors(run, 0);
    device_run_segments(run, "/opt/app/allocator.so", 20 * MIB, 2, 10);
    device_run_grow(run, "/opt/app/kernels.so", 0, MIB, 0, RUN_S);
    device_run_ask(run, 0, 0, 0);
    for (uint32_t i = 0; i < RUN_S / 2; i++) {
        builder_device(&run->builder, 0, i, 0, 0, 0);
    }
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_false(report->sites[0].backs_tensors);
}

/* In what object ever: by its name. */
static void an_allocator_is_known_by_its_name(void **state)
{
    static const char *const names[] = {
        "c10::cuda::CUDACachingAllocator::raw_alloc(unsigned long)",
        "",
    };

    for (int i = 0; i < 2; i++) {
        struct device_run *run = *state;
        uint64_t frame = builder_code_frame(
            builder_code(&run->builder, SEEP_CODE_PYTHON, "", names[i], 0), 0);
        uint32_t site = builder_site_of_device(
            &run->builder, builder_stack(&run->builder, &frame, 1),
            SEEP_SPACE_DEVICE, 0);

        device_run_work(run);
        device_run_tensors(run, 0);
        for (int k = 0; k < RUN_S * 10; k++) {
            device_run_take(run, site, MIB, k / 10.);
        }
        assert_int_equal(device_run_report(run)->verdict.class,
                         i == 0 ? SEEP_VERDICT_FRAGMENTATION
                                : SEEP_VERDICT_LEAK);
        device_run_tear_down(state);
        device_run_set_up(state);
    }
}

/* What is said of @module is suppressed. */
static const struct seep_report *report_without(struct device_run *run,
                                                const char *module)
{
    struct seep_rules *suppressions = NULL;
    char path[BUILDER_PATH_BYTES];
    FILE *file;

    builder_temporary(path);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "leak:%s\n", module);
    fclose(file);
    assert_int_equal(seep_suppressions_add_file(&suppressions, path, NULL), 0);
    unlink(path);
    run->options.suppressions = suppressions;
    device_run_report(run);
    run->options.suppressions = NULL;
    seep_rules_close(suppressions);
    return run->report;
}

/* Whose tensors may grow, his segments may. */
static void what_tensors_are_suppressed_for_their_segments_are(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    leak_tensors(run, TORCH);
    report = report_without(run, "/opt/app/keep");

    assert_int_equal(report->verdict.class, SEEP_VERDICT_STEADY);
    assert_int_equal(report->verdict.suppressed_count, 1);
    assert_int_equal(row_of(report, SEEP_SPACE_DEVICE)->class,
                     SEEP_CLASS_BACKING);
}

static void segments_may_be_suppressed_as_anything_may(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_tensors(run, 0);
    device_run_segments(run, TORCH, 2 * MIB, 2, RUN_S);
    report = report_without(run, TORCH);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_STEADY);
    assert_int_equal(report->verdict.suppressed_count, 1);
    assert_int_equal(row_of(report, SEEP_SPACE_DEVICE)->class, SEEP_CLASS_LEAK);
}

static void a_small_leak_of_tensors_does_not_excuse_a_cache(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;
    int backing = 0;
    int segments = 0;

    device_run_work(run);
    device_run_tensors(run, 65536);
    device_run_segments(run, TORCH, 2 * MIB, 2, 4); /* and no longer */
    device_run_segments(run, TORCH, 2 * MIB, 2, RUN_S);
    device_run_ask(run, 0, 0, 0);
    report = device_run_report(run);
    for (size_t i = 0; i < report->site_count; i++) {
        backing += report->sites[i].class == SEEP_CLASS_BACKING;
        segments += report->sites[i].backs_tensors;
    }
    assert_int_equal(backing, 1);
    assert_int_equal(segments, 2);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->sites[0].space, SEEP_SPACE_TENSOR);
    assert_int_equal(report->verdict.growing_count, 1);
    assert_true(report->devices[0].cache_fragments);
}

/* Each second one request needs 2 MiB more than the last did, for a moment. */
static void a_cache_that_peaks_make_grow_is_not_in_pieces(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;
    uint32_t site;

    device_run_work(run);
    site = device_run_site(run, "/opt/app/forward", SEEP_SPACE_TENSOR, 0);
    for (int i = 0; i < RUN_S; i++) {
        uint64_t key =
            device_run_take(run, site, (uint64_t)(i + 1) * 2 * MIB, i + .2);

        builder_free(&run->builder, key, device_run_tick(i + .3));
        run->devices[0].allocated[i] = (uint64_t)(i + 1) * 2 * MIB;
    }
    device_run_segments(run, TORCH, 2 * MIB, 10, RUN_S);
    device_run_ask(run, 0, 0, 0);
    report = device_run_report(run);

    assert_int_not_equal(report->verdict.class, SEEP_VERDICT_FRAGMENTATION);
    assert_false(report->devices[0].cache_fragments);
}

static void growth_at_no_call_site_of_a_device_is_not_steady(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    for (int i = 0; i < 200; i++) {
        device_run_take(
            run, device_run_site(run, "/opt/app/many", SEEP_SPACE_DEVICE, 1),
            5 * MIB, i / 2.);
    }
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_INSUFFICIENT);
    assert_int_equal(report->verdict.device, 1);
    assert_non_null(strstr(report->verdict.reason, "device memory"));
}

/* Of the growth a third is at one line, and the rest at many. */
static void what_a_line_leaks_is_not_counted_in_segments_again(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_tensors(run, MIB / 3);
    for (int i = 0; i < 200; i++) {
        device_run_take(run,
                        device_run_site(run, "/opt/many", SEEP_SPACE_TENSOR, 0),
                        10 * MIB / 3, i / 2.);
    }
    device_run_segments(run, TORCH, 20 * MIB, 20, RUN_S);
    device_run_ask(run, 0, 0, 0);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->verdict.growing_count, 1);
    assert_int_equal(report->sites[0].space, SEEP_SPACE_TENSOR);
    assert_int_equal(row_of(report, SEEP_SPACE_DEVICE)->class,
                     SEEP_CLASS_BACKING);
    assert_false(report->devices[0].cache_fragments);
    /* The device fills by all of it. */
    assert_true(device_run_is_near(
        report->devices[0].forecast.seconds.estimate,
        (double)report->devices[0].free_bytes / 10 / (double)MIB, .1));
}

/* Nobody's line grows by itself, and all of them together do. */
static void tensors_of_many_lines_leave_the_segments_to_be_named(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_tensors(run, 0);
    for (int i = 0; i < 200; i++) {
        device_run_take(
            run, device_run_site(run, "/opt/app/many", SEEP_SPACE_TENSOR, 0),
            5 * MIB, i / 2.);
    }
    device_run_segments(run, TORCH, 20 * MIB, 20, RUN_S);
    device_run_ask(run, 0, 0, 0);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->sites[0].space, SEEP_SPACE_DEVICE);
    assert_true(report->sites[0].backs_tensors);
    assert_false(report->devices[0].cache_fragments);
}

/* The end of main() gives back what was kept; the cache keeps its segments. */
static void tensors_that_go_at_the_end_leaked_until_then(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;
    uint32_t site = device_run_site(run, "/opt/app/keep", SEEP_SPACE_TENSOR, 0);
    uint64_t keys[10 * (RUN_S - 2)];
    uint32_t count = sizeof(keys) / sizeof(*keys);

    device_run_work(run);
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = device_run_take(run, site, MIB, i / 10.);
    }
    for (uint32_t i = 0; i < count; i++) {
        builder_free(&run->builder, keys[i], device_run_tick(RUN_S - 1));
    }
    /* Where the cache was missed is another line. */
    device_run_segments(run, TORCH, 20 * MIB, 20, RUN_S - 2);
    device_run_ask(run, 0, 0, 0);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->sites[0].space, SEEP_SPACE_TENSOR);
    assert_int_equal(report->sites[0].class, SEEP_CLASS_LEAK);
    assert_int_equal(row_of(report, SEEP_SPACE_DEVICE)->class,
                     SEEP_CLASS_BACKING);
    assert_true(report->end.judged_to_s < RUN_S - 1);
}

/* 1 MiB each two seconds at one line of Python: by PyTorch's cache, or by a
 * library for itself. */
static uint32_t take_at_a_line(struct device_run *run, const char *module)
{
    uint32_t code = builder_code(&run->builder, SEEP_CODE_PYTHON,
                                 "/opt/app/model.py", "forward", 1);
    const uint64_t frames[] = {
        builder_frame(builder_module(&run->builder, "/opt/libcudart.so", 1), 1),
        builder_frame(builder_module(&run->builder, module, 2), 2),
        builder_code_frame(code, 7),
    };
    uint32_t site = builder_site_of_device(
        &run->builder, builder_stack(&run->builder, frames, 3),
        SEEP_SPACE_DEVICE, 0);

    for (int i = 0; i < RUN_S; i += 2) {
        device_run_take(run, site, MIB, i);
    }
    return site;
}

static void what_a_library_takes_at_a_line_is_beside_its_segments(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;
    int segments = 0;
    int others = 0;

    device_run_work(run);
    device_run_tensors(run, 0);
    take_at_a_line(run, TORCH);
    take_at_a_line(run, "/opt/cuda/libcublas.so.12");
    device_run_ask(run, 0, 0, 0);
    run->options.by = SEEP_BY_LINE;
    report = device_run_report(run);
    for (size_t i = 0; i < report->site_count; i++) {
        if (report->sites[i].space == SEEP_SPACE_DEVICE) {
            assert_int_equal(report->sites[i].stack_count, 1);
            segments += report->sites[i].backs_tensors;
            others += !report->sites[i].backs_tensors;
        }
    }
    assert_int_equal(segments, 1);
    assert_int_equal(others, 1);
}

/* Too few of them were sampled, and the cache has room: its segments stay. */
static void tensors_that_grow_by_pytorchs_own_word_are_not_steady(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_tensors(run, 0);
    device_run_segments(run, TORCH, 512 * MIB, 20, 1);
    for (uint32_t i = 0; i < RUN_S; i++) {
        run->devices[0].allocated[i] = 10 * MIB + i * 2 * MIB;
    }
    device_run_ask(run, 0, 0, 0);
    report = device_run_report(run);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_INSUFFICIENT);
    assert_int_equal(report->verdict.device, 0);
}

/* What PyTorch has handed out is not known, and samples of tensors are 32 MiB
 * apart: nothing less than twenty of them would have shown. */
static void what_could_hide_in_tensors_is_said(void **state)
{
    struct device_run *run = *state;
    const struct seep_report *report;

    device_run_work(run);
    device_run_tensors(run, 0);
    for (uint32_t i = 0; i < RUN_S; i++) {
        builder_moment(&run->builder, i, device_run_tick(i + .5), 100 * MIB, 0);
    }
    atomic_store_explicit(&run->builder.view.header->sample_log2, 19,
                          memory_order_relaxed);
    atomic_store_explicit(&run->builder.view.header->tensor_doublings, 6,
                          memory_order_relaxed);
    report = device_run_report(run);

    assert_int_equal(report->tensor_sample_bytes, 32 * MIB);
    assert_int_equal(report->verdict.class, SEEP_VERDICT_STEADY);
    assert_true(report->verdict.hidden_bytes_per_s >
                .9 * 20 * 32 * (double)MIB / RUN_S);
}

#define WITH(name)                                           \
    cmocka_unit_test_setup_teardown(name, device_run_set_up, \
                                    device_run_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(tensors_leak_and_their_segments_are_apart),
        WITH(segments_are_found_by_what_the_cache_says_of_itself),
        WITH(without_tensors_segments_are_judged),
        WITH(a_cache_that_grows_alone_falls_to_pieces),
        WITH(a_cache_in_pieces_is_told_by_its_segments_alone),
        WITH(what_pytorch_calls_is_not_its_cache),
        WITH(a_cache_that_hardly_grows_is_not_in_pieces),
        WITH(few_large_segments_fall_to_pieces_too),
        WITH(a_cache_that_has_what_it_needs_is_bounded),
        WITH(a_cache_that_is_known_late_did_not_grow_then),
        WITH(an_allocator_is_known_by_its_name),
        WITH(what_tensors_are_suppressed_for_their_segments_are),
        WITH(segments_may_be_suppressed_as_anything_may),
        WITH(what_leaks_beside_the_cache_is_a_leak),
        WITH(a_small_leak_of_tensors_does_not_excuse_a_cache),
        WITH(a_cache_that_peaks_make_grow_is_not_in_pieces),
        WITH(growth_at_no_call_site_of_a_device_is_not_steady),
        WITH(what_a_line_leaks_is_not_counted_in_segments_again),
        WITH(tensors_of_many_lines_leave_the_segments_to_be_named),
        WITH(tensors_that_go_at_the_end_leaked_until_then),
        WITH(what_a_library_takes_at_a_line_is_beside_its_segments),
        WITH(tensors_that_grow_by_pytorchs_own_word_are_not_steady),
        WITH(what_could_hide_in_tensors_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
