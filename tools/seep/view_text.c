/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A report for a person. Invariant: nothing is said that the report did not
 * compute; what is not known is left out or is "?".
 */
#include "view_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"
#include "verdict_words.h"
#include "view_balance.h"
#include "view_devices.h"
#include "view_labels.h"
#include "view_marks.h"
#include "view_sites.h"
#include "words.h"

#define INDENT 8
#define MARKS_MOST 5
#define INDENT_ANSWER 6

void seep_view_text_head(struct seep_page *page,
                         const struct seep_report *report, const char *label)
{
    char duration[SEEP_UNITS_TEXT_BYTES];
    char units[SEEP_UNITS_TEXT_BYTES];
    char state[128];
    char *command = seep_words_command(report);

    seep_words_state(report, state, sizeof(state));
    seep_page_paragraph(
        page, SEEP_INK_STRONG, label, strlen(label) + 1,
        "%s, pid %u%s, %s%s%s%s, %s", command == NULL ? "?" : command,
        report->pid, report->is_fork ? " (a fork)" : "",
        seep_units_duration(report->duration_s, duration),
        report->units == 0 ? "" : ", ",
        report->units == 0 ? ""
                           : seep_units_count((double)report->units, units),
        report->units == 0 ? "" : " units of work", state);
    free(command);
}

enum seep_ink seep_view_verdict_ink(enum seep_verdict_class class)
{
    switch (class) {
    case SEEP_VERDICT_LEAK:
        return SEEP_INK_BAD;
    case SEEP_VERDICT_INSUFFICIENT:
        return SEEP_INK_STRONG;
    case SEEP_VERDICT_BOUNDED:
    case SEEP_VERDICT_STEADY:
        return SEEP_INK_GOOD;
    default:
        return SEEP_INK_WARNING;
    }
}

static enum seep_ink answer_ink(const struct seep_report *report)
{
    return report->inert != SEEP_INERT_NONE
               ? SEEP_INK_WARNING
               : seep_view_verdict_ink(report->verdict.class);
}

/* Sentences of their own, though each was made as a part of one. */
static void print_reason(struct seep_page *page, const char *reason)
{
    char first = *reason >= 'a' && *reason <= 'z' ? (char)(*reason - 'a' + 'A')
                                                  : *reason;
    size_t length = strlen(reason);

    if (length > 0) {
        seep_page_paragraph(page, SEEP_INK_PLAIN, "", INDENT_ANSWER, "%c%s%s",
                            first, reason + 1,
                            reason[length - 1] == '.' ? "" : ".");
    }
}

static void print_answer(struct seep_page *page,
                         const struct seep_report *report,
                         const struct seep_verdict_words *words)
{
    char label[sizeof(words->label) + 2];

    snprintf(label, sizeof(label), "%s  ", words->label);
    seep_page_paragraph(page, answer_ink(report), label, INDENT_ANSWER, "%s",
                        words->sentence == NULL ? "" : words->sentence);
    if (words->forecast != NULL) {
        seep_page_paragraph(page, SEEP_INK_PLAIN, "", INDENT_ANSWER, "%s",
                            words->forecast);
    }
    for (size_t i = 0; i < words->reason_count; i++) {
        print_reason(page, words->reasons[i]);
    }
}

/* The answer without its evidence. */
void seep_view_text_answer(struct seep_page *page,
                           const struct seep_report *report)
{
    struct seep_verdict_words words;

    seep_verdict_words_make(report, NULL, &words);
    size_t reason_count = words.reason_count;
    words.reason_count = 0;
    print_answer(page, report, &words);
    words.reason_count = reason_count;
    seep_verdict_words_fini(&words);
}

/* Whoever has the stacks before him need not be told how to get them. */
static void print_next(struct seep_page *page,
                       const struct seep_verdict_words *words,
                       const struct seep_text_options *options)
{
    static const char stack[] = "seep report --stack ";
    const char *label = "next";

    for (size_t i = 0; i < words->advice_count; i++) {
        if (!options->stacks || strstr(words->advice[i], stack) == NULL) {
            seep_page_paragraph(page, SEEP_INK_STRONG, label, INDENT, "%s",
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
        char count[SEEP_UNITS_TEXT_BYTES];
        if (counter->kind == SEEP_KIND_LOSS && counter->value > 0) {
            seep_page_paragraph(page, SEEP_INK_WARNING, "lost", INDENT, "%s %s",
                                seep_units_count((double)counter->value, count),
                                counter->words);
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
            page, SEEP_INK_WARNING, "python", INDENT, "%s%s%s%s%s",
            frames ? "frames " : "",
            frames ? seep_python_state_words(report->python_state) : "",
            frames && objects ? "; " : "", objects ? "objects " : "",
            objects ? seep_python_objects_words(report->python_objects) : "");
    }
}

static void print_own(struct seep_page *page, const struct seep_report *report)
{
    char mode[128];
    char lost[SEEP_UNITS_TEXT_BYTES];
    char cost[SEEP_UNITS_TEXT_BYTES];
    double share = report->duration_s > 0
                       ? seep_words_cost_s(report) / report->duration_s
                       : NAN;

    seep_words_mode(report, mode, sizeof(mode));
    seep_page_paragraph(
        page, SEEP_INK_STRONG, "seep", INDENT,
        "%s; %s events lost; cost %s of the run", mode,
        seep_units_count((double)seep_words_lost_events(report), lost),
        seep_units_share(share, cost));
    print_python(page, report);
    print_losses(page, report);
}

void seep_view_text_report(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_text_options *options)
{
    struct seep_verdict_words words;

    seep_verdict_words_make(
        report, seep_verdict_words_pattern(report, options->catalogue), &words);
    print_answer(page, report, &words);
    seep_view_text_head(page, report, "seep:");
    seep_page_end_line(page);
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
    seep_view_marks(page, report, INDENT, MARKS_MOST);
    print_next(page, &words, options);
    print_own(page, report);
    seep_verdict_words_fini(&words);
}

void seep_view_text_verdict(struct seep_page *page,
                            const struct seep_report *report)
{
    struct seep_verdict_words words;

    seep_verdict_words_make(report, NULL, &words);
    seep_page_print(page, answer_ink(report), "%s", words.label);
    seep_page_print(page, SEEP_INK_PLAIN, "  %s%s%s",
                    words.sentence == NULL ? "" : words.sentence,
                    words.forecast == NULL ? "" : " ",
                    words.forecast == NULL ? "" : words.forecast);
    seep_page_end_line(page);
    seep_verdict_words_fini(&words);
}

/* "3 processes: 1 leak, 2 steady; first to look at: ..": the first is the
 * worst. */
static void print_summary(struct seep_page *page,
                          const struct seep_report *const *reports,
                          size_t count)
{
    size_t by_class[SEEP_VERDICT_COUNT] = {0};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        by_class[reports[i]->verdict.class % SEEP_VERDICT_COUNT]++;
    }
    for (size_t i = 0, said = 0; i < SEEP_VERDICT_COUNT; i++) {
        if (by_class[i] > 0) {
            fprintf(file, "%s%zu %s", said++ == 0 ? "" : ", ", by_class[i],
                    seep_verdict_name((enum seep_verdict_class)i));
        }
    }
    fclose(file);
    char *command = seep_words_command(reports[0]);
    seep_page_paragraph(page, answer_ink(reports[0]), "seep:", 6,
                        "%zu processes: %s; first to look at: pid %u, %s",
                        count, text, reports[0]->pid,
                        command == NULL ? "?" : command);
    free(command);
    free(text);
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
        seep_page_paragraph(page, SEEP_INK_FAINT, "and", 4,
                            "%zu process%s that lived less than %.0f s "
                            "(--processes 0 shows all)",
                            brief_count, brief_count == 1 ? "" : "es",
                            SEEP_WORDS_BRIEF_S);
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
        print_summary(page, reports, count);
    }
    if (count > 0 && reports[0]->by == SEEP_BY_LABEL) {
        seep_page_end_line(page);
        seep_view_labels(page, reports, count);
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
