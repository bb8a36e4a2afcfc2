/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/words/diff: where a call site of two runs is, and was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "words/compare.h"

/* Call site @frame of two runs, of which the former had it at @old. */
static char *where_of(struct seep_report_frame old,
                      struct seep_report_frame frame)
{
    const struct seep_report report = {.by = SEEP_BY_LINE};
    const struct seep_report_frame *olds[] = {&old};
    const struct seep_report_frame *frames[] = {&frame};
    const struct seep_report_site before = {
        .frames = olds, .frame_count = 1, .where = "", .pool = "none"};
    const struct seep_report_site now = {
        .frames = frames, .frame_count = 1, .where = "now", .pool = "none"};
    const struct seep_diff_row row = {
        .before = {.site = &before, .report = &report},
        .now = {.site = &now, .report = &report}};

    return seep_diff_where(&row);
}

static struct seep_report_frame code_of(const char *module, uint64_t offset)
{
    return (struct seep_report_frame){.function = "",
                                      .file = "",
                                      .module = module,
                                      .build_id = "",
                                      .offset = offset};
}

static void assert_where(char *text, const char *wanted)
{
    assert_string_equal(text, wanted);
    free(text);
}

static void an_offset_of_another_build_is_no_news(void **state)
{
    (void)state;
    assert_where(where_of(code_of("/a/libfoo.so", 0x40),
                          code_of("/b/libfoo.so", 0x1f80)),
                 "libfoo+0x1f80");
}

static void another_module_is(void **state)
{
    struct seep_report_frame named = code_of("/a/libfoo.so", 0x40);

    (void)state;
    assert_where(
        where_of(code_of("/a/libbar.so", 0x40), code_of("/b/libfoo.so", 0x40)),
        "libfoo+0x40 (was libbar+0x40)");
    named.function = "keep";
    assert_where(where_of(named, code_of("/b/libfoo.so", 0x40)),
                 "libfoo+0x40 (was keep in libfoo)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offset_of_another_build_is_no_news),
        cmocka_unit_test(another_module_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
