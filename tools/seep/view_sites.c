/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Call sites as text: a table with one line each. Invariant: what is left out
 * of it is counted below it.
 */
#include "view_sites.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/catalogue.h"
#include "table.h"
#include "units.h"
#include "verdict_words.h"
#include "words.h"

#define QUIET_ROWS 3

/* A page that is narrower does without the column. */
#define BLOCKS_LEAST 110
#define SPACE_LEAST 90
#define SPACE_LEAST_GPU 76 /* of which side a row is, is the point */
#define PER_UNIT_LEAST 70
#define LIVE_LEAST 60

enum column {
    CLASS,
    GROWTH,
    PER_UNIT,
    LIVE,
    PEAK,
    BLOCKS,
    SPACE,
    WHERE,
    COLUMN_COUNT
};

enum seep_ink seep_view_sites_ink(enum seep_class class)
{
    switch (class) {
    case SEEP_CLASS_LEAK:
        return SEEP_INK_BAD;
    case SEEP_CLASS_SUSPECT:
    case SEEP_CLASS_WARMING:
    case SEEP_CLASS_AGING:
        return SEEP_INK_WARNING;
    case SEEP_CLASS_INSUFFICIENT:
        return SEEP_INK_STRONG;
    default:
        return SEEP_INK_GOOD;
    }
}

bool seep_view_sites_wanted(const struct seep_report_site *site,
                            const char *site_id)
{
    size_t length = site_id == NULL ? 0 : strlen(site_id);

    return length == 0 || strncmp(site->id, site_id, length) == 0 ||
           strncmp(site->line_id, site_id, length) == 0;
}

/* A site that is asked for by its id is shown whatever it is. */
static bool is_shown(const struct seep_report_site *site,
                     const struct seep_text_options *options)
{
    if (options->site_id != NULL) {
        return seep_view_sites_wanted(site, options->site_id);
    }
    return site->suppressed_by != NULL ? options->show_suppressed
                                       : site->class != SEEP_CLASS_MINOR;
}

static bool is_quiet(const struct seep_report_site *site)
{
    return site->class >= SEEP_CLASS_INSUFFICIENT;
}

struct seep_view_choice
seep_view_sites_start(const struct seep_report *report,
                      const struct seep_text_options *options)
{
    struct seep_view_choice choice = {SIZE_MAX, SIZE_MAX, QUIET_ROWS};

    if (options->site_limit > 0) {
        choice.left = options->site_limit;
    }
    if (!options->brief) {
        choice.segments_left = SIZE_MAX;
    }
    for (size_t i = 0; options->brief && i < report->site_count; i++) {
        if (is_shown(&report->sites[i], options) &&
            !report->sites[i].backs_tensors && !is_quiet(&report->sites[i])) {
            choice.quiet_left = QUIET_ROWS;
        }
    }
    return choice;
}

bool seep_view_sites_choose(struct seep_view_choice *choice,
                            const struct seep_report_site *site,
                            const struct seep_text_options *options)
{
    size_t *left = site->backs_tensors ? &choice->segments_left
                   : is_quiet(site)    ? &choice->quiet_left
                                       : &choice->left;

    if (!is_shown(site, options) || *left == 0 ||
        (choice->left == 0 && !site->backs_tensors)) {
        return false;
    }
    choice->left -= left != &choice->segments_left;
    *left -= left != &choice->left;
    return true;
}

/* "?" was not to be told, "-" is no growth, whatever the line through it. */
static const char *change_text(const struct seep_report_site *site, bool known,
                               const struct seep_interval *growth, double scale,
                               char text[SEEP_UNITS_TEXT_BYTES])
{
    if (site->class > SEEP_CLASS_INSUFFICIENT) {
        return "-";
    }
    return known ? seep_units_interval(growth, scale, text) : "?";
}

const char *seep_view_sites_growth(const struct seep_report_site *site,
                                   char text[SEEP_UNITS_TEXT_BYTES])
{
    return change_text(site, site->has_growth, &site->growth_bytes_per_s, 60,
                       text);
}

const char *seep_view_sites_growth_per_unit(const struct seep_report_site *site,
                                            char text[SEEP_UNITS_TEXT_BYTES])
{
    return change_text(site, site->has_growth_per_unit,
                       &site->growth_bytes_per_unit, 1, text);
}

static void fill_growth(struct seep_table *table, const int *at,
                        const struct seep_report_site *site)
{
    char text[SEEP_UNITS_TEXT_BYTES];

    if (at[GROWTH] >= 0) {
        seep_table_cell(table, (size_t)at[GROWTH], "%s",
                        seep_view_sites_growth(site, text));
    }
    if (at[PER_UNIT] >= 0) {
        seep_table_cell(table, (size_t)at[PER_UNIT], "%s",
                        seep_view_sites_growth_per_unit(site, text));
    }
}

static void fill_totals(struct seep_table *table, const int *at,
                        const struct seep_report *report,
                        const struct seep_report_site *site)
{
    char text[SEEP_UNITS_TEXT_BYTES];
    char place[SEEP_WORDS_GPU_BYTES];

    if (at[LIVE] >= 0) {
        seep_table_cell(table, (size_t)at[LIVE], "%s",
                        seep_units_bytes((double)site->live_bytes, text));
    }
    if (at[PEAK] >= 0) {
        seep_table_cell(table, (size_t)at[PEAK], "%s",
                        seep_units_bytes((double)site->peak_bytes, text));
    }
    if (at[BLOCKS] >= 0) {
        seep_table_cell(table, (size_t)at[BLOCKS], "%s",
                        seep_units_count(site->live_count, text));
    }
    if (at[SPACE] >= 0) {
        seep_table_cell(table, (size_t)at[SPACE], "%s",
                        seep_words_place(report, site, place));
    }
}

/* The site that the verdict is about has its remedy among the next steps. */
static void note_row(struct seep_table *table, const struct seep_report *report,
                     const struct seep_report_site *site)
{
    if (site->suppressed_by != NULL) {
        seep_table_note(table, "suppressed by leak:%s", site->suppressed_by);
    } else if (site->known_bound_bytes > 0) {
        char bound[SEEP_UNITS_TEXT_BYTES];
        seep_table_note(
            table, "known bound: %s",
            seep_units_bytes((double)site->known_bound_bytes, bound));
    } else if (site->pattern != NULL && !is_quiet(site) &&
               !site->backs_tensors) {
        bool told = site == seep_verdict_words_site(report);

        seep_table_note(table, "known: %s%s%s", site->pattern->name,
                        told ? "" : ". ", told ? "" : site->pattern->remedy);
    }
}

void seep_view_sites_class(struct seep_table *table, size_t column,
                           const struct seep_report_site *site)
{
    if (site->backs_tensors) {
        seep_table_cell(table, column, "segments");
        return;
    }
    seep_table_cell(table, column, "%s",
                    site->class == SEEP_CLASS_INSUFFICIENT
                        ? "unclear"
                        : seep_class_name(site->class));
    seep_table_ink(table, column, seep_view_sites_ink(site->class));
}

static void fill_row(struct seep_table *table, const int *at,
                     const struct seep_report *report,
                     const struct seep_report_site *site)
{
    char *where = seep_view_sites_chain(report, site);

    seep_table_row(table, site->class == SEEP_CLASS_LEAK && !site->backs_tensors
                              ? SEEP_INK_STRONG
                              : SEEP_INK_PLAIN);
    seep_view_sites_class(table, (size_t)at[CLASS], site);
    fill_growth(table, at, site);
    fill_totals(table, at, report, site);
    seep_table_cell(table, (size_t)at[WHERE], "%s", where == NULL ? "" : where);
    free(where);
    note_row(table, report, site);
}

/* A tidy exit frees all: what was held, the peak tells. */
static bool has_freed(const struct seep_report *report)
{
    uint64_t live = 0;
    uint64_t peak = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        live += report->sites[i].live_bytes;
        peak += report->sites[i].peak_bytes;
    }
    return report->state == SEEP_STATE_EXITED && peak / 2 > live;
}

static bool has_gpu(const struct seep_report *report)
{
    bool gpu = false;

    for (size_t i = 0; i < report->space_count; i++) {
        gpu = gpu || seep_words_is_gpu(report->spaces[i].space);
    }
    return gpu;
}

static bool is_column(enum column column, size_t columns,
                      const struct seep_report *report)
{
    bool growth = false;
    bool per_unit = false;

    for (size_t i = 0; i < report->site_count; i++) {
        growth = growth || report->sites[i].has_growth;
        per_unit = per_unit || report->sites[i].has_growth_per_unit;
    }
    switch (column) {
    case GROWTH:
        return growth;
    case PER_UNIT:
        return per_unit && columns >= PER_UNIT_LEAST;
    case LIVE:
        return columns >= LIVE_LEAST;
    case PEAK:
        return has_freed(report) && columns >= LIVE_LEAST;
    case BLOCKS:
        return columns >= BLOCKS_LEAST;
    case SPACE:
        return report->space_count > 1 &&
               columns >= (has_gpu(report) ? SPACE_LEAST_GPU : SPACE_LEAST);
    default:
        return true;
    }
}

/* Columns without a single value are left out: the line is short. */
static struct seep_table *open_table(const struct seep_page *page,
                                     const struct seep_report *report, int *at)
{
    static const struct seep_table_column all[COLUMN_COUNT] = {
        [CLASS] = {"class", false},      [GROWTH] = {"growth/min", true},
        [PER_UNIT] = {"per unit", true}, [LIVE] = {"live", true},
        [PEAK] = {"peak", true},         [BLOCKS] = {"blocks", true},
        [SPACE] = {"space", false},      [WHERE] = {"where", false},
    };
    struct seep_table_column used[COLUMN_COUNT];
    int count = 0;

    for (int i = 0; i < COLUMN_COUNT; i++) {
        bool wanted = is_column((enum column)i, page->columns, report);

        at[i] = wanted ? count : -1;
        if (wanted) {
            used[count++] = all[i];
        }
    }
    return seep_table_open(used, (size_t)count);
}

/* @return how many rows there are of what stands on its own feet, or, if
 * @segments, of PyTorch's cache, whose growth is that of tensors. */
static size_t fill_rows(struct seep_table *table, const int *at,
                        const struct seep_report *report,
                        const struct seep_text_options *options, bool segments,
                        struct seep_view_choice *choice)
{
    size_t count = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->backs_tensors == segments &&
            seep_view_sites_choose(choice, site, options)) {
            fill_row(table, at, report, site);
            count++;
        }
    }
    return count;
}

void seep_view_sites_table(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_text_options *options)
{
    int at[COLUMN_COUNT];
    struct seep_view_choice choice = seep_view_sites_start(report, options);
    struct seep_table *table = open_table(page, report, at);
    size_t shown;

    if (table == NULL) {
        return;
    }
    shown = fill_rows(table, at, report, options, false, &choice);
    size_t segments = fill_rows(table, at, report, options, true, &choice);
    shown += segments;
    if (segments > 0) {
        seep_table_note(table,
                        "segments of PyTorch's cache, by the line that missed "
                        "it: who keeps what is in them is told by the rows of "
                        "space tensor");
    }
    if (shown > 0) {
        seep_table_print(table, page, 1);
    } else if (options->site_id != NULL) {
        seep_page_print(page, SEEP_INK_PLAIN, " no site %s here",
                        options->site_id);
        seep_page_end_line(page);
    }
    seep_table_close(table);
    seep_view_sites_left_out(page, report, options, shown);
}
