/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/clean and table: foreign strings and lines that fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "options/option.h"
#include "text/table.h"
#include "verbs.h"
#include "words/clean.h"

static void assert_terminal(const char *text, const char *expected)
{
    char *clean = seep_clean_for_terminal(text);

    assert_string_equal(clean, expected);
    free(clean);
}

static void names_of_all_languages_pass(void **state)
{
    (void)state;
    assert_terminal("läck_日本語", "läck_日本語");
    assert_terminal("e\u0301", "e\u0301");
    assert_int_equal(seep_clean_columns("läck_日本語"), 11);
}

static void an_escape_sequence_is_shown_not_sent(void **state)
{
    (void)state;
    assert_terminal("a\033[2Jb\007\n\x7f", "a\\x1b[2Jb\\x07\\x0a\\x7f");
    assert_terminal("\xc2\x9b"
                    "31m",
                    "\\u{009b}31m");
}

/* Overlong, cut, surrogate and too large: each byte is shown as it is. */
static void bytes_that_are_no_utf8_are_shown_in_hexadecimal(void **state)
{
    (void)state;
    assert_terminal("\xff", "\\xff");
    assert_terminal("\xc0\xaf", "\\xc0\\xaf");
    assert_terminal("\xe2\x82", "\\xe2\\x82");
    assert_terminal("\xed\xa0\x80", "\\xed\\xa0\\x80");
    assert_terminal("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
}

static void marks_that_reorder_a_line_are_shown(void **state)
{
    (void)state;
    assert_terminal("a\u202eb", "a\\u{202e}b");
    assert_terminal("a\u200bb\ufeff", "a\\u{200b}b\\u{feff}");
}

static void cleaning_twice_changes_nothing(void **state)
{
    (void)state;
    assert_terminal("\\x1b[2J", "\\x1b[2J");
}

static void json_gets_valid_utf8(void **state)
{
    char *clean = seep_clean_for_json("a\xff\033\u202e");

    (void)state;
    assert_string_equal(clean, "a\ufffd\033\u202e");
    free(clean);
}

static void a_wide_character_is_not_cut_in_half(void **state)
{
    (void)state;
    assert_int_equal(seep_clean_fit("日本語", 3), 3);
    assert_int_equal(seep_clean_fit("日本語", 4), 6);
    assert_int_equal(seep_clean_fit("abc", 9), 3);
}

/* Shorter and longer than what most of it is. */
static void what_is_formatted_is_clean_at_any_length(void **state)
{
    char letters[600];
    char wanted[sizeof(letters) + 8];

    (void)state;
    memset(letters, 'a', sizeof(letters));
    for (int length = 0; length < (int)sizeof(letters); length++) {
        char *text = seep_clean_format("%.*s\033%d", length, letters, 7);

        snprintf(wanted, sizeof(wanted), "%.*s\\x1b7", length, letters);
        assert_non_null(text);
        assert_string_equal(text, wanted);
        free(text);
    }
}

static void columns_are_those_of_so_many_bytes(void **state)
{
    (void)state;
    assert_int_equal(seep_clean_columns_of("abc def", 3), 3);
    assert_int_equal(seep_clean_columns_of("日本語", 6), 4);
    assert_int_equal(seep_clean_columns_of("ab日c", 5), 4);
    assert_int_equal(seep_clean_columns_of("ab", 9), 2);
    assert_int_equal(seep_clean_columns_of("ab", 0), 0);
}

static char *print_table(size_t columns, const char *where)
{
    static const struct seep_table_column heads[] = {
        {"live", true, 0}, {"space", false, 0}, {"where", false, 0}};
    struct seep_table *table = seep_table_open(heads, 3);
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = columns};

    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, 0, "%d", 7);
    seep_table_cell(table, 1, "heap");
    seep_table_cell(table, 2, "%s", where);
    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, 0, "12,345");
    seep_table_print(table, &page, 1);
    fclose(page.file);
    return text;
}

static void numbers_stand_right_and_no_line_ends_in_blanks(void **state)
{
    char *text = print_table(80, "main");

    (void)state;
    assert_string_equal(text, "   live  space  where\n"
                              "      7  heap   main\n"
                              " 12,345\n");
    free(text);
}

static void a_line_is_cut_to_the_page(void **state)
{
    char *text = print_table(20, "a_long_name");

    (void)state;
    assert_string_equal(text, "   live  space  whe…\n"
                              "      7  heap   a_l…\n"
                              " 12,345\n");
    free(text);
}

static void a_hostile_cell_is_cleaned(void **state)
{
    char *text = print_table(80, "x\033[31m\ny");

    (void)state;
    assert_null(strchr(text, '\033'));
    assert_non_null(strstr(text, "x\\x1b[31m\\x0ay\n"));
    free(text);
}

static const char *nearest_verb(const char *word)
{
    static const char *const names[] = {
#define VERB_NAME(name, summary) #name,
        SEEP_VERBS(VERB_NAME)
#undef VERB_NAME
    };

    return seep_nearest(word, names, sizeof(names) / sizeof(names[0]));
}

static void a_mistyped_verb_has_a_nearest_one(void **state)
{
    (void)state;
    assert_string_equal(nearest_verb("repotr"), "report");
    assert_string_equal(nearest_verb("reprt"), "report");
    assert_string_equal(nearest_verb("rnu"), "run");
    assert_null(nearest_verb("frobnicate"));
    assert_null(nearest_verb(
        "a word that is far longer than any verb can ever become"));
}

/* The mark is as wide as it is printed. */
static void a_terminal_of_ascii_gets_ascii(void **state)
{
    (void)state;
    assert_int_equal(setenv("LC_ALL", "C", 1), 0);
    seep_clean_follow_locale();
    assert_terminal("+40 ±0.6 … ü日", "+40 +-0.6 ... \\u{00fc}\\u{65e5}");
    char *text = print_table(20, "a_long_name");
    assert_string_equal(text, "   live  space  w...\n"
                              "      7  heap   a...\n"
                              " 12,345\n");
    free(text);
    text = print_table(18, "a_long_name");
    assert_non_null(strstr(text, "  heap   ..\n"));
    free(text);
}

static void what_the_locale_says_is_followed(void **state)
{
    static const struct {
        const char *all;
        const char *lang;
        bool ascii;
    } cases[] = {
        {NULL, NULL, false},       {"", "", false},
        {"C.UTF-8", "C", false},   {"POSIX", "en_US.UTF-8", true},
        {"", "de_DE.utf8", false}, {NULL, "de_DE.ISO-8859-1", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsetenv("LC_ALL");
        unsetenv("LC_CTYPE");
        unsetenv("LANG");
        if (cases[i].all != NULL) {
            assert_int_equal(setenv("LC_ALL", cases[i].all, 1), 0);
        }
        if (cases[i].lang != NULL) {
            assert_int_equal(setenv("LANG", cases[i].lang, 1), 0);
        }
        seep_clean_follow_locale();
        assert_string_equal(seep_clean_ellipsis(),
                            cases[i].ascii ? "..." : "…");
    }
}

/* The others are of a terminal of UTF-8. */
static int leave(void **state)
{
    (void)state;
    unsetenv("LC_ALL");
    unsetenv("LC_CTYPE");
    unsetenv("LANG");
    seep_clean_follow_locale();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_all_languages_pass),
        cmocka_unit_test(an_escape_sequence_is_shown_not_sent),
        cmocka_unit_test(bytes_that_are_no_utf8_are_shown_in_hexadecimal),
        cmocka_unit_test(marks_that_reorder_a_line_are_shown),
        cmocka_unit_test(cleaning_twice_changes_nothing),
        cmocka_unit_test(json_gets_valid_utf8),
        cmocka_unit_test(a_wide_character_is_not_cut_in_half),
        cmocka_unit_test(what_is_formatted_is_clean_at_any_length),
        cmocka_unit_test(columns_are_those_of_so_many_bytes),
        cmocka_unit_test(numbers_stand_right_and_no_line_ends_in_blanks),
        cmocka_unit_test(a_line_is_cut_to_the_page),
        cmocka_unit_test(a_hostile_cell_is_cleaned),
        cmocka_unit_test_teardown(a_terminal_of_ascii_gets_ascii, leave),
        cmocka_unit_test_teardown(what_the_locale_says_is_followed, leave),
        cmocka_unit_test(a_mistyped_verb_has_a_nearest_one),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
