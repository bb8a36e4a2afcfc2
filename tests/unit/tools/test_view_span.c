/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/text/span, json/span: parts of a run, and what is not known. */
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include <jansson.h>

#include "fake_report.h"
#include "text/report.h"
#include "json/json.h"

#define BUCKET_S 10.0

static struct fake_report fake;
static struct seep_report_mark marks[] = {
    {100, "loaded", 0}, {200, "loaded", 0}, {300, "served\033[2J", 0}};

static int fill(void **state)
{
    (void)state;
    fake_report_fill(&fake);
    fake.report.bucket_s = BUCKET_S;
    fake.report.marks = marks;
    fake.report.mark_count = 3;
    return 0;
}

/* Of the first site: nothing tells when it was, from 100 s to 500 s. */
static int fill_untold(void **state)
{
    fill(state);
    fake.sites[0].point_count = 0;
    fake.sites[0].first_s = 100;
    fake.sites[0].last_s = 500;
    fake.sites[0].untold = (struct seep_report_untold){
        100, 500, fake.sites[0].allocated_bytes, fake.sites[0].freed_bytes,
        fake.sites[0].allocated_count};
    return 0;
}

static char *print(size_t columns, const struct seep_span_wish *wish)
{
    struct seep_text_options options = {.site_limit = 10, .wish = *wish};
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = columns};

    seep_view_text_report(&page, &fake.report, &options);
    fclose(page.file);
    return text;
}

static void is_printed(const struct seep_span_wish *wish, const char *part)
{
    char *text = print(400, wish);

    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in\n%s", part, text);
    }
    free(text);
}

static const struct seep_span_wish at_200 = {.at = {SEEP_SPAN_TIME, 200, NULL}};
static const struct seep_span_wish at_no_mark = {
    .at = {SEEP_SPAN_MARK, 0, "nix"}};

static void what_is_not_known_is_counted_and_shown_as_such(void **state)
{
    (void)state;
    is_printed(&at_200, "unknown of 1 call site, at most 600 MiB, it is not "
                        "known what stood then: the tables were full");
    is_printed(&at_200, "        ?");
}

static void a_part_that_is_not_there_says_what_is(void **state)
{
    (void)state;
    is_printed(&at_no_mark,
               "no time, and no mark of this recording, is named \"nix\"; its "
               "marks are loaded, served\\x1b[2J");
}

static void no_line_of_a_part_is_wider_than_the_page(void **state)
{
    (void)state;
    for (size_t columns = 40; columns < 200; columns += 7) {
        char *text = print(columns, &at_200);
        char *table = strstr(text, "live then");

        assert_non_null(table);
        for (char *line = strtok(table, "\n"); line != NULL;
             line = strtok(NULL, "\n")) {
            assert_true(*line != ' ' || strncmp(line, "  ", 2) != 0 ||
                        seep_clean_columns(line) <= columns);
        }
        free(text);
    }
}

static json_t *window_of(const struct seep_span_wish *wish, int site)
{
    const struct seep_report *reports[] = {&fake.report};
    const struct seep_json_options options = {.wish = *wish};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    json_t *document;
    json_t *one;
    json_t *window;

    assert_int_equal(seep_json_reports(file, reports, 1, 0, &options), 0);
    fclose(file);
    document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    one = json_array_get(json_object_get(document, "processes"), 0);
    window = site < 0
                 ? json_object_get(one, "window")
                 : json_object_get(json_array_get(json_object_get(one, "sites"),
                                                  (size_t)site),
                                   "window");
    assert_non_null(window);
    json_incref(window);
    json_decref(document);
    return window;
}

static void machines_are_told_null_where_it_is_not_known(void **state)
{
    json_t *row = window_of(&at_200, 0);
    json_t *window = window_of(&at_200, -1);
    json_t *total = json_object_get(window, "total");

    (void)state;
    assert_true(json_is_null(json_object_get(row, "live_bytes")));
    assert_true(json_is_null(json_object_get(row, "growth_bytes")));
    assert_true(json_is_null(json_object_get(row, "temporary_bytes")));
    assert_int_equal(
        json_integer_value(json_object_get(total, "unknown_count")), 1);
    assert_true(json_is_true(json_object_get(window, "moment")));
    json_decref(row);
    json_decref(window);
}

static void where_no_part_is_asked_for_or_there_the_window_is_null(void **state)
{
    static const struct seep_span_wish none = {{0}, {0}, {0}};
    const struct seep_span_wish *wishes[] = {&none, &at_no_mark};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        json_t *process = window_of(wishes[i], -1);
        json_t *row = window_of(wishes[i], 0);

        assert_true(json_is_null(process));
        assert_true(json_is_null(row));
        json_decref(process);
        json_decref(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_not_known_is_counted_and_shown_as_such,
                               fill_untold),
        cmocka_unit_test_setup(a_part_that_is_not_there_says_what_is, fill),
        cmocka_unit_test_setup(no_line_of_a_part_is_wider_than_the_page, fill),
        cmocka_unit_test_setup(machines_are_told_null_where_it_is_not_known,
                               fill_untold),
        cmocka_unit_test_setup(
            where_no_part_is_asked_for_or_there_the_window_is_null, fill),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
