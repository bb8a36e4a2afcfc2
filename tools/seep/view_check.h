/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a check came to, for people, machines and CI.
 *
 * Errors: 0; -ENOMEM; -EIO, or what opening the file gave.
 */
#ifndef SEEP_TOOL_VIEW_CHECK_H
#define SEEP_TOOL_VIEW_CHECK_H

#include <stdio.h>

#include "check_words.h"
#include "page.h"

/** The answer, each limit with what was measured, the sites that break it. */
void seep_view_check(struct seep_page *page, const struct seep_check_set *set);

/** One JSON document, schema "seep-check/1". */
int seep_view_check_json(FILE *file, const struct seep_check_set *set);

/** JUnit XML: a suite for each process, a case for each limit.
 * @return -ENOTSUP: built without libxml2 */
int seep_export_junit(const char *path, const struct seep_check_set *set);

/** SARIF 2.1.0: a result for each call site, or limit without one. */
int seep_export_sarif(const char *path, const struct seep_check_set *set);

/**
 * Annotations of GitHub's on @file, and a table behind what is in the file at
 * @summary_path (NULL: none).
 */
int seep_export_github(FILE *file, const char *summary_path,
                       const struct seep_check_set *set);

/** @text as data of a workflow command: %, line ends; and of a @property also
 * colons and commas. To be freed; NULL without memory. */
char *seep_export_github_escape(const char *text, bool property);

#endif
