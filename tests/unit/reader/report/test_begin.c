/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* reader/report_begin: when the work of a process began. */
#include <math.h>

#include "seep_test.h"

#include "begin_run.h"

static const struct seep_report_site *kept_by(const struct seep_report *report,
                                              uint64_t bytes)
{
    for (size_t i = 0; i < report->site_count; i++) {
        if (report->sites[i].live_bytes == bytes) {
            return &report->sites[i];
        }
    }
    fail_msg("no site holds %llu bytes", (unsigned long long)bytes);
    return NULL;
}

static bool begins(const struct seep_report *report, enum seep_beginning source,
                   double at_s, double from_s)
{
    return report->begin.source == source &&
           fabs(report->begin.at_s - at_s) < 2 &&
           fabs(report->begin.from_s - from_s) < 2;
}

/* What the issue had: half of the rate, and "it may just follow the load". */
static void a_leak_after_long_imports_has_its_own_rate(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;
    const struct seep_report_site *leak;

    begin_takes(f, begin_import(f, "/v/site-packages/torch/__init__.py"), 40960,
                0, 40, true);
    begin_takes(f, begin_work(f, 20, false), 4096, 40, 100, false);
    begin_takes(f, begin_work(f, 31, false), 40000, 40, 100, true);
    report = judge_report(f, 100);
    leak = kept_by(report, 600 * 40000);

    assert_true(begins(report, SEEP_BEGINS_AT_IMPORTS, 40, 40));
    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    judge_assert_class(leak, "leak");
    assert_true(fabs(leak->growth_bytes_per_s.estimate / 400000 - 1) < 0.1);
    assert_true(leak->kept.since_s > 38);
    assert_int_equal(report->begin.site_count, 1);
    assert_int_equal(report->begin.live_bytes, 400 * 40960);
}

static void growth_counts_from_the_end_of_imports_behind_half_too(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;

    begin_takes(f, begin_import(f, "/v/site-packages/torch/__init__.py"), 40960,
                0, 40, true);
    begin_takes(f, begin_import(f, "/v/site-packages/scipy/__init__.py"), 40960,
                40, 60, true);
    begin_takes(f, begin_work(f, 31, false), 40000, 60, 100, true);
    report = judge_report(f, 100);
    assert_true(begins(report, SEEP_BEGINS_AT_IMPORTS, 60, 60));
    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
}

/* A request imports what it needs: the leak of the service runs already. */
static void a_late_import_moves_nothing(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;

    begin_takes(f, begin_import(f, "/v/site-packages/torch/__init__.py"), 40960,
                0, 8, true);
    begin_takes(f, begin_work(f, 31, false), 4096, 8, 100, true);
    begin_takes(f, begin_import(f, "/v/site-packages/torch/lazy.py"), 65536, 40,
                44, true);
    report = judge_report(f, 100);
    assert_true(begins(report, SEEP_BEGINS_AT_IMPORTS, 8, 8));
    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
}

/* As on a machine that is busy, where to read a configuration takes a while. */
static void what_comes_before_long_imports_is_of_the_beginning(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_work(f, 12, false), 4096, 0, 6, false);
    begin_takes(f, begin_import(f, "/v/site-packages/torch/__init__.py"), 40960,
                6, 40, true);
    begin_takes(f, begin_work(f, 31, false), 4096, 40, 100, false);
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_IMPORTS, 40, 40));
}

static void work_before_short_imports_is_work(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_work(f, 31, false), 4096, 0, 100, true);
    begin_takes(f, begin_import(f, "/v/site-packages/torch/__init__.py"), 65536,
                20, 40, true);
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_START, 0, 0));
}

static void a_service_that_runs_inside_of_an_import_has_no_imports(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;
    uint32_t body = begin_import(f, "/srv/app.py");

    begin_takes(f, body, 4096, 0, 100, false);
    begin_takes(f, begin_work(f, 31, true), 4096, 0, 100, true);
    report = judge_report(f, 100);
    assert_true(begins(report, SEEP_BEGINS_AT_START, 0, 0));
    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_false(kept_by(report, 1000 * 4096)->is_start);
}

/* A leak that began during the imports is found in what follows them. */
static void a_leak_that_runs_is_never_start_up(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;

    begin_takes(f, begin_import(f, "/v/site-packages/torch/__init__.py"), 40960,
                0, 30, true);
    begin_takes(f, begin_work(f, 31, false), 20480, 0, 100, true);
    report = judge_report(f, 100);
    assert_true(begins(report, SEEP_BEGINS_AT_IMPORTS, 30, 30));
    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_false(kept_by(report, 1000 * 20480)->is_start);
}

static void a_short_start_is_what_the_statistics_take_as_one(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_import(f, "/v/site-packages/torch/__init__.py"), 40960,
                0, 3, true);
    begin_takes(f, begin_work(f, 31, false), 4096, 3, 100, true);
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_IMPORTS, 3, 0));
}

static void what_the_program_says_overrides(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_import(f, "/v/site-packages/torch/__init__.py"), 40960,
                0, 10, true);
    begin_takes(f, begin_work(f, 31, false), 4096, 10, 100, true);
    for (uint32_t i = 0; i < 100; i++) {
        builder_moment(&f->builder, i, JUDGE_TICKS(i + 1), 1000,
                       i < 30 ? 0 : (i - 29) * 10);
    }
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_PROGRESS, 30, 30));
    builder_mark(&f->builder, SEEP_MARK_MOMENT, JUDGE_TICKS(5), "epoch", "");
    builder_mark(&f->builder, SEEP_MARK_MOMENT, JUDGE_TICKS(20), SEEP_MARK_WARM,
                 "");
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_MARK, 20, 20));
}

/* Ten units a second from @from_s on. */
static void tells(struct judge_run *f, uint32_t from_s)
{
    for (uint32_t i = 0; i < 100; i++) {
        builder_moment(&f->builder, i, JUDGE_TICKS(i + 1), 1000,
                       i < from_s ? 0 : (i + 1 - from_s) * 10);
    }
}

/* More than half of the samples brought no news: it was by bytes. */
static void units_behind_a_start_of_most_of_the_run_are_the_clock(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *leak;

    begin_takes(f, begin_work(f, 11, false), 400000, 0, 60, true);
    begin_takes(f, begin_work(f, 21, false), 4096, 60, 100, false);
    begin_takes(f, begin_work(f, 31, false), 40000, 60, 100, true);
    tells(f, 60);
    leak = kept_by(judge_report(f, 100), 400 * 40000);
    assert_true(begins(f->report, SEEP_BEGINS_AT_PROGRESS, 60, 60));
    judge_assert_class(leak, "leak");
    assert_true(leak->has_growth_per_unit);
    assert_true(fabs(leak->growth_bytes_per_unit.estimate / 40000 - 1) < 0.1);
    assert_true(fabs(leak->growth_bytes_per_s.estimate / 400000 - 1) < 0.1);
    assert_true(f->report->verdict.has_growth_per_unit);
    assert_string_equal(f->report->verdict.first_id, leak->id);
}

static void units_told_soon_are_told_from_the_start(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_work(f, 31, false), 40000, 0, 100, true);
    tells(f, 3);
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_PROGRESS, 3, 0));
    assert_true(f->report->begin.from_s == 0);
}

/* By them nothing was done before, and all that leaked was start-up. */
static void units_told_at_the_end_alone_are_no_clock(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_work(f, 31, false), 40000, 0, 90, true);
    begin_takes(f, begin_work(f, 21, false), 4096, 0, 100, false);
    tells(f, 90);
    judge_report(f, 100);
    assert_false(kept_by(f->report, 900 * 40000)->has_growth_per_unit);
    assert_false(f->report->verdict.reassures);
}

/* Told now and then, once it works: too rarely to tell when. */
static void rare_units_behind_a_start_are_no_clock(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_work(f, 31, false), 40000, 0, 100, true);
    for (uint32_t i = 0; i < 100; i++) {
        builder_moment(&f->builder, i, JUDGE_TICKS(i + 1), 1000,
                       i < 40   ? 0
                       : i < 80 ? 1000
                                : 2000);
    }
    assert_false(
        kept_by(judge_report(f, 100), 1000 * 40000)->has_growth_per_unit);
}

/* The imports hold more, and took longer. */
static void what_stopped_is_named_by_what_rose_after_the_imports(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;

    begin_takes(f, begin_import(f, "/v/site-packages/torch/__init__.py"), 81920,
                0, 40, true);
    begin_takes(f, begin_work(f, 20, false), 4096, 40, 100, false);
    begin_takes(f, begin_work(f, 31, false), 40000, 40, 58, true);
    report = judge_report(f, 100);
    assert_int_equal(report->verdict.class, SEEP_VERDICT_BOUNDED);
    assert_string_equal(report->verdict.first_id,
                        kept_by(report, 180 * 40000)->id);
    assert_true(kept_by(report, 180 * 40000)->stands_out);
}

/* 40,000 bytes are kept each tenth of a second, from @from_s to the end. */
static const struct seep_report_site *waits_until(struct judge_run *f,
                                                  double from_s)
{
    begin_takes(f, begin_work(f, 20, false), 40960, 0, 1, false);
    begin_takes(f, begin_work(f, 21, false), 4096, from_s, 100, false);
    begin_takes(f, begin_work(f, 31, false), 40000, from_s, 100, true);
    return kept_by(judge_report(f, 100),
                   (uint64_t)((100 - from_s) * 10) * 40000);
}

/* It was 80 % of the rate, "throughout the run". */
static void a_wait_for_the_first_request_is_no_part_of_the_rate(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *leak = waits_until(f, 20);
    const struct seep_interval *rate = &leak->growth_bytes_per_s;

    assert_true(begins(f->report, SEEP_BEGINS_AT_WORK, 20, 20));
    judge_assert_class(leak, "leak");
    assert_true(rate->low < 400000 && rate->high > 400000);
    assert_true(fabs(rate->estimate / 400000 - 1) < 0.05);
    assert_true(leak->kept.since_s > 18);
    assert_non_null(strstr(leak->class_reason, "since the work began"));
}

static void a_wait_of_more_than_half_of_the_run_neither(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *leak = waits_until(f, 70);

    assert_true(begins(f->report, SEEP_BEGINS_AT_WORK, 70, 50));
    assert_true(fabs(leak->growth_bytes_per_s.estimate / 400000 - 1) < 0.05);
    assert_true(fabs(leak->growth_now_bytes_per_s / 400000 - 1) < 0.05);
}

static void less_than_30_s_of_work_behind_a_wait_is_no_proof(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *leak = waits_until(f, 72);

    judge_assert_class(leak, "suspect");
    assert_true(fabs(leak->growth_bytes_per_s.estimate / 400000 - 1) < 0.1);
}

/* One line that loads all, and a trifle at the end. */
static void a_trifle_behind_a_wait_is_no_work(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_work(f, 31, false), 40000, 0, 4, true);
    begin_takes(f, begin_work(f, 20, false), 16, 70, 71, true);
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_START, 0, 0));
}

static void waits_that_come_again_are_the_load(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = begin_work(f, 31, false);

    for (int burst = 1; burst <= 4; burst++) {
        begin_takes(f, site, 40000, burst * 24 - 4, burst * 24, true);
    }
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_START, 0, 0));
}

static void a_slow_leak_that_runs_while_it_waits_is_found(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *leak;

    begin_takes(f, begin_work(f, 31, false), 4096, 0, 100, true);
    begin_takes(f, begin_work(f, 20, false), 80000, 20, 100, false);
    leak = kept_by(judge_report(f, 100), 1000 * 4096);
    assert_true(begins(f->report, SEEP_BEGINS_AT_WORK, 20, 20));
    judge_assert_class(leak, "leak");
    assert_true(fabs(leak->growth_bytes_per_s.estimate / 40960 - 1) < 0.05);
}

static void a_cache_that_fills_behind_a_wait_is_no_leak(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_work(f, 31, false), 40000, 20, 50, true);
    begin_takes(f, begin_work(f, 20, false), 40000, 20, 100, false);
    assert_int_not_equal(judge_report(f, 100)->verdict.class,
                         SEEP_VERDICT_LEAK);
    assert_int_not_equal(f->report->verdict.class, SEEP_VERDICT_SUSPECT);
}

/* A model of 33 s, of ten times what the work takes; 40,000 bytes are kept
 * each tenth of a second of that. */
static const struct seep_report_site *loads_first(struct judge_run *f,
                                                  uint32_t model)
{
    begin_takes(f, model, 400000, 0, 33, true);
    begin_takes(f, begin_work(f, 21, false), 4096, 33, 100, false);
    begin_takes(f, begin_work(f, 31, false), 40000, 33, 100, true);
    return kept_by(judge_report(f, 100), 670 * 40000);
}

static void a_model_that_is_loaded_is_no_part_of_the_rate(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *leak = loads_first(f, judge_site(f, 0x77));

    assert_true(begins(f->report, SEEP_BEGINS_AT_LOAD, 33, 33));
    assert_int_equal(f->report->verdict.class, SEEP_VERDICT_LEAK);
    assert_string_equal(f->report->verdict.first_id, leak->id);
    judge_assert_class(leak, "leak");
    assert_true(fabs(leak->growth_bytes_per_s.estimate / 400000 - 1) < 0.05);
    assert_true(leak->kept.since_s > 31);
}

static void a_model_that_is_loaded_behind_imports_neither(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_import(f, "/v/site-packages/torch/__init__.py"), 40960,
                0, 12, true);
    begin_takes(f, begin_work(f, 11, false), 400000, 12, 40, true);
    begin_takes(f, begin_work(f, 21, false), 4096, 40, 100, false);
    begin_takes(f, begin_work(f, 31, false), 40000, 40, 100, true);
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_LOAD, 40, 40));
    judge_assert_class(kept_by(f->report, 600 * 40000), "leak");
}

static void a_load_of_more_than_half_of_the_run_is_no_growth(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_work(f, 11, false), 400000, 0, 60, true);
    begin_takes(f, begin_work(f, 21, false), 4096, 60, 100, false);
    begin_takes(f, begin_work(f, 31, false), 40000, 60, 100, true);
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_LOAD, 60, 50));
    judge_assert_class(kept_by(f->report, 400 * 40000), "leak");
    assert_string_equal(f->report->verdict.first_id,
                        kept_by(f->report, 400 * 40000)->id);
}

static void a_slow_leak_that_runs_while_it_loads_is_found(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *leak;

    begin_takes(f, begin_work(f, 11, false), 400000, 0, 33, true);
    begin_takes(f, begin_work(f, 31, false), 4096, 0, 100, true);
    begin_takes(f, begin_work(f, 21, false), 80000, 33, 100, false);
    leak = kept_by(judge_report(f, 100), 1000 * 4096);
    assert_true(begins(f->report, SEEP_BEGINS_AT_LOAD, 33, 33));
    assert_int_equal(f->report->verdict.class, SEEP_VERDICT_LEAK);
    judge_assert_class(leak, "leak");
    assert_true(fabs(leak->growth_bytes_per_s.estimate / 40960 - 1) < 0.05);
}

static void a_cache_that_fills_behind_a_load_is_no_leak(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;

    begin_takes(f, begin_work(f, 11, false), 400000, 0, 33, true);
    begin_takes(f, begin_work(f, 31, false), 40000, 33, 60, true);
    begin_takes(f, begin_work(f, 21, false), 40000, 33, 100, false);
    report = judge_report(f, 100);
    assert_true(begins(report, SEEP_BEGINS_AT_LOAD, 33, 33));
    assert_int_equal(report->verdict.class, SEEP_VERDICT_BOUNDED);
    assert_string_equal(report->verdict.first_id,
                        kept_by(report, 270 * 40000)->id);
}

/* It fills while the work runs, and is what the report has to name. */
static void a_cache_that_fills_from_the_start_is_no_load(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;

    begin_takes(f, begin_work(f, 31, false), 400000, 0, 33, true);
    begin_takes(f, begin_work(f, 21, false), 40000, 0, 100, false);
    report = judge_report(f, 100);
    assert_true(begins(report, SEEP_BEGINS_AT_START, 0, 0));
    assert_int_equal(report->verdict.class, SEEP_VERDICT_BOUNDED);
    assert_string_equal(report->verdict.first_id,
                        kept_by(report, 330 * 400000)->id);
}

/* What leaked by day leaks again tomorrow. */
static void a_day_of_requests_and_a_night_are_no_load(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_work(f, 21, false), 400000, 0, 45, false);
    begin_takes(f, begin_work(f, 31, false), 40000, 0, 45, true);
    begin_takes(f, begin_work(f, 41, false), 4096, 45, 100, false);
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_START, 0, 0));
    judge_assert_class(kept_by(f->report, 450 * 40000), "suspect");
}

/* On a busy machine the first request is late, and what is done meanwhile is no
 * model: the imports were the start. */
static void a_pause_behind_imports_is_no_load(void **state)
{
    struct judge_run *f = *state;

    begin_takes(f, begin_import(f, "/v/site-packages/torch/__init__.py"), 40960,
                0, 40, true);
    begin_takes(f, begin_work(f, 11, false), 20480, 0, 40, true);
    begin_takes(f, begin_work(f, 12, false), 8192, 40, 47, true);
    begin_takes(f, begin_work(f, 21, false), 4096, 47, 100, false);
    begin_takes(f, begin_work(f, 31, false), 40000, 47, 100, true);
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_IMPORTS, 40, 40));
}

/* Who allocates now and then in the rest may go on with it. */
static void what_comes_again_is_no_load(void **state)
{
    struct judge_run *f = *state;
    uint32_t batch = begin_work(f, 31, false);

    begin_takes(f, begin_work(f, 21, false), 40000, 30, 100, false);
    begin_takes(f, batch, 40000, 0, 10, true);
    begin_takes(f, batch, 40000, 45, 46, true);
    begin_takes(f, batch, 40000, 80, 90, true);
    assert_true(begins(judge_report(f, 100), SEEP_BEGINS_AT_START, 0, 0));
}

#define WITH(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_exact, judge_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_leak_after_long_imports_has_its_own_rate),
        WITH(growth_counts_from_the_end_of_imports_behind_half_too),
        WITH(a_late_import_moves_nothing),
        WITH(what_comes_before_long_imports_is_of_the_beginning),
        WITH(work_before_short_imports_is_work),
        WITH(a_service_that_runs_inside_of_an_import_has_no_imports),
        WITH(a_leak_that_runs_is_never_start_up),
        WITH(a_short_start_is_what_the_statistics_take_as_one),
        WITH(what_the_program_says_overrides),
        WITH(units_behind_a_start_of_most_of_the_run_are_the_clock),
        WITH(units_told_soon_are_told_from_the_start),
        WITH(units_told_at_the_end_alone_are_no_clock),
        WITH(rare_units_behind_a_start_are_no_clock),
        WITH(what_stopped_is_named_by_what_rose_after_the_imports),
        WITH(a_wait_for_the_first_request_is_no_part_of_the_rate),
        WITH(a_wait_of_more_than_half_of_the_run_neither),
        WITH(less_than_30_s_of_work_behind_a_wait_is_no_proof),
        WITH(a_trifle_behind_a_wait_is_no_work),
        WITH(waits_that_come_again_are_the_load),
        WITH(a_slow_leak_that_runs_while_it_waits_is_found),
        WITH(a_cache_that_fills_behind_a_wait_is_no_leak),
        WITH(a_model_that_is_loaded_is_no_part_of_the_rate),
        WITH(a_model_that_is_loaded_behind_imports_neither),
        WITH(a_load_of_more_than_half_of_the_run_is_no_growth),
        WITH(a_slow_leak_that_runs_while_it_loads_is_found),
        WITH(a_cache_that_fills_behind_a_load_is_no_leak),
        WITH(a_cache_that_fills_from_the_start_is_no_load),
        WITH(a_day_of_requests_and_a_night_are_no_load),
        WITH(a_pause_behind_imports_is_no_load),
        WITH(what_comes_again_is_no_load),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
