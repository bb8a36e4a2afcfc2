/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A report for a person: the answer, the evidence, the next thing to try.
 */
#ifndef SEEP_TOOL_VIEW_TEXT_H
#define SEEP_TOOL_VIEW_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "page.h"
#include "reader/report.h"

#define SEEP_TEXT_SITES_DEFAULT 10
#define SEEP_TEXT_PROCESSES_DEFAULT 3

struct seep_text_options {
    size_t site_limit;    /* rows of the table; 0: all */
    bool stacks;          /* stacks below the table */
    bool whole_stacks;    /* no frames folded */
    const char *site_id;  /* only this site; NULL: all. A beginning will do */
    size_t process_limit; /* in full; the others have a line; 0: all */
    bool brief;           /* few rows of what does not grow, if others do */
    bool show_suppressed;
    const struct seep_catalogue *catalogue; /* NULL: none */
};

/** How loud a verdict is. */
enum seep_ink seep_view_verdict_ink(enum seep_verdict_class class);

/** The process: its command, age, work and state, behind @label. */
void seep_view_text_head(struct seep_page *page,
                         const struct seep_report *report, const char *label);

/** The verdict and the forecast, without the evidence. */
void seep_view_text_answer(struct seep_page *page,
                           const struct seep_report *report);

/** One process. */
void seep_view_text_report(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_text_options *options);

/** The verdict on one process alone, on one line that is never wrapped. */
void seep_view_text_verdict(struct seep_page *page,
                            const struct seep_report *report);

/**
 * First, of several, what they are together; then the first ones in full, and
 * of the rest the verdicts alone.
 */
void seep_view_text_reports(struct seep_page *page,
                            const struct seep_report *const *reports,
                            size_t count,
                            const struct seep_text_options *options);

/** What a recording holds, for `seep info`. */
void seep_view_text_info(struct seep_page *page,
                         const struct seep_report *report);

#endif
