/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which stacks are one row of a report, and what it is called. */
#include "group_run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reader/compare/suppress.h"

static void two_spaces_are_two_rows(void **state)
{
    struct judge_run *f = *state;
    struct group_run run;
    uint32_t mapped;

    group_begin(&run, f, 1);
    mapped = builder_site(&f->builder, group_stack(f, run.code, 31, 9),
                          SEEP_SPACE_PYTHON);
    judge_born(f, run.sites[0], 100, 1);
    judge_born(f, mapped, 200, 1);
    assert_int_equal(group_report(f, SEEP_BY_LINE)->site_count, 2);
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
        group_stack(f, handle, 31, 0), group_stack(f, handle, 32, 1),
        group_stack(f, handle, 32, 2), group_stack(f, put, 40, 3),
        group_stack(f, call, 5, 4),    group_stack(f, other, 6, 5),
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
    report = group_report(f, SEEP_BY_STACK);
    assert_int_equal(report->site_count, 7);
    report = group_report(f, SEEP_BY_LINE);
    assert_int_equal(report->site_count, 6);
    assert_int_equal(group_find(report, "serve.py:32 handle")->stack_count, 2);
    assert_int_equal(group_find(report, "module.py:5 call")->stack_count, 1);
    assert_int_equal(group_find(report, "worker+0x9999")->stack_count, 1);
    report = group_report(f, SEEP_BY_FUNCTION);
    assert_int_equal(report->site_count, 5);
    assert_int_equal(group_find(report, "serve.py handle")->stack_count, 3);
    report = group_report(f, SEEP_BY_MODULE);
    assert_int_equal(report->site_count, 3);
    assert_int_equal(group_find(report, "serve.py")->stack_count, 4);
    assert_int_equal(group_find(report, "torch")->stack_count, 2);
    assert_int_equal(group_find(report, "worker")->stack_count, 1);
}

/* Where nothing is known of a native line, a stack says more than an address:
 * ids are those of stacks, too. */
static void without_a_line_a_row_is_a_stack(void **state)
{
    struct judge_run *f = *state;
    char id[20];

    judge_born(f, judge_site(f, 0x9999), 100, 6);
    strcpy(id, group_report(f, SEEP_BY_STACK)->sites[0].id);
    assert_string_equal(group_report(f, SEEP_BY_LINE)->sites[0].id, id);
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
    report = group_report(f, SEEP_BY_THREAD);
    assert_int_equal(report->site_count, 4);
    assert_int_equal(group_find(report, "pool-*")->stack_count, 2);
    assert_int_equal(group_find(report, "reader")->stack_count, 1);
    assert_int_equal(group_find(report, "thread of handle")->stack_count, 1);
    assert_int_equal(group_find(report, "main")->stack_count, 1);
}

static void rows_are_tasks_where_asyncio_runs_them(void **state)
{
    static const struct {
        const char *file;
        const char *names[2];
    } frames[] = {
        {"/srv/io.py", {"read", "write"}},
        {"/srv/serve.py", {"fetch", "store"}},
        {"/usr/lib/python3.11/asyncio/events.py", {"Handle._run", "_run"}},
        {"/usr/lib/python3.11/asyncio/base_events.py", {"run", "run"}},
        {"/srv/serve.py", {"<module>", "<module>"}},
    };
    struct judge_run *f = *state;

    for (uint32_t i = 0; i < 2; i++) {
        uint64_t words[5];

        for (uint32_t j = 0; j < 5; j++) {
            words[j] = builder_code_frame(
                builder_code(&f->builder, SEEP_CODE_PYTHON, frames[j].file,
                             frames[j].names[i], 1),
                7);
        }
        judge_born(f,
                   builder_site(&f->builder,
                                builder_stack(&f->builder, words, 5),
                                SEEP_SPACE_HEAP),
                   100, i);
    }
    assert_int_equal(group_report(f, SEEP_BY_THREAD)->site_count, 2);
    assert_int_equal(group_find(f->report, "task of fetch")->stack_count, 1);
    assert_int_equal(group_find(f->report, "task of store")->stack_count, 1);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * UINT32_C(1103515245) + 12345;
    return *seed >> 16;
}

/* Frames of every origin, and such as have lost their names. */
static uint32_t make_frames(struct judge_run *f, uint64_t *words)
{
    static const char *const files[] = {
        "/srv/serve.py",
        "/srv/model.py",
        "<string>",
        "/v/bin/gunicorn",
        "/v/lib/python3.11/site-packages/torch/nn/module.py",
        "/usr/lib/python3.11/json/decoder.py",
        "/usr/lib/python3.11/asyncio/events.py",
        "<frozen importlib._bootstrap>",
        "",
    };
    uint32_t plumbing = builder_module(&f->builder, "/lib/libc.so.6", 0x11);
    uint32_t interpreter =
        builder_module(&f->builder, "/usr/lib/libpython3.11.so.1.0", 0x22);
    uint32_t count = 0;

    for (uint32_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        words[count++] = builder_code_frame(
            builder_code(&f->builder, SEEP_CODE_PYTHON, files[i],
                         files[i][0] != '\0' ? "f" : "", 1),
            i + 1);
    }
    words[count++] = builder_code_frame(SEEP_CODE_NONE, 0);
    words[count++] = builder_frame(f->module, 0x10);
    words[count++] = builder_frame(f->module, 0x20);
    words[count++] = builder_frame(plumbing, 0x10);
    words[count++] = builder_frame(interpreter, 0x10);
    words[count++] = builder_frame(SEEP_MODULE_NONE, 0x7f0000001000);
    return count;
}

static const struct seep_report_site *find_id(const struct seep_report *report,
                                              const char *id)
{
    for (size_t i = 0; i < report->site_count; i++) {
        if (strcmp(report->sites[i].id, id) == 0) {
            return &report->sites[i];
        }
    }
    fail_msg("no row with the id %s", id);
    return NULL;
}

/* A row is made by looking at as few frames as will do; a stack is shown with
 * all of them. */
static void the_line_of_a_row_is_that_of_each_of_its_stacks(void **state)
{
    struct judge_run *f = *state;
    struct judge_run *same;
    uint64_t words[16];
    uint32_t count;
    uint32_t seed = 1;

    judge_set_up_exact((void **)&same);
    count = make_frames(f, words);
    make_frames(same, words);
    for (uint32_t i = 0; i < 400; i++) {
        uint64_t stack[6];
        uint32_t depth = 1 + next_random(&seed) % 6;

        for (uint32_t j = 0; j < depth; j++) {
            stack[j] = words[next_random(&seed) % count];
        }
        judge_born(f,
                   builder_site(&f->builder,
                                builder_stack(&f->builder, stack, depth),
                                SEEP_SPACE_HEAP),
                   100, 1);
        judge_born(same,
                   builder_site(&same->builder,
                                builder_stack(&same->builder, stack, depth),
                                SEEP_SPACE_HEAP),
                   100, 1);
    }
    group_report(f, SEEP_BY_STACK);
    group_report(same, SEEP_BY_LINE);
    assert_true(f->report->site_count > 2 * same->report->site_count);
    for (size_t i = 0; i < f->report->site_count; i++) {
        const struct seep_report_site *site = &f->report->sites[i];

        assert_string_equal(find_id(same->report, site->line_id)->where,
                            site->where);
    }
    judge_tear_down((void **)&same);
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
    assert_int_equal(group_report(f, SEEP_BY_STACK)->site_count, 1);
    assert_int_equal(f->report->sites[0].stack_count, 2);
}

static struct seep_rules *suppressions_of(const char *text)
{
    struct seep_rules *rules = NULL;
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

    group_begin(&run, f, 2);
    frames[0] = builder_frame(library, 0x10);
    frames[1] = builder_code_frame(run.code, 31);
    quiet = builder_site(&f->builder, builder_stack(&f->builder, frames, 2),
                         SEEP_SPACE_HEAP);
    judge_born(f, run.sites[0], 1000, 1);
    judge_born(f, run.sites[1], 100, 1);
    judge_born(f, quiet, 10, 1);
    strcpy(id, group_read(f, &how)->sites[0].id);
    assert_int_equal(f->report->site_count, 1);
    how.suppressions = suppressions_of("leak:libquiet\n");
    group_read(f, &how);
    assert_int_equal(f->report->site_count, 2);
    assert_null(f->report->sites[0].suppressed_by);
    assert_int_equal(f->report->sites[0].live_bytes, 1100);
    assert_string_equal(f->report->sites[0].id, id);
    assert_string_equal(f->report->sites[1].suppressed_by, "libquiet");
    assert_int_equal(f->report->sites[1].live_bytes, 10);
    seep_rules_close((struct seep_rules *)how.suppressions);
}

static void a_row_is_known_by_its_id_and_by_its_line(void **state)
{
    static const char *const lines[] = {NULL, "serve.py:31", "^handle$"};
    struct judge_run *f = *state;
    struct group_run run;
    struct seep_report_options how = {.by = SEEP_BY_LINE};
    char id[20];

    group_begin(&run, f, 3);
    group_born(&run, 1000, 1);
    group_born(&run, 1000, 2);
    strcpy(id, group_read(f, &how)->sites[0].id);
    for (size_t i = 0; i < 3; i++) {
        struct seep_rules *known = NULL;

        assert_int_equal(
            seep_known_add(&known, lines[i] != NULL ? lines[i] : id, 5000), 0);
        how.known = known;
        group_read(f, &how);
        assert_int_equal(f->report->site_count, 1);
        assert_int_equal(f->report->sites[0].known_bound_bytes, 5000);
        assert_string_equal(f->report->sites[0].id, id);
        how.by = SEEP_BY_STACK;
        group_read(f, &how);
        assert_int_equal(f->report->site_count, 2);
        assert_int_equal(f->report->sites[0].known_bound_bytes, 5000);
        assert_int_equal(f->report->sites[1].known_bound_bytes, 5000);
        how.by = SEEP_BY_LINE;
        seep_rules_close(known);
    }
}

#define EXACT(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_exact, judge_tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        EXACT(two_spaces_are_two_rows),
        EXACT(rows_are_lines_functions_or_modules),
        EXACT(without_a_line_a_row_is_a_stack),
        EXACT(rows_are_threads_by_their_names_without_numbers),
        EXACT(rows_are_tasks_where_asyncio_runs_them),
        EXACT(the_line_of_a_row_is_that_of_each_of_its_stacks),
        EXACT(stacks_that_differ_in_the_number_of_a_thread_are_one),
        EXACT(stacks_of_a_line_that_are_suppressed_are_a_row_of_their_own),
        EXACT(a_row_is_known_by_its_id_and_by_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
