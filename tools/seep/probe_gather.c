/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From paths to vitals, on the side that may hang; see probe.h. Invariant: an
 * entry of the set is whole before it counts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probe.h"
#include "reader/report.h"

static struct seep_probe_process *next(struct seep_probe_set *set)
{
    uint32_t count = atomic_load_explicit(&set->count, memory_order_relaxed);

    return count < SEEP_PROBE_PROCESSES ? &set->processes[count] : NULL;
}

static void add(struct seep_probe_set *set)
{
    uint32_t count = atomic_load_explicit(&set->count, memory_order_relaxed);

    /* Release: the entry is whole; pairs with the acquire in
     * seep_probe_judge(). */
    atomic_store_explicit(&set->count, count + 1, memory_order_release);
}

static void name(struct seep_probe_set *set, const char *path)
{
    /* The last byte stays 0, so that it is a string at any moment. */
    strncpy(set->at, path, sizeof(set->at) - 1);
}

static void refuse(struct seep_probe_process *process, const char *path,
                   int error)
{
    snprintf(process->path, sizeof(process->path), "%s", path);
    process->refusal.error = error;
    if (*process->refusal.reason == '\0') {
        snprintf(process->refusal.reason, sizeof(process->refusal.reason), "%s",
                 strerror(-error));
    }
}

static void read_one(struct seep_probe_set *set, const char *path)
{
    struct seep_probe_process *process = next(set);
    int error;

    name(set, path);
    if (process == NULL) {
        atomic_fetch_add_explicit(&set->left_out, 1, memory_order_relaxed);
        return;
    }
    error = seep_vitals_open(path, true, &process->refusal, &process->vitals);
    if (error != 0) {
        refuse(process, path, error);
        add(set);
    } else if (!seep_vitals_is_alive(process->vitals.state)) {
        atomic_fetch_add_explicit(&set->ended, 1, memory_order_relaxed);
    } else {
        snprintf(process->path, sizeof(process->path), "%s", path);
        add(set);
    }
}

void seep_probe_gather(char *const *paths, size_t count,
                       struct seep_probe_set *set)
{
    for (size_t i = 0; i < count; i++) {
        struct seep_refusal refusal = {0};
        char **found;
        int error;

        name(set, paths[i]);
        error = seep_report_list(paths[i], &refusal, &found);
        if (error != 0) {
            struct seep_probe_process *process = next(set);

            if (process != NULL) {
                process->refusal = refusal;
                refuse(process, paths[i], error);
                add(set);
            }
            continue;
        }
        for (char **path = found; *path != NULL; path++) {
            read_one(set, *path);
        }
        seep_report_list_free(found);
    }
}
