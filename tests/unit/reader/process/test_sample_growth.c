/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which mappings grew, whatever the kernel made of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/process/sample.h"
#include "seep_test.h"

#define MIB ((uint64_t)1 << 20)
#define BASE ((uint64_t)0x7f0000000000)
#define ENTRIES 16

/* Looks a second apart, each with what put() was told of it. */
struct fixture {
    struct seep_external_samples samples;
    struct seep_report_mapping grown[ENTRIES];
    size_t count;
};

static int open_fixture(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state == NULL ? -1 : 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;

    seep_external_samples_fini(&fixture->samples);
    free(fixture);
    return 0;
}

static void next_look(struct fixture *fixture)
{
    struct seep_external_sample sample = {.t_s =
                                              (double)fixture->samples.count};

    assert_int_equal(seep_external_samples_add(&fixture->samples, &sample), 0);
}

/* In MiB from BASE; the next ones of a look lie behind. */
static void put(struct fixture *fixture, uint64_t start, uint64_t end,
                uint64_t rss, const char *name)
{
    struct seep_external_sample *sample =
        &fixture->samples.samples[fixture->samples.count - 1];

    sample->mappings = realloc(sample->mappings, (sample->mapping_count + 1) *
                                                     sizeof(*sample->mappings));
    sample->mappings[sample->mapping_count++] = (struct seep_external_mapping){
        .start = BASE + start * MIB,
        .end = BASE + end * MIB,
        .rss_bytes = rss * MIB,
        .anonymous_bytes = rss * MIB,
        .name = strdup(name),
    };
}

struct tracked {
    uint64_t start; /* MiB from BASE */
    uint64_t end;
};

static bool is_tracked(void *context, uint64_t start, uint64_t end)
{
    for (const struct tracked *at = context; at->end != 0; at++) {
        if (start < BASE + at->end * MIB && end > BASE + at->start * MIB) {
            return true;
        }
    }
    return false;
}

static void grow(struct fixture *fixture, struct tracked *tracked)
{
    assert_int_equal(seep_external_growth(&fixture->samples, 0,
                                          tracked == NULL ? NULL : is_tracked,
                                          tracked, fixture->grown, ENTRIES,
                                          &fixture->count),
                     0);
}

static void assert_bytes(const struct seep_report_mapping *mapping,
                         double first_mib, double last_mib)
{
    assert_true(mapping->first_bytes == first_mib * (double)MIB);
    assert_true(mapping->last_bytes == last_mib * (double)MIB);
}

static void a_mapping_that_grows_at_either_end_is_one(void **state)
{
    struct fixture *fixture = *state;

    next_look(fixture);
    put(fixture, 100, 110, 10, "");
    next_look(fixture);
    put(fixture, 90, 110, 20, "");
    next_look(fixture);
    put(fixture, 90, 120, 30, "");

    grow(fixture, NULL);

    assert_int_equal(fixture->count, 1);
    assert_bytes(&fixture->grown[0], 10, 30);
    assert_int_equal(fixture->grown[0].start, BASE + 90 * MIB);
    assert_int_equal(fixture->grown[0].end, BASE + 120 * MIB);
    assert_true(fixture->grown[0].slope_bytes_per_s == 10.0 * (double)MIB);
    assert_false(fixture->grown[0].tracked);
}

static void one_that_is_split_has_not_grown(void **state)
{
    struct fixture *fixture = *state;

    next_look(fixture);
    put(fixture, 0, 100, 10, "");
    next_look(fixture);
    put(fixture, 0, 10, 10, "");
    put(fixture, 10, 99, 0, "");

    grow(fixture, NULL);

    assert_int_equal(fixture->count, 0);
}

static void two_that_are_merged_have_not_grown(void **state)
{
    struct fixture *fixture = *state;

    next_look(fixture);
    put(fixture, 0, 10, 10, "");
    put(fixture, 10, 50, 30, "");
    next_look(fixture);
    put(fixture, 0, 50, 40, "");

    grow(fixture, NULL);

    assert_int_equal(fixture->count, 0);
}

/* Beside each other, and never one: the new one may be the program's own. */
static void neighbours_are_told_apart(void **state)
{
    struct fixture *fixture = *state;
    struct tracked tracked[] = {{10, 20}, {0, 0}};

    next_look(fixture);
    put(fixture, 10, 20, 1, "");
    next_look(fixture);
    put(fixture, 10, 20, 9, "");
    put(fixture, 20, 30, 4, "");

    grow(fixture, tracked);

    assert_int_equal(fixture->count, 2);
    assert_bytes(&fixture->grown[0], 1, 9);
    assert_true(fixture->grown[0].tracked);
    assert_bytes(&fixture->grown[1], 0, 4);
    assert_false(fixture->grown[1].tracked);
}

static void names_are_told_apart(void **state)
{
    struct fixture *fixture = *state;

    next_look(fixture);
    put(fixture, 0, 10, 1, "/model");
    next_look(fixture);
    put(fixture, 0, 5, 5, "");
    put(fixture, 5, 10, 4, "/model");

    grow(fixture, NULL);

    assert_int_equal(fixture->count, 2);
    assert_bytes(&fixture->grown[0], 0, 5);
    assert_string_equal(fixture->grown[0].name, "");
    assert_bytes(&fixture->grown[1], 1, 4);
    assert_string_equal(fixture->grown[1].name, "/model");
}

static void many_new_ones_are_one_line(void **state)
{
    struct fixture *fixture = *state;

    next_look(fixture);
    put(fixture, 5000, 5001, 1, "/program");
    for (uint64_t count = 50; count <= 200; count += 50) {
        next_look(fixture);
        for (uint64_t i = 0; i < count; i++) {
            put(fixture, i * 2, i * 2 + 1, 1, "");
        }
        put(fixture, 5000, 5001, 1, "/program");
    }

    grow(fixture, NULL);

    assert_int_equal(fixture->count, 1);
    assert_bytes(&fixture->grown[0], 0, 200);
    assert_int_equal(fixture->grown[0].start, BASE);
    assert_int_equal(fixture->grown[0].end, BASE + 399 * MIB);
    assert_true(fixture->grown[0].slope_bytes_per_s == 50.0 * (double)MIB);
}

static void new_ones_far_apart_are_two_lines(void **state)
{
    struct fixture *fixture = *state;

    next_look(fixture);
    put(fixture, 5000, 5001, 1, "/program");
    next_look(fixture);
    put(fixture, 0, 1, 1, "");
    put(fixture, 66, 68, 2, "");
    put(fixture, 5000, 5001, 1, "/program");

    grow(fixture, NULL);

    assert_int_equal(fixture->count, 2);
    assert_bytes(&fixture->grown[0], 0, 2);
    assert_bytes(&fixture->grown[1], 0, 1);
}

static void new_ones_that_are_tracked_are_told_apart(void **state)
{
    struct fixture *fixture = *state;
    struct tracked tracked[] = {{2, 3}, {0, 0}};

    next_look(fixture);
    put(fixture, 5000, 5001, 1, "/program");
    next_look(fixture);
    put(fixture, 0, 1, 1, "");
    put(fixture, 2, 4, 2, "");
    put(fixture, 6, 7, 1, "");
    put(fixture, 9, 10, 1, "");
    put(fixture, 5000, 5001, 1, "/program");

    grow(fixture, tracked);

    assert_int_equal(fixture->count, 2);
    assert_bytes(&fixture->grown[0], 0, 3);
    assert_false(fixture->grown[0].tracked);
    assert_bytes(&fixture->grown[1], 0, 2);
    assert_true(fixture->grown[1].tracked);
}

/* The kernel merges the program's own mapping with malloc's beside it. */
static void what_is_new_in_a_mapping_decides(void **state)
{
    struct fixture *fixture = *state;
    struct tracked tracked[] = {{100, 110}, {0, 0}};

    next_look(fixture);
    put(fixture, 100, 110, 10, "");
    next_look(fixture);
    put(fixture, 10, 110, 100, "");

    grow(fixture, tracked);

    assert_int_equal(fixture->count, 1);
    assert_false(fixture->grown[0].tracked);
}

static void an_arena_that_grows_is_an_allocators(void **state)
{
    struct fixture *fixture = *state;
    struct tracked tracked[] = {{1, 2}, {30, 31}, {44, 45}, {60, 61}, {0, 0}};

    next_look(fixture);
    put(fixture, 0, 10, 10, "");
    next_look(fixture);
    put(fixture, 0, 64, 60, "");

    grow(fixture, tracked);

    assert_int_equal(fixture->count, 1);
    assert_true(fixture->grown[0].tracked);
}

/* 1 GiB is mapped at once and touched as it is needed. */
static void what_fills_up_in_place_is_judged_as_a_whole(void **state)
{
    struct fixture *fixture = *state;
    struct tracked tracked[] = {{1, 2}, {0, 0}};

    next_look(fixture);
    put(fixture, 0, 1024, 1, "");
    next_look(fixture);
    put(fixture, 0, 1024, 90, "");

    grow(fixture, tracked);

    assert_int_equal(fixture->count, 1);
    assert_true(fixture->grown[0].tracked);
}

static void a_stray_block_tracks_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct tracked tracked[] = {{500, 501}, {0, 0}};

    next_look(fixture);
    put(fixture, 5000, 5001, 1, "/program");
    next_look(fixture);
    put(fixture, 0, 1024, 1024, "");

    grow(fixture, tracked);

    assert_int_equal(fixture->count, 1);
    assert_false(fixture->grown[0].tracked);
}

static void the_recording_itself_is_no_growth(void **state)
{
    struct fixture *fixture = *state;

    next_look(fixture);
    put(fixture, 0, 256, 1, SEEP_EXTERNAL_OWN);
    next_look(fixture);
    put(fixture, 0, 256, 200, SEEP_EXTERNAL_OWN);

    grow(fixture, NULL);

    assert_int_equal(fixture->count, 0);
}

static void the_most_grown_come_first_and_no_more_than_asked(void **state)
{
    struct fixture *fixture = *state;
    char name[16];

    for (uint64_t sample = 1; sample <= 2; sample++) {
        next_look(fixture);
        for (uint64_t i = 0; i < 40; i++) {
            snprintf(name, sizeof(name), "/file%d", (int)i);
            put(fixture, i * 200, i * 200 + 100, sample * (1 + i * 7 % 40),
                name);
        }
    }

    grow(fixture, NULL);

    assert_int_equal(fixture->count, ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++) {
        assert_bytes(&fixture->grown[i], 40 - (double)i, 80 - 2 * (double)i);
    }
}

static void looks_before_the_time_do_not_count(void **state)
{
    struct fixture *fixture = *state;

    next_look(fixture);
    put(fixture, 0, 10, 1, "");
    next_look(fixture);
    put(fixture, 0, 10, 9, "");
    next_look(fixture);
    put(fixture, 0, 10, 9, "");

    assert_int_equal(seep_external_growth(&fixture->samples, 1, NULL, NULL,
                                          fixture->grown, ENTRIES,
                                          &fixture->count),
                     0);
    assert_int_equal(fixture->count, 0);
    grow(fixture, NULL);
    assert_int_equal(fixture->count, 1);
}

/* Who may not see the mappings has looks without any. */
static void one_look_says_nothing(void **state)
{
    struct fixture *fixture = *state;

    grow(fixture, NULL);
    assert_int_equal(fixture->count, 0);
    next_look(fixture);
    next_look(fixture);
    put(fixture, 0, 10, 10, "");
    next_look(fixture);
    grow(fixture, NULL);
    assert_int_equal(fixture->count, 0);
}

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (*seed >> 33) % limit;
}

/* Random maps and unmaps of one page size: what all grew by is what the listed
 * ones and those that shrank sum up to. */
static void nothing_is_counted_twice(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 200; seed++) {
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        double total = 0;
        double listed = 0;
        uint64_t random = seed;

        for (int sample = 0; sample < 6; sample++) {
            uint64_t at = 0;
            next_look(fixture);
            for (int i = 0; i < 12; i++) {
                uint64_t start = at + random_below(&random, 4);
                uint64_t end = start + 1 + random_below(&random, 20);
                uint64_t rss = 1 + random_below(&random, end - start);
                put(fixture, start, end, sample == 0 ? 0 : rss, "");
                at = end;
                total += sample == 5 ? (double)(rss * MIB) : 0;
            }
        }
        grow(fixture, NULL);
        for (size_t i = 0; i < fixture->count; i++) {
            listed += fixture->grown[i].last_bytes;
        }
        assert_true(listed == total);
        seep_external_samples_fini(&fixture->samples);
        free(fixture);
    }
}

#define TEST(name) \
    cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

/* A model that is read through a mapping while the program maps memory. */
static void what_is_read_of_a_file_grows_nothing(void **state)
{
    struct fixture *fixture = *state;

    for (uint64_t i = 0; i < 3; i++) {
        next_look(fixture);
        put(fixture, 0, 100, 10 + 40 * i, "/models/bert.bin");
        fixture->samples.samples[i].mappings[0].anonymous_bytes = 0;
        put(fixture, 200, 300, 5 + 5 * i, "");
    }

    grow(fixture, NULL);

    assert_int_equal(fixture->count, 1);
    assert_bytes(&fixture->grown[0], 5, 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_mapping_that_grows_at_either_end_is_one),
        TEST(one_that_is_split_has_not_grown),
        TEST(two_that_are_merged_have_not_grown),
        TEST(neighbours_are_told_apart),
        TEST(names_are_told_apart),
        TEST(many_new_ones_are_one_line),
        TEST(new_ones_far_apart_are_two_lines),
        TEST(new_ones_that_are_tracked_are_told_apart),
        TEST(what_is_new_in_a_mapping_decides),
        TEST(an_arena_that_grows_is_an_allocators),
        TEST(what_fills_up_in_place_is_judged_as_a_whole),
        TEST(a_stray_block_tracks_nothing),
        TEST(the_recording_itself_is_no_growth),
        TEST(the_most_grown_come_first_and_no_more_than_asked),
        TEST(looks_before_the_time_do_not_count),
        TEST(what_is_read_of_a_file_grows_nothing),
        TEST(one_look_says_nothing),
        cmocka_unit_test(nothing_is_counted_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
