/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/top_frame: the lines of a frame, at any size. */
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

#define PROCESSES 12

static struct fake_report fakes[PROCESSES];
static const struct seep_report *reports[PROCESSES];
static char paths[PROCESSES][32];
static struct seep_top_model model;
static struct seep_top_frame frame;

static int open_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < PROCESSES; i++) {
        fake_report_fill(&fakes[i]);
        fakes[i].report.site_count = 3;
        fakes[i].report.pid = 5000 + (uint32_t)i;
        snprintf(paths[i], sizeof(paths[i]), "/data/%zu.seep", i);
        fakes[i].report.path = paths[i];
        reports[i] = &fakes[i].report;
    }
    seep_top_model_init(&model, 2);
    seep_top_model_take(&model, reports, 1);
    return 0;
}

static int close_model(void **state)
{
    (void)state;
    seep_top_frame_fini(&frame);
    seep_top_model_fini(&model);
    return 0;
}

static void make(size_t columns, size_t lines, const char *notice)
{
    const struct seep_top_size size = {.columns = columns,
                                       .lines = lines,
                                       .notice = notice,
                                       .target = "/data"};

    seep_top_frame_fini(&frame);
    assert_int_equal(seep_top_frame_make(&model, &size, &frame), 0);
}

/* The text without its colours; to be freed. */
static char *plain(const char *line)
{
    char *text = strdup(line);
    char *out = text;

    while (*line != '\0') {
        struct seep_top_piece piece = seep_top_frame_piece(line);

        assert_int_not_equal(piece.bytes, 0); /* an escape not of ours */
        if (!piece.is_style) {
            out = mempcpy(out, line, piece.bytes);
        }
        line += piece.bytes;
    }
    *out = '\0';
    return text;
}

static void assert_fits(size_t columns, size_t lines)
{
    assert_true(lines == 0 || frame.count <= lines);
    assert_true(frame.count > 0);
    for (size_t i = 0; i < frame.count; i++) {
        char *text = plain(frame.lines[i]);

        for (const char *c = text; *c != '\0'; c++) {
            assert_true((unsigned char)*c >= ' ' && *c != '\x7f');
        }
        assert_true(seep_clean_columns(text) <= columns);
        free(text);
    }
}

/* Index of the first line with @part; none: SEEP_TOP_NO_LINE. */
static size_t line_with(const char *part)
{
    for (size_t i = 0; i < frame.count; i++) {
        char *text = plain(frame.lines[i]);
        bool found = strstr(text, part) != NULL;

        free(text);
        if (found) {
            return i;
        }
    }
    return SEEP_TOP_NO_LINE;
}

static void assert_has(const char *part)
{
    if (line_with(part) == SEEP_TOP_NO_LINE) {
        for (size_t i = 0; i < frame.count; i++) {
            print_message("%s\n", frame.lines[i]);
        }
        fail_msg("\"%s\" is not in the frame above", part);
    }
}

static void a_frame_tells_who_what_and_where(void **state)
{
    (void)state;
    make(80, 24, NULL);
    assert_fits(80, 24);
    assert_int_equal(frame.count, 24);
    assert_int_equal(line_with("seep top: python3 serve.py, pid 5000"), 0);
    assert_has("          by signal 9");
    assert_int_equal(line_with("LEAK"), 2);
    assert_has("growth/min");
    assert_has("serve.py:31 handle");
    assert_int_equal(frame.selected, line_with(" leak "));
    assert_int_equal(line_with("h help  q quit"), 23);
}

static void how_it_ended_is_told_however_long_its_command_is(void **state)
{
    static const char *const words[] = {
        "/usr/bin/python3", "/srv/models/of/this/year/serve.py",
        "--model",          "/srv/models/of/this/year/that/have/long/names",
        "--listen",         "unix:/run/models/of/this/year/serve.socket"};

    (void)state;
    fakes[0].report.arguments = words;
    fakes[0].report.argument_count = sizeof(words) / sizeof(words[0]);
    make(200, 24, NULL);
    assert_has("--model");
    assert_has("killed by signal 9");
    make(80, 24, NULL);
    assert_int_equal(line_with("seep top: python3 serve.py, pid 5000"), 0);
    assert_has("by signal 9");
    make(120, 20, NULL);
    assert_has("killed by signal 9");
}

static void the_leak_is_the_first_row_at_any_width(void **state)
{
    static const size_t widths[] = {20, 40, 80, 120, 200, 400};

    (void)state;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        make(widths[i], 30, NULL);
        assert_fits(widths[i], 30);
        assert_int_equal(frame.selected, line_with(" leak "));
        assert_true(frame.selected < line_with(" suspect "));
    }
}

static void every_size_down_to_one_character_fits(void **state)
{
    (void)state;
    seep_top_model_take(&model, reports, PROCESSES);
    for (int pane = SEEP_TOP_SITES; pane <= SEEP_TOP_HELP; pane++) {
        model.pane = (enum seep_top_pane)pane;
        for (size_t lines = 1; lines < 40; lines += 1 + lines / 8) {
            for (size_t columns = 1; columns < 260; columns += 7) {
                make(columns, lines, lines % 2 == 0 ? "a notice" : NULL);
                assert_fits(columns, lines);
            }
        }
    }
}

static void twenty_by_five_has_the_process_the_verdict_and_a_row(void **state)
{
    (void)state;
    make(20, 5, "something to note");
    assert_fits(20, 5);
    assert_int_equal(line_with("python3 serve.py"), 0);
    assert_int_equal(line_with("LEAK  python3 serve"), 1);
    assert_int_equal(line_with(" leak     serve.py"), frame.selected);
    assert_int_equal(line_with("something to note"), 4);
    make(20, 5, NULL);
    assert_int_equal(line_with("h help"), 4);
}

static void hostile_names_do_no_harm(void **state)
{
    (void)state;
    make(200, 40, "a notice with \033[2J in it");
    assert_fits(200, 40);
    assert_has("put\\x1b[2J\\xff\\u{202e}");
    assert_has("a notice with \\x1b[2J in it");
    model.row = 1;
    strcpy(model.site_id, "77aa00112233");
    model.pane = SEEP_TOP_STACK;
    make(200, 40, NULL);
    assert_fits(200, 40);
    assert_has("site 77aa0011");
}

static void of_several_processes_one_is_marked(void **state)
{
    (void)state;
    seep_top_model_take(&model, reports, PROCESSES);
    seep_top_model_press(&model, '9');
    make(100, 30, NULL);
    assert_fits(100, 30);
    assert_int_equal(frame.process, line_with(" 5008 "));
    assert_int_equal(line_with("pid 5008"), 0);
    assert_has("Tab process");
}

/* Each would have three hours; the group that they share has one. */
static void processes_of_one_command_are_told_by_their_sum(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        fake_report_become(&fakes[i], SEEP_VERDICT_LEAK);
        fakes[i].report.path = paths[i];
        fakes[i].report.pid = 5000 + (uint32_t)i;
        fakes[i].report.state = SEEP_STATE_RUNNING;
        fakes[i].report.memory.cgroup.last_bytes = 3.0 * (1 << 30);
        fakes[i].report.memory.machine_bytes = 64ULL << 30;
    }
    seep_top_model_take(&model, reports, 3);
    for (size_t lines = 24; lines <= 60; lines += 12) {
        make(80, lines, NULL);
        assert_fits(80, lines);
        assert_has("LEAK  3 processes of python3 serve.py together grow by 124 "
                   "MiB/min (122 to");
        assert_has(
            "      At this rate the cgroup's 8 GiB will be reached in 38 "
            "min");
        assert_true(line_with("3 processes of") < line_with("5001"));
        assert_int_equal(frame.process, line_with("5000  leak"));
        assert_int_not_equal(frame.selected, SEEP_TOP_NO_LINE);
        assert_true(frame.selected < lines - 1);
    }
    make(80, 0, NULL); /* for a script nothing is cut */
    assert_has("LEAK  3 processes of python3 serve.py together grow by 124");
    assert_has("38 min");
    seep_top_model_take(&model, reports, 1); /* alone it is no family */
    make(80, 24, NULL);
    assert_int_equal(line_with("3 processes"), SEEP_TOP_NO_LINE);
    assert_int_equal(line_with("38 min"), SEEP_TOP_NO_LINE);
    fakes[1].report.labels = "model=other";
    seep_top_model_take(&model, reports, 2); /* nor are two that differ */
    make(80, 24, NULL);
    assert_int_equal(line_with("processes of"), SEEP_TOP_NO_LINE);
}

static void without_a_process_it_says_so(void **state)
{
    (void)state;
    seep_top_model_take(&model, NULL, 0);
    make(80, 24, NULL);
    assert_fits(80, 24);
    assert_int_equal(line_with("/data: nothing is recorded there yet"), 0);
    assert_int_equal(frame.selected, SEEP_TOP_NO_LINE);
}

static void too_little_data_is_said_as_such(void **state)
{
    (void)state;
    fake_report_become(&fakes[0], SEEP_VERDICT_INSUFFICIENT);
    fakes[0].report.site_count = 0;
    seep_top_model_take(&model, reports, 1);
    make(80, 24, NULL);
    assert_fits(80, 24);
    assert_int_equal(line_with("INSUFFICIENT DATA"), 2);
    assert_has("no call site recorded yet");
}

static void a_filter_that_nothing_passes_is_told(void **state)
{
    (void)state;
    strcpy(model.filter, "zzz");
    seep_top_model_take(&model, reports, 1);
    make(80, 24, NULL);
    assert_has("none of 3 call sites matches: zzz");
    assert_int_equal(frame.selected, SEEP_TOP_NO_LINE);
}

static void what_is_typed_stands_in_the_last_line(void **state)
{
    (void)state;
    seep_top_model_press(&model, '/');
    seep_top_model_press(&model, 'x');
    make(80, 24, NULL);
    assert_int_equal(line_with("/x_"), 23);
}

static void gpus_are_told_with_what_is_free_and_until_when(void **state)
{
    (void)state;
    fake_report_become(&fakes[0], SEEP_VERDICT_LEAK);
    fake_report_give_devices(&fakes[0]);
    seep_top_model_take(&model, reports, 1);
    make(200, 50, NULL);
    assert_fits(200, 50);
    assert_has("GPU 0");
    assert_has("GPU 1");
    assert_true(line_with(" free, full in ") != SEEP_TOP_NO_LINE);
}

static void a_stack_is_scrolled_to_its_end_and_no_further(void **state)
{
    (void)state;
    seep_top_model_press(&model, SEEP_TOP_KEY_ENTER);
    make(80, 8, NULL);
    assert_true(frame.scroll_most > 0);
    model.scroll = 100000;
    make(80, 8, NULL);
    assert_fits(80, 8);
    char *last = plain(frame.lines[5]);
    assert_true(*last != '\0' || frame.scroll_most > 0);
    free(last);
    make(80, 60, NULL);
    assert_int_equal(frame.scroll_most, 0);
}

static void a_site_that_is_gone_is_said_to_be(void **state)
{
    (void)state;
    seep_top_model_press(&model, SEEP_TOP_KEY_ENTER);
    fakes[0].report.site_count = 0;
    seep_top_model_take(&model, reports, 1);
    make(80, 24, NULL);
    assert_has("site 3f9a0011 is no longer among the call sites");
}

static void for_a_script_there_are_no_keys_and_as_many_rows(void **state)
{
    const struct seep_top_size size = {.columns = 120, .rows = 2};
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    (void)state;
    assert_int_equal(seep_top_frame_make(&model, &size, &frame), 0);
    assert_int_equal(line_with("q quit"), SEEP_TOP_NO_LINE);
    assert_int_not_equal(line_with(" suspect "), SEEP_TOP_NO_LINE);
    assert_int_equal(line_with("serve.py:8"), SEEP_TOP_NO_LINE);
    seep_top_frame_print(&frame, file, false);
    fclose(file);
    assert_null(strchr(text, '\033'));
    free(text);
}

static void colours_are_closed_where_a_line_is_cut(void **state)
{
    (void)state;
    for (size_t columns = 1; columns < 80; columns++) {
        make(columns, 24, NULL);
        for (size_t i = 0; i < frame.count; i++) {
            enum seep_style style = SEEP_STYLE_PLAIN;

            for (const char *at = frame.lines[i]; *at != '\0';) {
                struct seep_top_piece piece = seep_top_frame_piece(at);
                style = piece.is_style ? piece.style : style;
                at += piece.bytes;
            }
            assert_int_equal(style, SEEP_STYLE_PLAIN);
        }
    }
}

#define WITH_MODEL(test) \
    cmocka_unit_test_setup_teardown(test, open_model, close_model)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MODEL(a_frame_tells_who_what_and_where),
        WITH_MODEL(how_it_ended_is_told_however_long_its_command_is),
        WITH_MODEL(the_leak_is_the_first_row_at_any_width),
        WITH_MODEL(every_size_down_to_one_character_fits),
        WITH_MODEL(twenty_by_five_has_the_process_the_verdict_and_a_row),
        WITH_MODEL(hostile_names_do_no_harm),
        WITH_MODEL(of_several_processes_one_is_marked),
        WITH_MODEL(processes_of_one_command_are_told_by_their_sum),
        WITH_MODEL(without_a_process_it_says_so),
        WITH_MODEL(too_little_data_is_said_as_such),
        WITH_MODEL(a_filter_that_nothing_passes_is_told),
        WITH_MODEL(what_is_typed_stands_in_the_last_line),
        WITH_MODEL(gpus_are_told_with_what_is_free_and_until_when),
        WITH_MODEL(a_stack_is_scrolled_to_its_end_and_no_further),
        WITH_MODEL(a_site_that_is_gone_is_said_to_be),
        WITH_MODEL(for_a_script_there_are_no_keys_and_as_many_rows),
        WITH_MODEL(colours_are_closed_where_a_line_is_cut),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
