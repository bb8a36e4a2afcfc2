/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counters that never go back; see metrics_totals.h. */
#include "metrics_totals.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

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
