/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports of recordings that were made by hand: is what was put in found? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/layout.h"
#include "reader/report/report.h"
#include "recording_builder.h"

#define SECONDS(s) ((uint32_t)((s)*BUILDER_TICKS_PER_S))
#define SMALL SEEP_LAYOUT_LEAST_BYTES
#define MIB 1048576.0

struct fixture {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
    uint32_t module;
};

static int setup_exact(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    builder_temporary(f->path);
    builder_init(&f->builder, SMALL, true);
    f->module = builder_module(&f->builder, "/opt/app/worker", 0xab);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    seep_report_close(f->report);
    builder_fini(&f->builder);
    unlink(f->path);
    free(f);
    return 0;
}

static uint32_t site_at(struct fixture *f, uint64_t offset,
                        enum seep_space space)
{
    uint64_t frame = builder_frame(f->module, offset);

    return builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                        space);
}

static const struct seep_report *report_of(struct fixture *f)
{
    static const struct seep_report_options options = {.symbols = false};

    builder_write(&f->builder, f->path);
    seep_report_close(f->report);
    f->report = NULL;
    assert_int_equal(seep_report_open(f->path, &options, NULL, &f->report), 0);
    return f->report;
}

static uint64_t counter_of(const struct seep_report *report, const char *name)
{
    for (size_t i = 0; i < report->counter_count; i++) {
        if (strcmp(report->counters[i].name, name) == 0) {
            return report->counters[i].value;
        }
    }
    fail_msg("no counter %s", name);
    return 0;
}

static void a_freed_block_is_not_live(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    const struct seep_report *report;

    builder_alloc(&f->builder, 0x1000, 100, site, 10);
    builder_alloc(&f->builder, 0x2000, 50, site, 20);
    builder_fold(&f->builder); /* a peak is what a fold saw */
    builder_free(&f->builder, 0x1000, 30);
    builder_fold(&f->builder);
    builder_exit(&f->builder, 100);
    report = report_of(f);

    assert_int_equal(report->site_count, 1);
    assert_int_equal(report->sites[0].live_bytes, 50);
    assert_int_equal(report->sites[0].allocated_bytes, 150);
    assert_int_equal(report->sites[0].freed_bytes, 100);
    assert_true(report->sites[0].live_count == 1);
    assert_true(report->sites[0].live_bytes_error == 0);
    assert_int_equal(report->sites[0].peak_bytes, 150);
    assert_int_equal(report->sites[0].largest_bytes, 100);
    assert_int_equal(report->pending_events, 0);
    assert_true(report->exact);
    assert_int_equal(report->state, SEEP_STATE_EXITED);
}

static void events_that_were_pushed_and_not_folded_count(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    const struct seep_report *report;

    builder_alloc(&f->builder, 0x1000, 100, site, 10);
    builder_alloc(&f->builder, 0x2000, 50, site, 20);
    builder_free(&f->builder, 0x1000, 30);
    report = report_of(f);

    assert_int_equal(report->pending_events, 3);
    assert_int_equal(report->sites[0].live_bytes, 50);
}

/* The writer died inside: the last event may be half applied. */
static void a_site_with_an_odd_lock_is_torn(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    const struct seep_report *report;

    builder_alloc(&f->builder, 0x1000, 100, site, 10);
    builder_fold(&f->builder);
    atomic_store_explicit(&f->builder.view.sites[site].lock, 7,
                          memory_order_relaxed);
    builder_exit(&f->builder, 100);
    report = report_of(f);

    assert_int_equal(report->torn_sites, 1);
    assert_true(report->sites[0].torn);
    assert_false(report->exact);
}

static void series_points_add_up_to_the_live_bytes(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    const struct seep_report *report;
    const struct seep_report_site *seen;

    for (uint32_t i = 0; i < 200; i++) {
        builder_alloc(&f->builder, 0x1000 * (i + 1), 64, site, SECONDS(i / 4.));
        if (i >= 20) {
            builder_free(&f->builder, 0x1000 * (i - 19), SECONDS(i / 4.));
        }
    }
    builder_fold(&f->builder);
    builder_exit(&f->builder, SECONDS(60));
    report = report_of(f);
    seen = &report->sites[0];

    assert_true(seen->point_count >= 60);
    assert_int_equal(seen->series[seen->point_count - 1].live_bytes, 20 * 64);
    assert_int_equal(seen->live_bytes, 20 * 64);
    for (size_t i = 0; i < seen->point_count; i++) {
        assert_true(seen->series[i].low_bytes <= seen->series[i].live_bytes);
    }
    assert_true(fabs(seen->series[seen->point_count - 1].start_s +
                     seen->series[seen->point_count - 1].width_s - 60) < .2);
}

/* Three points of 64 buckets: it began, it changed, the run ended. */
static void a_bucket_in_which_nothing_happened_is_left_out(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    const struct seep_report_site *seen;

    builder_alloc(&f->builder, 0x1000, 100, site, SECONDS(5));
    builder_alloc(&f->builder, 0x2000, 30, site, SECONDS(50));
    builder_free(&f->builder, 0x1000, SECONDS(50.01));
    builder_fold(&f->builder);
    builder_exit(&f->builder, SECONDS(100));
    seen = &report_of(f)->sites[0];

    assert_int_equal(seen->point_count, 3);
    assert_true(seen->series[0].start_s <= 5);
    assert_int_equal(seen->series[0].live_bytes, 100);
    assert_true(fabs(seen->series[1].start_s - 50) < 1.1);
    assert_int_equal(seen->series[1].live_bytes, 30);
    assert_int_equal(seen->series[1].freed_bytes, 100);
    assert_int_equal(seen->series[2].live_bytes, 30);
    assert_int_equal(seen->series[2].low_bytes, 30);
    assert_true(fabs(seen->series[2].start_s + seen->series[2].width_s - 100) <
                .2);
}

static void survivors_stand_in_the_tenth_of_their_birth(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    const struct seep_report *report;

    builder_alloc(&f->builder, 0x1000, 100, site, SECONDS(5));
    builder_alloc(&f->builder, 0x2000, 30, site, SECONDS(95));
    builder_alloc(&f->builder, 0x3000, 9, site, SECONDS(95));
    builder_exit(&f->builder, SECONDS(100));
    report = report_of(f);

    assert_true(report->sites[0].window_bytes[0] == 100);
    assert_true(report->sites[0].window_bytes[9] == 39);
    assert_true(report->sites[0].window_bytes[5] == 0);
}

/* 100 s in which @site keeps one in @one_in of 4 KiB blocks, ten a second. */
static void run_leak(struct fixture *f, uint32_t site, uint32_t seconds)
{
    for (uint32_t i = 0; i < 10 * seconds; i++) {
        builder_alloc(&f->builder, 0x10000 + UINT64_C(0x10000) * i, 4096, site,
                      SECONDS(i / 10.));
    }
}

static void what_every_tenth_keeps_is_a_leak(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    const struct seep_report *report;
    const struct seep_report_site *seen;

    run_leak(f, site, 100);
    builder_exit(&f->builder, SECONDS(100));
    report = report_of(f);
    seen = &report->sites[0];

    assert_string_equal(seep_class_name(seen->class), "leak");
    assert_true(seen->has_growth);
    assert_true(seen->growth_bytes_per_s.low <= 40960);
    assert_true(seen->growth_bytes_per_s.high >= 40960);
    assert_true(fabs(seen->growth_bytes_per_s.estimate - 40960) < 2000);
    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
}

static void a_short_run_is_no_evidence(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    const struct seep_report *report;

    run_leak(f, site, 20);
    builder_exit(&f->builder, SECONDS(20));
    report = report_of(f);

    assert_string_equal(seep_class_name(report->sites[0].class),
                        "insufficient-data");
    assert_false(report->sites[0].has_growth);
    assert_int_equal(report->verdict.class, SEEP_VERDICT_INSUFFICIENT);
    assert_non_null(strstr(report->verdict.reason, "30 s"));
}

/* Half of them, and young: what gets old stays. */
static void a_leak_whose_blocks_also_die_is_one_all_the_same(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    const struct seep_report *report;

    for (uint32_t i = 0; i < 1000; i++) {
        builder_alloc(&f->builder, 0x10000 + UINT64_C(0x10000) * i, 4096, site,
                      SECONDS(i / 10.));
        if (i % 2 == 0) {
            builder_free(&f->builder, 0x10000 + UINT64_C(0x10000) * i,
                         SECONDS(i / 10.) + 1);
        }
    }
    builder_exit(&f->builder, SECONDS(100));
    report = report_of(f);

    assert_string_equal(seep_class_name(report->sites[0].class), "leak");
    assert_true(report->sites[0].has_growth);
}

static void what_is_given_back_is_no_leak(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    const struct seep_report *report;

    for (uint32_t i = 0; i < 1000; i++) {
        builder_alloc(&f->builder, 0x10000 + UINT64_C(0x10000) * i, 40960, site,
                      SECONDS(i / 10.));
        if (i >= 30) {
            builder_free(&f->builder, 0x10000 + UINT64_C(0x10000) * (i - 30),
                         SECONDS(i / 10.));
        }
    }
    builder_exit(&f->builder, SECONDS(100));
    report = report_of(f);

    assert_int_not_equal(report->sites[0].class, SEEP_CLASS_LEAK);
    assert_int_not_equal(report->sites[0].class, SEEP_CLASS_SUSPECT);
    assert_int_equal(report->verdict.class, SEEP_VERDICT_STEADY);
}

static void growth_below_the_floor_is_minor(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    const struct seep_report *report;

    for (uint32_t i = 0; i < 1000; i++) {
        builder_alloc(&f->builder, 0x10000 + UINT64_C(0x10000) * i, 64, site,
                      SECONDS(i / 10.));
    }
    builder_exit(&f->builder, SECONDS(100));
    report = report_of(f);

    assert_string_equal(seep_class_name(report->sites[0].class), "minor");
    assert_int_equal(report->verdict.class, SEEP_VERDICT_STEADY);
}

static void the_leak_stands_before_what_is_larger(void **state)
{
    struct fixture *f = *state;
    uint32_t big = site_at(f, 0x10, SEEP_SPACE_HEAP);
    uint32_t leak = site_at(f, 0x20, SEEP_SPACE_HEAP);
    const struct seep_report *report;

    builder_alloc(&f->builder, 0x100, UINT64_C(1) << 28, big, 5);
    run_leak(f, leak, 100);
    builder_exit(&f->builder, SECONDS(100));
    report = report_of(f);

    assert_int_equal(report->site_count, 2);
    assert_int_equal(report->sites[0].class, SEEP_CLASS_LEAK);
    assert_int_equal(report->sites[1].live_bytes, UINT64_C(1) << 28);
}

static void spaces_are_summed_apart(void **state)
{
    struct fixture *f = *state;
    uint32_t heap = site_at(f, 0x10, SEEP_SPACE_HEAP);
    uint32_t mapped = site_at(f, 0x20, SEEP_SPACE_MAPPED);
    const struct seep_report *report;

    builder_alloc(&f->builder, 0x1000, 100, heap, 10);
    builder_push(&f->builder, SEEP_EVENT_MAP, UINT64_C(1) << 32, 8192, mapped,
                 10);
    report = report_of(f);

    assert_int_equal(report->space_count, 2);
    assert_int_equal(report->spaces[0].space, SEEP_SPACE_HEAP);
    assert_int_equal(report->spaces[0].live_bytes, 100);
    assert_int_equal(report->spaces[1].space, SEEP_SPACE_MAPPED);
    assert_int_equal(report->spaces[1].live_bytes, 8192);
}

static void sampled_blocks_stand_for_more_with_an_error(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;
    double p = 1 - exp(-1024 / 65536.);
    uint32_t site;

    builder_fini(&f->builder);
    builder_init(&f->builder, SMALL, false);
    site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    atomic_store_explicit(&f->builder.view.header->sample_log2, 16,
                          memory_order_relaxed);
    builder_alloc(&f->builder, 0x1000, 1024, site, 10);
    report = report_of(f);

    assert_true(fabs((double)report->sites[0].live_bytes - 1024 / p) < 1);
    assert_true(fabs(report->sites[0].live_bytes_error /
                         (1.96 * 1024 / p * sqrt(1 - p)) -
                     1) < 1e-3);
    assert_int_equal(report->sample_bytes, 65536);
    assert_false(report->exact);
}

static void an_id_survives_other_addresses_and_folders(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    char id[20];
    uint32_t other;
    uint64_t frame;

    builder_alloc(&f->builder, 0x1000, 1, site, 10);
    snprintf(id, sizeof(id), "%s", report_of(f)->sites[0].id);
    builder_fini(&f->builder);

    builder_init(&f->builder, SMALL, true);
    builder_module(&f->builder, "/lib/first.so", 1);
    other = builder_module(&f->builder, "/home/me/worker", 0xab);
    frame = builder_frame(other, 0x10);
    site = builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                        SEEP_SPACE_HEAP);
    builder_alloc(&f->builder, 0x77000, 2, site, 10);
    report_of(f);

    assert_int_equal(strlen(id), 16);
    assert_string_equal(f->report->sites[0].id, id);
    assert_string_equal(f->report->sites[0].where, "worker+0x10");
}

static void two_calls_in_one_module_are_two_ids(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10, SEEP_SPACE_HEAP);
    uint32_t other = site_at(f, 0x20, SEEP_SPACE_HEAP);
    uint32_t space = site_at(f, 0x10, SEEP_SPACE_PINNED);
    const struct seep_report *report;

    builder_alloc(&f->builder, 0x1000, 1, site, 10);
    builder_alloc(&f->builder, 0x2000, 1, other, 10);
    builder_alloc(&f->builder, 0x3000, 1, space, 10);
    report = report_of(f);

    assert_int_equal(report->site_count, 3);
    assert_string_not_equal(report->sites[0].id, report->sites[1].id);
    assert_string_not_equal(report->sites[0].id, report->sites[2].id);
    assert_string_not_equal(report->sites[1].id, report->sites[2].id);
}

static void a_killed_worker_is_told_by_its_status(void **state)
{
    struct fixture *f = *state;
    struct seep_rec_header *header = f->builder.view.header;
    const struct seep_report *report;

    atomic_store_explicit(&header->status, 9, memory_order_relaxed);
    atomic_store_explicit(&header->has_status, 1, memory_order_relaxed);
    report = report_of(f);

    assert_int_equal(report->state, SEEP_STATE_KILLED);
    assert_true(report->has_status);
    assert_int_equal(report->status, 9);
}

static void read_first_line(const char *path, char *text, size_t capacity)
{
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_non_null(fgets(text, (int)capacity, file));
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
}

/* Make the header that of this very process. */
static void become_this_process(struct fixture *f)
{
    struct seep_rec_header *header = f->builder.view.header;
    char text[1024];
    struct stat status;
    char *at;

    read_first_line("/proc/sys/kernel/random/boot_id", header->boot_id,
                    sizeof(header->boot_id));
    assert_int_equal(stat("/proc/self/ns/pid", &status), 0);
    header->pid_namespace = status.st_ino;
    header->pid = (uint32_t)getpid();
    read_first_line("/proc/self/stat", text, sizeof(text));
    at = strrchr(text, ')');
    for (int field = 2; field < 22; field++) {
        at = strchr(at, ' ') + 1;
    }
    header->process_start_clock = strtoull(at, NULL, 10);
    builder_seal(&f->builder);
}

static void a_living_process_is_running_and_a_reused_pid_is_gone(void **state)
{
    struct fixture *f = *state;

    become_this_process(f);
    assert_int_equal(report_of(f)->state, SEEP_STATE_RUNNING);

    f->builder.view.header->process_start_clock++;
    builder_seal(&f->builder);
    assert_int_equal(report_of(f)->state, SEEP_STATE_GONE);

    f->builder.view.header->boot_id[0] ^= 1;
    builder_seal(&f->builder);
    assert_int_equal(report_of(f)->state, SEEP_STATE_UNKNOWN);
}

static void the_header_is_told_as_it_stands(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    builder_moment(&f->builder, 0, 100, 1000, 0);
    builder_moment(&f->builder, 1, 200, 3000, 5);
    atomic_store_explicit(
        &f->builder.view.counters[SEEP_COUNT_CUT_FIRST + SEEP_CUT_NO_RULE], 3,
        memory_order_relaxed);
    atomic_store_explicit(&f->builder.view.counters[SEEP_COUNT_DROPPED_FREES],
                          2, memory_order_relaxed);
    report = report_of(f);

    assert_string_equal(report->executable, "/usr/bin/worker");
    assert_int_equal(report->argument_count, 2);
    assert_string_equal(report->arguments[0], "worker");
    assert_string_equal(report->arguments[1], "--serve");
    assert_string_equal(report->host, "builder");
    assert_int_equal(report->units, 5);
    assert_true(report->memory.valid);
    assert_int_equal(report->memory.rss.first_bytes, 1000);
    assert_int_equal(report->memory.rss.last_bytes, 3000);
    assert_true(fabs(report->memory.rss.slope_bytes_per_s - 2000 / .1048576) <
                1);
    assert_int_equal(counter_of(report, "cut_no_rule"), 3);
    assert_int_equal(counter_of(report, "dropped_frees"), 2);
    assert_int_equal(counter_of(report, "dropped_allocs"), 0);
    assert_int_equal(report->counter_count, SEEP_COUNTER_COUNT);
    assert_false(report->exact);
}

static void a_recording_of_nothing_says_why(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    builder_fini(&f->builder);
    builder_init_inert(&f->builder, SEEP_INERT_OWN_MALLOC);
    report = report_of(f);

    assert_int_equal(report->inert, SEEP_INERT_OWN_MALLOC);
    assert_int_equal(report->site_count, 0);
    assert_int_equal(report->verdict.class, SEEP_VERDICT_INSUFFICIENT);
}

static void a_limit_leaves_the_first_sites_and_the_largest(void **state)
{
    struct fixture *f = *state;
    const struct seep_report_options options = {.site_limit = 2};

    for (uint32_t i = 0; i < 5; i++) {
        builder_alloc(&f->builder, 0x1000 * (i + 1), 100 * (i + 1),
                      site_at(f, i, SEEP_SPACE_HEAP), 10);
    }
    builder_write(&f->builder, f->path);
    assert_int_equal(seep_report_open(f->path, &options, NULL, &f->report), 0);

    assert_int_equal(f->report->site_count, 3);
    assert_int_equal(f->report->site_total, 5);
    assert_int_equal(f->report->sites[0].live_bytes, 500);
    assert_int_equal(f->report->sites[2].live_bytes, 300);
    for (size_t i = 0; i < 3; i++) {
        assert_true(f->report->sites[i].stands_out);
    }
    assert_int_equal(f->report->spaces[0].live_bytes, 1500);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup_exact, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_freed_block_is_not_live),
        WITH(events_that_were_pushed_and_not_folded_count),
        WITH(a_site_with_an_odd_lock_is_torn),
        WITH(series_points_add_up_to_the_live_bytes),
        WITH(a_bucket_in_which_nothing_happened_is_left_out),
        WITH(survivors_stand_in_the_tenth_of_their_birth),
        WITH(what_every_tenth_keeps_is_a_leak),
        WITH(a_short_run_is_no_evidence),
        WITH(a_leak_whose_blocks_also_die_is_one_all_the_same),
        WITH(what_is_given_back_is_no_leak),
        WITH(growth_below_the_floor_is_minor),
        WITH(the_leak_stands_before_what_is_larger),
        WITH(spaces_are_summed_apart),
        WITH(sampled_blocks_stand_for_more_with_an_error),
        WITH(an_id_survives_other_addresses_and_folders),
        WITH(two_calls_in_one_module_are_two_ids),
        WITH(a_killed_worker_is_told_by_its_status),
        WITH(a_living_process_is_running_and_a_reused_pid_is_gone),
        WITH(the_header_is_told_as_it_stands),
        WITH(a_recording_of_nothing_says_why),
        WITH(a_limit_leaves_the_first_sites_and_the_largest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
