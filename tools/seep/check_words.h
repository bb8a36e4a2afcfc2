/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Words of a check that its views share. Texts are to be freed, and NULL
 * without memory; what is of a recording in them is not cleaned.
 */
#ifndef SEEP_TOOL_CHECK_WORDS_H
#define SEEP_TOOL_CHECK_WORDS_H

#include "reader/check.h"

/** All that a check came to. */
struct seep_check_set {
    const struct seep_check_result *results; /* of a process side by side */
    size_t count;
    const struct seep_report *const *reports;
    size_t report_count;
    const struct seep_report *const *baseline;
    size_t baseline_count;
    size_t refused_count;    /* recordings that could not be read */
    double warmup_s;         /* or SEEP_CHECK_WARMUP_UNTOLD */
    const char *warmup_mark; /* in the place of that; NULL */
};

/** Also of a set with recordings that could not be read. */
int seep_check_exit(const struct seep_check_set *set);

/** How many of its results have @outcome. */
size_t seep_check_tally(const struct seep_check_set *set,
                        enum seep_check_outcome outcome);

/** "FAIL: 2 of 5 limits are broken (growth, cap)". */
char *seep_check_headline(const struct seep_check_set *set);

/** "growth", "growth of python", "growth with model=bert". */
char *seep_check_title(const struct seep_check_limit *limit);

/** "<= 1 MiB/min", ">= 2 GiB", "none". */
char *seep_check_bound(const struct seep_check_limit *limit);

/** "+41.3 MiB/min (40.1 to 42.5)", "not measured". */
char *seep_check_measured(const struct seep_check_result *result);

/** "python3 serve.py, pid 4242"; of NULL "no process". */
char *seep_check_process(const struct seep_report *report);

/** "old.seep, recorded 2026-11-21 09:12 UTC, version=12; now version=13": the
 * last run of the baseline that @report was compared with. NULL: none. */
char *seep_check_since(const struct seep_check_set *set,
                       const struct seep_report *report);

/** "serve.py:31 handle grows +40.1 ±1.1 MiB/min". */
char *seep_check_site(const struct seep_report *report,
                      const struct seep_report_site *site);

/** "seep report --stack --site 3f9a PATH". */
char *seep_check_next(const struct seep_report *report,
                      const struct seep_report_site *site);

/** The whole of a result in a sentence, with its sites. */
char *seep_check_message(const struct seep_check_result *result);

/**
 * File and line of the user's frame, as a repository has it: without
 * $GITHUB_WORKSPACE, or the current folder.
 *
 * @return NULL: it is not known
 */
const char *seep_check_file(const struct seep_report_site *site,
                            unsigned *ret_line);

#endif
