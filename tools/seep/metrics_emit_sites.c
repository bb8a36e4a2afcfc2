/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Samples by space, device and call site, and who the process is; see
 * metrics_emit.h.
 *
 * Invariant: of a process at most .site_limit sites have samples, and of its
 * labels at most LABELS_MOST; what the others hold is summed.
 */
#include "metrics_emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"
#include "words.h"

#define LABELS_MOST 16U
#define NAME_BYTES 64U
#define SHORT_ID 8

static void emit_holding(struct seep_metrics_emit *emit,
                         const struct seep_report_holding *holding,
                         double value)
{
    char text[SEEP_METRICS_DEVICE_BYTES];
    struct seep_metrics_label labels[] = {
        {"space", seep_words_space(holding->space)},
        {"device", seep_metrics_emit_device(holding->device, text)}};

    seep_metrics_emit_sample(emit, labels, 2, value);
}

void seep_metrics_emit_live(struct seep_metrics_emit *emit)
{
    const struct seep_report *report = emit->process->report;

    for (size_t i = 0; i < report->holding_count; i++) {
        emit_holding(emit, &report->holdings[i],
                     (double)report->holdings[i].live_bytes);
    }
}

static void emit_totals(struct seep_metrics_emit *emit,
                        enum seep_metrics_total total)
{
    const struct seep_report *report = emit->process->report;

    for (size_t i = 0; i < report->holding_count; i++) {
        const struct seep_report_holding *holding = &report->holdings[i];
        uint64_t bytes = total == SEEP_METRICS_TOTAL_FREED
                             ? holding->freed_bytes
                             : holding->allocated_bytes;

        emit_holding(emit, holding,
                     seep_metrics_totals_raise(
                         emit->totals, emit->process->followed, total,
                         seep_metrics_totals_at(holding), (double)bytes));
    }
}

void seep_metrics_emit_allocated(struct seep_metrics_emit *emit)
{
    emit_totals(emit, SEEP_METRICS_TOTAL_ALLOCATED);
}

void seep_metrics_emit_freed(struct seep_metrics_emit *emit)
{
    emit_totals(emit, SEEP_METRICS_TOTAL_FREED);
}

static size_t site_count(const struct seep_metrics_emit *emit)
{
    size_t count = emit->process->report->site_count;

    return count < emit->site_limit ? count : emit->site_limit;
}

/* The first digits of its id, or all if another site begins with them. Rows
 * that have one id (what is suppressed of a line is a row apart) are numbered.
 */
static void name_site(const struct seep_metrics_emit *emit, size_t index,
                      char name[NAME_BYTES])
{
    const struct seep_report_site *sites = emit->process->report->sites;
    int digits = SHORT_ID;
    unsigned before = 0;

    for (size_t i = 0; i < site_count(emit); i++) {
        if (i != index &&
            strncmp(sites[i].id, sites[index].id, SHORT_ID) == 0) {
            digits = (int)sizeof(sites[i].id);
            before += i < index && strcmp(sites[i].id, sites[index].id) == 0;
        }
    }
    snprintf(name, NAME_BYTES, before > 0 ? "%.*s-%u" : "%.*s", digits,
             sites[index].id, before);
}

static void emit_site(struct seep_metrics_emit *emit, size_t index,
                      double value)
{
    const struct seep_report *report = emit->process->report;
    const struct seep_report_site *site = &report->sites[index];
    char *where = seep_words_where(report, site);
    char name[NAME_BYTES];
    char device[SEEP_METRICS_DEVICE_BYTES];

    name_site(emit, index, name);
    struct seep_metrics_label labels[] = {
        {"space", seep_words_space(site->space)},
        {"device", seep_metrics_emit_device(site->device, device)},
        {"site", name},
        {"where", where}};
    seep_metrics_emit_sample(emit, labels, 4, value);
    free(where);
}

/* Of a space and device, what the sites that are listed do not hold. */
static double rest_of(const struct seep_metrics_emit *emit,
                      const struct seep_report_holding *holding)
{
    const struct seep_report_site *sites = emit->process->report->sites;
    double rest = (double)holding->live_bytes;

    for (size_t i = 0; i < site_count(emit); i++) {
        if (sites[i].space == holding->space &&
            sites[i].device == holding->device) {
            rest -= (double)sites[i].live_bytes;
        }
    }
    return rest;
}

void seep_metrics_emit_site_live(struct seep_metrics_emit *emit)
{
    const struct seep_report *report = emit->process->report;

    for (size_t i = 0; i < site_count(emit); i++) {
        emit_site(emit, i, (double)report->sites[i].live_bytes);
    }
    for (size_t i = 0; i < report->holding_count; i++) {
        const struct seep_report_holding *holding = &report->holdings[i];
        char device[SEEP_METRICS_DEVICE_BYTES];
        struct seep_metrics_label labels[] = {
            {"space", seep_words_space(holding->space)},
            {"device", seep_metrics_emit_device(holding->device, device)},
            {"site", "other"}};
        double rest = rest_of(emit, holding);

        if (rest > 0) {
            seep_metrics_emit_sample(emit, labels, 3, rest);
        }
    }
}

void seep_metrics_emit_site_growth(struct seep_metrics_emit *emit)
{
    const struct seep_report *report = emit->process->report;

    for (size_t i = 0; i < site_count(emit); i++) {
        if (report->sites[i].has_growth) {
            emit_site(emit, i, report->sites[i].growth_bytes_per_s.estimate);
        }
    }
}

/* Names that are ours, or that Prometheus gives to what it scrapes. */
static bool is_taken(const struct seep_metrics_label *labels, size_t count,
                     const char *name)
{
    static const char *const taken[] = {"pid", "exe", "job", "instance"};

    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (strcmp(taken[i], name) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(labels[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes "key=value" apart in place. @return true if it is one of ours now */
static bool take_label(char *text, char name[NAME_BYTES],
                       struct seep_metrics_label *labels, size_t count)
{
    char *value = strchr(text, '=');

    if (value == NULL || value == text) {
        return false;
    }
    seep_metrics_text_name(text, (size_t)(value - text), name, NAME_BYTES);
    if (is_taken(labels, count, name)) {
        return false;
    }
    labels[count] = (struct seep_metrics_label){name, value + 1};
    return true;
}

void seep_metrics_emit_target(struct seep_metrics_emit *emit)
{
    const struct seep_report *report = emit->process->report;
    char names[LABELS_MOST][NAME_BYTES];
    char *program = seep_words_program(report);
    char *copy = strdup(report->labels);
    char *rest = copy;
    char *label;
    struct seep_metrics_label labels[LABELS_MOST] = {
        {"host", report->host},
        {"program", program},
        {"mode", seep_words_mode_name(report)},
    };
    size_t count = 3;

    while (count < LABELS_MOST && copy != NULL &&
           (label = strsep(&rest, ",")) != NULL) {
        count += take_label(label, names[count], labels, count);
    }
    seep_metrics_emit_sample(emit, labels, count, 1);
    free(copy);
    free(program);
}
