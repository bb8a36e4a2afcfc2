/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes by their labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/report/report.h"

static const struct seep_report_space spaces[] = {
    {.space = SEEP_SPACE_HEAP, .live_bytes = 1000},
    {.space = SEEP_SPACE_RESERVED, .live_bytes = 5000},
};

static struct seep_report process(const char *labels,
                                  enum seep_verdict_class class, double growth)
{
    struct seep_report report = {
        .labels = labels, .spaces = spaces, .space_count = 2};

    report.verdict.class = class;
    report.verdict.has_growth = growth > 0;
    report.verdict.growth_bytes_per_s =
        (struct seep_interval){growth, growth - 3, growth + 3};
    return report;
}

struct table {
    struct seep_label_row *rows;
    size_t count;
};

static struct table table_of(const struct seep_report *reports, size_t count)
{
    const struct seep_report *list[8];
    struct table table = {.rows = NULL};

    for (size_t i = 0; i < count; i++) {
        list[i] = &reports[i];
    }
    assert_int_equal(seep_labels_group(list, count, &table.rows, &table.count),
                     0);
    return table;
}

static void assert_label(const struct seep_label_row *row, const char *wanted)
{
    char text[64];

    snprintf(text, sizeof(text), "%.*s=%.*s", (int)row->key_length, row->key,
             (int)row->value_length, row->value);
    assert_string_equal(text, wanted);
}

static void a_row_is_the_sum_of_its_processes(void **state)
{
    const struct seep_report reports[] = {
        process("model=bert,role=worker", SEEP_VERDICT_LEAK, 100),
        process("model=bert", SEEP_VERDICT_LEAK, 200),
        process("model=bert", SEEP_VERDICT_STEADY, 0),
    };
    struct table table = table_of(reports, 3);
    const struct seep_label_row *row = &table.rows[0];

    (void)state;
    assert_int_equal(table.count, 2);
    assert_label(row, "model=bert");
    assert_int_equal(row->process_count, 3);
    assert_int_equal(row->leak_count, 2);
    assert_int_equal(row->class, SEEP_VERDICT_LEAK);
    assert_int_equal(row->live_bytes, 3000);
    assert_true(row->has_growth);
    assert_true(fabs(row->growth_bytes_per_s.estimate - 300) < 1e-9);
    assert_true(fabs(row->growth_bytes_per_s.low - (300 - 3 * sqrt(2))) < 1e-9);
    assert_true(fabs(row->growth_bytes_per_s.high - (300 + 3 * sqrt(2))) <
                1e-9);
    assert_ptr_equal(row->first, &reports[1]);
    assert_label(&table.rows[1], "role=worker");
    assert_int_equal(table.rows[1].process_count, 1);
    free(table.rows);
}

static void what_grows_most_of_a_key_comes_first(void **state)
{
    const struct seep_report reports[] = {
        process("", SEEP_VERDICT_LEAK, 900),
        process("model=a,zone=x", SEEP_VERDICT_STEADY, 0),
        process("model=b", SEEP_VERDICT_LEAK, 100),
        process("model=c", SEEP_VERDICT_LEAK, 200),
        process("model=d", SEEP_VERDICT_STEADY, 0),
    };
    struct table table = table_of(reports, 5);

    (void)state;
    assert_int_equal(table.count, 6);
    assert_label(&table.rows[0], "model=c");
    assert_label(&table.rows[1], "model=b");
    assert_label(&table.rows[2], "model=a");
    assert_label(&table.rows[3], "model=d");
    assert_label(&table.rows[4], "zone=x");
    assert_label(&table.rows[5], "=");
    assert_false(table.rows[2].has_growth);
    assert_int_equal(table.rows[2].class, SEEP_VERDICT_STEADY);
    free(table.rows);
}

static void labels_may_be_anything(void **state)
{
    const struct seep_report reports[] = {
        process(",,a,a,=x,b=,c==1,a=b=c,", SEEP_VERDICT_STEADY, 0),
        process(NULL, SEEP_VERDICT_STEADY, 0),
        process(",,", SEEP_VERDICT_STEADY, 0),
    };
    struct table table = table_of(reports, 3);

    (void)state;
    assert_int_equal(table.count, 5);
    assert_label(&table.rows[0], "a=");
    assert_int_equal(table.rows[0].process_count, 1);
    assert_label(&table.rows[1], "a=b=c");
    assert_label(&table.rows[2], "b=");
    assert_label(&table.rows[3], "c==1");
    assert_label(&table.rows[4], "=");
    assert_int_equal(table.rows[4].process_count, 2);
    free(table.rows);
}

static void of_endless_labels_some_count(void **state)
{
    char labels[4096] = "";
    struct seep_report report;
    struct table table;

    (void)state;
    for (size_t i = 0; i < 500; i++) {
        size_t length = strlen(labels);

        snprintf(labels + length, sizeof(labels) - length, "k%zu,", i);
    }
    report = process(labels, SEEP_VERDICT_STEADY, 0);
    table = table_of(&report, 1);
    assert_int_equal(table.count, 64);
    free(table.rows);
}

/* Each label once more for each one before it would take hours. */
static void labels_that_say_nothing_cost_nothing(void **state)
{
    const size_t length = (size_t)12 << 20;
    char *labels = malloc(length + 1);
    struct seep_report report = process(labels, SEEP_VERDICT_STEADY, 0);
    struct table table;

    (void)state;
    assert_non_null(labels);
    for (size_t i = 0; i < length; i += 3) {
        memcpy(labels + i, i < length / 2 ? "=x," : "bb,", 3);
    }
    labels[length] = '\0';
    table = table_of(&report, 1);
    assert_int_equal(table.count, 1);
    assert_label(&table.rows[0], "bb=");
    assert_int_equal(table.rows[0].process_count, 1);
    free(table.rows);
    free(labels);
}

/* @param expected  NULL: there is none */
static void assert_value(const char *labels, const char *key,
                         const char *expected)
{
    struct seep_report report = {.labels = labels};
    const char *value = NULL;
    size_t length = 0;
    bool found = seep_labels_value(&report, key, strlen(key), &value, &length);

    assert_int_equal(found, expected != NULL);
    if (found) {
        assert_int_equal(length, strlen(expected));
        assert_memory_equal(value, expected, length);
    }
}

static void a_label_is_found_by_the_whole_of_its_key(void **state)
{
    (void)state;
    assert_value("model=bert,version=13", "version", "13");
    assert_value("model=bert,version=13", "model", "bert");
    assert_value("model=bert,version=13", "vers", NULL);
    assert_value("versions=12,version=13,version=14", "version", "13");
    assert_value("canary,role=a=b", "canary", "");
    assert_value("canary,role=a=b", "role", "a=b");
    assert_value(",=x,,", "", NULL);
    assert_value(NULL, "version", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_the_sum_of_its_processes),
        cmocka_unit_test(what_grows_most_of_a_key_comes_first),
        cmocka_unit_test(labels_may_be_anything),
        cmocka_unit_test(of_endless_labels_some_count),
        cmocka_unit_test(labels_that_say_nothing_cost_nothing),
        cmocka_unit_test(a_label_is_found_by_the_whole_of_its_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
