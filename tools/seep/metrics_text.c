/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Metrics as text; see metrics_text.h. */
#include "metrics_text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"

#define PREFIX "seep_"
#define WHOLE_MOST 9007199254740992.0 /* 2^53 */

static bool reserve(struct seep_metrics_text *text, size_t bytes)
{
    size_t capacity = text->capacity * 2 + bytes + 4096;

    if (text->failed || text->length + bytes < text->capacity) {
        return !text->failed;
    }
    char *grown = realloc(text->text, capacity);
    if (grown == NULL) {
        text->failed = true;
        return false;
    }
    text->text = grown;
    text->capacity = capacity;
    return true;
}

static void add_bytes(struct seep_metrics_text *text, const char *bytes,
                      size_t count)
{
    if (reserve(text, count + 1)) {
        memcpy(text->text + text->length, bytes, count);
        text->length += count;
        text->text[text->length] = '\0';
    }
}

static void add(struct seep_metrics_text *text, const char *string)
{
    add_bytes(text, string, strlen(string));
}

static const char *suffix_of(const struct seep_metric *metric)
{
    static const char *const suffixes[] = {
        [SEEP_METRIC_GAUGE] = "",
        [SEEP_METRIC_COUNTER] = "_total",
        [SEEP_METRIC_INFO] = "_info",
    };

    return suffixes[metric->type];
}

/* OpenMetrics names the family, Prometheus each sample. */
static void add_header(struct seep_metrics_text *text, const char *kind,
                       const struct seep_metric *metric, const char *words)
{
    add(text, kind);
    add(text, PREFIX);
    add(text, metric->name);
    if (text->format == SEEP_METRICS_PROMETHEUS) {
        add(text, suffix_of(metric));
    }
    add(text, " ");
    add(text, words);
    add(text, "\n");
}

static void begin_family(struct seep_metrics_text *text,
                         const struct seep_metric *metric)
{
    bool is_open = text->format == SEEP_METRICS_OPENMETRICS;
    const char *type = metric->type == SEEP_METRIC_COUNTER           ? "counter"
                       : metric->type == SEEP_METRIC_INFO && is_open ? "info"
                                                                     : "gauge";

    add_header(text, "# HELP ", metric, metric->help);
    add_header(text, "# TYPE ", metric, type);
    if (is_open && *metric->unit != '\0') {
        add_header(text, "# UNIT ", metric, metric->unit);
    }
}

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

static void add_escaped(struct seep_metrics_text *text, const char *value)
{
    char *clean = seep_clean_for_json(value);
    size_t length = clean == NULL ? 0 : strlen(clean);

    if (clean == NULL) {
        text->failed = true;
        return;
    }
    if (length > SEEP_METRICS_VALUE_BYTES) {
        length = SEEP_METRICS_VALUE_BYTES;
        while (length > 0 && is_continuation(clean[length])) {
            length--;
        }
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)clean[i];

        if (byte == '\n') {
            add(text, "\\n");
        } else if (byte < 0x20 || byte == 0x7f) {
            add(text, "\xef\xbf\xbd"); /* U+FFFD */
        } else {
            if (byte == '"' || byte == '\\') {
                add(text, "\\");
            }
            add_bytes(text, &clean[i], 1);
        }
    }
    free(clean);
}

static void add_labels(struct seep_metrics_text *text,
                       const struct seep_metrics_label *labels, size_t count)
{
    const char *before = "{";

    for (size_t i = 0; i < count; i++) {
        if (labels[i].value == NULL || *labels[i].value == '\0') {
            continue; /* to Prometheus an empty one is none */
        }
        add(text, before);
        add(text, labels[i].name);
        add(text, "=\"");
        add_escaped(text, labels[i].value);
        add(text, "\"");
        before = ",";
    }
    add(text, *before == ',' ? "} " : " ");
}

static void add_value(struct seep_metrics_text *text, double value)
{
    char number[64];

    if (isinf(value)) {
        snprintf(number, sizeof(number), "%sInf\n", value > 0 ? "+" : "-");
    } else if (value == floor(value) && fabs(value) < WHOLE_MOST) {
        snprintf(number, sizeof(number), "%.0f\n", value);
    } else {
        snprintf(number, sizeof(number), "%.12g\n", value);
    }
    add(text, number);
}

void seep_metrics_text_sample(struct seep_metrics_text *text,
                              const struct seep_metric *metric,
                              const struct seep_metrics_label *labels,
                              size_t count, double value)
{
    if (isnan(value)) {
        return;
    }
    if (text->family != metric) {
        begin_family(text, metric);
        text->family = metric;
    }
    add(text, PREFIX);
    add(text, metric->name);
    add(text, suffix_of(metric));
    add_labels(text, labels, count);
    add_value(text, value);
}

void seep_metrics_text_end(struct seep_metrics_text *text)
{
    if (text->format == SEEP_METRICS_OPENMETRICS) {
        add(text, "# EOF\n");
    }
}

void seep_metrics_text_name(const char *given, size_t length, char *name,
                            size_t size)
{
    size_t at = 0;

    while (length > 0 && *given == '_') { /* "__" is not for others */
        given++;
        length--;
    }
    if (length == 0 || isdigit((unsigned char)*given)) {
        name[at++] = '_';
    }
    for (size_t i = 0; i < length && at + 1 < size; i++) {
        unsigned char byte = (unsigned char)given[i];

        name[at++] = byte < 0x80 && isalnum(byte) ? (char)byte : '_';
    }
    name[at] = '\0';
}
