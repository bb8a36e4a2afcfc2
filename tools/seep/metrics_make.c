/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All metrics of all processes; see metrics_make.h.
 *
 * Invariant: the samples of a metric stand together, and no two processes have
 * the same labels: one process can have several recordings, by exec, of which
 * the last that has a program of this name counts.
 */
#include "metrics_make.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "metrics_emit.h"
#include "reader/proc_text.h"

#define KIB 1024U
#define NS_PER_MS 1e6
#define MS_PER_S 1e3

static const struct {
    struct seep_metric metric;
    void (*emit)(struct seep_metrics_emit *emit);
} of_process[] = {
#define ENTRY(symbol, type, name, unit, help) \
    {{SEEP_METRIC_##type, name, unit, help}, seep_metrics_emit_##symbol},
    SEEP_METRICS_OF_PROCESS(ENTRY)
#undef ENTRY
};

enum of_exporter {
#define NUMBER(symbol, type, name, unit, help) EXPORTER_##symbol,
    SEEP_METRICS_OF_EXPORTER(NUMBER)
#undef NUMBER
};

static const struct seep_metric of_exporter[] = {
#define ENTRY(symbol, type, name, unit, help) \
    [EXPORTER_##symbol] = {SEEP_METRIC_##type, name, unit, help},
    SEEP_METRICS_OF_EXPORTER(ENTRY)
#undef ENTRY
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static void name_process(struct seep_metrics_process *process)
{
    const struct seep_report *report = process->report;

    process->exe = base_name(report->executable);
    /* Where numbers are another's, each container has its process 1. */
    if (report->state == SEEP_STATE_UNKNOWN) {
        snprintf(process->pid, sizeof(process->pid), "%u@%s", report->pid,
                 report->host);
    } else {
        snprintf(process->pid, sizeof(process->pid), "%u", report->pid);
    }
}

static bool is_told(const struct seep_metrics_process *processes, size_t count,
                    const struct seep_metrics_process *process)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(processes[i].pid, process->pid) == 0 &&
            strcmp(processes[i].exe, process->exe) == 0) {
            return true;
        }
    }
    return false;
}

/* In the order of the list: who lives, then the latest, comes first. */
static struct seep_metrics_process *
collect(const struct seep_metrics_input *input, size_t *ret_count)
{
    struct seep_metrics_process *processes =
        calloc(input->count + 1, sizeof(*processes));
    size_t count = 0;

    for (size_t i = 0; processes != NULL && i < input->count; i++) {
        processes[count].followed = input->list[i];
        processes[count].report = input->list[i]->report;
        name_process(&processes[count]);
        count += !is_told(processes, count, &processes[count]);
    }
    *ret_count = count;
    return processes;
}

static uint64_t available_bytes(void)
{
    char text[4096];
    const char *at = NULL;

    if (seep_proc_text("/proc/meminfo", text, sizeof(text)) > 0) {
        at = strstr(text, "\nMemAvailable:");
    }
    return at == NULL
               ? 0
               : strtoull(at + strlen("\nMemAvailable:"), NULL, 10) * KIB;
}

static void add_processes(struct seep_metrics_emit *emit,
                          const struct seep_metrics_process *processes,
                          size_t count)
{
    for (size_t i = 0; i < sizeof(of_process) / sizeof(of_process[0]); i++) {
        emit->metric = &of_process[i].metric;
        for (size_t j = 0; j < count; j++) {
            emit->process = &processes[j];
            of_process[i].emit(emit);
        }
    }
}

static void add_one(struct seep_metrics_text *text, enum of_exporter number,
                    double value)
{
    seep_metrics_text_sample(text, &of_exporter[number], NULL, 0, value);
}

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
        seep_metrics_text_sample(text, &of_exporter[EXPORTER_RECORDINGS],
                                 &states[i].label, 1, (double)states[i].count);
    }
}

static void add_exporter(struct seep_metrics_text *text,
                         const struct seep_metrics_input *input)
{
    struct seep_metrics_label version = {"version", SEEP_VERSION};
    double now_ns = (double)seep_clock_ns(CLOCK_REALTIME);

    add_recordings(text, &input->counts);
    add_one(text, EXPORTER_FORGOTTEN, (double)input->counts.forgotten_ever);
    add_one(text, EXPORTER_REFRESH, input->refresh_s);
    add_one(text, EXPORTER_REFRESHED, round(now_ns / NS_PER_MS) / MS_PER_S);
    seep_metrics_text_sample(text, &of_exporter[EXPORTER_BUILD], &version, 1,
                             1);
}

int seep_metrics_make(const struct seep_metrics_input *input,
                      struct seep_metrics_totals *totals,
                      struct seep_metrics_text *text)
{
    struct seep_metrics_emit emit = {
        .text = text,
        .totals = totals,
        .site_limit = input->site_limit,
        .available_bytes = available_bytes(),
    };
    size_t count;
    struct seep_metrics_process *processes = collect(input, &count);

    if (processes == NULL) {
        return -ENOMEM;
    }
    add_processes(&emit, processes, count);
    add_exporter(text, input);
    seep_metrics_text_end(text);
    free(processes);
    return text->failed ? -ENOMEM : 0;
}
