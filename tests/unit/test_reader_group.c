/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows of several stacks: what is one row, and that it is judged as if all of
 * it had been one stack.
 */
#include "judge_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader/suppress.h"

#define STACKS_MAX 64

/* A run whose events go to several stacks of one line, by turns. */
struct group_run {
    struct judge_run *f;
    uint32_t code;
    uint32_t sites[STACKS_MAX];
    uint32_t count;
    uint32_t turn;
};

static uint32_t stack_of_line(struct judge_run *f, uint32_t code, uint32_t line,
                              uint64_t offset)
{
    const uint64_t frames[] = {
        builder_frame(f->module, 0x100 + offset),
        builder_code_frame(code, line),
        builder_frame(f->module, 0x200 + offset),
    };

    return builder_stack(&f->builder, frames, 3);
}

static void begin(struct group_run *run, struct judge_run *f, uint32_t count)
{
    run->f = f;
    run->count = count;
    run->turn = 0;
    run->code = builder_code(&f->builder, SEEP_CODE_PYTHON, "/srv/serve.py",
                             "handle", 30);
    for (uint32_t i = 0; i < count; i++) {
        run->sites[i] = builder_site(
            &f->builder, stack_of_line(f, run->code, 31, i), SEEP_SPACE_HEAP);
    }
}

static uint64_t born(struct group_run *run, uint64_t size, double second)
{
    return judge_born(run->f, run->sites[run->turn++ % run->count], size,
                      second);
}

static const struct seep_report *read_by(struct judge_run *f,
                                         const struct seep_report_options *how)
{
    builder_exit(&f->builder, JUDGE_TICKS(JUDGE_RUN_S));
    builder_write(&f->builder, f->path);
    seep_report_close(f->report);
    f->report = NULL;
    assert_int_equal(seep_report_open(f->path, how, NULL, &f->report), 0);
    assert_int_equal(f->report->by, how->by);
    return f->report;
}

static const struct seep_report *report_by(struct judge_run *f,
                                           enum seep_grouping by)
{
    const struct seep_report_options how = {.by = by};

    return read_by(f, &how);
}

static const struct seep_report_site *find(const struct seep_report *report,
                                           const char *where)
{
    for (size_t i = 0; i < report->site_count; i++) {
        if (strcmp(report->sites[i].where, where) == 0) {
            return &report->sites[i];
        }
    }
    fail_msg("no row %s", where);
    return NULL;
}

/* What comes is folded as it comes: the lowest bytes depend on the order. */
static uint64_t born_now(struct group_run *run, uint64_t size, double second)
{
    uint64_t address = born(run, size, second);

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
    begin(&run, one, 1);
    play(&run);
    begin(&run, many, 7);
    play(&run);
    a = find(report_by(one, SEEP_BY_STACK), "serve.py:31 handle");
    b = find(report_by(many, SEEP_BY_LINE), "serve.py:31 handle");
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

    begin(&run, f, 13);
    for (uint32_t i = 0; i < 26; i++) {
        if (block != 0) {
            died_now(&run, block, 3.8 * i);
        }
        block = born_now(&run, 200000 * (i + UINT64_C(1)), 3.8 * i);
    }
    judge_work(f);
    site = find(report_by(f, SEEP_BY_LINE), "serve.py:31 handle");
    judge_assert_class(site, "leak");
    assert_true(site->live_count == 1);
    assert_non_null(strstr(site->class_reason, "reallocated ever larger"));
}

/* What all rows hold together is the same, however they are made. */
static void spaces_do_not_know_of_rows(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    struct seep_report_space stacks;
    struct seep_report_space lines;

    begin(&run, f, 7);
    play(&run);
    stacks = report_by(f, SEEP_BY_STACK)->spaces[0];
    lines = report_by(f, SEEP_BY_MODULE)->spaces[0];
    assert_int_equal(stacks.live_bytes, lines.live_bytes);
    assert_int_equal(stacks.allocated_bytes, lines.allocated_bytes);
    assert_int_equal(stacks.first_bytes, lines.first_bytes);
    assert_true(stacks.slope_bytes_per_s == lines.slope_bytes_per_s);
}

static void
a_leak_that_is_split_over_many_stacks_is_found_by_its_line(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    const struct seep_report *report;

    begin(&run, f, 50);
    for (double second = 0; second < JUDGE_RUN_S - 1; second += 1) {
        born(&run, 60000, second);
    }
    judge_work(f);
    report = report_by(f, SEEP_BY_STACK);
    assert_int_not_equal(report->verdict.class, SEEP_VERDICT_LEAK);
    report = report_by(f, SEEP_BY_LINE);
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

    begin(&run, f, 3);
    for (double second = 0; second < JUDGE_RUN_S - 1; second += 1) {
        born(&run, 30000, second);
    }
    report = report_by(f, SEEP_BY_STACK);
    assert_int_equal(report->site_count, 3);
    for (size_t i = 0; i < 3; i++) {
        double error = report->sites[i].live_bytes_error;

        assert_true(error > 0);
        squares += error * error;
    }
    report = report_by(f, SEEP_BY_LINE);
    assert_int_equal(report->site_count, 1);
    assert_true(fabs(report->sites[0].live_bytes_error - sqrt(squares)) < 1);
}

static void the_largest_stack_of_a_row_is_shown(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    const struct seep_report_site *site;

    begin(&run, f, 3);
    judge_born(f, run.sites[0], 100, 1);
    judge_born(f, run.sites[1], 300, 2);
    judge_born(f, run.sites[2], 200, 3);
    site = &report_by(f, SEEP_BY_LINE)->sites[0];
    assert_int_equal(site->live_bytes, 600);
    assert_int_equal(site->stack_live_bytes, 300);
    assert_int_equal(site->frame_count, 3);
    assert_int_equal(site->frames[0].offset, 0x101);
    assert_int_equal(site->where_frame, 1);
    assert_int_equal(site->peak_bytes, 600);
    assert_int_equal(site->largest_bytes, 300);
}

static void two_spaces_are_two_rows(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    uint32_t mapped;

    begin(&run, f, 1);
    mapped = builder_site(&f->builder, stack_of_line(f, run.code, 31, 9),
                          SEEP_SPACE_PYTHON);
    judge_born(f, run.sites[0], 100, 1);
    judge_born(f, mapped, 200, 1);
    assert_int_equal(report_by(f, SEEP_BY_LINE)->site_count, 2);
    assert_string_not_equal(f->report->sites[0].id, f->report->sites[1].id);
}

/* Two lines of one function, another function, a package, native code. */
static void fill_kinds(struct judge_run *f)
{
    uint32_t handle = builder_code(&f->builder, SEEP_CODE_PYTHON,
                                   "/srv/serve.py", "handle", 1);
    uint32_t put =
        builder_code(&f->builder, SEEP_CODE_PYTHON, "/srv/serve.py", "put", 1);
    uint32_t call = builder_code(
        &f->builder, SEEP_CODE_PYTHON,
        "/v/lib/python3.11/site-packages/torch/nn/module.py", "call", 1);
    uint32_t other = builder_code(
        &f->builder, SEEP_CODE_PYTHON,
        "/v/lib/python3.11/site-packages/torch/fx/node.py", "make", 1);
    const uint32_t stacks[] = {
        stack_of_line(f, handle, 31, 0), stack_of_line(f, handle, 32, 1),
        stack_of_line(f, handle, 32, 2), stack_of_line(f, put, 40, 3),
        stack_of_line(f, call, 5, 4),    stack_of_line(f, other, 6, 5),
    };

    for (uint32_t i = 0; i < 6; i++) {
        judge_born(f, builder_site(&f->builder, stacks[i], SEEP_SPACE_HEAP),
                   100, i);
    }
    judge_born(f, judge_site(f, 0x9999), 100, 6);
}

static void rows_are_lines_functions_or_modules(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report *report;

    fill_kinds(f);
    report = report_by(f, SEEP_BY_STACK);
    assert_int_equal(report->site_count, 7);
    report = report_by(f, SEEP_BY_LINE);
    assert_int_equal(report->site_count, 6);
    assert_int_equal(find(report, "serve.py:32 handle")->stack_count, 2);
    assert_int_equal(find(report, "module.py:5 call")->stack_count, 1);
    assert_int_equal(find(report, "worker+0x9999")->stack_count, 1);
    report = report_by(f, SEEP_BY_FUNCTION);
    assert_int_equal(report->site_count, 5);
    assert_int_equal(find(report, "serve.py handle")->stack_count, 3);
    report = report_by(f, SEEP_BY_MODULE);
    assert_int_equal(report->site_count, 3);
    assert_int_equal(find(report, "serve.py")->stack_count, 4);
    assert_int_equal(find(report, "torch")->stack_count, 2);
    assert_int_equal(find(report, "worker")->stack_count, 1);
}

/* Where nothing is known of a native line, a stack says more than an address:
 * ids are those of stacks, too. */
static void without_a_line_a_row_is_a_stack(void **state)
{
    struct judge_run *f = *state;
    char id[20];

    judge_born(f, judge_site(f, 0x9999), 100, 6);
    strcpy(id, report_by(f, SEEP_BY_STACK)->sites[0].id);
    assert_string_equal(report_by(f, SEEP_BY_LINE)->sites[0].id, id);
}

static uint32_t stack_in_thread(struct judge_run *f, uint32_t code,
                                const char *thread)
{
    uint64_t frames[2] = {builder_code_frame(code, 31), 0};

    if (thread != NULL) {
        frames[1] = builder_code_frame(
            builder_code(&f->builder, SEEP_CODE_THREAD, "", thread, 0), 0);
    }
    return builder_stack(&f->builder, frames, thread != NULL ? 2 : 1);
}

static void rows_are_threads_by_their_names_without_numbers(void **state)
{
    struct judge_run *f = *state;
    uint32_t handle = builder_code(&f->builder, SEEP_CODE_PYTHON,
                                   "/srv/serve.py", "handle", 1);
    uint32_t module = builder_code(&f->builder, SEEP_CODE_PYTHON,
                                   "/srv/serve.py", "<module>", 1);
    const uint32_t stacks[] = {
        stack_in_thread(f, handle, "pool-1"),
        stack_in_thread(f, module, "pool-23"),
        stack_in_thread(f, handle, "reader"),
        stack_in_thread(f, handle, NULL),
        stack_in_thread(f, module, NULL),
    };
    const struct seep_report *report;

    for (uint32_t i = 0; i < 5; i++) {
        judge_born(f, builder_site(&f->builder, stacks[i], SEEP_SPACE_HEAP),
                   100, i);
    }
    report = report_by(f, SEEP_BY_THREAD);
    assert_int_equal(report->site_count, 4);
    assert_int_equal(find(report, "pool-*")->stack_count, 2);
    assert_int_equal(find(report, "reader")->stack_count, 1);
    assert_int_equal(find(report, "thread of handle")->stack_count, 1);
    assert_int_equal(find(report, "main")->stack_count, 1);
}

/* Of a pool each worker has the same stacks. */
static void stacks_that_differ_in_the_number_of_a_thread_are_one(void **state)
{
    struct judge_run *f = *state;
    uint32_t handle = builder_code(&f->builder, SEEP_CODE_PYTHON,
                                   "/srv/serve.py", "handle", 1);
    const uint32_t stacks[] = {
        stack_in_thread(f, handle, "pool-1"),
        stack_in_thread(f, handle, "pool-2"),
    };

    for (uint32_t i = 0; i < 2; i++) {
        judge_born(f, builder_site(&f->builder, stacks[i], SEEP_SPACE_HEAP),
                   100, i);
    }
    assert_int_equal(report_by(f, SEEP_BY_STACK)->site_count, 1);
    assert_int_equal(f->report->sites[0].stack_count, 2);
}

static struct seep_suppressions *suppressions_of(const char *text)
{
    struct seep_suppressions *rules = NULL;
    char path[BUILDER_PATH_BYTES];
    FILE *file;

    builder_temporary(path);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(seep_suppressions_add_file(&rules, path, NULL), 0);
    unlink(path);
    return rules;
}

static void
stacks_of_a_line_that_are_suppressed_are_a_row_of_their_own(void **state)
{
    struct judge_run *f = *state;
    uint32_t library = builder_module(&f->builder, "/opt/libquiet.so", 0xcd);
    struct seep_report_options how = {.by = SEEP_BY_LINE};
    struct group_run run;
    uint64_t frames[2];
    uint32_t quiet;
    char id[20];

    begin(&run, f, 2);
    frames[0] = builder_frame(library, 0x10);
    frames[1] = builder_code_frame(run.code, 31);
    quiet = builder_site(&f->builder, builder_stack(&f->builder, frames, 2),
                         SEEP_SPACE_HEAP);
    judge_born(f, run.sites[0], 1000, 1);
    judge_born(f, run.sites[1], 100, 1);
    judge_born(f, quiet, 10, 1);
    strcpy(id, read_by(f, &how)->sites[0].id);
    assert_int_equal(f->report->site_count, 1);
    how.suppressions = suppressions_of("leak:libquiet\n");
    read_by(f, &how);
    assert_int_equal(f->report->site_count, 2);
    assert_null(f->report->sites[0].suppressed_by);
    assert_int_equal(f->report->sites[0].live_bytes, 1100);
    assert_string_equal(f->report->sites[0].id, id);
    assert_string_equal(f->report->sites[1].suppressed_by, "libquiet");
    assert_int_equal(f->report->sites[1].live_bytes, 10);
    seep_suppressions_close((struct seep_suppressions *)how.suppressions);
}

static void a_row_is_known_by_its_id_and_by_its_line(void **state)
{
    static const char *const lines[] = {NULL, "serve.py:31", "^handle$"};
    struct judge_run *f = *state;
    struct group_run run;
    struct seep_report_options how = {.by = SEEP_BY_LINE};
    char id[20];

    begin(&run, f, 3);
    born(&run, 1000, 1);
    born(&run, 1000, 2);
    strcpy(id, read_by(f, &how)->sites[0].id);
    for (size_t i = 0; i < 3; i++) {
        struct seep_known *known = NULL;

        assert_int_equal(
            seep_known_add(&known, lines[i] != NULL ? lines[i] : id, 5000), 0);
        how.known = known;
        read_by(f, &how);
        assert_int_equal(f->report->site_count, 1);
        assert_int_equal(f->report->sites[0].known_bound_bytes, 5000);
        assert_string_equal(f->report->sites[0].id, id);
        seep_known_close(known);
    }
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

    begin(&run, f, 10);
    for (double second = 0; second < JUDGE_RUN_S - 1; second += 0.5) {
        born(&run, 60000, second);
    }
    judge_work(f);
    take_series(&run);
    site = find(report_by(f, SEEP_BY_STACK), "serve.py:31 handle");
    judge_assert_class(site, "insufficient-data");
    site = find(report_by(f, SEEP_BY_LINE), "serve.py:31 handle");
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

    begin(&run, f, 10);
    for (double second = 0; second < JUDGE_RUN_S - 1; second += 0.5) {
        born(&run, 60000, second);
        judge_died(f, born(&run, 60000, second), second + 0.25);
    }
    judge_work(f);
    take_series(&run);
    site = find(report_by(f, SEEP_BY_LINE), "serve.py:31 handle");
    judge_assert_class(site, "suspect");
    assert_string_equal(
        site->class_reason,
        "most of it is at stacks of which no time series was kept");
}

/* A cache of each stack that is emptied by turns: never all at once. */
static void the_peak_of_a_row_is_not_below_what_lived_at_any_time(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    uint64_t held[2];

    begin(&run, f, 2);
    held[0] = born(&run, 100000, 10);
    held[1] = born(&run, 100000, 20);
    judge_died(f, held[0], 60);
    judge_died(f, held[1], 70);
    builder_fold(&f->builder);
    judge_work(f);
    assert_int_equal(
        find(report_by(f, SEEP_BY_LINE), "serve.py:31 handle")->peak_bytes,
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
        EXACT(spaces_do_not_know_of_rows),
        EXACT(a_leak_that_is_split_over_many_stacks_is_found_by_its_line),
        SAMPLED(the_sampling_error_of_a_row_is_that_of_its_stacks_together),
        EXACT(the_largest_stack_of_a_row_is_shown),
        EXACT(two_spaces_are_two_rows),
        EXACT(rows_are_lines_functions_or_modules),
        EXACT(without_a_line_a_row_is_a_stack),
        EXACT(rows_are_threads_by_their_names_without_numbers),
        EXACT(stacks_that_differ_in_the_number_of_a_thread_are_one),
        EXACT(stacks_of_a_line_that_are_suppressed_are_a_row_of_their_own),
        EXACT(a_row_is_known_by_its_id_and_by_its_line),
        EXACT(stacks_without_series_count_by_what_lives_of_them),
        EXACT(deaths_that_no_series_tells_of_speak_against_a_leak),
        EXACT(the_peak_of_a_row_is_not_below_what_lived_at_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
