/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the program said when, as a paragraph.
 */
#ifndef SEEP_TOOL_VIEW_MARKS_H
#define SEEP_TOOL_VIEW_MARKS_H

#include "page.h"
#include "reader/report.h"

/** The last marks, at most @most; nothing where there is none. */
void seep_view_marks(struct seep_page *page, const struct seep_report *report,
                     size_t indent, size_t most);

#endif
