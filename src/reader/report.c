/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a path to a report: open, snapshot, judge, symbolise; see report.h.
 */
#include "reader/report.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "reader/open.h"
#include "reader/process.h"
#include "reader/report_build.h"
#include "reader/report_group.h"
#include "reader/report_names.h"
#include "reader/symbolise.h"

static bool is_dead(const struct seep_rec_header *header)
{
    return seep_process_presence_of(header) == SEEP_PRESENCE_AWAY;
}

static int take_snapshot(struct seep_report_build *build, const char *path,
                         struct seep_refusal *ret_refusal)
{
    uint64_t size_bytes;
    int fd;
    int error = seep_open_file(path, ret_refusal, &fd, &size_bytes);

    if (error != 0) {
        return error;
    }
    error = seep_snapshot_init(fd, size_bytes, is_dead, ret_refusal,
                               &build->snapshot);
    close(fd);
    return error;
}

/* The tick at which the run ended, as far as anyone can know. */
static uint64_t end_tick_of(const struct seep_report_build *build)
{
    struct seep_rec_header *header = build->snapshot.view.header;
    uint64_t last = seep_sites_last_tick(&build->snapshot);
    uint64_t end = 0;

    if (seep_snapshot_load(header->exited) != 0) {
        end = seep_snapshot_load(header->exit_tick);
    } else if (build->report.state == SEEP_STATE_RUNNING) {
        end = seep_process_now_tick(header);
    }
    end = end > last ? end : last;
    return end < SEEP_SITES_TICK_MAX ? end : SEEP_SITES_TICK_MAX;
}

static int add_rows(struct seep_report_build *build)
{
    struct seep_site_key *keys = NULL;
    int error = seep_group_keys(build, &keys);

    if (error == 0) {
        error = seep_sites_init(&build->snapshot, &build->clock, keys,
                                &build->sites);
        free(keys);
    }
    return error;
}

static int fill(struct seep_report_build *build, const char *path)
{
    struct seep_report *report = &build->report;
    int error;

    report->path = seep_store_text(&build->store, path);
    if (report->path == NULL) {
        return -ENOMEM;
    }
    error = seep_report_add_process(build);
    if (error != 0) {
        return error;
    }
    seep_clock_init(&build->clock, &build->snapshot.view, end_tick_of(build));
    report->duration_s = seep_sites_seconds((double)build->clock.end_tick);
    report->last_event_s =
        seep_sites_seconds((double)seep_sites_last_tick(&build->snapshot));
    report->units_per_s = seep_clock_units_per_s(&build->clock);
    error = seep_names_open(build);
    if (error == 0) {
        error = add_rows(build);
    }
    if (error != 0) {
        return error;
    }
    seep_sites_judge(&build->sites, &build->clock);
    error = seep_report_add_counters(build);
    if (error == 0) {
        error = seep_report_add_spaces(build);
    }
    if (error == 0) {
        error = seep_report_add_devices(build);
    }
    /* Marks change what a verdict counts, so they come first. */
    if (error == 0) {
        error = seep_report_add_sites(build);
    }
    if (error == 0) {
        error = seep_report_add_memory(build);
    }
    if (error == 0) {
        seep_report_add_verdict(build);
    }
    return error;
}

int seep_report_open(const char *path,
                     const struct seep_report_options *options,
                     struct seep_refusal *ret_refusal,
                     struct seep_report **ret_report)
{
    struct seep_report_build *build = calloc(1, sizeof(*build));
    int error;

    if (build == NULL) {
        return seep_open_refuse_errno(ret_refusal, -ENOMEM);
    }
    build->options = options;
    error = take_snapshot(build, path, ret_refusal);
    if (error == 0) {
        error = fill(build, path);
        if (error != 0) {
            seep_open_refuse_errno(ret_refusal, error);
        }
    }
    seep_names_close(build);
    seep_sites_fini(&build->sites);
    seep_snapshot_fini(&build->snapshot);
    seep_symboliser_settle(build->symboliser);
    build->options = NULL;
    if (error != 0) {
        seep_report_close(&build->report);
        return error;
    }
    *ret_report = &build->report;
    return 0;
}

void seep_report_close(struct seep_report *report)
{
    /* .report is the first member of what was allocated. */
    struct seep_report_build *build = (void *)report;

    if (build != NULL) {
        seep_symboliser_close(build->symboliser);
        seep_store_fini(&build->store);
        free(build);
    }
}
