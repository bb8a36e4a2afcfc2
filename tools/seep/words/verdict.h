/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The verdict in sentences: the one place where they are made, for people and
 * for machines alike. What is taken from a recording is not cleaned here: the
 * page and the JSON writer do that.
 *
 * Errors: without memory a sentence is missing (NULL), nothing else.
 */
#ifndef SEEP_TOOL_WORDS_VERDICT_H
#define SEEP_TOOL_WORDS_VERDICT_H

#include <stddef.h>

#include "reader/judge/family.h"
#include "reader/report/report.h"
#include "words/words.h"

#define SEEP_WORDS_REASONS_MAX 8
#define SEEP_WORDS_ADVICE_MAX 5

struct seep_words_verdict {
    char label[SEEP_WORDS_LABEL_BYTES]; /* "LEAK", "NOT RECORDED" */
    char *sentence; /* begins with the process, ends with a full stop */
    char *forecast; /* a sentence; NULL: nothing to be said */
    char *reasons[SEEP_WORDS_REASONS_MAX]; /* what was seen */
    size_t reason_count;
    char *advice[SEEP_WORDS_ADVICE_MAX]; /* what to do next */
    size_t advice_count;
};

/** The pattern that fits the process; NULL: none does, or @catalogue is. */
const struct seep_pattern *
seep_words_pattern(const struct seep_report *report,
                   const struct seep_catalogue *catalogue);

/** @param pattern  that fits the process; may be NULL */
void seep_words_verdict(const struct seep_report *report,
                        const struct seep_pattern *pattern,
                        struct seep_words_verdict *ret_words);
void seep_words_verdict_fini(struct seep_words_verdict *words);

/**
 * What was seen of a site that may be a cache which still fills: since when,
 * over how much of the run, what was given back. NULL if the site does not
 * grow, or was seen to give old blocks back. To be freed.
 */
char *seep_words_kept(const struct seep_report *report,
                      const struct seep_report_site *site);

/** Has it done nothing but import, as far as it was seen? Then its work has
 * not begun. */
bool seep_words_only_imported(const struct seep_report *report);

/** The site that speaks for the process; NULL: none does. */
const struct seep_report_site *
seep_words_site(const struct seep_report *report);

/** The site of that id; NULL: none is, or it is "". */
const struct seep_report_site *
seep_words_site_of(const struct seep_report *report, const char *id);

/** The site that speaks, where it may be a cache that still fills: it grows,
 * and was never seen to evict. */
const struct seep_report_site *
seep_words_cache(const struct seep_report *report);

/** May what a line of Python kept be another's, to whom CPython's free lists
 * passed on what it freed? Then it is of their sizes, and it frees most. */
bool seep_words_may_lend(const struct seep_report_site *site);

/** One more reason, or thing to do next. */
__attribute__((format(printf, 2, 3))) void
seep_words_reason(struct seep_words_verdict *words, const char *format, ...);
__attribute__((format(printf, 2, 3))) void
seep_words_advise(struct seep_words_verdict *words, const char *format, ...);

/** What Python's allocator and frames change, at @site, or, if it is NULL, in
 * what no site accounts for. */
void seep_words_add_python_reason(const struct seep_report *report,
                                  const struct seep_report_site *site,
                                  struct seep_words_verdict *words);

/** "glibc", "jemalloc", ... or "the allocator". */
const char *seep_words_allocator(enum seep_allocator_kind kind);

/** When memory will be full, a sentence to be freed; NULL: not to be said. */
char *seep_words_forecast(const struct seep_report *report);

/** "in 1 h 10 min (1 h 08 min to 1 h 12 min)", "never, as it goes now: it
 * does not grow", to be freed. */
char *seep_words_when(const struct seep_report_forecast *forecast);

/** The device that a verdict of fragmentation is about; NULL: the host. */
const struct seep_report_device *
seep_words_fragmented(const struct seep_report *report);

/** Does a line of tensors on that device leak? Then its cache is more than
 * in pieces. */
bool seep_words_tensors_leak(const struct seep_report *report, int ordinal);

/** Does the sentence about when it is full say that others fill that device? */
bool seep_words_tells_others(const struct seep_report *report, int ordinal);

/** The site that speaks for the process is a segment of PyTorch's cache, and
 * what is in it was not recorded: the line only missed the cache. */
void seep_words_add_segment_advice(const struct seep_report *report,
                                   struct seep_words_verdict *words);

void seep_words_add_device_advice(const struct seep_report *report,
                                  struct seep_words_verdict *words);

/** Reasons and advice of a process that was recorded. */
void seep_words_add_reasons(const struct seep_report *report,
                            const struct seep_pattern *pattern,
                            struct seep_words_verdict *words);
void seep_words_add_advice(const struct seep_report *report,
                           const struct seep_pattern *pattern,
                           struct seep_words_verdict *words);

/*
 * A family of processes in sentences.
 */

/** Without advice, for seep_words_verdict_fini(). */
void seep_words_family(const struct seep_family *family,
                       struct seep_words_verdict *ret_words);

/** Is it more than its processes one by one? */
bool seep_words_family_is_reported(const struct seep_family *family);

/** "python3 serve.py": the program of all of them, to be freed. */
char *seep_words_family_name(const struct seep_family *family);

/** "serve.py:31 handle grows +40.1 ±1.1 MiB/min in 3 of 4 processes", to be
 * freed. */
char *seep_words_family_site(const struct seep_family *family,
                             const struct seep_family_site *site);

#endif
