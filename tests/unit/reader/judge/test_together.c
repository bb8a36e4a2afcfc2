/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which sites grow in step, and which of them stands first. */
#include "group_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reader/compare/suppress.h"
#include "reader/judge/sites.h"

#define STEPS 8000
#define LENT_BYTES 200 /* as a tuple of 20 */
#define TEXT_BYTES 453 /* never lent */
#define LARGE_EVERY 800

/* A line of a function of its own, in space python. */
static uint32_t line_of(struct judge_run *f, const char *function,
                        uint32_t line)
{
    uint32_t code = builder_code(&f->builder, SEEP_CODE_PYTHON, "/srv/serve.py",
                                 function, line);

    return builder_site(&f->builder, group_stack(f, code, line, line),
                        SEEP_SPACE_PYTHON);
}

static double second_of(int step)
{
    return (double)step * JUDGE_RUN_S / STEPS;
}

/* Of @born blocks a step the first @kept stay. */
static void make(struct judge_run *f, uint32_t site, uint64_t size, int step,
                 int born, int kept)
{
    for (int i = 0; i < born; i++) {
        uint64_t address = judge_born(f, site, size, second_of(step));

        if (i >= kept) {
            judge_died(f, address, second_of(step));
        }
    }
}

/* Of a line that makes 20 blocks of @size for each that is left. */
static void churn(struct judge_run *f, const char *function, uint64_t size)
{
    uint32_t site = line_of(f, function, 8);

    for (int step = 0; step < STEPS; step++) {
        make(f, site, size, step, 20, 1);
    }
}

/* One of three stays. */
static void keep(struct judge_run *f, const char *function, uint32_t line)
{
    uint32_t site = line_of(f, function, line);

    for (int step = 0; step < STEPS; step++) {
        make(f, site, TEXT_BYTES, step, 3, 1);
    }
}

static void assert_alone(const struct seep_report *report, const char *where)
{
    const struct seep_report_site *site = group_find(report, where);

    judge_assert_class(site, "leak");
    assert_int_equal(site->role, SEEP_ROLE_NONE);
    assert_string_equal(site->group_id, "");
}

static void a_line_that_lends_stands_behind_the_one_that_keeps(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;
    const struct seep_report_site *keeper;
    const struct seep_report_site *lender;
    double sum;

    churn(f, "parse", LENT_BYTES);
    keep(f, "store", 31);
    report = group_report(f, SEEP_BY_LINE);
    keeper = group_find(report, "serve.py:31 store");
    lender = group_find(report, "serve.py:8 parse");
    assert_ptr_equal(&report->sites[0], keeper);
    judge_assert_class(keeper, "leak");
    judge_assert_class(lender, "backing");
    assert_non_null(strstr(lender->class_reason, "serve.py:31 store"));
    assert_int_equal(keeper->role, SEEP_ROLE_HEAD);
    assert_int_equal(lender->role, SEEP_ROLE_LENDER);
    assert_string_equal(lender->group_id, keeper->id);
    assert_true(fabs(keeper->keeps_share - 1.0 / 3) < 0.01);
    assert_true(fabs(lender->keeps_share - 1.0 / 20) < 0.01);
    assert_true(fabs(lender->lendable_share - 1) < 0.01);
    assert_true(keeper->lendable_share < 0.01);
    sum = keeper->growth_bytes_per_s.estimate +
          lender->growth_bytes_per_s.estimate;
    assert_true(fabs(keeper->group_growth_bytes_per_s.estimate / sum - 1) <
                1e-9);
    /* And the process grows by no less than it did. */
    assert_string_equal(report->verdict.first_id, keeper->id);
    assert_true(fabs(report->verdict.growth_bytes_per_s.estimate / sum - 1) <
                1e-9);
    assert_true(report->verdict.first_share > 0.999);
    assert_int_equal(report->verdict.growing_count, 1);
}

/* All of its dicts are lent: of its own it keeps texts, and less than a share
 * three times as large. */
static void a_keeper_keeps_what_is_never_lent(void **state)
{
    struct judge_run *f = *state;
    uint32_t lender = line_of(f, "parse", 8);
    uint32_t keeper = line_of(f, "store", 31);

    for (int step = 0; step < STEPS; step++) {
        make(f, lender, LENT_BYTES, step, 7, 1);
        make(f, keeper, TEXT_BYTES, step, 5, 1);
    }
    group_report(f, SEEP_BY_LINE);
    judge_assert_class(group_find(f->report, "serve.py:8 parse"), "backing");
    assert_int_equal(group_find(f->report, "serve.py:31 store")->role,
                     SEEP_ROLE_HEAD);
}

/* What it keeps could have been lent as well: who lends to whom? */
static void of_two_that_keep_as_much_none_is_the_lender(void **state)
{
    struct judge_run *f = *state;
    uint32_t one = line_of(f, "parse", 8);
    uint32_t other = line_of(f, "store", 31);

    for (int step = 0; step < STEPS; step++) {
        make(f, one, LENT_BYTES, step, 20, 1);
        make(f, other, LENT_BYTES, step, 10, 1);
    }
    assert_alone(group_report(f, SEEP_BY_LINE), "serve.py:8 parse");
    assert_alone(f->report, "serve.py:31 store");
}

static void without_a_keeper_it_is_a_leak(void **state)
{
    struct judge_run *f = *state;

    churn(f, "parse", LENT_BYTES);
    assert_alone(group_report(f, SEEP_BY_LINE), "serve.py:8 parse");
}

static void what_is_never_lent_is_a_leak(void **state)
{
    struct judge_run *f = *state;

    churn(f, "parse", LENT_BYTES + 1);
    keep(f, "store", 31);
    assert_alone(group_report(f, SEEP_BY_LINE), "serve.py:8 parse");
    assert_alone(f->report, "serve.py:31 store");
    assert_int_equal(f->report->verdict.growing_count, 2);
}

/* Most of what it kept was kept before the other began. */
static void a_line_that_grew_before_its_keeper_is_a_leak(void **state)
{
    struct judge_run *f = *state;
    uint32_t keeper = line_of(f, "store", 31);

    churn(f, "parse", LENT_BYTES);
    for (int step = 4 * STEPS / 10; step < STEPS; step++) {
        make(f, keeper, TEXT_BYTES, step, 3, 2);
    }
    assert_int_equal(
        group_find(group_report(f, SEEP_BY_LINE), "serve.py:8 parse")->role,
        SEEP_ROLE_NONE);
    judge_assert_class(group_find(f->report, "serve.py:8 parse"), "leak");
}

static void of_a_keeper_that_is_suppressed_the_lender_is_a_leak(void **state)
{
    struct judge_run *f = *state;
    struct seep_rules *rules = NULL;
    struct seep_report_options how = {.by = SEEP_BY_LINE};
    char path[BUILDER_PATH_BYTES];
    FILE *file;

    churn(f, "parse", LENT_BYTES);
    keep(f, "store", 31);
    builder_temporary(path);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("leak:^store$\n", file);
    fclose(file);
    assert_int_equal(seep_suppressions_add_file(&rules, path, NULL), 0);
    unlink(path);
    how.suppressions = rules;
    assert_alone(group_read(f, &how), "serve.py:8 parse");
    seep_rules_close(rules);
}

static void two_leaks_under_one_load_are_two_rows(void **state)
{
    struct judge_run *f = *state;

    keep(f, "store", 31);
    keep(f, "log", 40);
    assert_alone(group_report(f, SEEP_BY_LINE), "serve.py:31 store");
    assert_alone(f->report, "serve.py:40 log");
    assert_int_equal(f->report->verdict.growing_count, 2);
}

/* In a script all is one function. */
static void two_lines_of_a_program_are_two_rows(void **state)
{
    struct judge_run *f = *state;

    keep(f, "<module>", 31);
    keep(f, "<module>", 40);
    assert_alone(group_report(f, SEEP_BY_LINE), "serve.py:31 <module>");
    assert_alone(f->report, "serve.py:40 <module>");
}

static void lines_of_one_function_are_one_group(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;
    const struct seep_report_site *head;
    const struct seep_report_site *other;
    uint32_t whole = line_of(f, "store", 40);

    keep(f, "store.<locals>.<listcomp>", 31);
    for (int step = 0; step < STEPS; step++) {
        make(f, whole, 330, step, 1, 1);
    }
    report = group_report(f, SEEP_BY_LINE);
    head = group_find(report, "serve.py:40 store");
    other = group_find(report, "serve.py:31 store.<locals>.<listcomp>");
    assert_ptr_equal(&report->sites[0], head);
    assert_ptr_equal(&report->sites[1], other);
    judge_assert_class(other, "leak");
    assert_int_equal(other->role, SEEP_ROLE_MEMBER);
    assert_string_equal(other->group_id, head->id);
    assert_string_equal(report->verdict.first_id, head->id);
    assert_int_equal(report->verdict.growing_count, 2);
    assert_true(report->verdict.first_share > 0.999);
}

/* Large blocks, and so few of them that alone they are suspected only. */
static void what_grows_in_step_with_a_leak_is_part_of_it(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;
    const struct seep_report_site *head;
    const struct seep_report_site *other;
    uint32_t large = line_of(f, "store", 40);
    double sum;

    keep(f, "store.<locals>.<listcomp>", 31);
    for (int step = 0; step < STEPS; step++) {
        make(f, large, 600000, step, 1, step % LARGE_EVERY == 0);
    }
    report = group_report(f, SEEP_BY_LINE);
    head = group_find(report, "serve.py:31 store.<locals>.<listcomp>");
    other = group_find(report, "serve.py:40 store");
    judge_assert_class(head, "leak");
    judge_assert_class(other, "suspect");
    assert_int_equal(other->role, SEEP_ROLE_MEMBER);
    assert_true(other->leaks_in_step);
    sum =
        head->growth_bytes_per_s.estimate + other->growth_bytes_per_s.estimate;
    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_int_equal(report->verdict.growing_count, 2);
    assert_true(fabs(report->verdict.growth_bytes_per_s.estimate / sum - 1) <
                1e-9);
    assert_true(report->verdict.first_share > 0.999);
}

static void step_of(const double *births, size_t count,
                    struct seep_step *ret_step)
{
    static struct seep_survivor survivors[20000];

    for (size_t i = 0; i < count; i++) {
        survivors[i] = (struct seep_survivor){
            .birth = births[i], .weight = 64, .size_bytes = 64};
    }
    seep_step_init(survivors, count, ret_step);
}

/* @each at each of @at, and @rest spread evenly. @return how many */
static size_t burst(const double *at, size_t count, size_t each, size_t rest,
                    double *births)
{
    size_t made = 0;

    for (size_t i = 0; i < count * each; i++) {
        births[made++] = at[i % count] + 1e-6 * (double)(i % 7);
    }
    for (size_t i = 0; i < rest; i++) {
        births[made++] = ((double)i + 0.5) / (double)rest;
    }
    return made;
}

static void the_same_bursts_are_one_cause(void **state)
{
    static const double at[] = {0.17, 0.31, 0.52, 0.77, 0.93};
    static const double elsewhere[] = {0.21, 0.31, 0.58, 0.71, 0.87};
    double births[4000];
    struct seep_step a, b, other, flat;

    (void)state;
    step_of(births, burst(at, 5, 100, 200, births), &a);
    step_of(births, burst(at, 5, 40, 0, births), &b);
    step_of(births, burst(elsewhere, 5, 100, 200, births), &other);
    step_of(births, burst(at, 0, 0, 2000, births), &flat);
    assert_true(seep_step_has_same_bursts(&a, &b));
    assert_true(seep_step_has_same_bursts(&b, &a));
    assert_false(seep_step_has_same_bursts(&a, &other));
    assert_false(seep_step_has_same_bursts(&a, &flat));
    assert_false(seep_step_has_same_bursts(&flat, &flat));
    /* Two may be chance. */
    step_of(births, burst(at, 2, 100, 200, births), &a);
    assert_false(seep_step_has_same_bursts(&a, &a));
}

static void what_begins_late_is_not_in_step_with_what_was_there(void **state)
{
    static const double none[1];
    double births[4000];
    struct seep_step flat, few, late;

    (void)state;
    step_of(births, burst(none, 0, 0, 2000, births), &flat);
    step_of(births, burst(none, 0, 0, 30, births), &few);
    for (size_t i = 0; i < 1000; i++) {
        births[i] = 0.5 + (double)i / 2000;
    }
    step_of(births, 1000, &late);
    assert_true(seep_step_is_shared(&flat, &flat));
    assert_true(seep_step_is_shared(&flat, &few));
    assert_false(seep_step_is_shared(&flat, &late));
    assert_false(seep_step_is_shared(&late, &few));
    step_of(births, 4, &few);
    assert_false(seep_step_is_shared(&few, &few));
}

/* A sample of 64 bytes stands for the mean interval, and takes 80. */
static void a_block_is_lent_by_the_size_that_was_asked_for(void **state)
{
    struct seep_survivor survivors[3];
    struct seep_step step;
    const uint32_t sizes[] = {64, 65, 513};

    (void)state;
    for (int i = 0; i < 3; i++) {
        survivors[i] = (struct seep_survivor){
            .birth = 0.5, .weight = 81920, .size_bytes = sizes[i]};
    }
    seep_step_init(survivors, 3, &step);
    assert_true(step.total == 3 && step.lendable == 1);
}

#define EXACT(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_exact, judge_tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        EXACT(a_line_that_lends_stands_behind_the_one_that_keeps),
        EXACT(a_keeper_keeps_what_is_never_lent),
        EXACT(of_two_that_keep_as_much_none_is_the_lender),
        EXACT(without_a_keeper_it_is_a_leak),
        EXACT(what_is_never_lent_is_a_leak),
        EXACT(a_line_that_grew_before_its_keeper_is_a_leak),
        EXACT(of_a_keeper_that_is_suppressed_the_lender_is_a_leak),
        EXACT(two_leaks_under_one_load_are_two_rows),
        EXACT(two_lines_of_a_program_are_two_rows),
        EXACT(lines_of_one_function_are_one_group),
        EXACT(what_grows_in_step_with_a_leak_is_part_of_it),
        cmocka_unit_test(the_same_bursts_are_one_cause),
        cmocka_unit_test(what_begins_late_is_not_in_step_with_what_was_there),
        cmocka_unit_test(a_block_is_lent_by_the_size_that_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
