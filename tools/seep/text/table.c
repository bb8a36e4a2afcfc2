/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tables and sparklines. Invariant: no printed line is wider than the page.
 */
#include "text/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 16
#define GAP 2
#define NOTE_INDENT 6

struct row {
    enum seep_style styles[COLUMNS_MAX];
    char *cells[COLUMNS_MAX];
    char *note;  /* NULL: none */
    char *label; /* of the other paragraph; NULL: there is none */
    char *text;
};

struct seep_table {
    struct seep_table_column columns[COLUMNS_MAX];
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
    if (column_count > COLUMNS_MAX) {
        column_count = COLUMNS_MAX;
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
        free(table->rows[i].label);
        free(table->rows[i].text);
    }
    free(table->rows);
    free(table);
}

void seep_table_row(struct seep_table *table, enum seep_style style)
{
    if (table == NULL) {
        return;
    }
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
    for (size_t j = 0; j < COLUMNS_MAX; j++) {
        row->styles[j] = style;
    }
}

static struct row *last_row(const struct seep_table *table)
{
    return table == NULL || table->row_count == 0
               ? NULL
               : &table->rows[table->row_count - 1];
}

void seep_table_style(struct seep_table *table, size_t column,
                      enum seep_style style)
{
    struct row *row = last_row(table);

    if (row != NULL && column < table->column_count) {
        row->styles[column] = style;
    }
}

void seep_table_note(struct seep_table *table, const char *format, ...)
{
    struct row *row = last_row(table);
    va_list arguments;
    char *text;

    va_start(arguments, format);
    if (row != NULL && vasprintf(&text, format, arguments) >= 0) {
        free(row->note);
        row->note = text;
    }
    va_end(arguments);
}

void seep_table_paragraph(struct seep_table *table, const char *label,
                          char *text)
{
    struct row *row = last_row(table);

    if (row == NULL || text == NULL) {
        free(text);
        return;
    }
    free(row->label);
    free(row->text);
    row->text = text;
    if (asprintf(&row->label, "%*s%s  ", NOTE_INDENT + 1, "", label) < 0) {
        row->label = NULL;
    }
}

void seep_table_cell(struct seep_table *table, size_t column,
                     const char *format, ...)
{
    struct row *row = last_row(table);
    va_list arguments;

    if (row == NULL || column >= table->column_count) {
        return;
    }
    free(row->cells[column]);
    va_start(arguments, format);
    row->cells[column] = seep_clean_vformat(format, arguments);
    va_end(arguments);
}

void seep_table_take(struct seep_table *table, size_t column, char *text)
{
    seep_table_cell(table, column, "%s", text == NULL ? "" : text);
    free(text);
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
static size_t print_cut(struct seep_page *page, enum seep_style style,
                        const char *text, size_t room)
{
    size_t width = seep_clean_columns(text);

    if (width <= room) {
        seep_page_print(page, style, "%s", text);
        return width;
    }
    const char *mark = seep_clean_ellipsis();
    size_t mark_columns = seep_clean_columns(mark);
    mark_columns = mark_columns < room ? mark_columns : room;
    size_t fit = seep_clean_fit(text, room - mark_columns);
    seep_page_print(page, style, "%.*s%.*s", (int)fit, text,
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
        if (page->columns < table->columns[j].least) {
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
        column += print_cut(page, row->styles[j], text, page->columns - column);
        pending = table->columns[j].right ? 0 : pad;
    }
    seep_page_end_line(page);
    if (row->label != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, row->label,
                            strlen(row->label), "%s", row->text);
    }
    if (row->note != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", indent + NOTE_INDENT,
                            "%s", row->note);
    }
}

void seep_table_print(struct seep_table *table, struct seep_page *page,
                      size_t indent)
{
    size_t widths[COLUMNS_MAX] = {0};
    struct row head = {0};

    if (table == NULL) {
        return;
    }
    measure(table, widths);
    for (size_t j = 0; j < table->column_count; j++) {
        head.styles[j] = SEEP_STYLE_FAINT;
        /* row cells are only read here; titles outlive the table */
        head.cells[j] = (char *)(uintptr_t)table->columns[j].title;
    }
    print_row(table, page, widths, indent, &head);
    for (size_t i = 0; i < table->row_count; i++) {
        print_row(table, page, widths, indent, &table->rows[i]);
    }
    seep_table_close(table);
}

/*
 * Sparklines. Invariant: a text has as many columns as cells were asked for.
 */

#define STEPS 8
#define STEP_BYTES 3 /* of U+2581 to U+2588 in UTF-8 */
#define CELLS_MOST 512

char *seep_spark(const double *values, size_t count)
{
    char *text = malloc(count * STEP_BYTES + 1);
    char *out = text;
    double most = 0;

    if (text == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        most = isfinite(values[i]) && values[i] > most ? values[i] : most;
    }
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]) || values[i] < 0) {
            *out++ = ' ';
            continue;
        }
        double share = most > 0 ? values[i] / most : 0;
        int step = (int)ceil(share * STEPS);
        step = step < 1 ? 1 : step > STEPS ? STEPS : step;
        *out++ = '\xe2';
        *out++ = '\x96';
        *out++ = (char)(0x80 + step);
    }
    *out = '\0';
    return text;
}

/* Cells without a value of their own are as the one before. */
static void fill_gaps(double *cells, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (isnan(cells[i])) {
            cells[i] = cells[i - 1];
        }
    }
}

/* The cell in which @at_s lies, or @count if in none. */
static size_t cell_of(double at_s, double duration_s, size_t count)
{
    double at = at_s / duration_s * (double)count;

    if (!(at >= 0) || !(duration_s > 0)) {
        return count;
    }
    return at < (double)count ? (size_t)at : count - 1;
}

static void clear(double *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cells[i] = NAN;
    }
}

char *seep_spark_site(const struct seep_report_site *site, double duration_s,
                      size_t cells)
{
    double values[CELLS_MOST];

    cells = cells > CELLS_MOST ? CELLS_MOST : cells;
    clear(values, cells);
    for (size_t i = 0; i < site->point_count && cells > 0; i++) {
        const struct seep_report_point *point = &site->series[i];
        size_t cell =
            cell_of(point->start_s + point->width_s / 2, duration_s, cells);
        if (cell < cells) {
            values[cell] = (double)point->live_bytes;
        }
    }
    fill_gaps(values, cells);
    return seep_spark(values, cells);
}

char *seep_spark_held(const struct seep_report *report, size_t cells)
{
    const struct seep_report_memory *memory = &report->memory;
    double values[CELLS_MOST];

    cells = cells > CELLS_MOST ? CELLS_MOST : cells;
    clear(values, cells);
    for (size_t i = 0; i < memory->moment_count && cells > 0; i++) {
        const struct seep_report_moment *moment = &memory->moments[i];
        size_t cell = cell_of(moment->t_s, report->duration_s, cells);
        if (cell < cells && moment->held_bytes >= 0) {
            values[cell] = moment->held_bytes;
        }
    }
    fill_gaps(values, cells);
    return seep_spark(values, cells);
}
