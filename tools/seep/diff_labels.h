/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Recordings parted in two by the values of one label.
 */
#ifndef SEEP_TOOL_DIFF_LABELS_H
#define SEEP_TOOL_DIFF_LABELS_H

#include <stddef.h>

#include "reader/report.h"

/**
 * Which two values of @key are compared: those that were named, if
 * @ret_before is not NULL, which must be there; else the only two that there
 * are, in the order of versions ("9" before "10").
 *
 * @return 0; or the exit code after saying what is wrong. The values are to be
 *         freed in any case.
 */
int seep_diff_labels_choose(const char *key,
                            const struct seep_report *const *reports,
                            size_t count, char **ret_before, char **ret_now);

/** Those of @reports that have @value for @key. @return how many */
size_t seep_diff_labels_select(const char *key, const char *value,
                               const struct seep_report *const *reports,
                               size_t count,
                               const struct seep_report **ret_selected);

#endif
