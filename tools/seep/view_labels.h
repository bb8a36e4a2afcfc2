/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Processes by their labels as a table.
 */
#ifndef SEEP_TOOL_VIEW_LABELS_H
#define SEEP_TOOL_VIEW_LABELS_H

#include "page.h"
#include "reader/report.h"

void seep_view_labels(struct seep_page *page,
                      const struct seep_report *const *reports, size_t count);

#endif
