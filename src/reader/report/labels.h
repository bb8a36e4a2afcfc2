/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Processes by their labels (SEEP_LABELS): which model, version or role grows,
 * over all processes that carry it.
 *
 * A label is "key=value", or a word alone, which is a key with the value "".
 * A process counts in a row for each of its labels, once; one without any
 * counts in a row of its own kind, whose key is "".
 *
 * Errors: 0 or -ENOMEM, ret_* untouched. Ownership: rows belong to the caller
 * and point into the reports. Pure; any thread.
 */

#ifndef SEEP_READER_REPORT_LABELS_H
#define SEEP_READER_REPORT_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/report/report.h"

struct seep_label_row {
    const char *key;   /* "model"; not NUL-terminated, as the value */
    const char *value; /* "bert-13" */
    size_t key_length;
    size_t value_length;
    size_t process_count;
    size_t leak_count;             /* of them, that leak */
    enum seep_verdict_class class; /* the worst of theirs */
    uint64_t live_bytes;           /* of all spaces that hold memory */
    bool has_growth;               /* at least one process grows */
    struct seep_interval growth_bytes_per_s; /* the sum of what grows */
    const struct seep_report *first;         /* the one that grows most */
};

/**
 * The rows of @reports: by key, and of each the one first that grows most.
 *
 * @param ret_rows  to be freed
 */
int seep_labels_group(const struct seep_report *const *reports, size_t count,
                      struct seep_label_row **ret_rows, size_t *ret_count);

/**
 * The value that @report has for @key of @key_length bytes; of a key that is
 * there twice the first. Not NUL-terminated.
 *
 * @return false: it has no such label
 */
bool seep_labels_value(const struct seep_report *report, const char *key,
                       size_t key_length, const char **ret_value,
                       size_t *ret_length);

#endif
