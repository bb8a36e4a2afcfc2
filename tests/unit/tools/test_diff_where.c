/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/words/diff: where a call site of two runs is, and was, and what
 * all of them come to. */
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

/* One leak of two runs that comes to @outcome, and less or as much is held. */
static void assert_headline_at(enum seep_diff_outcome outcome, bool holds_less,
                               bool at_the_leak, const char *wanted)
{
    const struct seep_report report = {.by = SEEP_BY_LINE};
    struct seep_report_frame frame = code_of("/a/libfoo.so", 0x40);
    const struct seep_report_frame *frames[] = {&frame};
    const struct seep_report_site site = {
        .frames = frames, .frame_count = 1, .where = "a", .pool = "none"};
    const struct seep_diff_site compared = {.site = &site,
                                            .report = &report,
                                            .class = SEEP_CLASS_LEAK,
                                            .grows = true,
                                            .proved = true};
    struct seep_diff_row row = {.outcome = outcome,
                                .weighs = true,
                                .before = compared,
                                .now = compared,
                                .change = {1 << 20, 1, 1}};
    struct seep_diff_held held = {.holder = SEEP_DIFF_HOLDER_PROCESS,
                                  .site = at_the_leak ? &site : NULL,
                                  .outcome = holds_less ? SEEP_DIFF_BETTER
                                                        : SEEP_DIFF_SAME,
                                  .change = {-(300 << 20), 0, 0}};
    struct seep_diff_pair pair = {
        .diff = {.rows = &row,
                 .row_count = 1,
                 .held = &held,
                 .held_count = 1,
                 .first_held = holds_less ? &held : NULL}};
    struct seep_diff_set set = {.pairs = &pair, .count = 1};

    assert_where(seep_diff_headline(&set), wanted);
}

static void assert_headline(enum seep_diff_outcome outcome, bool holds_less,
                            const char *wanted)
{
    assert_headline_at(outcome, holds_less, false, wanted);
}

static void what_leaks_less_is_not_told_twice(void **state)
{
    (void)state;
    assert_headline_at(
        SEEP_DIFF_BETTER, true, true,
        "BETTER: 1 call site grows less, libfoo+0x40 +60.0 MiB/min");
}

static void less_that_is_held_comes_first(void **state)
{
    (void)state;
    assert_headline(
        SEEP_DIFF_SAME, true,
        "BETTER: -300 MiB held in private memory, at no one call site");
    assert_headline(
        SEEP_DIFF_BETTER, true,
        "BETTER: -300 MiB held in private memory, at no one call site; 1 call site grows less, libfoo+0x40 +60.0 MiB/min");
    assert_headline(
        SEEP_DIFF_UNTOLD, true,
        "BETTER by what is held, NOT ENOUGH DATA on growth: -300 MiB held in private memory, at no one call site; 1 call site may be worse, libfoo+0x40 +60.0 MiB/min");
    assert_headline(
        SEEP_DIFF_WORSE, true,
        "WORSE by growth, BETTER by what is held: 1 leak got worse, libfoo+0x40 +60.0 MiB/min; -300 MiB held in private memory, at no one call site");
}

static void growth_alone_says_nothing_of_what_is_held(void **state)
{
    (void)state;
    assert_headline(
        SEEP_DIFF_SAME, false,
        "SAME: 1 call site grows as before, and none is new or worse");
    assert_headline(
        SEEP_DIFF_BETTER, false,
        "BETTER: 1 call site grows less, libfoo+0x40 +60.0 MiB/min");
    assert_headline(
        SEEP_DIFF_UNTOLD, false,
        "NOT ENOUGH DATA: 1 call site may be worse, libfoo+0x40 +60.0 MiB/min");
    assert_headline(SEEP_DIFF_WORSE, false,
                    "WORSE: 1 leak got worse, libfoo+0x40 +60.0 MiB/min");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offset_of_another_build_is_no_news),
        cmocka_unit_test(another_module_is),
        cmocka_unit_test(what_leaks_less_is_not_told_twice),
        cmocka_unit_test(less_that_is_held_comes_first),
        cmocka_unit_test(growth_alone_says_nothing_of_what_is_held),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
