/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a check and a diff came to, and their words, which all views share.
 *
 * Texts are to be freed, and NULL without memory; what is of a recording in
 * them is not cleaned.
 */
#ifndef SEEP_TOOL_WORDS_COMPARE_H
#define SEEP_TOOL_WORDS_COMPARE_H

#include <stdbool.h>

#include "reader/compare/diff.h"
#include "reader/compare/limits.h"
#include "reader/report/report.h"
#include "words/units.h"

/** All that a check came to. */
struct seep_check_set {
    const struct seep_check_result *results; /* of a process side by side */
    size_t count;
    const struct seep_report *const *reports;
    size_t report_count;
    const struct seep_report *const *baseline;
    size_t baseline_count;
    size_t refused_count;    /* recordings that could not be read */
    double warmup_s;         /* or SEEP_CHECK_WARMUP_UNKNOWN */
    const char *warmup_mark; /* in the place of that; NULL */
};

/** Also of a set with recordings that could not be read. */
int seep_check_exit(const struct seep_check_set *set);

/** "pass", "fail", "not-enough-data" or "failed-to-read". */
const char *seep_check_set_name(const struct seep_check_set *set);

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

/** Whom @result is of: that, or "python3 serve.py, 3 processes together". */
char *seep_check_subject(const struct seep_check_result *result);

/** "old.seep, recorded 2026-11-21 09:12 UTC, version=12; now version=13": the
 * last run of the baseline that @report was compared with. NULL: none. */
char *seep_check_since(const struct seep_check_set *set,
                       const struct seep_report *report);

/** The same of .sites[@index] of @result, by all processes that it is of. */
char *seep_check_place(const struct seep_check_result *result, size_t index);

/** Is it of all that a process grows by, so that it is told what one thing
 * holds of it? And that, if it is news; NULL: it is not. */
bool seep_check_has_common(const struct seep_check_result *result);
char *seep_check_common(const struct seep_check_result *result);

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

/*
 * Diffs.
 */

/** One program, which both sides ran. */
struct seep_diff_pair {
    char *program;
    const struct seep_report **before;
    size_t before_count;
    const struct seep_report **now;
    size_t now_count;
    struct seep_diff diff;
};

/** Programs compared; .pairs point into the reports. */
struct seep_diff_set {
    struct seep_diff_pair *pairs; /* the one that is worst first */
    size_t count;
    char *only_before; /* a program that one side alone ran; NULL */
    char *only_now;
    size_t refused_count;
    const char *key; /* of the label that parts them; NULL: none does */
    char *before_name;
    char *now_name;
};

/** The worst answer of all programs; of none INSUFFICIENT. */
enum seep_diff_answer seep_diff_set_answer(const struct seep_diff_set *set);

/** "WORSE: 1 new leak, server.py:54 Model.remember +33.1 MiB/min". */
char *seep_diff_headline(const struct seep_diff_set *set);

/** "not-enough-data", "worse", "better" or "same". */
const char *seep_diff_set_name(const struct seep_diff_set *set);

/** "before 36 s of old.seep, now 41 s of new.seep". */
char *seep_diff_sides(const struct seep_diff_set *set,
                      const struct seep_diff_pair *pair);

/** "server.py:54 Model.remember", with what it was before, if that differs:
 * "(was server.py:44)". */
char *seep_diff_where(const struct seep_diff_row *row);

/** "server.py:54 Model.remember (glibc arenas)", "glibc arenas, 12 call sites",
 * "in private memory, at no one call site". */
char *seep_diff_held_where(const struct seep_diff_held *held);

/** What is compared of @site: by unit of work, or by minute. */
const char *seep_diff_growth(const struct seep_diff *diff,
                             const struct seep_diff_site *site,
                             char text[SEEP_UNITS_TEXT_BYTES]);

/** "+33.1 ±1.2 MiB" of the change of a row. */
const char *seep_diff_change_text(const struct seep_diff *diff,
                                  const struct seep_diff_row *row,
                                  char text[SEEP_UNITS_TEXT_BYTES]);

/** What to do next; NULL: nothing. */
char *seep_diff_next(const struct seep_diff_set *set);

#endif
