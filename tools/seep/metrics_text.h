/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Metrics as text: Prometheus' own format 0.0.4, or OpenMetrics 1.0.
 *
 * Label values are hostile: they come out as valid UTF-8 without control
 * characters, escaped, cut at SEEP_METRICS_VALUE_BYTES. What is not a number is
 * not written. Without memory the whole text is: .failed.
 */
#ifndef SEEP_TOOL_METRICS_TEXT_H
#define SEEP_TOOL_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "metrics_table.h"

#define SEEP_METRICS_VALUE_BYTES 200

enum seep_metrics_format {
    SEEP_METRICS_PROMETHEUS,
    SEEP_METRICS_OPENMETRICS,
};

/** Zero it, set .format, and free .text at the end. */
struct seep_metrics_text {
    enum seep_metrics_format format;
    char *text; /* NUL-terminated; NULL as long as it is empty */
    size_t length;
    size_t capacity;
    bool failed;
    const struct seep_metric *family; /* of the last sample */
};

struct seep_metrics_label {
    const char *name; /* valid already, see seep_metrics_text_name() */
    const char *value;
};

/** One sample, with its family's description before the first: the samples of a
 * metric come one after the other. Labels without a value are left out. */
void seep_metrics_text_sample(struct seep_metrics_text *text,
                              const struct seep_metric *metric,
                              const struct seep_metrics_label *labels,
                              size_t count, double value);

/** After the last sample. */
void seep_metrics_text_end(struct seep_metrics_text *text);

/**
 * The name of a label that somebody else gave, made valid: never empty, and
 * none of those that Prometheus keeps for itself.
 */
void seep_metrics_text_name(const char *given, size_t length, char *name,
                            size_t size);

#endif
