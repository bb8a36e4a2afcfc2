/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rows of call sites in a frame. Invariant: one line a row; a column
 * without a single value, or for which the page is too narrow, is left out.
 */
#include <stdlib.h>

#include "spark.h"
#include "table.h"
#include "top_draw.h"
#include "top_pad.h"
#include "units.h"
#include "view_sites.h"
#include "words.h"

/* A page that is narrower does without the column. */
#define BLOCKS_LEAST 110
#define PER_UNIT_LEAST 100
#define SPACE_LEAST 90
#define SPACE_LEAST_GPU 76 /* of which side a row is, is the point */
#define TREND_LEAST 70
#define LIVE_LEAST 50
#define GROWTH_LEAST 36
#define TREND_SHARE 10 /* of the columns are bars */
#define TREND_MOST 24

enum column {
    CLASS,
    GROWTH,
    PER_UNIT,
    LIVE,
    BLOCKS,
    SPACE,
    TREND,
    WHERE,
    COLUMN_COUNT
};

static size_t space_least(const struct seep_report *report)
{
    size_t least = SPACE_LEAST;

    for (size_t i = 0; i < report->space_count; i++) {
        if (seep_words_is_gpu(report->spaces[i].space)) {
            least = SPACE_LEAST_GPU;
        }
    }
    return least;
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
        return growth && columns >= GROWTH_LEAST;
    case PER_UNIT:
        return per_unit && columns >= PER_UNIT_LEAST;
    case LIVE:
        return columns >= LIVE_LEAST;
    case BLOCKS:
        return columns >= BLOCKS_LEAST;
    case SPACE:
        return report->space_count > 1 && columns >= space_least(report);
    case TREND:
        return columns >= TREND_LEAST;
    default:
        return true;
    }
}

static void fill_trend(struct seep_table *table, size_t columns,
                       const struct seep_report *report,
                       const struct seep_report_site *site)
{
    size_t cells = columns / TREND_SHARE;
    char *trend = seep_spark_site(site, report->duration_s,
                                  cells > TREND_MOST ? TREND_MOST : cells);

    seep_table_cell(table, TREND, "%s", trend == NULL ? "" : trend);
    free(trend);
}

static void fill_row(struct seep_table *table, size_t columns,
                     const struct seep_report *report,
                     const struct seep_top_row *row)
{
    const struct seep_report_site *site = row->site;
    char text[SEEP_UNITS_TEXT_BYTES];
    char place[SEEP_WORDS_GPU_BYTES];

    seep_table_row(table, site->class == SEEP_CLASS_LEAK && !site->backs_tensors
                              ? SEEP_INK_STRONG
                              : SEEP_INK_PLAIN);
    seep_view_sites_class(table, CLASS, site);
    seep_table_cell(table, GROWTH, "%s", seep_view_sites_growth(site, text));
    seep_table_cell(table, PER_UNIT, "%s",
                    seep_view_sites_growth_per_unit(site, text));
    seep_table_cell(table, LIVE, "%s",
                    seep_units_bytes((double)site->live_bytes, text));
    seep_table_cell(table, BLOCKS, "%s",
                    seep_units_count(site->live_count, text));
    seep_table_cell(table, SPACE, "%s", seep_words_place(report, site, place));
    fill_trend(table, columns, report, site);
    seep_table_cell(table, WHERE, "%s", row->where == NULL ? "" : row->where);
}

char *seep_top_draw_sites(const struct seep_top_model *model,
                          const struct seep_top_size *size,
                          const struct seep_top_window *window)
{
    static const struct seep_table_column columns[COLUMN_COUNT] = {
        [CLASS] = {"class", false},      [GROWTH] = {"growth/min", true},
        [PER_UNIT] = {"per unit", true}, [LIVE] = {"live", true},
        [BLOCKS] = {"blocks", true},     [SPACE] = {"space", false},
        [TREND] = {"trend", false},      [WHERE] = {"where", false},
    };
    const struct seep_report *report = seep_top_model_report(model);
    struct seep_table *table = seep_table_open(columns, COLUMN_COUNT);
    struct seep_top_pad pad;

    if (table == NULL || !seep_top_pad_open(&pad, size)) {
        seep_table_close(table);
        return NULL;
    }
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (!is_column((enum column)i, size->columns, report)) {
            seep_table_hide(table, i);
        }
    }
    for (size_t i = window->first; i < window->end; i++) {
        fill_row(table, size->columns, report, model->rows[i]);
    }
    seep_table_print(table, &pad.page, 1);
    seep_table_close(table);
    return seep_top_pad_close(&pad);
}
