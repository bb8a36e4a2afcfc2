/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What several recordings come to, for people: families, checks, diffs.
 * Invariant: the answer comes first; what is left out of a table is counted
 * below it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/page.h"
#include "text/report.h"
#include "text/table.h"
#include "words/compare.h"
#include "words/held.h"
#include "words/notes.h"
#include "words/units.h"
#include "words/verdict.h"

/*
 * Families. One that is no more than one process is told with its process.
 */

void seep_view_family(struct seep_page *page, const struct seep_family *family,
                      bool reasons)
{
    struct seep_words_verdict words;

    seep_words_family(family, &words);
    seep_view_answer(page, seep_view_verdict_style(family->class), &words);
    for (size_t i = 0; reasons && i < words.reason_count; i++) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", SEEP_VIEW_ANSWER_INDENT,
                            "%s", words.reasons[i]);
    }
    seep_words_verdict_fini(&words);
}

void seep_view_families(struct seep_page *page,
                        const struct seep_families *families)
{
    for (size_t i = 0; i < families->count; i++) {
        if (seep_words_family_is_reported(&families->list[i])) {
            seep_view_family(page, &families->list[i], true);
        }
    }
}

/*
 * Checks: of processes that keep all limits, where there are several, no more
 * than a line.
 */

#define SITE_INDENT 8

static const struct {
    const char *mark;
    enum seep_style style;
} outcomes[] = {
    [SEEP_CHECK_PASS] = {"pass", SEEP_STYLE_GOOD},
    [SEEP_CHECK_INSUFFICIENT] = {"?", SEEP_STYLE_WARNING},
    [SEEP_CHECK_FAIL] = {"fail", SEEP_STYLE_BAD},
};

static void put_limit(struct seep_table *table,
                      const struct seep_check_result *result)
{
    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, 0, "%s", outcomes[result->outcome].mark);
    seep_table_style(table, 0, outcomes[result->outcome].style);
    seep_table_take(table, 1, seep_check_title(result->limit));
    seep_table_take(table, 2, seep_check_bound(result->limit));
    seep_table_take(table, 3, seep_check_measured(result));
    if (result->outcome == SEEP_CHECK_INSUFFICIENT || result->forgiven) {
        seep_table_note(table, "%s", result->measure.reason);
    }
}

static void print_limits(struct seep_page *page,
                         const struct seep_check_result *results, size_t count)
{
    static const struct seep_table_column columns[] = {
        {"", false, 0},
        {"of", false, 0},
        {"limit", false, 0},
        {"measured", false, 0},
    };
    struct seep_table *table =
        seep_table_open(columns, sizeof(columns) / sizeof(columns[0]));

    for (size_t i = 0; i < count; i++) {
        put_limit(table, &results[i]);
    }
    seep_table_print(table, page, 1);
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
        char *text = seep_check_place(result, i);
        char *held = seep_words_held_line(site->held, site->live_bytes);
        bool is_new = !is_said(first, result, site);

        if (is_new) {
            seep_page_paragraph(page, SEEP_STYLE_STRONG, " where", SITE_INDENT,
                                "%s", text == NULL ? "?" : text);
        }
        if (is_new && held != NULL) {
            seep_page_paragraph(page, SEEP_STYLE_STRONG, " held", SITE_INDENT,
                                "by %s", held);
        }
        free(text);
        free(held);
    }
    if (result->site_total > result->site_count) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, "", SITE_INDENT,
                            SEEP_NOTE_CHECK_MORE_SITES,
                            result->site_total - result->site_count);
    }
}

/* What one thing holds of the call sites; once of a process. */
static void print_common(struct seep_page *page,
                         const struct seep_check_result *first,
                         const struct seep_check_result *result)
{
    char *common = seep_check_common(result);

    for (; first < result && common != NULL; first++) {
        if (first->report == result->report && seep_check_has_common(first)) {
            free(common);
            common = NULL;
        }
    }
    if (common != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, " held", SITE_INDENT, "%s",
                            common);
        free(common);
    }
}

static void print_next(struct seep_page *page,
                       const struct seep_check_result *results, size_t count)
{
    const struct seep_report *report = results[0].report;
    char *text = NULL;

    for (size_t i = 0; i < count && text == NULL; i++) {
        if (results[i].site_count > 0) {
            text = seep_words_stack_command(report, results[i].sites[0]);
        }
    }
    if (text != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, " next", SITE_INDENT, "%s",
                            text);
    } else if (report != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, " next", SITE_INDENT,
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
        seep_page_paragraph(page, SEEP_STYLE_STRONG, " since", SITE_INDENT,
                            "%s", since);
    }
    free(since);
}

static void print_process(struct seep_page *page,
                          const struct seep_check_set *set,
                          const struct seep_check_result *results, size_t count)
{
    enum seep_check_outcome worst = seep_check_worst(results, count);
    char *process = seep_check_subject(&results[0]);

    if (set->report_count > 1 && worst == SEEP_CHECK_PASS) {
        const char *name = process == NULL ? "?" : process;
        if (count == 1) {
            seep_page_paragraph(page, SEEP_STYLE_FAINT, "", 0,
                                SEEP_NOTE_CHECK_LIMIT_KEPT, name);
        } else {
            seep_page_paragraph(page, SEEP_STYLE_FAINT, "", 0,
                                SEEP_NOTE_CHECK_LIMITS_KEPT, name, count);
        }
        free(process);
        return;
    }
    seep_page_paragraph(page, SEEP_STYLE_STRONG, "", 0, "%s",
                        process == NULL ? "?" : process);
    if (results[0].report != NULL) {
        seep_view_unread(page, results[0].report, SITE_INDENT);
    }
    print_limits(page, results, count);
    for (size_t i = 0; i < count; i++) {
        print_sites(page, results, &results[i]);
        print_common(page, results, &results[i]);
    }
    if (worst == SEEP_CHECK_FAIL) {
        print_since(page, set, results[0].report);
    }
    if (worst != SEEP_CHECK_PASS) {
        print_next(page, results, count);
    }
    free(process);
}

/* A limit is about the process. What ends it may be beside it: said once, of
 * whom it is most. */
static void print_beside(struct seep_page *page,
                         const struct seep_check_set *set)
{
    const struct seep_report *most = NULL;

    for (size_t i = 0; i < set->count; i++) {
        const struct seep_report *report = set->results[i].report;

        if (report != NULL && seep_words_grows_beside(report) &&
            (most == NULL || report->verdict.beside_bytes_per_s >
                                 most->verdict.beside_bytes_per_s)) {
            most = report;
        }
    }
    if (most != NULL) {
        const char *each_min =
            SEEP_UNITS_BYTES(most->verdict.beside_bytes_per_s * 60);

        seep_page_paragraph(page, SEEP_STYLE_WARNING, " note", SITE_INDENT,
                            SEEP_NOTE_CHECK_BESIDE, (unsigned)most->pid,
                            each_min, most->path);
    }
}

void seep_view_check(struct seep_page *page, const struct seep_check_set *set)
{
    const struct seep_check_result *results = set->results;
    char *headline = seep_check_headline(set);
    size_t last;

    seep_page_print(page, SEEP_STYLE_PLAIN, "seep: ");
    seep_page_print(page, outcomes[seep_check_worst(results, set->count)].style,
                    "%s", headline == NULL ? "?" : headline);
    seep_page_end_line(page);
    free(headline);
    for (size_t first = 0; first < set->count; first = last) {
        for (last = first + 1;
             last < set->count &&
             seep_check_is_same_subject(&results[last], &results[first]);
             last++) {
        }
        print_process(page, set, &results[first], last - first);
    }
    print_beside(page, set);
}

/*
 * Diffs.
 */

#define INDENT 8
#define CHANGE_LEAST 100 /* columns of a page with it */

enum column { OUTCOME, BEFORE, NOW, CHANGE, WHERE, COLUMN_COUNT };

static enum seep_style answer_style(enum seep_diff_answer answer)
{
    return answer == SEEP_DIFF_LEAKS  ? SEEP_STYLE_BAD
           : answer == SEEP_DIFF_FINE ? SEEP_STYLE_GOOD
                                      : SEEP_STYLE_WARNING;
}

static enum seep_style row_style(const struct seep_diff_row *row)
{
    return row->outcome == SEEP_DIFF_SAME
               ? SEEP_STYLE_PLAIN
               : answer_style(seep_diff_row_answer(row));
}

static void put_change(struct seep_table *table, const struct seep_diff *diff,
                       const struct seep_diff_row *row)
{
    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, OUTCOME, "%s", seep_diff_words(row->outcome));
    seep_table_style(table, OUTCOME, row_style(row));
    seep_table_cell(table, BEFORE, "%s",
                    seep_diff_growth(diff, &row->before, SEEP_UNITS_TEXT));
    seep_table_cell(table, NOW, "%s",
                    seep_diff_growth(diff, &row->now, SEEP_UNITS_TEXT));
    seep_table_cell(table, CHANGE, "%s",
                    seep_diff_change_text(diff, row, SEEP_UNITS_TEXT));
    seep_table_take(table, WHERE, seep_diff_where(row));
}

static void print_rest(struct seep_page *page, const struct seep_diff *diff,
                       size_t weighty, size_t minor)
{
    size_t excused = diff->before.excused_count + diff->now.excused_count;

    if (weighty + minor > 0) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, "", INDENT,
                            SEEP_NOTE_DIFF_MORE, weighty + minor,
                            weighty == 0 ? ", by little or for a time" : "");
    }
    if (diff->still_count > 0) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, "", INDENT,
                            SEEP_NOTE_DIFF_STILL, diff->still_count,
                            diff->still_count == 1 ? " grows" : "s grow");
    }
    if (excused > 0) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, "", INDENT,
                            SEEP_NOTE_DIFF_EXCUSED, excused);
    }
    if (diff->pace > 0) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, "", INDENT,
                            SEEP_NOTE_DIFF_PACE, diff->pace);
    }
}

static void print_changes(struct seep_page *page, const struct seep_diff *diff,
                          size_t limit)
{
    const struct seep_table_column columns[COLUMN_COUNT] = {
        [OUTCOME] = {"", false, 0},
        [BEFORE] = {diff->by_unit ? "before, a unit" : "before, a min", true,
                    0},
        [NOW] = {diff->by_unit ? "now, a unit" : "now, a min", true, 0},
        [CHANGE] = {"change", true, CHANGE_LEAST},
        [WHERE] = {"where", false, 0},
    };
    struct seep_table *table = seep_table_open(columns, COLUMN_COUNT);
    size_t shown = 0;
    size_t left[2] = {0, 0}; /* minor ones, weighty ones */

    for (size_t i = 0; i < diff->row_count; i++) {
        const struct seep_diff_row *row = &diff->rows[i];

        if (limit == 0 || (row->weighs && shown < limit)) {
            put_change(table, diff, row);
            shown++;
        } else {
            left[row->weighs]++;
        }
    }
    if (shown > 0) {
        seep_table_print(table, page, 1);
    } else {
        seep_table_close(table);
    }
    print_rest(page, diff, left[1], left[0]);
}

static void put_held(struct seep_table *table,
                     const struct seep_diff_held *held)
{
    double before =
        held->at_peak ? held->before_peak_bytes : held->before_bytes;
    double now = held->at_peak ? held->now_peak_bytes : held->now_bytes;
    const char *peak = held->at_peak ? " at the peak" : "";

    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, OUTCOME, "%s", seep_diff_words(held->outcome));
    seep_table_style(table, OUTCOME,
                     held->outcome == SEEP_DIFF_WORSE ? SEEP_STYLE_WARNING
                                                      : SEEP_STYLE_GOOD);
    seep_table_cell(table, BEFORE, "%s", SEEP_UNITS_BYTES(before));
    seep_table_cell(table, NOW, "%s", SEEP_UNITS_BYTES(now));
    seep_table_cell(table, CHANGE, "%s", SEEP_UNITS_CHANGE(now - before));
    seep_table_take(table, WHERE, seep_diff_held_where(held));
    if (held->at_peak) {
        seep_table_note(table, "%s", peak);
    }
}

/* What call sites and patterns hold, where that differs. */
static void print_held(struct seep_page *page, const struct seep_diff *diff,
                       size_t limit)
{
    static const struct seep_table_column columns[COLUMN_COUNT] = {
        [OUTCOME] = {"", false, 0},
        [BEFORE] = {"held before", true, 0},
        [NOW] = {"held now", true, 0},
        [CHANGE] = {"change", true, CHANGE_LEAST},
        [WHERE] = {"where", false, 0},
    };
    struct seep_table *table = seep_table_open(columns, COLUMN_COUNT);
    size_t shown = 0;

    for (size_t i = 0; i < diff->held_count; i++) {
        if (diff->held[i].site_count > 0 && (limit == 0 || shown < limit)) {
            put_held(table, &diff->held[i]);
            shown++;
        }
    }
    if (shown > 0) {
        seep_page_end_line(page);
        seep_table_print(table, page, 1);
    } else {
        seep_table_close(table);
    }
    if (diff->age_s > 0) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, "", INDENT,
                            SEEP_NOTE_DIFF_AGE,
                            SEEP_UNITS_DURATION(diff->age_s));
    }
}

/* One figure of the process; a side that does not know it has NULL. */
static void put_figure(struct seep_table *table, const char *name,
                       const char *before, const char *now, const char *change)
{
    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, 0, "%s", name);
    seep_table_cell(table, 1, "%s", before);
    seep_table_cell(table, 2, "%s", now);
    seep_table_cell(table, 3, "%s", change);
}

static void put_size(struct seep_table *table, const char *name, double before,
                     double now)
{
    if (before > 0 || now > 0) {
        put_figure(table, name, SEEP_UNITS_BYTES(before), SEEP_UNITS_BYTES(now),
                   SEEP_UNITS_CHANGE(now - before));
    }
}

static void put_slope(struct seep_table *table, const char *name,
                      const struct seep_interval *before,
                      const struct seep_interval *now, double scale)
{
    struct seep_interval change = seep_diff_change(before, now);
    put_figure(table, name, SEEP_UNITS_INTERVAL(before, scale),
               SEEP_UNITS_INTERVAL(now, scale),
               SEEP_UNITS_INTERVAL(&change, scale));
}

static void put_growth(struct seep_table *table, const struct seep_diff *diff)
{
    const struct seep_diff_row *row = &diff->process;
    if (row->before.grows || row->now.grows) {
        put_figure(table, diff->by_unit ? "growth, a unit" : "growth, a min",
                   seep_diff_growth(diff, &row->before, SEEP_UNITS_TEXT),
                   seep_diff_growth(diff, &row->now, SEEP_UNITS_TEXT),
                   seep_diff_change_text(diff, row, SEEP_UNITS_TEXT));
    }
}

static void put_work(struct seep_table *table, const struct seep_diff *diff)
{
    if (diff->by_unit) {
        double before = diff->before.units_per_s * 60;
        double now = diff->now.units_per_s * 60;
        char change[SEEP_UNITS_TEXT_BYTES + 1];

        snprintf(change, sizeof(change), "%s%s", now < before ? "-" : "+",
                 SEEP_UNITS_COUNT(fabs(now - before)));
        put_figure(table, "units of work, a min", SEEP_UNITS_COUNT(before),
                   SEEP_UNITS_COUNT(now), change);
    }
}

static void put_private(struct seep_table *table, const struct seep_diff *diff)
{
    const struct seep_diff_held *held = diff->held;

    if (diff->held_count > 0 && held->holder == SEEP_DIFF_HOLDER_PROCESS) {
        put_size(table,
                 diff->age_s > 0 ? "private, at one age" : "private at the end",
                 held->before_bytes, held->now_bytes);
        put_size(table, "private at the peak", held->before_peak_bytes,
                 held->now_peak_bytes);
    }
}

static void print_figures(struct seep_page *page, const struct seep_diff *diff)
{
    static const struct seep_table_column columns[] = {
        {"of a process", false, 0},
        {"before", true, 0},
        {"now", true, 0},
        {"change", true, 0},
    };
    struct seep_table *table =
        seep_table_open(columns, sizeof(columns) / sizeof(columns[0]));

    put_growth(table, diff);
    if (diff->before.has_private && diff->now.has_private) {
        put_slope(table, "private memory, a min", &diff->before.private_per_s,
                  &diff->now.private_per_s, 60);
    }
    put_size(table, "RSS at the end", diff->before.rss_bytes,
             diff->now.rss_bytes);
    put_size(table, "live at the end", diff->before.live_bytes,
             diff->now.live_bytes);
    put_private(table, diff);
    put_work(table, diff);
    seep_page_end_line(page);
    seep_table_print(table, page, 1);
}

static void print_unread(struct seep_page *page,
                         const struct seep_diff_side *side)
{
    for (size_t i = 0; i < side->count; i++) {
        seep_view_unread(page, side->reports[i], INDENT);
    }
}

static void print_pair(struct seep_page *page, const struct seep_diff_set *set,
                       const struct seep_diff_pair *pair, size_t limit)
{
    const struct seep_diff *diff = &pair->diff;
    char *sides = seep_diff_sides(set, pair);

    seep_page_paragraph(page, SEEP_STYLE_STRONG, "", 0, "%s: %s", pair->program,
                        sides == NULL ? "?" : sides);
    free(sides);
    print_unread(page, &diff->before);
    print_unread(page, &diff->now);
    print_changes(page, diff, limit);
    print_held(page, diff, limit);
    if (diff->before.reason == NULL && diff->now.reason == NULL) {
        print_figures(page, diff);
    }
}

static void print_alone(struct seep_page *page, const char *program,
                        const char *side)
{
    if (program != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, "", INDENT,
                            SEEP_NOTE_DIFF_ALONE, program, side);
    }
}

void seep_view_diff(struct seep_page *page, const struct seep_diff_set *set,
                    size_t site_limit)
{
    char *headline = seep_diff_headline(set);
    char *next = seep_diff_next(set);

    seep_page_paragraph(page, answer_style(seep_diff_set_answer(set)),
                        "seep:", 6, "%s", headline == NULL ? "?" : headline);
    for (size_t i = 0; i < set->count; i++) {
        print_pair(page, set, &set->pairs[i], site_limit);
        if (i + 1 < set->count || next != NULL || set->only_before != NULL ||
            set->only_now != NULL) {
            seep_page_end_line(page);
        }
    }
    print_alone(page, set->only_before, "before");
    print_alone(page, set->only_now, "now");
    if (next != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, "next", INDENT, "%s",
                            next);
    }
    free(headline);
    free(next);
}
