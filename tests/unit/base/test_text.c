/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text without stdio. */
#include "seep_test.h"

#include "base/text.h"

static void what_does_not_fit_is_cut_and_said_so(void **state)
{
    char bytes[8];
    struct seep_text text;

    (void)state;
    seep_text_init(&text, bytes, sizeof(bytes));
    seep_text_add(&text, "abc");
    seep_text_add_number(&text, 1234);
    assert_false(text.cut);
    assert_string_equal(bytes, "abc1234");
    seep_text_add_char(&text, 'x');
    assert_true(text.cut);
    assert_string_equal(bytes, "abc1234");
}

static void the_base_name_is_behind_the_last_slash(void **state)
{
    (void)state;
    assert_string_equal(seep_text_base_name("/usr/bin/python3"), "python3");
    assert_string_equal(seep_text_base_name("python3"), "python3");
    assert_string_equal(seep_text_base_name("/"), "");
    assert_true(seep_text_equal("a", "a"));
    assert_false(seep_text_equal("a", "ab"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_cut_and_said_so),
        cmocka_unit_test(the_base_name_is_behind_the_last_slash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
