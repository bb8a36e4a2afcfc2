/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a report says of the process as a whole, from a recording to the
 * verdict: marks of the user, the balance of moments and looks, the forecast.
 */
#include "seep_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/layout.h"
#include "reader/compare/suppress.h"
#include "reader/process/sample.h"
#include "reader/report/report.h"
#include "recording_builder.h"

#define RUN_S 100
#define SECONDS(s) ((uint32_t)((s)*BUILDER_TICKS_PER_S))
#define MIB ((uint64_t)1 << 20)
#define BLOCK_BYTES 8192

struct fixture {
    char path[BUILDER_PATH_BYTES];
    char samples_path[80];
    char rules_path[80];
    struct recording_builder builder;
    struct seep_report_options options;
    struct seep_report *report;
    struct seep_rules *suppressions;
    struct seep_rules *known;
    uint64_t next; /* address */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    builder_temporary(f->path);
    snprintf(f->samples_path, sizeof(f->samples_path), "%s%s", f->path,
             SEEP_EXTERNAL_SUFFIX);
    snprintf(f->rules_path, sizeof(f->rules_path), "%s.rules", f->path);
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, true);
    f->next = 0x10000;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    seep_report_close(f->report);
    seep_rules_close(f->suppressions);
    seep_rules_close(f->known);
    builder_fini(&f->builder);
    unlink(f->path);
    unlink(f->samples_path);
    unlink(f->rules_path);
    free(f);
    return 0;
}

static uint32_t site_in(struct fixture *f, const char *module)
{
    uint64_t frame =
        builder_frame(builder_module(&f->builder, module, 0xab), 0x10);

    return builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                        SEEP_SPACE_HEAP);
}

/* One block of 8 KiB every @period, for ever. */
static void leak(struct fixture *f, const char *module, double period)
{
    uint32_t site = site_in(f, module);

    for (double second = 0; second < RUN_S; second += period) {
        builder_alloc(&f->builder, f->next, BLOCK_BYTES, site, SECONDS(second));
        f->next += 0x10000;
    }
}

/* Work that is given back at once: a clock, and nothing live. */
static void work(struct fixture *f)
{
    uint32_t site = site_in(f, "/opt/app/work");

    for (double second = 0; second < RUN_S; second += .1) {
        builder_alloc(&f->builder, f->next, 200000, site, SECONDS(second));
        builder_free(&f->builder, f->next, SECONDS(second) + 1);
    }
}

/* A moment a second: @base and @mib_per_s more. */
static void take_moments(struct fixture *f, double mib_per_s)
{
    for (uint32_t i = 0; i < RUN_S; i++) {
        builder_moment(&f->builder, i, SECONDS(i) + 1,
                       20 * MIB + (uint64_t)(mib_per_s * i * (double)MIB), 0);
    }
}

/* Of what has not ended in order, unless that was written before. */
static const struct seep_report *report_as_is(struct fixture *f)
{
    builder_write(&f->builder, f->path);
    seep_report_close(f->report);
    f->report = NULL;
    f->options.suppressions = f->suppressions;
    f->options.known = f->known;
    assert_int_equal(seep_report_open(f->path, &f->options, NULL, &f->report),
                     0);
    return f->report;
}

static const struct seep_report *report_of(struct fixture *f)
{
    builder_exit(&f->builder, SECONDS(RUN_S));
    return report_as_is(f);
}

static void suppress(struct fixture *f, const char *rules)
{
    FILE *file = fopen(f->rules_path, "w");

    assert_non_null(file);
    fputs(rules, file);
    fclose(file);
    assert_int_equal(
        seep_suppressions_add_file(&f->suppressions, f->rules_path, NULL), 0);
}

static void a_suppressed_leak_stands_last_and_is_no_leak(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    leak(f, "/opt/app/cache.so", .1);
    assert_int_equal(report_of(f)->verdict.class, SEEP_VERDICT_LEAK);
    suppress(f, "leak:cache.so\n");
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_STEADY);
    assert_int_equal(report->verdict.suppressed_count, 1);
    assert_true(report->verdict.suppressed_bytes_per_s > 50000);
    assert_int_equal(report->site_count, 2);
    assert_int_equal(report->sites[1].class, SEEP_CLASS_LEAK);
    assert_non_null(report->sites[1].suppressed_by);
}

static void a_second_leak_is_one_though_the_first_is_suppressed(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    leak(f, "/opt/app/cache.so", .1);
    leak(f, "/opt/app/handler.so", .2);
    suppress(f, "leak:cache.so\n");
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->verdict.growing_count, 1);
    assert_true(report->verdict.first_share == 1);
    assert_null(report->sites[0].suppressed_by);
    assert_non_null(report->sites[2].suppressed_by);
}

/* 4 MiB at once, a third into the run. */
static void load(struct fixture *f, const char *module)
{
    uint32_t site = site_in(f, module);

    for (int i = 0; i < 512; i++) {
        builder_alloc(&f->builder, f->next, BLOCK_BYTES, site,
                      SECONDS(RUN_S / 3.0) + (uint32_t)i);
        f->next += 0x10000;
    }
}

static void how_many_are_shown_changes_no_verdict(void **state)
{
    struct fixture *f = *state;

    work(f);
    load(f, "/opt/app/first.so");
    load(f, "/opt/app/second.so");
    assert_int_equal(report_of(f)->verdict.class, SEEP_VERDICT_BOUNDED);
    suppress(f, "leak:first.so\nleak:second.so\n");
    assert_int_equal(report_of(f)->verdict.class, SEEP_VERDICT_STEADY);
    f->options.site_limit = 1;
    assert_int_equal(report_of(f)->verdict.class, SEEP_VERDICT_STEADY);
}

/* It holds 8 MiB at the end. */
static void below_a_bound_that_was_named_it_fills(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    leak(f, "/opt/app/cache.so", .1);
    assert_int_equal(seep_known_add(&f->known, "cache.so", 16 * MIB), 0);
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_BOUNDED);
    assert_true(report->verdict.filling);
    assert_int_equal(report->verdict.known_count, 1);
    assert_int_equal(report->sites[0].class, SEEP_CLASS_WARMING);
    assert_int_equal(report->sites[0].known_bound_bytes, 16 * MIB);
    assert_non_null(strstr(report->sites[0].class_reason, "bound"));
    assert_int_equal(report->verdict.forecast.answer, SEEP_FORECAST_NEVER);
}

/* The machine has 8 GiB. */
static void a_bound_that_memory_ends_before_is_no_never(void **state)
{
    struct fixture *f = *state;

    work(f);
    leak(f, "/opt/app/cache.so", .1);
    assert_int_equal(seep_known_add(&f->known, "cache.so", 4096 * MIB), 0);
    assert_int_equal(report_of(f)->verdict.class, SEEP_VERDICT_BOUNDED);
    assert_int_equal(f->report->verdict.forecast.answer, SEEP_FORECAST_NEVER);
    seep_rules_close(f->known);
    f->known = NULL;
    assert_int_equal(seep_known_add(&f->known, "cache.so", 16384 * MIB), 0);
    assert_int_equal(report_of(f)->verdict.forecast.answer,
                     SEEP_FORECAST_UNKNOWN);
}

static void beyond_a_bound_that_was_named_it_is_a_leak(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    leak(f, "/opt/app/cache.so", .1);
    assert_int_equal(seep_known_add(&f->known, "cache.so", 4 * MIB), 0);
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->verdict.known_count, 0);
    assert_non_null(strstr(report->sites[0].class_reason, "beyond"));
}

static void what_may_leak_is_named_whatever_the_limit(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    leak(f, "/opt/app/a.so", .1);
    leak(f, "/opt/app/b.so", .1);
    leak(f, "/opt/app/c.so", .1);
    f->options.site_limit = 1;
    report = report_of(f);

    assert_int_equal(report->site_count, 3);
    assert_int_equal(report->site_total, 4);
    assert_int_equal(report->sites[2].frame_count, 1);
    assert_int_equal(report->verdict.growing_count, 3);
}

/* 80 KiB per second, 8 GiB of RAM less what is resident. */
static void a_leak_has_a_forecast(void **state)
{
    struct fixture *f = *state;
    const struct seep_report_forecast *forecast;
    double headroom = 8. * 1024 * (double)MIB - 20 * (double)MIB;

    work(f);
    leak(f, "/opt/app/handler.so", .1);
    take_moments(f, .078);
    forecast = &report_of(f)->verdict.forecast;

    assert_int_equal(forecast->answer, SEEP_FORECAST_TIME);
    assert_string_equal(forecast->what, "ram");
    assert_true(fabs(forecast->seconds.estimate / (headroom / 81920) - 1) <
                .05);
    assert_true(forecast->seconds.low < forecast->seconds.estimate);
    assert_true(forecast->seconds.high > forecast->seconds.estimate);
}

/* It is kept, and no page of it is touched: nobody knows when that ends. */
static void a_leak_that_fills_no_page_foretells_nothing(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    leak(f, "/opt/app/handler.so", .1);
    take_moments(f, 0);
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->verdict.forecast.answer, SEEP_FORECAST_UNKNOWN);
}

static void resident_memory_that_nobody_holds_is_unexplained(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    work(f);
    take_moments(f, 1);
    report = report_of(f);

    assert_int_equal(report->verdict.class, SEEP_VERDICT_UNEXPLAINED);
    assert_true(fabs(report->verdict.growth_bytes_per_s.estimate / (double)MIB -
                     1) < .05);
    assert_int_equal(report->verdict.forecast.answer, SEEP_FORECAST_TIME);
    assert_true(report->memory.unexplained.last_bytes > 100 * (double)MIB);
}

static void what_malloc_keeps_in_pages_is_retention(void **state)
{
    struct fixture *f = *state;

    work(f);
    take_moments(f, 1);
    for (uint32_t i = 0; i < RUN_S; i += 10) {
        struct seep_rec_moment *moment = &f->builder.view.timeline[i];

        atomic_store_explicit(&moment->allocator_allocated_bytes, MIB,
                              memory_order_relaxed);
        atomic_store_explicit(&moment->allocator_resident_bytes, (1 + i) * MIB,
                              memory_order_relaxed);
        atomic_store_explicit(&moment->allocator_free_chunks, 4,
                              memory_order_relaxed);
    }
    assert_int_equal(report_of(f)->verdict.class, SEEP_VERDICT_RETENTION);
    assert_true(f->report->memory.allocator_reported);
    assert_int_equal(f->report->memory.allocator_free_chunks, 4);
}

static void add_sample(struct seep_external_samples *samples, double t_s,
                       uint64_t grown)
{
    struct seep_external_sample sample = {
        .t_s = t_s,
        .rss_bytes = 20 * MIB + grown,
        .anonymous_bytes = 16 * MIB + grown,
        .shared_bytes = 4 * MIB,
        .cgroup_bytes = 100 * MIB + grown,
        .cgroup_limit_bytes = 1024 * MIB,
        .available_bytes = 2048 * MIB,
        .mappings = calloc(1, sizeof(struct seep_external_mapping)),
        .mapping_count = 1,
    };

    sample.mappings[0] = (struct seep_external_mapping){
        .start = 0x7f0000000000,
        .end = 0x7f0000000000 + 256 * MIB,
        .rss_bytes = MIB + grown,
        .anonymous_bytes = MIB + grown,
        .name = strdup(""),
    };
    assert_int_equal(seep_external_samples_add(samples, &sample), 0);
}

/* A process that restricted itself takes no moments. */
static void looks_stand_in_for_moments(void **state)
{
    struct fixture *f = *state;
    struct seep_external_samples samples = {.samples = NULL};
    const struct seep_report *report;

    work(f);
    for (uint32_t i = 1; i < 40; i++) {
        add_sample(&samples, i * 2.5, i * 4 * MIB);
    }
    builder_write(&f->builder, f->path);
    assert_int_equal(seep_external_samples_write(f->path, &samples), 0);
    seep_external_samples_fini(&samples);
    report = report_of(f);

    assert_true(report->memory.has_samples);
    assert_true(report->memory.valid);
    assert_int_equal(report->memory.available_bytes, 2048 * MIB);
    assert_int_equal(report->memory.cgroup_limit_bytes, 1024 * MIB);
    assert_int_equal(report->memory.mapping_count, 1);
    assert_int_equal(report->memory.mappings[0].start, 0x7f0000000000);
    assert_false(report->memory.mappings[0].tracked);
    assert_int_equal(report->verdict.class, SEEP_VERDICT_UNEXPLAINED);
    assert_string_equal(report->verdict.forecast.what, "cgroup");
    assert_int_equal(report->verdict.forecast.used_bytes, 256 * MIB);
}

/* Without a call that is recorded nothing else tells of the rest. */
static void who_did_not_end_in_order_lived_as_long_as_it_was_seen(void **state)
{
    struct fixture *f = *state;
    struct seep_external_samples samples = {.samples = NULL};

    work(f);
    add_sample(&samples, 150, 0);
    builder_write(&f->builder, f->path);
    assert_int_equal(seep_external_samples_write(f->path, &samples), 0);
    seep_external_samples_fini(&samples);
    assert_true(fabs(report_as_is(f)->life_s - 150) < .1);
    assert_true(fabs(f->report->duration_s - 150) < .1);
    assert_true(fabs(report_of(f)->life_s - RUN_S) < .1);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH(a_suppressed_leak_stands_last_and_is_no_leak),
        WITH(a_second_leak_is_one_though_the_first_is_suppressed),
        WITH(how_many_are_shown_changes_no_verdict),
        WITH(below_a_bound_that_was_named_it_fills),
        WITH(a_bound_that_memory_ends_before_is_no_never),
        WITH(beyond_a_bound_that_was_named_it_is_a_leak),
        WITH(what_may_leak_is_named_whatever_the_limit),
        WITH(a_leak_has_a_forecast),
        WITH(a_leak_that_fills_no_page_foretells_nothing),
        WITH(resident_memory_that_nobody_holds_is_unexplained),
        WITH(what_malloc_keeps_in_pages_is_retention),
        WITH(looks_stand_in_for_moments),
        WITH(who_did_not_end_in_order_lived_as_long_as_it_was_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
