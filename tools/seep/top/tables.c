/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parts of a frame that are tables: processes, memory, call sites. Invariant:
 * one line a row, so that the frame knows where the selected one is.
 */
#include <stdlib.h>
#include <string.h>

#include "text/report.h"
#include "text/table.h"
#include "top/top.h"
#include "words/held.h"
#include "words/units.h"
#include "words/verdict.h"
#include "words/words.h"

#define FIRST_LEAST 120 /* columns of a page with it */
#define TREND_SHARE 10  /* of the columns are bars */
#define TREND_MOST 24

void seep_top_draw_sites(struct seep_page *page,
                         const struct seep_top_part *part)
{
    const struct seep_report *report = part->report;
    struct seep_table *table = seep_view_sites_open(report, true);
    size_t cells = page->columns / TREND_SHARE;

    cells = cells > TREND_MOST ? TREND_MOST : cells;
    for (size_t i = part->window.first; i < part->window.end; i++) {
        const struct seep_top_row *row = part->model->rows[i];

        seep_view_sites_row(
            table, report, row->site, row->where,
            seep_spark_site(row->site, report->duration_s, cells));
        if (part->size->lines == 0) {
            seep_table_paragraph(
                table, "held by",
                seep_words_held_line(row->site->held, row->site->live_bytes));
        }
    }
    seep_table_print(table, page, 1);
}

enum process_column {
    PID,
    VERDICT,
    RATE,
    HELD,
    AGE,
    STATE,
    COMMAND,
    PROCESS_COLUMN_COUNT
};

static void fill_process(struct seep_table *table,
                         const struct seep_report *report)
{
    uint64_t live =
        seep_words_host_bytes(report) + seep_words_gpu_bytes(report);

    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, PID, "%u", report->pid);
    seep_table_cell(table, VERDICT, "%s",
                    seep_verdict_name(report->verdict.class));
    seep_table_style(table, VERDICT,
                     seep_view_verdict_style(report->verdict.class));
    if (report->verdict.has_growth) {
        seep_table_cell(
            table, RATE, "%s",
            SEEP_UNITS_INTERVAL(&report->verdict.growth_bytes_per_s, 60));
    }
    seep_table_cell(table, HELD, "%s", SEEP_UNITS_BYTES((double)live));
    seep_table_cell(table, AGE, "%s",
                    SEEP_UNITS_DURATION(seep_words_life_s(report)));
    seep_table_cell(table, STATE, "%s", seep_words_state_name(report->state));
    seep_table_take(table, COMMAND, seep_words_command(report));
}

void seep_top_draw_processes(struct seep_page *page,
                             const struct seep_top_part *part)
{
    static const struct seep_table_column columns[PROCESS_COLUMN_COUNT] = {
        [PID] = {"pid", true, 0},          [VERDICT] = {"verdict", false, 0},
        [RATE] = {"growth/min", true, 0},  [HELD] = {"live", true, 50},
        [AGE] = {"age", true, 100},        [STATE] = {"state", false, 70},
        [COMMAND] = {"command", false, 0},
    };
    struct seep_table *table = seep_table_open(columns, PROCESS_COLUMN_COUNT);

    for (size_t i = part->window.first; i < part->window.end; i++) {
        fill_process(table, part->model->reports[i]);
    }
    seep_table_print(table, page, 1);
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
    char *when = forecast == NULL ? NULL : seep_words_when(forecast);

    seep_table_cell(table, SEEP_VIEW_BALANCE_NOTE, "%s of %s free%s%s",
                    SEEP_UNITS_BYTES(left > 0 ? left : 0),
                    SEEP_UNITS_BYTES((double)limit_bytes),
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
        seep_view_balance_row(table, report, "RSS", &memory->rss);
        seep_table_take(table, SEEP_VIEW_BALANCE_NOTE,
                        seep_spark_held(report, 16));
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

void seep_top_draw_memory(struct seep_page *page,
                          const struct seep_top_part *part)
{
    struct seep_table *table = seep_view_balance_open("memory", FIRST_LEAST);

    add_spaces(table, part->report);
    add_host(table, part->report);
    add_devices(table, part->report);
    seep_table_print(table, page, 1);
}
