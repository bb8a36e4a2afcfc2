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

void seep_view_balance(struct seep_page *page,
                       const struct seep_report *report);

/** Live bytes of the spaces that lie in RSS; the reader's where it has them. */
struct seep_report_extent
seep_view_balance_tracked(const struct seep_report *report);

/** Does memory that no hook saw make up a part of the growth that matters? */
bool seep_view_balance_is_unexplained(const struct seep_report *report);

#endif
