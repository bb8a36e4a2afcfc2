/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a reader makes of one site: class, rates, what it keeps and gives back.
 *
 * Recordings of 100 s are made by hand, a block at a time. What the growth
 * test itself says of given figures is held by test_growth*.c.
 */
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
#include <unistd.h>

#include "format/layout.h"
#include "reader/report.h"
#include "reader/sites_evidence.h"
#include "reader/snapshot.h"
#include "recording_builder.h"

#define SECONDS(s) ((uint32_t)((s)*BUILDER_TICKS_PER_S))
#define RUN_S 100

struct fixture {
    char path[64];
    struct recording_builder builder;
    struct seep_report *report;
    uint32_t module;
    uint64_t next; /* address of the next block */
};

static int set_up(void **state, bool exact)
{
    struct fixture *f = calloc(1, sizeof(*f));
    int fd;

    snprintf(f->path, sizeof(f->path), "/tmp/seep-test-XXXXXX");
    fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    builder_init(&f->builder, UINT64_C(16) << 20, exact);
    f->module = builder_module(&f->builder, "/opt/app/worker", 0xab);
    f->next = 0x10000;
    *state = f;
    return 0;
}

static int set_up_exact(void **state)
{
    return set_up(state, true);
}

static int set_up_sampled(void **state)
{
    int error = set_up(state, false);
    struct fixture *f = *state;

    atomic_store_explicit(&f->builder.view.header->sample_log2, 16,
                          memory_order_relaxed);
    return error;
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

static uint32_t site_at(struct fixture *f, uint64_t offset)
{
    uint64_t frame = builder_frame(f->module, offset);

    return builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                        SEEP_SPACE_HEAP);
}

static uint64_t born(struct fixture *f, uint32_t site, uint64_t size,
                     double second)
{
    uint64_t address = f->next;

    f->next += 0x10000;
    builder_alloc(&f->builder, address, size, site, SECONDS(second));
    return address;
}

static void died(struct fixture *f, uint64_t address, double second)
{
    builder_free(&f->builder, address, SECONDS(second));
}

static const struct seep_report *report_of(struct fixture *f, double seconds)
{
    static const struct seep_report_options options = {.symbols = false};

    builder_exit(&f->builder, SECONDS(seconds));
    builder_write(&f->builder, f->path);
    seep_report_close(f->report);
    f->report = NULL;
    assert_int_equal(seep_report_open(f->path, &options, NULL, &f->report), 0);
    return f->report;
}

static const struct seep_report_site *judged(struct fixture *f)
{
    return &report_of(f, RUN_S)->sites[0];
}

static void assert_class(const struct seep_report_site *site, const char *class)
{
    assert_string_equal(seep_class_name(site->class), class);
}

/* One block of @size every @period, each kept for ever. */
static void leak(struct fixture *f, uint32_t site, uint64_t size, double period)
{
    for (double second = 0; second < RUN_S; second += period) {
        born(f, site, size, second);
    }
}

/* Work of other sites, so that there is a clock: steady, and given back. */
static void work(struct fixture *f)
{
    uint32_t site = site_at(f, 0x9000);

    for (double second = 0; second < RUN_S; second += 0.05) {
        died(f, born(f, site, 200000, second), second + 0.01);
    }
}

/* A tenth of what one call allocates is kept; most of the rest is given back
 * at once, some of it only after three seconds. */
static void a_leak_at_a_site_that_churns_is_a_leak(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);
    uint64_t later[60] = {0};
    const struct seep_report_site *seen;

    for (uint32_t i = 0; i < 2000; i++) {
        double second = i / 20.;
        uint64_t address = born(f, site, 8192, second);

        if (later[i % 60] != 0) {
            died(f, later[i % 60], second);
            later[i % 60] = 0;
        }
        if (i % 10 == 5) {
            later[i % 60] = address;
        } else if (i % 10 != 0) {
            died(f, address, second + 0.01);
        }
    }
    seen = judged(f);

    assert_class(seen, "leak");
    assert_true(fabs(seen->growth_bytes_per_s.estimate - 16384) < 1000);
    assert_false(seen->kept.gave_back_old);
    assert_true(seen->kept.died_share == 0);
    assert_true(fabs(seen->kept.oldest_death_s - 3.5) < 1);
}

/* The oldest goes when one comes: full after 30 s of 100. */
static void a_cache_that_evicts_what_is_old_is_no_leak(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);
    const struct seep_report_site *seen;
    uint64_t first = f->next;

    for (uint32_t i = 0; i < 1000; i++) {
        born(f, site, 8192, i / 10.);
        if (i >= 300) {
            died(f, first + UINT64_C(0x10000) * (i - 300), i / 10.);
        }
    }
    seen = judged(f);

    assert_int_not_equal(seen->class, SEEP_CLASS_LEAK);
    assert_int_not_equal(seen->class, SEEP_CLASS_SUSPECT);
    assert_true(seen->kept.gave_back_old);
    assert_true(seen->kept.died_share > .8);
    assert_true(fabs(seen->kept.oldest_death_s - 30) < 2);
}

/* Old and young are parted at one edge of the grid for both: here, where one
 * in two dies at 25 s, at 20.4 s. What dies is small: blocks are counted. */
static void the_share_of_old_blocks_that_died_is_exact(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);
    double limit = ceil(SECONDS(RUN_S) / 5. / 1024) * 1024;
    uint32_t dead = 0;
    uint32_t alive = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        double second = i / 10.;
        uint64_t address = born(f, site, i % 2 == 0 ? 100 : 8192, second);

        if (i % 2 == 0 && second + 25 < RUN_S) {
            died(f, address, second + 25);
            dead++;
        } else {
            alive += SECONDS(second) + limit <= SECONDS(RUN_S);
        }
    }

    assert_true(fabs(judged(f)->kept.died_share -
                     (double)dead / (dead + alive)) < 1e-9);
}

/* What was seen counts, not what it stands for: 100 old deaths of 64 KiB
 * weight against 100 survivors of the same. */
static void sampled_deaths_are_counted_as_they_were_seen(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);

    for (uint32_t i = 0; i < 200; i++) {
        double second = i / 5.;
        /* small ones of any size stand for the mean interval */
        uint64_t address = born(f, site, i % 2 == 0 ? 64 : 500, second);

        if (i % 2 == 0) {
            died(f, address, second + 30);
        }
    }

    assert_true(fabs(judged(f)->kept.died_share - .5) < .01);
}

/* A thousand stay. So many of the old must go to be more than an accident. */
static bool gives_back(struct fixture *f, uint32_t count)
{
    uint32_t site = site_at(f, 0x10);

    leak(f, site, 8192, .1);
    for (uint32_t i = 0; i < count; i++) {
        died(f, 0x10000 + UINT64_C(0x10000) * i, 95);
    }
    return judged(f)->kept.gave_back_old;
}

static void a_few_old_deaths_are_no_eviction(void **state)
{
    struct fixture *f = *state;

    assert_false(gives_back(f, 10));
    assert_class(f->report->sites, "leak");
    assert_non_null(strstr(f->report->sites->class_reason, "hardly any"));
}

/* Such a leak is not said to look like a cache that fills. */
static void old_deaths_in_some_number_are_one(void **state)
{
    struct fixture *f = *state;

    assert_true(gives_back(f, 20));
    assert_class(f->report->sites, "leak");
    assert_null(strstr(f->report->sites->class_reason, "cache"));
}

static void two_old_deaths_are_an_accident(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);
    const struct seep_report_site *seen;

    for (uint32_t i = 0; i < 10; i++) {
        uint64_t address = born(f, site, 8192, i);

        if (i < 2) {
            died(f, address, 99.95);
        }
    }
    seen = judged(f);

    assert_false(seen->kept.gave_back_old);
    assert_true(fabs(seen->kept.died_share - .2) < 1e-9);
    /* nothing is older than the run */
    assert_true(seen->kept.oldest_death_s <= f->report->duration_s);
}

static bool is_dead(const struct seep_rec_header *header)
{
    (void)header;
    return true;
}

/* Each of the 80 stands for eight. */
static void evidence_is_blocks_that_were_seen(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);
    struct seep_snapshot snapshot;
    struct seep_clock clock;
    struct seep_sites sites;
    struct seep_evidence evidence;
    int fd;

    for (uint32_t i = 0; i < 80; i++) {
        uint64_t address = born(f, site, 8192, i);

        if (i % 4 != 0) {
            died(f, address, i + 2.5);
        }
    }
    builder_write(&f->builder, f->path);
    fd = open(f->path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(
        seep_snapshot_init(fd, f->builder.size_bytes, is_dead, NULL, &snapshot),
        0);
    close(fd);
    seep_clock_init(&clock, &snapshot.view, SECONDS(RUN_S));
    assert_int_equal(seep_sites_init(&snapshot, &clock, &sites), 0);
    seep_evidence_gather(&sites, &sites.works[0], &clock, &evidence);

    assert_true(sites.works[0].site.allocated_count > 600);
    assert_true(evidence.input.live_count == 20);
    assert_true(
        fabs(evidence.input.allocations[evidence.input.bucket_count - 1] - 80) <
        1e-6);
    seep_sites_fini(&sites);
    seep_snapshot_fini(&snapshot);
}

static void a_leak_of_less_than_8_blocks_is_no_evidence(void **state)
{
    struct fixture *f = *state;

    work(f);
    leak(f, site_at(f, 0x10), 1 << 20, 11); /* 6 until the last fifth */
    assert_class(judged(f), "insufficient-data");
    assert_string_equal(f->report->sites[0].class_reason,
                        "too few blocks survive to tell");
}

/* Sampled every 64 KiB, 500 bytes stand for as much. */
static void a_few_sampled_survivors_are_no_step(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);

    work(f);
    born(f, site, 500, 23);
    born(f, site, 500, 61);
    born(f, site, 500, 68);
    assert_class(judged(f), "insufficient-data");
    assert_string_equal(f->report->sites[0].class_reason,
                        "too few blocks survive to tell");
}

static void a_few_of_one_moment_are_a_step(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);

    work(f);
    born(f, site, 500, 42);
    born(f, site, 500, 42.1);
    born(f, site, 500, 42.2);
    assert_class(judged(f), "step");
}

static void a_sampled_block_of_the_start_is_a_step(void **state)
{
    struct fixture *f = *state;

    work(f);
    born(f, site_at(f, 0x10), 500, .5);
    assert_class(judged(f), "step");
}

static void a_few_blocks_that_are_known_whole_are_a_step(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);

    work(f);
    born(f, site, 1 << 20, 23);
    born(f, site, 1 << 20, 61);
    assert_class(judged(f), "step");
}

static void a_leak_of_8_blocks_that_come_regularly_is_enough(void **state)
{
    struct fixture *f = *state;

    work(f);
    leak(f, site_at(f, 0x10), 1 << 20, 6.5);
    assert_class(judged(f), "leak");
}

/* Clumps in every tenth, of very different sizes: many blocks, few events. */
static void a_leak_in_clumps_is_a_suspect(void **state)
{
    static const uint32_t clumps[] = {7, 7, 2, 18, 2, 3, 17, 2, 8, 9};
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);
    const struct seep_report_site *seen;

    work(f);
    for (uint32_t i = 0; i < 10; i++) {
        for (uint32_t k = 0; k < clumps[i]; k++) {
            born(f, site, 30000, 10 * i + 5);
        }
    }
    seen = judged(f);

    assert_class(seen, "suspect");
    assert_non_null(strstr(seen->class_reason, "bursts"));
}

/* No work is seen: nothing is marked, and allocation cannot be its own clock
 * when what was allocated is unknown. */
static void time_alone_never_makes_a_leak(void **state)
{
    struct fixture *f = *state;
    const struct seep_report_site *seen;

    leak(f, site_at(f, 0x10), 40960, .25);
    builder_fold(&f->builder);
    for (uint32_t i = 0; i < f->builder.view.shard_count; i++) {
        for (uint32_t k = 0; k < SEEP_BUCKET_COUNT; k++) {
            atomic_store_explicit(
                &f->builder.view.shards[i].flow[k].allocated_bytes, 0,
                memory_order_relaxed);
        }
    }
    seen = judged(f);

    assert_class(seen, "suspect");
    assert_non_null(strstr(seen->class_reason, "no work"));
}

/* Work by marks: as much more each tenth as before; few survivors. */
static void a_load_that_sets_records_may_be_followed(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);
    const struct seep_report_site *seen;
    double units = 0;

    for (uint32_t i = 0; i < RUN_S; i++) {
        double pace = i / 10 < 5 ? 1 : 1.3 * (i / 10 - 3);

        for (double done = 0; done < pace; done += .5) {
            units += .5;
            if (fmod(units, 10) == 0) {
                born(f, site, 1 << 20, i);
            }
        }
        builder_moment(&f->builder, i, SECONDS(i + 1), 1000,
                       (uint64_t)(10 * units));
    }
    seen = judged(f);

    assert_class(seen, "suspect");
    assert_non_null(strstr(seen->class_reason, "load is still rising"));
}

/* Its live bytes never move, and yet blocks of every tenth are live. */
static void a_flat_series_with_survivors_is_no_evidence(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);
    struct seep_rec_series *series;

    work(f);
    leak(f, site, 40960, .25);
    builder_fold(&f->builder);
    series = &f->builder.view
                  .series[f->builder.view.sites[site].series - UINT32_C(1)];
    series->base_bytes = 1 << 20;
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        series->buckets[i].allocated_bytes = 0;
        series->buckets[i].low_bytes = 1 << 20;
    }
    report_of(f, RUN_S);
    for (size_t i = 0; i < f->report->site_count; i++) {
        if (f->report->sites[i].live_count > 1) {
            assert_class(&f->report->sites[i], "insufficient-data");
            return;
        }
    }
    fail();
}

static void one_block_that_grows_says_so(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);
    const struct seep_report_site *seen;
    uint64_t last = 0;

    work(f);
    for (uint32_t i = 1; i <= 50; i++) {
        if (last != 0) {
            died(f, last, 2 * i);
        }
        last = born(f, site, i << 18, 2 * i);
    }
    seen = judged(f);

    assert_class(seen, "leak");
    assert_non_null(strstr(seen->class_reason, "one block"));
    assert_true(seen->growth_bytes_per_s.low < 1 << 17);
    assert_true(seen->growth_bytes_per_s.high > 1 << 17);
    assert_true(fabs(seen->kept.share - .8) < 1e-9);
}

/* Ten units a second, from the middle of the run thirty. */
static void rates_are_told_for_a_second_now_and_a_unit(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);
    const struct seep_report_site *seen;
    uint64_t units = 0;

    for (uint32_t i = 0; i < RUN_S; i++) {
        uint32_t pace = i < 50 ? 10 : 30;

        for (uint32_t k = 0; k < pace; k++) {
            born(f, site, 4096, i + (double)k / pace);
        }
        units += pace;
        builder_moment(&f->builder, i, SECONDS(i + 1), 1000, units);
    }
    seen = judged(f);

    assert_true(fabs(f->report->units_per_s - 30) < .5);
    assert_true(fabs(seen->growth_bytes_per_s.estimate / 4096 - 20) < .5);
    assert_true(fabs(seen->growth_now_bytes_per_s / 4096 - 30) < .7);
    assert_true(seen->has_growth_per_unit);
    assert_true(fabs(seen->growth_bytes_per_unit.estimate / 4096 - 1) < .02);
    assert_true(seen->growth_bytes_per_unit.low < 4096);
    assert_true(seen->growth_bytes_per_unit.high > 4096);
}

static void without_marks_there_is_no_rate_for_a_unit(void **state)
{
    struct fixture *f = *state;
    const struct seep_report_site *seen;

    leak(f, site_at(f, 0x10), 40960, .25);
    seen = judged(f);

    assert_true(seen->has_growth);
    assert_false(seen->has_growth_per_unit);
    assert_true(
        fabs(seen->growth_now_bytes_per_s / seen->growth_bytes_per_s.estimate -
             1) < .05);
}

static void what_is_kept_is_kept_since_the_onset(void **state)
{
    struct fixture *f = *state;
    uint32_t site = site_at(f, 0x10);
    const struct seep_report_site *seen;

    work(f);
    for (double second = 0; second < RUN_S; second += .25) {
        if (second >= 40) {
            born(f, site, 16384, second);
        }
    }
    seen = judged(f);

    assert_class(seen, "leak");
    assert_true(fabs(seen->kept.share - .6) < 1e-9);
    assert_true(fabs(seen->kept.since_s - 40) < 1.5);
    assert_true(seen->kept.oldest_death_s == 0);
    assert_false(seen->kept.gave_back_old);
}

static void what_is_kept_from_the_start_on_is_kept_since_then(void **state)
{
    struct fixture *f = *state;
    const struct seep_report_site *seen;

    leak(f, site_at(f, 0x10), 16384, .25);
    seen = judged(f);

    assert_true(seen->kept.share == 1);
    assert_true(seen->kept.since_s == 0);
}

/* The order of a report: class, then what it grows by at least, then size. */
static void sites_stand_by_class_and_then_by_what_they_grow(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;
    uint32_t slow = site_at(f, 0x10);
    uint32_t fast = site_at(f, 0x20);
    uint32_t few = site_at(f, 0x30);

    work(f);
    born(f, site_at(f, 0x40), 1 << 28, 1);
    leak(f, few, 1 << 20, 11);
    leak(f, site_at(f, 0x50), 64, 1);
    born(f, slow, 1 << 26, 1);
    leak(f, slow, 20000, .25);
    leak(f, fast, 40000, .25);
    report = report_of(f, RUN_S);

    assert_class(&report->sites[0], "leak");
    assert_class(&report->sites[1], "leak");
    assert_true(report->sites[0].live_bytes < report->sites[1].live_bytes);
    assert_class(&report->sites[2], "insufficient-data");
    assert_class(&report->sites[3], "step");
    assert_class(&report->sites[4], "steady");
    assert_class(&report->sites[5], "minor");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define EXACT(test) \
    cmocka_unit_test_setup_teardown(test, set_up_exact, tear_down)
        EXACT(a_leak_at_a_site_that_churns_is_a_leak),
        EXACT(a_cache_that_evicts_what_is_old_is_no_leak),
        EXACT(the_share_of_old_blocks_that_died_is_exact),
        cmocka_unit_test_setup_teardown(
            sampled_deaths_are_counted_as_they_were_seen, set_up_sampled,
            tear_down),
        EXACT(a_few_old_deaths_are_no_eviction),
        EXACT(old_deaths_in_some_number_are_one),
        EXACT(two_old_deaths_are_an_accident),
        cmocka_unit_test_setup_teardown(evidence_is_blocks_that_were_seen,
                                        set_up_sampled, tear_down),
        EXACT(a_leak_of_less_than_8_blocks_is_no_evidence),
#define SAMPLED(test) \
    cmocka_unit_test_setup_teardown(test, set_up_sampled, tear_down)
        SAMPLED(a_few_sampled_survivors_are_no_step),
        SAMPLED(a_few_of_one_moment_are_a_step),
        SAMPLED(a_sampled_block_of_the_start_is_a_step),
        SAMPLED(a_few_blocks_that_are_known_whole_are_a_step),
        EXACT(a_leak_of_8_blocks_that_come_regularly_is_enough),
        EXACT(a_leak_in_clumps_is_a_suspect),
        EXACT(time_alone_never_makes_a_leak),
        EXACT(a_load_that_sets_records_may_be_followed),
        EXACT(a_flat_series_with_survivors_is_no_evidence),
        EXACT(one_block_that_grows_says_so),
        EXACT(rates_are_told_for_a_second_now_and_a_unit),
        EXACT(without_marks_there_is_no_rate_for_a_unit),
        EXACT(what_is_kept_is_kept_since_the_onset),
        EXACT(what_is_kept_from_the_start_on_is_kept_since_then),
        EXACT(sites_stand_by_class_and_then_by_what_they_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
