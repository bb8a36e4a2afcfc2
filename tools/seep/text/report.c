/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A report for a person. Invariant: nothing is said that the report did not
 * compute; what is not known is left out or is "?".
 */
#include "text/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/variables.h"
#include "reader/report/report.h"
#include "text/table.h"
#include "words/notes.h"
#include "words/units.h"
#include "words/verdict.h"
#include "words/words.h"

/*
 * Marks: of many the last are told, and how many were before them.
 */

void seep_view_marks(struct seep_page *page, const struct seep_report *report,
                     size_t indent, size_t most)
{
    size_t from = report->mark_count > most ? report->mark_count - most : 0;
    struct seep_words_text words;
    FILE *file = report->mark_count > 0 ? seep_words_open(&words) : NULL;
    char *text;

    if (file == NULL) {
        return;
    }
    if (from > 0) {
        fprintf(file, "%s before, then ", SEEP_UNITS_COUNT((double)from));
    }
    for (size_t i = from; i < report->mark_count; i++) {
        fprintf(file, "%s%s at %s", i == from ? "" : ", ",
                report->marks[i].name,
                SEEP_UNITS_DURATION(report->marks[i].at_s));
    }
    text = seep_words_close(&words);
    if (text != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, "marks", indent, "%s",
                            text);
    }
    free(text);
}

/*
 * What a process was told and did not understand, and what it removed.
 */

void seep_view_rejected(struct seep_page *page,
                        const struct seep_report *report, size_t indent)
{
    const char *at = report->rejected;
    char entry[SEEP_WORDS_ENTRY_BYTES];

    for (int i = 0; i < SEEP_WORDS_ENTRIES_MOST &&
                    (at = seep_words_next_rejected(at, entry)) != NULL;
         i++) {
        struct seep_variable_words words;

        seep_variable_explain(entry, &words);
        seep_page_paragraph(page, SEEP_STYLE_WARNING, "ignored", indent,
                            "%s: %s; %s", words.thing, words.reason,
                            words.remedy);
    }
}

void seep_view_removed(struct seep_page *page, const struct seep_report *report,
                       size_t indent)
{
    if (report->removed_count > 0) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, "removed", indent,
                            SEEP_NOTE_REMOVED, (unsigned)report->removed_count,
                            report->removed_count == 1 ? "" : "s",
                            SEEP_UNITS_BYTES((double)report->removed_bytes));
    }
}

void seep_view_unread(struct seep_page *page, const struct seep_report *report,
                      size_t indent)
{
    if (report->looks_error != 0) {
        seep_page_paragraph(page, SEEP_STYLE_WARNING, "unread", indent,
                            SEEP_NOTE_LOOKS_UNREAD, report->path,
                            seep_words_beside(report->looks_error));
    }
    if (report->held_error != 0) {
        seep_page_paragraph(page, SEEP_STYLE_WARNING, "unread", indent,
                            SEEP_NOTE_HELD_UNREAD, report->path,
                            seep_words_beside(report->held_error));
    }
}

/*
 * Processes by their labels, one line each. A label is as long as its row says,
 * whatever follows it.
 */

enum column { CLASS, GROWTH, LIVE, PROCESSES, LABEL, FIRST, COLUMN_COUNT };

static const struct seep_table_column columns[COLUMN_COUNT] = {
    [CLASS] = {"class", false, 0}, [GROWTH] = {"growth/min", true, 0},
    [LIVE] = {"live", true, 0},    [PROCESSES] = {"processes", true, 0},
    [LABEL] = {"label", false, 0}, [FIRST] = {"first to look at", false, 0},
};

static void fill_label(struct seep_table *table,
                       const struct seep_label_row *row)
{
    if (row->key_length == 0) {
        seep_table_cell(table, LABEL, "(none)");
    } else {
        seep_table_cell(table, LABEL, "%.*s%s%.*s", (int)row->key_length,
                        row->key, row->value_length > 0 ? "=" : "",
                        (int)row->value_length, row->value);
    }
}

static void fill_row(struct seep_table *table, const struct seep_label_row *row)
{
    char *program = seep_words_program(row->first);

    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, CLASS, "%s", seep_verdict_name(row->class));
    seep_table_style(table, CLASS, seep_view_verdict_style(row->class));
    seep_table_cell(table, GROWTH, "%s",
                    row->has_growth
                        ? SEEP_UNITS_INTERVAL(&row->growth_bytes_per_s, 60)
                        : "-");
    seep_table_cell(table, LIVE, "%s",
                    SEEP_UNITS_BYTES((double)row->live_bytes));
    seep_table_cell(table, PROCESSES, "%s",
                    SEEP_UNITS_COUNT((double)row->process_count));
    fill_label(table, row);
    seep_table_cell(table, FIRST, "pid %u, %s", row->first->pid,
                    program == NULL ? "?" : program);
    free(program);
}

static void print_labels(struct seep_page *page,
                         const struct seep_report *const *reports, size_t count)
{
    struct seep_label_row *rows;
    size_t row_count;

    if (seep_labels_group(reports, count, &rows, &row_count) == 0) {
        struct seep_table *table = seep_table_open(columns, COLUMN_COUNT);

        for (size_t i = 0; i < row_count; i++) {
            fill_row(table, &rows[i]);
        }
        free(rows);
        seep_table_print(table, page, 1);
    }
}

/*
 * A process, and several.
 */

#define INDENT 8
#define MARKS_MOST 5

void seep_view_text_head(struct seep_page *page,
                         const struct seep_report *report, const char *label,
                         bool brief)
{
    char state[128];
    char end[SEEP_WORDS_END_BYTES];
    char *command =
        brief ? seep_words_program(report) : seep_words_command(report);

    seep_words_state(report, state, sizeof(state));
    seep_page_paragraph(
        page, SEEP_STYLE_STRONG, label, strlen(label) + 1,
        "%s, pid %u%s, %s%s%s%s, %s", command == NULL ? "?" : command,
        report->pid, report->is_fork ? " (a fork)" : "",
        SEEP_UNITS_DURATION(seep_words_life_s(report)),
        report->units == 0 ? "" : ", ",
        report->units == 0 ? "" : SEEP_UNITS_COUNT((double)report->units),
        report->units == 0 ? "" : " units of work", state);
    free(command);
    if (*seep_words_end(report, end) != '\0') {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, "end", INDENT, "%s", end);
    }
}

enum seep_style seep_view_verdict_style(enum seep_verdict_class class)
{
    switch (class) {
    case SEEP_VERDICT_LEAK:
        return SEEP_STYLE_BAD;
    case SEEP_VERDICT_INSUFFICIENT:
        return SEEP_STYLE_STRONG;
    case SEEP_VERDICT_BOUNDED:
    case SEEP_VERDICT_STEADY:
        return SEEP_STYLE_GOOD;
    default:
        return SEEP_STYLE_WARNING;
    }
}

static enum seep_style answer_style(const struct seep_report *report)
{
    return report->inert != SEEP_INERT_NONE
               ? SEEP_STYLE_WARNING
               : seep_view_verdict_style(report->verdict.class);
}

void seep_view_reason(struct seep_page *page, const char *reason)
{
    char first = *reason >= 'a' && *reason <= 'z' ? (char)(*reason - 'a' + 'A')
                                                  : *reason;
    size_t length = strlen(reason);

    if (length > 0) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", SEEP_VIEW_ANSWER_INDENT,
                            "%c%s%s", first, reason + 1,
                            reason[length - 1] == '.' ? "" : ".");
    }
}

void seep_view_answer(struct seep_page *page, enum seep_style style,
                      const struct seep_words_verdict *words)
{
    char label[SEEP_WORDS_LABEL_BYTES + 2];

    snprintf(label, sizeof(label), "%s  ", words->label);
    seep_page_paragraph(page, style, label, SEEP_VIEW_ANSWER_INDENT, "%s",
                        words->sentence == NULL ? "" : words->sentence);
    if (words->forecast != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", SEEP_VIEW_ANSWER_INDENT,
                            "%s", words->forecast);
    }
}

/* Growth counts from there, or from half of the run if that was earlier. */
static void print_begin(struct seep_page *page,
                        const struct seep_report *report)
{
    const struct seep_report_begin *begin = &report->begin;

    if (begin->from_s > 0 && !seep_words_only_imported(report)) {
        double half_s = report->duration_s / 2;
        bool late = begin->at_s > half_s && begin->from_s <= half_s;
        const char *from = SEEP_UNITS_DURATION(begin->from_s);

        seep_page_paragraph(page, SEEP_STYLE_STRONG, "began", INDENT,
                            SEEP_NOTE_BEGAN, SEEP_UNITS_DURATION(begin->at_s),
                            seep_beginning_words(begin->source),
                            late ? "; growth counts from half of the run, "
                                 : "",
                            late ? from : "");
    }
}

/* What a program that ran out of memory did last. */
static void print_failed(struct seep_page *page,
                         const struct seep_report *report)
{
    const struct seep_report_failed *failed = &report->failed;
    double since_s = fmax(0, report->life_s - failed->last_s);

    if (failed->count > 0) {
        seep_page_paragraph(page, SEEP_STYLE_WARNING, "failed", INDENT,
                            report->state == SEEP_STATE_RUNNING
                                ? SEEP_NOTE_FAILED_AGO
                                : SEEP_NOTE_FAILED,
                            SEEP_UNITS_COUNT((double)failed->count),
                            failed->count == 1 ? "" : "s",
                            SEEP_UNITS_BYTES((double)failed->last_bytes),
                            *failed->where == '\0' ? "" : " at ", failed->where,
                            SEEP_UNITS_DURATION(since_s));
    }
}

/* Where it kept most of that, as the table has it; to be freed. */
static char *last_where(const struct seep_report *report)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->where != NULL &&
            strcmp(site->where, report->last.where) == 0) {
            return seep_words_where(report, site);
        }
    }
    return NULL; /* it has no row of its own */
}

/* What a process that somebody ended did last. */
static void print_last(struct seep_page *page, const struct seep_report *report)
{
    const struct seep_report_last *last = &report->last;
    const struct seep_report_memory *memory = &report->memory;
    char *where;
    bool kept;

    /* who ends by _exit() is gone, too: it is news of one that grows */
    if (!(last->span_s > 0) ||
        (report->state == SEEP_STATE_GONE &&
         report->verdict.class != SEEP_VERDICT_LEAK &&
         report->verdict.class != SEEP_VERDICT_SUSPECT)) {
        return;
    }
    where = last_where(report);
    kept = *last->where != '\0' && last->stayed_bytes >= 1;
    seep_page_paragraph(
        page, SEEP_STYLE_WARNING, "last", INDENT, SEEP_NOTE_LAST,
        SEEP_UNITS_DURATION(last->span_s),
        SEEP_UNITS_BYTES(last->allocated_bytes),
        SEEP_UNITS_BYTES(last->freed_bytes), kept ? SEEP_NOTE_LAST_KEPT : "",
        !kept           ? ""
        : where == NULL ? last->where
                        : where,
        kept ? ", " : "", kept ? SEEP_UNITS_BYTES(last->stayed_bytes) : "");
    free(where);
    if (memory->cgroup.valid && memory->cgroup_limit_bytes > 0) {
        seep_page_paragraph(
            page, SEEP_STYLE_WARNING, "", INDENT, SEEP_NOTE_LAST_GROUP,
            SEEP_UNITS_BYTES(memory->cgroup.last_bytes),
            SEEP_UNITS_BYTES((double)memory->cgroup_limit_bytes));
    }
}

/* The answer without its evidence. */
void seep_view_text_answer(struct seep_page *page,
                           const struct seep_report *report)
{
    struct seep_words_verdict words;

    seep_words_verdict(report, NULL, &words);
    seep_view_answer(page, answer_style(report), &words);
    seep_words_verdict_fini(&words);
}

/* Whoever has the stacks before him need not be told how to get them. */
static void print_next(struct seep_page *page,
                       const struct seep_words_verdict *words,
                       const struct seep_text_options *options)
{
    static const char stack[] = "seep report --stack ";
    const char *label = "next";

    for (size_t i = 0; i < words->advice_count; i++) {
        if (!options->stacks || strstr(words->advice[i], stack) == NULL) {
            seep_page_paragraph(page, SEEP_STYLE_STRONG, label, INDENT, "%s",
                                words->advice[i]);
            label = "or";
        }
    }
}

static void print_losses(struct seep_page *page,
                         const struct seep_report *report)
{
    for (size_t i = 0; i < report->counter_count; i++) {
        const struct seep_report_counter *counter = &report->counters[i];
        if (counter->kind == SEEP_KIND_LOSS && counter->value > 0) {
            seep_page_paragraph(
                page, SEEP_STYLE_WARNING, "lost", INDENT, "%s %s",
                SEEP_UNITS_COUNT((double)counter->value), counter->words);
        }
    }
}

/* Objects that were not asked for are no news. */
static void print_python(struct seep_page *page,
                         const struct seep_report *report)
{
    bool frames = seep_words_is_without_python(report);
    bool objects = seep_words_has_python(report) &&
                   report->python_objects != SEEP_PYTHON_OBJECTS_ON &&
                   report->python_objects != SEEP_PYTHON_OBJECTS_OFF;

    if (frames || objects) {
        seep_page_paragraph(
            page, SEEP_STYLE_WARNING, "python", INDENT, "%s%s%s%s%s",
            frames ? "frames " : "",
            frames ? seep_python_state_words(report->python_state) : "",
            frames && objects ? "; " : "", objects ? "objects " : "",
            objects ? seep_python_objects_words(report->python_objects) : "");
    }
}

static void print_own(struct seep_page *page, const struct seep_report *report)
{
    char mode[128];
    char cost[SEEP_WORDS_COST_BYTES];

    seep_words_mode(report, mode, sizeof(mode));
    seep_words_cost(report, false, cost, sizeof(cost));
    seep_page_paragraph(
        page, SEEP_STYLE_STRONG, "seep", INDENT, SEEP_NOTE_RECORDER, mode,
        SEEP_UNITS_COUNT((double)seep_words_lost_events(report)), cost);
    print_python(page, report);
    seep_view_rejected(page, report, INDENT);
    seep_view_removed(page, report, INDENT);
    seep_view_unread(page, report, INDENT);
    print_losses(page, report);
}

/* The call sites, and the balance. */
static void print_evidence(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_text_options *options)
{
    if (report->site_count > 0) {
        seep_view_sites_table(page, report, options);
        seep_page_end_line(page);
    }
    if (options->stacks) {
        seep_view_sites_stacks(page, report, options);
    }
    if (report->inert == SEEP_INERT_NONE) {
        seep_view_balance(page, report);
        seep_view_devices(page, report);
        seep_page_end_line(page);
    }
}

void seep_view_text_report(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_text_options *options)
{
    bool part = seep_span_is_wished(&options->wish) || options->tree;
    struct seep_words_verdict words;

    seep_words_verdict(report, seep_words_pattern(report, options->catalogue),
                       &words);
    if (part) {
        seep_page_print(page, SEEP_STYLE_STRONG, SEEP_NOTE_WHOLE_RUN);
        seep_page_end_line(page);
    }
    seep_view_answer(page, answer_style(report), &words);
    for (size_t i = 0; i < words.reason_count && !part; i++) {
        seep_view_reason(page, words.reasons[i]);
    }
    seep_view_text_head(page, report, "seep:", false);
    print_begin(page, report);
    print_failed(page, report);
    print_last(page, report);
    seep_page_end_line(page);
    if (options->tree != SEEP_TREE_NONE) {
        seep_view_tree(page, report, options);
    } else if (part) {
        seep_view_span(page, report, options);
    } else {
        print_evidence(page, report, options);
    }
    seep_view_marks(page, report, INDENT, MARKS_MOST);
    print_next(page, &words, options);
    print_own(page, report);
    seep_words_verdict_fini(&words);
}

void seep_view_text_verdict(struct seep_page *page,
                            const struct seep_report *report)
{
    struct seep_words_verdict words;

    seep_words_verdict(report, NULL, &words);
    seep_page_print(page, answer_style(report), "%s", words.label);
    seep_page_print(page, SEEP_STYLE_PLAIN, "  %s%s%s",
                    words.sentence == NULL ? "" : words.sentence,
                    words.forecast == NULL ? "" : " ",
                    words.forecast == NULL ? "" : words.forecast);
    seep_page_end_line(page);
    seep_words_verdict_fini(&words);
}

/* "3 processes: 1 leak, 2 steady; first to look at: ..": the first is the
 * worst. Where all together are worse than each, that is said, too. */
static void print_summary(struct seep_page *page,
                          const struct seep_report *const *reports,
                          size_t count, const struct seep_families *families)
{
    const struct seep_report *first = seep_families_first(families, reports[0]);
    enum seep_verdict_class class = seep_families_class(families);
    size_t by_class[SEEP_VERDICT_COUNT] = {0};
    struct seep_words_text words;
    FILE *file = seep_words_open(&words);

    if (file == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        by_class[reports[i]->verdict.class % SEEP_VERDICT_COUNT]++;
    }
    seep_words_put_classes(file, by_class);
    char *text = seep_words_close(&words);
    char *command = seep_words_command(first);
    const char *each = text == NULL ? "" : text;
    const char *who = command == NULL ? "?" : command;
    if (class < reports[0]->verdict.class) {
        seep_page_paragraph(page, seep_view_verdict_style(class), "seep:", 6,
                            SEEP_NOTE_TOGETHER, count, each,
                            seep_verdict_name(class), first->pid, who);
    } else {
        seep_page_paragraph(page, answer_style(reports[0]), "seep:", 6,
                            SEEP_NOTE_PROCESSES, count, each, first->pid, who);
    }
    free(command);
    free(text);
}

/* What several come to, above what each of them does. */
static void print_together(struct seep_page *page,
                           const struct seep_report *const *reports,
                           size_t count)
{
    struct seep_families families;

    if (seep_families_make(reports, count, &families) < 0) {
        return;
    }
    print_summary(page, reports, count, &families);
    seep_view_families(page, &families);
    seep_families_fini(&families);
}

static void print_rest(struct seep_page *page,
                       const struct seep_report *const *reports, size_t count)
{
    size_t brief_count = 0;

    for (size_t i = 0; i < count; i++) {
        if (seep_words_is_brief(reports[i])) {
            brief_count++;
        } else {
            seep_page_end_line(page);
            seep_view_text_answer(page, reports[i]);
        }
    }
    if (brief_count > 0) {
        seep_page_end_line(page);
        seep_page_paragraph(page, SEEP_STYLE_FAINT, "and", 4,
                            SEEP_NOTE_BRIEF_PROCESSES, brief_count,
                            brief_count == 1 ? "" : "es", SEEP_WORDS_BRIEF_S);
    }
}

/* How many are shown in full: the first, and of the others no helpers. */
static size_t full_count(const struct seep_report *const *reports, size_t count,
                         size_t limit)
{
    size_t full = count > 0;

    if (limit == 0) {
        return count;
    }
    while (full < count && full < limit &&
           !seep_words_is_brief(reports[full])) {
        full++;
    }
    return full;
}

void seep_view_text_reports(struct seep_page *page,
                            const struct seep_report *const *reports,
                            size_t count,
                            const struct seep_text_options *options)
{
    size_t full = full_count(reports, count, options->process_limit);

    if (count > 1) {
        print_together(page, reports, count);
    }
    if (count > 0 && reports[0]->by == SEEP_BY_LABEL) {
        seep_page_end_line(page);
        print_labels(page, reports, count);
        if (count == 1) {
            seep_page_end_line(page);
        }
    }
    for (size_t i = 0; i < full; i++) {
        if (count > 1) {
            seep_page_end_line(page);
        }
        seep_view_text_report(page, reports[i], options);
    }
    print_rest(page, reports + full, count - full);
}
