/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The balance of the host and of each GPU as a table, one part a row.
 * Invariant: a row that is not known is left out, and the rows below RSS add up
 * to it: what was handed out and never touched is a row of its own. What stands
 * indented is a part of the row above it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/report.h"
#include "text/table.h"
#include "words/notes.h"
#include "words/units.h"
#include "words/verdict.h"
#include "words/words.h"

#define SLOPE_LEAST_S 10.0 /* a slope over less than this says nothing */
#define MAPPING_ROWS 3
#define FIRST_LEAST 60    /* columns of a page with it */
#define MATTERS_SHARE 0.1 /* of the growth of RSS */

enum column { PART, FIRST, LAST, GROWTH, NOTE, COLUMN_COUNT };
static_assert(NOTE == SEEP_VIEW_BALANCE_NOTE &&
                  GROWTH == SEEP_VIEW_BALANCE_GROWTH &&
                  FIRST == SEEP_VIEW_BALANCE_FIRST,
              "columns that others fill");

/* Does memory that no hook saw make up a part of the growth that matters? */
static bool is_unexplained(const struct seep_report *report)
{
    const struct seep_report_extent *unexplained = &report->memory.unexplained;

    return (report->verdict.class == SEEP_VERDICT_UNEXPLAINED &&
            !report->verdict.files) ||
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

    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, PART, "%s", part);
    seep_table_cell(table, FIRST, "%s", SEEP_UNITS_BYTES(extent->first_bytes));
    seep_table_cell(table, LAST, "%s", SEEP_UNITS_BYTES(extent->last_bytes));
    if (report->duration_s >= SLOPE_LEAST_S) {
        seep_table_cell(table, GROWTH, "%s",
                        extent->slope_error > 0
                            ? SEEP_UNITS_INTERVAL(&growth, 60)
                            : SEEP_UNITS_CHANGE(slope * 60));
    }
}

/* "heap 560 MiB ±1.2 MiB, mapped 16 MiB" */
static void note_spaces(struct seep_table *table,
                        const struct seep_report *report)
{
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return;
    }
    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];

        if (space->space > SEEP_SPACE_PINNED) {
            continue;
        }
        fprintf(file, "%s%s %s", ftell(file) == 0 ? "" : ", ",
                seep_words_space(space->space),
                SEEP_UNITS_BYTES((double)space->live_bytes));
        if (space->live_bytes_error > 0) {
            fprintf(file, " ±%s", SEEP_UNITS_BYTES(space->live_bytes_error));
        }
    }
    seep_table_take(table, NOTE, seep_words_close(&text));
}

static void note_allocator(struct seep_table *table,
                           const struct seep_report_memory *memory)
{
    const char *name = seep_words_allocator(memory->allocator);

    if (!memory->allocator_reported) {
        seep_table_cell(table, NOTE, SEEP_NOTE_ESTIMATED, name);
    } else if (memory->allocator_free_chunks > 0) {
        seep_table_cell(table, NOTE, SEEP_NOTE_FREE_PIECES, name,
                        SEEP_UNITS_COUNT((double)memory->allocator_free_chunks),
                        memory->allocator_free_chunks == 1 ? "" : "s");
    } else if (memory->allocator_retained_bytes > 0) {
        seep_table_cell(
            table, NOTE, SEEP_NOTE_RETAINED, name,
            SEEP_UNITS_BYTES((double)memory->allocator_retained_bytes));
    } else {
        seep_table_cell(table, NOTE, "%s", name);
    }
}

/*
 * Blocks are counted by their size, RSS by the pages that were touched; and
 * the allocator is asked more seldom than the kernel.
 */
static void add_rest(struct seep_table *table, const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_report_extent rest = seep_words_surplus(report);

    if (!seep_words_has_surplus(report)) {
        return;
    }
    if (rest.last_bytes > 0) {
        rest.first_bytes = fmax(rest.first_bytes, 0);
        bool both = seep_words_is_in_both(report);

        seep_view_balance_row(table, report,
                              both ? "- in both" : "- not touched", &rest);
        seep_table_cell(table, NOTE, "%s",
                        both ? SEEP_NOTE_IN_BOTH : SEEP_NOTE_UNTOUCHED);
    } else {
        rest.first_bytes = fmax(-rest.first_bytes, 0);
        rest.last_bytes = -rest.last_bytes;
        seep_view_balance_row(table, report, "+ newer", &rest);
        seep_table_cell(table, GROWTH, "%s", ""); /* a moment has none */
        seep_table_cell(table, NOTE, SEEP_NOTE_NEWER,
                        seep_words_allocator(memory->allocator));
    }
}

static void add_parts(struct seep_table *table,
                      const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_report_extent tracked = seep_words_tracked(report);

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
        seep_table_cell(table, NOTE, "%s",
                        report->is_fork ? SEEP_NOTE_UNSEEN_BY_FORK
                                        : SEEP_NOTE_UNSEEN);
    }
    if (memory->forked.valid) {
        seep_view_balance_row(table, report, "  forked", &memory->forked);
        seep_table_cell(table, NOTE, SEEP_NOTE_FORKED);
    }
    if (memory->shared.valid) {
        seep_view_balance_row(table, report, "+ shared", &memory->shared);
        seep_table_cell(table, NOTE, SEEP_NOTE_SHARED);
    }
    if (memory->own.valid) {
        seep_view_balance_row(table, report, "+ seep", &memory->own);
        seep_table_cell(table, NOTE, SEEP_NOTE_OWN);
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

    if (memory->cgroup.valid && memory->cgroup_limit_bytes > 0) {
        seep_view_balance_row(table, report, "cgroup", &memory->cgroup);
        seep_table_cell(table, NOTE, "of %s",
                        SEEP_UNITS_BYTES((double)memory->cgroup_limit_bytes));
    }
}

/* Of what was mapped at the last moment, by setrlimit(). */
static void add_bound(struct seep_table *table, const char *part,
                      const struct seep_report_bound *bound, const char *name)
{
    if (bound->limit_bytes > 0) {
        seep_table_row(table, SEEP_STYLE_PLAIN);
        seep_table_cell(table, PART, "%s", part);
        seep_table_cell(table, LAST, "%s",
                        SEEP_UNITS_BYTES((double)bound->used_bytes));
        seep_table_cell(table, NOTE, "of %s, %s",
                        SEEP_UNITS_BYTES((double)bound->limit_bytes), name);
    }
}

/* What the part on GPUs tells is not told twice. */
static bool is_known(const struct seep_report *report, enum seep_space space)
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

struct seep_report_extent
seep_view_space_extent(const struct seep_report *report, size_t i)
{
    const struct seep_report_space *space = &report->spaces[i];

    if (space->space == SEEP_SPACE_FILE && report->memory.files.valid) {
        return report->memory.files;
    }
    return (struct seep_report_extent){
        .valid = true,
        .first_bytes = (double)space->first_bytes,
        .last_bytes = (double)space->live_bytes,
        .slope_bytes_per_s = space->slope_bytes_per_s,
    };
}

static void add_spaces(struct seep_table *table,
                       const struct seep_report *report)
{
    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];
        struct seep_report_extent extent = seep_view_space_extent(report, i);

        if (!is_known(report, space->space)) {
            seep_view_balance_row(table, report, seep_words_space(space->space),
                                  &extent);
        }
        if (space->space == SEEP_SPACE_FILE) {
            seep_table_cell(table, NOTE, SEEP_NOTE_FILES);
        }
    }
}

/* What was allocated before, and is written to now. */
static void print_fill(struct seep_page *page, const struct seep_report *report,
                       const struct seep_report_mapping *mapping)
{
    const struct seep_report_site *site =
        seep_words_site_of(report, mapping->filled_id);
    char *where = site == NULL ? NULL : seep_words_where(report, site);

    if (where != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, " fills", 8,
                            SEEP_NOTE_BLOCK_FILLS,
                            SEEP_UNITS_BYTES(mapping->filled_of_bytes), where,
                            (unsigned long long)mapping->start,
                            SEEP_UNITS_BYTES(mapping->first_bytes),
                            SEEP_UNITS_BYTES(mapping->last_bytes),
                            SEEP_UNITS_RATE(mapping->slope_bytes_per_s));
    }
    free(where);
}

/* What little grew of it may be of what lies between. */
static bool matters(const struct seep_report *report,
                    const struct seep_report_mapping *mapping)
{
    return mapping->last_bytes - mapping->first_bytes >=
           report->verdict.floor_bytes;
}

static void print_mappings(struct seep_page *page,
                           const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    size_t shown = 0;

    for (size_t i = 0; i < memory->mapping_count && shown < MAPPING_ROWS; i++) {
        const struct seep_report_mapping *mapping = &memory->mappings[i];

        if (*mapping->filled_id != '\0' && matters(report, mapping)) {
            print_fill(page, report, mapping);
            shown++;
            continue;
        }
        if (mapping->tracked || !is_unexplained(report)) {
            continue;
        }
        shown++;
        seep_page_paragraph(
            page, SEEP_STYLE_PLAIN, " grew", 8, SEEP_NOTE_MAPPING_GREW,
            *mapping->name == '\0' ? "anonymous memory" : mapping->name,
            (unsigned long long)mapping->start,
            SEEP_UNITS_BYTES(mapping->first_bytes),
            SEEP_UNITS_BYTES(mapping->last_bytes),
            SEEP_UNITS_RATE(mapping->slope_bytes_per_s));
    }
}

struct seep_table *seep_view_balance_open(const char *title, size_t first_least)
{
    const struct seep_table_column columns[COLUMN_COUNT] = {
        [PART] = {title, false, 0}, [FIRST] = {"first", true, first_least},
        [LAST] = {"last", true, 0}, [GROWTH] = {"growth/min", true, 0},
        [NOTE] = {"", false, 0},
    };

    return seep_table_open(columns, COLUMN_COUNT);
}

void seep_view_balance(struct seep_page *page, const struct seep_report *report)
{
    struct seep_table *table = seep_view_balance_open("memory", FIRST_LEAST);

    if (report->memory.valid && report->memory.rss.valid) {
        seep_view_balance_row(table, report, "RSS", &report->memory.rss);
        add_parts(table, report);
    } else {
        struct seep_report_extent tracked = seep_words_tracked(report);

        seep_view_balance_row(table, report, "tracked", &tracked);
        note_spaces(table, report);
    }
    add_cgroup(table, report);
    add_bound(table, "addresses", &report->memory.address_space, "RLIMIT_AS");
    add_bound(table, "data", &report->memory.data, "RLIMIT_DATA");
    add_spaces(table, report);
    seep_table_print(table, page, 1);
    print_mappings(page, report);
}

/*
 * GPUs: a part of which there is nothing is left out.
 */

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
        seep_table_cell(table, GROWTH, "%s", "");
    }
}

static void add_used(struct seep_table *table, const struct seep_report *report,
                     const struct seep_report_device *device)
{
    const char *total = SEEP_UNITS_BYTES((double)device->total_bytes);
    const char *now = SEEP_UNITS_BYTES((double)device->free_bytes);
    const char *low = SEEP_UNITS_BYTES((double)device->low_free_bytes);
    add_row(table, report, device, "used", &device->used);
    if (strcmp(low, now) != 0) {
        seep_table_cell(table, NOTE, SEEP_NOTE_DEVICE_LOW, total, now, low);
    } else {
        seep_table_cell(table, NOTE, SEEP_NOTE_DEVICE_FREE, total, now);
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
    const char *peak = SEEP_UNITS_BYTES(device->peak_bytes);
    const char *last = SEEP_UNITS_BYTES(device->tracked.last_bytes);

    if (!add_part(table, report, device, "= tracked", &device->tracked)) {
        /* a part of which there is nothing */
    } else if (strcmp(peak, last) != 0 &&
               device->peak_bytes > device->tracked.last_bytes) {
        seep_table_cell(table, NOTE, SEEP_NOTE_DEVICE_PEAK, peak,
                        SEEP_UNITS_DURATION(device->peak_s));
    } else {
        seep_table_cell(table, NOTE, SEEP_NOTE_DEVICE_TRACKED);
    }
    if (add_part(table, report, device, "  PyTorch's cache",
                 &device->tensor_reserved) &&
        device->cache_fragments) {
        seep_table_cell(table, NOTE,
                        seep_words_tensors_leak(report, (int)device->ordinal)
                            ? SEEP_NOTE_DEVICE_CACHE_GROWS
                            : SEEP_NOTE_DEVICE_FRAGMENTS);
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

    if (add_part(table, report, device, "+ unexplained",
                 &device->unexplained)) {
        seep_table_cell(table, NOTE, SEEP_NOTE_DEVICE_OTHERS);
    }
    if (add_part(table, report, device, "  pool's cache", &pool)) {
        seep_table_cell(table, NOTE, SEEP_NOTE_DEVICE_POOL);
    }
    if (add_part(table, report, device, "  graphs", &device->graph_reserved)) {
        seep_table_cell(table, NOTE, SEEP_NOTE_DEVICE_GRAPHS,
                        SEEP_UNITS_BYTES(device->graph_used.last_bytes));
    }
}

/* "in 1 h 10 min (1 h 08 min to 1 h 12 min)" */
static void print_forecast(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_report_device *device)
{
    char *when = seep_words_when(&device->forecast);

    if (!seep_words_is_followed(device) && report->duration_s >= LEAST_S) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, " full", INDENT_FULL,
                            SEEP_NOTE_DEVICE_UNTOLD);
    } else if (when != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, " full", INDENT_FULL, "%s",
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
    table = seep_view_balance_open(title, FIRST_LEAST);
    add_used(table, report, device);
    add_tracked(table, report, device);
    add_unexplained(table, report, device);
    seep_table_print(table, page, 1);
    print_forecast(page, report, device);
}

void seep_view_devices(struct seep_page *page, const struct seep_report *report)
{
    for (size_t i = 0; i < report->device_count; i++) {
        seep_page_end_line(page);
        print_device(page, report, &report->devices[i]);
    }
}
