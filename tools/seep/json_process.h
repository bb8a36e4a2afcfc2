/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A process as JSON: who it was, how it went, how it was recorded.
 */
#ifndef SEEP_TOOL_JSON_PROCESS_H
#define SEEP_TOOL_JSON_PROCESS_H

#include <jansson.h>

#include "reader/report.h"

/** What the program said when: [{"t_s", "name", "units"}]. */
json_t *seep_json_marks(const struct seep_report *report);

/** "2026-11-21T09:12:31.204Z"; null where the clock told nothing. */
json_t *seep_json_started(const struct seep_report *report);

json_t *seep_json_process(const struct seep_report *report);

#endif
