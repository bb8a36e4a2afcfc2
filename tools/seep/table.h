/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A table for people: columns aligned by what is in them, the last one cut to
 * the width of the page. Cells are cleaned (clean.h) when they are put in.
 *
 * Errors: without memory a cell is empty.
 */
#ifndef SEEP_TOOL_TABLE_H
#define SEEP_TOOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "page.h"

#define SEEP_TABLE_COLUMNS_MAX 8

struct seep_table;

struct seep_table_column {
    const char *title;
    bool right; /* numbers stand right, words left */
};

/** NULL without memory. Columns are copied, titles are not. */
struct seep_table *seep_table_open(const struct seep_table_column *columns,
                                   size_t column_count);
void seep_table_close(struct seep_table *table);

/** Leave a column out. */
void seep_table_hide(struct seep_table *table, size_t column);

/** Begin a row; cells that are not set are empty. */
void seep_table_row(struct seep_table *table, enum seep_ink ink);

/** Set a cell of the last row, in the row's ink. */
__attribute__((format(printf, 3, 4))) void
seep_table_cell(struct seep_table *table, size_t column, const char *format,
                ...);

/** Another ink for a cell of the last row. */
void seep_table_ink(struct seep_table *table, size_t column, enum seep_ink ink);

/** A paragraph under the last row, wrapped. */
__attribute__((format(printf, 2, 3))) void
seep_table_note(struct seep_table *table, const char *format, ...);

/** Print with @indent columns before each line; a long line ends with "…". */
void seep_table_print(const struct seep_table *table, struct seep_page *page,
                      size_t indent);

#endif
