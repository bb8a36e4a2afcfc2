/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/top_model, top_press: what is shown, and what keys change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_report.h"
#include "text/page.h"
#include "top/top.h"

#define PROCESSES 3

static struct fake_report fakes[PROCESSES];
static const struct seep_report *reports[PROCESSES];
static char paths[PROCESSES][32];
static struct seep_top_model model;

/* Three processes with the same call sites: a leak, a hostile suspect, a
 * step. */
static int open_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < PROCESSES; i++) {
        fake_report_fill(&fakes[i]);
        fakes[i].report.site_count = 3;
        fakes[i].report.pid = 100 + (uint32_t)i;
        snprintf(paths[i], sizeof(paths[i]), "/data/%zu.seep", i);
        fakes[i].report.path = paths[i];
        reports[i] = &fakes[i].report;
    }
    seep_top_model_init(&model, 2);
    seep_top_model_take(&model, reports, PROCESSES);
    return 0;
}

static int close_model(void **state)
{
    (void)state;
    seep_top_model_fini(&model);
    return 0;
}

static enum seep_top_answer press(int key)
{
    return seep_top_model_press(&model, key);
}

static void type(const char *text)
{
    press('/');
    for (; *text != '\0'; text++) {
        press(*text);
    }
    press(SEEP_TOP_KEY_ENTER);
}

static uint32_t shown_pid(void)
{
    return seep_top_model_report(&model)->pid;
}

static const char *site_at(size_t row)
{
    return model.rows[row]->site->id;
}

static void rows_come_in_the_reports_order(void **state)
{
    (void)state;
    assert_int_equal(model.row_count, 3);
    assert_string_equal(site_at(0), "3f9a00112233");
    assert_string_equal(site_at(2), "c0ffee112233");
}

static void keys_change_the_order(void **state)
{
    (void)state;
    fakes[0].sites[2].live_bytes = 1ULL << 40;
    fakes[0].sites[1].live_count = 1e9;
    assert_int_equal(press('l'), SEEP_TOP_DRAW);
    assert_string_equal(site_at(0), "c0ffee112233");
    assert_int_equal(press('n'), SEEP_TOP_DRAW);
    assert_string_equal(site_at(0), "77aa00112233");
    assert_int_equal(press('w'), SEEP_TOP_DRAW);
    assert_true(strcmp(model.rows[0]->where, model.rows[1]->where) <= 0);
    assert_true(strcmp(model.rows[1]->where, model.rows[2]->where) <= 0);
    assert_int_equal(press('g'), SEEP_TOP_DRAW);
    assert_string_equal(site_at(0), "3f9a00112233");
}

static void a_filter_is_looked_for_in_where_class_and_space(void **state)
{
    (void)state;
    type("LOADS");
    assert_int_equal(model.row_count, 2);
    press(SEEP_TOP_KEY_ESCAPE);
    assert_int_equal(model.row_count, 3);
    type("suspect");
    assert_int_equal(model.row_count, 1);
    press(SEEP_TOP_KEY_ESCAPE);
    fakes[0].sites[2].space = SEEP_SPACE_MAPPED;
    type("mapp");
    assert_int_equal(model.row_count, 1);
    assert_string_equal(site_at(0), "c0ffee112233");
    press(SEEP_TOP_KEY_ESCAPE);
    type("nothing like it");
    assert_int_equal(model.row_count, 0);
    assert_int_equal(model.row_count, 0);
    assert_int_equal(press(SEEP_TOP_KEY_DOWN), SEEP_TOP_NOTHING);
    assert_int_equal(press(SEEP_TOP_KEY_ENTER), SEEP_TOP_NOTHING);
}

static void letters_belong_to_the_filter_while_it_is_typed(void **state)
{
    (void)state;
    press('/');
    assert_int_equal(press('q'), SEEP_TOP_DRAW);
    press(0xe9);
    press(0x20ac);
    assert_string_equal(model.filter, "qé€");
    press(SEEP_TOP_KEY_BACKSPACE);
    assert_string_equal(model.filter, "qé");
    press(SEEP_TOP_KEY_BACKSPACE);
    press(SEEP_TOP_KEY_BACKSPACE);
    press(SEEP_TOP_KEY_BACKSPACE);
    assert_string_equal(model.filter, "");
    press(SEEP_TOP_KEY_ENTER);
    assert_int_equal(press('q'), SEEP_TOP_QUIT);
}

static void a_filter_without_end_is_cut(void **state)
{
    (void)state;
    press('/');
    for (int i = 0; i < 1000; i++) {
        press(0x20ac);
    }
    assert_true(strlen(model.filter) < SEEP_TOP_FILTER_BYTES);
    assert_int_equal(strlen(model.filter) % 3, 0);
    assert_int_equal(press(SEEP_TOP_KEY_UP), SEEP_TOP_NOTHING);
    assert_int_equal(press(0x07), SEEP_TOP_NOTHING);
}

static void spaces_are_shown_one_after_the_other(void **state)
{
    size_t count = fakes[0].report.space_count;

    (void)state;
    assert_true(count >= 1);
    for (size_t i = 0; i < count; i++) {
        press('s');
        assert_int_equal(model.space, fakes[0].spaces[i].space);
    }
    press('s');
    assert_int_equal(model.space, -1);
}

static void the_selection_stays_on_its_site(void **state)
{
    (void)state;
    press(SEEP_TOP_KEY_DOWN);
    assert_string_equal(site_at(model.row), "77aa00112233");
    struct seep_report_site moved = fakes[0].sites[1];
    fakes[0].sites[1] = fakes[0].sites[2];
    fakes[0].sites[2] = moved;
    seep_top_model_take(&model, reports, PROCESSES);
    assert_string_equal(site_at(model.row), "77aa00112233");
    assert_int_equal(model.row, 2);
    fakes[0].report.site_count = 2;
    seep_top_model_take(&model, reports, PROCESSES);
    assert_int_equal(model.row, 1);
    fakes[0].report.site_count = 0;
    seep_top_model_take(&model, reports, PROCESSES);
    assert_int_equal(model.row_count, 0);
}

static void who_chose_nothing_sees_the_first(void **state)
{
    (void)state;
    press(SEEP_TOP_KEY_DOWN);
    press(SEEP_TOP_KEY_HOME);
    struct seep_report_site moved = fakes[0].sites[0];
    fakes[0].sites[0] = fakes[0].sites[2];
    fakes[0].sites[2] = moved;
    seep_top_model_take(&model, reports, PROCESSES);
    assert_int_equal(model.row, 0);
}

static void tab_goes_through_processes_and_a_number_to_one(void **state)
{
    (void)state;
    assert_int_equal(shown_pid(), 100);
    press(SEEP_TOP_KEY_TAB);
    assert_int_equal(shown_pid(), 101);
    press(SEEP_TOP_KEY_BACK_TAB);
    press(SEEP_TOP_KEY_BACK_TAB);
    assert_int_equal(shown_pid(), 102);
    press(SEEP_TOP_KEY_TAB);
    assert_int_equal(shown_pid(), 100);
    press('3');
    assert_int_equal(shown_pid(), 102);
    assert_int_equal(press('4'), SEEP_TOP_NOTHING);
    assert_int_equal(shown_pid(), 102);
}

static void a_chosen_process_stays_when_others_come_and_go(void **state)
{
    const struct seep_report *fewer[] = {reports[2], reports[1]};

    (void)state;
    press('2');
    seep_top_model_take(&model, fewer, 2);
    assert_int_equal(model.process, 1);
    assert_int_equal(shown_pid(), 101);
    seep_top_model_take(&model, fewer, 1);
    assert_int_equal(shown_pid(), 102);
    seep_top_model_take(&model, reports, PROCESSES);
    assert_int_equal(shown_pid(), 101);
}

static void without_a_process_keys_do_no_harm(void **state)
{
    static const int keys[] = {'g',
                               'l',
                               's',
                               'n',
                               'w',
                               'p',
                               'p',
                               '1',
                               'k',
                               'j',
                               '+',
                               '-',
                               'r',
                               '?',
                               'h',
                               SEEP_TOP_KEY_TAB,
                               SEEP_TOP_KEY_BACK_TAB,
                               SEEP_TOP_KEY_ENTER,
                               SEEP_TOP_KEY_UP,
                               SEEP_TOP_KEY_DOWN,
                               SEEP_TOP_KEY_LEFT,
                               SEEP_TOP_KEY_RIGHT,
                               SEEP_TOP_KEY_PAGE_UP,
                               SEEP_TOP_KEY_PAGE_DOWN,
                               SEEP_TOP_KEY_HOME,
                               SEEP_TOP_KEY_END,
                               SEEP_TOP_KEY_ESCAPE,
                               0,
                               0x1f600};

    (void)state;
    seep_top_model_take(&model, NULL, 0);
    assert_null(seep_top_model_report(&model));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        assert_int_not_equal(press(keys[i]), SEEP_TOP_QUIT);
    }
}

static void enter_opens_the_stack_and_closes_it(void **state)
{
    (void)state;
    press(SEEP_TOP_KEY_DOWN);
    press(SEEP_TOP_KEY_ENTER);
    assert_int_equal(model.pane, SEEP_TOP_STACK);
    assert_string_equal(model.site_id, "77aa00112233");
    press(SEEP_TOP_KEY_DOWN);
    assert_int_equal(model.scroll, 1);
    assert_int_equal(model.row, 1);
    press(SEEP_TOP_KEY_ESCAPE);
    assert_int_equal(model.pane, SEEP_TOP_SITES);
    press(SEEP_TOP_KEY_RIGHT);
    assert_int_equal(model.pane, SEEP_TOP_STACK);
    press(SEEP_TOP_KEY_LEFT);
    press('h');
    assert_int_equal(model.pane, SEEP_TOP_HELP);
    press('h');
    assert_int_equal(model.pane, SEEP_TOP_SITES);
}

static void the_interval_goes_from_half_a_second_to_minutes(void **state)
{
    (void)state;
    press('+');
    assert_true(model.interval_s > 4.9 && model.interval_s < 5.1);
    for (int i = 0; i < 20; i++) {
        press('-');
    }
    assert_true(model.interval_s >= SEEP_TOP_INTERVAL_LEAST_S);
    assert_int_equal(press('-'), SEEP_TOP_NOTHING);
    for (int i = 0; i < 20; i++) {
        press('+');
    }
    assert_true(model.interval_s <= SEEP_TOP_INTERVAL_MOST_S);
    assert_int_equal(press('+'), SEEP_TOP_NOTHING);
}

static void a_pause_ends_with_a_reading(void **state)
{
    (void)state;
    assert_int_equal(press('p'), SEEP_TOP_DRAW);
    assert_true(model.paused);
    assert_int_equal(press('p'), SEEP_TOP_READ);
    assert_false(model.paused);
    assert_int_equal(press('r'), SEEP_TOP_READ);
}

static void what_is_suppressed_is_not_shown(void **state)
{
    (void)state;
    fakes[0].sites[0].suppressed_by = "handle";
    seep_top_model_take(&model, reports, PROCESSES);
    assert_int_equal(model.row_count, 2);
    assert_string_equal(site_at(0), "77aa00112233");
}

static void orders_have_names(void **state)
{
    (void)state;
    assert_string_equal(seep_top_sort_names[SEEP_TOP_BY_COUNT], "count");
}

#define WITH_MODEL(test) \
    cmocka_unit_test_setup_teardown(test, open_model, close_model)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MODEL(rows_come_in_the_reports_order),
        WITH_MODEL(keys_change_the_order),
        WITH_MODEL(a_filter_is_looked_for_in_where_class_and_space),
        WITH_MODEL(letters_belong_to_the_filter_while_it_is_typed),
        WITH_MODEL(a_filter_without_end_is_cut),
        WITH_MODEL(spaces_are_shown_one_after_the_other),
        WITH_MODEL(the_selection_stays_on_its_site),
        WITH_MODEL(who_chose_nothing_sees_the_first),
        WITH_MODEL(tab_goes_through_processes_and_a_number_to_one),
        WITH_MODEL(a_chosen_process_stays_when_others_come_and_go),
        WITH_MODEL(without_a_process_keys_do_no_harm),
        WITH_MODEL(enter_opens_the_stack_and_closes_it),
        WITH_MODEL(the_interval_goes_from_half_a_second_to_minutes),
        WITH_MODEL(a_pause_ends_with_a_reading),
        WITH_MODEL(what_is_suppressed_is_not_shown),
        WITH_MODEL(orders_have_names),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
