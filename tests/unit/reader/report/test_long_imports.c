/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* reader/report_begin: runs that imported for most of their time. */
#include <math.h>
#include <stdio.h>

#include "seep_test.h"

#include "base/word.h"
#include "begin_run.h"

#define MODULE_S 4
#define PIECE_BYTES 40000
#define START_BYTES (UINT64_C(50) << 20)

/* Module after module, until @to_s; each keeps what it takes. */
static void imports(struct judge_run *f, double from_s, double to_s)
{
    char module[64];

    for (double at_s = from_s; at_s < to_s; at_s += MODULE_S) {
        snprintf(module, sizeof(module), "/v/site-packages/torch/m%.0f.py",
                 at_s);
        begin_takes(f, begin_import(f, module), PIECE_BYTES, at_s,
                    fmin(at_s + MODULE_S, to_s), true);
    }
}

/* Private memory, over a run of @to_s: it grows until @full_s, and by @rate
 * from there on. */
static void resides(struct judge_run *f, double full_s, double rate,
                    double to_s)
{
    for (uint32_t i = 0; i < 64; i++) {
        double t_s = to_s * (i + 1) / 64;
        double bytes = (double)START_BYTES +
                       PIECE_BYTES * 10 * fmin(t_s, full_s) +
                       rate * fmax(0, t_s - full_s);

        builder_moment(&f->builder, i, JUDGE_TICKS(t_s) - 1, (uint64_t)bytes,
                       0);
    }
}

static const struct seep_report_site *of_line(const struct seep_report *report,
                                              uint32_t line)
{
    for (size_t i = 0; i < report->site_count; i++) {
        if (report->sites[i].frame_count > 0 &&
            report->sites[i].frames[0]->line == line) {
            return &report->sites[i];
        }
    }
    fail_msg("no row is of line %u", line);
    return NULL;
}

static void assert_no_import_is_loud(const struct seep_report *report)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        assert_false(site->is_start && site->class < SEEP_CLASS_INSUFFICIENT);
        assert_false(site->is_start && site->has_growth);
    }
}

static void assert_is_too_little(const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;

    assert_int_equal(verdict->class, SEEP_VERDICT_INSUFFICIENT);
    assert_true(report->begin.mostly_imports);
    assert_non_null(strstr(verdict->reason, "mostly imports"));
    assert_false(verdict->reassures);
    assert_no_import_is_loud(report);
}

/* What the issue had: a leak, or a suspect, at the line of an import. */
static void a_short_work_behind_long_imports_is_too_little(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;

    imports(f, 0, 88);
    begin_takes(f, begin_work(f, 20, false), 4096, 88, 100, false);
    resides(f, 88, 0, 100);
    report = judge_report(f, 100);
    assert_is_too_little(report);
    assert_true(fabs(report->begin.imports_s - 88) < 2);
    assert_true(report->verdict.hidden_bytes_per_s > 0);
    assert_true(report->verdict.hidden_bytes_per_s < 1 << 20);
    assert_false(report->verdict.private_grows);
    assert_true(fabs(report->verdict.need_s - 18) < 2);
}

/* Too few samples of private memory: what call sites kept is the most. */
static void what_could_hide_is_told_of_call_sites_alone(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;

    imports(f, 0, 90);
    begin_takes(f, begin_work(f, 31, false), PIECE_BYTES, 90, 100, true);
    report = judge_report(f, 100);
    assert_is_too_little(report);
    assert_true(report->verdict.hidden_bytes_per_s >= 380000);
    assert_true(report->verdict.hidden_bytes_per_s < 500000);
}

static void imports_that_still_run_are_too_little(void **state)
{
    struct judge_run *f = *state;

    imports(f, 0, 100);
    resides(f, 100, 0, 100);
    assert_is_too_little(judge_report(f, 100));
}

/* A little of something else is no wait for work. */
static void what_little_is_done_meanwhile_is_no_work(void **state)
{
    struct judge_run *f = *state;

    imports(f, 0, 100);
    begin_takes(f, begin_work(f, 20, false), 4096, 60, 62, false);
    assert_is_too_little(judge_report(f, 100));
}

/* With other work meanwhile. */
static void imports_of_one_stack_are_imports(void **state)
{
    struct judge_run *f = *state;

    imports(f, 0, 20);
    begin_takes(f, begin_coarse(f), PIECE_BYTES, 20, 85, true);
    begin_takes(f, begin_work(f, 20, false), 4096, 0, 100, false);
    resides(f, 85, 0, 100);
    assert_is_too_little(judge_report(f, 100));
}

static void what_a_function_does_inside_of_them_ends_with_them(void **state)
{
    struct judge_run *f = *state;

    imports(f, 0, 90);
    begin_takes(f, begin_work(f, 12, true), PIECE_BYTES, 0, 90, true);
    begin_takes(f, begin_work(f, 20, false), 4096, 90, 100, false);
    assert_is_too_little(judge_report(f, 100));
    judge_assert_class(of_line(f->report, 12), "insufficient-data");
}

static void a_leak_of_a_thread_during_imports_is_found(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *leak;

    imports(f, 0, 85);
    begin_takes(f, begin_work(f, 31, false), 20000, 0, 100, true);
    resides(f, 85, 200000, 100);
    leak = of_line(judge_report(f, 100), 31);
    assert_int_equal(f->report->verdict.class, SEEP_VERDICT_LEAK);
    judge_assert_class(leak, "leak");
    assert_true(fabs(leak->growth_bytes_per_s.estimate / 200000 - 1) < 0.1);
    assert_no_import_is_loud(f->report);
}

/* Then they are less than half of what is allocated, and seem to be over. */
static void the_last_imports_beside_a_thread_are_no_growth(void **state)
{
    struct judge_run *f = *state;

    imports(f, 0, 84);
    begin_takes(f, begin_import(f, "/v/site-packages/torch/last.py"), 18000, 84,
                96, true);
    begin_takes(f, begin_work(f, 31, false), 20000, 0, 100, true);
    assert_int_equal(judge_report(f, 100)->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(f->report->verdict.growing_count, 1);
    assert_no_import_is_loud(f->report);
}

static void a_leak_of_a_thread_is_found_while_it_imports(void **state)
{
    struct judge_run *f = *state;

    imports(f, 0, 100);
    begin_takes(f, begin_work(f, 31, false), 20000, 0, 100, true);
    assert_int_equal(judge_report(f, 100)->verdict.class, SEEP_VERDICT_LEAK);
    judge_assert_class(of_line(f->report, 31), "leak");
    assert_no_import_is_loud(f->report);
}

static void a_leak_in_too_little_work_is_not_said_to_be_none(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;

    imports(f, 0, 80);
    begin_takes(f, begin_work(f, 20, false), 4096, 80, 100, false);
    begin_takes(f, begin_work(f, 31, false), PIECE_BYTES, 80, 100, true);
    resides(f, 80, 400000, 100);
    report = judge_report(f, 100);
    assert_is_too_little(report);
    assert_true(report->verdict.hidden_bytes_per_s >= 400000);
}

static void a_leak_in_30_s_of_work_is_one_at_its_rate(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *leak;

    imports(f, 0, 160);
    begin_takes(f, begin_work(f, 20, false), 4096, 160, 200, false);
    begin_takes(f, begin_work(f, 31, false), PIECE_BYTES, 160, 200, true);
    resides(f, 160, 400000, 200);
    leak = of_line(judge_report(f, 200), 31);
    assert_int_equal(f->report->verdict.class, SEEP_VERDICT_LEAK);
    assert_string_equal(f->report->verdict.first_id, leak->id);
    judge_assert_class(leak, "leak");
    assert_true(fabs(leak->growth_bytes_per_s.estimate / 400000 - 1) < 0.1);
    assert_no_import_is_loud(f->report);
}

static void as_much_work_without_a_leak_is_too_little(void **state)
{
    struct judge_run *f = *state;

    imports(f, 0, 160);
    begin_takes(f, begin_work(f, 20, false), 4096, 160, 200, false);
    resides(f, 160, 0, 200);
    assert_is_too_little(judge_report(f, 200));
    assert_true(fabs(f->report->verdict.need_s - 160 / 3.0 + 40) < 3);
}

/* Growth counted from half of the run, and with it the imports'. */
static void imports_of_more_than_half_of_the_run_are_no_growth(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;

    imports(f, 0, 70);
    begin_takes(f, begin_work(f, 20, false), 4096, 70, 100, false);
    resides(f, 70, 0, 100);
    report = judge_report(f, 100);
    assert_false(report->begin.mostly_imports);
    assert_int_equal(report->verdict.class, SEEP_VERDICT_STEADY);
    assert_no_import_is_loud(report);
}

static void a_leak_behind_them_has_its_own_rate(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *leak;

    imports(f, 0, 70);
    begin_takes(f, begin_work(f, 20, false), 4096, 70, 100, false);
    begin_takes(f, begin_work(f, 31, false), PIECE_BYTES, 70, 100, true);
    leak = of_line(judge_report(f, 100), 31);
    judge_assert_class(leak, "leak");
    assert_true(fabs(leak->growth_bytes_per_s.estimate / 400000 - 1) < 0.1);
}

/* It serves from the body of a module that is imported. */
static void a_library_that_serves_inside_of_an_import_is_no_import(void **state)
{
    struct judge_run *f = *state;

    imports(f, 0, 20);
    begin_takes(f, begin_import(f, "/v/site-packages/server/main.py"),
                PIECE_BYTES, 20, 100, true);
    assert_int_equal(judge_report(f, 100)->verdict.class, SEEP_VERDICT_LEAK);
    assert_false(f->report->begin.mostly_imports);
}

/* A plugin a minute, and none is ever given back. */
static void whoever_imports_for_hours_may_leak_modules(void **state)
{
    struct judge_run *f = *state;
    char module[64];

    for (int i = 0; i < 120; i++) {
        snprintf(module, sizeof(module), "/v/site-packages/plugin/m%d.py", i);
        for (int k = 0; k < 4; k++) {
            judge_born(f, begin_import(f, module), PIECE_BYTES, i * 60 + k);
        }
    }
    judge_report(f, 7200);
    assert_false(f->report->begin.mostly_imports);
    assert_int_not_equal(f->report->verdict.class, SEEP_VERDICT_INSUFFICIENT);
    assert_false(f->report->verdict.reassures);
}

static void a_unit_of_work_told_at_once_is_no_import(void **state)
{
    struct judge_run *f = *state;

    imports(f, 0, 90);
    begin_takes(f, begin_work(f, 31, false), PIECE_BYTES, 0, 100, true);
    for (uint32_t i = 0; i < 100; i++) {
        builder_moment(&f->builder, i, JUDGE_TICKS(i + 1), 1000,
                       (i + 1) * UINT64_C(10));
    }
    assert_int_equal(judge_report(f, 100)->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(f->report->begin.source, SEEP_BEGINS_AT_START);
    assert_false(f->report->begin.mostly_imports);
}

#define WITH(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_exact, judge_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_short_work_behind_long_imports_is_too_little),
        WITH(what_could_hide_is_told_of_call_sites_alone),
        WITH(imports_that_still_run_are_too_little),
        WITH(what_little_is_done_meanwhile_is_no_work),
        WITH(imports_of_one_stack_are_imports),
        WITH(what_a_function_does_inside_of_them_ends_with_them),
        WITH(a_leak_of_a_thread_during_imports_is_found),
        WITH(the_last_imports_beside_a_thread_are_no_growth),
        WITH(a_leak_of_a_thread_is_found_while_it_imports),
        WITH(a_leak_in_too_little_work_is_not_said_to_be_none),
        WITH(a_leak_in_30_s_of_work_is_one_at_its_rate),
        WITH(as_much_work_without_a_leak_is_too_little),
        WITH(imports_of_more_than_half_of_the_run_are_no_growth),
        WITH(a_leak_behind_them_has_its_own_rate),
        WITH(a_library_that_serves_inside_of_an_import_is_no_import),
        WITH(whoever_imports_for_hours_may_leak_modules),
        WITH(a_unit_of_work_told_at_once_is_no_import),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
