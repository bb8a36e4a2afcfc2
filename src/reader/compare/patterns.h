/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Known patterns of growth: what a stack and a shape of growth are known to
 * be, why, and what helps. From JSON files, seep-patterns(5): the installed
 * patterns.json, and the user's own. A match is a hint beside the class, never
 * instead of it.
 *
 * A pattern of sites asks for frames, innermost first, each at the frame of the
 * one before or further out. The most
 * specific pattern wins: the one with more frames (by function or file twice
 * what by module), then with more conditions, then with the frame further in,
 * then with the longer text, then the later.
 *
 * Errors: 0 or negative errno, ret_* untouched on failure; a file with an
 * entry that is wrong is refused whole.
 * Ownership: the catalogue belongs to the caller; patterns live as long.
 * Threads: read-only once opened.
 */
#ifndef SEEP_READER_COMPARE_PATTERNS_H
#define SEEP_READER_COMPARE_PATTERNS_H

#include "reader/report/report.h"

struct seep_catalogue;

struct seep_pattern {
    const char *id;     /* "onednn-primitive-cache" */
    const char *name;   /* "oneDNN primitive cache" */
    const char *cause;  /* a sentence */
    const char *remedy; /* a sentence: what to try */
    const char *source; /* URL of the public issue or document */
};

/**
 * Add the patterns of the file at @path to *@catalogue, made if NULL. Of two
 * with one id the later counts.
 *
 * @param ret_refusal  what is wrong with the file, or which pattern and why;
 *                     may be NULL
 * @return -EINVAL for what is no catalogue, or has an entry that is wrong;
 *         -EFBIG; -EBADMSG for what is no text; an error of open or read
 */
int seep_catalogue_add_file(struct seep_catalogue **catalogue, const char *path,
                            struct seep_refusal *ret_refusal);
void seep_catalogue_close(struct seep_catalogue *catalogue);

/** The most specific pattern that fits @site; NULL: none, or no catalogue. */
const struct seep_pattern *
seep_catalogue_find(const struct seep_catalogue *catalogue,
                    const struct seep_report_site *site);

/** The pattern that fits a process, by its verdict and its allocator. */
const struct seep_pattern *
seep_catalogue_find_process(const struct seep_catalogue *catalogue,
                            const struct seep_report *report);

#endif
