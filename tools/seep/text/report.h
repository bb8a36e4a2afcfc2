/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Reports, checks and diffs for a person: the answer, the evidence, the next
 * thing to try. All goes through the page, which cleans it; the sentences are
 * those of words/.
 */
#ifndef SEEP_TOOL_TEXT_REPORT_H
#define SEEP_TOOL_TEXT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "reader/judge/family.h"
#include "reader/report/report.h"
#include "reader/report/span.h"
#include "text/page.h"
#include "text/table.h"
#include "words/compare.h"
#include "words/verdict.h"

#define SEEP_TEXT_SITES_DEFAULT 10
#define SEEP_TEXT_PROCESSES_DEFAULT 3

/** Stacks as a tree. */
enum seep_text_tree {
    SEEP_TREE_NONE,
    SEEP_TREE_DOWN, /* from main() down to what allocates */
    SEEP_TREE_UP    /* from what allocates up to its callers */
};

struct seep_text_options {
    size_t site_limit;    /* rows of the table; 0: all */
    bool stacks;          /* stacks below the table */
    bool whole_stacks;    /* no frames folded */
    const char *site_id;  /* only this site; NULL: all. A beginning will do */
    size_t process_limit; /* in full; the others have a line; 0: all */
    bool brief;           /* few rows of what does not grow, if others do */
    bool show_suppressed;
    bool holding;               /* rows by what they hold */
    bool temporary;             /* tell what was freed at once on any page */
    struct seep_span_wish wish; /* a part of the run */
    enum seep_text_tree tree;
    /* What stacks of a report by other rows are read with; NULL: rows it is. */
    const struct seep_report_options *by_stack;
    const struct seep_catalogue *catalogue; /* NULL: none */
};

/** How loud a verdict is. */
enum seep_style seep_view_verdict_style(enum seep_verdict_class class);

#define SEEP_VIEW_ANSWER_INDENT 6

/** The label in @style, its sentence, and the forecast if there is one. */
void seep_view_answer(struct seep_page *page, enum seep_style style,
                      const struct seep_words_verdict *words);

/** A sentence of its own, though it was made as a part of one. */
void seep_view_reason(struct seep_page *page, const char *reason);

/** The process: its command, age, work and state, behind @label. Where it is
 * @brief, the command is what tells it from others. */
void seep_view_text_head(struct seep_page *page,
                         const struct seep_report *report, const char *label,
                         bool brief);

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

/*
 * The call sites of a report as text: one line each, or whole stacks.
 */

/** A table of sites, @live as `seep top` has it: with bars. NULL without
 * memory. */
struct seep_table *seep_view_sites_open(const struct seep_report *report,
                                        bool live);
/** One row. @param where  NULL: not known. @param trend  bars, which are freed;
 * NULL: none */
void seep_view_sites_row(struct seep_table *table,
                         const struct seep_report *report,
                         const struct seep_report_site *site, const char *where,
                         char *trend);

void seep_view_sites_table(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_text_options *options);

void seep_view_sites_stacks(struct seep_page *page,
                            const struct seep_report *report,
                            const struct seep_text_options *options);

/*
 * A part of a run, or what stood at a time.
 */

/** What it comes to, and its rows; or why it is not to be had. */
void seep_view_span(struct seep_page *page, const struct seep_report *report,
                    const struct seep_text_options *options);

void seep_view_span_head(struct seep_page *page, const struct seep_span *span,
                         const struct seep_span_wish *wish);
/** @param error  what seep_span_open() said */
void seep_view_span_refused(struct seep_page *page,
                            const struct seep_report *report,
                            const struct seep_span_wish *wish, int error);

/** All stacks as a tree, of the part of the run that was asked for. */
void seep_view_tree(struct seep_page *page, const struct seep_report *report,
                    const struct seep_text_options *options);

/*
 * What the program said when, as a paragraph.
 */

/** The last marks, at most @most; nothing where there is none. */
void seep_view_marks(struct seep_page *page, const struct seep_report *report,
                     size_t indent, size_t most);

/*
 * The SEEP_ variables that a process had and that were not understood, with
 * what was meant; and the recordings that went for this one (SEEP_KEEP).
 */

/** A paragraph for each, nothing if there are none. */
void seep_view_rejected(struct seep_page *page,
                        const struct seep_report *report, size_t indent);

/** How many recordings went when this one began; nothing if none. */
void seep_view_removed(struct seep_page *page, const struct seep_report *report,
                       size_t indent);

/** Files beside the recording that are there and were left out. */
void seep_view_unread(struct seep_page *page, const struct seep_report *report,
                      size_t indent);

/*
 * Where the memory of a process is, as a sum: what seep tracks, what the
 * allocator holds beyond it, and what is left.
 */

/** Columns of a table of parts that others fill, or leave empty. */
#define SEEP_VIEW_BALANCE_NOTE 4
#define SEEP_VIEW_BALANCE_FIRST 1
#define SEEP_VIEW_BALANCE_GROWTH 3

void seep_view_balance(struct seep_page *page,
                       const struct seep_report *report);

/** A table of parts named @title, one a row: first, last, growth, a note.
 * NULL without memory. @param first_least  columns of a page with "first" */
struct seep_table *seep_view_balance_open(const char *title,
                                          size_t first_least);
/** What lived of .spaces[@i], at first and at last; of mapped files what of
 * them is in memory, where that was seen. */
struct seep_report_extent
seep_view_space_extent(const struct seep_report *report, size_t i);
void seep_view_balance_row(struct seep_table *table,
                           const struct seep_report *report, const char *part,
                           const struct seep_report_extent *extent);

/* GPUs as text: where the memory of each is, and when it will be full. */

/** One table a device that the driver was asked about; nothing without any. */
void seep_view_devices(struct seep_page *page,
                       const struct seep_report *report);

/*
 * Checks and diffs.
 */

/** The answer, each limit with what was measured, the sites that break it. */
void seep_view_check(struct seep_page *page, const struct seep_check_set *set);

/** @param site_limit  at most so many call sites of a program; 0: all, also
 *                     those whose growth weighs nothing */
void seep_view_diff(struct seep_page *page, const struct seep_diff_set *set,
                    size_t site_limit);

/* Families of processes for people: an answer each, before the processes. */

/** Its sentence, its forecast if there is one, and what else was seen if
 * @reasons, a paragraph each. */
void seep_view_family(struct seep_page *page, const struct seep_family *family,
                      bool reasons);

/** Nothing where no two of them belong together. */
void seep_view_families(struct seep_page *page,
                        const struct seep_families *families);

#endif
