/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The samples of one process, a function a metric; between metrics_make.c and
 * metrics_emit*.c only.
 *
 * Invariant: what is not known has no sample, and no two samples of a metric
 * have the same labels.
 */
#ifndef SEEP_TOOL_METRICS_EMIT_H
#define SEEP_TOOL_METRICS_EMIT_H

#include <stddef.h>
#include <stdint.h>

#include "follow.h"
#include "metrics_table.h"
#include "metrics_text.h"
#include "metrics_totals.h"

struct seep_metrics_process {
    const struct seep_followed *followed;
    const struct seep_report *report;
    char pid[SEEP_METRICS_VALUE_BYTES]; /* "4242", "1@pod-7" */
    const char *exe;
};

struct seep_metrics_emit {
    struct seep_metrics_text *text;
    const struct seep_metric *metric;
    const struct seep_metrics_process *process;
    struct seep_metrics_totals *totals;
    size_t site_limit;
    uint64_t available_bytes; /* of this machine; 0: not known */
};

#define SEEP_METRICS_DECLARE(symbol, type, name, unit, help) \
    void seep_metrics_emit_##symbol(struct seep_metrics_emit *emit);
SEEP_METRICS_OF_PROCESS(SEEP_METRICS_DECLARE)
#undef SEEP_METRICS_DECLARE

/** A sample with the process' own labels before @labels, of which there are
 * at most SEEP_METRICS_LABELS_MOST. */
#define SEEP_METRICS_LABELS_MOST 24U
void seep_metrics_emit_sample(struct seep_metrics_emit *emit,
                              const struct seep_metrics_label *labels,
                              size_t count, double value);

#define SEEP_METRICS_DEVICE_BYTES 16
/** "0"; "" of no device. */
const char *seep_metrics_emit_device(int device,
                                     char text[SEEP_METRICS_DEVICE_BYTES]);

#endif
