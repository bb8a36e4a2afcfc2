/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep: what is told of a process's Python, and advised for it. */
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
#include "words/verdict.h"
#include "words/words.h"
#include "json/json.h"

#define OBJECTS_ADVICE "seep run --python objects -- COMMAND"
#define FRAMES_ADVICE "seep run --python frames -- COMMAND"
#define ARENA_REASON "an arena of Python's small-object allocator"

static struct fake_report fake;

static int fill(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_LEAK);
    return 0;
}

static char *print_info(void)
{
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = 200};

    seep_view_text_info(&page, &fake.report);
    fclose(page.file);
    return text;
}

static char *print_report(void)
{
    struct seep_text_options options = {.site_limit = 10};
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = 200};

    seep_view_text_report(&page, &fake.report, &options);
    fclose(page.file);
    return text;
}

static bool is_said(char *text, const char *part)
{
    bool said = strstr(text, part) != NULL;

    free(text);
    return said;
}

static bool is_advised(const char *part)
{
    struct seep_words_verdict words;
    bool found = false;

    seep_words_verdict(&fake.report, NULL, &words);
    for (size_t i = 0; i < words.advice_count; i++) {
        found = found || strstr(words.advice[i], part) != NULL;
    }
    seep_words_verdict_fini(&words);
    return found;
}

static bool is_reason(const char *part)
{
    struct seep_words_verdict words;
    bool found = false;

    seep_words_verdict(&fake.report, NULL, &words);
    for (size_t i = 0; i < words.reason_count; i++) {
        found = found || strstr(words.reasons[i], part) != NULL;
    }
    seep_words_verdict_fini(&words);
    return found;
}

static void info_tells_version_frames_and_objects(void **state)
{
    (void)state;
    assert_true(is_said(print_info(), "\npython     3.11.2; frames on; objects "
                                      "recorded\n"));
    fake.report.python_state = SEEP_PYTHON_DEBUG;
    fake.report.python_objects = SEEP_PYTHON_OBJECTS_REPLACED;
    assert_true(is_said(print_info(),
                        "3.11.2; frames off: debug build of Python; objects "
                        "not recorded: the program set other allocators\n"));
}

static void a_process_without_python_has_no_word_of_it(void **state)
{
    (void)state;
    fake.report.python_version = 0;
    fake.report.python_state = SEEP_PYTHON_NONE;
    fake.report.python_objects = SEEP_PYTHON_OBJECTS_OFF;
    assert_false(is_said(print_info(), "\npython "));
    assert_false(is_said(print_report(), "\npython "));
}

static void a_version_is_written_as_python_does(void **state)
{
    static const struct {
        uint32_t version;
        const char *text;
    } cases[] = {{0x030b02f0, "3.11.2"},     {0x030e00c1, "3.14.0rc1"},
                 {0x030f00a3, "3.15.0a3"},   {0x030d00b2, "3.13.0b2"},
                 {0x030a00f0, "3.10"},       {0x030b00f0, "3.11.0"},
                 {0xffffffff, "255.255.255"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        seep_words_python_version(cases[i].version, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void the_report_tells_what_is_missing_and_why(void **state)
{
    (void)state;
    assert_false(is_said(print_report(), "\npython "));
    fake.report.python_objects = SEEP_PYTHON_OBJECTS_OFF;
    assert_false(is_said(print_report(), "\npython "));
    fake.report.python_objects = SEEP_PYTHON_OBJECTS_UNKNOWN;
    assert_true(is_said(print_report(), "\npython  objects not recorded: this "
                                        "Python's allocators are unknown\n"));
    fake.report.python_state = SEEP_PYTHON_FREE_THREADED;
    assert_true(is_said(print_report(),
                        "\npython  frames off: free-threaded build of Python; "
                        "objects not recorded: "));
    fake.report.python_version = 0; /* too old to be known */
    fake.report.python_state = SEEP_PYTHON_OLD;
    assert_true(is_said(print_report(), "\npython  frames off: Python before "
                                        "3.8; objects not recorded: "));
}

static void losses_of_python_are_told(void **state)
{
    (void)state;
    fake.counters[SEEP_COUNT_CODES_FULL].value = 7;
    fake.counters[SEEP_COUNT_PYTHON_BUSY].value = 1;
    char *text = print_report();
    assert_non_null(strstr(text, "lost    7 Python frames without a name"));
    assert_non_null(strstr(text, "lost    1 stacks without Python frames"));
    free(text);
}

static void the_next_step_names_the_line_that_keeps(void **state)
{
    (void)state;
    assert_true(
        is_advised("find what holds the memory allocated at serve.py:31: "
                   "seep report --stack --site 3f9a0011 "
                   "/data/seep.python3.4242.seep"));
    assert_true(
        is_advised("suppress it: --suppressions FILE with a line leak:handle"));
    fake.frames[2].function = "<module>"; /* of which there is one in all */
    assert_false(is_advised("with a line leak:"));
    fake.report.by = SEEP_BY_STACK;
    assert_true(is_advised("--site 3f9a0011 --by stack /data/"));
    fake.sites[0].where_frame = 0;
    assert_true(is_advised("find what holds it: seep report "));
    assert_false(is_advised("with a line leak:"));
}

static void a_python_without_lines_is_told_how_to_have_them(void **state)
{
    (void)state;
    fake.sites[0].frame_count = 1; /* the native one */
    fake.sites[0].where_frame = 0;
    assert_false(is_advised("release build"));
    fake.report.python_state = SEEP_PYTHON_DEBUG;
    assert_true(is_advised(
        "use a release build of Python 3.8 to 3.15: with this one frames are off: debug build of Python"));
    assert_false(is_advised(FRAMES_ADVICE));
    fake.report.python_state = SEEP_PYTHON_NONE;
    assert_true(is_advised(FRAMES_ADVICE));
    fake.report.executable = "/usr/bin/worker";
    assert_false(is_advised(FRAMES_ADVICE));
}

/* With the objects the lines come too. */
static void arenas_of_a_python_turned_off_ask_for_its_objects(void **state)
{
    (void)state;
    fake.report.python_version = 0;
    fake.report.python_state = SEEP_PYTHON_NONE;
    fake.report.python_objects = SEEP_PYTHON_OBJECTS_OFF;
    fake.sites[0].space = SEEP_SPACE_MAPPED;
    fake.sites[0].frame_count = 1;
    fake.sites[0].where_frame = 0;
    assert_true(is_advised(OBJECTS_ADVICE));
    assert_false(is_advised(FRAMES_ADVICE));
}

static void a_cost_is_always_told(void **state)
{
    (void)state;
    assert_true(is_said(print_report(), "; cost 0.3 % of the run"));
    assert_true(is_said(print_info(), "\ncost       2.5 s, 0.3 % of the run"));
    fake.report.budget = .01;
    assert_true(
        is_said(print_report(), "; cost 0.3 % of the run (budget 1 %)"));
    fake.report.budget = 0;
    fake.report.cost_at_most = true;
    assert_true(is_said(print_report(), "; cost at most 0.3 % of the run"));
    assert_true(
        is_said(print_info(), "\ncost       at most 2.5 s, 0.3 % of the run"));
    /* Of a run that is over before it can be said how long it was. */
    fake.report.duration_s = 0;
    fake.report.cost_s = 0.002;
    assert_true(is_said(print_report(), "; cost at most 2 ms"));
    assert_true(is_said(print_info(), "\ncost       at most 2 ms; "));
    fake.report.cost_s = 0;
    fake.report.cost_at_most = false;
    assert_false(is_said(print_report(), "cost ?"));
}

static void a_recording_that_began_denser_says_so(void **state)
{
    (void)state;
    fake.report.first_sample_bytes = 16384;
    assert_true(
        is_said(print_report(), "sampled every 512 KiB (16 KiB at first); "));
    fake.report.sample_rose_s = 12.4;
    assert_true(
        is_said(print_report(),
                "sampled every 512 KiB from 12.4 s on (16 KiB at first); "));
    fake.report.sample_rose_s = 0;
    fake.report.first_sample_bytes = fake.report.sample_bytes;
    assert_true(is_said(print_report(), "sampled every 512 KiB; "));
    fake.report.tensor_sample_bytes = 8 << 20;
    assert_true(is_said(print_report(),
                        "sampled every 512 KiB, tensors every 8 MiB; "));
    fake.report.tensor_sample_bytes = 0;
    fake.report.first_sample_bytes = 1; /* by a version that did not tell */
    assert_true(is_said(print_report(), "sampled every 512 KiB; "));
}

/* An arena is charged to who happened to need one. */
static void arenas_that_grow_ask_for_the_objects_in_them(void **state)
{
    (void)state;
    fake.report.python_objects = SEEP_PYTHON_OBJECTS_OFF;
    assert_false(is_advised(OBJECTS_ADVICE));
    fake.sites[0].space = SEEP_SPACE_MAPPED;
    assert_true(is_advised(OBJECTS_ADVICE));
    assert_true(is_reason(ARENA_REASON));
    fake.report.python_objects = SEEP_PYTHON_OBJECTS_REPLACED;
    assert_false(is_advised(OBJECTS_ADVICE));
    assert_true(is_reason(ARENA_REASON));
    assert_false(
        is_advised("find what holds the memory allocated at serve.py:31"));
    fake.report.python_objects = SEEP_PYTHON_OBJECTS_ON;
    assert_false(is_reason(ARENA_REASON));
    assert_true(
        is_advised("find what holds the memory allocated at serve.py:31"));
    fake.report.python_objects = SEEP_PYTHON_OBJECTS_OFF;
    fake.frames[0].module = "/usr/lib/libfoo.so";
    assert_false(is_advised(OBJECTS_ADVICE));
}

/* What Python keeps in free lists for itself is taken by whoever comes next. */
static void objects_that_were_lent_are_spoken_of(void **state)
{
    (void)state;
    fake.sites[0].space = SEEP_SPACE_PYTHON;
    fake.sites[0].lendable_share = 1;
    fake.sites[0].keeps_share = 0.1;
    assert_true(is_reason("Python reuses freed dicts"));
    fake.sites[0].keeps_share = 0.9;
    assert_false(is_reason("Python reuses freed dicts"));
    fake.sites[0].keeps_share = 0.1;
    fake.sites[0].space = SEEP_SPACE_HEAP;
    assert_false(is_reason("Python reuses freed dicts"));
}

static void growth_that_no_hook_saw_asks_for_pythons_objects(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_UNEXPLAINED);
    assert_false(is_advised(OBJECTS_ADVICE));
    fake.report.python_objects = SEEP_PYTHON_OBJECTS_OFF;
    assert_true(is_advised(OBJECTS_ADVICE));
    fake.report.python_version = 0;
    fake.report.python_state = SEEP_PYTHON_NONE;
    assert_true(is_advised(OBJECTS_ADVICE)); /* it was turned off */
    fake.report.executable = "/usr/bin/worker";
    assert_false(is_advised(OBJECTS_ADVICE));
}

static json_t *parse(void)
{
    const struct seep_report *reports[] = {&fake.report};
    struct seep_json_options options = {0};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    assert_int_equal(seep_json_reports(file, reports, 1, 0, &options), 0);
    fclose(file);
    json_t *document = json_loads(text, 0, NULL);
    assert_non_null(document);
    free(text);
    return document;
}

static const char *string_at(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void machines_are_told_of_python_and_of_what_a_row_is(void **state)
{
    (void)state;
    json_t *document = parse();
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *python = json_object_get(json_object_get(one, "process"), "python");
    json_t *site = json_array_get(json_object_get(one, "sites"), 0);
    json_t *frame = json_array_get(json_object_get(site, "frames"), 1);

    assert_string_equal(string_at(python, "version"), "3.11.2");
    assert_string_equal(string_at(python, "state"), "on");
    assert_string_equal(string_at(python, "objects"), "recorded");
    assert_string_equal(string_at(one, "by"), "line");
    assert_string_equal(string_at(site, "thread"), "MainThread");
    assert_int_equal(json_integer_value(json_object_get(site, "stacks")), 3);
    assert_string_equal(string_at(frame, "kind"), "python");
    assert_string_equal(string_at(frame, "file"), "json/__init__.py");
    assert_true(json_is_null(json_object_get(frame, "offset")));
    json_decref(document);
    fake.report.python_version = 0;
    fake.report.python_state = SEEP_PYTHON_NONE;
    document = parse();
    one = json_array_get(json_object_get(document, "processes"), 0);
    assert_true(json_is_null(
        json_object_get(json_object_get(one, "process"), "python")));
    json_decref(document);
}

static void info_ends_with_what_to_do_next(void **state)
{
    (void)state;
    fake.report.usage_stacks.used = 89;
    fake.report.usage_stacks.capacity = 100;
    assert_true(is_said(print_info(), "\nnext       what grew: seep report "));
    fake.report.usage_stacks.used = 95;
    assert_true(is_said(
        print_info(),
        "\nnext       record with --size 128MiB: the stacks table is nearly full\n"));
    fake.report.usage_ranges.used = 97;
    fake.report.usage_ranges.capacity = 100;
    assert_true(is_said(
        print_info(),
        "\nnext       record with --size 128MiB: the mappings table is nearly full\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(info_tells_version_frames_and_objects, fill),
        cmocka_unit_test_setup(a_process_without_python_has_no_word_of_it,
                               fill),
        cmocka_unit_test_setup(a_version_is_written_as_python_does, fill),
        cmocka_unit_test_setup(the_report_tells_what_is_missing_and_why, fill),
        cmocka_unit_test_setup(losses_of_python_are_told, fill),
        cmocka_unit_test_setup(the_next_step_names_the_line_that_keeps, fill),
        cmocka_unit_test_setup(a_python_without_lines_is_told_how_to_have_them,
                               fill),
        cmocka_unit_test_setup(arenas_that_grow_ask_for_the_objects_in_them,
                               fill),
        cmocka_unit_test_setup(
            arenas_of_a_python_turned_off_ask_for_its_objects, fill),
        cmocka_unit_test_setup(a_cost_is_always_told, fill),
        cmocka_unit_test_setup(a_recording_that_began_denser_says_so, fill),
        cmocka_unit_test_setup(objects_that_were_lent_are_spoken_of, fill),
        cmocka_unit_test_setup(growth_that_no_hook_saw_asks_for_pythons_objects,
                               fill),
        cmocka_unit_test_setup(info_ends_with_what_to_do_next, fill),
        cmocka_unit_test_setup(machines_are_told_of_python_and_of_what_a_row_is,
                               fill),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
