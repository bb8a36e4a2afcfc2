/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Recordings parted in two by the values of one label.
 */
#ifndef SEEP_TOOL_READ_PROGRAMS_H
#define SEEP_TOOL_READ_PROGRAMS_H

#include <stddef.h>

#include "reader/report/report.h"
#include "words/compare.h"

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

/*
 * Recordings of two sides, put together by program and compared.
 *
 * Errors: 0 or -ENOMEM. A set points into the reports.
 */

/**
 * Compare what each program did before with what it does now. Where each side
 * ran one program they are compared, whatever its name.
 *
 * @param ret_set  give it to seep_diff_set_close(); .key, the names and
 *                 .refused_count are the caller's to fill
 */
int seep_diff_set_make(const struct seep_report *const *before,
                       size_t before_count,
                       const struct seep_report *const *now, size_t now_count,
                       struct seep_diff_set *ret_set);
void seep_diff_set_close(struct seep_diff_set *set);

/** The exit code of `seep diff`. */
int seep_diff_set_exit(const struct seep_diff_set *set);

#endif
