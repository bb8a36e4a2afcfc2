/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loading a catalogue: what is refused, and which of several patterns wins. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "reader/compare/catalogue.h"
#include "seep_test.h"

#define HEAD "{\"schema\":\"seep-patterns/1\",\"about\":\"x\",\"patterns\":["
#define WORDS                                          \
    "\"name\":\"n\",\"cause\":\"c\",\"remedy\":\"r\"," \
    "\"source\":[\"https://example.org/1\"]"
#define PATTERN(id, rest) "{\"id\":\"" id "\"," WORDS "," rest "}"
#define SITE(rest) "\"match\":{" rest "}"
#define FOO "\"frames\":[[\"foo\"]]"

static struct seep_report_frame frames[] = {
    {.module = "/lib/libc.so.6", .function = "malloc", .file = ""},
    {.module = "/opt/libfoo.so", .function = "foo_grow", .file = ""},
    {.module = "/opt/libbar.so", .function = "", .file = ""},
    {.module = "/srv/app", .function = "main", .file = "/s/main.c"},
};
static const struct seep_report_frame *list[] = {&frames[0], &frames[1],
                                                 &frames[2], &frames[3]};
static struct seep_report_site site = {
    .space = SEEP_SPACE_HEAP,
    .class = SEEP_CLASS_LEAK,
    .allocated_bytes = 64000,
    .allocated_count = 1000,
    .frames = list,
    .frame_count = 4,
};

static int add(struct seep_catalogue **catalogue, const char *text,
               struct seep_refusal *ret_refusal)
{
    return seep_catalogue_add_text(catalogue, text, strlen(text), ret_refusal);
}

/* The id of the pattern of @text that fits the site. */
static const char *winner(const char *text)
{
    static char id[80];
    struct seep_catalogue *catalogue = NULL;
    const struct seep_pattern *found;

    assert_int_equal(add(&catalogue, text, NULL), 0);
    found = seep_catalogue_find(catalogue, &site);
    snprintf(id, sizeof(id), "%s", found != NULL ? found->id : "none");
    seep_catalogue_close(catalogue);
    return id;
}

static void assert_refused(const char *text, const char *reason)
{
    struct seep_catalogue *catalogue = NULL;
    struct seep_refusal refusal = {.error = 0};

    assert_int_equal(add(&catalogue, text, &refusal), -EINVAL);
    assert_null(catalogue);
    if (strstr(refusal.reason, reason) == NULL) {
        fail_msg("refused by \"%s\", not by \"%s\"", refusal.reason, reason);
    }
}

#define ONE(rest) winner(HEAD PATTERN("one", SITE(rest)) "]}")

static void frames_are_found_from_the_inside_out(void **state)
{
    (void)state;
    assert_string_equal(ONE("\"frames\":[[\"foo_grow\"],[\"main\"]]"), "one");
    assert_string_equal(ONE("\"frames\":[[\"main\"],[\"foo_grow\"]]"), "none");
    assert_string_equal(ONE("\"frames\":[[\"foo_grow\"],[\"libfoo\"]]"), "one");
    assert_string_equal(ONE("\"frames\":[[\"xxx\",\"^libfoo.so$\"]]"), "one");
    assert_string_equal(ONE("\"frames\":[[\"foo_grow\"],[\"xxx\"]]"), "none");
}

static void parts_of_a_frame_are_asked_for_together(void **state)
{
    (void)state;
    assert_string_equal(ONE("\"frames\":[[{\"function\":\"^foo_\",\"module\":"
                            "\"^libfoo\"}]]"),
                        "one");
    assert_string_equal(ONE("\"frames\":[[{\"function\":\"^foo_\",\"module\":"
                            "\"^libbar\"}]]"),
                        "none");
    assert_string_equal(ONE("\"frames\":[[{\"file\":\"^main.c$\"}]]"), "one");
    assert_string_equal(ONE("\"frames\":[[{\"module\":\"foo_grow\"}]]"),
                        "none");
}

static void a_frame_without_a_name_is_matched_by_its_module_alone(void **state)
{
    (void)state;
    assert_string_equal(ONE("\"frames\":[[{\"function\":\"*bar*\"}]]"), "none");
    assert_string_equal(ONE("\"frames\":[[\"^libbar.so\"]]"), "one");
}

static void conditions_narrow_a_pattern(void **state)
{
    (void)state;
    assert_string_equal(ONE(FOO ",\"space\":[\"mapped\",\"heap\"]"), "one");
    assert_string_equal(ONE(FOO ",\"space\":[\"device\"]"), "none");
    assert_string_equal(ONE(FOO ",\"class\":[\"leak\"]"), "one");
    assert_string_equal(ONE(FOO ",\"class\":[\"steady\"]"), "none");
    assert_string_equal(ONE(FOO ",\"not\":[\"^main$\"]"), "none");
    assert_string_equal(ONE(FOO ",\"not\":[\"^xxx$\"]"), "one");
    assert_string_equal(ONE(FOO ",\"block_bytes\":{\"min\":64,\"max\":64}"),
                        "one");
    assert_string_equal(ONE(FOO ",\"block_bytes\":{\"min\":65}"), "none");
    assert_string_equal(ONE(FOO ",\"block_bytes\":{\"max\":63}"), "none");
}

/* The frames are those of its largest stack, and so are the blocks. */
static void of_a_row_the_blocks_of_the_shown_stack_count(void **state)
{
    struct seep_report_site before = site;

    (void)state;
    site.stack_count = 3;
    site.stack_allocated_bytes = 40960;
    site.stack_allocated_count = 10;
    assert_string_equal(ONE(FOO ",\"block_bytes\":{\"min\":4096}"), "one");
    assert_string_equal(ONE(FOO ",\"block_bytes\":{\"max\":64}"), "none");
    site = before;
}

/* malloc's frame is no frame of the user: it does not count. */
static void depth_counts_frames_of_the_user(void **state)
{
    (void)state;
    assert_string_equal(ONE("\"depth\":1,\"frames\":[[\"malloc\"]]"), "one");
    assert_string_equal(ONE("\"depth\":1," FOO), "one");
    assert_string_equal(ONE("\"depth\":1,\"frames\":[[\"^libbar\"]]"), "none");
    assert_string_equal(ONE("\"depth\":2,\"frames\":[[\"^libbar\"]]"), "one");
    assert_string_equal(ONE("\"depth\":1,\"frames\":[[\"foo\"],[\"main\"]]"),
                        "one");
}

#define TWO(first, second)                                     \
    winner(HEAD PATTERN("one", SITE(first)) "," PATTERN("two", \
                                                        SITE(second)) "]}")

static void the_most_specific_pattern_wins(void **state)
{
    (void)state;
    assert_string_equal(TWO("\"frames\":[[\"foo\"],[\"main\"]]",
                            FOO ",\"space\":[\"heap\"],\"class\":[\"leak\"]"),
                        "one");
    assert_string_equal(TWO(FOO, "\"frames\":[[\"^libfoo\"]],"
                                 "\"space\":[\"heap\"]"),
                        "one");
    assert_string_equal(TWO(FOO, FOO ",\"space\":[\"heap\"]"), "two");
    assert_string_equal(TWO(FOO ",\"space\":[\"heap\"]", FOO), "one");
    assert_string_equal(TWO(FOO, "\"frames\":[[\"main.c\"]]"), "one");
    assert_string_equal(TWO("\"frames\":[[\"main.c\"]]", FOO), "two");
    assert_string_equal(TWO("\"frames\":[[\"foo_grow\"]]", FOO), "one");
    assert_string_equal(TWO(FOO, FOO), "two");
}

static void a_later_file_replaces_and_adds(void **state)
{
    struct seep_catalogue *catalogue = NULL;

    (void)state;
    assert_int_equal(add(&catalogue,
                         HEAD PATTERN("one", SITE(FOO)) "," PATTERN(
                             "two", SITE("\"frames\":[[\"xxx\"]]")) "]}",
                         NULL),
                     0);
    assert_string_equal(seep_catalogue_find(catalogue, &site)->id, "one");
    assert_int_equal(
        add(&catalogue,
            HEAD PATTERN("one", SITE("\"frames\":[[\"yyy\"]]")) "," PATTERN(
                "three", SITE(FOO)) "]}",
            NULL),
        0);
    assert_int_equal(catalogue->count, 3);
    assert_string_equal(seep_catalogue_find(catalogue, &site)->id, "three");
    assert_string_equal(seep_catalogue_find(catalogue, &site)->source,
                        "https://example.org/1");
    seep_catalogue_close(catalogue);
}

static void a_bad_file_leaves_the_catalogue_as_it_was(void **state)
{
    struct seep_catalogue *catalogue = NULL;

    (void)state;
    assert_int_equal(add(&catalogue, HEAD PATTERN("one", SITE(FOO)) "]}", NULL),
                     0);
    assert_int_equal(
        add(&catalogue,
            HEAD PATTERN("one", SITE("\"frames\":[[\"y_y\"]]")) "," PATTERN(
                "two", SITE("\"frames\":[]")) "]}",
            NULL),
        -EINVAL);
    assert_int_equal(catalogue->count, 1);
    assert_string_equal(seep_catalogue_find(catalogue, &site)->id, "one");
    seep_catalogue_close(catalogue);
}

static void no_catalogue_knows_nothing(void **state)
{
    static const struct seep_report report;

    (void)state;
    assert_null(seep_catalogue_find(NULL, &site));
    assert_null(seep_catalogue_find_process(NULL, &report));
    seep_catalogue_close(NULL);
}

static void what_is_no_catalogue_is_refused(void **state)
{
    (void)state;
    assert_refused("", "is not JSON");
    assert_refused("[]", "schema");
    assert_refused("{\"schema\":\"seep-patterns/2\",\"patterns\":[]}",
                   "schema");
    assert_refused("{\"schema\":\"seep-patterns/1\"}", "patterns");
    assert_refused("{\"schema\":\"seep-patterns/1\",\"patterns\":{}}",
                   "patterns");
    assert_refused("{\"schema\":\"seep-patterns/1\",\"pattern\":[],"
                   "\"patterns\":[]}",
                   "key");
    assert_refused("{\"schema\":\"seep-patterns/1\",\"patterns\":[],"
                   "\"patterns\":[]}",
                   "line 1 is not JSON");
}

#define REFUSED(pattern, reason) assert_refused(HEAD pattern "]}", reason)

static void an_entry_that_is_wrong_is_named(void **state)
{
    (void)state;
    REFUSED("1", "pattern 1 (no id): it is not an object");
    REFUSED(PATTERN("good", SITE(FOO)) ",{}", "pattern 2 (no id): id");
    REFUSED(PATTERN("No", SITE(FOO)), "pattern 1 (No): id");
    REFUSED("{\"id\":\"a\"}", "name");
    REFUSED("{\"id\":\"a\",\"name\":\"n\",\"cause\":\"\\u001b[2J\"}", "cause");
    REFUSED("{\"id\":\"a\",\"name\":\"n\",\"cause\":\"c\",\"remedy\":\"r\"}",
            "source");
    REFUSED("{\"id\":\"a\",\"name\":\"n\",\"cause\":\"c\",\"remedy\":\"r\","
            "\"source\":[\"http://x\"]}",
            "https://");
    REFUSED(PATTERN("a", "\"matches\":{}"), "unknown key, matches");
    REFUSED("{\"id\":\"a\"," WORDS "}", "either match or process");
}

static void a_condition_that_is_wrong_is_named(void **state)
{
    (void)state;
    REFUSED(PATTERN("a", SITE("\"frame\":[[\"foo\"]]")), "frame");
    REFUSED(PATTERN("a", SITE("\"space\":[\"heap\"]")), "frames is not a list");
    REFUSED(PATTERN("a", SITE("\"frames\":[\"foo\"]")), "frames is not a list");
    REFUSED(PATTERN("a", SITE("\"frames\":[[]]")), "frames is not a list");
    REFUSED(PATTERN("a", SITE("\"frames\":[[{}]]")), "empty object");
    REFUSED(PATTERN("a", SITE("\"frames\":[[\"*\"]]")), "no pattern");
    REFUSED(PATTERN("a", SITE("\"frames\":[[\"^ab*cd$\"]]")), "no pattern");
    REFUSED(PATTERN("a", SITE("\"frames\":[[{\"line\":\"foo\"}]]")), "line");
    REFUSED(PATTERN("a", SITE(FOO ",\"space\":[\"heep\"]")), "heep");
    REFUSED(PATTERN("a", SITE(FOO ",\"class\":[]")), "class");
    REFUSED(PATTERN("a", SITE(FOO ",\"depth\":0")), "depth");
    REFUSED(PATTERN("a", SITE(FOO ",\"depth\":1.5")), "depth");
    REFUSED(PATTERN("a", SITE(FOO ",\"block_bytes\":{\"low\":1}")), "low");
    REFUSED(PATTERN("a", "\"process\":{\"allocator\":[\"glibc\"]}"), "verdict");
    REFUSED(PATTERN("a", "\"process\":{\"verdict\":[\"bad\"]}"), "bad");
    REFUSED(PATTERN("a", SITE(FOO) ",\"process\":{\"verdict\":[\"leak\"]}"),
            "either");
}

/* Any one byte changed, or any end cut off: an answer, and never a crash. */
static void damaged_files_are_answered(void **state)
{
    static const char whole[] = HEAD PATTERN(
        "one",
        SITE(
            FOO
            ",\"depth\":1,\"block_bytes\":{\"min\":"
            "1}")) "," PATTERN("two",
                               "\"process\":{\"verdict\":[\"leak\"],\"loaded\":"
                               "[{\"module\":\"libfoo\"}]}") "]}";
    static const char bytes[] = {0x20, '"', '{', ']',
                                 ',',  '9', 'x', (char)0xff};
    char text[sizeof(whole)];

    (void)state;
    for (size_t at = 0; at < sizeof(whole) - 1; at++) {
        for (size_t i = 0; i <= sizeof(bytes); i++) {
            struct seep_catalogue *catalogue = NULL;

            memcpy(text, whole, sizeof(whole));
            text[at] = i < sizeof(bytes) ? bytes[i] : '\0';
            if (add(&catalogue, text, NULL) == 0) {
                (void)seep_catalogue_find(catalogue, &site);
            } else {
                assert_null(catalogue);
            }
            seep_catalogue_close(catalogue);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_found_from_the_inside_out),
        cmocka_unit_test(parts_of_a_frame_are_asked_for_together),
        cmocka_unit_test(a_frame_without_a_name_is_matched_by_its_module_alone),
        cmocka_unit_test(conditions_narrow_a_pattern),
        cmocka_unit_test(of_a_row_the_blocks_of_the_shown_stack_count),
        cmocka_unit_test(depth_counts_frames_of_the_user),
        cmocka_unit_test(the_most_specific_pattern_wins),
        cmocka_unit_test(a_later_file_replaces_and_adds),
        cmocka_unit_test(a_bad_file_leaves_the_catalogue_as_it_was),
        cmocka_unit_test(no_catalogue_knows_nothing),
        cmocka_unit_test(what_is_no_catalogue_is_refused),
        cmocka_unit_test(an_entry_that_is_wrong_is_named),
        cmocka_unit_test(a_condition_that_is_wrong_is_named),
        cmocka_unit_test(damaged_files_are_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
