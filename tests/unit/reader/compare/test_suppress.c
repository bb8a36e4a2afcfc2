/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of rules that users wrote for LeakSanitizer, and bounds they named. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/compare/suppress.h"
#include "seep_test.h"

static char path[] = "/tmp/seep-suppress-XXXXXX";

static struct seep_report_frame frames[] = {
    {.module = "/lib/libc.so.6", .function = "malloc", .file = ""},
    {.module = "/opt/libfoo.so",
     .function = "foo::grow()",
     .file = "/s/foo.cc"},
    {.module = "/srv/app", .function = "main", .file = "/s/main.c"},
};
static const struct seep_report_frame *list[] = {&frames[0], &frames[1],
                                                 &frames[2]};
static const struct seep_report_site site = {
    .id = "3f9a00c0ffee1234",
    .where = "foo.cc:12 foo::grow()",
    .frames = list,
    .frame_count = 3,
};

static void write_bytes(const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* The rule that suppresses the site, of a file with @text. */
static const char *rule_of(const char *text)
{
    static char rule[128];
    struct seep_rules *rules = NULL;
    const char *found;

    write_bytes(text, strlen(text));
    assert_int_equal(seep_suppressions_add_file(&rules, path, NULL), 0);
    found = seep_suppressions_find(rules, &site);
    snprintf(rule, sizeof(rule), "%s", found != NULL ? found : "none");
    seep_rules_close(rules);
    return rule;
}

static int refusal_of(const char *text, size_t length,
                      struct seep_refusal *ret_refusal)
{
    struct seep_rules *rules = NULL;
    int error;

    write_bytes(text, length);
    memset(ret_refusal, 0, sizeof(*ret_refusal));
    error = seep_suppressions_add_file(&rules, path, ret_refusal);
    assert_null(rules);
    return error;
}

static void a_rule_matches_function_file_and_module(void **state)
{
    (void)state;
    assert_string_equal(rule_of("leak:foo::grow\n"), "foo::grow");
    assert_string_equal(rule_of("leak:main.c\n"), "main.c");
    assert_string_equal(rule_of("leak:^libfoo.so$\n"), "^libfoo.so$");
    assert_string_equal(rule_of("leak:bar\n"), "none");
}

static void the_first_rule_that_matches_is_told(void **state)
{
    (void)state;
    assert_string_equal(rule_of("leak:bar\nleak:main\nleak:foo\n"), "main");
}

static void comments_blanks_and_line_ends_do_not_count(void **state)
{
    (void)state;
    assert_string_equal(rule_of("# leak:main\r\n\r\n\t \n  leak:foo \t\r\n"),
                        "foo");
    assert_string_equal(rule_of("\xef\xbb\xbfleak:foo"), "foo");
    assert_string_equal(rule_of(""), "none");
}

static void a_hash_behind_a_pattern_belongs_to_it(void **state)
{
    (void)state;
    assert_string_equal(rule_of("leak:foo # ours\n"), "none");
}

static void rules_of_other_sanitizers_are_passed_over(void **state)
{
    (void)state;
    assert_string_equal(rule_of("race:main\ncalled_from_lib:libfoo.so\n"
                                "vptr_check:foo.cc\nodr_violation:x\n"
                                "signed-integer-overflow:foo\nleak:grow\n"),
                        "grow");
}

static void a_line_that_is_no_rule_is_named(void **state)
{
    struct seep_refusal refusal;

    (void)state;
    assert_int_equal(refusal_of("leak:a\n\nfoo\n", 12, &refusal), -EINVAL);
    assert_string_equal(refusal.reason, "line 3: is not a rule");
    assert_int_equal(refusal_of("laek:foo\n", 9, &refusal), -EINVAL);
    assert_int_equal(refusal_of("race mutex:foo\n", 15, &refusal), -EINVAL);
    assert_int_equal(refusal_of(":foo\n", 5, &refusal), -EINVAL);
}

/* LeakSanitizer suppresses all leaks by it; nobody means that. */
static void a_rule_without_a_pattern_is_refused(void **state)
{
    struct seep_refusal refusal;

    (void)state;
    assert_int_equal(refusal_of("leak: \n", 7, &refusal), -EINVAL);
    assert_string_equal(refusal.reason, "line 1: has no pattern after leak:");
}

static void what_is_no_text_is_refused(void **state)
{
    struct seep_refusal refusal;
    char *large = malloc((4U << 20) + 2);

    (void)state;
    assert_int_equal(refusal_of("leak:a\0b\n", 9, &refusal), -EBADMSG);
    memset(large, '\n', (4U << 20) + 1);
    assert_int_equal(refusal_of(large, (4U << 20) + 1, &refusal), -EFBIG);
    free(large);
    assert_int_equal(seep_suppressions_add_file(&(struct seep_rules *){NULL},
                                                "/tmp", &refusal),
                     -EISDIR);
}

static void a_bad_file_leaves_the_rules_as_they_were(void **state)
{
    struct seep_rules *rules = NULL;

    (void)state;
    write_bytes("leak:bar\n", 9);
    assert_int_equal(seep_suppressions_add_file(&rules, path, NULL), 0);
    write_bytes("leak:main\nbad\n", 14);
    assert_int_equal(seep_suppressions_add_file(&rules, path, NULL), -EINVAL);
    assert_null(seep_suppressions_find(rules, &site));
    write_bytes("leak:main\n", 10);
    assert_int_equal(seep_suppressions_add_file(&rules, path, NULL), 0);
    assert_string_equal(seep_suppressions_find(rules, &site), "main");
    seep_rules_close(rules);
}

static void nothing_known_is_nothing_found(void **state)
{
    (void)state;
    assert_null(seep_suppressions_find(NULL, &site));
    assert_int_equal(seep_known_find(NULL, &site), 0);
    seep_rules_close(NULL);
}

static uint64_t bound_of(const char *name)
{
    struct seep_rules *known = NULL;
    uint64_t bound_bytes;

    assert_int_equal(seep_known_add(&known, name, 4096), 0);
    bound_bytes = seep_known_find(known, &site);
    seep_rules_close(known);
    return bound_bytes;
}

static void a_bound_is_named_by_id_or_pattern(void **state)
{
    (void)state;
    assert_int_equal(bound_of("3f9a"), 4096);
    assert_int_equal(bound_of("3F9A00"), 4096);
    assert_int_equal(bound_of("3f9b"), 0);
    assert_int_equal(bound_of("foo::grow"), 4096);
    assert_int_equal(bound_of("foo.cc:12"), 4096);
    assert_int_equal(bound_of("^libfoo.so"), 4096);
    assert_int_equal(bound_of("bar"), 0);
}

/* "feed" in a file's name is no id, and an id is no part of a name. */
static void digits_of_an_id_are_no_pattern(void **state)
{
    struct seep_report_frame feed = {
        .module = "/opt/libfeed-c0ffee.so", .function = "", .file = ""};
    const struct seep_report_frame *only = &feed;
    struct seep_report_site other = {
        .id = "1111222233334444", .frames = &only, .frame_count = 1};
    struct seep_rules *known = NULL;

    (void)state;
    assert_int_equal(seep_known_add(&known, "c0ffee", 1), 0);
    assert_int_equal(seep_known_add(&known, "feed", 2), 0);
    assert_int_equal(seep_known_find(known, &other), 0);
    assert_int_equal(seep_known_add(&known, "libfeed", 3), 0);
    assert_int_equal(seep_known_find(known, &other), 3);
    seep_rules_close(known);
}

static void a_bound_of_nothing_is_refused(void **state)
{
    struct seep_rules *known = NULL;

    (void)state;
    assert_int_equal(seep_known_add(&known, "", 1), -EINVAL);
    assert_int_equal(seep_known_add(&known, "foo", 0), -EINVAL);
    assert_null(known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_matches_function_file_and_module),
        cmocka_unit_test(the_first_rule_that_matches_is_told),
        cmocka_unit_test(comments_blanks_and_line_ends_do_not_count),
        cmocka_unit_test(a_hash_behind_a_pattern_belongs_to_it),
        cmocka_unit_test(rules_of_other_sanitizers_are_passed_over),
        cmocka_unit_test(a_line_that_is_no_rule_is_named),
        cmocka_unit_test(a_rule_without_a_pattern_is_refused),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(a_bad_file_leaves_the_rules_as_they_were),
        cmocka_unit_test(nothing_known_is_nothing_found),
        cmocka_unit_test(a_bound_is_named_by_id_or_pattern),
        cmocka_unit_test(digits_of_an_id_are_no_pattern),
        cmocka_unit_test(a_bound_of_nothing_is_refused),
    };
    int file = mkstemp(path);
    int failed;

    if (file < 0) {
        return 1;
    }
    close(file);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
