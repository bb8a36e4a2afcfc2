/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Patterns over names, as LeakSanitizer's users know them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reader/compare/suppress.h"
#include "seep_test.h"

#define LONG_BYTES 65536

static void a_pattern_matches_anywhere(void **state)
{
    (void)state;
    assert_true(seep_match_text("alloc", "my_alloc_pool"));
    assert_true(seep_match_text("alloc", "alloc"));
    assert_false(seep_match_text("alloc", "Alloc"));
    assert_false(seep_match_text("alloc", "allo"));
}

static void a_star_stands_for_any_text_and_none(void **state)
{
    (void)state;
    assert_true(seep_match_text("a*c", "xxabcxx"));
    assert_true(seep_match_text("a*c", "ac"));
    assert_true(seep_match_text("*", "x"));
    assert_true(seep_match_text("**a**b**", "a-b"));
    assert_true(seep_match_text("std::*::push", "std::deque<x>::push_back"));
    assert_false(seep_match_text("a*c", "cba"));
    assert_false(seep_match_text("ab*bc", "abc"));
}

static void anchors_tie_to_the_ends(void **state)
{
    (void)state;
    assert_true(seep_match_text("^mal", "malloc"));
    assert_false(seep_match_text("^mal", "xmalloc"));
    assert_true(seep_match_text("loc$", "malloc"));
    assert_false(seep_match_text("loc$", "malloc2"));
    assert_true(seep_match_text("^malloc$", "malloc"));
    assert_false(seep_match_text("^malloc$", "malloc2"));
    assert_true(seep_match_text("^m*c$", "malloc"));
    assert_false(seep_match_text("^m*c$", "mallocs"));
    assert_false(seep_match_text("^ab*bc$", "abc"));
    assert_true(seep_match_text("^*loc", "malloc"));
    assert_true(seep_match_text("mal*$", "malloc"));
}

/* LeakSanitizer looks at the first place only and says no. */
static void an_end_is_found_behind_an_earlier_place(void **state)
{
    (void)state;
    assert_true(seep_match_text("oo$", "foo_oo"));
    assert_true(seep_match_text("a*oo$", "a oo oo"));
}

static void anchors_elsewhere_are_letters(void **state)
{
    (void)state;
    assert_true(seep_match_text("a^b", "xa^bx"));
    assert_true(seep_match_text("f$1", "outer$f$1"));
    assert_false(seep_match_text("f$1", "f"));
}

static void nothing_matches_nothing(void **state)
{
    (void)state;
    assert_false(seep_match_text("", "x"));
    assert_false(seep_match_text("", ""));
    assert_false(seep_match_text("*", ""));
    assert_false(seep_match_text("^", ""));
    assert_false(seep_match_text("^$", "x"));
}

static struct seep_report_frame frame(const char *module, const char *function,
                                      const char *file)
{
    return (struct seep_report_frame){
        .module = module, .function = function, .file = file, .build_id = ""};
}

static void a_frame_matches_by_function_file_and_module(void **state)
{
    struct seep_report_frame f =
        frame("/opt/lib/libdnnl.so.3", "dnnl::create(int)", "/src/cpu/gemm.cc");

    (void)state;
    assert_true(seep_match_frame("dnnl::create", &f));
    assert_true(seep_match_frame("^gemm.cc$", &f));
    assert_true(seep_match_frame("/src/cpu/", &f));
    assert_true(seep_match_frame("^libdnnl.so", &f));
    assert_true(seep_match_frame("^/opt/lib/", &f));
    assert_false(seep_match_frame("libdnnl*gemm", &f));
}

static double seconds_of(const char *pattern, const char *text)
{
    struct timespec begin;
    struct timespec end;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    (void)seep_match_text(pattern, text);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) +
           (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* What sends a backtracking matcher away for years takes a moment here: a
 * second is far above any machine's, and below anything exponential. */
static void hostile_patterns_end(void **state)
{
    char *pattern = calloc(1, LONG_BYTES + 1);
    char *text = calloc(1, LONG_BYTES + 1);

    (void)state;
    memset(text, 'a', LONG_BYTES);
    for (size_t i = 0; i + 1 < LONG_BYTES; i += 2) {
        memcpy(pattern + i, "a*", 2);
    }
    pattern[LONG_BYTES - 1] = 'b';
    assert_true(seconds_of(pattern, text) < 1);

    memset(pattern, 'a', LONG_BYTES / 2);
    memset(pattern + LONG_BYTES / 2, 'b', LONG_BYTES / 2);
    assert_true(seconds_of(pattern, text) < 1);

    for (size_t i = 0; i + 4 <= LONG_BYTES; i += 4) {
        memcpy(pattern + i, "aab*", 4);
    }
    assert_true(seconds_of(pattern, text) < 1);
    free(pattern);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_matches_anywhere),
        cmocka_unit_test(a_star_stands_for_any_text_and_none),
        cmocka_unit_test(anchors_tie_to_the_ends),
        cmocka_unit_test(an_end_is_found_behind_an_earlier_place),
        cmocka_unit_test(anchors_elsewhere_are_letters),
        cmocka_unit_test(nothing_matches_nothing),
        cmocka_unit_test(a_frame_matches_by_function_file_and_module),
        cmocka_unit_test(hostile_patterns_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
