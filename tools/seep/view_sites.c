/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Call sites as text. In one line: the user's frame, then "> what it called"
 * down to the allocation, then "< who called it".
 */
#include "view_sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "units.h"
#include "words.h"

#define CHAIN_INNER 3
#define CHAIN_OUTER 6
#define ID_COLUMNS 8

enum column {
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
    return site_id == NULL || strncmp(site->id, site_id, strlen(site_id)) == 0;
}

static size_t wanted_count(const struct seep_report *report,
                           const struct seep_text_options *options)
{
    size_t count = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        count += seep_view_sites_wanted(&report->sites[i], options->site_id);
    }
    if (options->site_limit > 0 && count > options->site_limit) {
        count = options->site_limit;
    }
    return count;
}

/* One name of a chain; the same name twice in a row is said once. */
static void put_link(FILE *file, const char *mark,
                     const struct seep_report_frame *frame, char **last)
{
    char *name = seep_words_frame(frame);

    if (name != NULL && (*last == NULL || strcmp(name, *last) != 0)) {
        fprintf(file, " %s %s", mark, name);
    }
    free(*last);
    *last = name;
}

static void put_chain(FILE *file, const struct seep_report_site *site)
{
    size_t middle = site->where_frame;
    char *last = NULL;

    if (site->frame_count == 0 || middle >= site->frame_count) {
        return;
    }
    for (size_t i = 0; i < CHAIN_INNER && i < middle; i++) {
        put_link(file, ">", &site->frames[middle - 1 - i], &last);
    }
    free(last);
    last = seep_words_frame(&site->frames[middle]);
    for (size_t i = 1; i <= CHAIN_OUTER && middle + i < site->frame_count;
         i++) {
        put_link(file, "<", &site->frames[middle + i], &last);
    }
    free(last);
}

static char *where_text(const struct seep_report_site *site)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        return NULL;
    }
    if (site->class != SEEP_CLASS_LEAK &&
        site->class != SEEP_CLASS_INSUFFICIENT) {
        fprintf(file, "%s: ", seep_class_name(site->class));
    }
    char *where = seep_words_where(site);
    fputs(where == NULL ? "?" : where, file);
    free(where);
    put_chain(file, site);
    fclose(file);
    return text;
}

static void fill_growth(struct seep_table *table, const int *at,
                        const struct seep_report *report,
                        const struct seep_report_site *site)
{
    char text[SEEP_UNITS_TEXT_BYTES];
    double per_unit = report->duration_s / (double)report->units;

    if (at[GROWTH] >= 0) {
        seep_table_cell(
            table, (size_t)at[GROWTH], "%s",
            site->has_growth
                ? seep_units_interval(&site->growth_bytes_per_s, 60, text)
                : "?");
    }
    if (at[PER_UNIT] >= 0) {
        seep_table_cell(
            table, (size_t)at[PER_UNIT], "%s",
            site->has_growth
                ? seep_units_interval(&site->growth_bytes_per_s, per_unit, text)
                : "?");
    }
}

static void fill_row(struct seep_table *table, const int *at,
                     const struct seep_report *report,
                     const struct seep_report_site *site)
{
    char text[SEEP_UNITS_TEXT_BYTES];
    char *where = where_text(site);

    seep_table_row(table, site->class == SEEP_CLASS_LEAK ? SEEP_INK_STRONG
                                                         : SEEP_INK_PLAIN);
    fill_growth(table, at, report, site);
    seep_table_cell(table, (size_t)at[LIVE], "%s",
                    seep_units_bytes((double)site->live_bytes, text));
    if (at[PEAK] >= 0) {
        seep_table_cell(table, (size_t)at[PEAK], "%s",
                        seep_units_bytes((double)site->peak_bytes, text));
    }
    seep_table_cell(table, (size_t)at[BLOCKS], "%s",
                    seep_units_count(site->live_count, text));
    if (at[SPACE] >= 0) {
        seep_table_cell(table, (size_t)at[SPACE], "%s",
                        seep_words_space(site->space));
    }
    seep_table_cell(table, (size_t)at[WHERE], "%s", where == NULL ? "" : where);
    free(where);
}

/* Columns without a single value are left out: the line is short. */
static struct seep_table *open_table(const struct seep_report *report, int *at)
{
    static const struct seep_table_column all[COLUMN_COUNT] = {
        [GROWTH] = {"growth/min", true}, [PER_UNIT] = {"per unit", true},
        [LIVE] = {"live", true},         [PEAK] = {"peak", true},
        [BLOCKS] = {"blocks", true},     [SPACE] = {"space", false},
        [WHERE] = {"where", false},
    };
    struct seep_table_column used[COLUMN_COUNT];
    bool growth = false;
    int count = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        growth = growth || report->sites[i].has_growth;
    }
    for (int i = 0; i < COLUMN_COUNT; i++) {
        bool wanted =
            !((i == GROWTH && !growth) ||
              (i == PER_UNIT && (!growth || report->units == 0)) ||
              /* a tidy exit frees all: what was held, the peak tells */
              (i == PEAK && report->state != SEEP_STATE_EXITED) ||
              (i == SPACE && report->space_count < 2));
        at[i] = wanted ? count : -1;
        if (wanted) {
            used[count++] = all[i];
        }
    }
    return seep_table_open(used, (size_t)count);
}

void seep_view_sites_table(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_text_options *options)
{
    int at[COLUMN_COUNT];
    size_t limit = wanted_count(report, options);
    size_t shown = 0;
    struct seep_table *table = open_table(report, at);

    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < report->site_count && shown < limit; i++) {
        if (seep_view_sites_wanted(&report->sites[i], options->site_id)) {
            fill_row(table, at, report, &report->sites[i]);
            shown++;
        }
    }
    if (shown > 0) {
        seep_table_print(table, page, 1);
    } else if (options->site_id != NULL) {
        seep_page_print(page, SEEP_INK_PLAIN, " no site %s here",
                        options->site_id);
        seep_page_end_line(page);
    }
    seep_table_close(table);
    size_t total = report->site_total > report->site_count ? report->site_total
                                                           : report->site_count;
    if (options->site_id == NULL && total > shown) {
        seep_page_print(page, SEEP_INK_FAINT,
                        " and %zu more call sites (--sites 0 shows all)",
                        total - shown);
        seep_page_end_line(page);
    }
}

static void print_stack(struct seep_page *page,
                        const struct seep_report_site *site)
{
    char live[SEEP_UNITS_TEXT_BYTES];
    char blocks[SEEP_UNITS_TEXT_BYTES];

    seep_page_print(page, SEEP_INK_STRONG, "site %.*s", ID_COLUMNS, site->id);
    seep_page_print(page, SEEP_INK_PLAIN, "  %s, %s, %s live in %s blocks",
                    seep_class_name(site->class), seep_words_space(site->space),
                    seep_units_bytes((double)site->live_bytes, live),
                    seep_units_count(site->live_count, blocks));
    seep_page_end_line(page);
    if (site->class_reason != NULL && *site->class_reason != '\0') {
        seep_page_paragraph(page, SEEP_INK_PLAIN, "", 2, "%s",
                            site->class_reason);
    }
    for (size_t i = 0; i < site->frame_count; i++) {
        char *frame = seep_words_frame_long(&site->frames[i]);
        bool user = i == site->where_frame;
        seep_page_print(page, user ? SEEP_INK_STRONG : SEEP_INK_PLAIN,
                        "  %s %s", user ? ">" : " ",
                        frame == NULL ? "?" : frame);
        seep_page_end_line(page);
        free(frame);
    }
    if (site->cut != SEEP_CUT_NONE) {
        seep_page_print(page, SEEP_INK_FAINT, "    (cut here: %s)",
                        seep_words_cut(site->cut));
        seep_page_end_line(page);
    }
    seep_page_end_line(page);
}

void seep_view_sites_stacks(struct seep_page *page,
                            const struct seep_report *report,
                            const struct seep_text_options *options)
{
    size_t limit = wanted_count(report, options);

    for (size_t i = 0; i < report->site_count && limit > 0; i++) {
        if (seep_view_sites_wanted(&report->sites[i], options->site_id)) {
            print_stack(page, &report->sites[i]);
            limit--;
        }
    }
}
