/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Values of the JSON documents: each returns a new reference, and JSON's null
 * for what is not known or not finite.
 */
#ifndef SEEP_TOOL_JSON_PARTS_H
#define SEEP_TOOL_JSON_PARTS_H

#include <jansson.h>
#include <stdint.h>

#include "reader/report.h"

/** Takes @value; a value that could not be made becomes null. */
void seep_json_put(json_t *object, const char *key, json_t *value);

/** Made valid UTF-8. */
json_t *seep_json_text(const char *text);
/** The same, null if empty. */
json_t *seep_json_text_or_null(const char *text);
json_t *seep_json_real(double value);
json_t *seep_json_count(uint64_t value);
/** A string like "0x1234": a number of 64 bits is no number of JSON's. */
json_t *seep_json_address(uint64_t value);
json_t *seep_json_interval(const struct seep_interval *interval, double scale);
json_t *seep_json_extent(const struct seep_report_extent *extent);
json_t *seep_json_forecast(const struct seep_report_forecast *forecast);

#endif
