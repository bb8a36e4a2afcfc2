/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A check as it is asked for, and as people and machines are told of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ci/ci.h"
#include "cmd_check.h"
#include "fake_report.h"
#include "options/option.h"
#include "text/report.h"
#include "words/units.h"
#include "json/json.h"

static struct seep_check_arguments arguments;

/* @text as `seep run --check` takes it. @return the exit code */
static int parse(const char *text)
{
    static char **words;
    int count;
    int code;

    free(words); /* of the last time: arguments point into them */
    words = NULL;
    assert_int_equal(seep_check_options_split(text, &words, &count), 0);
    code = seep_check_options_parse(count, words, &arguments);
    return code;
}

static int refused(const char *text)
{
    int code = parse(text);

    seep_check_options_close(&arguments);
    return code;
}

static void a_text_is_parted_as_a_shell_does(void **state)
{
    char **words;
    int count;

    (void)state;
    assert_int_equal(
        seep_check_options_split("  --junit 'a b.xml' x\\ y \"c \\\" 'd\" ''  ",
                                 &words, &count),
        0);
    assert_int_equal(count, 6);
    assert_string_equal(words[0], "seep");
    assert_string_equal(words[1], "--junit");
    assert_string_equal(words[2], "a b.xml");
    assert_string_equal(words[3], "x y");
    assert_string_equal(words[4], "c \" 'd");
    assert_string_equal(words[5], "");
    assert_null(words[6]);
    free(words);
}

static void the_shortest_words_have_room(void **state)
{
    char **words;
    int count;

    (void)state;
    assert_int_equal(seep_check_options_split("a b c d e", &words, &count), 0);
    assert_int_equal(count, 6);
    assert_string_equal(words[5], "e");
    free(words);
}

static void a_quote_that_is_not_closed_is_refused(void **state)
{
    char **words;
    int count;

    (void)state;
    assert_int_equal(seep_check_options_split("--cap '1G", &words, &count),
                     -EINVAL);
}

static void a_limit_has_a_scope_before_its_last_equals_sign(void **state)
{
    (void)state;
    assert_int_equal(parse("--max-growth 1MiB/min --max-growth=python=64K/s "
                           "--cap model=bert=12GiB --warmup 5m"),
                     0);
    assert_int_equal(arguments.count, 3);
    assert_int_equal(arguments.limits[0].space, SEEP_CHECK_ALL_SPACES);
    assert_true(fabs(arguments.limits[0].value - 1048576 / 60.0) < 1e-6);
    assert_int_equal(arguments.limits[1].space, SEEP_SPACE_PYTHON);
    assert_true(arguments.limits[1].value == 65536);
    assert_int_equal(arguments.limits[2].kind, SEEP_CHECK_CAP);
    assert_string_equal(arguments.limits[2].label, "model=bert");
    assert_true(arguments.limits[2].value == 12.0 * (1 << 30));
    assert_true(arguments.warmup_s == 300);
    seep_check_options_close(&arguments);
}

static void what_is_spelled_wrong_is_refused(void **state)
{
    (void)state;
    assert_int_equal(refused("--max-growht 1MiB/min"), SEEP_EXIT_USAGE);
    assert_int_equal(refused("--max-growth 1MiB"), SEEP_EXIT_USAGE);
    assert_int_equal(refused("--max-growth 1MiB/fortnight"), SEEP_EXIT_USAGE);
    assert_int_equal(refused("--max-growth pyhton=1MiB/s"), SEEP_EXIT_USAGE);
    assert_int_equal(refused("--max-growth"), SEEP_EXIT_USAGE);
    assert_int_equal(refused("--cap ''"), SEEP_EXIT_USAGE);
    assert_int_equal(refused("--gpu-free heap=1G"), SEEP_EXIT_USAGE);
    assert_int_equal(refused("--cap 1G --warmup soon"), SEEP_EXIT_USAGE);
    assert_int_equal(refused("--cap 1G --json=yes"), SEEP_EXIT_USAGE);
    assert_int_equal(refused("--json"), SEEP_EXIT_USAGE); /* no limit */
}

static void rates_and_times_are_read(void **state)
{
    double value = 7;

    (void)state;
    assert_int_equal(seep_units_parse_rate("60 KiB/min", &value), 0);
    assert_true(value == 1024);
    assert_int_equal(seep_units_parse_rate("86400/day", &value), 0);
    assert_true(value == 1);
    assert_int_equal(seep_units_parse_duration("1.5h", &value), 0);
    assert_true(value == 5400);
    assert_int_equal(seep_units_parse_duration("90", &value), 0);
    assert_true(value == 90);
    value = 7;
    assert_int_equal(seep_units_parse_rate("/min", &value), -EINVAL);
    assert_int_equal(seep_units_parse_rate("1M/", &value), -EINVAL);
    assert_int_equal(seep_units_parse_duration("-5m", &value), -EINVAL);
    assert_int_equal(seep_units_parse_duration("5 weeks", &value), -EINVAL);
    assert_int_equal(seep_units_parse_duration("0x5", &value), -EINVAL);
    assert_true(value == 7);
}

struct shown {
    struct fake_report fake;
    const struct seep_report *report;
    struct seep_check_limit limits[2];
    struct seep_check_result results[2];
    struct seep_check_set set;
};

/* Two limits of one process: growth broken at its first site, drift open. */
static void fill(struct shown *shown)
{
    memset(shown, 0, sizeof(*shown));
    fake_report_fill(&shown->fake);
    shown->report = &shown->fake.report;
    shown->limits[0] =
        (struct seep_check_limit){.space = SEEP_CHECK_ALL_SPACES, .value = 100};
    shown->limits[1] = (struct seep_check_limit){
        .kind = SEEP_CHECK_DRIFT, .space = SEEP_SPACE_PYTHON, .value = 1 << 20};
    shown->results[0] = (struct seep_check_result){
        .limit = &shown->limits[0],
        .report = shown->report,
        .outcome = SEEP_CHECK_FAIL,
        .measure = {true, "", {700000, 690000, 710000}, -1},
        .sites = {&shown->fake.sites[0]},
        .site_count = 1,
        .site_total = 1,
    };
    shown->results[1] = (struct seep_check_result){
        .limit = &shown->limits[1],
        .report = shown->report,
        .outcome = SEEP_CHECK_INSUFFICIENT,
        .measure = {.reason = "too short", .device = -1},
    };
    shown->set = (struct seep_check_set){
        .results = shown->results,
        .count = 2,
        .reports = &shown->report,
        .report_count = 1,
        .warmup_s = SEEP_CHECK_WARMUP_UNKNOWN,
    };
}

static char *text_of(const struct shown *shown)
{
    struct seep_page page = {.columns = 100};
    char *text;
    size_t size;

    page.file = open_memstream(&text, &size);
    seep_view_check(&page, &shown->set);
    fclose(page.file);
    return text;
}

static char *github_of(const struct shown *shown)
{
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    assert_int_equal(seep_ci_github(file, NULL, &shown->set), 0);
    fclose(file);
    return text;
}

static void the_answer_comes_first_and_the_next_step_last(void **state)
{
    struct shown shown;
    char *text;

    (void)state;
    fill(&shown);
    text = text_of(&shown);
    assert_ptr_equal(strstr(text, "seep: FAIL: 1 of 2 limits violated\n"),
                     text);
    assert_non_null(strstr(text, "python3 serve.py, pid 4242"));
    assert_non_null(strstr(text, "+40.1 MiB/min (39.5 to 40.6)"));
    assert_non_null(strstr(text, "drift of python"));
    assert_non_null(strstr(text, "too short"));
    assert_non_null(strstr(text, "where  serve.py:31 handle"));
    assert_non_null(
        strstr(text, "next   seep report --stack --site 3f9a0011 /data/seep"));
    free(text);
}

static void the_exit_tells_three_outcomes_and_what_was_not_read(void **state)
{
    struct shown shown;

    (void)state;
    fill(&shown);
    assert_int_equal(seep_check_exit(&shown.set), 3);
    shown.set.refused_count = 1;
    assert_int_equal(seep_check_exit(&shown.set), 3); /* measured */
    shown.results[0].outcome = SEEP_CHECK_PASS;
    assert_int_equal(seep_check_exit(&shown.set), 1);
    shown.set.refused_count = 0;
    assert_int_equal(seep_check_exit(&shown.set), 4);
    shown.results[1].outcome = SEEP_CHECK_PASS;
    assert_int_equal(seep_check_exit(&shown.set), 0);
    shown.set.count = 0;
    assert_int_equal(seep_check_exit(&shown.set), 4);
}

static void no_name_ends_a_command_of_github(void **state)
{
    char *data = seep_ci_escape("50%,\r\n::x", "%\r\n", false);
    char *property = seep_ci_escape("a:b,c%\n", "%\r\n:,", false);

    (void)state;
    assert_string_equal(data, "50%25,%0D%0A::x");
    assert_string_equal(property, "a%3Ab%2Cc%25%0A");
    free(data);
    free(property);
}

static void an_annotation_is_one_line_at_file_and_line(void **state)
{
    struct shown shown;
    char *text;

    (void)state;
    fill(&shown);
    shown.fake.frames[2].file = "a,b:c\n::error ::x.py";
    text = github_of(&shown);
    assert_ptr_equal(strstr(text, "::error file=a%2Cb%3Ac"), text);
    assert_non_null(strstr(text, ",line=31,title=seep growth::growth of "));
    assert_non_null(strstr(text, "\n::warning title=seep drift"));
    assert_ptr_equal(strrchr(text, '\n'), text + strlen(text) - 1);
    free(text);
}

static json_t *sarif_of(const struct shown *shown)
{
    char path[] = "/tmp/seep-test-XXXXXX";
    int fd = mkstemp(path);
    json_t *document;

    assert_true(fd >= 0);
    assert_int_equal(seep_ci_sarif(path, &shown->set), 0);
    document = json_load_file(path, 0, NULL);
    close(fd);
    unlink(path);
    assert_non_null(document);
    return document;
}

/* What GitHub asks of a document, and the standard of every one. */
static void sarif_has_what_is_required(void **state)
{
    const char *version, *name, *rule, *message, *uri, *print, *kind;
    int rule_index, line;
    struct shown shown;
    json_t *document;
    json_t *rules;

    (void)state;
    fill(&shown);
    shown.fake.frames[2].file = "/srv/my app/serve.py";
    document = sarif_of(&shown);
    assert_int_equal(
        json_unpack(document,
                    "{s:s, s:[{s:{s:{s:s, s:o}}, s:[{s:s, s:i, s:s, s:{s:s},"
                    "s:[{s:{s:{s:s}, s:{s:i}}}], s:{s:s}}, {s:s}]}]}",
                    "version", &version, "runs", "tool", "driver", "name",
                    &name, "rules", &rules, "results", "ruleId", &rule,
                    "ruleIndex", &rule_index, "kind", &kind, "message", "text",
                    &message, "locations", "physicalLocation",
                    "artifactLocation", "uri", &uri, "region", "startLine",
                    &line, "partialFingerprints", "seepSiteId/v1", &print,
                    "kind", &kind),
        0);
    assert_string_equal(version, "2.1.0");
    assert_string_equal(name, "seep");
    assert_string_equal(rule, "seep/growth");
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(rules, (size_t)rule_index), "id")),
                        rule);
    assert_string_equal(uri, "file:///srv/my%20app/serve.py");
    assert_int_equal(line, 31);
    assert_string_equal(print, "3f9a00112233");
    assert_string_equal(kind, "open"); /* of the second: not enough data */
    json_decref(document);
}

static void a_document_has_each_limit_with_its_interval(void **state)
{
    struct shown shown;
    const char *schema, *outcome;
    double low;
    json_t *document;
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    (void)state;
    fill(&shown);
    assert_int_equal(seep_json_check(file, &shown.set), 0);
    fclose(file);
    document = json_loads(text, 0, NULL);
    assert_int_equal(json_unpack(document, "{s:s, s:s, s:[{s:{s:F}}, {s:n}]}",
                                 "schema", &schema, "outcome", &outcome,
                                 "limits", "measured", "low", &low, "measured"),
                     0);
    assert_string_equal(schema, "seep-check/1");
    assert_string_equal(outcome, "fail");
    assert_true(low == 690000);
    json_decref(document);
    free(text);
}

static void hostile_names_reach_no_terminal(void **state)
{
    struct shown shown;
    char *text;
    char *github;

    (void)state;
    fill(&shown);
    shown.results[0].sites[0] = &shown.fake.sites[1];
    text = text_of(&shown);
    github = github_of(&shown);
    assert_null(strchr(text, '\033'));
    assert_null(strchr(github, '\033'));
    free(text);
    free(github);
}

static void a_file_is_named_as_the_repository_has_it(void **state)
{
    struct shown shown;
    unsigned line;

    (void)state;
    fill(&shown);
    shown.fake.frames[2].file = "/ci/build/src/serve.py";
    setenv("GITHUB_WORKSPACE", "/ci/build/", 1);
    assert_string_equal(seep_check_file(&shown.fake.sites[0], &line),
                        "src/serve.py");
    setenv("GITHUB_WORKSPACE", "/ci/buil", 1);
    assert_string_equal(seep_check_file(&shown.fake.sites[0], &line),
                        "/ci/build/src/serve.py");
    unsetenv("GITHUB_WORKSPACE");
    shown.fake.frames[2].line = 0;
    assert_null(seep_check_file(&shown.fake.sites[0], &line));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_parted_as_a_shell_does),
        cmocka_unit_test(the_shortest_words_have_room),
        cmocka_unit_test(a_quote_that_is_not_closed_is_refused),
        cmocka_unit_test(a_limit_has_a_scope_before_its_last_equals_sign),
        cmocka_unit_test(what_is_spelled_wrong_is_refused),
        cmocka_unit_test(rates_and_times_are_read),
        cmocka_unit_test(the_answer_comes_first_and_the_next_step_last),
        cmocka_unit_test(the_exit_tells_three_outcomes_and_what_was_not_read),
        cmocka_unit_test(no_name_ends_a_command_of_github),
        cmocka_unit_test(an_annotation_is_one_line_at_file_and_line),
        cmocka_unit_test(sarif_has_what_is_required),
        cmocka_unit_test(a_document_has_each_limit_with_its_interval),
        cmocka_unit_test(hostile_names_reach_no_terminal),
        cmocka_unit_test(a_file_is_named_as_the_repository_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
