/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/units: numbers for people, and back. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "read/gather.h"
#include "words/units.h"

static char text[SEEP_UNITS_TEXT_BYTES];

static void a_size_has_the_unit_that_reads_best(void **state)
{
    (void)state;
    assert_string_equal(seep_units_bytes(0, text), "0 B");
    assert_string_equal(seep_units_bytes(874, text), "874 B");
    assert_string_equal(seep_units_bytes(14 << 20, text), "14 MiB");
    assert_string_equal(seep_units_bytes(562.4 * 1048576, text), "562 MiB");
    assert_string_equal(seep_units_bytes(1.44 * 1073741824, text), "1.4 GiB");
}

/* 1023.99 KiB rounds to a number that the unit must not print. */
static void a_size_that_rounds_up_takes_the_next_unit(void **state)
{
    (void)state;
    assert_string_equal(seep_units_bytes(1024 * 1023.99, text), "1 MiB");
    assert_string_equal(seep_units_bytes(1024 * 1023.9, text), "1024 KiB");
}

static void a_change_has_its_sign_and_nothing_has_none(void **state)
{
    (void)state;
    assert_string_equal(seep_units_change(43 * 1048576.0, text), "+43.0 MiB");
    assert_string_equal(seep_units_change(-12, text), "-12 B");
    assert_string_equal(seep_units_change(-0.2, text), "0 B");
    assert_string_equal(seep_units_rate(1048576, text), "+60.0 MiB/min");
}

static void an_interval_is_one_unit(void **state)
{
    struct seep_interval interval = {40.1, 39.0, 41.2};

    (void)state;
    assert_string_equal(seep_units_interval(&interval, 1048576, text),
                        "+40.1 ±1.1 MiB");
    assert_string_equal(seep_units_interval(&interval, 10485760, text),
                        "+401 ±11 MiB");
    assert_string_equal(seep_units_bounds(&interval, 1048576, text),
                        "39.0 to 41.2");
}

static void an_open_bound_is_no_number(void **state)
{
    struct seep_interval interval = {40.0, 39.0, INFINITY};

    (void)state;
    assert_string_equal(seep_units_interval(&interval, 1, text), "+40 B");
    assert_string_equal(seep_units_bounds(&interval, 1, text), "at least 39");
    interval.estimate = NAN;
    assert_string_equal(seep_units_interval(&interval, 1, text), "?");
}

static void a_time_may_have_several_units_that_come_down(void **state)
{
    double seconds = 7;

    (void)state;
    assert_int_equal(seep_units_parse_duration("1h30m", &seconds), 0);
    assert_true(seconds == 5400);
    assert_int_equal(seep_units_parse_duration("2 min 5.5 s", &seconds), 0);
    assert_true(seconds == 125.5);
    seconds = 7;
    assert_int_equal(seep_units_parse_duration("30m1h", &seconds), -EINVAL);
    assert_int_equal(seep_units_parse_duration("5m5m", &seconds), -EINVAL);
    assert_int_equal(seep_units_parse_duration("5m5", &seconds), 0);
    assert_true(seconds == 305);
    assert_int_equal(seep_units_parse_duration("1h m", &seconds), -EINVAL);
    assert_int_equal(seep_units_parse_duration("", &seconds), -EINVAL);
    assert_true(seconds == 305);
}

static void assert_when(const char *words, enum seep_span_when when,
                        double seconds, const char *mark)
{
    struct seep_span_time time = {.when = SEEP_SPAN_NONE};

    assert_int_equal(seep_when_parse(words, &time), 0);
    assert_int_equal(time.when, when);
    assert_true(time.seconds == seconds);
    if (mark == NULL) {
        assert_null(time.mark);
    } else {
        assert_string_equal(time.mark, mark);
    }
}

static void a_time_of_a_run_is_told_in_several_ways(void **state)
{
    struct seep_span_time time;

    (void)state;
    assert_when("90s", SEEP_SPAN_TIME, 90, NULL);
    assert_when("1h30m", SEEP_SPAN_TIME, 5400, NULL);
    assert_when("-5m", SEEP_SPAN_BEFORE, 300, NULL);
    assert_when("peak", SEEP_SPAN_PEAK, 0, NULL);
    assert_when("end", SEEP_SPAN_END, 0, NULL);
    assert_when("warm-up done", SEEP_SPAN_MARK, 0, "warm-up done");
    assert_when("mark:peak", SEEP_SPAN_MARK, 0, "peak");
    assert_when("mark:90s", SEEP_SPAN_MARK, 0, "90s");
    assert_int_equal(seep_when_parse("", &time), -EINVAL);
    assert_int_equal(seep_when_parse("mark:", &time), -EINVAL);
}

static void a_duration_has_two_units_at_most(void **state)
{
    (void)state;
    assert_string_equal(seep_units_duration(0.48, text), "480 ms");
    assert_string_equal(seep_units_duration(12.4, text), "12.4 s");
    assert_string_equal(seep_units_duration(842, text), "14 min 02 s");
    assert_string_equal(seep_units_duration(59.97, text), "1 min 00 s");
    assert_string_equal(seep_units_duration(10260, text), "2 h 51 min");
    assert_string_equal(seep_units_duration(3 * 86400.0 + 4 * 3600, text),
                        "3 d 04 h");
    assert_string_equal(seep_units_duration(NAN, text), "?");
}

static void a_count_is_grouped_by_thousands(void **state)
{
    (void)state;
    assert_string_equal(seep_units_count(0, text), "0");
    assert_string_equal(seep_units_count(999, text), "999");
    assert_string_equal(seep_units_count(48112, text), "48,112");
    assert_string_equal(seep_units_count(-123456, text), "-123,456");
}

static void a_share_is_never_zero_when_there_is_some(void **state)
{
    (void)state;
    assert_string_equal(seep_units_share(0, text), "0 %");
    assert_string_equal(seep_units_share(0.0001, text), "< 0.1 %");
    assert_string_equal(seep_units_share(0.003, text), "0.3 %");
    assert_string_equal(seep_units_share(0.97, text), "97 %");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_has_the_unit_that_reads_best),
        cmocka_unit_test(a_size_that_rounds_up_takes_the_next_unit),
        cmocka_unit_test(a_change_has_its_sign_and_nothing_has_none),
        cmocka_unit_test(an_interval_is_one_unit),
        cmocka_unit_test(an_open_bound_is_no_number),
        cmocka_unit_test(a_time_may_have_several_units_that_come_down),
        cmocka_unit_test(a_time_of_a_run_is_told_in_several_ways),
        cmocka_unit_test(a_duration_has_two_units_at_most),
        cmocka_unit_test(a_count_is_grouped_by_thousands),
        cmocka_unit_test(a_share_is_never_zero_when_there_is_some),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
