/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Processes by their labels as JSON.
 */
#ifndef SEEP_TOOL_JSON_LABELS_H
#define SEEP_TOOL_JSON_LABELS_H

#include <jansson.h>

#include "reader/report.h"

/** An array of rows; null unless that is what was asked for. */
json_t *seep_json_labels(const struct seep_report *const *reports,
                         size_t count);

#endif
