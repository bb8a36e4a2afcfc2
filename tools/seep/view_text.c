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

#include "table.h"
#include "units.h"
#include "view_sites.h"
#include "words.h"

#define INDENT 8
#define SLOPE_LEAST_S 10.0 /* a slope over less than this says nothing */

static void print_head(struct seep_page *page, const struct seep_report *report)
{
    char duration[SEEP_UNITS_TEXT_BYTES];
    char units[SEEP_UNITS_TEXT_BYTES];
    char state[128];
    char *command = seep_words_command(report);

    seep_words_state(report, state, sizeof(state));
    seep_page_paragraph(
        page, SEEP_INK_STRONG, "seep:", 6, "%s, pid %u%s, %s%s%s%s, %s",
        command == NULL ? "?" : command, report->pid,
        report->is_fork ? " (a fork)" : "",
        seep_units_duration(report->duration_s, duration),
        report->units == 0 ? "" : ", ",
        report->units == 0 ? ""
                           : seep_units_count((double)report->units, units),
        report->units == 0 ? "" : " units of work", state);
    free(command);
}

static uint64_t live_of(const struct seep_report *report)
{
    uint64_t live = 0;

    for (size_t i = 0; i < report->space_count; i++) {
        live += report->spaces[i].live_bytes;
    }
    return live;
}

static enum seep_ink verdict_ink(enum seep_verdict_class class)
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

/* The first site speaks for the process: it is the one to look at. */
static void print_growth_answer(struct seep_page *page, const char *label,
                                const struct seep_report *report,
                                const struct seep_report_site *site)
{
    const struct seep_interval *growth = &site->growth_bytes_per_s;
    char rate[SEEP_UNITS_TEXT_BYTES];
    char bounds[SEEP_UNITS_TEXT_BYTES];
    char live[SEEP_UNITS_TEXT_BYTES];
    char of[SEEP_UNITS_TEXT_BYTES];

    char *where = seep_words_where(site);

    seep_units_rate(growth->estimate, rate);
    seep_page_paragraph(page, verdict_ink(report->verdict.class), label, 6,
                        "%s grows %s (%s) and holds %s of the %s live.",
                        where == NULL ? "?" : where,
                        *rate == '+' ? rate + 1 : rate,
                        seep_units_bounds(growth, 60, bounds),
                        seep_units_bytes((double)site->live_bytes, live),
                        seep_units_bytes((double)live_of(report), of));
    free(where);
}

static void class_label(enum seep_verdict_class class, char *label, size_t size)
{
    snprintf(label, size, "%s  ", seep_verdict_name(class));
    for (char *c = label; *c != '\0'; c++) {
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        *c = *c == '-' ? ' ' : *c;
    }
}

static void print_answer(struct seep_page *page,
                         const struct seep_report *report)
{
    char label[64];
    char live[SEEP_UNITS_TEXT_BYTES];
    char sites[SEEP_UNITS_TEXT_BYTES];

    class_label(report->verdict.class, label, sizeof(label));
    if (report->inert != SEEP_INERT_NONE) {
        seep_page_paragraph(page, SEEP_INK_WARNING, "NOT RECORDED  ", 6, "%s.",
                            seep_words_inert(report->inert));
        return;
    }
    if (report->site_count > 0 && report->sites[0].has_growth &&
        report->verdict.class <= SEEP_VERDICT_SUSPECT) {
        print_growth_answer(page, label, report, &report->sites[0]);
    } else {
        size_t total = report->site_total > report->site_count
                           ? report->site_total
                           : report->site_count;
        seep_page_paragraph(page, verdict_ink(report->verdict.class), label, 6,
                            "%s live at %s call site%s.",
                            seep_units_bytes((double)live_of(report), live),
                            seep_units_count((double)total, sites),
                            total == 1 ? "" : "s");
    }
    if (report->verdict.reason != NULL && *report->verdict.reason != '\0') {
        seep_page_paragraph(page, SEEP_INK_PLAIN, "", 6, "Why: %s.",
                            report->verdict.reason);
    }
}

static double tracked_slope(const struct seep_report *report)
{
    double slope = 0;

    for (size_t i = 0; i < report->space_count; i++) {
        if (report->spaces[i].space <= SEEP_SPACE_PINNED) {
            slope += report->spaces[i].slope_bytes_per_s;
        }
    }
    return slope;
}

static void print_spaces(struct seep_page *page,
                         const struct seep_report *report)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        return;
    }
    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];
        char live[SEEP_UNITS_TEXT_BYTES];
        char error[SEEP_UNITS_TEXT_BYTES];
        fprintf(file, "%s%s %s", i == 0 ? "" : ", ",
                seep_words_space(space->space),
                seep_units_bytes((double)space->live_bytes, live));
        if (space->live_bytes_error > 0) {
            fprintf(file, " ±%s",
                    seep_units_bytes(space->live_bytes_error, error));
        }
    }
    fclose(file);
    if (report->space_count > 0) {
        seep_page_paragraph(page, SEEP_INK_STRONG, "live", INDENT, "%s", text);
    }
    free(text);
}

static void print_memory(struct seep_page *page,
                         const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    char first[SEEP_UNITS_TEXT_BYTES];
    char last[SEEP_UNITS_TEXT_BYTES];
    char slope[SEEP_UNITS_TEXT_BYTES];
    char tracked[SEEP_UNITS_TEXT_BYTES];
    char other[SEEP_UNITS_TEXT_BYTES];
    double tracked_s = tracked_slope(report);

    if (!memory->valid) {
        return;
    }
    seep_units_bytes(memory->rss.first_bytes, first);
    seep_units_bytes(memory->rss.last_bytes, last);
    if (report->duration_s < SLOPE_LEAST_S) {
        seep_page_paragraph(page, SEEP_INK_STRONG, "memory", INDENT,
                            "RSS from %s to %s", first, last);
        return;
    }
    seep_page_paragraph(
        page, SEEP_INK_STRONG, "memory", INDENT,
        "RSS %s = tracked %s, other %s; from %s to %s",
        seep_units_rate(memory->rss.slope_bytes_per_s, slope),
        seep_units_rate(tracked_s, tracked),
        seep_units_rate(memory->rss.slope_bytes_per_s - tracked_s, other),
        first, last);
}

static void print_next(struct seep_page *page, const struct seep_report *report,
                       const struct seep_text_options *options)
{
    if (report->inert != SEEP_INERT_NONE) {
        seep_page_paragraph(page, SEEP_INK_STRONG, "next", INDENT,
                            "record it without that, or record its parts "
                            "that do not");
    } else if (report->site_count == 0) {
        seep_page_paragraph(page, SEEP_INK_STRONG, "next", INDENT,
                            "nothing was sampled: run longer, or with "
                            "`seep run --exact`");
    } else if (report->verdict.class == SEEP_VERDICT_INSUFFICIENT) {
        seep_page_paragraph(page, SEEP_INK_STRONG, "next", INDENT,
                            "run it longer, under steady load, past its "
                            "warm-up; or with a smaller --sample");
    } else if (report->verdict.class <= SEEP_VERDICT_SUSPECT &&
               !options->stacks) {
        seep_page_paragraph(page, SEEP_INK_STRONG, "next", INDENT,
                            "seep report --stack --site %.8s %s: look who "
                            "holds it",
                            report->sites[0].id, report->path);
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

static void print_own(struct seep_page *page, const struct seep_report *report)
{
    char mode[128];
    char lost[SEEP_UNITS_TEXT_BYTES];
    char cost[SEEP_UNITS_TEXT_BYTES];
    double share =
        report->duration_s > 0 ? report->cost_s / report->duration_s : NAN;

    seep_words_mode(report, mode, sizeof(mode));
    seep_page_paragraph(
        page, SEEP_INK_STRONG, "seep", INDENT,
        "%s; %s events lost; cost %s of the run", mode,
        seep_units_count((double)seep_words_lost_events(report), lost),
        seep_units_share(share, cost));
    print_losses(page, report);
}

void seep_view_text_report(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_text_options *options)
{
    print_head(page, report);
    print_answer(page, report);
    seep_page_end_line(page);
    if (report->site_count > 0) {
        seep_view_sites_table(page, report, options);
        seep_page_end_line(page);
    }
    if (options->stacks) {
        seep_view_sites_stacks(page, report, options);
    }
    print_spaces(page, report);
    print_memory(page, report);
    print_next(page, report, options);
    print_own(page, report);
}

void seep_view_text_summary(struct seep_page *page,
                            const struct seep_report *const *reports,
                            size_t count)
{
    size_t by_class[SEEP_VERDICT_COUNT] = {0};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL || count == 0) {
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
    seep_page_paragraph(page, SEEP_INK_STRONG, "seep:", 6,
                        "%zu processes: %s; first to look at: pid %u, %s",
                        count, text, reports[0]->pid,
                        command == NULL ? "?" : command);
    free(command);
    free(text);
}
