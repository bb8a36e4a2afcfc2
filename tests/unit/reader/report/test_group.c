/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* That a row of several stacks is judged as if all of it had been one stack. */
#include "group_run.h"

#include <math.h>
#include <string.h>

/* What comes is folded as it comes: the lowest bytes depend on the order. */
static uint64_t born_now(struct group_run *run, uint64_t size, double second)
{
    uint64_t address = group_born(run, size, second);

    builder_fold(&run->f->builder);
    return address;
}

static void died_now(struct group_run *run, uint64_t address, double second)
{
    judge_died(run->f, address, second);
    builder_fold(&run->f->builder);
}

/* A leak among blocks that die young and some that die old. */
static void play(struct group_run *run)
{
    uint64_t old[13] = {0};
    uint32_t next = 0;
    uint32_t step = 0;

    for (double second = 0; second < JUDGE_RUN_S - 1; second += 0.25) {
        born_now(run, 40000, second);
        died_now(run, born_now(run, 9000, second + 0.1), second + 0.12);
        if (step++ % 8 != 0) {
            continue;
        }
        if (old[next % 13] != 0) { /* at 26 s of 100 */
            died_now(run, old[next % 13], second + 0.15);
        }
        old[next % 13] = born_now(run, 500 + next, second + 0.2);
        next++;
    }
    judge_work(run->f);
}

static void assert_interval(struct seep_interval a, struct seep_interval b)
{
    assert_true(a.estimate == b.estimate && a.low == b.low && a.high == b.high);
}

/* All of it, but where several stacks give back in one bucket: then the lowest
 * of all is not known, and what is told is not above it. */
static void assert_series(const struct seep_report_site *one,
                          const struct seep_report_site *many)
{
    size_t same = 0;

    assert_int_equal(one->point_count, many->point_count);
    for (size_t i = 0; i < one->point_count; i++) {
        struct seep_report_point point = many->series[i];

        assert_true(point.low_bytes <= one->series[i].low_bytes);
        same += point.low_bytes == one->series[i].low_bytes;
        point.low_bytes = one->series[i].low_bytes;
        assert_memory_equal(&point, &one->series[i], sizeof(point));
    }
    assert_true(same > one->point_count / 2);
}

static void assert_same(const struct seep_report_site *a,
                        const struct seep_report_site *b)
{
    assert_int_equal(a->class, b->class);
    assert_string_equal(a->class_reason, b->class_reason);
    assert_int_equal(a->live_bytes, b->live_bytes);
    assert_true(a->live_bytes_error == b->live_bytes_error);
    assert_true(a->live_count == b->live_count);
    assert_int_equal(a->allocated_bytes, b->allocated_bytes);
    assert_true(a->allocated_count == b->allocated_count);
    assert_int_equal(a->freed_bytes, b->freed_bytes);
    assert_true(a->freed_count == b->freed_count);
    assert_int_equal(a->largest_bytes, b->largest_bytes);
    assert_true(a->first_s == b->first_s && a->last_s == b->last_s);
    assert_memory_equal(a->window_bytes, b->window_bytes,
                        sizeof(a->window_bytes));
    assert_int_equal(a->has_growth, b->has_growth);
    assert_interval(a->growth_bytes_per_s, b->growth_bytes_per_s);
    assert_true(a->growth_now_bytes_per_s == b->growth_now_bytes_per_s);
    assert_true(a->confidence == b->confidence);
    assert_memory_equal(&a->kept, &b->kept, sizeof(a->kept));
    assert_series(a, b);
}

static void a_row_of_many_stacks_is_judged_as_if_it_were_one(void **state)
{
    struct judge_run *one = *state;
    struct judge_run *many;
    struct group_run run;
    const struct seep_report_site *a;
    const struct seep_report_site *b;

    judge_set_up_exact((void **)&many);
    group_begin(&run, one, 1);
    play(&run);
    group_begin(&run, many, 7);
    play(&run);
    a = group_find(group_report(one, SEEP_BY_STACK), "serve.py:31 handle");
    b = group_find(group_report(many, SEEP_BY_LINE), "serve.py:31 handle");
    judge_assert_class(a, "leak");
    assert_true(a->kept.died_share > 0);
    assert_same(a, b);
    assert_int_equal(a->stack_count, 1);
    assert_string_not_equal(a->id, a->line_id);
    assert_string_equal(a->line_id, b->id);
    assert_string_equal(b->line_id, "");
    assert_int_equal(b->stack_count, 7);
    assert_int_equal(many->report->verdict.class, one->report->verdict.class);
    assert_interval(many->report->verdict.growth_bytes_per_s,
                    one->report->verdict.growth_bytes_per_s);
    assert_string_equal(many->report->verdict.first_id, b->id);
    judge_tear_down((void **)&many);
}

/* A list that grows, from wherever it is appended to. */
static void one_block_that_grows_through_many_stacks_is_a_leak(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    const struct seep_report_site *site;
    uint64_t block = 0;

    group_begin(&run, f, 13);
    for (uint32_t i = 0; i < 26; i++) {
        if (block != 0) {
            died_now(&run, block, 3.8 * i);
        }
        block = born_now(&run, 200000 * (i + UINT64_C(1)), 3.8 * i);
    }
    judge_work(f);
    site = group_find(group_report(f, SEEP_BY_LINE), "serve.py:31 handle");
    judge_assert_class(site, "leak");
    assert_true(site->live_count == 1);
    assert_non_null(strstr(site->class_reason, "reallocated ever larger"));
}

/* By the work that is done it grew all the time; by the clock it took two
 * moments, in which no one can tell what was first. */
static void what_is_made_at_the_start_and_the_end_is_no_leak(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;

    group_begin(&run, f, 16);
    for (uint32_t i = 0; i < 40; i++) {
        double second = 0.01 + 0.002 * i + (i < 20 ? 0 : 97);
        uint64_t block = group_born(&run, 500000, second);

        if (i % 13 != 0) { /* four stay */
            judge_died(f, block, second + 0.001);
        }
    }
    assert_false(seep_class_may_leak(
        group_find(group_report(f, SEEP_BY_LINE), "serve.py:31 handle")
            ->class));
}

/* Small objects lie in Python's own mappings, large ones in malloc's heap:
 * which is which is asked of each site, not of the mean of a row. */
static void the_balance_does_not_know_of_rows(void **state)
{
    struct judge_run *f = *state;
    struct seep_rec_header *header = f->builder.view.header;
    struct group_run run;
    struct seep_report_memory memory;
    struct seep_report_moment moments[10];

    header->allocator = builder_string(&f->builder, "/lib/libc.so.6");
    builder_seal(&f->builder);
    group_begin(&run, f, 1);
    for (uint32_t i = 0; i < 2; i++) {
        run.sites[i] =
            builder_site(&f->builder, group_stack(f, run.code, 31, 10 + i),
                         SEEP_SPACE_PYTHON);
    }
    for (uint32_t i = 0; i < 100; i++) {
        judge_born(f, run.sites[0], 100, i);
        judge_born(f, run.sites[1], 5000, i);
    }
    for (uint32_t i = 0; i < 10; i++) {
        struct seep_rec_moment *moment = &f->builder.view.timeline[i];

        builder_moment(&f->builder, i, JUDGE_TICKS(10 * i + 9), 10000000, 0);
        atomic_store_explicit(&moment->allocator_allocated_bytes, 1000000,
                              memory_order_relaxed);
        atomic_store_explicit(&moment->allocator_resident_bytes, 2000000,
                              memory_order_relaxed);
    }
    memory = group_report(f, SEEP_BY_STACK)->memory;
    assert_int_equal(memory.moment_count, 10);
    memcpy(moments, memory.moments, sizeof(moments));
    assert_true(moments[9].held_bytes == 10000000);
    assert_true(moments[9].t_s > moments[8].t_s);
    group_report(f, SEEP_BY_LINE);
    assert_true(memory.valid && memory.allocator_reported);
    assert_memory_equal(moments, f->report->memory.moments, sizeof(moments));
    memory.moments = f->report->memory.moments; /* its own are gone */
    assert_memory_equal(&memory, &f->report->memory, sizeof(memory));
}

/* What all rows hold together is the same, however they are made. */
static void spaces_do_not_know_of_rows(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    struct seep_report_space stacks;
    struct seep_report_space lines;

    group_begin(&run, f, 7);
    play(&run);
    stacks = group_report(f, SEEP_BY_STACK)->spaces[0];
    lines = group_report(f, SEEP_BY_MODULE)->spaces[0];
    assert_int_equal(stacks.live_bytes, lines.live_bytes);
    assert_int_equal(stacks.allocated_bytes, lines.allocated_bytes);
    assert_int_equal(stacks.first_bytes, lines.first_bytes);
    assert_true(stacks.slope_bytes_per_s == lines.slope_bytes_per_s);
}

/* Each stack by itself, as flame graphs want them. */
static void the_stacks_of_a_row_are_together_what_it_is(void **state)
{
    const struct seep_report_options how = {.by = SEEP_BY_LINE, .stacks = true};
    struct judge_run *f = *state;
    struct group_run run;
    const struct seep_report *report;
    const struct seep_report_site *row;
    uint64_t live = 0;
    uint64_t allocated = 0;
    uint64_t last = 0;
    size_t count = 0;

    group_begin(&run, f, 7);
    play(&run);
    report = group_read(f, &how);
    row = group_find(report, "serve.py:31 handle");
    for (size_t i = 0; i < report->stack_count; i++) {
        const struct seep_report_site *stack = &report->stacks[i].site;

        if (report->stacks[i].row == (size_t)(row - report->sites)) {
            assert_int_equal(stack->frame_count, 3);
            assert_string_equal(stack->frames[1]->function, "handle");
            live += stack->live_bytes;
            allocated += stack->allocated_bytes;
            last += stack->series[stack->point_count - 1].live_bytes;
            count++;
        }
    }
    assert_int_equal(count, row->stack_count);
    assert_int_equal(report->stack_count, 8);
    assert_int_equal(live, row->live_bytes);
    assert_int_equal(last, row->live_bytes);
    assert_int_equal(allocated, row->allocated_bytes);
    assert_int_equal(group_report(f, SEEP_BY_LINE)->stack_count, 0);
}

static void
a_leak_that_is_split_over_many_stacks_is_found_by_its_line(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    const struct seep_report *report;

    group_begin(&run, f, 50);
    for (double second = 0; second < JUDGE_RUN_S - 1; second += 1) {
        group_born(&run, 60000, second);
    }
    judge_work(f);
    report = group_report(f, SEEP_BY_STACK);
    assert_int_not_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    report = group_report(f, SEEP_BY_LINE);
    assert_int_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    assert_string_equal(report->sites[0].where, "serve.py:31 handle");
    assert_true(report->sites[0].growth_bytes_per_s.low <= 60000 &&
                report->sites[0].growth_bytes_per_s.high >= 60000);
}

static void
the_sampling_error_of_a_row_is_that_of_its_stacks_together(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    const struct seep_report *report;
    double squares = 0;

    group_begin(&run, f, 3);
    for (double second = 0; second < JUDGE_RUN_S - 1; second += 1) {
        group_born(&run, 30000, second);
    }
    report = group_report(f, SEEP_BY_STACK);
    assert_int_equal(report->site_count, 3);
    for (size_t i = 0; i < 3; i++) {
        double error = report->sites[i].live_bytes_error;

        assert_true(error > 0);
        squares += error * error;
    }
    report = group_report(f, SEEP_BY_LINE);
    assert_int_equal(report->site_count, 1);
    assert_true(fabs(report->sites[0].live_bytes_error - sqrt(squares)) < 1);
}

static void the_largest_stack_of_a_row_is_shown(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    const struct seep_report_site *site;

    group_begin(&run, f, 3);
    judge_born(f, run.sites[0], 100, 1);
    judge_born(f, run.sites[1], 300, 2);
    judge_born(f, run.sites[2], 200, 3);
    site = &group_report(f, SEEP_BY_LINE)->sites[0];
    assert_int_equal(site->live_bytes, 600);
    assert_int_equal(site->stack_live_bytes, 300);
    assert_int_equal(site->stack_allocated_bytes, 300);
    assert_true(site->stack_allocated_count == 1);
    assert_int_equal(site->frame_count, 3);
    assert_int_equal(site->frames[0]->offset, 0x101);
    assert_int_equal(site->where_frame, 1);
    assert_int_equal(site->peak_bytes, 600);
    assert_int_equal(site->largest_bytes, 300);
}

/* As where the pool of series was used up. */
static void take_series(struct group_run *run)
{
    builder_fold(&run->f->builder);
    for (uint32_t i = 0; i < run->count; i++) {
        atomic_store_explicit(&run->f->builder.view.sites[run->sites[i]].series,
                              0, memory_order_relaxed);
    }
}

static void stacks_without_series_count_by_what_lives_of_them(void **state)
{
    struct judge_run *f = *state;
    double count = 0;
    struct group_run run;
    const struct seep_report_site *site;

    group_begin(&run, f, 10);
    for (double second = 0; second < JUDGE_RUN_S - 1; second += 0.5) {
        group_born(&run, 60000, second);
    }
    judge_work(f);
    take_series(&run);
    site = group_find(group_report(f, SEEP_BY_STACK), "serve.py:31 handle");
    judge_assert_class(site, "insufficient-data");
    site = group_find(group_report(f, SEEP_BY_LINE), "serve.py:31 handle");
    judge_assert_class(site, "leak");
    assert_int_equal(site->series[site->point_count - 1].live_bytes,
                     site->live_bytes);
    for (size_t i = 0; i < site->point_count; i++) {
        count += site->series[i].born_count;
    }
    assert_true(count == site->live_count);
}

/* What died of them may have been old: then it is no leak for sure. */
static void deaths_that_no_series_tells_of_speak_against_a_leak(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    const struct seep_report_site *site;

    group_begin(&run, f, 10);
    for (double second = 0; second < JUDGE_RUN_S - 1; second += 0.5) {
        group_born(&run, 60000, second);
        judge_died(f, group_born(&run, 60000, second), second + 0.25);
    }
    judge_work(f);
    take_series(&run);
    site = group_find(group_report(f, SEEP_BY_LINE), "serve.py:31 handle");
    judge_assert_class(site, "suspect");
    assert_string_equal(site->class_reason,
                        "most of it is at stacks without a time series");
}

/* A cache of each stack that is emptied by turns: never all at once. */
static void the_peak_of_a_row_is_not_below_what_lived_at_any_time(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    uint64_t held[2];

    group_begin(&run, f, 2);
    held[0] = group_born(&run, 100000, 10);
    held[1] = group_born(&run, 100000, 20);
    judge_died(f, held[0], 60);
    judge_died(f, held[1], 70);
    builder_fold(&f->builder);
    judge_work(f);
    assert_int_equal(
        group_find(group_report(f, SEEP_BY_LINE), "serve.py:31 handle")
            ->peak_bytes,
        200000);
}

#define EXACT(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_exact, judge_tear_down)
#define SAMPLED(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_sampled, judge_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXACT(a_row_of_many_stacks_is_judged_as_if_it_were_one),
        EXACT(one_block_that_grows_through_many_stacks_is_a_leak),
        EXACT(what_is_made_at_the_start_and_the_end_is_no_leak),
        EXACT(the_balance_does_not_know_of_rows),
        EXACT(spaces_do_not_know_of_rows),
        EXACT(the_stacks_of_a_row_are_together_what_it_is),
        EXACT(a_leak_that_is_split_over_many_stacks_is_found_by_its_line),
        SAMPLED(the_sampling_error_of_a_row_is_that_of_its_stacks_together),
        EXACT(the_largest_stack_of_a_row_is_shown),
        EXACT(stacks_without_series_count_by_what_lives_of_them),
        EXACT(deaths_that_no_series_tells_of_speak_against_a_leak),
        EXACT(the_peak_of_a_row_is_not_below_what_lived_at_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
