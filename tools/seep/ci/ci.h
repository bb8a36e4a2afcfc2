/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a check came to, in the formats of others.
 *
 * Errors: 0; -ENOMEM; -EIO, or what opening the file gave.
 */
#ifndef SEEP_TOOL_CI_CI_H
#define SEEP_TOOL_CI_CI_H

#include <stdbool.h>
#include <stdio.h>

#include "words/compare.h"

/** JUnit XML: a suite for each process, a case for each limit.
 * @return -ENOTSUP: built without libxml2 */
int seep_ci_junit(const char *path, const struct seep_check_set *set);

/** SARIF 2.1.0: a result for each call site, or limit without one. */
int seep_ci_sarif(const char *path, const struct seep_check_set *set);

/**
 * Annotations of GitHub's on @file, and a table behind what is in the file at
 * @summary_path (NULL: none).
 */
int seep_ci_github(FILE *file, const char *summary_path,
                   const struct seep_check_set *set);

/** @text with those of its bytes as %XX that are among @bytes, or with @kept
 * those that are not. To be freed; NULL without memory. */
char *seep_ci_escape(const char *text, const char *bytes, bool kept);

#endif
