/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes by their labels, one line each. Invariant: a label is as long as
 * its row says, whatever follows it.
 */
#include "view_labels.h"

#include <stdio.h>
#include <stdlib.h>

#include "reader/report_labels.h"
#include "table.h"
#include "units.h"
#include "view_text.h"
#include "words.h"

enum column { CLASS, GROWTH, LIVE, PROCESSES, LABEL, FIRST, COLUMN_COUNT };

static const struct seep_table_column columns[COLUMN_COUNT] = {
    [CLASS] = {"class", false}, [GROWTH] = {"growth/min", true},
    [LIVE] = {"live", true},    [PROCESSES] = {"processes", true},
    [LABEL] = {"label", false}, [FIRST] = {"first to look at", false},
};

static void fill_label(struct seep_table *table,
                       const struct seep_label_row *row)
{
    if (row->key_length == 0) {
        seep_table_cell(table, LABEL, "(none)");
    } else {
        seep_table_cell(table, LABEL, "%.*s%s%.*s", (int)row->key_length,
                        row->key, row->value_length > 0 ? "=" : "",
                        (int)row->value_length, row->value);
    }
}

static void fill_row(struct seep_table *table, const struct seep_label_row *row)
{
    char text[SEEP_UNITS_TEXT_BYTES];
    char *program = seep_words_program(row->first);

    seep_table_row(table, SEEP_INK_PLAIN);
    seep_table_cell(table, CLASS, "%s", seep_verdict_name(row->class));
    seep_table_ink(table, CLASS, seep_view_verdict_ink(row->class));
    seep_table_cell(table, GROWTH, "%s",
                    row->has_growth ? seep_units_interval(
                                          &row->growth_bytes_per_s, 60, text)
                                    : "-");
    seep_table_cell(table, LIVE, "%s",
                    seep_units_bytes((double)row->live_bytes, text));
    seep_table_cell(table, PROCESSES, "%s",
                    seep_units_count((double)row->process_count, text));
    fill_label(table, row);
    seep_table_cell(table, FIRST, "pid %u, %s", row->first->pid,
                    program == NULL ? "?" : program);
    free(program);
}

void seep_view_labels(struct seep_page *page,
                      const struct seep_report *const *reports, size_t count)
{
    struct seep_label_row *rows;
    size_t row_count;
    struct seep_table *table = seep_table_open(columns, COLUMN_COUNT);

    if (table == NULL) {
        return;
    }
    if (seep_labels_group(reports, count, &rows, &row_count) == 0) {
        for (size_t i = 0; i < row_count; i++) {
            fill_row(table, &rows[i]);
        }
        free(rows);
        seep_table_print(table, page, 1);
    }
    seep_table_close(table);
}
