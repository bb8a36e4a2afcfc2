/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What one thing holds of several call sites: which are put together, by how
 * much they grow, and who says so. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "fake_report.h"
#include "held/kept.h"
#include "text/report.h"
#include "top/top.h"
#include "words/common.h"
#include "words/compare.h"
#include "words/verdict.h"
#include "json/json.h"

#define SITES 5
#define MIB_A_MIN (1048576.0 / 60)

/* A value of a dict that a module's variable has: as most answers are. */
struct chain {
    struct seep_held_step steps[3];
    struct seep_held_group group;
    struct seep_held_answer answer;
    struct seep_held_kept kept;
};

static struct fake_report fake;
static struct seep_report_site sites[SITES];
static struct chain chains[SITES];

static const struct seep_held_step plain = {.edge_name = "",
                                            .edge_function = "",
                                            .name = "",
                                            .function = "",
                                            .file = ""};

static void fill_chain(struct chain *chain, const char *site_id)
{
    chain->steps[0] = plain;
    chain->steps[0].edge = SEEP_HELD_EDGE_KEY;
    chain->steps[0].kind = SEEP_HELD_KIND_OBJECT;
    chain->steps[0].name = "dict";
    chain->steps[0].has_items = true;
    chain->steps[0].items = 12411;
    chain->steps[0].address = 0x7000;
    chain->steps[1] = plain;
    chain->steps[1].edge = SEEP_HELD_EDGE_KEY;
    chain->steps[1].edge_name = "CACHE";
    chain->steps[1].kind = SEEP_HELD_KIND_MODULE;
    chain->steps[1].name = "app";
    chain->steps[1].address = 0x1000;
    chain->group = (struct seep_held_group){
        .end = SEEP_HELD_END_HELD,
        .block_count = 64,
        .steps = chain->steps,
        .step_count = 2,
    };
    chain->answer = (struct seep_held_answer){
        .asked_count = 64, .groups = &chain->group, .group_count = 1};
    chain->kept = (struct seep_held_kept){.site_id = site_id,
                                          .asked_s = 31,
                                          .live_bytes = 4 << 20,
                                          .answer = &chain->answer};
}

/* Five leaks of 4 to 8 MiB/min, of one dict. */
static int fill(void **state)
{
    (void)state;
    fake_report_fill(&fake);
    fake.report.sites = sites;
    fake.report.site_count = SITES;
    fake.report.site_total = SITES;
    for (size_t i = 0; i < SITES; i++) {
        double rate = (double)(8 - i) * MIB_A_MIN;

        sites[i] = fake.sites[0];
        snprintf(sites[i].id, sizeof(sites[i].id), "%zua00112233", i);
        sites[i].live_bytes = 4 << 20;
        sites[i].growth_bytes_per_s = seep_interval_around(rate, 3 * MIB_A_MIN);
        fill_chain(&chains[i], sites[i].id);
        sites[i].held = &chains[i].kept;
    }
    return 0;
}

static struct seep_words_commons commons;

static int close_commons(void **state)
{
    (void)state;
    seep_words_commons_fini(&commons);
    return 0;
}

static void make(void)
{
    seep_words_commons_fini(&commons);
    assert_int_equal(seep_words_commons_make(&fake.report, &commons), 0);
}

/* How many of the sites are held together at the most. */
static size_t together(void)
{
    make();
    return commons.count == 0 ? 0 : commons.list[0].site_count;
}

static void assert_line(const char *wanted)
{
    char *line;

    make();
    assert_true(commons.count > 0);
    line = seep_words_common_line(&fake.report, &commons, &commons.list[0]);
    assert_string_equal(line, wanted);
    free(line);
}

static void what_one_dict_holds_is_added_up(void **state)
{
    (void)state;
    make();
    assert_int_equal(commons.count, 1);
    assert_int_equal(commons.list[0].site_count, SITES);
    assert_int_equal(commons.list[0].leak_count, SITES);
    assert_int_equal(commons.list[0].live_bytes, 20 << 20);
    assert_true(commons.asked_count == SITES && commons.wanted_count == SITES);
    assert_line("all 5 call sites that leak or may leak are held by app.CACHE, "
                "a dict of 12,411 items: together they grow by 30.0 MiB/min "
                "(23.3 to 36.7)");
    sites[3].class = SEEP_CLASS_SUSPECT;
    sites[0].live_bytes = 9 << 20;
    chains[4].steps[0].address = 0x9000;
    chains[4].steps[1].edge_name = "LOG";
    assert_line(
        "4 of 5 call sites that leak or may leak are held by "
        "app.CACHE, a dict of 12,411 items (when they kept 16 MiB): "
        "together they grow by 26.0 MiB/min (20.0 to 32.0), 1 of them a "
        "suspect");
}

static void nothing_is_claimed_of_who_was_not_asked(void **state)
{
    (void)state;
    sites[3].held = NULL;
    chains[4].kept.answer = NULL;
    chains[4].kept.outcome = SEEP_HELD_OUTCOME_NO_ROOM;
    assert_line("of 3 call sites that were asked about, of 5 that leak or may "
                "leak, 3 are held by app.CACHE, a dict of 12,411 items: "
                "together they grow by 21.0 MiB/min (15.8 to 26.2)");
    sites[2].suppressed_by = "leak:put";
    sites[1].class = SEEP_CLASS_PLATEAU;
    assert_int_equal(together(), 0);
}

static void the_same_words_of_two_things_are_not_one(void **state)
{
    (void)state;
    chains[1].steps[0].address = 0x9000;
    chains[2].steps[0].address = 0x9000;
    for (size_t i = 0; i < SITES; i++) {
        chains[i].steps[1].edge = SEEP_HELD_EDGE_ITEM;
    }
    make();
    assert_int_equal(commons.count, 2);
    assert_int_equal(commons.list[0].site_count, 3);
    assert_ptr_equal(commons.list[1].sites[0], &sites[1]);
    assert_int_equal(commons.list[1].site_count, 2);
}

static void an_address_is_one_thing_only_while_it_is_asked(void **state)
{
    (void)state;
    chains[4].steps[1].edge_name = "other";
    assert_int_equal(together(), SITES);
    chains[4].kept.asked_s = 90;
    assert_int_equal(together(), SITES - 1);
    chains[4].steps[1].edge_name = "CACHE";
    assert_int_equal(together(), SITES);
    chains[4].steps[0].name = "list";
    assert_int_equal(together(), SITES - 1);
    chains[4].kept.asked_s = 31;
    assert_int_equal(together(), SITES - 1);
}

static void what_is_not_clear_is_not_counted(void **state)
{
    static const enum seep_held_end ends[] = {
        SEEP_HELD_END_WEAKLY_NAMED, SEEP_HELD_END_UNROOTED, SEEP_HELD_END_CYCLE,
        SEEP_HELD_END_MOVED, SEEP_HELD_END_LOST};

    (void)state;
    chains[0].group.block_count = 31;
    assert_int_equal(together(), SITES - 1);
    chains[0].group.block_count = 32;
    assert_int_equal(together(), SITES);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        chains[0].group.end = ends[i];
        assert_int_equal(together(), SITES - 1);
    }
    chains[0].group.end = SEEP_HELD_END_HELD;
    chains[0].answer.asked_count = 7;
    chains[0].group.block_count = 7;
    assert_int_equal(together(), SITES - 1);
}

/* A module has many variables, and a stack words of many. */
static void a_namespace_is_no_holder(void **state)
{
    static const enum seep_held_kind kinds[] = {
        SEEP_HELD_KIND_MODULE, SEEP_HELD_KIND_CLASS, SEEP_HELD_KIND_STACK,
        SEEP_HELD_KIND_MAPPING, SEEP_HELD_KIND_FRAME};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (size_t k = 0; k < SITES; k++) {
            chains[k].steps[1].kind = kinds[i];
            chains[k].steps[1].name =
                kinds[i] == SEEP_HELD_KIND_FRAME ? "" : "app";
            chains[k].group.holder = 1;
        }
        assert_int_equal(together(), 0);
    }
    /* All of it by one name: that is a variable, whatever it refers to. */
    for (size_t k = 0; k < SITES; k++) {
        chains[k].steps[0].address = 0x7000 + 0x100 * k;
        chains[k].steps[1].kind = SEEP_HELD_KIND_MODULE;
        chains[k].steps[1].name = "app";
        chains[k].group.shares_edge = true;
    }
    assert_int_equal(together(), SITES);
    chains[2].steps[1].edge_name = "LOG";
    chains[3].group.shares_edge = false;
    assert_int_equal(together(), SITES - 2);
}

/* A list that is a value of the dict is held by the dict. */
static void what_lies_further_up_holds_as_well(void **state)
{
    (void)state;
    chains[4].steps[2] = chains[4].steps[1];
    chains[4].steps[1] = chains[4].steps[0];
    chains[4].steps[0].edge = SEEP_HELD_EDGE_ITEM;
    chains[4].steps[0].name = "list";
    chains[4].steps[0].address = 0x9000;
    chains[4].group.step_count = 3;
    assert_int_equal(together(), SITES);
    assert_line("all 5 call sites that leak or may leak are held by app.CACHE, "
                "a dict of 12,411 items: together they grow by 30.0 MiB/min "
                "(23.3 to 36.7)");
}

/* Where nearly all is of what lies lower, that is told. */
static void the_lowest_that_has_most_is_told(void **state)
{
    (void)state;
    chains[0].steps[0] = chains[0].steps[1];
    chains[0].steps[0].kind = SEEP_HELD_KIND_OBJECT;
    chains[0].steps[0].name = "app.Service";
    chains[0].group.step_count = 1;
    for (size_t i = 1; i < SITES; i++) {
        chains[i].steps[1].kind = SEEP_HELD_KIND_OBJECT;
        chains[i].steps[1].name = "app.Service";
    }
    assert_int_equal(together(), SITES);
    sites[0].growth_bytes_per_s = seep_interval_around(MIB_A_MIN, 0);
    assert_int_equal(together(), SITES - 1);
    assert_int_equal(commons.count, 1);
}

static void what_has_no_address_is_nobody(void **state)
{
    (void)state;
    for (size_t i = 0; i < SITES; i++) {
        chains[i].steps[0].address = 0;
        chains[i].steps[1].address = 0;
    }
    assert_int_equal(together(), 0);
}

/* A row of pointers is another each time that it grows. */
static void a_place_of_a_variable_is_one_whatever_its_address(void **state)
{
    (void)state;
    for (size_t i = 0; i < SITES; i++) {
        chains[i].steps[0].kind = SEEP_HELD_KIND_BLOCK;
        chains[i].steps[0].edge = SEEP_HELD_EDGE_OFFSET;
        chains[i].steps[0].name = "";
        chains[i].steps[0].address = 0x7000 + 0x1000 * i;
        chains[i].steps[1].kind = SEEP_HELD_KIND_GLOBAL;
        chains[i].steps[1].edge = SEEP_HELD_EDGE_NONE;
        chains[i].steps[1].edge_name = "";
        chains[i].steps[1].offset_bytes = 8;
    }
    assert_int_equal(together(), SITES);
    chains[0].steps[1].offset_bytes = 32;
    assert_int_equal(together(), SITES - 1);
    chains[1].steps[1].address = 0x2000;
    assert_int_equal(together(), SITES - 2);
}

static void stacks_of_one_line_have_one_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < SITES; i++) {
        strcpy(sites[i].line_id, "5a08e463");
        chains[i].kept.site_id = "5a08e463";
        sites[i].held = &chains[0].kept;
    }
    assert_int_equal(together(), 0);
    sites[4].held = &chains[4].kept;
    assert_int_equal(together(), SITES);
    /* What the line kept then is counted once. */
    assert_int_equal(commons.list[0].asked_live_bytes, 8 << 20);
    /* Of a function that has the line more is asked than was answered. */
    strcpy(sites[4].line_id, "");
    assert_int_equal(together(), 0);
}

static void assert_told(bool is_told)
{
    struct seep_words_verdict words;
    char *news = seep_words_common_news(&fake.report);
    bool found = false;

    seep_words_verdict(&fake.report, NULL, &words);
    for (size_t i = 0; i < words.reason_count; i++) {
        found |= strstr(words.reasons[i], " are held by app.CACHE") != NULL;
    }
    assert_int_equal(found, is_told);
    assert_int_equal(news != NULL, is_told);
    free(news);
    seep_words_verdict_fini(&words);
}

static void what_is_hardly_more_than_the_first_is_not_told(void **state)
{
    (void)state;
    fake.report.site_count = 2;
    sites[0].growth_bytes_per_s = seep_interval_around(4 * MIB_A_MIN, 0);
    sites[1].growth_bytes_per_s = seep_interval_around(MIB_A_MIN, 0);
    assert_told(true);
    sites[1].growth_bytes_per_s = seep_interval_around(0.99 * MIB_A_MIN, 0);
    assert_told(false);
    assert_int_equal(together(), 2);
}

/* What begins the verdict is held by another. */
static void the_first_thing_to_do_is_of_what_grows_most(void **state)
{
    struct seep_words_verdict words;

    (void)state;
    chains[0].steps[0].address = 0x9000;
    chains[0].steps[0].name = "list";
    chains[0].steps[1].edge_name = "LOG";
    seep_words_verdict(&fake.report, NULL, &words);
    assert_string_equal(
        words.advice[0],
        "app.CACHE: the dict only grows: remove what is done with, or bound it");
    assert_true(strncmp(words.advice[1], "app.LOG: the list only grows", 28) ==
                0);
    seep_words_verdict_fini(&words);
    fill(NULL);
    seep_words_verdict(&fake.report, NULL, &words);
    assert_true(strncmp(words.advice[0], "app.CACHE: ", 11) == 0);
    assert_true(strncmp(words.advice[1], "see where", 9) == 0);
    seep_words_verdict_fini(&words);
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
}

static void the_text_says_it_below_the_verdict(void **state)
{
    const struct seep_text_options options = {.site_limit = 10};
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = 400};

    (void)state;
    seep_view_text_report(&page, &fake.report, &options);
    fclose(page.file);
    assert_has(text, "\n      All 5 call sites that leak or may leak are held "
                     "by app.CACHE, a dict of 12,411 items: together they "
                     "grow by 30.0 MiB/min (23.3 to 36.7).\n");
    assert_true(strstr(text, "All 5 call sites") <
                strstr(text, "97 % of it is at one line."));
    free(text);
}

static void top_says_it_below_the_verdict(void **state)
{
    const struct seep_report *report = &fake.report;
    const struct seep_top_size size = {
        .columns = 400, .lines = 40, .target = "/data"};
    struct seep_top_model model;
    struct seep_top_frame frame;
    bool found = false;

    (void)state;
    seep_top_model_init(&model, 2);
    seep_top_model_take(&model, &report, 1);
    assert_int_equal(seep_top_frame_make(&model, &size, &frame), 0);
    for (size_t i = 0; i < frame.count; i++) {
        found |= strstr(frame.lines[i],
                        "All 5 call sites that leak or may leak are held by "
                        "app.CACHE, a dict of 12,411 items: ") != NULL;
    }
    assert_true(found);
    seep_top_frame_fini(&frame);
    seep_top_model_fini(&model);
}

static void a_check_says_it_behind_its_sites(void **state)
{
    const struct seep_check_limit limit = {.kind = SEEP_CHECK_GROWTH,
                                           .space = SEEP_CHECK_ALL_SPACES};
    struct seep_check_result result = {
        .limit = &limit,
        .report = &fake.report,
        .outcome = SEEP_CHECK_FAIL,
        .measure = {.reason = ""},
        .sites = {&sites[0]},
        .site_count = 1,
        .site_total = 5,
    };
    char *message = seep_check_message(&result);

    (void)state;
    assert_has(message, "; all 5 call sites that leak or may leak are held by "
                        "app.CACHE, a dict of ");
    free(message);
    result.outcome = SEEP_CHECK_PASS;
    message = seep_check_message(&result);
    assert_null(strstr(message, "all 5 call sites"));
    free(message);
}

static void json_has_all_of_them(void **state)
{
    json_t *array;
    json_t *first;

    (void)state;
    chains[1].steps[0].address = 0x9000;
    chains[2].steps[0].address = 0x9000;
    for (size_t i = 0; i < SITES; i++) {
        chains[i].steps[1].edge = SEEP_HELD_EDGE_ITEM;
    }
    array = seep_json_held_together(&fake.report);
    assert_int_equal(json_array_size(array), 2);
    first = json_array_get(array, 0);
    assert_string_equal(json_string_value(json_object_get(first, "held_by")),
                        "app[...], a dict of 12,411 items");
    assert_int_equal(json_integer_value(json_object_get(first, "count")), 3);
    assert_int_equal(json_integer_value(json_object_get(first, "asked")), 5);
    assert_int_equal(json_array_size(json_object_get(first, "sites")), 3);
    assert_true(json_is_true(json_object_get(first, "more_than_first")));
    json_decref(array);
    fake.report.site_count = 1;
    array = seep_json_held_together(&fake.report);
    assert_int_equal(json_array_size(array), 0);
    json_decref(array);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fill, close_commons)
    const struct CMUnitTest tests[] = {
        TEST(what_one_dict_holds_is_added_up),
        TEST(nothing_is_claimed_of_who_was_not_asked),
        TEST(the_same_words_of_two_things_are_not_one),
        TEST(an_address_is_one_thing_only_while_it_is_asked),
        TEST(what_is_not_clear_is_not_counted),
        TEST(a_namespace_is_no_holder),
        TEST(what_lies_further_up_holds_as_well),
        TEST(the_lowest_that_has_most_is_told),
        TEST(what_has_no_address_is_nobody),
        TEST(a_place_of_a_variable_is_one_whatever_its_address),
        TEST(stacks_of_one_line_have_one_answer),
        TEST(what_is_hardly_more_than_the_first_is_not_told),
        TEST(the_first_thing_to_do_is_of_what_grows_most),
        TEST(the_text_says_it_below_the_verdict),
        TEST(top_says_it_below_the_verdict),
        TEST(a_check_says_it_behind_its_sites),
        TEST(json_has_all_of_them),
    };

    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
        return 77; /* skipped */
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
