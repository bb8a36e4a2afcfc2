/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A diff for people. Invariant: the answer comes first; what is left out of a
 * table is counted below it.
 */
#include "view_diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff_words.h"
#include "table.h"
#include "units.h"

#define INDENT 8
#define CHANGE_LEAST 100 /* a page that is narrower does without */

enum column { OUTCOME, BEFORE, NOW, CHANGE, WHERE, COLUMN_COUNT };

static enum seep_ink answer_ink(enum seep_diff_answer answer)
{
    return answer == SEEP_DIFF_LEAKS  ? SEEP_INK_BAD
           : answer == SEEP_DIFF_FINE ? SEEP_INK_GOOD
                                      : SEEP_INK_WARNING;
}

static enum seep_ink row_ink(const struct seep_diff_row *row)
{
    return row->outcome == SEEP_DIFF_SAME
               ? SEEP_INK_PLAIN
               : answer_ink(seep_diff_row_answer(row));
}

static void put_row(struct seep_table *table, const struct seep_diff *diff,
                    const struct seep_diff_row *row)
{
    char text[SEEP_UNITS_TEXT_BYTES];
    char *where = seep_diff_where(row);

    seep_table_row(table, SEEP_INK_PLAIN);
    seep_table_cell(table, OUTCOME, "%s", seep_diff_words(row->outcome));
    seep_table_ink(table, OUTCOME, row_ink(row));
    seep_table_cell(table, BEFORE, "%s",
                    seep_diff_growth(diff, &row->before, text));
    seep_table_cell(table, NOW, "%s", seep_diff_growth(diff, &row->now, text));
    seep_table_cell(table, CHANGE, "%s",
                    seep_diff_change_text(diff, row, text));
    seep_table_cell(table, WHERE, "%s", where == NULL ? "?" : where);
    free(where);
}

static void print_rest(struct seep_page *page, const struct seep_diff *diff,
                       size_t weighty, size_t minor)
{
    size_t excused = diff->before.excused_count + diff->now.excused_count;

    if (weighty + minor > 0) {
        seep_page_paragraph(page, SEEP_INK_FAINT, "", INDENT,
                            " and %zu more that grow%s: --sites 0",
                            weighty + minor,
                            weighty == 0 ? ", by little or for a time" : "");
    }
    if (diff->still_count > 0) {
        seep_page_paragraph(page, SEEP_INK_FAINT, "", INDENT,
                            " %zu call site%s neither before nor now",
                            diff->still_count,
                            diff->still_count == 1 ? " grows" : "s grow");
    }
    if (excused > 0) {
        seep_page_paragraph(page, SEEP_INK_FAINT, "", INDENT,
                            " %zu suppressed, or below a bound that was named",
                            excused);
    }
}

static void print_sites(struct seep_page *page, const struct seep_diff *diff,
                        size_t limit)
{
    const struct seep_table_column columns[COLUMN_COUNT] = {
        [OUTCOME] = {"", false},
        [BEFORE] = {diff->by_unit ? "before, a unit" : "before, a min", true},
        [NOW] = {diff->by_unit ? "now, a unit" : "now, a min", true},
        [CHANGE] = {"change", true},
        [WHERE] = {"where", false},
    };
    struct seep_table *table = seep_table_open(columns, COLUMN_COUNT);
    size_t shown = 0;
    size_t left[2] = {0, 0}; /* minor ones, weighty ones */

    if (table == NULL) {
        return;
    }
    if (page->columns < CHANGE_LEAST) {
        seep_table_hide(table, CHANGE);
    }
    for (size_t i = 0; i < diff->row_count; i++) {
        const struct seep_diff_row *row = &diff->rows[i];

        if (limit == 0 || (row->weighs && shown < limit)) {
            put_row(table, diff, row);
            shown++;
        } else {
            left[row->weighs]++;
        }
    }
    if (shown > 0) {
        seep_table_print(table, page, 1);
    }
    seep_table_close(table);
    print_rest(page, diff, left[1], left[0]);
}

/* One figure of the process; a side that does not know it has NULL. */
static void put_figure(struct seep_table *table, const char *name,
                       const char *before, const char *now, const char *change)
{
    seep_table_row(table, SEEP_INK_PLAIN);
    seep_table_cell(table, 0, "%s", name);
    seep_table_cell(table, 1, "%s", before);
    seep_table_cell(table, 2, "%s", now);
    seep_table_cell(table, 3, "%s", change);
}

static void put_size(struct seep_table *table, const char *name, double before,
                     double now)
{
    char text[3][SEEP_UNITS_TEXT_BYTES];

    if (before > 0 || now > 0) {
        put_figure(table, name, seep_units_bytes(before, text[0]),
                   seep_units_bytes(now, text[1]),
                   seep_units_change(now - before, text[2]));
    }
}

static void put_slope(struct seep_table *table, const char *name,
                      const struct seep_interval *before,
                      const struct seep_interval *now, double scale)
{
    struct seep_interval change = seep_diff_change(before, now);
    char text[3][SEEP_UNITS_TEXT_BYTES];

    put_figure(table, name, seep_units_interval(before, scale, text[0]),
               seep_units_interval(now, scale, text[1]),
               seep_units_interval(&change, scale, text[2]));
}

static void put_growth(struct seep_table *table, const struct seep_diff *diff)
{
    const struct seep_diff_row *row = &diff->process;
    char text[3][SEEP_UNITS_TEXT_BYTES];

    if (row->before.grows || row->now.grows) {
        put_figure(table, diff->by_unit ? "growth, a unit" : "growth, a min",
                   seep_diff_growth(diff, &row->before, text[0]),
                   seep_diff_growth(diff, &row->now, text[1]),
                   seep_diff_change_text(diff, row, text[2]));
    }
}

static void put_work(struct seep_table *table, const struct seep_diff *diff)
{
    char text[3][SEEP_UNITS_TEXT_BYTES];

    if (diff->by_unit) {
        double before = diff->before.units_per_s * 60;
        double now = diff->now.units_per_s * 60;
        char change[SEEP_UNITS_TEXT_BYTES + 1];

        snprintf(change, sizeof(change), "%s%s", now < before ? "-" : "+",
                 seep_units_count(fabs(now - before), text[2]));
        put_figure(table, "units of work, a min",
                   seep_units_count(before, text[0]),
                   seep_units_count(now, text[1]), change);
    }
}

static void print_process(struct seep_page *page, const struct seep_diff *diff)
{
    static const struct seep_table_column columns[] = {
        {"of a process", false},
        {"before", true},
        {"now", true},
        {"change", true},
    };
    struct seep_table *table =
        seep_table_open(columns, sizeof(columns) / sizeof(columns[0]));

    if (table == NULL) {
        return;
    }
    put_growth(table, diff);
    if (diff->before.has_private && diff->now.has_private) {
        put_slope(table, "private memory, a min", &diff->before.private_per_s,
                  &diff->now.private_per_s, 60);
    }
    put_size(table, "RSS at the end", diff->before.rss_bytes,
             diff->now.rss_bytes);
    put_size(table, "live at the end", diff->before.live_bytes,
             diff->now.live_bytes);
    put_work(table, diff);
    seep_page_end_line(page);
    seep_table_print(table, page, 1);
    seep_table_close(table);
}

static void print_pair(struct seep_page *page, const struct seep_diff_set *set,
                       const struct seep_diff_pair *pair, size_t limit)
{
    const struct seep_diff *diff = &pair->diff;
    char *sides = seep_diff_sides(set, pair);

    seep_page_paragraph(page, SEEP_INK_STRONG, "", 0, "%s: %s", pair->program,
                        sides == NULL ? "?" : sides);
    free(sides);
    print_sites(page, diff, limit);
    if (diff->before.reason == NULL && diff->now.reason == NULL) {
        print_process(page, diff);
    }
}

static void print_alone(struct seep_page *page, const char *program,
                        const char *side)
{
    if (program != NULL) {
        seep_page_paragraph(page, SEEP_INK_FAINT, "", INDENT,
                            "%s ran %s alone, and is not compared", program,
                            side);
    }
}

void seep_view_diff(struct seep_page *page, const struct seep_diff_set *set,
                    size_t site_limit)
{
    char *headline = seep_diff_headline(set);
    char *next = seep_diff_next(set);

    seep_page_paragraph(page, answer_ink(seep_diff_set_answer(set)), "seep:", 6,
                        "%s", headline == NULL ? "?" : headline);
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
        seep_page_paragraph(page, SEEP_INK_STRONG, "next", INDENT, "%s", next);
    }
    free(headline);
    free(next);
}
