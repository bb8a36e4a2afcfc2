/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of source of a pack, whatever stands there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reader/symbols/packed.h"

static struct seep_sources parse(const char *text)
{
    struct seep_sources sources;

    assert_int_equal(seep_sources_parse(strdup(text), &sources), 0);
    return sources;
}

static void a_line_is_found_by_its_file_and_number(void **state)
{
    struct seep_sources sources =
        parse("=/a/b.py\n7 kept.append(x)\n12 = 3\n=/c.py\n7 other\n");

    (void)state;
    assert_int_equal(sources.count, 3);
    assert_string_equal(seep_sources_find(&sources, "/a/b.py", 7),
                        "kept.append(x)");
    assert_string_equal(seep_sources_find(&sources, "/a/b.py", 12), "= 3");
    assert_string_equal(seep_sources_find(&sources, "/c.py", 7), "other");
    assert_null(seep_sources_find(&sources, "/c.py", 12));
    assert_null(seep_sources_find(&sources, "/a/b.py", 0));
    seep_sources_fini(&sources);
}

static void what_is_no_line_is_left_out(void **state)
{
    struct seep_sources sources =
        parse("1 of no file\n=/a.py\n0 none\n-3 less\n99999999999 more\n"
              "5\nx 6 y\n\n8 \n9 first\n9 second");
    char path[9000];

    (void)state;
    assert_string_equal(seep_sources_find(&sources, "/a.py", 8), "");
    assert_string_equal(seep_sources_find(&sources, "/a.py", 9), "first");
    assert_int_equal(sources.count, 2);
    memset(path, 'a', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    assert_null(seep_sources_find(&sources, path, 9));
    seep_sources_fini(&sources);
}

static void where_there_is_none_nothing_is_found(void **state)
{
    struct seep_sources sources = {.bytes = NULL};

    (void)state;
    assert_null(seep_sources_find(&sources, "/a.py", 1));
    seep_sources_fini(&sources);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_found_by_its_file_and_number),
        cmocka_unit_test(what_is_no_line_is_left_out),
        cmocka_unit_test(where_there_is_none_nothing_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
