/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizes and numbers: one grammar for recorder and command. */
#include <errno.h>

#include "seep_test.h"

#include "base/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void sizes_are_read_as_people_write_them(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {
        {"0", 0},
        {"1", 1},
        {"4096", 4096},
        {"7 B", 7},
        {"64K", 64 << 10},
        {"512k", 512 << 10},
        {"1MiB", 1 << 20},
        {"1mib", 1 << 20},
        {"512Mi", 512 << 20},
        {"24 MB", 24000000},
        {"64kB", 64000},
        {"2G", 1ULL << 31},
        {"3T", 3ULL << 40},
        {"7E", 7ULL << 60},
        {"18446744073709551615", UINT64_MAX},
    };
    uint64_t bytes = 77;

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_int_equal(seep_size_parse(sizes[i].text, &bytes), 0);
        assert_true(bytes == sizes[i].bytes);
    }
}

static void a_fraction_is_rounded_down_to_a_whole_byte(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {
        {"1.5M", 3 << 19},
        {".5K", 512},
        {"0.3K", 307}, /* 307.2 */
        {"0.3 MB", 300000},
        {"1.9999999999999999999999999K", 2047},
        {"0.0009765625M", 1024},
        {"2.50G", 5ULL << 29},
        {"15.999999999999999999E", UINT64_MAX - 1},
        {"0.0K", 0},
    };
    uint64_t bytes = 77;

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_int_equal(seep_size_parse(sizes[i].text, &bytes), 0);
        assert_true(bytes == sizes[i].bytes);
    }
}

static void what_is_no_size_is_refused_and_nothing_is_changed(void **state)
{
    static const char *const wrong[] = {
        "",      "K",     ".",     ".K",      "B",     "-1",  "+1",
        " 1",    "1x",    "0x10",  "1e9",     "nan",   "inf", "1KK",
        "1KiBB", "1 MBs", "1.2.3", "1.K",     "1.",    "1.5", "1.5B",
        "1,5M",  "1M5",   "1 K ",  "0.0001K", "exact",
    };
    static const char *const large[] = {
        "18446744073709551616",
        "99999999999999999999",
        "17179869184G",
        "99999E",
        "16E",
    };
    uint64_t bytes = 77;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (seep_size_parse(wrong[i], &bytes) != -EINVAL) {
            fail_msg("%s is taken", wrong[i]);
        }
    }
    for (size_t i = 0; i < COUNT(large); i++) {
        assert_int_equal(seep_size_parse(large[i], &bytes), -ERANGE);
    }
    assert_int_equal(seep_size_parse("99999999999999999999x", &bytes), -EINVAL);
    assert_int_equal(bytes, 77);
}

static void a_number_is_digits_alone(void **state)
{
    static const char *const wrong[] = {"",   "-1",  "+1",  " 1", "1 ",
                                        "1K", "0x1", "1.0", "ten"};
    uint64_t number = 77;

    (void)state;
    assert_int_equal(seep_size_parse_number("0", &number), 0);
    assert_int_equal(number, 0);
    assert_int_equal(seep_size_parse_number("18446744073709551615", &number),
                     0);
    assert_true(number == UINT64_MAX);
    number = 77;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(seep_size_parse_number(wrong[i], &number), -EINVAL);
    }
    assert_int_equal(seep_size_parse_number("18446744073709551616", &number),
                     -ERANGE);
    assert_int_equal(number, 77);
}

static void a_mean_is_the_power_of_two_that_is_not_above(void **state)
{
    static const struct {
        uint64_t bytes;
        unsigned log2;
    } means[] = {{1, 0},       {2, 1},       {3, 1},        {524288, 19},
                 {524289, 19}, {524287, 18}, {3 << 19, 20}, {1ULL << 40, 40}};
    unsigned log2 = 77;

    (void)state;
    assert_int_equal(seep_size_mean_log2(0, &log2), -ERANGE);
    assert_int_equal(seep_size_mean_log2(1ULL << 41, &log2), -ERANGE);
    assert_int_equal(log2, 77);
    for (size_t i = 0; i < COUNT(means); i++) {
        assert_int_equal(seep_size_mean_log2(means[i].bytes, &log2), 0);
        assert_int_equal(log2, means[i].log2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_as_people_write_them),
        cmocka_unit_test(a_fraction_is_rounded_down_to_a_whole_byte),
        cmocka_unit_test(what_is_no_size_is_refused_and_nothing_is_changed),
        cmocka_unit_test(a_number_is_digits_alone),
        cmocka_unit_test(a_mean_is_the_power_of_two_that_is_not_above),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
