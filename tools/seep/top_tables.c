/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parts of a frame that are tables: processes, memory, call sites. Invariant:
 * one line a row, so that the frame knows where the selected one is.
 */
#include <stdlib.h>
#include <string.h>

#include "spark.h"
#include "table.h"
#include "top_draw.h"
#include "top_pad.h"
#include "units.h"
#include "verdict_words.h"
#include "view_balance.h"
#include "view_sites.h"
#include "view_text.h"
#include "words.h"

/* A page that is narrower does without the column. */
#define LIVE_LEAST 50
#define FIRST_LEAST 120
#define AGE_LEAST 100
#define STATE_LEAST 70

enum process_column { PID, VERDICT, RATE, HELD, AGE, STATE, COMMAND };

static void fill_process(struct seep_table *table,
                         const struct seep_report *report)
{
    char text[SEEP_UNITS_TEXT_BYTES];
    char *command = seep_words_command(report);
    uint64_t live =
        seep_words_host_bytes(report) + seep_words_gpu_bytes(report);

    seep_table_row(table, SEEP_INK_PLAIN);
    seep_table_cell(table, PID, "%u", report->pid);
    seep_table_cell(table, VERDICT, "%s",
                    seep_verdict_name(report->verdict.class));
    seep_table_ink(table, VERDICT,
                   seep_view_verdict_ink(report->verdict.class));
    if (report->verdict.has_growth) {
        seep_table_cell(
            table, RATE, "%s",
            seep_units_interval(&report->verdict.growth_bytes_per_s, 60, text));
    }
    seep_table_cell(table, HELD, "%s", seep_units_bytes((double)live, text));
    seep_table_cell(table, AGE, "%s",
                    seep_units_duration(report->duration_s, text));
    seep_table_cell(table, STATE, "%s", seep_words_state_name(report->state));
    seep_table_cell(table, COMMAND, "%s", command == NULL ? "?" : command);
    free(command);
}

char *seep_top_draw_processes(const struct seep_top_model *model,
                              const struct seep_top_size *size,
                              const struct seep_top_window *window)
{
    static const struct seep_table_column columns[] = {
        [PID] = {"pid", true},          [VERDICT] = {"verdict", false},
        [RATE] = {"growth/min", true},  [HELD] = {"live", true},
        [AGE] = {"age", true},          [STATE] = {"state", false},
        [COMMAND] = {"command", false},
    };
    struct seep_table *table =
        seep_table_open(columns, sizeof(columns) / sizeof(columns[0]));
    struct seep_top_pad pad;

    if (table == NULL || !seep_top_pad_open(&pad, size)) {
        seep_table_close(table);
        return NULL;
    }
    if (size->columns < LIVE_LEAST) {
        seep_table_hide(table, HELD);
    }
    if (size->columns < AGE_LEAST) {
        seep_table_hide(table, AGE);
    }
    if (size->columns < STATE_LEAST) {
        seep_table_hide(table, STATE);
    }
    for (size_t i = window->first; i < window->end; i++) {
        fill_process(table, model->reports[i]);
    }
    seep_table_print(table, &pad.page, 1);
    seep_table_close(table);
    return seep_top_pad_close(&pad);
}

static void add_spaces(struct seep_table *table,
                       const struct seep_report *report)
{
    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];
        struct seep_report_extent extent = {
            .valid = true,
            .first_bytes = (double)space->first_bytes,
            .last_bytes = (double)space->live_bytes,
            .slope_bytes_per_s = space->slope_bytes_per_s,
        };

        seep_view_balance_row(table, report, seep_words_space(space->space),
                              &extent);
    }
}

/* "6.6 GiB of 8 GiB free, full in 2 h 51 min (2 h 44 min to ..)" */
static void note_limit(struct seep_table *table, uint64_t limit_bytes,
                       double used_bytes,
                       const struct seep_report_forecast *forecast)
{
    double left = (double)limit_bytes - used_bytes;
    char limit[SEEP_UNITS_TEXT_BYTES];
    char unused[SEEP_UNITS_TEXT_BYTES];
    char *when = forecast == NULL ? NULL : seep_verdict_words_when(forecast);

    seep_table_cell(table, SEEP_VIEW_BALANCE_NOTE, "%s of %s free%s%s",
                    seep_units_bytes(left > 0 ? left : 0, unused),
                    seep_units_bytes((double)limit_bytes, limit),
                    when == NULL ? "" : ", full ", when == NULL ? "" : when);
    free(when);
}

static const struct seep_report_forecast *
forecast_of(const struct seep_report *report, const char *what)
{
    const struct seep_report_forecast *forecast = &report->verdict.forecast;

    return forecast->what != NULL && strcmp(forecast->what, what) == 0
               ? forecast
               : NULL;
}

static void add_host(struct seep_table *table, const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_report_extent ram = {
        .valid = true,
        .last_bytes =
            (double)memory->machine_bytes - (double)memory->available_bytes,
    };

    if (memory->rss.valid) {
        char *trend = seep_spark_held(report, 16);
        seep_view_balance_row(table, report, "RSS", &memory->rss);
        seep_table_cell(table, SEEP_VIEW_BALANCE_NOTE, "%s",
                        trend == NULL ? "" : trend);
        free(trend);
    }
    if (memory->cgroup.valid && memory->cgroup_limit_bytes > 0) {
        seep_view_balance_row(table, report, "cgroup", &memory->cgroup);
        note_limit(table, memory->cgroup_limit_bytes, memory->cgroup.last_bytes,
                   forecast_of(report, "cgroup"));
    }
    if (memory->machine_bytes > 0 && memory->available_bytes > 0) {
        seep_view_balance_row(table, report, "machine", &ram);
        seep_table_cell(table, SEEP_VIEW_BALANCE_FIRST, "%s", "");
        seep_table_cell(table, SEEP_VIEW_BALANCE_GROWTH, "%s", "");
        note_limit(table, memory->machine_bytes, ram.last_bytes,
                   forecast_of(report, "ram"));
    }
}

static void add_devices(struct seep_table *table,
                        const struct seep_report *report)
{
    for (size_t i = 0; i < report->device_count; i++) {
        const struct seep_report_device *device = &report->devices[i];
        bool followed = seep_words_is_followed(device);
        char name[SEEP_WORDS_GPU_BYTES];

        seep_words_gpu((int)device->ordinal, name);
        seep_view_balance_row(table, report, name, &device->used);
        if (!followed) {
            seep_table_cell(table, SEEP_VIEW_BALANCE_GROWTH, "%s", "");
        }
        note_limit(table, device->total_bytes,
                   (double)device->total_bytes - (double)device->free_bytes,
                   followed ? &device->forecast : NULL);
    }
}

char *seep_top_draw_memory(const struct seep_report *report,
                           const struct seep_top_size *size)
{
    struct seep_top_pad pad;
    struct seep_table *table;

    if (!seep_top_pad_open(&pad, size)) {
        return NULL;
    }
    table = seep_view_balance_open(&pad.page, "memory");
    if (table != NULL) {
        if (size->columns < FIRST_LEAST) {
            seep_table_hide(table, SEEP_VIEW_BALANCE_FIRST);
        }
        add_spaces(table, report);
        add_host(table, report);
        add_devices(table, report);
        seep_table_print(table, &pad.page, 1);
        seep_table_close(table);
    }
    return seep_top_pad_close(&pad);
}
