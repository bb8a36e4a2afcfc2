/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Metrics as text, counters that never go back, and what the exporter says of
 * itself. Invariant: a text that lacks anything for want of memory is .failed.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "metrics/metrics.h"
#include "text/page.h"

#define WHOLE_MOST 9007199254740992.0 /* 2^53 */

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
    fprintf(text->file, "# %s seep_%s%s %s\n", kind, metric->name,
            text->format == SEEP_METRICS_PROMETHEUS ? suffix_of(metric) : "",
            words);
}

static void begin_family(struct seep_metrics_text *text,
                         const struct seep_metric *metric)
{
    bool is_open = text->format == SEEP_METRICS_OPENMETRICS;
    const char *type = metric->type == SEEP_METRIC_COUNTER           ? "counter"
                       : metric->type == SEEP_METRIC_INFO && is_open ? "info"
                                                                     : "gauge";

    add_header(text, "HELP", metric, metric->help);
    add_header(text, "TYPE", metric, type);
    if (is_open && *metric->unit != '\0') {
        add_header(text, "UNIT", metric, metric->unit);
    }
    text->family = metric;
}

static void add_escaped(struct seep_metrics_text *text, const char *value)
{
    char *clean = seep_clean_for_lines(value);

    if (clean == NULL) {
        text->failed = true;
        return;
    }
    clean[seep_clean_cut(clean, SEEP_METRICS_VALUE_BYTES)] = '\0';
    for (const char *at = clean; *at != '\0'; at++) {
        if (*at == '\n') {
            fputs("\\n", text->file);
        } else {
            if (*at == '"' || *at == '\\') {
                fputc('\\', text->file);
            }
            fputc(*at, text->file);
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
        fprintf(text->file, "%s%s=\"", before, labels[i].name);
        add_escaped(text, labels[i].value);
        fputc('"', text->file);
        before = ",";
    }
    fputs(*before == ',' ? "} " : " ", text->file);
}

static void add_value(struct seep_metrics_text *text, double value)
{
    if (isinf(value)) {
        fputs(value > 0 ? "+Inf\n" : "-Inf\n", text->file);
    } else {
        bool whole = value == floor(value) && fabs(value) < WHOLE_MOST;

        fprintf(text->file, whole ? "%.0f\n" : "%.12g\n", value);
    }
}

static bool open_text(struct seep_metrics_text *text)
{
    if (text->file == NULL && !text->failed) {
        text->file = open_memstream(&text->text, &text->length);
        text->failed = text->file == NULL;
    }
    return !text->failed;
}

void seep_metrics_text_sample(struct seep_metrics_text *text,
                              const struct seep_metric *metric,
                              const struct seep_metrics_label *labels,
                              size_t count, double value)
{
    if (isnan(value) || !open_text(text)) {
        return;
    }
    if (text->family != metric) {
        begin_family(text, metric);
    }
    fprintf(text->file, "seep_%s%s", metric->name, suffix_of(metric));
    add_labels(text, labels, count);
    add_value(text, value);
}

void seep_metrics_text_end(struct seep_metrics_text *text)
{
    if (text->file != NULL) {
        if (text->format == SEEP_METRICS_OPENMETRICS) {
            fputs("# EOF\n", text->file);
        }
        text->failed |= ferror(text->file) != 0;
        text->failed |= fclose(text->file) != 0;
        text->file = NULL;
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

#define PLACES (SEEP_SPACE_COUNT * (SEEP_DEVICES_MAX + 1U))

struct seep_metrics_totals_entry {
    uint64_t inode;
    uint64_t start_ns;
    uint32_t pid;
    bool asked; /* since the last time they were pruned */
    double values[SEEP_METRICS_TOTAL_COUNT][PLACES];
};

static struct seep_metrics_totals_entry *
entry_of(struct seep_metrics_totals *totals,
         const struct seep_followed *followed)
{
    for (size_t i = 0; i < totals->count; i++) {
        struct seep_metrics_totals_entry *entry = &totals->entries[i];

        if (entry->inode == followed->inode &&
            entry->start_ns == followed->start_realtime_ns &&
            entry->pid == followed->report->pid) {
            return entry;
        }
    }
    struct seep_metrics_totals_entry *grown =
        reallocarray(totals->entries, totals->count + 1, sizeof(*grown));
    if (grown == NULL) {
        return NULL;
    }
    totals->entries = grown;
    grown += totals->count++;
    *grown = (struct seep_metrics_totals_entry){
        .inode = followed->inode,
        .start_ns = followed->start_realtime_ns,
        .pid = followed->report->pid,
    };
    return grown;
}

double seep_metrics_totals_raise(struct seep_metrics_totals *totals,
                                 const struct seep_followed *followed,
                                 enum seep_metrics_total total, size_t at,
                                 double value)
{
    struct seep_metrics_totals_entry *entry = entry_of(totals, followed);

    if (entry == NULL || at >= PLACES) {
        return value;
    }
    entry->asked = true;
    if (value > entry->values[total][at]) {
        entry->values[total][at] = value;
    }
    return entry->values[total][at];
}

size_t seep_metrics_totals_at(const struct seep_report_holding *holding)
{
    return (size_t)holding->space * (SEEP_DEVICES_MAX + 1U) +
           (size_t)(holding->device + 1);
}

void seep_metrics_totals_prune(struct seep_metrics_totals *totals)
{
    size_t kept = 0;

    for (size_t i = 0; i < totals->count; i++) {
        if (totals->entries[i].asked) {
            totals->entries[kept] = totals->entries[i];
            totals->entries[kept++].asked = false;
        }
    }
    totals->count = kept;
}

void seep_metrics_totals_fini(struct seep_metrics_totals *totals)
{
    free(totals->entries);
}

#define NS_PER_MS 1e6
#define MS_PER_S 1e3

static const struct seep_metric build = {SEEP_METRIC_INFO, "build", "",
                                         "What computed these metrics."};
static const struct seep_metric recordings = {
    SEEP_METRIC_GAUGE, "recordings", "",
    "Recordings by what is done with them; left_out are beyond the limit."};
static const struct seep_metric forgotten = {
    SEEP_METRIC_COUNTER, "recordings_forgotten", "",
    "Recordings that were followed and no longer are."};
static const struct seep_metric refresh = {
    SEEP_METRIC_GAUGE, "refresh_duration_seconds", "seconds",
    "How long the last reading of all recordings took."};
static const struct seep_metric refreshed = {
    SEEP_METRIC_GAUGE, "refresh_timestamp_seconds", "seconds",
    "When these figures were read."};

static void add_recordings(struct seep_metrics_text *text,
                           const struct seep_follow_counts *counts)
{
    const struct {
        struct seep_metrics_label label;
        size_t count;
    } states[] = {
        {{"state", "live"}, counts->live},
        {{"state", "ended"}, counts->ended},
        {{"state", "left_out"}, counts->left_out},
        {{"state", "refused"}, counts->refused},
    };

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        seep_metrics_text_sample(text, &recordings, &states[i].label, 1,
                                 (double)states[i].count);
    }
}

static void add_exporter(struct seep_metrics_text *text,
                         const struct seep_metrics_input *input)
{
    struct seep_metrics_label version = {"version", SEEP_VERSION};
    double now_ns = (double)seep_clock_ns(CLOCK_REALTIME);

    add_recordings(text, &input->counts);
    seep_metrics_text_sample(text, &forgotten, NULL, 0,
                             (double)input->counts.forgotten_ever);
    seep_metrics_text_sample(text, &refresh, NULL, 0, input->refresh_s);
    seep_metrics_text_sample(text, &refreshed, NULL, 0,
                             round(now_ns / NS_PER_MS) / MS_PER_S);
    seep_metrics_text_sample(text, &build, &version, 1, 1);
}

int seep_metrics_make(const struct seep_metrics_input *input,
                      struct seep_metrics_totals *totals,
                      struct seep_metrics_text *text)
{
    int error = seep_metrics_emit(input, totals, text);

    add_exporter(text, input);
    seep_metrics_text_end(text);
    return text->failed ? -ENOMEM : error;
}
