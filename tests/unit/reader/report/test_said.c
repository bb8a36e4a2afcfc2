/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* reader/report_said: marks and labels of recordings made by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "seep_test.h"

#include "format/layout.h"
#include "reader/report/report.h"
#include "recording_builder.h"

#define SECONDS(s) ((uint32_t)((s)*BUILDER_TICKS_PER_S))

struct fixture {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    builder_temporary(f->path);
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, true);
    *state = f;
    return 0;
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

static const struct seep_report *report_of(struct fixture *f)
{
    static const struct seep_report_options options = {.symbols = false};

    builder_exit(&f->builder, SECONDS(100));
    builder_write(&f->builder, f->path);
    assert_int_equal(seep_report_open(f->path, &options, NULL, &f->report), 0);
    return f->report;
}

static void moment(struct fixture *f, uint32_t tick, const char *name)
{
    builder_mark(&f->builder, SEEP_MARK_MOMENT, tick, name, "");
}

static void label(struct fixture *f, const char *key, const char *value)
{
    builder_mark(&f->builder, SEEP_MARK_LABEL, 1, key, value);
}

static void give(struct fixture *f, const char *labels)
{
    f->builder.view.header->labels = builder_string(&f->builder, labels);
    builder_seal(&f->builder);
}

static void marks_are_told_in_the_order_they_were_made(void **state)
{
    struct fixture *f = *state;
    const struct seep_report *report;

    moment(f, SECONDS(40), "second");
    moment(f, SECONDS(12), "first");
    label(f, "model", "bert");
    atomic_store_explicit(&f->builder.view.marks[0].order, 9,
                          memory_order_relaxed);
    f->builder.view.marks[1].units = 7;
    report = report_of(f);
    assert_int_equal(report->mark_count, 2);
    assert_string_equal(report->marks[0].name, "first");
    assert_true(fabs(report->marks[0].at_s - 12) < 0.1);
    assert_int_equal(report->marks[0].units, 7);
    assert_string_equal(report->marks[1].name, "second");
}

static void a_mark_that_was_never_finished_is_none(void **state)
{
    struct fixture *f = *state;

    moment(f, 1, "torn");
    atomic_store_explicit(&f->builder.view.marks[0].state, 1,
                          memory_order_relaxed);
    assert_int_equal(report_of(f)->mark_count, 0);
}

static void the_last_value_of_a_label_holds(void **state)
{
    struct fixture *f = *state;

    label(f, "model", "bert-13");
    label(f, "model", "bert-14");
    label(f, "role", "worker");
    atomic_store_explicit(&f->builder.view.marks[0].order, 9,
                          memory_order_relaxed);
    assert_string_equal(report_of(f)->labels, "model=bert-13,role=worker");
}

static void what_the_program_says_replaces_what_it_was_given(void **state)
{
    struct fixture *f = *state;

    give(f, "model=bert,version=13,canary");
    label(f, "version", "14");
    assert_string_equal(report_of(f)->labels, "model=bert,canary,version=14");
}

static void a_key_that_begins_like_another_is_another(void **state)
{
    struct fixture *f = *state;

    give(f, "model=a,modelname=b,role=c");
    label(f, "model", "d");
    label(f, "roles", "e");
    assert_string_equal(report_of(f)->labels,
                        "modelname=b,role=c,model=d,roles=e");
}

static void what_was_given_alone_stays_as_it_was(void **state)
{
    struct fixture *f = *state;

    give(f, "model=bert,version=13");
    assert_string_equal(report_of(f)->labels, "model=bert,version=13");
}

static void a_label_never_becomes_two(void **state)
{
    struct fixture *f = *state;

    label(f, "a,b=c", "d,e=f");
    label(f, "word", "");
    assert_string_equal(report_of(f)->labels, "a_b_c=d_e=f,word");
}

static void long_names_of_a_damaged_file_are_cut(void **state)
{
    struct fixture *f = *state;
    char name[4096];
    const struct seep_report *report;

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    moment(f, 1, name);
    label(f, name, name);
    label(f, name, "short");
    report = report_of(f);
    assert_true(strlen(report->marks[0].name) <= 128);
    assert_true(strlen(report->labels) <= 128 + 6);
}

int main(void)
{
#define SAID_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        SAID_TEST(marks_are_told_in_the_order_they_were_made),
        SAID_TEST(a_mark_that_was_never_finished_is_none),
        SAID_TEST(the_last_value_of_a_label_holds),
        SAID_TEST(what_the_program_says_replaces_what_it_was_given),
        SAID_TEST(a_key_that_begins_like_another_is_another),
        SAID_TEST(what_was_given_alone_stays_as_it_was),
        SAID_TEST(a_label_never_becomes_two),
        SAID_TEST(long_names_of_a_damaged_file_are_cut),
    };
#undef SAID_TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
