/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes by their labels, for machines. Invariant: a process without labels
 * is in a row whose label is null.
 */
#include "json_labels.h"

#include <stdlib.h>
#include <string.h>

#include "json_parts.h"
#include "reader/report_labels.h"

static json_t *text_of(const char *text, size_t length)
{
    char *copy = strndup(text, length);
    json_t *value = copy == NULL ? NULL : seep_json_text(copy);

    free(copy);
    return value;
}

static json_t *row_of(const struct seep_label_row *row)
{
    json_t *object = json_object();

    seep_json_put(object, "label",
                  row->key_length == 0 ? json_null()
                                       : text_of(row->key, row->key_length));
    seep_json_put(object, "value", text_of(row->value, row->value_length));
    seep_json_put(object, "class", json_string(seep_verdict_name(row->class)));
    seep_json_put(object, "processes", seep_json_count(row->process_count));
    seep_json_put(object, "leaks", seep_json_count(row->leak_count));
    seep_json_put(object, "live_bytes", seep_json_count(row->live_bytes));
    seep_json_put(object, "growth_bytes_per_s",
                  row->has_growth
                      ? seep_json_interval(&row->growth_bytes_per_s, 1)
                      : json_null());
    seep_json_put(object, "first_pid", json_integer(row->first->pid));
    return object;
}

json_t *seep_json_labels(const struct seep_report *const *reports, size_t count)
{
    struct seep_label_row *rows;
    size_t row_count;
    json_t *array;

    if (count == 0 || reports[0]->by != SEEP_BY_LABEL ||
        seep_labels_group(reports, count, &rows, &row_count) < 0) {
        return json_null();
    }
    array = json_array();
    for (size_t i = 0; i < row_count; i++) {
        json_array_append_new(array, row_of(&rows[i]));
    }
    free(rows);
    return array;
}
