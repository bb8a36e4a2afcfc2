/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The class that a reader gives a site, and the order of sites. What the growth
 * test itself says of given figures is held by test_growth*.c.
 */
#include "judge_run.h"

#include <math.h>
#include <string.h>

#include "format/live.h"

#define EXACT(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_exact, judge_tear_down)
#define SAMPLED(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_sampled, judge_tear_down)

/* A tenth of what one call allocates is kept; most of the rest is given back
 * at once, some of it only after three seconds. */
static void a_leak_at_a_site_that_churns_is_a_leak(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    uint64_t later[60] = {0};
    const struct seep_report_site *seen;

    for (uint32_t i = 0; i < 2000; i++) {
        double second = i / 20.;
        uint64_t address = judge_born(f, site, 8192, second);

        if (later[i % 60] != 0) {
            judge_died(f, later[i % 60], second);
            later[i % 60] = 0;
        }
        if (i % 10 == 5) {
            later[i % 60] = address;
        } else if (i % 10 != 0) {
            judge_died(f, address, second + 0.01);
        }
    }
    seen = judge_first(f);

    judge_assert_class(seen, "leak");
    assert_true(fabs(seen->growth_bytes_per_s.estimate - 16384) < 1000);
    assert_false(seen->kept.gave_back_old);
    assert_true(seen->kept.died_share == 0);
    assert_true(fabs(seen->kept.oldest_death_s - 3.5) < 1);
}

/* The oldest goes when one comes: full after 30 s of 100. */
static void a_cache_that_evicts_what_is_old_is_no_leak(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    const struct seep_report_site *seen;
    uint64_t first = f->next;

    for (uint32_t i = 0; i < 1000; i++) {
        judge_born(f, site, 8192, i / 10.);
        if (i >= 300) {
            judge_died(f, first + UINT64_C(0x10000) * (i - 300), i / 10.);
        }
    }
    seen = judge_first(f);

    assert_int_not_equal(seen->class, SEEP_CLASS_LEAK);
    assert_int_not_equal(seen->class, SEEP_CLASS_SUSPECT);
    assert_true(seen->kept.gave_back_old);
    assert_true(seen->kept.died_share > .8);
    assert_true(fabs(seen->kept.oldest_death_s - 30) < 2);
}

static void a_leak_of_less_than_8_blocks_is_no_evidence(void **state)
{
    struct judge_run *f = *state;

    judge_work(f);
    judge_leak(f, judge_site(f, 0x10), 1 << 20, 17);
    judge_assert_class(judge_first(f), "insufficient-data");
    assert_string_equal(f->report->sites[0].class_reason,
                        "too few blocks survive to tell");
}

/* Sampled every 64 KiB, 500 bytes stand for as much. */
static void a_few_sampled_survivors_are_no_step(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);

    judge_work(f);
    judge_born(f, site, 500, 23);
    judge_born(f, site, 500, 61);
    judge_born(f, site, 500, 68);
    judge_assert_class(judge_first(f), "insufficient-data");
    assert_string_equal(f->report->sites[0].class_reason,
                        "too few blocks survive to tell");
}

static void a_few_of_one_moment_are_a_step(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);

    judge_work(f);
    judge_born(f, site, 500, 42);
    judge_born(f, site, 500, 42.1);
    judge_born(f, site, 500, 42.2);
    judge_assert_class(judge_first(f), "step");
}

static void a_sampled_block_of_the_start_is_a_step(void **state)
{
    struct judge_run *f = *state;

    judge_work(f);
    judge_born(f, judge_site(f, 0x10), 500, .5);
    judge_assert_class(judge_first(f), "step");
}

/* Each alone; a leak of one block in 40 s looks like that. */
static void two_blocks_far_apart_are_too_few_to_tell(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);

    judge_work(f);
    judge_born(f, site, 1 << 20, 23);
    judge_born(f, site, 1 << 20, 61);
    judge_assert_class(judge_first(f), "insufficient-data");
}

static void a_leak_of_8_blocks_that_come_regularly_is_enough(void **state)
{
    struct judge_run *f = *state;

    judge_work(f);
    judge_leak(f, judge_site(f, 0x10), 1 << 20, 6.5);
    judge_assert_class(judge_first(f), "leak");
}

/* Clumps in every tenth, of very different sizes: many blocks, few events. */
static void a_leak_in_clumps_says_so(void **state)
{
    static const uint32_t clumps[] = {7, 7, 2, 18, 2, 3, 17, 2, 8, 9};
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    const struct seep_report_site *seen;

    judge_work(f);
    for (uint32_t i = 0; i < 10; i++) {
        for (uint32_t k = 0; k < clumps[i]; k++) {
            judge_born(f, site, 30000, 10 * i + 5);
        }
    }
    seen = judge_first(f);

    assert_true(seep_class_may_leak(seen->class));
    assert_true(seen->in_bursts);
    assert_true(seen->stopped_since_s < 0);
}

/* No work is seen: nothing is marked, and allocation cannot be its own clock
 * when what was allocated is unknown. */
static void time_alone_never_makes_a_leak(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *seen;

    judge_leak(f, judge_site(f, 0x10), 40960, .25);
    builder_fold(&f->builder);
    for (uint32_t i = 0; i < f->builder.view.shard_count; i++) {
        for (uint32_t k = 0; k < SEEP_BUCKET_COUNT; k++) {
            atomic_store_explicit(
                &f->builder.view.shards[i].flow[k].allocated_bytes, 0,
                memory_order_relaxed);
        }
    }
    seen = judge_first(f);

    judge_assert_class(seen, "suspect");
    assert_non_null(strstr(seen->class_reason, "no work"));
}

/* Work by marks: as much more each tenth as before; few survivors. */
static void a_load_that_sets_records_may_be_followed(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    const struct seep_report_site *seen;
    double units = 0;

    for (uint32_t i = 0; i < JUDGE_RUN_S; i++) {
        double pace = i / 10 < 5 ? 1 : 1.3 * (i / 10 - 3);

        for (double done = 0; done < pace; done += .5) {
            units += .5;
            if (fmod(units, 10) == 0) {
                judge_born(f, site, 1 << 20, i);
            }
        }
        builder_moment(&f->builder, i, JUDGE_TICKS(i + 1), 1000,
                       (uint64_t)(10 * units));
    }
    seen = judge_first(f);

    judge_assert_class(seen, "suspect");
    assert_non_null(strstr(seen->class_reason, "load is still rising"));
}

/* Its live bytes never move, and yet blocks of every tenth are live. */
static void a_flat_series_with_survivors_is_no_evidence(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    struct seep_rec_series *series;

    judge_work(f);
    judge_leak(f, site, 40960, .25);
    builder_fold(&f->builder);
    series = &f->builder.view
                  .series[f->builder.view.sites[site].series - UINT32_C(1)];
    series->base_bytes = 1 << 20;
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        series->buckets[i].allocated_bytes = 0;
        series->buckets[i].low_bytes = 1 << 20;
    }
    judge_report(f, JUDGE_RUN_S);
    for (size_t i = 0; i < f->report->site_count; i++) {
        if (f->report->sites[i].live_count > 1) {
            judge_assert_class(&f->report->sites[i], "insufficient-data");
            return;
        }
    }
    fail();
}

static void one_block_that_grows_says_so(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    const struct seep_report_site *seen;
    uint64_t last = 0;

    judge_work(f);
    for (uint32_t i = 1; i <= 50; i++) {
        if (last != 0) {
            judge_died(f, last, 2 * i);
        }
        last = judge_born(f, site, i << 18, 2 * i);
    }
    seen = judge_first(f);

    judge_assert_class(seen, "leak");
    assert_non_null(strstr(seen->class_reason, "one block"));
    assert_true(seen->growth_bytes_per_s.low < 1 << 17);
    assert_true(seen->growth_bytes_per_s.high > 1 << 17);
    assert_true(fabs(seen->kept.share - .8) < 1e-9);
}

static void judge_doubling(struct judge_run *f, uint32_t site, uint64_t bytes)
{
    static const uint32_t ticks[] = {4, 7, 14, 28, 56};
    uint64_t last = 0;

    for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
        if (last != 0) {
            judge_died(f, last, ticks[i]);
        }
        last = judge_born(f, site, bytes << i, ticks[i]);
    }
}

static void one_block_that_doubles_is_suspect_unless_it_is_small(void **state)
{
    struct judge_run *f = *state;
    uint32_t large = judge_site(f, 0x10);
    uint32_t small = judge_site(f, 0x20);

    judge_work(f);
    judge_doubling(f, large, 1 << 20);
    judge_doubling(f, small, 1 << 16);

    judge_assert_class(judge_first(f), "suspect");
    assert_true(judge_first(f)->in_steps);
    assert_int_equal(judge_first(f)->live_bytes, 1 << 24);
    judge_assert_class(judge_first(f) + 1, "minor");
}

/* The order of a report: class, then what it grows by at least, then size. */
static void sites_stand_by_class_and_then_by_what_they_grow(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;
    uint32_t slow = judge_site(f, 0x10);
    uint32_t fast = judge_site(f, 0x20);
    uint32_t few = judge_site(f, 0x30);

    judge_work(f);
    judge_born(f, judge_site(f, 0x40), 1 << 28, 1);
    judge_leak(f, few, 1 << 20, 17);
    judge_leak(f, judge_site(f, 0x50), 64, 1);
    judge_born(f, slow, 1 << 26, 1);
    judge_leak(f, slow, 20000, .25);
    judge_leak(f, fast, 40000, .25);
    report = judge_report(f, JUDGE_RUN_S);

    judge_assert_class(&report->sites[0], "leak");
    judge_assert_class(&report->sites[1], "leak");
    assert_true(report->sites[0].live_bytes < report->sites[1].live_bytes);
    judge_assert_class(&report->sites[2], "minor");
    judge_assert_class(&report->sites[3], "insufficient-data");
    judge_assert_class(&report->sites[4], "step");
    judge_assert_class(&report->sites[5], "steady");
}

/* By class another row stands above it; but what the verdict names is looked
 * for first. */
static void the_row_that_the_verdict_names_is_the_first(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;
    uint32_t doubtful = judge_site(f, 0x10);
    uint32_t stopped = judge_site(f, 0x20);

    judge_work(f);
    judge_born(f, judge_site(f, 0x30), 1 << 28, 1);
    judge_doubling(f, doubtful, 1 << 18);
    for (int i = 0; i < 64; i++) {
        judge_born(f, stopped, 1 << 20, 20 + i * .1);
    }
    report = judge_report(f, JUDGE_RUN_S);

    assert_int_equal(report->sites[0].live_bytes, 1 << 26);
    assert_string_equal(report->sites[0].id, report->verdict.first_id);
    judge_assert_class(&report->sites[0], "step");
    judge_assert_class(&report->sites[1], "insufficient-data");
    for (size_t i = 2; i < report->site_count; i++) {
        assert_string_not_equal(report->sites[i].id, report->sites[0].id);
    }
}

/* Imports of four seconds, in many steps, then a wait for requests. */
static void a_start_up_is_not_judged_where_nothing_follows_it(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x1000);

    for (uint32_t i = 0; i < 2000; i++) {
        judge_born(f, site, 4000, 0.002 * i);
    }
    judge_born(f, judge_site(f, 0x9000), 16, 99);
    judge_assert_class(judge_first(f), "insufficient-data");
    assert_string_equal(
        f->report->sites[0].class_reason,
        "the run is too short: it was mostly waiting, and a verdict needs 30 s of work");
}

/* A mapping of 64 GiB as it starts, and 64 KiB every tenth of a second since,
 * at one line. @early, @late: are their pages there? */
static void mark_pages(struct judge_run *f, uint32_t site, uint64_t size,
                       uint64_t there)
{
    const struct seep_view *view = &f->builder.view;

    builder_fold(&f->builder);
    for (uint32_t i = 0; i < view->live_capacity; i++) {
        struct seep_block block = seep_live_read(&view->live[i]);

        if (block.address != 0 && block.site == site && block.size == size) {
            atomic_fetch_or_explicit(&view->live[i].size_level,
                                     there << SEEP_TOUCHED_SHIFT,
                                     memory_order_relaxed);
        }
    }
}

static const struct seep_report_site *mapped_at(struct judge_run *f, bool early,
                                                bool late)
{
    const uint64_t large = UINT64_C(64) << 30;
    uint64_t frame = builder_frame(f->module, 0x10);
    uint32_t site = builder_site(
        &f->builder, builder_stack(&f->builder, &frame, 1), SEEP_SPACE_MAPPED);

    judge_work(f);
    judge_born(f, site, large, 0.1);
    judge_leak(f, site, 65536, 0.1);
    mark_pages(f, site, large, early ? 255 : 1);
    mark_pages(f, site, 65536, late ? 255 : 1);
    return judge_first(f);
}

/* 640 KiB a second, all of it written to. */
static void what_a_line_reserved_first_hides_no_leak_of_it(void **state)
{
    const struct seep_report_site *seen = mapped_at(*state, false, true);

    judge_assert_class(seen, "leak");
    assert_true(fabs(seen->growth_bytes_per_s.estimate - 655360) < 30000);
    assert_true(fabs(seen->touched_bytes - 65536000) < 100000);
}

static void what_is_only_reserved_is_no_leak_beside_what_is_not(void **state)
{
    const struct seep_report_site *seen = mapped_at(*state, true, false);

    judge_assert_class(seen, "minor");
    assert_non_null(strstr(seen->class_reason, "it reserves address space"));
    assert_true(seen->growth_bytes_per_s.estimate < 1);
}

/* 5 MiB a second in blocks of 512 KiB, and 40 KiB in small ones, at one line of
 * the heap. Of the large ones is there @there of 254, and 1. */
static const struct seep_report_site *large_at(struct judge_run *f,
                                               uint64_t there)
{
    uint32_t site = judge_site(f, 0x1000);

    judge_work(f);
    judge_leak(f, site, 524288, 0.1);
    judge_leak(f, site, 4096, 0.1);
    mark_pages(f, site, 524288, there);
    return judge_first(f);
}

static void a_large_block_grows_by_what_was_written_of_it(void **state)
{
    const struct seep_report_site *seen = large_at(*state, 128);

    judge_assert_class(seen, "leak");
    assert_true(fabs(seen->growth_bytes_per_s.estimate - 2662400) < 60000);
    assert_true(seen->touched_bytes < .55 * (double)seen->live_bytes);
}

static void what_is_never_written_to_leaves_what_is(void **state)
{
    const struct seep_report_site *seen = large_at(*state, 1);

    judge_assert_class(seen, "leak");
    assert_true(fabs(seen->growth_bytes_per_s.estimate - 40960) < 4000);
}

static void a_large_block_that_nobody_looked_at_is_all_there(void **state)
{
    const struct seep_report_site *seen = large_at(*state, 0);

    judge_assert_class(seen, "leak");
    assert_true(seen->growth_bytes_per_s.estimate > 5000000);
    assert_true(seen->touched_bytes < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXACT(the_row_that_the_verdict_names_is_the_first),
        EXACT(a_start_up_is_not_judged_where_nothing_follows_it),
        EXACT(a_leak_at_a_site_that_churns_is_a_leak),
        EXACT(a_cache_that_evicts_what_is_old_is_no_leak),
        EXACT(a_leak_of_less_than_8_blocks_is_no_evidence),
        SAMPLED(a_few_sampled_survivors_are_no_step),
        SAMPLED(a_few_of_one_moment_are_a_step),
        SAMPLED(a_sampled_block_of_the_start_is_a_step),
        SAMPLED(two_blocks_far_apart_are_too_few_to_tell),
        EXACT(a_leak_of_8_blocks_that_come_regularly_is_enough),
        EXACT(a_leak_in_clumps_says_so),
        EXACT(time_alone_never_makes_a_leak),
        EXACT(a_large_block_grows_by_what_was_written_of_it),
        EXACT(what_is_never_written_to_leaves_what_is),
        EXACT(a_large_block_that_nobody_looked_at_is_all_there),
        EXACT(what_a_line_reserved_first_hides_no_leak_of_it),
        EXACT(what_is_only_reserved_is_no_leak_beside_what_is_not),
        EXACT(a_load_that_sets_records_may_be_followed),
        EXACT(a_flat_series_with_survivors_is_no_evidence),
        EXACT(one_block_that_grows_says_so),
        EXACT(one_block_that_doubles_is_suspect_unless_it_is_small),
        EXACT(sites_stand_by_class_and_then_by_what_they_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
