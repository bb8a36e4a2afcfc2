/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/spark: a course in time as a few characters. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/page.h"
#include "text/table.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void assert_spark(char *text, const char *wanted)
{
    assert_string_equal(text, wanted);
    free(text);
}

static void values_go_from_the_lowest_bar_to_the_highest(void **state)
{
    const double values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

    (void)state;
    assert_spark(seep_spark(values, COUNT_OF(values)), "▁▁▂▃▄▅▆▇█");
}

static void what_is_no_number_is_a_blank(void **state)
{
    const double values[] = {NAN, INFINITY, -1, 4};

    (void)state;
    assert_spark(seep_spark(values, COUNT_OF(values)), "   █");
}

static void of_nothing_there_is_nothing(void **state)
{
    const double zeros[] = {0, 0};

    (void)state;
    assert_spark(seep_spark(NULL, 0), "");
    assert_spark(seep_spark(zeros, 2), "▁▁");
}

static void a_gap_in_a_series_is_as_what_was_before_it(void **state)
{
    const struct seep_report_point points[] = {
        {.start_s = 20, .width_s = 10, .live_bytes = 400},
        {.start_s = 60, .width_s = 10, .live_bytes = 800},
    };
    const struct seep_report_site site = {.series = points, .point_count = 2};

    (void)state;
    assert_spark(seep_spark_site(&site, 80, 8), "  ▄▄▄▄██");
}

static void of_many_points_in_a_cell_the_last_is_shown(void **state)
{
    const struct seep_report_point points[] = {
        {.start_s = 0, .width_s = 1, .live_bytes = 900},
        {.start_s = 1, .width_s = 1, .live_bytes = 100},
        {.start_s = 50, .width_s = 1, .live_bytes = 800},
    };
    const struct seep_report_site site = {.series = points, .point_count = 3};

    (void)state;
    assert_spark(seep_spark_site(&site, 100, 2), "▁█");
}

static void a_bucket_that_goes_on_after_now_is_in_the_last_cell(void **state)
{
    const struct seep_report_point points[] = {
        {.start_s = 0, .width_s = 64, .live_bytes = 5},
    };
    const struct seep_report_site site = {.series = points, .point_count = 1};

    (void)state;
    assert_spark(seep_spark_site(&site, 10, 4), "   █");
}

static void odd_times_are_left_out(void **state)
{
    const struct seep_report_point points[] = {
        {.start_s = NAN, .width_s = 1, .live_bytes = 5},
        {.start_s = -1e300, .width_s = 1, .live_bytes = 5},
        {.start_s = 1e300, .width_s = 1, .live_bytes = 5},
    };
    const struct seep_report_site site = {.series = points, .point_count = 3};

    (void)state;
    assert_spark(seep_spark_site(&site, 10, 3), "  █");
    assert_spark(seep_spark_site(&site, 0, 3), "   ");
    assert_spark(seep_spark_site(&site, NAN, 3), "   ");
    assert_spark(seep_spark_site(&site, 10, 0), "");
}

static void a_process_is_shown_by_what_it_held(void **state)
{
    const struct seep_report_moment moments[] = {
        {.t_s = 0, .held_bytes = 100},
        {.t_s = 4, .held_bytes = -1}, /* not known */
        {.t_s = 9, .held_bytes = 800},
    };
    const struct seep_report report = {
        .duration_s = 10, .memory = {.moments = moments, .moment_count = 3}};

    (void)state;
    assert_spark(seep_spark_held(&report, 4), "▁▁▁█");
}

static void a_terminal_of_ascii_gets_other_bars(void **state)
{
    const double values[] = {1, 2, 3, 4, 5, 6, 7, 8};
    char *text = seep_spark(values, COUNT_OF(values));

    (void)state;
    assert_int_equal(setenv("LC_ALL", "C", 1), 0);
    seep_clean_follow_locale();
    char *clean = seep_clean_for_terminal(text);
    assert_int_equal(setenv("LC_ALL", "C.UTF-8", 1), 0);
    seep_clean_follow_locale();
    assert_spark(clean, "_.-~=+*#");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_from_the_lowest_bar_to_the_highest),
        cmocka_unit_test(what_is_no_number_is_a_blank),
        cmocka_unit_test(of_nothing_there_is_nothing),
        cmocka_unit_test(a_gap_in_a_series_is_as_what_was_before_it),
        cmocka_unit_test(of_many_points_in_a_cell_the_last_is_shown),
        cmocka_unit_test(a_bucket_that_goes_on_after_now_is_in_the_last_cell),
        cmocka_unit_test(odd_times_are_left_out),
        cmocka_unit_test(a_process_is_shown_by_what_it_held),
        cmocka_unit_test(a_terminal_of_ascii_gets_other_bars),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
