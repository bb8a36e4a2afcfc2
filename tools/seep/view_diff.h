/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Two runs compared, for people and for machines.
 */
#ifndef SEEP_TOOL_VIEW_DIFF_H
#define SEEP_TOOL_VIEW_DIFF_H

#include <stdio.h>

#include "diff_set.h"
#include "page.h"

#define SEEP_DIFF_SITES_DEFAULT 10

/** @param site_limit  at most so many call sites of a program; 0: all, also
 *                     those whose growth weighs nothing */
void seep_view_diff(struct seep_page *page, const struct seep_diff_set *set,
                    size_t site_limit);

/** One JSON document, schema "seep-diff/1". @return 0; -ENOMEM; -EIO */
int seep_view_diff_json(FILE *file, const struct seep_diff_set *set,
                        size_t site_limit);

#endif
