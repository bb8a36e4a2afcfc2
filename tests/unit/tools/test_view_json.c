/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/view_json, json_*: the document "seep-report/1". */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "fake_report.h"
#include "words/verdict.h"
#include "json/json.h"

static struct fake_report fake;

static int fill(void **state)
{
    (void)state;
    fake_report_fill(&fake);
    return 0;
}

static json_t *parse(struct seep_json_options *options)
{
    const struct seep_report *reports[] = {&fake.report};
    json_error_t error;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    assert_int_equal(seep_json_reports(file, reports, 1, 2, options), 0);
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
    assert_true(json_is_object(json_object_get(verdict, "forecast")));
    assert_non_null(json_object_get(json_object_get(one, "losses"), "torn"));
    assert_non_null(json_object_get(json_object_get(one, "facts"), "unloads"));
    assert_non_null(json_object_get(json_object_get(one, "cost"), "seep_s"));
    json_decref(document);
}

static void what_the_program_said_is_in_the_document(void **state)
{
    struct seep_json_options options = {0};
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *marks = json_object_get(one, "marks");
    json_t *mark = json_array_get(marks, 0);

    (void)state;
    assert_int_equal(json_array_size(marks), 2);
    assert_string_equal(string_at(mark, "name"), "warm-up done");
    assert_true(json_real_value(json_object_get(mark, "t_s")) == 12);
    assert_int_equal(json_integer_value(json_object_get(mark, "units")), 100);
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

/* Keys and kinds of values of a part: "s" string, "n" number, "b" boolean,
 * "o" object, "a" array; with "?" null will do. */
static void assert_members(json_t *object, const char *const (*members)[2])
{
    size_t count = 0;

    assert_true(json_is_object(object));
    for (; members[count][0] != NULL; count++) {
        json_t *value = json_object_get(object, members[count][0]);
        const char *kind = members[count][1];
        bool fits = (*kind == 's' && json_is_string(value)) ||
                    (*kind == 'n' && json_is_number(value)) ||
                    (*kind == 'b' && json_is_boolean(value)) ||
                    (*kind == 'o' && json_is_object(value)) ||
                    (*kind == 'a' && json_is_array(value)) ||
                    (kind[1] == '?' && json_is_null(value));
        if (!fits) {
            fail_msg("%s is not %s", members[count][0], kind);
        }
    }
    assert_int_equal(json_object_size(object), count);
}

static const char *const verdict_members[][2] = {
    {"class", "s"},
    {"device", "n?"},
    {"sentence", "s"},
    {"reasons", "a"},
    {"advice", "a"},
    {"growth_bytes_per_s", "o?"},
    {"growth_bytes_per_unit", "o?"},
    {"first_share", "n"},
    {"growing_count", "n"},
    {"suppressed_count", "n"},
    {"suppressed_bytes_per_s", "n"},
    {"known_count", "n"},
    {"minor_count", "n"},
    {"minor_bytes_per_s", "n"},
    {"floor_bytes", "n"},
    {"filling", "b"},
    {"reassures", "b"},
    {"too_little", "b"},
    {"hidden_bytes_per_s", "n?"},
    {"need_s", "n?"},
    {"private_grows", "b"},
    {"shared_grows", "b"},
    {"fills_used_bytes", "n?"},
    {"fills_of_bytes", "n?"},
    {"beside_bytes_per_s", "n"},
    {"beside_is_files", "b"},
    {"open_files", "b"},
    {"open", "o?"},
    {"rest", "o?"},
    {"stopped", "s?"},
    {"pattern", "o?"},
    {"forecast", "o?"},
    {NULL, NULL},
};
static const char *const forecast_members[][2] = {
    {"answer", "s"},       {"what", "s?"},      {"device", "n?"},
    {"limit_bytes", "n"},  {"used_bytes", "n"}, {"if_suspect", "b"},
    {"by_private", "b"},   {"by_others", "b"},  {"used_by_all", "b"},
    {"bytes_per_s", "n?"}, {"seconds", "o?"},   {NULL, NULL},
};
static const char *const memory_members[][2] = {
    {"rss", "o?"},
    {"anonymous", "o?"},
    {"shared", "o?"},
    {"own", "o?"},
    {"forked", "o?"},
    {"threads", "o?"},
    {"files", "o?"},
    {"swap", "o?"},
    {"cgroup", "o?"},
    {"cgroup_held", "o?"},
    {"cgroup_shmem", "o?"},
    {"open_files", "o?"},
    {"open_file", "s?"},
    {"tracked", "o?"},
    {"allocator_overhead", "o?"},
    {"unexplained", "o?"},
    {"surplus", "o?"},
    {"allocator", "o?"},
    {"spaces", "o"},
    {"cgroup_limit_bytes", "n?"},
    {"address_space", "o?"},
    {"data", "o?"},
    {"machine_bytes", "n?"},
    {"available_bytes", "n?"},
    {NULL, NULL},
};
static const char *const site_members[][2] = {
    {"id", "s"},
    {"line_id", "s?"},
    {"space", "s"},
    {"device", "n?"},
    {"pool", "s?"},
    {"backs_tensors", "b"},
    {"class", "s"},
    {"reason", "s?"},
    {"torn", "b"},
    {"live_bytes", "n"},
    {"live_bytes_error", "n"},
    {"requested", "o"},
    {"live_count", "n"},
    {"touched_bytes", "n?"},
    {"elsewhere_bytes", "n"},
    {"allocated_bytes", "n"},
    {"allocated_count", "n"},
    {"freed_bytes", "n"},
    {"freed_count", "n"},
    {"peak_bytes", "n"},
    {"largest_bytes", "n"},
    {"died_bytes", "n"},
    {"temporary_bytes", "n"},
    {"temporary_count", "n"},
    {"untold", "o?"},
    {"first_s", "n"},
    {"last_s", "n"},
    {"start_up", "b"},
    {"born_alive_by_tenth_bytes", "a"},
    {"growth_bytes_per_s", "o?"},
    {"growth_now_bytes_per_s", "n?"},
    {"growth_bytes_per_unit", "o?"},
    {"confidence", "n?"},
    {"stopped", "o?"},
    {"steps", "o?"},
    {"in_bursts", "b"},
    {"keeps_share", "n"},
    {"group", "s?"},
    {"role", "s?"},
    {"leaks_in_step", "b"},
    {"group_growth_bytes_per_s", "o?"},
    {"kept", "o?"},
    {"held", "o?"},
    {"pattern", "o?"},
    {"suppressed_by", "s?"},
    {"known_bound_bytes", "n?"},
    {"where", "s"},
    {"stacks", "n"},
    {"stack_live_bytes", "n"},
    {"thread", "s?"},
    {"stack_end", "s"},
    {"window", "o?"},
    {"series", "a"},
    {"frames", "a"},
    {NULL, NULL},
};

static const char *const device_members[][2] = {
    {"ordinal", "n"},        {"total_bytes", "n"},
    {"free_bytes", "n"},     {"used", "o?"},
    {"low_free_bytes", "n"}, {"peak_bytes", "n"},
    {"peak_s", "n"},         {"tracked", "o?"},
    {"unexplained", "o?"},   {"pool", "o"},
    {"graph", "o"},          {"tensor", "o"},
    {"forecast", "o?"},      {NULL, NULL},
};
static const char *const tensor_members[][2] = {
    {"reserved", "o?"},
    {"allocated", "o?"},
    {"fragments", "b"},
    {NULL, NULL},
};

static json_int_t integer_at(json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void devices_are_there_with_all_that_is_known(void **state)
{
    struct seep_json_options options = {0};

    (void)state;
    fake_report_give_devices(&fake);
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *devices = json_object_get(one, "devices");
    json_t *sites = json_object_get(one, "sites");
    json_t *first = json_array_get(devices, 0);
    json_t *second = json_array_get(devices, 1);
    json_t *tensor = json_object_get(first, "tensor");
    json_t *forecast = json_object_get(first, "forecast");

    assert_int_equal(json_array_size(devices), 2);
    assert_members(first, device_members);
    assert_members(second, device_members);
    assert_members(tensor, tensor_members);
    assert_members(forecast, forecast_members);
    assert_int_equal(integer_at(second, "ordinal"), 1);
    assert_int_equal(integer_at(first, "free_bytes"), 70LL << 30);
    assert_int_equal(integer_at(first, "low_free_bytes"), 69LL << 30);
    assert_true(
        json_real_value(json_object_get(json_object_get(tensor, "allocated"),
                                        "last_bytes")) == 8589934592.0);
    assert_string_equal(string_at(forecast, "what"), "device");
    assert_int_equal(integer_at(forecast, "device"), 0);
    assert_true(json_is_null(
        json_object_get(json_object_get(second, "pool"), "reserved")));
    assert_true(
        json_is_integer(json_object_get(json_array_get(sites, 0), "device")));
    assert_true(
        json_is_null(json_object_get(json_array_get(sites, 1), "device")));
    json_decref(document);
}

static void what_was_not_followed_has_no_slope(void **state)
{
    struct seep_json_options options = {0};

    (void)state;
    fake_report_give_devices(&fake);
    fake.devices[1].forecast =
        (struct seep_report_forecast){.what = "", .device = -1};
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *devices = json_object_get(one, "devices");
    json_t *first = json_object_get(json_array_get(devices, 0), "used");
    json_t *second = json_object_get(json_array_get(devices, 1), "used");
    static const char slope[] = "slope_bytes_per_s";
    assert_true(json_is_real(json_object_get(first, slope)));
    assert_true(json_is_null(json_object_get(second, slope)));
    assert_true(json_is_real(json_object_get(second, "last_bytes")));
    assert_true(
        json_is_null(json_object_get(json_array_get(devices, 1), "forecast")));
    json_decref(document);
}

static void a_process_without_gpus_has_none(void **state)
{
    struct seep_json_options options = {0};
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *forecast =
        json_object_get(json_object_get(one, "verdict"), "forecast");

    (void)state;
    assert_true(json_is_array(json_object_get(one, "devices")));
    assert_int_equal(json_array_size(json_object_get(one, "devices")), 0);
    assert_true(json_is_null(json_object_get(forecast, "device")));
    json_decref(document);
}

static void every_class_has_every_member(void **state)
{
    struct seep_json_options options = {0};

    (void)state;
    for (int class = 0; class < SEEP_VERDICT_COUNT; class ++) {
        fake_report_become(&fake, (enum seep_verdict_class) class);
        json_t *document = parse(&options);
        json_t *one = json_array_get(json_object_get(document, "processes"), 0);
        json_t *sites = json_object_get(one, "sites");

        assert_members(json_object_get(one, "verdict"), verdict_members);
        assert_members(json_object_get(one, "memory"), memory_members);
        assert_members(
            json_object_get(json_object_get(one, "verdict"), "forecast"),
            forecast_members);
        for (size_t i = 0; i < json_array_size(sites); i++) {
            assert_members(json_array_get(sites, i), site_members);
        }
        json_decref(document);
    }
}

/* One place makes the sentences, for people and for machines. */
static void the_words_are_those_of_the_text(void **state)
{
    struct seep_json_options options = {0};
    struct seep_words_verdict words;
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *verdict = json_object_get(one, "verdict");
    json_t *advice = json_object_get(verdict, "advice");

    (void)state;
    seep_words_verdict(&fake.report, NULL, &words);
    assert_string_equal(string_at(verdict, "sentence"), words.sentence);
    assert_int_not_equal(words.advice_count, 0);
    assert_int_equal(json_array_size(advice), words.advice_count);
    for (size_t i = 0; i < words.advice_count; i++) {
        assert_string_equal(json_string_value(json_array_get(advice, i)),
                            words.advice[i]);
    }
    json_decref(document);
    seep_words_verdict_fini(&words);
}

static void a_forecast_without_an_end_is_null_there(void **state)
{
    struct seep_json_options options = {0};

    (void)state;
    fake.report.verdict.forecast.seconds.high = 1.0 / 0.0;
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *forecast =
        json_object_get(json_object_get(one, "verdict"), "forecast");
    json_t *seconds = json_object_get(forecast, "seconds");
    assert_string_equal(string_at(forecast, "answer"), "time");
    assert_string_equal(string_at(forecast, "what"), "cgroup");
    assert_true(json_is_null(json_object_get(seconds, "high")));
    assert_true(json_is_real(json_object_get(seconds, "low")));
    json_decref(document);
}

static void a_rule_is_written_as_the_file_has_it(void **state)
{
    struct seep_json_options options = {0};

    (void)state;
    fake.sites[0].suppressed_by = "^handle";
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *site = json_array_get(json_object_get(one, "sites"), 0);
    assert_string_equal(string_at(site, "suppressed_by"), "leak:^handle");
    json_decref(document);
}

static void mappings_that_grew_are_in_what_is_unexplained(void **state)
{
    struct seep_json_options options = {0};

    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_UNEXPLAINED);
    json_t *document = parse(&options);
    json_t *one = json_array_get(json_object_get(document, "processes"), 0);
    json_t *memory = json_object_get(one, "memory");
    json_t *mappings =
        json_object_get(json_object_get(memory, "unexplained"), "mappings");
    assert_int_equal(json_array_size(mappings), 2);
    assert_string_equal(string_at(json_array_get(mappings, 1), "start"),
                        "0x7f1200000000");
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
    static const struct seep_report_frame *list[FRAMES];
    struct seep_json_options options = {.site_id = "77aa"};
    char offset[24];

    (void)state;
    for (size_t i = 0; i < FRAMES; i++) {
        list[i] = &frames[i];
        frames[i] = fake.frames[3];
        frames[i].offset = i % (FRAMES / 2);
        frames[i].line = (uint32_t)(i % 3);
    }
    fake.sites[1].frames = list;
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
    assert_int_equal(seep_json_reports(file, reports, 2, 0, &options), 0);
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
    assert_int_equal(seep_json_reports(file, reports, 1, 0, &options), -EIO);
    fclose(file);
}

static char *print(json_t *value,
                   void (*print_it)(struct seep_json_out *, json_t *))
{
    char *text = NULL;
    size_t size;
    struct seep_json_out out = {.file = open_memstream(&text, &size)};

    print_it(&out, value);
    assert_int_equal(out.error, 0);
    fclose(out.file);
    return text;
}

/* Whoever keeps documents compares them as texts. */
static void a_number_has_one_form(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {-12, "-12.0"},
        {0.5, "0.5"},
        {1.0 / 3, "0.333333333333"},
        {-2.0 / 3, "-0.666666666667"},
        {123456.789, "123456.789"},
        {999999999999, "999999999999.0"},
        {1e12, "1e12"},
        {-1e12, "-1e12"},
        {1234567890123, "1.23456789012e12"},
        {999999999999.7, "1e12"},
        {0.0001, "0.0001"},
        {0.00001, "1e-5"},
        {1.5e-10, "1.5e-10"},
        {1e-100, "1e-100"},
        {1.7976931348623157e308, "1.79769313486e308"},
        {4.9e-324, "4.94065645841e-324"},
    };
    static const int64_t whole[] = {
        0, 1, -1, 9, 10, -10, 1234567890123, INT64_MAX, INT64_MIN,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *text = print(json_real(cases[i].value), seep_json_out_line);

        assert_string_equal(text, cases[i].text);
        free(text);
    }
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++) {
        char *text = print(json_integer(whole[i]), seep_json_out_line);
        char *end;

        assert_true(strtoll(text, &end, 10) == whole[i]);
        assert_string_equal(end, "");
        free(text);
    }
}

/* As printf() has it, but for the ".0" of what is whole. */
static void a_number_is_as_printf_prints_it(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        double value;
        char wanted[48];
        char *text;

        random = random * UINT64_C(6364136223846793005) + 1;
        /* Halves of the last digit, too: those are the hard ones. */
        value = (double)(random >> 24) / (i % 2 == 0 ? 3e7 : 1 << 20);
        value = ldexp(value, (int)(random >> 20 & 63) - 50);
        snprintf(wanted, sizeof(wanted), "%.12g", value);
        if (strchr(wanted, 'e') != NULL) {
            continue;
        }
        if (strchr(wanted, '.') == NULL) {
            strcat(wanted, ".0");
        }
        text = print(json_real(value), seep_json_out_line);
        assert_string_equal(text, wanted);
        free(text);
    }
}

static void rows_are_printed_without_values(void **state)
{
    struct row {
        double at_s;
        uint64_t bytes;
        double told;
    };
    static const struct row list[] = {
        {0.5, 7, 1},
        {NAN, UINT64_MAX, -1},
        {-INFINITY, 0, NAN},
    };
    static const struct seep_json_field fields[] = {
        SEEP_JSON_FIELD("\"at\":", struct row, at_s),
        SEEP_JSON_FIELD(",\"bytes\":", struct row, bytes),
        {",\"told\":", SEEP_JSON_TOLD, offsetof(struct row, told)},
    };
    char *head = seep_json_members(json_pack("{s:s}", "of", "\xc3\xa9\""));
    const struct seep_json_rows rows = {
        .head = head,
        .fields = fields,
        .field_count = sizeof(fields) / sizeof(fields[0]),
        .tail = "}",
        .between = ",\n",
        .row_bytes = sizeof(list[0]),
    };
    char *text = NULL;
    size_t size;
    struct seep_json_out out = {.file = open_memstream(&text, &size)};

    (void)state;
    assert_non_null(head);
    seep_json_out_rows(&out, &rows, list, 3);
    seep_json_out_rows(&out, &rows, list, 0);
    assert_int_equal(out.error, 0);
    fclose(out.file);
    assert_string_equal(
        text,
        "{\"of\":\"\\u00E9\\\"\",\"at\":0.5,\"bytes\":7,\"told\":1.0},\n"
        "{\"of\":\"\\u00E9\\\"\",\"at\":null,\"bytes\":9223372036854775807,"
        "\"told\":null},\n"
        "{\"of\":\"\\u00E9\\\"\",\"at\":null,\"bytes\":0,\"told\":null}");
    free(text);
    free(head);
}

/* Shorter and longer than most lines. */
static void a_line_is_whole_at_any_length(void **state)
{
    char letters[1200];

    (void)state;
    memset(letters, 'a', sizeof(letters));
    for (size_t length = 0; length < sizeof(letters); length++) {
        char *line = seep_json_line(json_pack("[s%]", letters, length));

        assert_non_null(line);
        assert_int_equal(strlen(line), length + strlen("[\"\"]"));
        assert_memory_equal(line + 2, letters, length);
        assert_string_equal(line + 2 + length, "\"]");
        free(line);
    }
    assert_null(seep_json_line(NULL));
}

static void a_text_that_is_no_utf8_is_made_it(void **state)
{
    json_t *text = seep_json_text("a\xff\xc3\xa9");

    (void)state;
    assert_string_equal(json_string_value(text), "a\xef\xbf\xbd\xc3\xa9");
    json_decref(text);
    text = seep_json_text(NULL);
    assert_true(json_is_null(text));
}

static void a_text_is_ascii(void **state)
{
    static const char *const cases[][2] = {
        {"", "\"\""},
        {"plain ~\x7f/", "\"plain ~\x7f/\""},
        {"\"\\\b\f\n\r\t", "\"\\\"\\\\\\b\\f\\n\\r\\t\""},
        {"\x01\x1f", "\"\\u0001\\u001F\""},
        {"\xc2\x9b", "\"\\u009B\""},
        {"\xe2\x82\xac", "\"\\u20AC\""},
        {"a\xf0\x9f\x98\x80z", "\"a\\uD83D\\uDE00z\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *text = print(json_string(cases[i][0]), seep_json_out_line);

        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

static json_t *nested(void)
{
    return json_pack("{s:[i,f,b,n,{},[]],s:{s:s}}", "list", 1, 2.5, 1, "of",
                     "a", "b");
}

static void a_value_is_indented_or_on_one_line(void **state)
{
    char *line = print(nested(), seep_json_out_line);
    char *members = print(nested(), seep_json_out_members);
    char *indented = print(nested(), seep_json_out_value);
    char *none = print(json_object(), seep_json_out_members);

    (void)state;
    assert_string_equal(
        line, "{\"list\":[1,2.5,true,null,{},[]],\"of\":{\"a\":\"b\"}}");
    assert_string_equal(
        members, "\"list\":[1,2.5,true,null,{},[]],\"of\":{\"a\":\"b\"}");
    assert_string_equal(
        indented,
        "{\n \"list\": [\n  1,\n  2.5,\n  true,\n  null,\n  {},\n  []\n ],\n"
        " \"of\": {\n  \"a\": \"b\"\n }\n}");
    assert_string_equal(none, "");
    free(line);
    free(members);
    free(indented);
    free(none);
}

/* What is longer than what is printed at once. */
static void a_long_text_is_whole(void **state)
{
    size_t length = 20000;
    char *long_text = malloc(length + 1);

    assert_non_null(long_text);
    memset(long_text, 'x', length);
    long_text[length] = '\0';
    char *text = print(json_string(long_text), seep_json_out_line);
    (void)state;
    assert_int_equal(strlen(text), length + 2);
    assert_memory_equal(text + 1, long_text, length);
    free(text);
    free(long_text);
}

static void a_full_stream_is_an_error(void **state)
{
    char room[16];
    FILE *file = fmemopen(room, sizeof(room), "w");
    struct seep_json_out out = {.file = file};

    (void)state;
    assert_non_null(file);
    setvbuf(file, NULL, _IONBF, 0);
    seep_json_out_value(&out, nested());
    assert_int_equal(out.error, -EIO);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_one_form),
        cmocka_unit_test(a_number_is_as_printf_prints_it),
        cmocka_unit_test(rows_are_printed_without_values),
        cmocka_unit_test(a_line_is_whole_at_any_length),
        cmocka_unit_test(a_text_that_is_no_utf8_is_made_it),
        cmocka_unit_test(a_text_is_ascii),
        cmocka_unit_test(a_value_is_indented_or_on_one_line),
        cmocka_unit_test(a_long_text_is_whole),
        cmocka_unit_test(a_full_stream_is_an_error),
        cmocka_unit_test_setup(the_document_has_the_schema, fill),
        cmocka_unit_test_setup(what_the_program_said_is_in_the_document, fill),
        cmocka_unit_test_setup(a_site_has_interval_series_and_frames, fill),
        cmocka_unit_test_setup(every_class_has_every_member, fill),
        cmocka_unit_test_setup(devices_are_there_with_all_that_is_known, fill),
        cmocka_unit_test_setup(what_was_not_followed_has_no_slope, fill),
        cmocka_unit_test_setup(a_process_without_gpus_has_none, fill),
        cmocka_unit_test_setup(the_words_are_those_of_the_text, fill),
        cmocka_unit_test_setup(a_forecast_without_an_end_is_null_there, fill),
        cmocka_unit_test_setup(a_rule_is_written_as_the_file_has_it, fill),
        cmocka_unit_test_setup(mappings_that_grew_are_in_what_is_unexplained,
                               fill),
        cmocka_unit_test_setup(what_was_not_computed_is_null, fill),
        cmocka_unit_test_setup(an_open_bound_is_null, fill),
        cmocka_unit_test_setup(every_frame_is_its_own, fill),
        cmocka_unit_test_setup(several_reports_are_one_document, fill),
        cmocka_unit_test_setup(a_stream_that_takes_no_more_is_an_error, fill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
