/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A table for people. Invariant: no printed line is wider than the page.
 */
#include "table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"

#define GAP 2
#define NOTE_INDENT 6

struct row {
    enum seep_ink inks[SEEP_TABLE_COLUMNS_MAX];
    char *cells[SEEP_TABLE_COLUMNS_MAX];
    char *note; /* NULL: none */
};

struct seep_table {
    struct seep_table_column columns[SEEP_TABLE_COLUMNS_MAX];
    bool hidden[SEEP_TABLE_COLUMNS_MAX];
    size_t column_count;
    struct row *rows;
    size_t row_count;
    size_t row_capacity;
};

struct seep_table *seep_table_open(const struct seep_table_column *columns,
                                   size_t column_count)
{
    struct seep_table *table = calloc(1, sizeof(*table));

    if (table == NULL) {
        return NULL;
    }
    if (column_count > SEEP_TABLE_COLUMNS_MAX) {
        column_count = SEEP_TABLE_COLUMNS_MAX;
    }
    memcpy(table->columns, columns, column_count * sizeof(*columns));
    table->column_count = column_count;
    return table;
}

void seep_table_close(struct seep_table *table)
{
    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < table->row_count; i++) {
        for (size_t j = 0; j < table->column_count; j++) {
            free(table->rows[i].cells[j]);
        }
        free(table->rows[i].note);
    }
    free(table->rows);
    free(table);
}

void seep_table_hide(struct seep_table *table, size_t column)
{
    if (column < table->column_count) {
        table->hidden[column] = true;
    }
}

void seep_table_row(struct seep_table *table, enum seep_ink ink)
{
    if (table->row_count == table->row_capacity) {
        size_t capacity = table->row_capacity * 2 + 8;
        struct row *rows = reallocarray(table->rows, capacity, sizeof(*rows));
        if (rows == NULL) {
            return;
        }
        table->rows = rows;
        table->row_capacity = capacity;
    }
    struct row *row = &table->rows[table->row_count++];
    *row = (struct row){0};
    for (size_t j = 0; j < SEEP_TABLE_COLUMNS_MAX; j++) {
        row->inks[j] = ink;
    }
}

void seep_table_ink(struct seep_table *table, size_t column, enum seep_ink ink)
{
    if (table->row_count > 0 && column < table->column_count) {
        table->rows[table->row_count - 1].inks[column] = ink;
    }
}

void seep_table_note(struct seep_table *table, const char *format, ...)
{
    va_list arguments;
    char *text;

    if (table->row_count == 0) {
        return;
    }
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) >= 0) {
        free(table->rows[table->row_count - 1].note);
        table->rows[table->row_count - 1].note = text;
    }
    va_end(arguments);
}

void seep_table_cell(struct seep_table *table, size_t column,
                     const char *format, ...)
{
    va_list arguments;
    char *raw;

    if (table->row_count == 0 || column >= table->column_count) {
        return;
    }
    va_start(arguments, format);
    int length = vasprintf(&raw, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return;
    }
    char **cell = &table->rows[table->row_count - 1].cells[column];
    free(*cell);
    *cell = seep_clean_for_terminal(raw);
    free(raw);
}

static const char *text_of(const struct row *row, size_t column)
{
    return row->cells[column] == NULL ? "" : row->cells[column];
}

static void measure(const struct seep_table *table, size_t *widths)
{
    for (size_t j = 0; j < table->column_count; j++) {
        widths[j] = seep_clean_columns(table->columns[j].title);
        for (size_t i = 0; i < table->row_count; i++) {
            size_t width = seep_clean_columns(text_of(&table->rows[i], j));
            widths[j] = width > widths[j] ? width : widths[j];
        }
    }
}

/* One cell, at most @room columns wide; @return the columns it took. */
static size_t print_cut(struct seep_page *page, enum seep_ink ink,
                        const char *text, size_t room)
{
    size_t width = seep_clean_columns(text);

    if (width <= room) {
        seep_page_print(page, ink, "%s", text);
        return width;
    }
    const char *mark = seep_clean_ellipsis();
    size_t mark_columns = seep_clean_columns(mark);
    mark_columns = mark_columns < room ? mark_columns : room;
    size_t fit = seep_clean_fit(text, room - mark_columns);
    seep_page_print(page, ink, "%.*s%.*s", (int)fit, text,
                    (int)seep_clean_fit(mark, mark_columns), mark);
    return room;
}

static void print_row(const struct seep_table *table, struct seep_page *page,
                      const size_t *widths, size_t indent,
                      const struct row *row)
{
    size_t column = indent;
    size_t pending = 0; /* blanks that only a further cell makes necessary */
    size_t last = table->column_count;

    while (last > 0 && *text_of(row, last - 1) == '\0') {
        last--; /* no blanks at the end of a line */
    }
    fprintf(page->file, "%*s", last == 0 ? 0 : (int)indent, "");
    for (size_t j = 0; j < last; j++) {
        if (table->hidden[j]) {
            continue;
        }
        const char *text = text_of(row, j);
        size_t width = seep_clean_columns(text);
        size_t pad = widths[j] - width;
        size_t before = pending + (table->columns[j].right ? pad : 0);
        before += j > 0 ? GAP : 0;
        if (column + before >= page->columns) {
            break;
        }
        fprintf(page->file, "%*s", (int)before, "");
        column += before;
        column += print_cut(page, row->inks[j], text, page->columns - column);
        pending = table->columns[j].right ? 0 : pad;
    }
    seep_page_end_line(page);
    if (row->note != NULL) {
        seep_page_paragraph(page, SEEP_INK_PLAIN, "", indent + NOTE_INDENT,
                            "%s", row->note);
    }
}

void seep_table_print(const struct seep_table *table, struct seep_page *page,
                      size_t indent)
{
    size_t widths[SEEP_TABLE_COLUMNS_MAX] = {0};
    struct row head = {0};

    measure(table, widths);
    for (size_t j = 0; j < table->column_count; j++) {
        head.inks[j] = SEEP_INK_FAINT;
        /* row cells are only read here; titles outlive the table */
        head.cells[j] = (char *)(uintptr_t)table->columns[j].title;
    }
    print_row(table, page, widths, indent, &head);
    for (size_t i = 0; i < table->row_count; i++) {
        print_row(table, page, widths, indent, &table->rows[i]);
    }
}
