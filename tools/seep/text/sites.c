/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Call sites as text: a table with one line each, or their whole stacks.
 * Invariant: what is left out of the table is counted below it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/compare/patterns.h"
#include "reader/symbols/where.h"
#include "text/page.h"
#include "text/report.h"
#include "text/table.h"
#include "words/held.h"
#include "words/notes.h"
#include "words/units.h"
#include "words/verdict.h"
#include "words/words.h"

/*
 * The table.
 */

#define QUIET_ROWS 3
#define WITH_ROWS 3 /* of a group, under its head */

enum column {
    CLASS,
    GROWTH,
    PER_UNIT,
    LIVE,
    PEAK,
    BLOCKS,
    TEMPORARY,
    SPACE,
    TREND,
    WHERE,
    COLUMN_COUNT
};

/* Which sites are shown: as many as asked for; of those that do not grow only
 * the first ones, where others do. Go through all of them in order. */
struct choice {
    size_t left;
    size_t quiet_left;
    size_t segments_left; /* of PyTorch's cache: quiet rows of their own */
};

/* How loud a class is. */
static enum seep_style class_style(enum seep_class class)
{
    switch (class) {
    case SEEP_CLASS_LEAK:
        return SEEP_STYLE_BAD;
    case SEEP_CLASS_SUSPECT:
    case SEEP_CLASS_WARMING:
    case SEEP_CLASS_AGING:
        return SEEP_STYLE_WARNING;
    case SEEP_CLASS_INSUFFICIENT:
        return SEEP_STYLE_STRONG;
    default:
        return SEEP_STYLE_GOOD;
    }
}

/* A pool is nothing to look into: where it grows the verdict says so. */
static bool is_quiet(const struct seep_report_site *site)
{
    return site->class >= SEEP_CLASS_INSUFFICIENT || site->pool != NULL;
}

/* What imports and the start hold is one row where few are wanted. */
static bool is_folded(const struct seep_report_site *site,
                      const struct seep_text_options *options)
{
    return (options->brief || options->holding) && options->site_id == NULL &&
           site->is_start && is_quiet(site) && !site->backs_tensors;
}

/* Shown however few rows there are. */
static bool is_prominent(const struct seep_report_site *site,
                         const struct seep_text_options *options)
{
    return options->brief && options->site_id == NULL && site->stands_out &&
           !site->backs_tensors && site->suppressed_by == NULL &&
           !is_folded(site, options);
}

/* It allocates and frees, and nothing is left of it, nor did it come to more:
 * such rows are many, and tell nothing where few are wanted. */
static bool is_empty(const struct seep_report *report,
                     const struct seep_report_site *site,
                     const struct seep_text_options *options)
{
    return options->brief && seep_report_held_bytes(report, site) == 0 &&
           !(site->has_growth && site->growth_bytes_per_s.estimate > 0);
}

/* A site that is asked for by its id is shown whatever it is. */
static bool is_shown(const struct seep_report *report,
                     const struct seep_report_site *site,
                     const struct seep_text_options *options)
{
    if (options->site_id != NULL) {
        return seep_words_is_wanted(site, options->site_id);
    }
    if (site->suppressed_by != NULL) {
        return options->show_suppressed;
    }
    return !is_folded(site, options) && !is_empty(report, site, options) &&
           (site->class != SEEP_CLASS_MINOR || is_prominent(site, options));
}

static struct choice start(const struct seep_report *report,
                           const struct seep_text_options *options)
{
    struct choice choice = {SIZE_MAX, SIZE_MAX, QUIET_ROWS};

    if (options->site_limit > 0) {
        choice.left = options->site_limit;
    }
    if (!options->brief) {
        choice.segments_left = SIZE_MAX;
    }
    for (size_t i = 0; options->brief && i < report->site_count; i++) {
        if (is_shown(report, &report->sites[i], options) &&
            !report->sites[i].backs_tensors && !is_quiet(&report->sites[i])) {
            choice.quiet_left = QUIET_ROWS;
        }
    }
    for (size_t i = 0; i < report->site_count; i++) {
        if (is_prominent(&report->sites[i], options)) {
            choice.left -= choice.left > 0;
            choice.quiet_left -=
                is_quiet(&report->sites[i]) && choice.quiet_left > 0;
        }
    }
    return choice;
}

static bool choose(struct choice *choice, const struct seep_report *report,
                   const struct seep_report_site *site,
                   const struct seep_text_options *options)
{
    size_t *left = site->backs_tensors ? &choice->segments_left
                   : is_quiet(site)    ? &choice->quiet_left
                                       : &choice->left;

    if (is_prominent(site, options)) {
        return true;
    }
    if (!is_shown(report, site, options) || *left == 0 ||
        (choice->left == 0 && !site->backs_tensors)) {
        return false;
    }
    choice->left -= left != &choice->segments_left;
    *left -= left != &choice->left;
    return true;
}

/* "+40.1 ±1.1 MiB"; "?" was not to be told, "-" is no growth, whatever the line
 * through it. */
static const char *change_text(const struct seep_report_site *site, bool known,
                               const struct seep_interval *growth, double scale,
                               char text[SEEP_UNITS_TEXT_BYTES])
{
    if (site->class > SEEP_CLASS_INSUFFICIENT) {
        return "-";
    }
    return known ? seep_units_interval(growth, scale, text) : "?";
}

static void fill_figures(struct seep_table *table,
                         const struct seep_report *report,
                         const struct seep_report_site *site)
{
    char place[SEEP_WORDS_GPU_BYTES];

    seep_table_cell(table, GROWTH, "%s",
                    change_text(site, site->has_growth,
                                &site->growth_bytes_per_s, 60,
                                SEEP_UNITS_TEXT));
    seep_table_cell(table, PER_UNIT, "%s",
                    change_text(site, site->has_growth_per_unit,
                                &site->growth_bytes_per_unit, 1,
                                SEEP_UNITS_TEXT));
    seep_table_cell(table, LIVE, "%s",
                    SEEP_UNITS_BYTES((double)site->live_bytes));
    seep_table_cell(table, PEAK, "%s",
                    SEEP_UNITS_BYTES((double)site->peak_bytes));
    seep_table_cell(table, BLOCKS, "%s", SEEP_UNITS_COUNT(site->live_count));
    seep_table_cell(table, TEMPORARY, "%s",
                    site->untold.freed_bytes > 0
                        ? "?"
                        : SEEP_UNITS_BYTES((double)site->temporary_bytes));
    seep_table_cell(table, SPACE, "%s", seep_words_place(report, site, place));
}

/* The site that the verdict is about has its remedy among the next steps. */
static void note_row(struct seep_table *table, const struct seep_report *report,
                     const struct seep_report_site *site)
{
    if (site->suppressed_by != NULL) {
        seep_table_note(table, SEEP_NOTE_SUPPRESSED_BY, site->suppressed_by);
    } else if (site->known_bound_bytes > 0) {
        seep_table_note(table, SEEP_NOTE_KNOWN_BOUND,
                        SEEP_UNITS_BYTES((double)site->known_bound_bytes));
    } else if (site->pattern != NULL && (!is_quiet(site) || site->stands_out) &&
               !site->backs_tensors) {
        bool told = site == seep_words_site(report);

        seep_table_note(table, "known: %s%s%s", site->pattern->name,
                        told ? "" : ". ", told ? "" : site->pattern->remedy);
    }
}

/* What a site is, in its style. */
static void fill_class(struct seep_table *table,
                       const struct seep_report_site *site)
{
    if (site->backs_tensors) {
        seep_table_cell(table, CLASS, "segments");
        return;
    }
    seep_table_cell(table, CLASS, "%s",
                    site->class == SEEP_CLASS_INSUFFICIENT
                        ? "unclear"
                        : seep_class_name(site->class));
    seep_table_style(table, CLASS, class_style(site->class));
}

/* Of a group the head is a row, and the others stand under it; what is too
 * small for a row is told with the others of that. */
static bool is_under(const struct seep_report_site *site,
                     const struct seep_report_site *head)
{
    return site != head && head->role == SEEP_ROLE_HEAD &&
           site->class != SEEP_CLASS_MINOR &&
           strcmp(site->group_id, head->id) == 0;
}

/* A site that was asked for by its id stands by itself. */
static bool is_nested(const struct seep_report *report,
                      const struct seep_report_site *site,
                      const struct seep_text_options *options)
{
    if (site->role <= SEEP_ROLE_HEAD || options->site_id != NULL) {
        return false;
    }
    for (size_t i = 0; i < report->site_count; i++) {
        if (is_under(site, &report->sites[i])) {
            return is_shown(report, &report->sites[i], options);
        }
    }
    return false;
}

static void fill_with(struct seep_table *table,
                      const struct seep_report *report,
                      const struct seep_report_site *site)
{
    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, CLASS, "%s",
                    site->role == SEEP_ROLE_LENDER ? "  lent by" : "  with");
    fill_figures(table, report, site);
    seep_table_take(table, WHERE, seep_words_where(report, site));
}

/* What it all comes to, and how it is known who lends to whom. */
static void note_group(struct seep_table *table,
                       const struct seep_report_site *head,
                       const struct seep_report_site *lender, size_t left)
{
    char more[32] = "";

    const char *rate = SEEP_UNITS_INTERVAL(&head->group_growth_bytes_per_s, 60);
    if (left > 0) {
        snprintf(more, sizeof(more), "and %zu more; ", left);
    }
    if (lender == NULL) {
        seep_table_note(table, SEEP_NOTE_GROUP, more, rate);
        return;
    }
    seep_table_note(table, SEEP_NOTE_GROUP_LENT, more, rate,
                    SEEP_UNITS_SHARE(head->keeps_share),
                    SEEP_UNITS_SHARE(lender->keeps_share));
}

/* @return how many rows of the report that are */
static size_t fill_group(struct seep_table *table,
                         const struct seep_report *report,
                         const struct seep_report_site *head)
{
    const struct seep_report_site *lender = NULL;
    size_t count = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (is_under(site, head)) {
            if (site->role == SEEP_ROLE_LENDER && lender == NULL) {
                lender = site;
            }
            if (count++ < WITH_ROWS) {
                fill_with(table, report, site);
            }
        }
    }
    if (count > 0) {
        note_group(table, head, lender,
                   count > WITH_ROWS ? count - WITH_ROWS : 0);
    }
    return count;
}

void seep_view_sites_row(struct seep_table *table,
                         const struct seep_report *report,
                         const struct seep_report_site *site, const char *where,
                         char *trend)
{
    seep_table_row(table, site->class == SEEP_CLASS_LEAK && !site->backs_tensors
                              ? SEEP_STYLE_STRONG
                              : SEEP_STYLE_PLAIN);
    fill_class(table, site);
    fill_figures(table, report, site);
    seep_table_take(table, TREND, trend);
    seep_table_cell(table, WHERE, "%s", where == NULL ? "" : where);
}

static void fill_row(struct seep_table *table, const struct seep_report *report,
                     const struct seep_report_site *site)
{
    char *where = seep_words_chain(report, site);

    seep_view_sites_row(table, report, site, where, NULL);
    free(where);
    seep_table_paragraph(table, "held by",
                         seep_words_held_line(site->held, site->live_bytes));
    note_row(table, report, site);
}

static bool has_gpu(const struct seep_report *report)
{
    bool gpu = false;

    for (size_t i = 0; i < report->space_count; i++) {
        gpu = gpu || seep_words_is_gpu(report->spaces[i].space);
    }
    return gpu;
}

/* Columns without a single value are left out: the line is short. @asked: what
 * was freed at once is wanted. */
static struct seep_table *open_table(const struct seep_report *report,
                                     bool live, bool asked)
{
    bool growth = false;
    bool per_unit = false;
    bool temporary = false;

    for (size_t i = 0; i < report->site_count; i++) {
        growth = growth || report->sites[i].has_growth;
        per_unit = per_unit || report->sites[i].has_growth_per_unit;
        temporary = temporary || report->sites[i].temporary_bytes > 0;
    }
    /* of which side a row is, is the point where there are GPUs */
    size_t space_least = has_gpu(report) ? 76 : 90;
    const struct seep_table_column columns[COLUMN_COUNT] = {
        [CLASS] = {"class", false, 0},
        [GROWTH] = {"growth/min", true,
                    !growth ? SEEP_TABLE_NEVER
                    : live  ? 36
                            : 0},
        [PER_UNIT] = {"per unit", true,
                      !per_unit ? SEEP_TABLE_NEVER
                      : live    ? 100
                                : 70},
        [LIVE] = {"live", true, live ? 50 : 60},
        [PEAK] = {"peak", true,
                  !live && report->freed_all ? 60 : SEEP_TABLE_NEVER},
        [BLOCKS] = {"blocks", true, 110},
        [TEMPORARY] = {"temporary", true,
                       asked                ? 0
                       : live || !temporary ? SEEP_TABLE_NEVER
                                            : 160},
        [SPACE] = {"space", false,
                   report->space_count > 1 ? space_least : SEEP_TABLE_NEVER},
        [TREND] = {"trend", false, live ? 70 : SEEP_TABLE_NEVER},
        [WHERE] = {"where", false, 0},
    };

    return seep_table_open(columns, COLUMN_COUNT);
}

struct seep_table *seep_view_sites_open(const struct seep_report *report,
                                        bool live)
{
    return open_table(report, live, false);
}

/* @return how many rows there are of what stands on its own feet, or, if
 * @segments, of PyTorch's cache, whose growth is that of tensors. */
static size_t fill_rows(struct seep_table *table,
                        const struct seep_report *report,
                        const struct seep_text_options *options, bool segments,
                        struct choice *choice)
{
    size_t count = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->backs_tensors == segments &&
            !is_nested(report, site, options) &&
            choose(choice, report, site, options)) {
            fill_row(table, report, site);
            count++;
            if (options->site_id == NULL) {
                count += fill_group(table, report, site);
            }
        }
    }
    return count;
}

/*
 * What the table of call sites left out: every site is a row or is counted.
 */

#define RULES_SAID 4

/* ": leak:^foo, leak:bar, ..": the rules, each once, the first ones */
static void put_rules(FILE *file, const struct seep_report *report)
{
    const char *said[RULES_SAID];
    size_t count = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        const char *rule = report->sites[i].suppressed_by;
        bool known = rule == NULL;

        for (size_t j = 0; j < count && !known; j++) {
            known = strcmp(said[j], rule) == 0;
        }
        if (!known && count == RULES_SAID) {
            fputs(", ...", file);
            return;
        }
        if (!known) {
            fprintf(file, "%sleak:%s", count == 0 ? "" : ", ", rule);
            said[count++] = rule;
        }
    }
}

static size_t suppressed_count(const struct seep_report *report)
{
    size_t count = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        count += report->sites[i].suppressed_by != NULL;
    }
    return count;
}

static void print_suppressed(struct seep_page *page,
                             const struct seep_report *report, size_t count)
{
    double growth = report->verdict.suppressed_bytes_per_s;
    const char *rate = SEEP_UNITS_RATE(growth);
    struct seep_words_text words;
    FILE *file = seep_words_open(&words);

    if (file == NULL) {
        return;
    }
    put_rules(file, report);
    char *rules = seep_words_close(&words);
    seep_page_paragraph(
        page, SEEP_STYLE_FAINT, " and", 5, SEEP_NOTE_SUPPRESSED, count,
        rules == NULL ? "" : rules, growth > 0 ? ", growing by " : "",
        growth > 0 ? rate + (*rate == '+') : "", count == 1 ? "it" : "them");
    free(rules);
}

static void print_minor(struct seep_page *page,
                        const struct seep_report *report, size_t count)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    const char *rate = SEEP_UNITS_RATE(verdict->minor_bytes_per_s);
    seep_page_paragraph(page, SEEP_STYLE_FAINT, " and", 5, SEEP_NOTE_MINOR,
                        count, SEEP_UNITS_BYTES(verdict->floor_bytes),
                        *rate == '+' ? rate + 1 : rate);
}

/* Of those that grew by too little to be rows, some hold so much that they
 * are. */
static size_t minor_left(const struct seep_report *report,
                         const struct seep_text_options *options)
{
    size_t count = report->verdict.minor_count;

    for (size_t i = 0; i < report->site_count; i++) {
        if (report->sites[i].class == SEEP_CLASS_MINOR &&
            (options->holding || is_prominent(&report->sites[i], options))) {
            count -= count > 0;
        }
    }
    return count;
}

static void print_left_out(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_text_options *options,
                           size_t shown)
{
    size_t total = seep_words_site_total(report);
    size_t minor = minor_left(report, options);
    size_t told = shown + minor;
    size_t suppressed = suppressed_count(report);

    if (options->site_id != NULL) {
        return;
    }
    if (suppressed > 0 && !options->show_suppressed) {
        print_suppressed(page, report, suppressed);
        told += suppressed;
    }
    if (minor > 0) {
        print_minor(page, report, minor);
    }
    if (total > told) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, " and", 5,
                            SEEP_NOTE_MORE_SITES, total - told,
                            seep_words_rows(report, total - told));
    }
}

/* Imports and the start, in one row. @return how many it is of */
static size_t fill_start(struct seep_table *table,
                         const struct seep_report *report,
                         const struct seep_text_options *options)
{
    const struct seep_report_begin *begin = &report->begin;
    enum column bytes = report->freed_all ? PEAK : LIVE;

    if ((!options->brief && !options->holding) || options->site_id != NULL ||
        begin->site_count == 0) {
        return 0;
    }
    seep_table_row(table, SEEP_STYLE_FAINT);
    seep_table_cell(table, CLASS, "start-up");
    seep_table_cell(table, GROWTH, "-");
    seep_table_cell(table, PER_UNIT, "-");
    seep_table_cell(table, bytes, "%s",
                    SEEP_UNITS_BYTES((double)begin->live_bytes));
    seep_table_cell(table, BLOCKS, "%s", SEEP_UNITS_COUNT(begin->live_count));
    seep_table_cell(table, WHERE, SEEP_NOTE_START_UP, begin->site_count,
                    seep_words_rows(report, begin->site_count));
    return begin->site_count;
}

static int compare_held(const void *a, const void *b, void *report)
{
    const struct seep_report_site *left =
        *(const struct seep_report_site *const *)a;
    const struct seep_report_site *right =
        *(const struct seep_report_site *const *)b;
    uint64_t left_bytes = seep_report_held_bytes(report, left);
    uint64_t right_bytes = seep_report_held_bytes(report, right);

    return left_bytes != right_bytes
               ? (left_bytes < right_bytes) - (left_bytes > right_bytes)
               : (left > right) - (left < right);
}

static int compare_temporary(const void *a, const void *b, void *report)
{
    const struct seep_report_site *left =
        *(const struct seep_report_site *const *)a;
    const struct seep_report_site *right =
        *(const struct seep_report_site *const *)b;

    (void)report;
    return left->temporary_bytes != right->temporary_bytes
               ? (left->temporary_bytes < right->temporary_bytes) -
                     (left->temporary_bytes > right->temporary_bytes)
               : (left > right) - (left < right);
}

/* Rows by what they hold, or freed at once, whatever they are called. @return
 * how many rows of the report that are */
static size_t fill_holders(struct seep_table *table,
                           const struct seep_report *report,
                           const struct seep_text_options *options)
{
    const struct seep_report_site **sites =
        calloc(report->site_count + 1, sizeof(*sites));
    size_t most = options->site_limit > 0 ? options->site_limit : SIZE_MAX;
    size_t count = 0;
    size_t start = 0;
    size_t shown = 0;

    for (size_t i = 0; sites != NULL && i < report->site_count; i++) {
        bool counts =
            report->sites[i].suppressed_by == NULL || options->show_suppressed;

        if (counts && !is_folded(&report->sites[i], options)) {
            sites[count++] = &report->sites[i];
        }
    }
    if (count > 0) {
        qsort_r(sites, count, sizeof(sites[0]),
                options->temporary ? compare_temporary : compare_held,
                (void *)report);
    }
    for (; shown < count && shown < most; shown++) {
        if (start == 0 && !options->temporary &&
            report->begin.live_bytes >=
                seep_report_held_bytes(report, sites[shown])) {
            start = fill_start(table, report, options);
        }
        fill_row(table, report, sites[shown]);
    }
    free(sites);
    return shown + (start > 0 ? start : fill_start(table, report, options));
}

static size_t fill_table(struct seep_table *table,
                         const struct seep_report *report,
                         const struct seep_text_options *options)
{
    struct choice choice = start(report, options);
    size_t shown;
    size_t segments;

    if ((options->holding || options->temporary) && options->site_id == NULL) {
        return fill_holders(table, report, options);
    }
    shown = fill_rows(table, report, options, false, &choice);
    shown += fill_start(table, report, options);
    segments = fill_rows(table, report, options, true, &choice);
    if (segments > 0) {
        seep_table_note(table, SEEP_NOTE_SEGMENTS);
    }
    return shown + segments;
}

void seep_view_sites_table(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_text_options *options)
{
    struct seep_table *table = open_table(report, false, options->temporary);
    size_t shown = fill_table(table, report, options);

    if (shown > 0) {
        seep_table_print(table, page, 1);
    } else {
        seep_table_close(table);
    }
    if (shown == 0 && options->site_id != NULL) {
        seep_page_print(page, SEEP_STYLE_PLAIN, SEEP_NOTE_NO_SITE,
                        options->site_id);
        seep_page_end_line(page);
    }
    print_left_out(page, report, options, shown);
}

/*
 * Whole stacks, and all that is known of each.
 */

#define INDENT 4 /* of frames */

/* What is known of it beside its frames. */
static void print_evidence(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_report_site *site)
{
    char *kept = seep_words_kept(report, site);
    char *held = seep_words_held_line(site->held, site->live_bytes);

    if (held != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, "  held by  ", 11, "%s",
                            held);
        free(held);
    }
    if (site->class_reason != NULL && *site->class_reason != '\0') {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", 2, "%s",
                            site->class_reason);
    }
    if (kept != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", 2, "%s", kept);
        free(kept);
    }
    if (site->suppressed_by != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", 2,
                            SEEP_NOTE_SUPPRESSED_BY, site->suppressed_by);
    }
    if (site->pattern != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", 2, SEEP_NOTE_PATTERN,
                            site->pattern->name, site->pattern->cause,
                            site->pattern->remedy, site->pattern->source);
    }
}

/* Of a row of several stacks one is shown. */
static void print_largest(struct seep_page *page,
                          const struct seep_report_site *site)
{
    if (site->stack_count > 1) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", 2,
                            SEEP_NOTE_LARGEST_STACK, site->stack_count,
                            SEEP_UNITS_BYTES((double)site->stack_live_bytes));
    }
    if (*site->thread != '\0') {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", 2, "thread %s",
                            site->thread);
    }
}

static bool is_too_wide(const struct seep_page *page, const char *text)
{
    return text != NULL && seep_clean_columns(text) + INDENT > page->columns;
}

/* The same with a file that begins behind as many folders as are too many, or
 * behind all. Takes @text. */
static char *without_folders(const struct seep_page *page,
                             const struct seep_report_frame *frame, char *text)
{
    size_t excess = seep_clean_columns(text) + INDENT - page->columns;
    struct seep_report_frame shorter = *frame;
    const char *rest = strlen(frame->file) <= excess
                           ? NULL
                           : strchr(frame->file + excess + 1, '/');
    char *file;

    rest = rest == NULL ? strrchr(frame->file, '/') : rest;
    if (rest == NULL || rest == frame->file ||
        asprintf(&file, "…%s", rest) < 0) {
        return text;
    }
    free(text);
    shorter.file = file;
    text = seep_words_frame_long(&shorter, true);
    free(file);
    return text;
}

/* What is wider than the page loses the arguments of a name of C++, then
 * folders; but the line that a user looks for is told as it is. */
static char *frame_text(const struct seep_page *page,
                        const struct seep_report_frame *frame, bool user,
                        bool whole)
{
    char *text = seep_words_frame_long(frame, false);

    if (!whole && is_too_wide(page, text)) {
        free(text);
        text = seep_words_frame_long(frame, true);
    }
    return !whole && !user && is_too_wide(page, text)
               ? without_folders(page, frame, text)
               : text;
}

static void print_frame(struct seep_page *page,
                        const struct seep_report_site *site, size_t i,
                        bool whole)
{
    bool user = i == site->where_frame;
    char *frame = frame_text(page, site->frames[i], user, whole);

    seep_page_print(page, user ? SEEP_STYLE_STRONG : SEEP_STYLE_PLAIN,
                    "  %s %s", user ? ">" : " ", frame == NULL ? "?" : frame);
    seep_page_end_line(page);
    free(frame);
    if (site->frames[i]->source != NULL) {
        seep_page_print(page, SEEP_STYLE_FAINT, "        %s",
                        site->frames[i]->source);
        seep_page_end_line(page);
    }
}

static void print_fold(struct seep_page *page,
                       const struct seep_report_site *site,
                       const struct seep_fold_piece *piece)
{
    char *words = seep_fold_words(&site->frames[piece->first], piece->count);

    seep_page_print(page, SEEP_STYLE_FAINT, "    … %s …",
                    words == NULL ? "frames" : words);
    seep_page_end_line(page);
    free(words);
}

/* Without memory to fold them they are printed one by one. */
static void print_frames(struct seep_page *page,
                         const struct seep_report_site *site,
                         const struct seep_text_options *options)
{
    struct seep_fold_piece *pieces =
        options->whole_stacks ? NULL
                              : calloc(site->frame_count + 1, sizeof(*pieces));
    size_t count = pieces == NULL ? site->frame_count : seep_fold(site, pieces);

    for (size_t i = 0; i < count; i++) {
        if (pieces != NULL && pieces[i].folded) {
            print_fold(page, site, &pieces[i]);
        } else {
            print_frame(page, site, pieces == NULL ? i : pieces[i].first,
                        options->whole_stacks);
        }
    }
    free(pieces);
}

static void print_stack(struct seep_page *page,
                        const struct seep_report *report,
                        const struct seep_report_site *site,
                        const struct seep_text_options *options)
{
    char place[SEEP_WORDS_GPU_BYTES];

    seep_page_print(page, SEEP_STYLE_STRONG, "site %.*s", SEEP_WORDS_ID_COLUMNS,
                    site->id);
    seep_page_print(page, SEEP_STYLE_PLAIN, "  %s, %s, %s live in %s blocks",
                    site->backs_tensors ? "segments of PyTorch's cache"
                                        : seep_class_name(site->class),
                    seep_words_place(report, site, place),
                    SEEP_UNITS_BYTES((double)site->live_bytes),
                    SEEP_UNITS_COUNT(site->live_count));
    if (seep_words_is_rounded(site)) {
        seep_page_print(page, SEEP_STYLE_PLAIN, SEEP_NOTE_REQUESTED,
                        SEEP_UNITS_BYTES((double)site->requested.live_bytes));
    }
    seep_page_end_line(page);
    print_largest(page, site);
    print_evidence(page, report, site);
    print_frames(page, site, options);
    if (site->cut != SEEP_CUT_NONE) {
        seep_page_print(page, SEEP_STYLE_FAINT, "    (cut here: %s)",
                        seep_words_cut(site->cut));
        seep_page_end_line(page);
    }
    seep_page_end_line(page);
}

void seep_view_sites_stacks(struct seep_page *page,
                            const struct seep_report *report,
                            const struct seep_text_options *options)
{
    struct choice choice = start(report, options);

    for (size_t i = 0; i < report->site_count; i++) {
        if (choose(&choice, report, &report->sites[i], options)) {
            print_stack(page, report, &report->sites[i], options);
        }
    }
}
