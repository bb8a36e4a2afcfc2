/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** GPUs as JSON: devices[] of a process. */
#ifndef SEEP_TOOL_JSON_DEVICES_H
#define SEEP_TOOL_JSON_DEVICES_H

#include <jansson.h>

#include "reader/report.h"

/** One object a device that the driver was asked about; empty without any. */
json_t *seep_json_devices(const struct seep_report *report);

#endif
