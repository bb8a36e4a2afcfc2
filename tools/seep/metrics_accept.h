/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** Which format a scraper asks for. */
#ifndef SEEP_TOOL_METRICS_ACCEPT_H
#define SEEP_TOOL_METRICS_ACCEPT_H

#include "metrics_text.h"

/**
 * By the header Accept of a request; NULL if it has none. OpenMetrics only if
 * it is named, and not less wanted than Prometheus' format.
 */
enum seep_metrics_format seep_metrics_accept(const char *header);

/** The header Content-Type of @format. */
const char *seep_metrics_content_type(enum seep_metrics_format format);

#endif
