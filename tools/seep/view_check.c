/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A check for people. Invariant: the answer comes first; of processes that
 * keep all limits, where there are several, no more than a line.
 */
#include "view_check.h"

#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "table.h"

#define SITE_INDENT 8

static enum seep_ink ink_of(enum seep_check_outcome outcome)
{
    return outcome == SEEP_CHECK_FAIL   ? SEEP_INK_BAD
           : outcome == SEEP_CHECK_PASS ? SEEP_INK_GOOD
                                        : SEEP_INK_WARNING;
}

/* As wide as the widest of them, so that processes stand below each other. */
static const char *mark_of(enum seep_check_outcome outcome)
{
    return outcome == SEEP_CHECK_FAIL   ? "fail"
           : outcome == SEEP_CHECK_PASS ? "pass"
                                        : "?";
}

static void put_row(struct seep_table *table,
                    const struct seep_check_result *result)
{
    char *title = seep_check_title(result->limit);
    char *measured = seep_check_measured(result);
    char *bound = seep_check_bound(result->limit);

    seep_table_row(table, SEEP_INK_PLAIN);
    seep_table_cell(table, 0, "%s", mark_of(result->outcome));
    seep_table_ink(table, 0, ink_of(result->outcome));
    seep_table_cell(table, 1, "%s", title == NULL ? "?" : title);
    seep_table_cell(table, 2, "%s", bound == NULL ? "?" : bound);
    seep_table_cell(table, 3, "%s", measured == NULL ? "?" : measured);
    if (result->outcome == SEEP_CHECK_INSUFFICIENT || result->forgiven) {
        seep_table_note(table, "%s", result->measure.reason);
    }
    free(title);
    free(measured);
    free(bound);
}

static void print_limits(struct seep_page *page,
                         const struct seep_check_result *results, size_t count)
{
    static const struct seep_table_column columns[] = {
        {"", false},
        {"of", false},
        {"limit", false},
        {"measured", false},
    };
    struct seep_table *table =
        seep_table_open(columns, sizeof(columns) / sizeof(columns[0]));

    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        put_row(table, &results[i]);
    }
    seep_table_print(table, page, 1);
    seep_table_close(table);
}

/* Was @site said already, of an earlier limit? */
static bool is_said(const struct seep_check_result *first,
                    const struct seep_check_result *result,
                    const struct seep_report_site *site)
{
    for (; first < result; first++) {
        for (size_t i = 0; i < first->site_count; i++) {
            if (first->sites[i] == site) {
                return true;
            }
        }
    }
    return false;
}

static void print_sites(struct seep_page *page,
                        const struct seep_check_result *first,
                        const struct seep_check_result *result)
{
    for (size_t i = 0; i < result->site_count; i++) {
        const struct seep_report_site *site = result->sites[i];
        char *text = seep_check_site(result->report, site);

        if (!is_said(first, result, site)) {
            seep_page_paragraph(page, SEEP_INK_STRONG, " where", SITE_INDENT,
                                "%s", text == NULL ? "?" : text);
        }
        free(text);
    }
    if (result->site_total > result->site_count) {
        seep_page_paragraph(page, SEEP_INK_FAINT, "", SITE_INDENT,
                            "and %zu more call sites",
                            result->site_total - result->site_count);
    }
}

static void print_next(struct seep_page *page,
                       const struct seep_check_result *results, size_t count)
{
    const struct seep_report *report = results[0].report;
    char *text = NULL;

    for (size_t i = 0; i < count && text == NULL; i++) {
        if (results[i].site_count > 0) {
            text = seep_check_next(report, results[i].sites[0]);
        }
    }
    if (text != NULL) {
        seep_page_paragraph(page, SEEP_INK_STRONG, " next", SITE_INDENT, "%s",
                            text);
    } else if (report != NULL) {
        seep_page_paragraph(page, SEEP_INK_STRONG, " next", SITE_INDENT,
                            "seep report %s", report->path);
    }
    free(text);
}

/* From which run to which: there lies the change that made it grow. */
static void print_since(struct seep_page *page,
                        const struct seep_check_set *set,
                        const struct seep_report *report)
{
    char *since = seep_check_since(set, report);

    if (since != NULL) {
        seep_page_paragraph(page, SEEP_INK_STRONG, " since", SITE_INDENT, "%s",
                            since);
    }
    free(since);
}

static void print_process(struct seep_page *page,
                          const struct seep_check_set *set,
                          const struct seep_check_result *results, size_t count)
{
    enum seep_check_outcome worst = seep_check_worst(results, count);
    char *process = seep_check_process(results[0].report);

    if (set->report_count > 1 && worst == SEEP_CHECK_PASS) {
        const char *name = process == NULL ? "?" : process;
        if (count == 1) {
            seep_page_paragraph(page, SEEP_INK_FAINT, "", 0,
                                "%s: the limit is kept", name);
        } else {
            seep_page_paragraph(page, SEEP_INK_FAINT, "", 0,
                                "%s: all %zu limits are kept", name, count);
        }
        free(process);
        return;
    }
    seep_page_paragraph(page, SEEP_INK_STRONG, "", 0, "%s",
                        process == NULL ? "?" : process);
    print_limits(page, results, count);
    for (size_t i = 0; i < count; i++) {
        print_sites(page, results, &results[i]);
    }
    if (worst == SEEP_CHECK_FAIL) {
        print_since(page, set, results[0].report);
    }
    if (worst != SEEP_CHECK_PASS) {
        print_next(page, results, count);
    }
    free(process);
}

void seep_view_check(struct seep_page *page, const struct seep_check_set *set)
{
    const struct seep_check_result *results = set->results;
    char *headline = seep_check_headline(set);
    size_t last;

    seep_page_print(page, SEEP_INK_PLAIN, "seep: ");
    seep_page_print(page, ink_of(seep_check_worst(results, set->count)), "%s",
                    headline == NULL ? "?" : headline);
    seep_page_end_line(page);
    free(headline);
    for (size_t first = 0; first < set->count; first = last) {
        for (last = first + 1;
             last < set->count && results[last].report == results[first].report;
             last++) {
        }
        print_process(page, set, &results[first], last - first);
    }
}
