/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A part of a run, or what stood at a time, as text: what it comes to, and the
 * rows that it is made of.
 *
 * Invariant: what is said of the part is of the borders that are named with it;
 * a row that is left out is counted below.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/recording/series.h"
#include "text/report.h"
#include "text/table.h"
#include "words/notes.h"
#include "words/units.h"
#include "words/words.h"

#define INDENT 8
#define BORDER_SHARE 0.01 /* of the peak, that more can have stood */

/*
 * What it comes to.
 */

static void print_moment(struct seep_page *page, const struct seep_span *span,
                         bool is_peak)
{
    const struct seep_span_peak *peak = &span->peak;
    bool more = peak->most_bytes > (1 + BORDER_SHARE) * peak->bytes;

    seep_page_paragraph(page, SEEP_STYLE_STRONG, is_peak ? "peak" : "at",
                        INDENT, SEEP_NOTE_MOMENT,
                        SEEP_UNITS_DURATION(span->to_s),
                        SEEP_UNITS_BYTES(span->total.live_bytes));
    if (is_peak) {
        seep_page_paragraph(
            page, SEEP_STYLE_PLAIN, "", INDENT, SEEP_NOTE_HIGHEST,
            more ? "; between two of them it can have been up to " : "",
            more ? SEEP_UNITS_BYTES(peak->most_bytes) : "");
    } else {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", INDENT,
                            SEEP_NOTE_PEAK_WAS, SEEP_UNITS_BYTES(peak->bytes),
                            SEEP_UNITS_DURATION(peak->at_s));
    }
}

static void print_part(struct seep_page *page, const struct seep_span *span)
{
    const struct seep_span_sum *total = &span->total;
    double seconds = span->to_s - span->from_s;

    seep_page_paragraph(
        page, SEEP_STYLE_STRONG, "part", INDENT, SEEP_NOTE_PART,
        SEEP_UNITS_DURATION(span->from_s), SEEP_UNITS_DURATION(span->to_s),
        SEEP_UNITS_CHANGE(total->growth_bytes),
        SEEP_UNITS_BYTES(total->before_bytes),
        SEEP_UNITS_BYTES(total->live_bytes),
        SEEP_UNITS_RATE(seconds > 0 ? total->growth_bytes / seconds : 0));
    seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", INDENT, SEEP_NOTE_FLOWS,
                        SEEP_UNITS_BYTES(total->allocated_bytes),
                        SEEP_UNITS_BYTES(total->freed_bytes));
}

/* What was asked for is told where it reads as another time. */
static void print_borders(struct seep_page *page, const struct seep_span *span)
{
    const char *from = SEEP_UNITS_DURATION(span->asked_from_s);
    const char *to = SEEP_UNITS_DURATION(span->asked_to_s);
    bool moved = strcmp(from, SEEP_UNITS_DURATION(span->from_s)) != 0 ||
                 strcmp(to, SEEP_UNITS_DURATION(span->to_s)) != 0;
    bool both = moved && !span->is_moment;

    seep_page_paragraph(page, SEEP_STYLE_FAINT, "", INDENT, SEEP_NOTE_BORDERS,
                        SEEP_UNITS_DURATION(span->report->bucket_s),
                        moved ? "; asked for was " : "", both ? from : "",
                        both ? " to " : "", moved ? to : "");
}

static void print_unknown(struct seep_page *page, const struct seep_span *span)
{
    const struct seep_span_sum *total = &span->total;

    if (total->unknown_count > 0) {
        seep_page_paragraph(page, SEEP_STYLE_WARNING, "unknown", INDENT,
                            SEEP_NOTE_UNKNOWN, total->unknown_count,
                            seep_words_rows(span->report, total->unknown_count),
                            SEEP_UNITS_BYTES(total->unknown_bytes));
    }
    if (total->untold_count > 0) {
        seep_page_paragraph(page, SEEP_STYLE_WARNING, "unknown", INDENT,
                            SEEP_NOTE_UNTOLD, total->untold_count,
                            seep_words_rows(span->report, total->untold_count),
                            SEEP_UNITS_BYTES(total->untold_bytes));
    }
}

void seep_view_span_head(struct seep_page *page, const struct seep_span *span,
                         const struct seep_span_wish *wish)
{
    if (span->is_moment) {
        print_moment(page, span, wish->at.when == SEEP_SPAN_PEAK);
    } else {
        print_part(page, span);
    }
    print_borders(page, span);
    print_unknown(page, span);
    seep_page_end_line(page);
}

/*
 * The rows.
 */

enum column {
    GROWTH,
    RATE,
    ALLOCATED,
    FREED,
    LIVE,
    SHARE,
    BLOCKS,
    TEMPORARY,
    SPACE,
    WHERE,
    COLUMN_COUNT
};

/* In the order in which they are shown. */
struct rows {
    const struct seep_span *span;
    size_t *indices; /* of report->sites */
    size_t count;
    size_t quiet_count; /* others, that were live all the time, and hold */
    double quiet_bytes;
};

/* By what a row counts in it. */
static double weight_of(const struct seep_span *span, size_t i)
{
    const struct seep_span_row *row = &span->rows[i];

    return span->is_moment ? row->live_bytes : fabs(row->growth_bytes);
}

static int compare(const void *a, const void *b, void *data)
{
    const struct seep_span *span = data;
    size_t left = *(const size_t *)a;
    size_t right = *(const size_t *)b;
    double left_weight = weight_of(span, left);
    double right_weight = weight_of(span, right);
    double left_flow = span->rows[left].allocated_bytes;
    double right_flow = span->rows[right].allocated_bytes;

    if (left_weight != right_weight) {
        return left_weight < right_weight ? 1 : -1;
    }
    if (left_flow != right_flow && !span->is_moment) {
        return left_flow < right_flow ? 1 : -1;
    }
    return (left > right) - (left < right);
}

/* Did it have any part in it? What is not known may have been anything. */
static bool has_part(const struct seep_span *span, size_t i)
{
    const struct seep_span_row *row = &span->rows[i];

    if (!row->knows_live || !row->knows_before) {
        return true;
    }
    return span->is_moment ? row->live_bytes > 0
                           : row->allocated_bytes > 0 || row->freed_bytes > 0;
}

static void find_rows(const struct seep_span *span,
                      const struct seep_text_options *options,
                      struct rows *ret_rows)
{
    const struct seep_report *report = span->report;

    *ret_rows = (struct rows){
        .span = span,
        .indices = calloc(report->site_count + 1, sizeof(size_t)),
    };
    for (size_t i = 0; ret_rows->indices != NULL && i < report->site_count;
         i++) {
        if (options->site_id != NULL
                ? seep_words_is_wanted(&report->sites[i], options->site_id)
                : has_part(span, i)) {
            ret_rows->indices[ret_rows->count++] = i;
        } else if (span->rows[i].live_bytes > 0) {
            ret_rows->quiet_count++;
            ret_rows->quiet_bytes +=
                seep_sites_space_holds(report->sites[i].space)
                    ? span->rows[i].live_bytes
                    : 0;
        }
    }
    if (ret_rows->count > 0) {
        qsort_r(ret_rows->indices, ret_rows->count, sizeof(size_t), compare,
                (void *)(uintptr_t)span);
    }
}

static struct seep_table *open_table(const struct seep_span *span,
                                     bool temporary)
{
    bool part = !span->is_moment;
    const struct seep_table_column columns[COLUMN_COUNT] = {
        [GROWTH] = {"growth", true, part ? 0 : SEEP_TABLE_NEVER},
        [RATE] = {"growth/min", true, part ? 80 : SEEP_TABLE_NEVER},
        [ALLOCATED] = {part ? "allocated" : "allocated by then", true,
                       part ? 70 : 130},
        [FREED] = {"freed", true, part ? 70 : SEEP_TABLE_NEVER},
        [LIVE] = {span->is_moment ? "live then" : "live at its end", true,
                  part ? 100 : 0},
        [SHARE] = {"share", true, part ? SEEP_TABLE_NEVER : 60},
        [BLOCKS] = {"blocks", true, part ? 140 : 110},
        [TEMPORARY] = {"temporary", true, temporary ? 0 : 160},
        [SPACE] = {"space", false,
                   span->report->space_count > 1 ? 90 : SEEP_TABLE_NEVER},
        [WHERE] = {"where", false, 0},
    };

    return seep_table_open(columns, COLUMN_COUNT);
}

static const char *known(bool is_known, const char *text)
{
    return is_known ? text : "?";
}

/* What is a tensor lies in a segment, which counts already. */
static void fill_share(struct seep_table *table, const struct seep_span *span,
                       const struct seep_report_site *site,
                       const struct seep_span_row *row)
{
    if (seep_sites_space_holds(site->space)) {
        seep_table_cell(
            table, SHARE, "%s",
            SEEP_UNITS_SHARE(row->live_bytes / span->total.live_bytes));
    } else {
        seep_table_cell(table, SHARE, "-");
    }
}

static void fill_row(struct seep_table *table, const struct seep_span *span,
                     size_t i)
{
    const struct seep_report_site *site = &span->report->sites[i];
    const struct seep_span_row *row = &span->rows[i];
    bool knows = row->knows_live && row->knows_before;
    char place[SEEP_WORDS_GPU_BYTES];

    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, GROWTH, "%s",
                    known(knows, SEEP_UNITS_CHANGE(row->growth_bytes)));
    seep_table_cell(table, RATE, "%s",
                    known(knows, SEEP_UNITS_RATE(seep_span_rate(span, row))));
    seep_table_cell(table, ALLOCATED, "%s",
                    SEEP_UNITS_BYTES(row->allocated_bytes));
    seep_table_cell(table, FREED, "%s", SEEP_UNITS_BYTES(row->freed_bytes));
    seep_table_cell(table, LIVE, "%s",
                    known(row->knows_live, SEEP_UNITS_BYTES(row->live_bytes)));
    fill_share(table, span, site, row);
    seep_table_cell(table, BLOCKS, "%s%s",
                    row->live_count_is_estimate ? "~" : "",
                    known(row->knows_live, SEEP_UNITS_COUNT(row->live_count)));
    seep_table_cell(table, TEMPORARY, "%s",
                    known(row->temporary_bytes >= 0,
                          SEEP_UNITS_BYTES(row->temporary_bytes)));
    seep_table_cell(table, SPACE, "%s",
                    seep_words_place(span->report, site, place));
    seep_table_take(table, WHERE, seep_words_chain(span->report, site));
}

/* What of the sums the rows do not show. */
static void print_left(struct seep_page *page, const struct rows *rows,
                       size_t shown, bool only_one)
{
    const struct seep_span *span = rows->span;
    double bytes = 0;

    for (size_t i = shown; i < rows->count; i++) {
        const struct seep_span_row *row = &span->rows[rows->indices[i]];
        const struct seep_report_site *site =
            &span->report->sites[rows->indices[i]];

        if (seep_sites_space_holds(site->space)) {
            bytes += span->is_moment ? row->live_bytes : row->growth_bytes;
        }
    }
    if (rows->count > shown) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, " and", 5,
                            SEEP_NOTE_MORE_IN_PART, rows->count - shown,
                            seep_words_rows(span->report, rows->count - shown),
                            span->is_moment ? SEEP_UNITS_BYTES(bytes)
                                            : SEEP_UNITS_CHANGE(bytes));
    }
    if (rows->quiet_count > 0 && !only_one) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, " and", 5,
                            SEEP_NOTE_UNCHANGED, rows->quiet_count,
                            seep_words_rows(span->report, rows->quiet_count),
                            SEEP_UNITS_BYTES(rows->quiet_bytes));
    }
}

static void print_rows(struct seep_page *page, const struct seep_span *span,
                       const struct seep_text_options *options)
{
    struct seep_table *table = open_table(span, options->temporary);
    struct rows rows;
    size_t most = options->site_limit > 0 ? options->site_limit : SIZE_MAX;
    size_t shown = 0;

    find_rows(span, options, &rows);
    for (; shown < rows.count && shown < most; shown++) {
        fill_row(table, span, rows.indices[shown]);
    }
    if (shown > 0) {
        seep_table_print(table, page, 1);
    } else {
        seep_table_close(table);
        seep_page_print(page, SEEP_STYLE_PLAIN, " %s",
                        options->site_id != NULL ? SEEP_NOTE_NOT_HERE
                        : span->is_moment        ? SEEP_NOTE_NOTHING_STOOD
                                                 : SEEP_NOTE_NOTHING_HAPPENED);
        seep_page_end_line(page);
    }
    print_left(page, &rows, shown, options->site_id != NULL);
    seep_page_end_line(page);
    free(rows.indices);
}

void seep_view_span_refused(struct seep_page *page,
                            const struct seep_report *report,
                            const struct seep_span_wish *wish, int error)
{
    char *reason = seep_words_span_refused(report, wish, error);

    seep_page_paragraph(page, SEEP_STYLE_WARNING, "part", INDENT, "%s",
                        reason == NULL ? "not enough memory" : reason);
    seep_page_end_line(page);
    free(reason);
}

void seep_view_span(struct seep_page *page, const struct seep_report *report,
                    const struct seep_text_options *options)
{
    struct seep_span *span = NULL;
    int error = seep_span_open(report, &options->wish, &span);

    if (error != 0) {
        seep_view_span_refused(page, report, &options->wish, error);
        return;
    }
    seep_view_span_head(page, span, &options->wish);
    print_rows(page, span, options);
    seep_span_close(span);
}
