/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a recording holds, how full it is, what it lost and what it cost.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "table.h"
#include "units.h"
#include "view_marks.h"
#include "view_text.h"
#include "words.h"

#define INDENT 11
#define MARKS_MOST 32
#define NEARLY_FULL 0.9
#define NS_PER_S UINT64_C(1000000000)

static void line(struct seep_page *page, const char *label, const char *text)
{
    seep_page_paragraph(page, SEEP_INK_STRONG, label, INDENT, "%s", text);
}

static void print_process(struct seep_page *page,
                          const struct seep_report *report)
{
    char text[160];
    char state[128];
    char duration[SEEP_UNITS_TEXT_BYTES];
    char *command = seep_words_command(report);
    time_t seconds = (time_t)(report->start_realtime_ns / NS_PER_S);
    struct tm utc = {0};

    gmtime_r(&seconds, &utc);
    line(page, "command", command == NULL ? "?" : command);
    free(command);
    line(page, "program", report->executable);
    seep_words_state(report, state, sizeof(state));
    seep_page_paragraph(
        page, SEEP_INK_STRONG, "process", INDENT, "pid %u%s on %s, %s",
        report->pid, report->is_fork ? " (a fork)" : "", report->host, state);
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc);
    seep_page_paragraph(page, SEEP_INK_STRONG, "started", INDENT, "%s, for %s",
                        text,
                        seep_units_duration(report->duration_s, duration));
    if (*report->labels != '\0') {
        line(page, "labels", report->labels);
    }
    if (*report->allocator != '\0') {
        line(page, "malloc of", report->allocator);
    }
}

/* A process without Python has nothing to say of it. */
static void print_python(struct seep_page *page,
                         const struct seep_report *report)
{
    char version[32];

    if (!seep_words_has_python(report)) {
        return;
    }
    seep_words_python_version(report->python_version, version, sizeof(version));
    seep_page_paragraph(
        page, SEEP_INK_STRONG, "python", INDENT, "%s; frames %s; objects %s",
        report->python_version == 0 ? "of no known version" : version,
        seep_python_state_words(report->python_state),
        seep_python_objects_words(report->python_objects));
}

static void print_devices(struct seep_page *page,
                          const struct seep_report *report)
{
    for (size_t i = 0; i < report->device_count; i++) {
        const struct seep_report_device *device = &report->devices[i];
        char name[SEEP_WORDS_GPU_BYTES];
        char total[SEEP_UNITS_TEXT_BYTES];
        char now[SEEP_UNITS_TEXT_BYTES];
        char low[SEEP_UNITS_TEXT_BYTES];

        seep_words_gpu((int)device->ordinal, name);
        seep_units_bytes((double)device->total_bytes, total);
        seep_units_bytes((double)device->free_bytes, now);
        seep_units_bytes((double)device->low_free_bytes, low);
        seep_page_paragraph(page, SEEP_INK_STRONG, i == 0 ? "devices" : "",
                            INDENT, "%s, %s, %s free%s%s%s", name, total, now,
                            strcmp(low, now) == 0 ? "" : ", ",
                            strcmp(low, now) == 0 ? "" : low,
                            strcmp(low, now) == 0 ? "" : " at the least");
    }
}

static void print_recorder(struct seep_page *page,
                           const struct seep_report *report)
{
    char mode[128];
    char size[SEEP_UNITS_TEXT_BYTES];
    char cost[SEEP_UNITS_TEXT_BYTES];
    char share[SEEP_UNITS_TEXT_BYTES];

    if (report->inert != SEEP_INERT_NONE) {
        seep_page_paragraph(page, SEEP_INK_WARNING, "inert", INDENT, "%s",
                            seep_words_inert(report->inert));
    }
    seep_words_mode(report, mode, sizeof(mode));
    seep_page_paragraph(page, SEEP_INK_STRONG, "recorded", INDENT,
                        "%s, by seep %s, stacks by %s", mode, report->version,
                        seep_words_unwinder(report->unwinder));
    seep_page_paragraph(
        page, SEEP_INK_STRONG, "cost", INDENT,
        "%s, %s of the run; %s of its own",
        seep_units_duration(seep_words_cost_s(report), cost),
        seep_units_share(report->duration_s > 0
                             ? seep_words_cost_s(report) / report->duration_s
                             : NAN,
                         share),
        seep_units_bytes((double)report->file_bytes, size));
}

static void add_usage(struct seep_table *table, const char *name, uint32_t used,
                      uint32_t capacity)
{
    char text[SEEP_UNITS_TEXT_BYTES];

    seep_table_row(table, SEEP_INK_PLAIN);
    seep_table_cell(table, 0, "%s", name);
    seep_table_cell(table, 1, "%s", seep_units_count(used, text));
    seep_table_cell(table, 2, "%s", seep_units_count(capacity, text));
    seep_table_cell(
        table, 3, "%s",
        seep_units_share(capacity > 0 ? (double)used / capacity : NAN, text));
}

static void print_usage(struct seep_page *page,
                        const struct seep_report *report)
{
    static const struct seep_table_column columns[] = {
        {"table", false}, {"used", true}, {"of", true}, {"full", true}};
    struct seep_table *table = seep_table_open(columns, 4);

    if (table == NULL) {
        return;
    }
    add_usage(table, "call sites", report->usage_sites.used,
              report->usage_sites.capacity);
    add_usage(table, "stacks", report->usage_stacks.used,
              report->usage_stacks.capacity);
    add_usage(table, "time series", report->usage_series.used,
              report->usage_series.capacity);
    add_usage(table, "modules", report->usage_modules.used,
              report->usage_modules.capacity);
    add_usage(table, "names", report->usage_codes.used,
              report->usage_codes.capacity);
    add_usage(table, "live blocks", report->usage_live.used,
              report->usage_live.capacity);
    seep_table_print(table, page, 2);
    seep_table_close(table);
}

static void print_cuts(struct seep_page *page, const struct seep_report *report)
{
    static const struct seep_table_column columns[] = {
        {"share", true}, {"stacks", true}, {"ended", false}};
    struct seep_table *table = seep_table_open(columns, 3);
    char text[SEEP_UNITS_TEXT_BYTES];
    double all = 0;

    for (unsigned i = 0; i < SEEP_CUT_COUNT; i++) {
        all += (double)seep_words_counter(report, SEEP_COUNT_CUT_FIRST + i);
    }
    if (table == NULL || all <= 0) {
        seep_table_close(table);
        return;
    }
    for (unsigned i = 0; i < SEEP_CUT_COUNT; i++) {
        double count =
            (double)seep_words_counter(report, SEEP_COUNT_CUT_FIRST + i);
        if (count > 0) {
            seep_table_row(table, SEEP_INK_PLAIN);
            seep_table_cell(table, 0, "%s",
                            seep_units_share(count / all, text));
            seep_table_cell(table, 1, "%s", seep_units_count(count, text));
            seep_table_cell(table, 2, "%s", seep_words_cut((enum seep_cut)i));
        }
    }
    seep_page_end_line(page);
    seep_table_print(table, page, 2);
    seep_table_close(table);
}

static void print_counters(struct seep_page *page,
                           const struct seep_report *report)
{
    static const struct seep_table_column columns[] = {
        {"kind", false}, {"count", true}, {"what", false}};
    static const char *const kinds[] = {"lost", "fact", "cost"};
    struct seep_table *table = seep_table_open(columns, 3);
    char text[SEEP_UNITS_TEXT_BYTES];
    size_t rows = 0;

    for (size_t i = 0; table != NULL && i < report->counter_count; i++) {
        const struct seep_report_counter *counter = &report->counters[i];
        if (counter->value == 0 || i >= SEEP_COUNT_CUT_FIRST) {
            continue; /* cuts have their own table */
        }
        seep_table_row(table, counter->kind == SEEP_KIND_LOSS ? SEEP_INK_WARNING
                                                              : SEEP_INK_PLAIN);
        seep_table_cell(table, 0, "%s", kinds[counter->kind % 3]);
        seep_table_cell(table, 1, "%s",
                        seep_units_count((double)counter->value, text));
        seep_table_cell(table, 2, "%s", counter->words);
        rows++;
    }
    if (rows > 0) {
        seep_page_end_line(page);
        seep_table_print(table, page, 2);
    }
    seep_table_close(table);
}

struct fullest {
    const char *table;
    double share;
};

static void look_how_full(struct fullest *fullest, const char *table,
                          uint32_t used, uint32_t capacity)
{
    double share = capacity > 0 ? (double)used / capacity : 0;

    if (share > fullest->share) {
        *fullest = (struct fullest){table, share};
    }
}

/* Who reads this wants to know whether the recording can be trusted. */
static void print_next(struct seep_page *page, const struct seep_report *report)
{
    struct fullest fullest = {"", NEARLY_FULL};
    char *path;

    look_how_full(&fullest, "call sites", report->usage_sites.used,
                  report->usage_sites.capacity);
    look_how_full(&fullest, "stacks", report->usage_stacks.used,
                  report->usage_stacks.capacity);
    look_how_full(&fullest, "time series", report->usage_series.used,
                  report->usage_series.capacity);
    look_how_full(&fullest, "modules", report->usage_modules.used,
                  report->usage_modules.capacity);
    look_how_full(&fullest, "names", report->usage_codes.used,
                  report->usage_codes.capacity);
    look_how_full(&fullest, "live blocks", report->usage_live.used,
                  report->usage_live.capacity);
    seep_page_end_line(page);
    if (*fullest.table != '\0') {
        seep_page_paragraph(page, SEEP_INK_STRONG, "next", INDENT,
                            "record with a larger --size: the table of %s is "
                            "nearly full",
                            fullest.table);
        return;
    }
    path = seep_words_quote(report->path);
    seep_page_paragraph(page, SEEP_INK_STRONG, "next", INDENT,
                        "what grew: seep report %s",
                        path == NULL ? "RECORDING" : path);
    free(path);
}

void seep_view_text_info(struct seep_page *page,
                         const struct seep_report *report)
{
    char pending[SEEP_UNITS_TEXT_BYTES];

    seep_page_print(page, SEEP_INK_STRONG, "%s", report->path);
    seep_page_end_line(page);
    print_process(page, report);
    print_python(page, report);
    print_devices(page, report);
    seep_view_marks(page, report, INDENT, MARKS_MOST);
    print_recorder(page, report);
    seep_page_paragraph(
        page, SEEP_INK_STRONG, "events", INDENT,
        "%s lost, %s read from the rings, %llu sites torn",
        seep_units_count((double)seep_words_lost_events(report), pending),
        seep_units_count((double)report->pending_events,
                         (char[SEEP_UNITS_TEXT_BYTES]){0}),
        (unsigned long long)report->torn_sites);
    seep_page_end_line(page);
    print_usage(page, report);
    print_cuts(page, report);
    print_counters(page, report);
    print_next(page, report);
}
