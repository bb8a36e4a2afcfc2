/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What makes up the verdict's words, and which site they are about. Invariant:
 * a suppressed site speaks for nothing, nor does one that only backs others.
 */
#include "verdict_words.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/catalogue.h"

const char *seep_verdict_words_allocator(enum seep_allocator_kind kind)
{
    switch (kind) {
    case SEEP_ALLOCATOR_GLIBC:
        return "glibc's malloc";
    case SEEP_ALLOCATOR_JEMALLOC:
        return "jemalloc";
    case SEEP_ALLOCATOR_TCMALLOC:
        return "tcmalloc";
    case SEEP_ALLOCATOR_MIMALLOC:
        return "mimalloc";
    default:
        return "the allocator";
    }
}

__attribute__((format(printf, 4, 0))) static void
add_text(char **texts, size_t most, size_t *count, const char *format,
         va_list arguments)
{
    if (*count < most && vasprintf(&texts[*count], format, arguments) >= 0) {
        ++*count;
    }
}

void seep_verdict_words_reason(struct seep_verdict_words *words,
                               const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_text(words->reasons, SEEP_VERDICT_REASONS_MAX, &words->reason_count,
             format, arguments);
    va_end(arguments);
}

void seep_verdict_words_advise(struct seep_verdict_words *words,
                               const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_text(words->advice, SEEP_VERDICT_ADVICE_MAX, &words->advice_count,
             format, arguments);
    va_end(arguments);
}

static bool counts(const struct seep_report_site *site)
{
    return site->suppressed_by == NULL && !site->backs_tensors;
}

static const struct seep_report_site *first_of(const struct seep_report *report,
                                               unsigned classes)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (counts(site) && (classes >> site->class & 1U) != 0) {
            return site;
        }
    }
    return NULL;
}

static const struct seep_report_site *
largest_of(const struct seep_report *report, unsigned classes)
{
    const struct seep_report_site *largest = NULL;

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (counts(site) && (classes >> site->class & 1U) != 0 &&
            (largest == NULL || site->live_bytes > largest->live_bytes)) {
            largest = site;
        }
    }
    return largest;
}

/* The one that the verdict's figures begin with. */
static const struct seep_report_site *named_of(const struct seep_report *report)
{
    for (size_t i = 0; i < report->site_count; i++) {
        if (strcmp(report->sites[i].id, report->verdict.first_id) == 0) {
            return &report->sites[i];
        }
    }
    return NULL;
}

static const struct seep_report_site *known_of(const struct seep_report *report)
{
    for (size_t i = 0; i < report->site_count; i++) {
        if (counts(&report->sites[i]) && report->sites[i].known_bound_bytes) {
            return &report->sites[i];
        }
    }
    return NULL;
}

static const struct seep_report_site *
bounded_site(const struct seep_report *report)
{
    const struct seep_report_site *site = NULL;

    if (report->verdict.filling) {
        site = first_of(report, 1U << SEEP_CLASS_WARMING);
        return site != NULL ? site : known_of(report);
    }
    site = known_of(report);
    return site != NULL ? site
                        : largest_of(report, 1U << SEEP_CLASS_PLATEAU |
                                                 1U << SEEP_CLASS_STEP);
}

const struct seep_report_site *
seep_verdict_words_site(const struct seep_report *report)
{
    if (*report->verdict.first_id != '\0') {
        return named_of(report);
    }
    switch (report->verdict.class) {
    case SEEP_VERDICT_LEAK:
        return first_of(report, 1U << SEEP_CLASS_LEAK);
    case SEEP_VERDICT_SUSPECT:
        return first_of(report,
                        1U << SEEP_CLASS_LEAK | 1U << SEEP_CLASS_SUSPECT |
                            1U << SEEP_CLASS_WARMING | 1U << SEEP_CLASS_AGING);
    case SEEP_VERDICT_BOUNDED:
        return bounded_site(report);
    default:
        return NULL;
    }
}

static void fill_label(const struct seep_report *report, char *label,
                       size_t size)
{
    snprintf(label, size, "%s",
             report->inert != SEEP_INERT_NONE
                 ? "NOT RECORDED"
                 : seep_verdict_name(report->verdict.class));
    for (char *c = label; *c != '\0'; c++) {
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        *c = *c == '-' ? ' ' : *c;
    }
}

/* The patterns of processes are the host's allocators. */
const struct seep_pattern *
seep_verdict_words_pattern(const struct seep_report *report,
                           const struct seep_catalogue *catalogue)
{
    return catalogue == NULL || seep_verdict_words_fragmented(report) != NULL
               ? NULL
               : seep_catalogue_find_process(catalogue, report);
}

void seep_verdict_words_make(const struct seep_report *report,
                             const struct seep_pattern *pattern,
                             struct seep_verdict_words *ret_words)
{
    struct seep_verdict_words words = {0};

    fill_label(report, words.label, sizeof(words.label));
    words.sentence = seep_verdict_words_sentence(report);
    if (report->inert == SEEP_INERT_NONE) {
        words.forecast = seep_verdict_words_forecast(report);
        seep_verdict_words_add_reasons(report, pattern, &words);
    }
    seep_verdict_words_add_advice(report, pattern, &words);
    *ret_words = words;
}

void seep_verdict_words_fini(struct seep_verdict_words *words)
{
    free(words->sentence);
    free(words->forecast);
    for (size_t i = 0; i < words->reason_count; i++) {
        free(words->reasons[i]);
    }
    for (size_t i = 0; i < words->advice_count; i++) {
        free(words->advice[i]);
    }
    *words = (struct seep_verdict_words){0};
}
