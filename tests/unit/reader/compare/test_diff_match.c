/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which call site of one run is which of another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/compare/diff.h"

#define MOST 5000

static struct seep_report_site before[MOST], now[MOST];
static size_t match[MOST];

static struct seep_report_site site(const char *where, enum seep_class class)
{
    struct seep_report_site made = {
        .where = where, .class = class, .has_growth = true, .device = -1};

    /* Of one line one id, as ids of lines are. */
    snprintf(made.id, sizeof(made.id), "%.18s", where);
    return made;
}

static void set(struct seep_report_site *sites, const char *const *wheres,
                size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sites[i] = site(wheres[i], SEEP_CLASS_LEAK);
    }
}

static void run(size_t before_count, size_t now_count)
{
    static const struct seep_report_site *left[MOST], *right[MOST];

    for (size_t i = 0; i < before_count; i++) {
        left[i] = &before[i];
    }
    for (size_t i = 0; i < now_count; i++) {
        right[i] = &now[i];
    }
    assert_int_equal(
        seep_diff_match(left, before_count, right, now_count, match), 0);
}

static void a_site_is_known_again(void **state)
{
    static const char *const wheres[] = {"a.py:1 f", "a.py:2 f", "b.py:1 f",
                                         "libx g", "libx+0x40"};
    static const size_t order[] = {3, 0, 4, 2, 1};

    (void)state;
    set(before, wheres, 5);
    for (size_t i = 0; i < 5; i++) {
        now[i] = before[order[i]];
    }
    run(5, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(match[i], order[i]);
    }
}

static void space_and_device_are_part_of_a_site(void **state)
{
    static const char *const wheres[] = {"a.py:1 f", "a.py:1 f"};

    (void)state;
    set(before, wheres, 1);
    set(now, wheres, 2);
    now[0].space = SEEP_SPACE_PINNED;
    now[1].device = 1;
    run(1, 2);
    assert_int_equal(match[0], SEEP_DIFF_NONE);
    assert_int_equal(match[1], SEEP_DIFF_NONE);
}

/* The id of line 20 is there again, and is another line's. */
static void lines_that_moved_onto_others_are_no_others(void **state)
{
    static const char *const old[] = {"a.py:10 f", "a.py:20 f", "a.py:33 f"};
    static const char *const new[] = {"a.py:20 f", "a.py:30 f", "a.py:43 f"};

    (void)state;
    set(before, old, 3);
    set(now, new, 3);
    run(3, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(match[i], i);
    }
}

static void a_leak_beside_the_moved_one_is_another(void **state)
{
    static const char *const old[] = {"a.py:10 f", "a.py:14 f"};
    static const char *const new[] = {"a.py:20 f", "a.py:22 f", "a.py:24 f"};

    (void)state;
    set(before, old, 2);
    set(now, new, 3);
    run(2, 3);
    assert_int_equal(match[0], 0);
    assert_int_equal(match[1], SEEP_DIFF_NONE);
    assert_int_equal(match[2], 1);
}

/* What is steady, and near, does not stand in for what grew. */
static void what_grows_is_what_grew(void **state)
{
    static const char *const old[] = {"a.py:12 f", "a.py:14 f"};
    static const char *const new[] = {"a.py:8 f"};

    (void)state;
    set(before, old, 2);
    set(now, new, 1);
    before[0].class = SEEP_CLASS_STEADY;
    run(2, 1);
    assert_int_equal(match[0], 1);
}

static const struct seep_report_frame around[] = {
    {.function = "malloc", .file = "", .module = "/lib/libc.so.6"},
    {.function = "", .file = "", .module = "/opt/serve"},
    {.function = "serve+0x31", .file = "", .module = "/opt/serve"},
    {.function = "main", .file = "", .module = "/opt/serve"},
};

static const struct seep_report_frame *list_around[] = {&around[0], &around[1],
                                                        &around[2], &around[3]};

static void set_frames(struct seep_report_site *at)
{
    at->frames = list_around;
    at->frame_count = 4;
    at->where_frame = 1;
}

static void a_function_that_was_renamed_is_known_by_those_around(void **state)
{
    static const char *const old[] = {"a.c:10 remember"};
    static const char *const new[] = {"a.c:15 memorise", "a.c:99 other"};

    (void)state;
    set(before, old, 1);
    set(now, new, 2);
    run(1, 2);
    assert_int_equal(match[0], SEEP_DIFF_NONE);
    set_frames(&before[0]);
    set_frames(&now[0]);
    run(1, 2);
    assert_int_equal(match[0], 0);
    assert_int_equal(match[1], SEEP_DIFF_NONE);
    /* Two have them: either could be it. */
    set_frames(&now[1]);
    run(1, 2);
    assert_int_equal(match[0], SEEP_DIFF_NONE);
}

/* Each build has other offsets: stacks are told by the names in them. */
static void stripped_code_is_known_by_its_stack(void **state)
{
    static const struct seep_report_frame others[] = {
        {.function = "calloc", .file = "", .module = "/lib/libc.so.6"},
        {.function = "", .file = "", .module = "/opt/serve"},
        {.function = "", .file = "", .module = "/opt/serve"},
        {.function = "main+0x7", .file = "", .module = "/opt/serve"},
    };
    const struct seep_report_frame *list[] = {&others[0], &others[1],
                                              &others[2], &others[3]};
    static const char *const old[] = {"serve+0x1140", "serve+0x2200"};
    static const char *const new[] = {"serve+0x2310", "serve+0x1190"};

    (void)state;
    set(before, old, 2);
    set(now, new, 2);
    set_frames(&before[0]);
    set_frames(&now[1]);
    set_frames(&before[1]);
    before[1].frames = list;
    now[0] = before[1];
    now[0].where = new[0];
    strcpy(now[0].id, "y");
    run(2, 2);
    assert_int_equal(match[0], 1);
    assert_int_equal(match[1], 0);
}

/* Nothing else tells them apart. */
static void what_asks_for_as_much_is_the_same(void **state)
{
    static const char *const old[] = {"serve+0x1140"};
    static const char *const new[] = {"serve+0x2310", "serve+0x2390"};

    (void)state;
    set(before, old, 1);
    set(now, new, 2);
    before[0].allocated_bytes = 1000;
    before[0].allocated_count = 10;
    now[0].allocated_bytes = 400000;
    now[0].allocated_count = 2000;
    now[1].allocated_bytes = 210000;
    now[1].allocated_count = 2000;
    run(1, 2);
    assert_int_equal(match[0], SEEP_DIFF_NONE);
    assert_int_equal(match[1], 0);
}

static void too_many_of_a_function_are_known_by_id(void **state)
{
    static char wheres[MOST][24];

    (void)state;
    for (size_t i = 0; i < MOST; i++) {
        snprintf(wheres[i], sizeof(wheres[i]), "a.py:%zu f", i + 1);
        before[i] = now[MOST - 1 - i] = site(wheres[i], SEEP_CLASS_LEAK);
    }
    run(MOST, MOST);
    for (size_t i = 0; i < MOST; i++) {
        assert_int_equal(match[i], MOST - 1 - i);
    }
}

static void hostile_names_are_only_names(void **state)
{
    static const char *const odd[] = {
        "",        ":",   ":9",         "a:99999999999999999999 f",
        "a:b:7 f", "+0x", "x +0x+0x1 ", " ",
        "a.py:0 ",
    };
    size_t count = sizeof(odd) / sizeof(odd[0]);

    (void)state;
    set(before, odd, count);
    set(now, odd, count);
    before[0].where = now[0].where = NULL;
    run(count, count);
    run(0, count);
    assert_int_equal(match[0], SEEP_DIFF_NONE);
    run(count, 0);
}

/* A database of many versions knows it by that. */
static void a_function_is_the_same_at_whatever_line_and_device(void **state)
{
    struct seep_report_site first = site("a.py:10 f", SEEP_CLASS_LEAK);
    struct seep_report_site same = site("a.py:31 f", SEEP_CLASS_STEADY);
    struct seep_report_site other = site("a.py:10 g", SEEP_CLASS_LEAK);
    struct seep_report_site pinned = first;
    struct seep_report_site native = site("libx+0x40", SEEP_CLASS_LEAK);
    struct seep_report_site build = site("libx+0x80", SEEP_CLASS_LEAK);

    (void)state;
    same.device = 3;
    pinned.space = SEEP_SPACE_PINNED;
    assert_int_equal(seep_diff_function(&first), seep_diff_function(&same));
    assert_int_equal(seep_diff_function(&native), seep_diff_function(&build));
    assert_int_not_equal(seep_diff_function(&first),
                         seep_diff_function(&other));
    assert_int_not_equal(seep_diff_function(&first),
                         seep_diff_function(&pinned));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site_is_known_again),
        cmocka_unit_test(space_and_device_are_part_of_a_site),
        cmocka_unit_test(lines_that_moved_onto_others_are_no_others),
        cmocka_unit_test(a_leak_beside_the_moved_one_is_another),
        cmocka_unit_test(what_grows_is_what_grew),
        cmocka_unit_test(a_function_that_was_renamed_is_known_by_those_around),
        cmocka_unit_test(stripped_code_is_known_by_its_stack),
        cmocka_unit_test(what_asks_for_as_much_is_the_same),
        cmocka_unit_test(too_many_of_a_function_are_known_by_id),
        cmocka_unit_test(hostile_names_are_only_names),
        cmocka_unit_test(a_function_is_the_same_at_whatever_line_and_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
