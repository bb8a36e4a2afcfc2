/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/words_end: what is said of an end that was not counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "fake_report.h"
#include "text/report.h"
#include "words/words.h"
#include "json/json.h"

#define MIB 1048576.0

static struct fake_report fake;

static int fill(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_LEAK);
    fake.report.life_s = fake.report.duration_s + 5;
    fake.report.end = (struct seep_report_end){
        .judged_before = true,
        .judged_to_s = fake.report.duration_s,
        .freed_bytes = 4096 * MIB,
        .took_s = 5,
    };
    return 0;
}

static char *print(void)
{
    struct seep_text_options options = {.site_limit = 10};
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = 400};

    seep_view_text_report(&page, &fake.report, &options);
    fclose(page.file);
    return text;
}

static bool is_printed(const char *part)
{
    char *text = print();
    bool printed = strstr(text, part) != NULL;

    free(text);
    return printed;
}

static json_t *parse_end(void)
{
    const struct seep_report *reports[] = {&fake.report};
    struct seep_json_options options = {0};
    json_error_t error;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    json_t *document;
    json_t *end;

    assert_int_equal(seep_json_reports(file, reports, 1, 1, &options), 0);
    fclose(file);
    document = json_loads(text, 0, &error);
    assert_non_null(document);
    end = json_object_get(
        json_object_get(
            json_array_get(json_object_get(document, "processes"), 0),
            "process"),
        "end");
    assert_non_null(end);
    json_incref(end);
    json_decref(document);
    free(text);
    return end;
}

static void a_leak_that_was_freed_says_until_when_it_grew(void **state)
{
    (void)state;
    assert_true(is_printed("until it shut down and freed 4 GiB"));
    assert_true(is_printed("judged up to 14 min"));
    assert_true(is_printed("before it shut down"));
    assert_false(is_printed("exit()"));
}

static void what_was_freed_from_exit_on_says_so(void **state)
{
    (void)state;
    fake.report.end.by_exit = true;
    assert_true(is_printed("where it called exit()"));
}

/* The reader goes back for less, which harms nobody: no word of it. */
static void a_little_that_was_freed_is_no_news(void **state)
{
    (void)state;
    fake.report.end.freed_bytes = 1;
    assert_false(is_printed("shut down"));
    assert_false(is_printed("judged up to"));
}

static void a_process_that_freed_nothing_has_no_end_to_tell(void **state)
{
    json_t *end;

    (void)state;
    fake.report.end = (struct seep_report_end){.judged_before = false};
    assert_false(is_printed("shut down"));
    assert_false(is_printed("judged up to"));
    end = parse_end();
    assert_true(json_is_null(end));
    json_decref(end);
}

static void what_is_out_of_reach_is_not_kept_quiet(void **state)
{
    json_t *end;

    (void)state;
    fake.report.end = (struct seep_report_end){.unreachable = true};
    assert_true(is_printed("cannot be judged"));
    end = parse_end();
    assert_true(json_is_true(json_object_get(end, "unreachable")));
    json_decref(end);
}

static void the_document_tells_the_life_and_what_of_it_is_judged(void **state)
{
    json_t *end = parse_end();

    (void)state;
    assert_true(json_is_true(json_object_get(end, "judged_before")));
    assert_true(json_is_false(json_object_get(end, "by_exit")));
    assert_true(json_number_value(json_object_get(end, "judged_to_s")) ==
                fake.report.duration_s);
    assert_true(json_number_value(json_object_get(end, "took_s")) == 5);
    assert_true(seep_words_life_s(&fake.report) == fake.report.life_s);
    json_decref(end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_leak_that_was_freed_says_until_when_it_grew,
                               fill),
        cmocka_unit_test_setup(what_was_freed_from_exit_on_says_so, fill),
        cmocka_unit_test_setup(a_little_that_was_freed_is_no_news, fill),
        cmocka_unit_test_setup(a_process_that_freed_nothing_has_no_end_to_tell,
                               fill),
        cmocka_unit_test_setup(what_is_out_of_reach_is_not_kept_quiet, fill),
        cmocka_unit_test_setup(
            the_document_tells_the_life_and_what_of_it_is_judged, fill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
