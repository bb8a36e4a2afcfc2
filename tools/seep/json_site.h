/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A call site of the document "seep-report/1", printed at once.
 */
#ifndef SEEP_TOOL_JSON_SITE_H
#define SEEP_TOOL_JSON_SITE_H

#include "json_out.h"
#include "reader/report.h"

/** Frames printed before; all reports printed with it must stay open. */
struct seep_json_frame;

/** NULL: no memory. */
struct seep_json_frame *seep_json_site_open(void);
/** NULL is fine. */
void seep_json_site_close(struct seep_json_frame *kept);

/** With its figures over time if @series. */
void seep_json_site_print(struct seep_json_out *out,
                          struct seep_json_frame *kept,
                          const struct seep_report_site *site, bool series);

#endif
