/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Where the memory of a process is, as a sum: what seep tracks, what the
 * allocator holds beyond it, and what is left.
 */
#ifndef SEEP_TOOL_VIEW_BALANCE_H
#define SEEP_TOOL_VIEW_BALANCE_H

#include <stdbool.h>

#include "page.h"
#include "reader/report.h"
#include "table.h"

/** Columns of a table of parts that others fill, or leave empty. */
#define SEEP_VIEW_BALANCE_NOTE 4
#define SEEP_VIEW_BALANCE_FIRST 1
#define SEEP_VIEW_BALANCE_GROWTH 3

void seep_view_balance(struct seep_page *page,
                       const struct seep_report *report);

/** A table of parts named @title, one a row: first, last, growth, a note.
 * NULL without memory. */
struct seep_table *seep_view_balance_open(const struct seep_page *page,
                                          const char *title);
void seep_view_balance_row(struct seep_table *table,
                           const struct seep_report *report, const char *part,
                           const struct seep_report_extent *extent);

/** Live bytes of the spaces that lie in RSS; the reader's where it has them. */
struct seep_report_extent
seep_view_balance_tracked(const struct seep_report *report);

/** Does memory that no hook saw make up a part of the growth that matters? */
bool seep_view_balance_is_unexplained(const struct seep_report *report);

#endif
