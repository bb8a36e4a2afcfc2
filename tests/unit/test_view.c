/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/view_*: what people and machines are shown of a report. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "clean.h"
#include "fake_report.h"
#include "gather.h"
#include "view_json.h"
#include "view_text.h"

static struct fake_report fake;

static int fill(void **state)
{
    (void)state;
    fake_report_fill(&fake);
    return 0;
}

static char *print(size_t columns, bool color,
                   const struct seep_text_options *options)
{
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = columns,
                             .color = color};

    seep_view_text_report(&page, &fake.report, options);
    seep_view_text_info(&page, &fake.report);
    fclose(page.file);
    return text;
}

/* Nothing below a blank but line ends and, if asked for, our own colours. */
static void assert_harmless(const char *text, bool color)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\033') {
            assert_true(color);
            assert_int_equal(c[1], '[');
            assert_int_equal(c[2 + strspn(c + 2, "0123456789;")], 'm');
        } else {
            assert_true(*c == '\n' || (unsigned char)*c >= ' ');
            assert_int_not_equal(*c, '\x7f');
        }
    }
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
}

static void the_answer_stands_first(void **state)
{
    struct seep_text_options options = {.site_limit = 10};
    char *text = print(200, false, &options);

    (void)state;
    assert_ptr_equal(
        strstr(text, "seep: python3 serve.py, pid 4242, 14 min 02 s, 48,112 "
                     "units of work, killed by signal 9\n"
                     "LEAK  serve.py:31 handle grows 40.1 MiB/min (39.5 to "
                     "40.6) and holds 562 MiB of the 576 MiB live.\n"),
        text);
    free(text);
}

static void
the_table_has_growth_live_and_the_way_to_the_allocation(void **state)
{
    struct seep_text_options options = {.site_limit = 10};
    char *text = print(200, false, &options);

    (void)state;
    assert_has(text, "+40.1 ±0.6 MiB");
    assert_has(text, "562 MiB  48,112  serve.py:31 handle > json.loads > "
                     "libpython3.11\n");
    assert_has(text, "suspect: put\\x1b[2J\\xff\\u{202e}");
    assert_has(text, "seep report --stack --site 3f9a0011 "
                     "/data/seep.python3.4242.seep");
    assert_has(text, "sampled every 512 KiB; 0 events lost; cost 0.3 % of "
                     "the run");
    free(text);
}

static void no_line_is_wider_than_the_page(void **state)
{
    static const size_t widths[] = {80, 200};
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char *text = print(widths[i], false, &options);
        for (char *line = strtok(text, "\n"); line != NULL;
             line = strtok(NULL, "\n")) {
            assert_true(seep_clean_columns(line) <= widths[i]);
        }
        free(text);
    }
}

static void nothing_hostile_reaches_the_terminal(void **state)
{
    static const size_t widths[] = {80, 200};
    struct seep_text_options options = {.site_limit = 10, .stacks = true};

    (void)state;
    fake.report.executable = "/\033c";
    fake.report.labels = "\033]0;x\007";
    fake.report.host = "h\rost";
    fake.report.path = "/data/\033[31m";
    for (size_t i = 0; i < 4; i++) {
        char *text = print(widths[i / 2], i % 2 == 1, &options);
        assert_harmless(text, i % 2 == 1);
        free(text);
    }
}

static void colours_are_only_added(void **state)
{
    struct seep_text_options options = {.site_limit = 10};
    char *plain = print(80, false, &options);
    char *colored = print(80, true, &options);
    char *out = colored;

    (void)state;
    assert_non_null(strstr(colored, "\033[1;31mLEAK"));
    for (const char *in = colored; *in != '\0'; in++) {
        if (*in == '\033') {
            in += strcspn(in, "m");
        } else {
            *out++ = *in;
        }
    }
    *out = '\0';
    assert_string_equal(colored, plain);
    free(plain);
    free(colored);
}

static void what_was_not_computed_is_not_said(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake.sites[0].has_growth = false;
    fake.sites[0].class = SEEP_CLASS_INSUFFICIENT;
    fake.report.verdict.class = SEEP_VERDICT_INSUFFICIENT;
    fake.report.memory.valid = false;
    char *text = print(200, false, &options);
    assert_null(strstr(text, "/min"));
    assert_null(strstr(text, "LEAK"));
    assert_has(text, "INSUFFICIENT DATA  576 MiB live at 2 call sites.");
    free(text);
}

static void every_loss_is_told(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake.counters[SEEP_COUNT_DROPPED_FREES].value = 12;
    fake.counters[SEEP_COUNT_SITES_FULL].value = 3;
    char *text = print(200, false, &options);
    assert_has(text, "12 events lost");
    assert_has(text, "lost    12 frees not recorded because a ring was full");
    assert_has(text, "lost    3 events charged to no call site");
    free(text);
}

static void one_site_can_be_asked_for_with_its_stack(void **state)
{
    struct seep_text_options options = {
        .site_limit = 10, .stacks = true, .site_id = "77"};
    char *text = print(200, false, &options);

    (void)state;
    assert_has(text, "site 77aa0011  suspect, heap, 14 MiB live in 3 blocks\n");
    assert_has(text, "(cut here: code without unwind information)");
    assert_null(strstr(text, "site 3f9a"));
    free(text);
}

static void rows_left_out_are_counted(void **state)
{
    struct seep_text_options options = {.site_limit = 1};

    (void)state;
    fake.report.site_total = 40;
    char *text = print(200, false, &options);
    assert_has(text, " and 39 more call sites (--sites 0 shows all)\n");
    free(text);
}

static json_t *parse(struct seep_json_options *options)
{
    const struct seep_report *reports[] = {&fake.report};
    json_error_t error;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    assert_int_equal(seep_view_json_reports(file, reports, 1, 2, options), 0);
    fclose(file);
    json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    assert_non_null(document);
    free(text);
    return document;
}

static const char *string_at(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void the_document_has_the_schema(void **state)
{
    struct seep_json_options options = {0};
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *process = json_object_get(one, "process");
    json_t *verdict = json_object_get(one, "verdict");

    (void)state;
    assert_string_equal(string_at(document, "schema"), "seep-report/1");
    assert_string_equal(
        string_at(json_object_get(document, "summary"), "class"), "leak");
    assert_string_equal(string_at(process, "started"),
                        "2023-11-14T22:13:20.123Z");
    assert_string_equal(string_at(process, "state"), "killed");
    assert_string_equal(string_at(process, "mode"), "sampled");
    assert_string_equal(string_at(json_object_get(process, "labels"), "model"),
                        "bert-13");
    assert_int_equal(json_integer_value(json_object_get(
                         json_object_get(process, "status"), "signal")),
                     9);
    assert_string_equal(string_at(verdict, "class"), "leak");
    assert_true(json_is_null(json_object_get(verdict, "forecast")));
    assert_non_null(json_object_get(json_object_get(one, "losses"), "torn"));
    assert_non_null(json_object_get(json_object_get(one, "facts"), "unloads"));
    assert_non_null(json_object_get(json_object_get(one, "cost"), "seep_s"));
    json_decref(document);
}

static void a_site_has_interval_series_and_frames(void **state)
{
    struct seep_json_options options = {0};
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *site = json_array_get(json_object_get(one, "sites"), 0);
    json_t *growth = json_object_get(site, "growth_bytes_per_s");
    json_t *frame = json_array_get(json_object_get(site, "frames"), 0);

    (void)state;
    assert_true(json_real_value(json_object_get(growth, "low")) == 690000);
    assert_int_equal(json_array_size(json_object_get(site, "series")), 2);
    assert_int_equal(json_array_size(json_object_get(site, "frames")), 3);
    assert_string_equal(string_at(site, "space"), "heap");
    assert_string_equal(string_at(frame, "kind"), "native");
    assert_string_equal(string_at(frame, "offset"), "0x1234");
    assert_true(json_is_null(json_object_get(frame, "line")));
    json_decref(document);
}

static void what_was_not_computed_is_null(void **state)
{
    struct seep_json_options options = {.site_id = "77aa"};

    (void)state;
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *site = json_array_get(json_object_get(one, "sites"), 0);
    assert_int_equal(json_array_size(json_object_get(one, "sites")), 1);
    assert_true(json_is_null(json_object_get(site, "growth_bytes_per_s")));
    assert_true(json_is_null(json_object_get(site, "confidence")));
    json_decref(document);
}

/* JSON has no infinity, and jansson refuses to make one. */
static void an_open_bound_is_null(void **state)
{
    struct seep_json_options options = {0};

    (void)state;
    fake.sites[0].growth_bytes_per_s.high = 1.0 / 0.0;
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *site = json_array_get(json_object_get(one, "sites"), 0);
    json_t *growth = json_object_get(site, "growth_bytes_per_s");
    assert_true(json_is_null(json_object_get(growth, "high")));
    assert_true(json_is_real(json_object_get(growth, "low")));
    json_decref(document);
}

/* More than are kept: what stands in another's place must not show. */
static void every_frame_is_its_own(void **state)
{
    enum { FRAMES = 20000 };
    static struct seep_report_frame frames[FRAMES];
    struct seep_json_options options = {.site_id = "77aa"};
    char offset[24];

    (void)state;
    for (size_t i = 0; i < FRAMES; i++) {
        frames[i] = fake.frames[3];
        frames[i].offset = i % (FRAMES / 2);
        frames[i].line = (uint32_t)(i % 3);
    }
    fake.sites[1].frames = frames;
    fake.sites[1].frame_count = FRAMES;
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *site = json_array_get(json_object_get(one, "sites"), 0);
    json_t *seen = json_object_get(site, "frames");
    assert_int_equal(json_array_size(seen), FRAMES);
    for (size_t i = 0; i < FRAMES; i++) {
        json_t *frame = json_array_get(seen, i);
        snprintf(offset, sizeof(offset), "0x%zx", i % (FRAMES / 2));
        assert_string_equal(string_at(frame, "offset"), offset);
        assert_int_equal(json_integer_value(json_object_get(frame, "line")),
                         i % 3);
    }
    json_decref(document);
}

static void several_reports_are_one_document(void **state)
{
    struct fake_report other;
    const struct seep_report *reports[] = {&fake.report, &other.report};
    struct seep_json_options options = {.site_limit = 1};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    (void)state;
    fake_report_fill(&other);
    other.report.site_count = 0;
    assert_int_equal(seep_view_json_reports(file, reports, 2, 0, &options), 0);
    fclose(file);
    json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    json_t *processes = json_object_get(document, "processes");
    assert_int_equal(json_array_size(processes), 2);
    for (size_t i = 0; i < 2; i++) {
        json_t *sites = json_object_get(json_array_get(processes, i), "sites");
        assert_int_equal(json_array_size(sites), 1 - i);
    }
    json_decref(document);
    free(text);
}

/* What was printed before is no document: the command has to say so. */
static void a_stream_that_takes_no_more_is_an_error(void **state)
{
    const struct seep_report *reports[] = {&fake.report};
    struct seep_json_options options = {0};
    FILE *file = fopen("/dev/full", "w");

    (void)state;
    assert_non_null(file);
    assert_int_equal(seep_view_json_reports(file, reports, 1, 0, &options),
                     -EIO);
    fclose(file);
}

static void the_worst_process_is_the_first(void **state)
{
    struct fake_report other;

    (void)state;
    fake_report_fill(&other);
    other.report.verdict.class = SEEP_VERDICT_STEADY;
    assert_true(seep_gather_compare(&fake.report, &other.report) < 0);
    other.report.verdict.class = SEEP_VERDICT_LEAK;
    other.sites[0].growth_bytes_per_s.low = 800000;
    assert_true(seep_gather_compare(&fake.report, &other.report) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_answer_stands_first, fill),
        cmocka_unit_test_setup(
            the_table_has_growth_live_and_the_way_to_the_allocation, fill),
        cmocka_unit_test_setup(no_line_is_wider_than_the_page, fill),
        cmocka_unit_test_setup(nothing_hostile_reaches_the_terminal, fill),
        cmocka_unit_test_setup(colours_are_only_added, fill),
        cmocka_unit_test_setup(what_was_not_computed_is_not_said, fill),
        cmocka_unit_test_setup(every_loss_is_told, fill),
        cmocka_unit_test_setup(one_site_can_be_asked_for_with_its_stack, fill),
        cmocka_unit_test_setup(rows_left_out_are_counted, fill),
        cmocka_unit_test_setup(the_document_has_the_schema, fill),
        cmocka_unit_test_setup(a_site_has_interval_series_and_frames, fill),
        cmocka_unit_test_setup(what_was_not_computed_is_null, fill),
        cmocka_unit_test_setup(an_open_bound_is_null, fill),
        cmocka_unit_test_setup(every_frame_is_its_own, fill),
        cmocka_unit_test_setup(several_reports_are_one_document, fill),
        cmocka_unit_test_setup(a_stream_that_takes_no_more_is_an_error, fill),
        cmocka_unit_test_setup(the_worst_process_is_the_first, fill),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
