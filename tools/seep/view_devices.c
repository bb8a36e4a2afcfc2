/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GPUs as text. Invariant: what stands indented is a part of the row above it,
 * and a part of which there is nothing is left out.
 */
#include "view_devices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "units.h"
#include "verdict_words.h"
#include "view_balance.h"
#include "words.h"

#define INDENT_FULL 8
#define LEAST_S 30.0 /* nothing is told of less */

static bool is_nothing(const struct seep_report_extent *extent)
{
    return !extent->valid ||
           (extent->first_bytes <= 0 && extent->last_bytes <= 0);
}

/* What a cache holds and nobody uses. */
static struct seep_report_extent
difference(const struct seep_report_extent *reserved,
           const struct seep_report_extent *used)
{
    struct seep_report_extent cache = *reserved;

    if (used->valid) {
        cache.first_bytes = fmax(cache.first_bytes - used->first_bytes, 0);
        cache.last_bytes = fmax(cache.last_bytes - used->last_bytes, 0);
        cache.slope_bytes_per_s -= used->slope_bytes_per_s;
        cache.slope_error = hypot(cache.slope_error, used->slope_error);
    }
    return cache;
}

static void add_row(struct seep_table *table, const struct seep_report *report,
                    const struct seep_report_device *device, const char *part,
                    const struct seep_report_extent *extent)
{
    seep_view_balance_row(table, report, part, extent);
    if (!seep_words_is_followed(device)) {
        seep_table_cell(table, SEEP_VIEW_BALANCE_GROWTH, "%s", "");
    }
}

static void add_used(struct seep_table *table, const struct seep_report *report,
                     const struct seep_report_device *device)
{
    char total[SEEP_UNITS_TEXT_BYTES];
    char now[SEEP_UNITS_TEXT_BYTES];
    char low[SEEP_UNITS_TEXT_BYTES];

    seep_units_bytes((double)device->total_bytes, total);
    seep_units_bytes((double)device->free_bytes, now);
    seep_units_bytes((double)device->low_free_bytes, low);
    add_row(table, report, device, "used", &device->used);
    if (strcmp(low, now) != 0) {
        seep_table_cell(table, SEEP_VIEW_BALANCE_NOTE,
                        "of %s, %s free, %s at the least", total, now, low);
    } else {
        seep_table_cell(table, SEEP_VIEW_BALANCE_NOTE, "of %s, %s free", total,
                        now);
    }
}

/* @return whether there is anything of it */
static bool add_part(struct seep_table *table, const struct seep_report *report,
                     const struct seep_report_device *device, const char *part,
                     const struct seep_report_extent *extent)
{
    if (is_nothing(extent)) {
        return false;
    }
    add_row(table, report, device, part, extent);
    return true;
}

static void add_tracked(struct seep_table *table,
                        const struct seep_report *report,
                        const struct seep_report_device *device)
{
    if (add_part(table, report, device, "= tracked", &device->tracked)) {
        seep_table_cell(table, SEEP_VIEW_BALANCE_NOTE,
                        "by calls of this process");
    }
    if (add_part(table, report, device, "  PyTorch's cache",
                 &device->tensor_reserved) &&
        device->cache_fragments) {
        seep_table_cell(table, SEEP_VIEW_BALANCE_NOTE,
                        "grows, its tensors do not");
    }
    add_part(table, report, device, "    in tensors",
             &device->tensor_allocated);
}

static void add_unexplained(struct seep_table *table,
                            const struct seep_report *report,
                            const struct seep_report_device *device)
{
    struct seep_report_extent pool =
        difference(&device->pool_reserved, &device->pool_used);
    char live[SEEP_UNITS_TEXT_BYTES];

    if (add_part(table, report, device, "+ unexplained",
                 &device->unexplained)) {
        seep_table_cell(table, SEEP_VIEW_BALANCE_NOTE,
                        "contexts, code, other processes");
    }
    if (add_part(table, report, device, "  pool's cache", &pool)) {
        seep_table_cell(table, SEEP_VIEW_BALANCE_NOTE,
                        "kept by the driver for cuMemAllocAsync");
    }
    if (add_part(table, report, device, "  graphs", &device->graph_reserved)) {
        seep_table_cell(table, SEEP_VIEW_BALANCE_NOTE,
                        "of CUDA graphs, %s of it in use",
                        seep_units_bytes(device->graph_used.last_bytes, live));
    }
}

/* "in 1 h 10 min (1 h 08 min to 1 h 12 min)" */
static void print_forecast(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_report_device *device)
{
    char *when = seep_verdict_words_when(&device->forecast);

    if (!seep_words_is_followed(device) && report->duration_s >= LEAST_S) {
        seep_page_paragraph(page, SEEP_INK_PLAIN, " full", INDENT_FULL,
                            "cannot be told: the driver is asked when it has "
                            "served a call, and served too few");
    } else if (when != NULL) {
        seep_page_paragraph(page, SEEP_INK_PLAIN, " full", INDENT_FULL, "%s",
                            when);
    }
    free(when);
}

static void print_device(struct seep_page *page,
                         const struct seep_report *report,
                         const struct seep_report_device *device)
{
    char title[SEEP_WORDS_GPU_BYTES];
    struct seep_table *table;

    seep_words_gpu((int)device->ordinal, title);
    table = seep_view_balance_open(page, title);
    if (table == NULL) {
        return;
    }
    add_used(table, report, device);
    add_tracked(table, report, device);
    add_unexplained(table, report, device);
    seep_table_print(table, page, 1);
    seep_table_close(table);
    print_forecast(page, report, device);
}

void seep_view_devices(struct seep_page *page, const struct seep_report *report)
{
    for (size_t i = 0; i < report->device_count; i++) {
        seep_page_end_line(page);
        print_device(page, report, &report->devices[i]);
    }
}
