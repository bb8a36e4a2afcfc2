/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the table of call sites left out. Invariant: every site is a row or is
 * counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"
#include "view_sites.h"
#include "words.h"

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
    char rate[SEEP_UNITS_TEXT_BYTES];
    char *rules = NULL;
    size_t size;
    FILE *file = open_memstream(&rules, &size);

    if (file == NULL) {
        return;
    }
    put_rules(file, report);
    fclose(file);
    seep_units_rate(growth, rate);
    seep_page_paragraph(page, SEEP_INK_FAINT, " and", 5,
                        "%zu suppressed (%s)%s%s: --show-suppressed shows %s",
                        count, rules, growth > 0 ? ", growing " : "",
                        growth > 0 ? rate + (*rate == '+') : "",
                        count == 1 ? "it" : "them");
    free(rules);
}

static void print_minor(struct seep_page *page,
                        const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    char rate[SEEP_UNITS_TEXT_BYTES];
    char least[SEEP_UNITS_TEXT_BYTES];

    seep_units_rate(verdict->minor_bytes_per_s, rate);
    seep_page_paragraph(page, SEEP_INK_FAINT, " and", 5,
                        "%zu that grew by less than %s each, %s together",
                        verdict->minor_count,
                        seep_units_bytes(verdict->floor_bytes, least),
                        *rate == '+' ? rate + 1 : rate);
}

/* What the table left out is counted: nothing is hidden. */
void seep_view_sites_left_out(struct seep_page *page,
                              const struct seep_report *report,
                              const struct seep_text_options *options,
                              size_t shown)
{
    size_t total = report->site_total > report->site_count ? report->site_total
                                                           : report->site_count;
    size_t told = shown + report->verdict.minor_count;
    size_t suppressed = suppressed_count(report);

    if (options->site_id != NULL) {
        return;
    }
    if (suppressed > 0 && !options->show_suppressed) {
        print_suppressed(page, report, suppressed);
        told += suppressed;
    }
    if (report->verdict.minor_count > 0) {
        print_minor(page, report);
    }
    if (total > told) {
        seep_page_paragraph(page, SEEP_INK_FAINT, " and", 5,
                            "%zu more %s (--sites 0 shows all)", total - told,
                            seep_words_rows(report, total - told));
    }
}
