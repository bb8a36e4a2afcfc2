/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Known patterns of growth: what a stack and a shape of growth are known to
 * be, why, and what helps. From JSON files: the installed patterns.json, and
 * the user's own. A match is a hint beside the class, never instead of it.
 *
 * Errors: 0 or negative errno, ret_* untouched on failure; a file with an
 * entry that is wrong is refused whole.
 * Ownership: the catalogue belongs to the caller; patterns live as long.
 * Threads: read-only once opened.
 */
#ifndef SEEP_READER_CATALOGUE_H
#define SEEP_READER_CATALOGUE_H

#include <stddef.h>

#include "reader/report.h"

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
 */
int seep_catalogue_add_file(struct seep_catalogue **catalogue, const char *path,
                            struct seep_refusal *ret_refusal);
void seep_catalogue_close(struct seep_catalogue *catalogue);

size_t seep_catalogue_count(const struct seep_catalogue *catalogue);

/** The pattern that fits @site best (the most specific); NULL: none. */
const struct seep_pattern *
seep_catalogue_find(const struct seep_catalogue *catalogue,
                    const struct seep_report_site *site);

/** The pattern that fits a process, by its verdict and its allocator. */
const struct seep_pattern *
seep_catalogue_find_process(const struct seep_catalogue *catalogue,
                            const struct seep_report *report);

#endif
