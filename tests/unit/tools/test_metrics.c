/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/metrics_*: text, escaping, bounds, counters, negotiation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_report.h"
#include "metrics/metrics.h"
#include "seep_test.h"

static const struct seep_metric gauge = {SEEP_METRIC_GAUGE, "held_bytes",
                                         "bytes", "What is held."};
static const struct seep_metric counter = {SEEP_METRIC_COUNTER, "freed_bytes",
                                           "bytes", "What was freed."};
static const struct seep_metric info = {SEEP_METRIC_INFO, "target", "",
                                        "Who it is."};

static char *sample(enum seep_metrics_format format,
                    const struct seep_metric *metric, const char *value)
{
    struct seep_metrics_text text = {.format = format};
    struct seep_metrics_label labels[] = {{"a", value}, {"b", ""}};

    seep_metrics_text_sample(&text, metric, labels, 2, 1.5);
    seep_metrics_text_end(&text);
    assert_false(text.failed);
    assert_int_equal(strlen(text.text), text.length);
    return text.text;
}

static void check_sample(enum seep_metrics_format format,
                         const struct seep_metric *metric, const char *value,
                         const char *expected)
{
    char *text = sample(format, metric, value);

    assert_string_equal(text, expected);
    free(text);
}

static void prometheus_names_each_sample(void **state)
{
    (void)state;
    check_sample(SEEP_METRICS_PROMETHEUS, &gauge, "x",
                 "# HELP seep_held_bytes What is held.\n"
                 "# TYPE seep_held_bytes gauge\n"
                 "seep_held_bytes{a=\"x\"} 1.5\n");
    check_sample(SEEP_METRICS_PROMETHEUS, &counter, "x",
                 "# HELP seep_freed_bytes_total What was freed.\n"
                 "# TYPE seep_freed_bytes_total counter\n"
                 "seep_freed_bytes_total{a=\"x\"} 1.5\n");
    check_sample(SEEP_METRICS_PROMETHEUS, &info, "x",
                 "# HELP seep_target_info Who it is.\n"
                 "# TYPE seep_target_info gauge\n"
                 "seep_target_info{a=\"x\"} 1.5\n");
}

static void openmetrics_names_the_family_and_its_unit(void **state)
{
    (void)state;
    check_sample(SEEP_METRICS_OPENMETRICS, &counter, "x",
                 "# HELP seep_freed_bytes What was freed.\n"
                 "# TYPE seep_freed_bytes counter\n"
                 "# UNIT seep_freed_bytes bytes\n"
                 "seep_freed_bytes_total{a=\"x\"} 1.5\n# EOF\n");
    check_sample(SEEP_METRICS_OPENMETRICS, &info, "",
                 "# HELP seep_target Who it is.\n"
                 "# TYPE seep_target info\n"
                 "seep_target_info 1.5\n# EOF\n");
}

static void check_value(const char *value, const char *escaped)
{
    char *text = sample(SEEP_METRICS_PROMETHEUS, &gauge, value);
    char expected[128];

    snprintf(expected, sizeof(expected), "{a=\"%s\"} 1.5\n", escaped);
    assert_non_null(strstr(text, expected));
    free(text);
}

static void hostile_values_are_escaped(void **state)
{
    (void)state;
    check_value("a\nb", "a\\nb");
    check_value("a\"b\\c", "a\\\"b\\\\c");
    check_value("a\xff"
                "b",
                "a\xef\xbf\xbd"
                "b");
    check_value("a\033[2Jb\x7f", "a\xef\xbf\xbd[2Jb\xef\xbf\xbd");
    check_value("caf\xc3\xa9", "caf\xc3\xa9");
    /* U+009B begins an escape on a terminal, U+202E turns a line round */
    check_value("a\xc2\x9b"
                "31mb\xe2\x80\xae"
                "c",
                "a\xef\xbf\xbd"
                "31mb\xef\xbf\xbd"
                "c");
}

static void long_values_are_cut_between_characters(void **state)
{
    char value[SEEP_METRICS_VALUE_BYTES + 100];
    char *text;

    (void)state;
    memset(value, 'x', sizeof(value));
    memcpy(value + SEEP_METRICS_VALUE_BYTES - 1, "\xc3\xa9", 3);
    text = sample(SEEP_METRICS_PROMETHEUS, &gauge, value);
    const char *quote = strchr(text, '"');
    assert_int_equal(strcspn(quote + 1, "\""), SEEP_METRICS_VALUE_BYTES - 1);
    free(text);
}

static void numbers_are_written_whole(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, " 0\n"},
        {8589934592.0, " 8589934592\n"},
        {9007199254740991.0, " 9007199254740991\n"},
        {-2.5, " -2.5\n"},
        {1e300, " 1e+300\n"},
        {INFINITY, " +Inf\n"},
        {-INFINITY, " -Inf\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct seep_metrics_text text = {.format = SEEP_METRICS_PROMETHEUS};
        seep_metrics_text_sample(&text, &gauge, NULL, 0, cases[i].value);
        seep_metrics_text_end(&text);
        assert_non_null(strstr(text.text, cases[i].text));
        free(text.text);
    }
}

static void what_is_no_number_is_not_written(void **state)
{
    struct seep_metrics_text text = {.format = SEEP_METRICS_PROMETHEUS};

    (void)state;
    seep_metrics_text_sample(&text, &gauge, NULL, 0, NAN);
    seep_metrics_text_end(&text);
    assert_null(text.text);
}

static void check_name(const char *given, const char *expected)
{
    char name[16];

    seep_metrics_text_name(given, strlen(given), name, sizeof(name));
    assert_string_equal(name, expected);
}

static void names_of_labels_are_made_valid(void **state)
{
    (void)state;
    check_name("model", "model");
    check_name("model-name", "model_name");
    check_name("__name__", "name__");
    check_name("9lives", "_9lives");
    check_name("\xc3\xa9t\xc3\xa9", "__t__");
    check_name("", "_");
    check_name("___", "_");
    check_name("a-very-long-name-of-a-label", "a_very_long_nam");
}

static void a_scraper_gets_what_it_asks_for(void **state)
{
    static const struct {
        const char *header;
        enum seep_metrics_format format;
    } cases[] = {
        {NULL, SEEP_METRICS_PROMETHEUS},
        {"", SEEP_METRICS_PROMETHEUS},
        {"*/*", SEEP_METRICS_PROMETHEUS},
        {"text/html,application/xhtml+xml,*/*;q=0.8", SEEP_METRICS_PROMETHEUS},
        {"application/openmetrics-text", SEEP_METRICS_OPENMETRICS},
        {"Application/OpenMetrics-Text; version=1.0.0",
         SEEP_METRICS_OPENMETRICS},
        {"application/openmetrics-text;version=1.0.0,application/"
         "openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,"
         "*/*;q=0.1",
         SEEP_METRICS_OPENMETRICS},
        {"text/plain;q=0.9, application/openmetrics-text;q=0.5",
         SEEP_METRICS_PROMETHEUS},
        {"application/openmetrics-text;q=0", SEEP_METRICS_PROMETHEUS},
        {"application/openmetrics-textual", SEEP_METRICS_PROMETHEUS},
        {",,;;q=;,", SEEP_METRICS_PROMETHEUS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(seep_metrics_accept(cases[i].header), cases[i].format);
    }
}

/* Two processes, of which the first has a GPU. */
struct world {
    struct fake_report fakes[2];
    struct seep_followed followed[2];
    const struct seep_followed *list[2];
    struct seep_report_holding holdings[2];
    struct seep_metrics_input input;
    struct seep_metrics_totals totals;
};

static void fill_world(struct world *world)
{
    memset(world, 0, sizeof(*world));
    for (size_t i = 0; i < 2; i++) {
        fake_report_fill(&world->fakes[i]);
        world->followed[i] = (struct seep_followed){
            .path = "x.seep",
            .inode = i + 1,
            .report = &world->fakes[i].report,
        };
        world->list[i] = &world->followed[i];
    }
    fake_report_give_devices(&world->fakes[0]);
    world->fakes[1].report.pid = 4243;
    world->holdings[0] = (struct seep_report_holding){
        SEEP_SPACE_HEAP, -1, 600ULL << 20, 1000ULL << 20, 400ULL << 20};
    world->holdings[1] =
        (struct seep_report_holding){SEEP_SPACE_DEVICE, 0, 100, 300, 200};
    world->fakes[0].report.holdings = world->holdings;
    world->fakes[0].report.holding_count = 2;
    world->input = (struct seep_metrics_input){
        .list = world->list, .count = 2, .site_limit = 10};
}

static char *make(struct world *world, enum seep_metrics_format format)
{
    struct seep_metrics_text text = {.format = format};

    assert_int_equal(seep_metrics_make(&world->input, &world->totals, &text),
                     0);
    return text.text;
}

static size_t lines_with(const char *text, const char *words)
{
    size_t count = 0;

    for (; (text = strstr(text, words)) != NULL; text++) {
        count++;
    }
    return count;
}

static void each_process_has_one_verdict(void **state)
{
    struct world world;

    (void)state;
    fill_world(&world);
    char *text = make(&world, SEEP_METRICS_PROMETHEUS);
    assert_int_equal(lines_with(text, "\nseep_verdict{pid=\"4242\","),
                     SEEP_VERDICT_COUNT);
    /* And the family of the two. */
    assert_int_equal(lines_with(text, "class=\"leak\"} 1\n"), 3);
    assert_int_equal(lines_with(text, "# TYPE seep_verdict gauge\n"), 1);
    assert_int_equal(lines_with(text, "# EOF"), 0);
    free(text);
    seep_metrics_totals_fini(&world.totals);
}

/* Something little that is open beside a class is no "no leak". */
static void no_leak_is_what_was_tested(void **state)
{
    struct world world;

    (void)state;
    fill_world(&world);
    for (int reassures = 0; reassures < 2; reassures++) {
        char *text;

        world.fakes[0].report.verdict.class = SEEP_VERDICT_BOUNDED;
        world.fakes[0].report.verdict.reassures = reassures != 0;
        text = make(&world, SEEP_METRICS_PROMETHEUS);
        assert_int_equal(
            lines_with(text, "\nseep_no_leak{pid=\"4242\",exe=\"python3\"} 1"),
            reassures);
        free(text);
    }
    seep_metrics_totals_fini(&world.totals);
}

static void each_device_has_its_own_samples(void **state)
{
    struct world world;

    (void)state;
    fill_world(&world);
    char *text = make(&world, SEEP_METRICS_PROMETHEUS);
    assert_int_equal(lines_with(text, "\nseep_device_free_bytes{"), 2);
    assert_int_equal(lines_with(text, "\nseep_device_total_bytes{"), 2);
    assert_int_equal(lines_with(text, "limit=\"device\",device=\"0\"}"), 1);
    assert_non_null(strstr(text, "\nseep_unexplained_bytes{pid=\"4242\","
                                 "exe=\"python3\",device=\"0\"} "));
    free(text);
    seep_metrics_totals_fini(&world.totals);
}

static void no_two_samples_have_the_same_labels(void **state)
{
    struct world world;

    (void)state;
    fill_world(&world);
    /* One process after an exec: the first of the list counts. */
    world.fakes[1].report.pid = 4242;
    world.fakes[1].report.units = 7;
    memcpy(world.fakes[0].sites[1].id, world.fakes[0].sites[0].id,
           sizeof(world.fakes[0].sites[0].id));
    world.fakes[0].sites[1].where = world.fakes[0].sites[0].where;
    char *text = make(&world, SEEP_METRICS_PROMETHEUS);
    assert_int_equal(lines_with(text, "\nseep_units_total{"), 1);
    assert_null(
        strstr(text, "\nseep_units_total{pid=\"4242\",exe=\"python3\"} 7"));
    assert_int_equal(lines_with(text, "site=\"3f9a00112233\","), 2);
    assert_non_null(strstr(text, "site=\"3f9a00112233-1\","));
    free(text);
    seep_metrics_totals_fini(&world.totals);
}

static void a_process_of_elsewhere_has_its_host(void **state)
{
    struct world world;

    (void)state;
    fill_world(&world);
    world.fakes[0].report.state = SEEP_STATE_UNKNOWN;
    char *text = make(&world, SEEP_METRICS_PROMETHEUS);
    assert_non_null(strstr(text, "seep_running{pid=\"4242@node1\""));
    assert_non_null(strstr(text, "seep_running{pid=\"4243\""));
    free(text);
    seep_metrics_totals_fini(&world.totals);
}

static void sites_beyond_the_limit_are_summed(void **state)
{
    struct world world;

    (void)state;
    fill_world(&world);
    world.input.site_limit = 1;
    world.fakes[0].sites[0].space = SEEP_SPACE_HEAP;
    world.fakes[0].sites[0].device = -1;
    char *text = make(&world, SEEP_METRICS_PROMETHEUS);
    assert_int_equal(lines_with(text, "\nseep_site_live_bytes{pid=\"4242\""),
                     3);
    assert_non_null(strstr(text, "space=\"heap\",site=\"other\"} 39845888\n"));
    assert_non_null(
        strstr(text, "space=\"device\",device=\"0\",site=\"other\"} 100\n"));
    free(text);
    seep_metrics_totals_fini(&world.totals);
}

static void a_counter_never_goes_back(void **state)
{
    struct world world;

    (void)state;
    fill_world(&world);
    free(make(&world, SEEP_METRICS_PROMETHEUS));
    seep_metrics_totals_prune(&world.totals);
    world.holdings[1].allocated_bytes = 250;
    world.holdings[1].freed_bytes = 220;
    char *text = make(&world, SEEP_METRICS_PROMETHEUS);
    assert_non_null(strstr(text, "device=\"0\"} 300\n"));
    assert_non_null(strstr(text, "device=\"0\"} 220\n"));
    free(text);
    seep_metrics_totals_fini(&world.totals);
}

static void what_was_told_of_one_that_is_gone_is_forgotten(void **state)
{
    struct world world;

    (void)state;
    fill_world(&world);
    free(make(&world, SEEP_METRICS_PROMETHEUS));
    seep_metrics_totals_prune(&world.totals);
    assert_int_equal(world.totals.count, 2);
    world.input.count = 1;
    free(make(&world, SEEP_METRICS_PROMETHEUS));
    seep_metrics_totals_prune(&world.totals);
    assert_int_equal(world.totals.count, 1);
    seep_metrics_totals_fini(&world.totals);
}

static void what_is_not_known_has_no_sample(void **state)
{
    struct world world;

    (void)state;
    fill_world(&world);
    world.fakes[0].report.verdict.has_growth = false;
    world.fakes[1].report.verdict.has_growth = false;
    world.fakes[0].report.memory.rss.valid = false;
    world.fakes[1].report.memory.rss.valid = false;
    char *text = make(&world, SEEP_METRICS_OPENMETRICS);
    assert_null(strstr(text, "seep_growth_bytes_per_second"));
    assert_null(strstr(text, "seep_resident_bytes"));
    free(text);
    seep_metrics_totals_fini(&world.totals);
}

static void labels_of_the_program_are_those_of_its_info(void **state)
{
    struct world world;

    (void)state;
    fill_world(&world);
    world.fakes[0].report.labels =
        "model=bert,version=13,pid=1,job=2,model=no,bare,=x,a-b=\"";
    char *text = make(&world, SEEP_METRICS_PROMETHEUS);
    assert_non_null(
        strstr(text, ",model=\"bert\",version=\"13\",a_b=\"\\\"\"} 1\n"));
    free(text);
    seep_metrics_totals_fini(&world.totals);
}

static void however_many_labels_there_are_a_few_are_told(void **state)
{
    struct world world;
    char labels[2000] = "";

    (void)state;
    fill_world(&world);
    for (int i = 0; i < 200; i++) {
        snprintf(labels + strlen(labels), 10, "k%d=v,", i);
    }
    world.fakes[0].report.labels = labels;
    char *text = make(&world, SEEP_METRICS_PROMETHEUS);
    assert_non_null(strstr(text, ",k12=\"v\"}"));
    assert_null(strstr(text, ",k13=\"v\""));
    free(text);
    seep_metrics_totals_fini(&world.totals);
}

/* Both of the world leak alike, and run. */
static void a_family_has_one_sum_and_one_forecast(void **state)
{
    struct world world;

    (void)state;
    fill_world(&world);
    fake_report_fill(&world.fakes[0]);
    for (size_t i = 0; i < 2; i++) {
        world.fakes[i].report.state = SEEP_STATE_RUNNING;
    }
    char *text = make(&world, SEEP_METRICS_OPENMETRICS);
    assert_int_equal(lines_with(text, "\nseep_family_growth_bytes_per_second{"
                                      "family=\"python3 serve.py\",id=\""),
                     1);
    assert_non_null(strstr(text, "\"} 1443472\n"));
    assert_int_equal(
        lines_with(text, "\nseep_family_growth_bytes_per_second_lower{"), 1);
    assert_int_equal(
        lines_with(text, "\nseep_family_growth_bytes_per_second_upper{"), 1);
    assert_non_null(strstr(text, ",state=\"running\"} 2\n"));
    assert_non_null(strstr(text, ",state=\"ended\"} 0\n"));
    assert_int_equal(lines_with(text, "\nseep_family_exhaustion_seconds{"), 1);
    assert_int_equal(lines_with(text, "\nseep_family_verdict{"),
                     SEEP_VERDICT_COUNT);
    free(text);
    seep_metrics_totals_fini(&world.totals);
}

static void the_name_of_a_family_is_bounded_and_clean(void **state)
{
    char name[1000];
    const char *const words[] = {"/usr/bin/python3", name};
    struct world world;

    (void)state;
    fill_world(&world);
    memset(name, 'x', sizeof(name));
    memcpy(name, "\"\n\033", 3);
    memcpy(name + 70, "\xc3\xa9\xc3\xa9\xc3\xa9", 6);
    name[sizeof(name) - 1] = '\0';
    world.fakes[1].report.arguments = words;
    char *text = make(&world, SEEP_METRICS_PROMETHEUS);
    const char *at =
        strstr(text, "\nseep_family_verdict{family=\"python3 \\\"\\n\xef");
    assert_non_null(at);
    assert_in_range(strstr(at, "\",id=\"") - at, 80, 120);
    assert_int_equal(lines_with(text, "\nseep_family_processes{"), 4);
    free(text);
    seep_metrics_totals_fini(&world.totals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prometheus_names_each_sample),
        cmocka_unit_test(openmetrics_names_the_family_and_its_unit),
        cmocka_unit_test(hostile_values_are_escaped),
        cmocka_unit_test(long_values_are_cut_between_characters),
        cmocka_unit_test(numbers_are_written_whole),
        cmocka_unit_test(what_is_no_number_is_not_written),
        cmocka_unit_test(names_of_labels_are_made_valid),
        cmocka_unit_test(a_scraper_gets_what_it_asks_for),
        cmocka_unit_test(each_process_has_one_verdict),
        cmocka_unit_test(no_leak_is_what_was_tested),
        cmocka_unit_test(each_device_has_its_own_samples),
        cmocka_unit_test(no_two_samples_have_the_same_labels),
        cmocka_unit_test(a_process_of_elsewhere_has_its_host),
        cmocka_unit_test(sites_beyond_the_limit_are_summed),
        cmocka_unit_test(a_counter_never_goes_back),
        cmocka_unit_test(what_was_told_of_one_that_is_gone_is_forgotten),
        cmocka_unit_test(what_is_not_known_has_no_sample),
        cmocka_unit_test(labels_of_the_program_are_those_of_its_info),
        cmocka_unit_test(however_many_labels_there_are_a_few_are_told),
        cmocka_unit_test(a_family_has_one_sum_and_one_forecast),
        cmocka_unit_test(the_name_of_a_family_is_bounded_and_clean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
