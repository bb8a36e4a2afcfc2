/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What looks through what is printed: it refuses what a bug would print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "kind.h"

/* In a block as long as it is: a sanitizer sees what reads behind it. */
static bool is_of(bool (*is_it)(const char *, size_t), const char *text)
{
    size_t length = strlen(text);
    char *copy = malloc(length + 1);
    bool answer;

    assert_non_null(copy);
    memcpy(copy, text, length + 1);
    answer = is_it(copy, length);
    free(copy);
    return answer;
}

static void a_document_is_json(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        " [1, -0.5, 1e9, 1.0e-9, 0] \n",
        "null",
        "true",
        "\"\"",
        "{\"a\":{\"b\":[{}, false]}, \"b\":\"\\u00e9\\n\\\"\\ud83d\\ude00\"}",
        "9223372036854775807",
        "-9223372036854775808",
        "\"\x7f\"",
        "[{\"a\":1},{\"a\":2}]",
        "{\"a\":{\"a\":1}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (!is_of(kind_is_json, texts[i])) {
            fail_msg("refused: %s", texts[i]);
        }
    }
}

static void what_is_no_document_is_no_json(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "{",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "[1 2]",
        "{}{}",
        "nul",
        "nan",
        "inf",
        "-",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "0x1",
        "\"",
        "\"\\\"",
        "\"\\x41\"",
        "\"\\u12g4\"",
        "\"\\u123",
        "\"\n\"",
        "\"\033\"",
        "\"\xc3\xa9\"",
        "\"\\ud83d\"",
        "\"\\ud83d\\n\"",
        "\"\\ude00\"",
        "{\"a\":1,\"a\":2}",
        "{\"a\":{\"b\":1,\"b\":1}}",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999",
        "[1}",
        "{\"a\":1]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (is_of(kind_is_json, texts[i])) {
            fail_msg("taken: %s", texts[i]);
        }
    }
    assert_false(kind_is_json("\"\0\"", 3));
}

static void a_page_has_colours_and_no_other_codes(void **state)
{
    (void)state;
    assert_true(is_of(kind_is_page, ""));
    assert_true(is_of(kind_is_page, "a \033[1;31mb\033[0m\n\xe2\x80\xa6"));
    assert_false(is_of(kind_is_page, "\033"));
    assert_false(is_of(kind_is_page, "\033["));
    assert_false(is_of(kind_is_page, "\033]0;x"));
    assert_false(is_of(kind_is_page, "\033[2J"));
    assert_false(is_of(kind_is_page, "a\tb"));
    assert_false(is_of(kind_is_page, "a\rb"));
    assert_false(is_of(kind_is_page, "a\x7f"));
    assert_false(kind_is_page("a\0b", 3));
}

static void markup_has_no_control_characters(void **state)
{
    (void)state;
    assert_true(is_of(kind_is_markup, "<a>\t\r\n\xe2\x80\xa6</a>"));
    assert_false(is_of(kind_is_markup, "<a>\033</a>"));
    assert_false(is_of(kind_is_markup, "\x01"));
    assert_false(kind_is_markup("\0", 1));
}

static void base64_ends_where_another_character_is(void **state)
{
    (void)state;
    assert_int_equal(kind_base64("aZ09+/=\n<", 9), 8);
    assert_int_equal(kind_base64("aZ", 1), 1);
    assert_int_equal(kind_base64("", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_is_json),
        cmocka_unit_test(what_is_no_document_is_no_json),
        cmocka_unit_test(a_page_has_colours_and_no_other_codes),
        cmocka_unit_test(markup_has_no_control_characters),
        cmocka_unit_test(base64_ends_where_another_character_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
