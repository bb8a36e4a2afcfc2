/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A table for people: columns aligned by what is in them, the last one cut to
 * the width of the page; and sparklines for its cells. Cells are cleaned
 * (words/clean.h) when they are put in.
 *
 * Errors: without memory a cell is empty.
 */
#ifndef SEEP_TOOL_TEXT_TABLE_H
#define SEEP_TOOL_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/report/report.h"
#include "text/page.h"

struct seep_table;

struct seep_table_column {
    const char *title;
    bool right;   /* numbers stand right, words left */
    size_t least; /* columns of a page; a narrower one does without it */
};

#define SEEP_TABLE_NEVER SIZE_MAX /* of .least: no page has it */

/** NULL without memory, which all functions take. Columns are copied, titles
 * are not. */
struct seep_table *seep_table_open(const struct seep_table_column *columns,
                                   size_t column_count);
void seep_table_close(struct seep_table *table);

/** Begin a row; cells that are not set are empty. */
void seep_table_row(struct seep_table *table, enum seep_style style);

/** Set a cell of the last row, in the row's style. */
__attribute__((format(printf, 3, 4))) void
seep_table_cell(struct seep_table *table, size_t column, const char *format,
                ...);

/** The same of @text, which is freed; NULL: the cell is empty. */
void seep_table_take(struct seep_table *table, size_t column, char *text);

/** Another style for a cell of the last row. */
void seep_table_style(struct seep_table *table, size_t column,
                      enum seep_style style);

/** A paragraph under the last row, wrapped. */
__attribute__((format(printf, 2, 3))) void
seep_table_note(struct seep_table *table, const char *format, ...);

/** Another one, behind @label and before that note. Takes @text; NULL: none. */
void seep_table_paragraph(struct seep_table *table, const char *label,
                          char *text);

/** Print with @indent columns before each line, and close: a long line ends
 * with "…". */
void seep_table_print(struct seep_table *table, struct seep_page *page,
                      size_t indent);

/*
 * Sparklines: a course in time as a few characters, from nothing to its
 * highest value in eight steps.
 *
 * What comes out is U+2581 to U+2588 and blanks; the page makes ASCII
 * of it where the terminal is none of UTF-8. Pure; no answer depends on
 * a value that is not finite. Texts are to be freed; NULL without memory.
 */

/** One cell a value; blank where it is not a number or below 0. */
char *seep_spark(const double *values, size_t count);

/**
 * Live bytes of @site over @duration_s of its process. Where the series has no
 * point nothing changed: the cell is as the one before. Blank until the first.
 */
char *seep_spark_site(const struct seep_report_site *site, double duration_s,
                      size_t cells);

/** What the process held over its life, as the kernel counts it. */
char *seep_spark_held(const struct seep_report *report, size_t cells);

#endif
