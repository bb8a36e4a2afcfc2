/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report made by hand in the formats of other tools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "fake_report.h"
#include "reader/compare/patterns.h"
#include "words/clean.h"
#include "json/json.h"

static struct fake_report fake;

static struct seep_report_stack stacks[3];

/* Each row is one stack. */
static int fill(void **state)
{
    (void)state;
    fake_report_fill(&fake);
    for (size_t i = 0; i < fake.report.site_count; i++) {
        stacks[i] = (struct seep_report_stack){fake.sites[i], i};
    }
    fake.report.stacks = stacks;
    fake.report.stack_count = fake.report.site_count;
    return 0;
}

static const struct seep_export_format *format_of(const char *name)
{
    const struct seep_export_format *format;

    for (size_t i = 0; (format = seep_export_format_at(i)) != NULL; i++) {
        if (strcmp(format->name, name) == 0) {
            return format;
        }
    }
    fail_msg("there is no format %s", name);
    return NULL;
}

/* What @name makes of the report, @count times. To be freed. */
static char *make(const char *name, enum seep_export_weight weight,
                  size_t count, size_t *ret_size)
{
    const struct seep_export_format *format = format_of(name);
    struct seep_export export = {.weight = weight, .process_count = count};
    char *text = NULL;

    export.file = open_memstream(&text, ret_size);
    assert_non_null(export.file);
    assert_true(format->begin == NULL || format->begin(&export) == 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(format->add(&export, &fake.report), 0);
    }
    assert_true(format->end == NULL || format->end(&export) == 0);
    assert_int_equal(fclose(export.file), 0);
    return text;
}

static char *fold(enum seep_export_weight weight, size_t count)
{
    size_t size;

    return make("folded", weight, count, &size);
}

static void
a_folded_stack_is_a_line_with_the_outermost_frame_first(void **state)
{
    char *text = fold(SEEP_EXPORT_LIVE, 1);

    (void)state;
    assert_non_null(strstr(text, "[heap];handle (serve.py:31);"
                                 "loads (__init__.py:346);"
                                 "libpython3.11.so.1.0+0x1234 589299712\n"));
    free(text);
}

static void several_processes_are_told_apart(void **state)
{
    char *text = fold(SEEP_EXPORT_LIVE, 2);

    (void)state;
    assert_int_equal(strncmp(text, "python3 serve.py (4242);[heap];", 31), 0);
    free(text);
}

static void each_weight_is_the_figure_of_its_name(void **state)
{
    static const char *const ends[] = {" 589299712\n", " 48112\n",
                                       " 629145600\n", NULL, " 700000\n"};

    (void)state;
    for (unsigned i = 0; i < SEEP_EXPORT_WEIGHT_COUNT; i++) {
        char *text = fold((enum seep_export_weight)i, 1);

        assert_true(ends[i] == NULL || strstr(text, ends[i]) != NULL);
        free(text);
    }
}

static void what_shrinks_or_weighs_nothing_is_no_line(void **state)
{
    char *text;

    (void)state;
    fake.sites[0].growth_bytes_per_s.estimate = -5;
    text = fold(SEEP_EXPORT_GROWTH, 1);
    assert_string_equal(text, "");
    free(text);
}

/* A name may hold what parts frames, lines and numbers. */
static void what_a_row_grows_by_is_shared_by_what_its_stacks_hold(void **state)
{
    char *text;

    (void)state;
    stacks[1].site.live_bytes = fake.sites[0].live_bytes / 4;
    stacks[0].site.live_bytes = 3 * (fake.sites[0].live_bytes / 4);
    stacks[1].row = 0;
    text = fold(SEEP_EXPORT_GROWTH, 1);
    assert_non_null(strstr(text, " 525000\n"));
    assert_non_null(strstr(text, " 175000\n"));
    free(text);
}

/* @text as a document, or null if it is none. */
static json_t *parsed(char *text)
{
    json_t *document = json_loads(text, 0, NULL);

    free(text);
    return document;
}

static void json_formats_are_json_whatever_names_are(void **state)
{
    static const char *const names[] = {"speedscope", "perfetto"};
    size_t size;

    (void)state;
    fake.frames[3].function = "\"</script>\\\n\x01\xff";
    for (size_t i = 0; i < 2; i++) {
        json_t *document = parsed(make(names[i], SEEP_EXPORT_LIVE, 2, &size));

        assert_non_null(document);
        json_decref(document);
    }
}

/* Of a damaged recording the bytes may be any. */
static void weights_beyond_64_bits_end_where_their_sum_does(void **state)
{
    size_t size;
    json_int_t sum = 0;
    json_t *document;
    json_t *profile;
    json_t *weight;
    size_t index;

    (void)state;
    stacks[0].site.live_bytes = UINT64_MAX;
    stacks[1].site.live_bytes = 1 << 20;
    document = parsed(make("speedscope", SEEP_EXPORT_LIVE, 1, &size));
    assert_non_null(document);
    profile = json_array_get(json_object_get(document, "profiles"), 0);
    json_array_foreach(json_object_get(profile, "weights"), index, weight)
    {
        assert_true(json_integer_value(weight) <= INT64_MAX - sum);
        sum += json_integer_value(weight);
    }
    assert_true(sum == INT64_MAX);
    assert_true(json_integer_value(json_object_get(profile, "endValue")) ==
                sum);
    json_decref(document);
}

static void a_site_of_jsonl_has_its_pattern_and_who_excused_it(void **state)
{
    static const struct seep_pattern pattern = {.id = "onednn-primitive-cache"};
    size_t size;
    char *text;

    (void)state;
    fake.sites[0].pattern = &pattern;
    fake.sites[1].suppressed_by = "leak:known";
    text = make("jsonl", SEEP_EXPORT_LIVE, 1, &size);
    assert_non_null(strstr(
        text, "\"pattern\":\"onednn-primitive-cache\",\"suppressed_by\":null"));
    assert_non_null(
        strstr(text, "\"pattern\":null,\"suppressed_by\":\"leak:known\""));
    free(text);
}

static void each_line_of_jsonl_is_an_object_with_a_type(void **state)
{
    size_t size;
    char *text = make("jsonl", SEEP_EXPORT_LIVE, 1, &size);
    char *rest = NULL;

    (void)state;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        json_t *object = json_loads(line, 0, NULL);

        assert_non_null(json_string_value(json_object_get(object, "type")));
        json_decref(object);
    }
    free(text);
}

/* A program that calculates takes =cmd for a formula. */
static void a_cell_of_csv_is_text_and_ends_where_it_ends(void **state)
{
    size_t size;
    char *text;

    (void)state;
    fake.sites[1].where = "=cmd|\",\r\n1";
    text = make("csv", SEEP_EXPORT_LIVE, 1, &size);
    assert_non_null(strstr(text, ",\"'=cmd|\"\",\\x0d\\x0a1\","));
    free(text);
}

static void a_profile_is_gzip_and_as_large_as_it_says(void **state)
{
    struct seep_export export = {.file = fopen("/dev/null", "w")};
    size_t size;
    char *text;

    (void)state;
    if (seep_pprof_begin(&export) == -ENOTSUP) {
        skip();
    }
    seep_pprof_end(&export);
    fclose(export.file);
    text = make("pprof", SEEP_EXPORT_LIVE, 2, &size);
    assert_true(size > 100);
    assert_memory_equal(text, "\x1f\x8b", 2);
    free(text);
}

static void a_hostile_name_stays_one_frame(void **state)
{
    size_t lines = 0;
    char *text;
    char *rest = NULL;

    (void)state;
    fake.frames[3].function = "a;b\n[heap];x 99\r# c\033[2J\xff 7";
    text = fold(SEEP_EXPORT_LIVE, 1);
    assert_non_null(strstr(text, "[heap];a:b\\x0a[heap]:x 99\\x0d_ c"));
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        assert_int_equal(strncmp(line, "[heap];", 7), 0);
        lines++;
    }
    assert_int_equal(lines, fake.report.site_count);
    free(text);
}

static void a_long_name_is_whole(void **state)
{
    static char name[10241];
    char *text;

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    fake.frames[3].function = name;
    text = fold(SEEP_EXPORT_LIVE, 1);
    assert_non_null(strstr(text, name));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(
            a_folded_stack_is_a_line_with_the_outermost_frame_first, fill),
        cmocka_unit_test_setup(several_processes_are_told_apart, fill),
        cmocka_unit_test_setup(each_weight_is_the_figure_of_its_name, fill),
        cmocka_unit_test_setup(what_shrinks_or_weighs_nothing_is_no_line, fill),
        cmocka_unit_test_setup(
            what_a_row_grows_by_is_shared_by_what_its_stacks_hold, fill),
        cmocka_unit_test_setup(json_formats_are_json_whatever_names_are, fill),
        cmocka_unit_test_setup(weights_beyond_64_bits_end_where_their_sum_does,
                               fill),
        cmocka_unit_test_setup(
            a_site_of_jsonl_has_its_pattern_and_who_excused_it, fill),
        cmocka_unit_test_setup(each_line_of_jsonl_is_an_object_with_a_type,
                               fill),
        cmocka_unit_test_setup(a_cell_of_csv_is_text_and_ends_where_it_ends,
                               fill),
        cmocka_unit_test_setup(a_profile_is_gzip_and_as_large_as_it_says, fill),
        cmocka_unit_test_setup(a_hostile_name_stays_one_frame, fill),
        cmocka_unit_test_setup(a_long_name_is_whole, fill),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
