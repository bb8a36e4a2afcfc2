/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Families in text, in JSON and against limits. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_report.h"
#include "reader/compare/limits.h"
#include "seep_test.h"
#include "text/report.h"
#include "words/compare.h"
#include "words/verdict.h"
#include "json/json.h"

#define COUNT 4
#define CHILDREN 12

static struct fake_report fakes[CHILDREN];
static const struct seep_report *reports[CHILDREN];

/* Three workers leak and run; the fourth is steady. */
static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHILDREN; i++) {
        fake_report_become(&fakes[i],
                           i < 3 ? SEEP_VERDICT_LEAK : SEEP_VERDICT_STEADY);
        fakes[i].report.state = SEEP_STATE_RUNNING;
        fakes[i].report.pid = (uint32_t)(4242 + i);
        /* One group, which is charged with what all of them hold. */
        fakes[i].report.memory.cgroup.last_bytes = 3.0 * (1 << 30);
        fakes[i].report.memory.machine_bytes = 64ULL << 30;
        reports[i] = &fakes[i].report;
    }
    fakes[3].report.site_count = 0;
    return 0;
}

static char *text_of(size_t count)
{
    struct seep_text_options options = {.site_limit = 10, .process_limit = 1};
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = 300};

    seep_view_text_reports(&page, reports, count, &options);
    fclose(page.file);
    return text;
}

static void assert_text(size_t count, const char *part, bool there)
{
    char *text = text_of(count);
    bool found = strstr(text, part) != NULL;

    if (found != there) {
        print_error("%s\nin\n%s", part, text);
    }
    assert_int_equal(found, there);
    free(text);
}

static void a_family_is_told_before_its_processes(void **state)
{
    char *text = text_of(COUNT);
    const char *family = strstr(
        text, "\nLEAK  3 of 4 processes of python3 serve.py together grow by "
              "124 MiB/min (122 to 126), most at serve.py:31 handle, in 3 of "
              "4.\n");

    (void)state;
    assert_non_null(family);
    assert_true(strstr(text, "LEAK  python3 serve.py (pid 4242)") > family);
    free(text);
    assert_text(COUNT, "one by one: 3 leak, 1 steady", true);
}

/* Each of them alone would have three hours; the group is one. */
static void one_forecast_is_of_the_sum(void **state)
{
    (void)state;
    assert_text(
        COUNT,
        "      At this rate the cgroup's 8 GiB will be reached in 38 min",
        true);
    assert_text(
        COUNT,
        "      At this rate the cgroup's 8 GiB will be reached in 2 h 51 "
        "min",
        true);
}

static void a_process_alone_is_no_family(void **state)
{
    (void)state;
    assert_text(1, "processes of", false);
    fakes[1].report.labels = "model=other";
    assert_text(2, "processes of", false);
}

static void one_that_leaks_of_several_is_told_as_one(void **state)
{
    (void)state;
    for (size_t i = 1; i < 3; i++) {
        fake_report_become(&fakes[i], SEEP_VERDICT_STEADY);
        fakes[i].report.state = SEEP_STATE_RUNNING;
    }
    assert_text(COUNT,
                "LEAK  1 of 4 processes of python3 serve.py grows by 41.3 "
                "MiB/min (40.1 to 42.5), most at serve.py:31 handle, in 1 of "
                "4.",
                true);
}

static void no_leak_is_not_said_while_one_tells_too_little(void **state)
{
    (void)state;
    fake_report_become(&fakes[0], SEEP_VERDICT_BOUNDED);
    fake_report_become(&fakes[1], SEEP_VERDICT_STEADY);
    fake_report_become(&fakes[2], SEEP_VERDICT_INSUFFICIENT);
    assert_text(3,
                "INSUFFICIENT DATA  cannot tell yet for 1 of 3 processes of "
                "python3 serve.py: 1 bounded, 1 insufficient-data, 1 steady.",
                true);
    fake_report_become(&fakes[2], SEEP_VERDICT_STEADY);
    for (size_t i = 0; i < 3; i++) {
        fakes[i].report.verdict.reassures = i > 0;
    }
    assert_text(3, "no leak in", false);
    fakes[0].report.verdict.reassures = true;
    assert_text(
        3,
        "BOUNDED  no leak in 3 processes of python3 serve.py: 1 bounded, 2 "
        "steady.",
        true);
}

static json_t *document_of(size_t count)
{
    struct seep_json_options options = {.no_series = true};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    json_t *document;

    assert_int_equal(seep_json_reports(file, reports, count, 0, &options), 0);
    fclose(file);
    document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(document);
    free(text);
    return document;
}

static void make_children(double each_mib)
{
    for (size_t i = 0; i < CHILDREN; i++) {
        double length = 3 + 0.25 * (double)i;
        struct seep_report *report = &fakes[i].report;

        fake_report_become(&fakes[i], SEEP_VERDICT_INSUFFICIENT);
        report->state = SEEP_STATE_EXITED;
        report->duration_s = length;
        report->units = 0;
        report->site_count = 1;
        report->memory.anonymous.valid = false;
        fakes[i].sites[0].live_bytes =
            (uint64_t)((10 + each_mib * length) * (1 << 20));
        fakes[i].spaces[0].live_bytes = fakes[i].sites[0].live_bytes;
    }
}

static void what_children_keep_is_told_with_its_slope(void **state)
{
    (void)state;
    make_children(2);
    assert_text(
        CHILDREN,
        "SUSPECT  python3 serve.py, 12 processes of 3.0 s to 5.8 s: "
        "serve.py:31 handle keeps 18.8 MiB in each, more the longer it runs: 2 MiB for each second of its run",
        true);
    assert_text(CHILDREN, "a leak, or what a larger job needs.", true);
    make_children(0);
    assert_text(
        CHILDREN,
        "BOUNDED  python3 serve.py, 12 processes of 3.0 s to 5.8 s: "
        "serve.py:31 handle keeps 10 MiB in each, and no more in longer runs: kept once per process.",
        true);
}

/* It began with "12 insufficient-data", and the next line was a leak. */
static void the_head_says_what_all_are_together(void **state)
{
    json_t *document;
    int pid;

    (void)state;
    make_children(2);
    fakes[CHILDREN - 1].report.pid = 99; /* it ran the longest */
    assert_text(CHILDREN,
                "seep: 12 processes: one by one 12 insufficient-data, together "
                "suspect; first to look at: pid 99, python3 serve.py",
                true);
    document = document_of(CHILDREN);
    assert_int_equal(json_unpack(document, "{s:{s:i}}", "summary", "pid", &pid),
                     0);
    assert_int_equal(pid, 99);
    json_decref(document);
    make_children(0);
    for (size_t i = 0; i < CHILDREN; i++) {
        fake_report_become(&fakes[i], SEEP_VERDICT_LEAK);
    }
    assert_text(CHILDREN, "seep: 12 processes: 12 leak; first", true);
}

static void children_of_one_length_tell_nothing(void **state)
{
    (void)state;
    make_children(2);
    for (size_t i = 0; i < CHILDREN; i++) {
        fakes[i].report.duration_s = 10;
    }
    assert_text(
        CHILDREN,
        "INSUFFICIENT DATA  python3 serve.py, 12 processes of 10.0 s "
        "each: serve.py:31 handle keeps 18.8 MiB in each; too short, or too similar in length, to tell a leak from a working "
        "set.",
        true);
    assert_text(CHILDREN, "once", false);
}

static void hostile_names_reach_no_terminal(void **state)
{
    static const char *const words[] = {"python3", "\033[2J\xff\xe2\x80\xae"};
    char *text;

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        fakes[i].report.arguments = words;
        fakes[i].sites[0].where = FAKE_HOSTILE_FUNCTION;
    }
    text = text_of(COUNT);
    assert_non_null(strstr(text, "processes of python3"));
    assert_null(strchr(text, '\033'));
    assert_null(strstr(text, "\xe2\x80\xae"));
    free(text);
}

static void a_document_has_each_process_in_one_family(void **state)
{
    json_t *document;
    json_t *family;
    json_t *members;
    const char *class;
    double seconds;
    double low;
    int leaks;

    (void)state;
    fakes[1].report.labels = "model=other";
    document = document_of(COUNT);
    assert_int_equal(json_array_size(json_object_get(document, "families")), 2);
    family = json_array_get(json_object_get(document, "families"), 0);
    assert_int_equal(
        json_unpack(family, "{s:s,s:o,s:{s:F},s:{s:{s:F}},s:[{s:i}]}", "class",
                    &class, "members", &members, "growth_bytes_per_s", "low",
                    &low, "forecast", "seconds", "estimate", &seconds, "sites",
                    "leaks", &leaks),
        0);
    assert_string_equal(class, "leak");
    assert_int_equal(json_array_size(members), 3);
    assert_int_equal(json_integer_value(json_array_get(members, 1)), 2);
    assert_true(fabs(low - (2 * 721736 - sqrt(2) * 20960)) < 1);
    assert_true(fabs(seconds - 5120 / (2 * 7492.0 / 10260)) < 1);
    assert_int_equal(leaks, 2);
    json_decref(document);
}

static void the_summary_is_that_of_families(void **state)
{
    json_t *document;
    const char *class;

    (void)state;
    fake_report_become(&fakes[0], SEEP_VERDICT_STEADY);
    fake_report_become(&fakes[1], SEEP_VERDICT_INSUFFICIENT);
    document = document_of(2);
    assert_int_equal(
        json_unpack(document, "{s:{s:s}}", "summary", "class", &class), 0);
    assert_string_equal(class, "insufficient-data");
    json_decref(document);
    document = document_of(0);
    assert_int_equal(json_array_size(json_object_get(document, "families")), 0);
    json_decref(document);
}

/* Text of a check of one limit on the total, of two processes. */
static char *check(double limit, bool is_long, enum seep_check_outcome outcome)
{
    struct seep_check_limit one = {.kind = SEEP_CHECK_GROWTH_TOTAL,
                                   .space = SEEP_CHECK_ALL_SPACES,
                                   .value = limit};
    struct seep_families families;
    struct seep_check_options options = {
        .limits = &one, .count = 1, .warmup_s = is_long ? 10 : 1e6};
    struct seep_check_result *results;
    size_t count;
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = 200};

    assert_int_equal(seep_families_make(reports, 2, &families), 0);
    options.families = &families;
    assert_int_equal(seep_check_run(&options, reports, 2, &results, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(results[0].outcome, outcome);
    struct seep_check_set set = {
        .results = results, .count = 1, .reports = reports, .report_count = 2};
    seep_view_check(&page, &set);
    fclose(page.file);
    free(results);
    seep_families_fini(&families);
    return text;
}

static void a_total_is_broken_by_what_each_keeps(void **state)
{
    char *text = check(1e6, true, SEEP_CHECK_FAIL); /* each grows by 0.7e6 */

    (void)state;
    assert_non_null(strstr(text, "\npython3 serve.py, 2 processes together\n"));
    assert_non_null(strstr(text, " fail  total growth  <= 57.2 MiB/min  "));
    assert_non_null(strstr(text, "serve.py:31 handle grows by +80.1 "));
    assert_non_null(strstr(text, "MiB/min in 2 of 2 processes\n"));
    free(text);
}

static void a_member_that_was_not_measured_is_no_pass(void **state)
{
    (void)state;
    free(check(1e9, false, SEEP_CHECK_INSUFFICIENT));
}

static void a_total_that_nothing_is_held_against_is_not_kept(void **state)
{
    struct seep_check_limit limits[] = {
        {.kind = SEEP_CHECK_CAP, .space = SEEP_CHECK_ALL_SPACES, .value = 1e18},
        {.kind = SEEP_CHECK_GROWTH_TOTAL, .space = SEEP_CHECK_ALL_SPACES},
    };
    struct seep_check_options options = {.limits = limits, .count = 2};
    struct seep_check_result *results;
    size_t count;

    (void)state;
    assert_int_equal(seep_check_run(&options, reports, 1, &results, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(seep_check_worst(results, count), SEEP_CHECK_INSUFFICIENT);
    free(results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, set_up)
        TEST(a_family_is_told_before_its_processes),
        TEST(one_forecast_is_of_the_sum),
        TEST(a_process_alone_is_no_family),
        TEST(one_that_leaks_of_several_is_told_as_one),
        TEST(no_leak_is_not_said_while_one_tells_too_little),
        TEST(what_children_keep_is_told_with_its_slope),
        TEST(the_head_says_what_all_are_together),
        TEST(children_of_one_length_tell_nothing),
        TEST(hostile_names_reach_no_terminal),
        TEST(a_document_has_each_process_in_one_family),
        TEST(the_summary_is_that_of_families),
        TEST(a_total_is_broken_by_what_each_keeps),
        TEST(a_member_that_was_not_measured_is_no_pass),
        TEST(a_total_that_nothing_is_held_against_is_not_kept),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
