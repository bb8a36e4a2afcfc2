/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The part of a recording that vitals are made of, between the two files that
 * make them; see vitals.h for what they are for, units, errors and threads.
 */
#ifndef SEEP_READER_PROCESS_VITALS_COPY_H
#define SEEP_READER_PROCESS_VITALS_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/view.h"
#include "reader/process/vitals.h"

/**
 * A private copy of what vitals need of a recording, at the offsets that the
 * file has it at. What was not read is 0.
 */
struct seep_vitals_copy {
    struct seep_view view;
    void *bytes;
    size_t mapped_bytes;
    int fd;
    /* Call sites of what is no memory of the host. */
    struct seep_vitals_site {
        uint32_t series; /* as the entry of SITES says */
        int device;      /* -1: of none that is followed */
        uint32_t first_tick;
        uint32_t pending_tick;
        double live_bytes;
        double pending_bytes; /* that is in no series yet */
    } * others;
    size_t other_count;
};

struct seep_vitals_when {
    uint64_t now_tick;
    uint64_t last_tick; /* of anything that was written */
};

/** Something was written at @tick. */
void seep_vitals_note(struct seep_vitals_when *when, uint64_t tick);

struct seep_vitals_totals {
    double live_bytes[SEEP_SPACE_COUNT];
    double device_bytes[SEEP_DEVICES_MAX];
    struct seep_vitals_when when;
};

/** Fold what was pushed and not folded yet, into shards and private sites. */
int seep_vitals_fold_pending(const struct seep_vitals_copy *copy);

/** Sums over the call sites, with what is pending; also .others. */
int seep_vitals_add_sites(struct seep_vitals_copy *copy,
                          struct seep_vitals_totals *totals);

/** Read @count entries of a section as the file has them now; that it has so
 * many is for the caller to know. @return as seep_snapshot_read() */
int seep_vitals_copy_entries(const struct seep_vitals_copy *copy,
                             enum seep_section which, uint64_t first,
                             uint64_t count, void *to);

/** Read the series that a site says as @number; false: it cannot be read. */
bool seep_vitals_copy_series(const struct seep_vitals_copy *copy,
                             uint32_t number,
                             struct seep_rec_series *ret_series);

/** What was live at the end of each bucket of the run's grid. */
struct seep_vitals_series {
    uint32_t width_log2;
    uint32_t count;
    uint64_t end_tick;
    double host[SEEP_BUCKET_COUNT];
    double devices[SEEP_DEVICES_MAX][SEEP_BUCKET_COUNT];
};

void seep_vitals_sum(const struct seep_vitals_copy *copy, uint64_t end_tick,
                     struct seep_vitals_series *ret_series);

/** The slope of @live over the settled part of the run.
 * @param unseen_bytes  that sampling may have missed at either end */
struct seep_vitals_growth
seep_vitals_growth_of(const struct seep_vitals_series *series,
                      const double *live, double unseen_bytes);

/** The growth of private memory, where it is sure, up to @end_tick. */
struct seep_vitals_growth
seep_vitals_private_growth(const struct seep_vitals_copy *copy,
                           uint64_t end_tick);
#endif
