/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the files of the vitals share; vitals.h tells what they are for.
 */
#ifndef SEEP_READER_VITALS_PARTS_H
#define SEEP_READER_VITALS_PARTS_H

#include "format/view.h"
#include "reader/process.h"
#include "reader/vitals.h"

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
        uint32_t series; /* index in SERIES + 1; 0 none */
        int device;      /* -1: of none that is followed */
        uint32_t first_tick;
        uint32_t pending_tick;
        double live_bytes;
        double pending_bytes; /* that is in no series yet */
    } * others;
    size_t other_count;
    size_t other_capacity;
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

/** Its header, checked, and the name of the program. */
int seep_vitals_copy_init(int fd, uint64_t size_bytes,
                          struct seep_refusal *ret_refusal,
                          struct seep_vitals_copy *ret_copy);
/** All the rest but sites and series. */
int seep_vitals_copy_fill(struct seep_vitals_copy *copy);
/** Say why it could not be read. @return @error */
int seep_vitals_copy_refuse(struct seep_refusal *ret_refusal, int error);
void seep_vitals_copy_fini(struct seep_vitals_copy *copy);

/** Fold what was pushed and not folded yet, into shards and private sites. */
int seep_vitals_fold_pending(const struct seep_vitals_copy *copy);

/** Sums over the call sites, with what is pending; also .others. */
int seep_vitals_add_sites(struct seep_vitals_copy *copy,
                          struct seep_vitals_totals *totals);

/** Read that series as well; false if it cannot be read. */
bool seep_vitals_copy_series(const struct seep_vitals_copy *copy,
                             uint32_t index);

/** Is memory of @space the host's? */
bool seep_vitals_is_on_host(uint32_t space);

/** Ordinal of the device that an entry of SITES is memory of; -1: of none that
 * is followed. */
int seep_vitals_device_of(const struct seep_rec_site *site);

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

/** Figures of the devices, from their moments and what is held now. */
void seep_vitals_add_devices(const struct seep_vitals_copy *copy,
                             const struct seep_vitals_series *series,
                             uint64_t now_tick, struct seep_vitals *vitals);

/** What is left to it on this machine now, else what it knew itself. */
void seep_vitals_add_room(const struct seep_vitals_copy *copy,
                          enum seep_process_presence presence,
                          struct seep_vitals *vitals);

double seep_vitals_seconds(double ticks);

#endif
