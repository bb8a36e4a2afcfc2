/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Symbols of a file as the wall answers them, and answers that are none.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "reader/symbols/tables.h"

#define MOST_BYTES (UINT64_C(64) << 20)
#define THIS "/proc/self/exe"

int a_global[5];
_Thread_local int a_thread_local[3];

static const struct seep_wall_request this_file = {.path = THIS,
                                                   .most_bytes = MOST_BYTES};

/* What is answered: the counts, two of data and one of functions, texts. */
struct planted {
    uint64_t counts[SEEP_SYMBOL_KINDS];
    uint64_t text_bytes;
    struct seep_symbol_entry entries[3];
    char texts[8];
};

static const struct planted good = {
    {2, 1, 0}, 8, {{16, 8, 0}, {32, 8, 2}, {8, 4, 4}}, "a\0b\0c\0d"};

static struct planted planted;
static uint64_t planted_bytes;

static int answer_planted(void *context, const char *path, uint32_t what,
                          uint64_t most, void **ret_bytes, uint64_t *ret_count)
{
    (void)context;
    (void)path;
    (void)what;
    (void)most;
    *ret_bytes = malloc(sizeof(planted));
    if (*ret_bytes == NULL) {
        return -ENOMEM;
    }
    memcpy(*ret_bytes, &planted, sizeof(planted));
    *ret_count = planted_bytes;
    return 0;
}

static int ask_planted(void)
{
    struct seep_wall wall = {.read = answer_planted};
    struct seep_wall_spent spent = {0};
    struct seep_symbol_table table = {0};
    int result = seep_symbol_table_ask(&wall, &this_file, &spent, &table);

    if (result == 0) {
        assert_int_equal(table.counts[SEEP_SYMBOL_DATA], 2);
        assert_string_equal(
            table.texts + table.entries[SEEP_SYMBOL_DATA][1].name, "b");
        assert_string_equal(
            table.texts + table.entries[SEEP_SYMBOL_FUNCTION][0].name, "c");
    }
    seep_symbol_table_fini(&table);
    seep_wall_fini(&wall);
    return result;
}

static void begin_planted(void)
{
    planted = good;
    planted_bytes = sizeof(planted);
}

static void an_answer_that_is_whole_is_taken(void **state)
{
    (void)state;
    begin_planted();
    assert_int_equal(ask_planted(), 0);
}

static void symbols_out_of_order_are_refused(void **state)
{
    (void)state;
    begin_planted();
    planted.entries[1].address = 15;
    assert_int_equal(ask_planted(), -EBADMSG);
}

static void a_name_behind_the_texts_is_refused(void **state)
{
    (void)state;
    begin_planted();
    planted.entries[2].name = 8;
    assert_int_equal(ask_planted(), -EBADMSG);
}

static void texts_without_an_end_are_refused(void **state)
{
    (void)state;
    begin_planted();
    planted.texts[7] = 'x';
    assert_int_equal(ask_planted(), -EBADMSG);
}

static void counts_that_are_not_there_are_refused(void **state)
{
    static const uint64_t counts[] = {0, 3, 4, UINT64_MAX / 24 + 2, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        begin_planted();
        planted.counts[SEEP_SYMBOL_THREAD_LOCAL] = counts[i];
        assert_int_equal(ask_planted(), counts[i] == 0 ? 0 : -EBADMSG);
    }
    begin_planted();
    planted.text_bytes = UINT64_MAX;
    assert_int_equal(ask_planted(), -EBADMSG);
    begin_planted();
    planted_bytes = 31; /* less than the counts */
    assert_int_equal(ask_planted(), -EBADMSG);
    begin_planted();
    planted_bytes = sizeof(planted) - 8; /* text that is an entry's */
    assert_int_equal(ask_planted(), -EBADMSG);
}

/* A sanitizer makes what it watches larger. */
static bool has(const struct seep_symbol_table *table,
                enum seep_symbol_kind kind, const char *name, uint64_t bytes)
{
    for (size_t i = 0; i < table->counts[kind]; i++) {
        const struct seep_symbol_entry *entry = &table->entries[kind][i];

        if (strcmp(table->texts + entry->name, name) == 0 &&
            entry->bytes >= bytes) {
            return true;
        }
    }
    return false;
}

static void symbols_of_each_kind_are_read(void **state)
{
    struct seep_wall wall = seep_symbol_tables_wall();
    struct seep_wall_spent spent = {0};
    struct seep_symbol_table table;

    (void)state;
    a_thread_local[0] = a_global[0];
    assert_int_equal(seep_symbol_table_ask(&wall, &this_file, &spent, &table),
                     0);
    assert_true(has(&table, SEEP_SYMBOL_DATA, "a_global", sizeof(a_global)));
    assert_true(has(&table, SEEP_SYMBOL_FUNCTION, "main", 0));
    assert_true(has(&table, SEEP_SYMBOL_THREAD_LOCAL, "a_thread_local",
                    sizeof(a_thread_local)));
    assert_false(has(&table, SEEP_SYMBOL_DATA, "main", 0));
    assert_true(wall.child > 0);
    seep_symbol_table_fini(&table);
    seep_wall_fini(&wall);
}

static void segments_say_where_a_file_lies(void **state)
{
    struct seep_wall wall = seep_symbol_tables_wall();
    struct seep_wall_spent spent = {0};
    struct seep_symbol_segments segments;

    (void)state;
    assert_int_equal(
        seep_symbol_segments_ask(&wall, &this_file, &spent, &segments), 0);
    assert_true(segments.lowest < segments.end);
    assert_true(segments.tls_bytes >= sizeof(a_thread_local));
    seep_wall_fini(&wall);
}

static void symbols_that_would_take_too_much_are_not_read(void **state)
{
    struct seep_wall wall = seep_symbol_tables_wall();
    struct seep_wall_request request = {.path = THIS, .most_bytes = 1000};
    struct seep_wall_spent spent = {0};
    struct seep_symbol_table table;

    (void)state;
    assert_int_equal(seep_symbol_table_ask(&wall, &request, &spent, &table), 0);
    for (int kind = 0; kind < SEEP_SYMBOL_KINDS; kind++) {
        assert_int_equal(table.counts[kind], 0);
    }
    seep_symbol_table_fini(&table);
    seep_wall_fini(&wall);
}

static void what_is_no_file_of_elf_is_said(void **state)
{
    static const struct {
        const char *path;
        int error;
    } cases[] = {
        {"/proc/self/cmdline", -ENOEXEC},
        {"/nowhere", -ENOENT},
        {"/dev/null", -EOPNOTSUPP},
    };
    struct seep_wall wall = seep_symbol_tables_wall();
    struct seep_wall_spent spent = {0};
    struct seep_symbol_segments segments;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct seep_wall_request request = {.path = cases[i].path};

        assert_int_equal(
            seep_symbol_segments_ask(&wall, &request, &spent, &segments),
            cases[i].error);
    }
    seep_wall_fini(&wall);
}

static void names_are_told_as_they_were_written(void **state)
{
    struct seep_wall wall = seep_symbol_tables_wall();
    struct seep_wall_spent spent = {0};
    struct seep_wall_request mangled = {.path = "_ZN6server5cacheE"};
    struct seep_wall_request plain = {.path = "_PyRuntime"};
    char text[32] = "";
    char little[7] = "";

    (void)state;
    assert_int_equal(
        seep_symbol_name_ask(&wall, &mangled, &spent, text, sizeof(text)), 0);
    assert_string_equal(text, "server::cache");
    assert_int_equal(
        seep_symbol_name_ask(&wall, &mangled, &spent, little, sizeof(little)),
        0);
    assert_string_equal(little, "server");
    assert_int_equal(
        seep_symbol_name_ask(&wall, &plain, &spent, text, sizeof(text)),
        -ENOENT);
    assert_string_equal(text, "server::cache");
    seep_wall_fini(&wall);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_that_is_whole_is_taken),
        cmocka_unit_test(symbols_out_of_order_are_refused),
        cmocka_unit_test(a_name_behind_the_texts_is_refused),
        cmocka_unit_test(texts_without_an_end_are_refused),
        cmocka_unit_test(counts_that_are_not_there_are_refused),
        cmocka_unit_test(symbols_of_each_kind_are_read),
        cmocka_unit_test(segments_say_where_a_file_lies),
        cmocka_unit_test(symbols_that_would_take_too_much_are_not_read),
        cmocka_unit_test(what_is_no_file_of_elf_is_said),
        cmocka_unit_test(names_are_told_as_they_were_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
