/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The balance as a table, one part a row. Invariant: a row that is not known
 * is left out, and the rows below RSS add up to it: what was handed out and
 * never touched is a row of its own.
 */
#include "view_balance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "units.h"
#include "verdict_words.h"
#include "words.h"

#define SLOPE_LEAST_S 10.0 /* a slope over less than this says nothing */
#define MAPPING_ROWS 3
#define FIRST_LEAST 60 /* columns; a narrower page does without it */
#define REST_LEAST (1 << 20)
#define REST_SHARE 0.02   /* of RSS; less is the error of the sampling */
#define MATTERS_SHARE 0.1 /* of the growth of RSS */

enum column { PART, FIRST, LAST, GROWTH, NOTE, COLUMN_COUNT };
static_assert(NOTE == SEEP_VIEW_BALANCE_NOTE &&
                  GROWTH == SEEP_VIEW_BALANCE_GROWTH &&
                  FIRST == SEEP_VIEW_BALANCE_FIRST,
              "columns that others fill");

struct seep_report_extent
seep_view_balance_tracked(const struct seep_report *report)
{
    struct seep_report_extent sum = {.valid = true};

    if (report->memory.tracked.valid) {
        return report->memory.tracked;
    }
    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];

        if (space->space <= SEEP_SPACE_PINNED) { /* what lies in RSS */
            sum.first_bytes += (double)space->first_bytes;
            sum.last_bytes += (double)space->live_bytes;
            sum.slope_bytes_per_s += space->slope_bytes_per_s;
        }
    }
    return sum;
}

bool seep_view_balance_is_unexplained(const struct seep_report *report)
{
    const struct seep_report_extent *unexplained = &report->memory.unexplained;

    return report->verdict.class == SEEP_VERDICT_UNEXPLAINED ||
           (unexplained->valid &&
            unexplained->slope_bytes_per_s > unexplained->slope_error &&
            unexplained->slope_bytes_per_s >
                MATTERS_SHARE * report->memory.rss.slope_bytes_per_s);
}

void seep_view_balance_row(struct seep_table *table,
                           const struct seep_report *report, const char *part,
                           const struct seep_report_extent *extent)
{
    double slope = extent->slope_bytes_per_s;
    struct seep_interval growth = {slope, slope - extent->slope_error,
                                   slope + extent->slope_error};
    char text[SEEP_UNITS_TEXT_BYTES];

    seep_table_row(table, SEEP_INK_PLAIN);
    seep_table_cell(table, PART, "%s", part);
    seep_table_cell(table, FIRST, "%s",
                    seep_units_bytes(extent->first_bytes, text));
    seep_table_cell(table, LAST, "%s",
                    seep_units_bytes(extent->last_bytes, text));
    if (report->duration_s >= SLOPE_LEAST_S) {
        seep_table_cell(table, GROWTH, "%s",
                        extent->slope_error > 0
                            ? seep_units_interval(&growth, 60, text)
                            : seep_units_change(slope * 60, text));
    }
}

/* "heap 560 MiB ±1.2 MiB, mapped 16 MiB" */
static void note_spaces(struct seep_table *table,
                        const struct seep_report *report)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        return;
    }
    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];
        char live[SEEP_UNITS_TEXT_BYTES];
        char error[SEEP_UNITS_TEXT_BYTES];

        if (space->space > SEEP_SPACE_PINNED) {
            continue;
        }
        fprintf(file, "%s%s %s", ftell(file) == 0 ? "" : ", ",
                seep_words_space(space->space),
                seep_units_bytes((double)space->live_bytes, live));
        if (space->live_bytes_error > 0) {
            fprintf(file, " ±%s",
                    seep_units_bytes(space->live_bytes_error, error));
        }
    }
    fclose(file);
    seep_table_cell(table, NOTE, "%s", text);
    free(text);
}

static void note_allocator(struct seep_table *table,
                           const struct seep_report_memory *memory)
{
    const char *name = seep_verdict_words_allocator(memory->allocator);
    char text[SEEP_UNITS_TEXT_BYTES];

    if (!memory->allocator_told) {
        seep_table_cell(table, NOTE, "estimated: %s does not tell", name);
    } else if (memory->allocator_free_chunks > 0) {
        seep_units_count((double)memory->allocator_free_chunks, text);
        seep_table_cell(table, NOTE, "%s, %s free piece%s", name, text,
                        memory->allocator_free_chunks == 1 ? "" : "s");
    } else if (memory->allocator_retained_bytes > 0) {
        seep_units_bytes((double)memory->allocator_retained_bytes, text);
        seep_table_cell(table, NOTE, "%s, %s retained beside it", name, text);
    } else {
        seep_table_cell(table, NOTE, "%s", name);
    }
}

/* What the parts have too much (above 0) or too little to make up RSS. */
static struct seep_report_extent rest_of(const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_report_extent rest = seep_view_balance_tracked(report);

    rest.first_bytes += memory->allocator_overhead.first_bytes +
                        memory->unexplained.first_bytes -
                        memory->anonymous.first_bytes -
                        memory->swap.first_bytes;
    rest.last_bytes += memory->allocator_overhead.last_bytes +
                       memory->unexplained.last_bytes -
                       memory->anonymous.last_bytes - memory->swap.last_bytes;
    rest.slope_bytes_per_s += memory->allocator_overhead.slope_bytes_per_s +
                              memory->unexplained.slope_bytes_per_s -
                              memory->anonymous.slope_bytes_per_s -
                              memory->swap.slope_bytes_per_s;
    rest.slope_error = 0;
    return rest;
}

/*
 * Blocks are counted by their size, RSS by the pages that were touched; and
 * the allocator is asked more seldom than the kernel.
 */
static void add_rest(struct seep_table *table, const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_report_extent rest = rest_of(report);

    if (!memory->unexplained.valid || !memory->anonymous.valid ||
        fabs(rest.last_bytes) < REST_LEAST ||
        fabs(rest.last_bytes) < REST_SHARE * memory->rss.last_bytes) {
        return;
    }
    if (rest.last_bytes > 0) {
        rest.first_bytes = fmax(rest.first_bytes, 0);
        seep_view_balance_row(table, report, "- not touched", &rest);
        seep_table_cell(table, NOTE, "allocated, its pages never written");
    } else {
        rest.first_bytes = fmax(-rest.first_bytes, 0);
        rest.last_bytes = -rest.last_bytes;
        seep_view_balance_row(table, report, "+ newer", &rest);
        seep_table_cell(table, GROWTH, "%s", ""); /* a moment has none */
        seep_table_cell(table, NOTE, "came since %s was last asked",
                        seep_verdict_words_allocator(memory->allocator));
    }
}

static void add_parts(struct seep_table *table,
                      const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_report_extent tracked = seep_view_balance_tracked(report);

    seep_view_balance_row(table, report, "= tracked", &tracked);
    note_spaces(table, report);
    if (memory->allocator_overhead.valid) {
        seep_view_balance_row(table, report, "+ allocator",
                              &memory->allocator_overhead);
        note_allocator(table, memory);
    }
    if (memory->unexplained.valid) {
        seep_view_balance_row(table, report, "+ unexplained",
                              &memory->unexplained);
        seep_table_cell(table, NOTE, "seen by no hook");
    }
    if (memory->shared.valid) {
        seep_view_balance_row(table, report, "+ shared", &memory->shared);
        seep_table_cell(table, NOTE, "files and shared memory");
    }
    add_rest(table, report);
    if (memory->swap.valid && memory->swap.last_bytes > 0) {
        seep_view_balance_row(table, report, "- swapped", &memory->swap);
    }
}

/* Without a limit it says nothing: other processes are in it too. */
static void add_cgroup(struct seep_table *table,
                       const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    char limit[SEEP_UNITS_TEXT_BYTES];

    if (memory->cgroup.valid && memory->cgroup_limit_bytes > 0) {
        seep_view_balance_row(table, report, "cgroup", &memory->cgroup);
        seep_table_cell(
            table, NOTE, "of %s",
            seep_units_bytes((double)memory->cgroup_limit_bytes, limit));
    }
}

/* What the part on GPUs tells is not told twice. */
static bool is_told(const struct seep_report *report, enum seep_space space)
{
    bool tensors = false;

    for (size_t i = 0; i < report->device_count; i++) {
        tensors = tensors || report->devices[i].tensor_allocated.valid;
    }
    return space <= SEEP_SPACE_PINNED ||
           (space == SEEP_SPACE_TENSOR
                ? tensors
                : seep_words_is_gpu(space) && report->device_count > 0);
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

        if (!is_told(report, space->space)) {
            seep_view_balance_row(table, report, seep_words_space(space->space),
                                  &extent);
        }
    }
}

static void print_mappings(struct seep_page *page,
                           const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    size_t shown = 0;

    if (!seep_view_balance_is_unexplained(report)) {
        return;
    }
    for (size_t i = 0; i < memory->mapping_count && shown < MAPPING_ROWS; i++) {
        const struct seep_report_mapping *mapping = &memory->mappings[i];
        char first[SEEP_UNITS_TEXT_BYTES];
        char last[SEEP_UNITS_TEXT_BYTES];
        char rate[SEEP_UNITS_TEXT_BYTES];

        if (mapping->tracked) {
            continue;
        }
        shown++;
        seep_page_paragraph(
            page, SEEP_INK_PLAIN, " grew", 8, "%s at 0x%llx: %s to %s, %s",
            *mapping->name == '\0' ? "anonymous memory" : mapping->name,
            (unsigned long long)mapping->start,
            seep_units_bytes(mapping->first_bytes, first),
            seep_units_bytes(mapping->last_bytes, last),
            seep_units_rate(mapping->slope_bytes_per_s, rate));
    }
}

struct seep_table *seep_view_balance_open(const struct seep_page *page,
                                          const char *title)
{
    const struct seep_table_column columns[COLUMN_COUNT] = {
        [PART] = {title, false}, [FIRST] = {"first", true},
        [LAST] = {"last", true}, [GROWTH] = {"growth/min", true},
        [NOTE] = {"", false},
    };
    struct seep_table *table = seep_table_open(columns, COLUMN_COUNT);

    if (table != NULL && page->columns < FIRST_LEAST) {
        seep_table_hide(table, FIRST);
    }
    return table;
}

void seep_view_balance(struct seep_page *page, const struct seep_report *report)
{
    struct seep_table *table = seep_view_balance_open(page, "memory");

    if (table == NULL) {
        return;
    }
    if (report->memory.valid && report->memory.rss.valid) {
        seep_view_balance_row(table, report, "RSS", &report->memory.rss);
        add_parts(table, report);
    } else {
        struct seep_report_extent tracked = seep_view_balance_tracked(report);

        seep_view_balance_row(table, report, "tracked", &tracked);
        note_spaces(table, report);
    }
    add_cgroup(table, report);
    add_spaces(table, report);
    seep_table_print(table, page, 1);
    seep_table_close(table);
    print_mappings(page, report);
}
