/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep info: what a recording holds, its losses, its cost.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "options/option.h"
#include "read/gather.h"
#include "text/page.h"
#include "text/report.h"
#include "text/table.h"
#include "verbs.h"
#include "words/units.h"
#include "words/words.h"
#include "json/json.h"

#define INDENT 11
#define MARKS_MOST 32
#define NEARLY_FULL 0.9
#define NS_PER_S UINT64_C(1000000000)

#define LINE(page, label, ...) \
    seep_page_paragraph(page, SEEP_STYLE_STRONG, label, INDENT, __VA_ARGS__)

static void print_process(struct seep_page *page,
                          const struct seep_report *report)
{
    char text[160];
    char state[128];
    char *command = seep_words_command(report);
    time_t seconds = (time_t)(report->start_realtime_ns / NS_PER_S);
    struct tm utc = {0};

    gmtime_r(&seconds, &utc);
    LINE(page, "command", "%s", command == NULL ? "?" : command);
    free(command);
    LINE(page, "program", "%s", report->executable);
    seep_words_state(report, state, sizeof(state));
    LINE(page, "process", "pid %u%s on %s, %s", report->pid,
         report->is_fork ? " (a fork)" : "", report->host, state);
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc);
    LINE(page, "started", "%s, for %s", text,
         SEEP_UNITS_DURATION(seep_words_life_s(report)));
    if (*report->labels != '\0') {
        LINE(page, "labels", "%s", report->labels);
    }
    if (*report->allocator != '\0') {
        LINE(page, "malloc of", "%s", report->allocator);
    }
    if (report->redacted) {
        LINE(
            page, "redacted", "%s",
            "folders, arguments, host, values of labels, marks and names of threads stand for others");
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
    LINE(page, "python", "%s; frames %s; objects %s",
         report->python_version == 0 ? "of unknown version" : version,
         seep_python_state_words(report->python_state),
         seep_python_objects_words(report->python_objects));
}

static void print_devices(struct seep_page *page,
                          const struct seep_report *report)
{
    for (size_t i = 0; i < report->device_count; i++) {
        const struct seep_report_device *device = &report->devices[i];
        const char *total = SEEP_UNITS_BYTES((double)device->total_bytes);
        const char *now = SEEP_UNITS_BYTES((double)device->free_bytes);
        const char *low = SEEP_UNITS_BYTES((double)device->low_free_bytes);
        bool was_lower = strcmp(low, now) != 0;
        char name[SEEP_WORDS_GPU_BYTES];

        seep_words_gpu((int)device->ordinal, name);
        seep_page_paragraph(page, SEEP_STYLE_STRONG, i == 0 ? "devices" : "",
                            INDENT, "%s, %s, %s free%s%s%s", name, total, now,
                            was_lower ? ", " : "", was_lower ? low : "",
                            was_lower ? " at least" : "");
    }
}

static void print_recorder(struct seep_page *page,
                           const struct seep_report *report)
{
    char mode[128];
    char cost[SEEP_WORDS_COST_BYTES];

    if (report->inert != SEEP_INERT_NONE) {
        seep_page_paragraph(page, SEEP_STYLE_WARNING, "inert", INDENT, "%s",
                            seep_words_inert(report->inert));
    }
    seep_view_rejected(page, report, INDENT);
    seep_view_removed(page, report, INDENT);
    seep_view_unread(page, report, INDENT);
    seep_words_mode(report, mode, sizeof(mode));
    LINE(page, "recorded", "%s, by seep %s, stacks by %s", mode,
         report->version, seep_words_unwinder(report->unwinder));
    seep_words_cost(report, true, cost, sizeof(cost));
    LINE(page, "cost", "%s; %s of its own", cost,
         SEEP_UNITS_BYTES((double)report->file_bytes));
}

struct fullest {
    const char *table;
    double share;
};

static void add_usage(struct seep_table *table, struct fullest *fullest,
                      const char *name, const struct seep_report_usage *usage)
{
    double share =
        usage->capacity > 0 ? (double)usage->used / usage->capacity : NAN;

    if (share > fullest->share) {
        *fullest = (struct fullest){name, share};
    }
    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, 0, "%s", name);
    seep_table_cell(table, 1, "%s", SEEP_UNITS_COUNT(usage->used));
    seep_table_cell(table, 2, "%s", SEEP_UNITS_COUNT(usage->capacity));
    seep_table_cell(table, 3, "%s", SEEP_UNITS_SHARE(share));
}

static void print_usage(struct seep_page *page,
                        const struct seep_report *report,
                        struct fullest *fullest)
{
    static const struct seep_table_column columns[] = {{"table", false, 0},
                                                       {"used", true, 0},
                                                       {"of", true, 0},
                                                       {"full", true, 0}};
    struct seep_table *table = seep_table_open(columns, 4);

    add_usage(table, fullest, "call sites", &report->usage_sites);
    add_usage(table, fullest, "stacks", &report->usage_stacks);
    add_usage(table, fullest, "time series", &report->usage_series);
    add_usage(table, fullest, "modules", &report->usage_modules);
    add_usage(table, fullest, "names", &report->usage_codes);
    add_usage(table, fullest, "live blocks", &report->usage_live);
    add_usage(table, fullest, "mappings", &report->usage_ranges);
    seep_table_print(table, page, 2);
}

static void print_cuts(struct seep_page *page, const struct seep_report *report)
{
    static const struct seep_table_column columns[] = {
        {"share", true, 0}, {"stacks", true, 0}, {"ended", false, 0}};
    struct seep_table *table;
    double all = 0;

    for (unsigned i = 0; i < SEEP_CUT_COUNT; i++) {
        all += (double)seep_words_counter(report, SEEP_COUNT_CUT_FIRST + i);
    }
    if (all <= 0) {
        return;
    }
    table = seep_table_open(columns, 3);
    for (unsigned i = 0; i < SEEP_CUT_COUNT; i++) {
        double count =
            (double)seep_words_counter(report, SEEP_COUNT_CUT_FIRST + i);
        if (count > 0) {
            seep_table_row(table, SEEP_STYLE_PLAIN);
            seep_table_cell(table, 0, "%s", SEEP_UNITS_SHARE(count / all));
            seep_table_cell(table, 1, "%s", SEEP_UNITS_COUNT(count));
            seep_table_cell(table, 2, "%s", seep_words_cut((enum seep_cut)i));
        }
    }
    seep_page_end_line(page);
    seep_table_print(table, page, 2);
}

static void print_counters(struct seep_page *page,
                           const struct seep_report *report)
{
    static const struct seep_table_column columns[] = {
        {"kind", false, 0}, {"count", true, 0}, {"what", false, 0}};
    static const char *const kinds[] = {"lost", "fact", "cost"};
    struct seep_table *table = seep_table_open(columns, 3);
    size_t rows = 0;

    for (size_t i = 0; i < report->counter_count; i++) {
        const struct seep_report_counter *counter = &report->counters[i];
        if (counter->value == 0 || i >= SEEP_COUNT_CUT_FIRST) {
            continue; /* cuts have their own table */
        }
        seep_table_row(table, counter->kind == SEEP_KIND_LOSS
                                  ? SEEP_STYLE_WARNING
                                  : SEEP_STYLE_PLAIN);
        seep_table_cell(table, 0, "%s", kinds[counter->kind % 3]);
        seep_table_cell(table, 1, "%s",
                        SEEP_UNITS_COUNT((double)counter->value));
        seep_table_cell(table, 2, "%s", counter->words);
        rows++;
    }
    if (rows > 0) {
        seep_page_end_line(page);
        seep_table_print(table, page, 2);
    } else {
        seep_table_close(table);
    }
}

/* Who reads this wants to know whether the recording can be trusted. */
static void print_next(struct seep_page *page, const struct seep_report *report,
                       const struct fullest *fullest)
{
    char *path;

    seep_page_end_line(page);
    if (fullest->table != NULL) {
        LINE(page, "next",
             "record with --size %lluMiB: the %s table is nearly full",
             seep_words_larger_mib(report), fullest->table);
        return;
    }
    path = seep_words_quote(report->path);
    LINE(page, "next", "what grew: seep report %s",
         path == NULL ? "RECORDING" : path);
    free(path);
}

void seep_view_text_info(struct seep_page *page,
                         const struct seep_report *report)
{
    struct fullest fullest = {NULL, NEARLY_FULL};

    seep_page_print(page, SEEP_STYLE_STRONG, "%s", report->path);
    seep_page_end_line(page);
    print_process(page, report);
    print_python(page, report);
    print_devices(page, report);
    seep_view_marks(page, report, INDENT, MARKS_MOST);
    print_recorder(page, report);
    LINE(page, "events", "%s lost, %s read from the rings, %llu sites torn",
         SEEP_UNITS_COUNT((double)seep_words_lost_events(report)),
         SEEP_UNITS_COUNT((double)report->pending_events),
         (unsigned long long)report->torn_sites);
    seep_page_end_line(page);
    print_usage(page, report, &fullest);
    print_cuts(page, report);
    print_counters(page, report);
    print_next(page, report, &fullest);
}

struct arguments {
    bool json;
    enum seep_color color;
};

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    SEEP_OPTION("json", NULL, seep_option_set, AT(json),
                "one JSON document (schema seep-info/1)"),
    SEEP_OPTION("color", "WHEN", seep_option_color, AT(color),
                "auto, always or never"),
    {0},
};

static const struct seep_options options = {
    .verb = "info",
    .usage =
        "usage: seep info [--json] [--color WHEN] RECORDING|DIR...\n\n"
        "Show what a recording holds: the process, how full its tables are, where\n"
        "stacks end and why, what was lost, and what seep itself cost.\n",
    .table = table,
    .exits =
        "exit status: 0 fine, 1 something could not be read, 2 wrong usage\n",
};

static int print(const struct seep_gathering *gathering,
                 const struct arguments *arguments)
{
    struct seep_page page;

    if (arguments->json) {
        return seep_json_info(stdout, gathering->reports, gathering->count,
                              gathering->refused_count);
    }
    seep_page_init(&page, stdout, arguments->color);
    for (size_t i = 0; i < gathering->count; i++) {
        if (i > 0) {
            seep_page_end_line(&page);
        }
        seep_view_text_info(&page, gathering->reports[i]);
    }
    return 0;
}

int seep_cmd_info(int argc, char **argv)
{
    /* names are not shown: nothing is symbolised */
    struct seep_report_options report = {.symbols = false, .site_limit = 1};
    struct arguments arguments = {.color = SEEP_COLOR_AUTO};
    struct seep_gathering gathering;
    int code = seep_options_parse(&options, argc, argv, &arguments);

    if (code != 0) {
        return seep_options_exit(&options, code);
    }
    if (optind == argc) {
        return seep_say_usage("info", "no recording given");
    }
    seep_gather(argv + optind, (size_t)(argc - optind), &report, &gathering);
    code = seep_gather_exit(&gathering);
    if (print(&gathering, &arguments) < 0) {
        code = SEEP_EXIT_FAILED;
    }
    seep_gather_close(&gathering);
    return code;
}
