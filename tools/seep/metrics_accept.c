/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Content negotiation, as far as there are two formats (RFC 9110, 12.5.1). */
#include "metrics_accept.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BLANK " \t"

static bool is_type(const char *range, size_t length, const char *type)
{
    return strlen(type) == length && strncasecmp(range, type, length) == 0;
}

/* The weight among the parameters of a range, which end at @end; 1 if none. */
static double weight_of(const char *parameters, const char *end)
{
    while (parameters < end && *parameters == ';') {
        parameters++;
        parameters += strspn(parameters, BLANK);
        if (end - parameters > 2 && strncasecmp(parameters, "q=", 2) == 0) {
            return strtod(parameters + 2, NULL);
        }
        parameters += strcspn(parameters, ",;");
    }
    return 1;
}

enum seep_metrics_format seep_metrics_accept(const char *header)
{
    double text = 0;
    double any = 0;
    double open = 0;

    while (header != NULL && *header != '\0') {
        header += strspn(header, BLANK ",");
        const char *end = header + strcspn(header, ",");
        size_t length = strcspn(header, BLANK ",;");
        const char *parameters = header + length;
        parameters += strspn(parameters, BLANK);
        double weight = weight_of(parameters, end);

        if (is_type(header, length, "application/openmetrics-text")) {
            open = weight > open ? weight : open;
        } else if (is_type(header, length, "text/plain")) {
            text = weight > text ? weight : text;
        } else if (is_type(header, length, "*/*") ||
                   is_type(header, length, "text/*")) {
            any = weight > any ? weight : any;
        }
        header = end;
    }
    text = text > 0 ? text : any;
    return open > 0 && open >= text ? SEEP_METRICS_OPENMETRICS
                                    : SEEP_METRICS_PROMETHEUS;
}

const char *seep_metrics_content_type(enum seep_metrics_format format)
{
    return format == SEEP_METRICS_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}
