/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/view_labels, json_labels: processes by their labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "fake_report.h"
#include "text/page.h"
#include "text/report.h"
#include "json/json.h"

static struct fake_report fakes[3];
static const struct seep_report *reports[3];

static int fill(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        fake_report_become(&fakes[i],
                           i == 0 ? SEEP_VERDICT_LEAK : SEEP_VERDICT_STEADY);
        fakes[i].report.by = SEEP_BY_LABEL;
        fakes[i].report.pid = (uint32_t)(100 + i);
        reports[i] = &fakes[i].report;
    }
    fakes[0].report.labels = "model=bert";
    fakes[1].report.labels = "model=bert,canary";
    fakes[2].report.labels = "";
    return 0;
}

static char *print(size_t columns)
{
    struct seep_text_options options = {.site_limit = 1, .process_limit = 1};
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = columns};

    seep_view_text_reports(&page, reports, 3, &options);
    fclose(page.file);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
}

static void a_label_is_a_row_with_all_its_processes(void **state)
{
    (void)state;
    char *text = print(200);
    assert_has(text, " class       growth/min     live  processes  label     "
                     "  first to look at\n");
    assert_has(text, " leak    +41.3 ±1.2 MiB  1.1 GiB          2  model=bert "
                     " pid 100, python3 serve.py\n");
    assert_has(text, " steady               -  576 MiB          1  canary     "
                     " pid 101, python3 serve.py\n");
    assert_has(text, " steady               -  576 MiB          1  (none)     "
                     " pid 102, python3 serve.py\n");
    free(text);
    fakes[0].report.by = SEEP_BY_LINE;
    text = print(200);
    assert_null(strstr(text, "first to look at\n"));
    free(text);
}

static void a_hostile_label_is_harmless(void **state)
{
    (void)state;
    fakes[0].report.labels = "\033[2J=\xff\n,x";
    char *text = print(80);
    assert_null(strchr(text, '\033'));
    assert_has(text, "\\x1b[2J=\\xff\\x0a");
    free(text);
}

static json_t *parse(void)
{
    struct seep_json_options options = {0};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    assert_int_equal(seep_json_reports(file, reports, 3, 0, &options), 0);
    fclose(file);
    json_t *document = json_loads(text, 0, NULL);
    assert_non_null(document);
    free(text);
    return document;
}

static void machines_get_the_same_rows(void **state)
{
    json_t *document = parse();
    json_t *rows = json_object_get(document, "labels");
    json_t *row = json_array_get(rows, 1);

    (void)state;
    assert_int_equal(json_array_size(rows), 3);
    assert_string_equal(json_string_value(json_object_get(row, "label")),
                        "model");
    assert_string_equal(json_string_value(json_object_get(row, "value")),
                        "bert");
    assert_string_equal(json_string_value(json_object_get(row, "class")),
                        "leak");
    assert_int_equal(json_integer_value(json_object_get(row, "processes")), 2);
    assert_int_equal(json_integer_value(json_object_get(row, "leaks")), 1);
    assert_int_equal(json_integer_value(json_object_get(row, "first_pid")),
                     100);
    row = json_array_get(rows, 2);
    assert_true(json_is_null(json_object_get(row, "label")));
    json_decref(document);
    fakes[0].report.by = SEEP_BY_LINE;
    document = parse();
    assert_true(json_is_null(json_object_get(document, "labels")));
    json_decref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_label_is_a_row_with_all_its_processes, fill),
        cmocka_unit_test_setup(a_hostile_label_is_harmless, fill),
        cmocka_unit_test_setup(machines_get_the_same_rows, fill),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
