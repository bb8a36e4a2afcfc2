/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The verdict in sentences: the one place where they are made, for people and
 * for machines alike. What is taken from a recording is not cleaned here: the
 * page and the JSON writer do that.
 *
 * Errors: without memory a sentence is missing (NULL), nothing else.
 */
#ifndef SEEP_TOOL_VERDICT_WORDS_H
#define SEEP_TOOL_VERDICT_WORDS_H

#include <stddef.h>

#include "reader/report.h"

#define SEEP_VERDICT_REASONS_MAX 6
#define SEEP_VERDICT_ADVICE_MAX 4

struct seep_verdict_words {
    char label[32]; /* "LEAK", "NOT RECORDED" */
    char *sentence; /* begins with the process, ends with a full stop */
    char *forecast; /* a sentence; NULL: nothing to be said */
    char *reasons[SEEP_VERDICT_REASONS_MAX]; /* what was seen */
    size_t reason_count;
    char *advice[SEEP_VERDICT_ADVICE_MAX]; /* what to do next */
    size_t advice_count;
};

/** The pattern that fits the process; NULL: none does, or @catalogue is. */
const struct seep_pattern *
seep_verdict_words_pattern(const struct seep_report *report,
                           const struct seep_catalogue *catalogue);

/** @param pattern  that fits the process; may be NULL */
void seep_verdict_words_make(const struct seep_report *report,
                             const struct seep_pattern *pattern,
                             struct seep_verdict_words *ret_words);
void seep_verdict_words_fini(struct seep_verdict_words *words);

/**
 * What was seen of a site that may be a cache which still fills: since when,
 * over how much of the run, what was given back. NULL if the site does not
 * grow, or was seen to give old blocks back. To be freed.
 */
char *seep_verdict_words_kept(const struct seep_report *report,
                              const struct seep_report_site *site);

/** The site that speaks for the process; NULL: none does. */
const struct seep_report_site *
seep_verdict_words_site(const struct seep_report *report);

/** The same, where it may be a cache that still fills: it grows, and was never
 * seen to evict. */
const struct seep_report_site *
seep_verdict_words_cache(const struct seep_report *report);

/** One more reason, or thing to do next. */
__attribute__((format(printf, 2, 3))) void
seep_verdict_words_reason(struct seep_verdict_words *words, const char *format,
                          ...);
__attribute__((format(printf, 2, 3))) void
seep_verdict_words_advise(struct seep_verdict_words *words, const char *format,
                          ...);

/** "what serve.py:31 keeps", to be freed; NULL: it is no line of Python, or
 * none that keeps it. */
char *seep_verdict_words_holder(const struct seep_report *report,
                                const struct seep_report_site *site);

/** What Python's allocator and frames change, at @site, or, if it is NULL, in
 * what no site accounts for. */
void seep_verdict_words_add_python_reason(const struct seep_report *report,
                                          const struct seep_report_site *site,
                                          struct seep_verdict_words *words);
void seep_verdict_words_add_python_advice(const struct seep_report *report,
                                          const struct seep_report_site *site,
                                          struct seep_verdict_words *words);

/** "glibc", "jemalloc", ... or "the allocator". */
const char *seep_verdict_words_allocator(enum seep_allocator_kind kind);

/** The sentence alone, to be freed. */
char *seep_verdict_words_sentence(const struct seep_report *report);

/** When memory will be full, a sentence to be freed; NULL: not to be said. */
char *seep_verdict_words_forecast(const struct seep_report *report);

/** "in 1 h 10 min (1 h 08 min to 1 h 12 min)", "never, as it goes now: it
 * does not grow", to be freed. */
char *seep_verdict_words_when(const struct seep_report_forecast *forecast);

/** The device that a verdict of fragmentation is about; NULL: the host. */
const struct seep_report_device *
seep_verdict_words_fragmented(const struct seep_report *report);

/** The site that speaks for the process is a segment of PyTorch's cache, and
 * what is in it was not recorded: the line only missed the cache. */
void seep_verdict_words_add_segment_advice(const struct seep_report *report,
                                           struct seep_verdict_words *words);

/** What a process with GPUs is told besides; of one without, nothing. */
void seep_verdict_words_add_device_reasons(const struct seep_report *report,
                                           struct seep_verdict_words *words);
void seep_verdict_words_add_device_advice(const struct seep_report *report,
                                          struct seep_verdict_words *words);

/** Reasons and advice of a process that was recorded. */
void seep_verdict_words_add_reasons(const struct seep_report *report,
                                    const struct seep_pattern *pattern,
                                    struct seep_verdict_words *words);
void seep_verdict_words_add_advice(const struct seep_report *report,
                                   const struct seep_pattern *pattern,
                                   struct seep_verdict_words *words);

#endif
