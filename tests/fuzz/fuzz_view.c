/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry: a damaged recording, as fuzz_report.c has it, is shown as
 * people and machines would see it, by every kind of row and in any width. Two
 * bytes of what is asked, then patches of 12 bytes: of frames, of strings, of
 * fields and of any word.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "metrics/metrics.h"
#include "read/programs.h"
#include "recording_damage.h"
#include "text/page.h"
#include "text/report.h"
#include "top/top.h"
#include "json/json.h"

#define PATCH_BYTES 12
#define WIDTHS 4 /* columns a step */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Somewhere in what is used of a section, whatever the header says of that. */
static uint64_t place(uint64_t used, uint64_t capacity, uint32_t which)
{
    used = used < capacity ? used + 1 : capacity;
    return which % (used > 0 ? used : 1);
}

/* A frame of Python, of a thread, of what is not there or of machine code. */
static void patch_frame(const struct seep_view *view, uint32_t which,
                        uint64_t value)
{
    uint64_t used =
        atomic_load_explicit(&view->header->frames_used, memory_order_relaxed);
    uint64_t code = value % 5;

    if (code != 4) {
        value = SEEP_FRAME_IS_CODE | code << SEEP_FRAME_LINE_BITS |
                (value >> 8 & SEEP_FRAME_LINE_MASK);
    }
    atomic_store_explicit(
        &view->frames[place(used, view->frame_capacity, which)], value,
        memory_order_relaxed);
}

/* Eight bytes of a name, whatever they are. */
static void patch_string(const struct seep_view *view, uint32_t which,
                         uint64_t value)
{
    uint64_t used = atomic_load_explicit(&view->header->string_bytes_used,
                                         memory_order_relaxed);

    memcpy(view->strings +
               place(used, view->string_bytes - sizeof(value), which),
           &value, sizeof(value));
}

static void patch(struct recording_damage *damage, const uint8_t *data)
{
    uint32_t which;
    uint64_t value;

    memcpy(&which, data, sizeof(which));
    memcpy(&value, data + sizeof(which), sizeof(value));
    switch (which >> 30) {
    case 0:
        patch_frame(&damage->builder.view, which, value);
        break;
    case 1:
        patch_string(&damage->builder.view, which, value);
        break;
    case 2:
        recording_damage_field(damage, (int)(which % RECORDING_DAMAGE_FIELDS),
                               value);
        break;
    default:
        recording_damage_word(damage, which & 0x3fffffff, value);
        break;
    }
}

/* Every limit, on what is no report of an honest run. */
static void check(const struct seep_report *report, struct seep_page *page)
{
    struct seep_check_limit limits[SEEP_CHECK_COUNT];
    struct seep_check_options options = {
        .limits = limits,
        .count = SEEP_CHECK_COUNT,
        .warmup_s = SEEP_CHECK_WARMUP_UNTOLD,
        .baseline = &report,
        .baseline_count = 1,
    };
    struct seep_check_result *results;
    struct seep_check_set set = {.reports = &report, .report_count = 1};

    for (int i = 0; i < SEEP_CHECK_COUNT; i++) {
        limits[i] = (struct seep_check_limit){.kind = (enum seep_check_kind)i,
                                              .space = SEEP_CHECK_ALL_SPACES};
    }
    if (seep_check_run(&options, &report, 1, &results, &set.count) != 0) {
        abort();
    }
    set.results = results;
    seep_view_check(page, &set);
    if (seep_json_check(page->file, &set) != 0 ||
        seep_export_github(page->file, NULL, &set) != 0) {
        abort();
    }
    free(results);
}

/* Whatever a recording says, no line is of another's making. */
static void measure(const struct seep_report *report)
{
    const struct seep_followed followed = {.path = "x", .report = report};
    const struct seep_followed *list[] = {&followed};
    struct seep_metrics_input input = {
        .list = list, .count = 1, .site_limit = 10};
    struct seep_metrics_totals totals = {0};

    for (int format = 0; format < 2; format++) {
        struct seep_metrics_text text = {.format =
                                             (enum seep_metrics_format)format};
        char *rest = NULL;

        if (seep_metrics_make(&input, &totals, &text) != 0) {
            abort();
        }
        for (char *line = strtok_r(text.text, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest)) {
            if (strncmp(line, "seep_", 5) != 0 && strncmp(line, "# ", 2) != 0) {
                abort();
            }
        }
        free(text.text);
    }
    seep_metrics_totals_fini(&totals);
}

/* The report against one of an honest run, and against itself. */
static void compare(const struct seep_report *before,
                    const struct seep_report *now, struct seep_page *page)
{
    struct seep_diff_set set;

    if (seep_diff_set_make(&before, 1, &now, 1, &set) != 0) {
        abort();
    }
    set.before_name = strdup("before");
    set.now_name = strdup("now");
    seep_view_diff(page, &set, 0);
    if (seep_json_diff(page->file, &set, 0) != 0) {
        abort();
    }
    seep_diff_set_close(&set);
}

/* Keys that look at everything; no line is wider than the terminal. */
static void watch(const struct seep_report *const *reports, size_t count,
                  const struct seep_page *page)
{
    static const int keys[] = {
        'n', 'w', 'l', SEEP_TOP_KEY_DOWN, SEEP_TOP_KEY_ENTER, 's'};
    const struct seep_top_size size = {
        .columns = page->columns, .lines = 24, .target = "x"};
    struct seep_top_model model;

    seep_top_model_init(&model, 1);
    seep_top_model_take(&model, reports, count);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct seep_top_frame frame;

        if (seep_top_frame_make(&model, &size, &frame) != 0) {
            abort();
        }
        seep_top_frame_print(&frame, page->file, true);
        seep_top_frame_fini(&frame);
        seep_top_model_press(&model, keys[i]);
    }
    seep_top_model_fini(&model);
}

static void show(const struct seep_report *honest, struct seep_report *report,
                 uint8_t how, size_t columns)
{
    const struct seep_report *reports[] = {report, report};
    const struct seep_text_options text = {
        .site_limit = how & 1 ? 2 : 0,
        .stacks = (how & 2) != 0,
        .whole_stacks = (how & 4) != 0,
        .brief = (how & 1) != 0,
    };
    const struct seep_json_options json = {.site_limit = 0};
    size_t count = how & 8 ? 2 : 1;
    struct seep_page page;
    FILE *file = fopen("/dev/null", "w");

    if (file == NULL) {
        abort();
    }
    seep_page_init(&page, file, SEEP_COLOR_ALWAYS);
    page.columns = columns;
    seep_view_text_reports(&page, reports, count, &text);
    seep_view_text_verdict(&page, report);
    seep_view_text_info(&page, report);
    if (seep_json_reports(file, reports, count, 0, &json) != 0 ||
        seep_json_info(file, reports, count, 0) != 0) {
        abort();
    }
    check(report, &page);
    measure(report);
    compare(honest, report, &page);
    compare(report, honest, &page);
    compare(report, report, &page);
    watch(reports, count, &page);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct recording_damage damage;
    struct seep_report_options options = {.symbols = false};
    static struct seep_report *honest;
    struct seep_report *report;

    if (size < 2) {
        return 0;
    }
    if (damage.whole == NULL) {
        seep_clean_init();
        recording_damage_init(&damage);
        honest = recording_damage_open(&damage, damage.builder.size_bytes, true,
                                       &options);
    }
    recording_damage_reset(&damage);
    for (size_t at = 2; at + PATCH_BYTES <= size; at += PATCH_BYTES) {
        patch(&damage, data + at);
    }
    options.by = (enum seep_grouping)(data[0] % SEEP_GROUPING_COUNT);
    report = recording_damage_open(&damage, damage.builder.size_bytes, true,
                                   &options);
    if (report != NULL) {
        show(honest, report, data[1], (size_t)(data[0] / 8) * WIDTHS * 2);
        seep_report_close(report);
    }
    return 0;
}
