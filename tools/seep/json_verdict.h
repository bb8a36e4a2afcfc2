/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The verdict and the balance of a process as JSON: new references.
 */
#ifndef SEEP_TOOL_JSON_VERDICT_H
#define SEEP_TOOL_JSON_VERDICT_H

#include <jansson.h>

#include "reader/report.h"

/** @param catalogue  may be NULL */
json_t *seep_json_verdict(const struct seep_report *report,
                          const struct seep_catalogue *catalogue);
json_t *seep_json_memory(const struct seep_report *report);
/** null if @pattern is NULL. */
json_t *seep_json_pattern(const struct seep_pattern *pattern);

#endif
