/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A report while it is made; between report.c and its parts only.
 *
 * Invariant: nothing in .report points into .snapshot, which is given back
 * before the report is given out.
 */
#ifndef SEEP_READER_REPORT_BUILD_H
#define SEEP_READER_REPORT_BUILD_H

#include "reader/balance.h"
#include "reader/report.h"
#include "reader/report_store.h"
#include "reader/sites.h"
#include "reader/sites_clock.h"
#include "reader/snapshot.h"
#include "reader/verdict.h"

struct seep_names;
struct seep_symboliser;

/** What calls of the process hold of one device, and what PyTorch says of its
 * cache there, at the end of each bucket of the clock. */
struct seep_report_device_live {
    double device[SEEP_BUCKET_COUNT];  /* space device */
    double managed[SEEP_BUCKET_COUNT]; /* space managed */
    double tensors[SEEP_BUCKET_COUNT]; /* space tensor */
    bool has_tensors;                  /* there are sites of that */
    double reserved[SEEP_BUCKET_COUNT];
    double allocated[SEEP_BUCKET_COUNT];
    uint32_t cache_first; /* bucket from which the last two are known; not
                             below the clock's count: never */
    bool is_followed;     /* the driver was asked over enough of the run */
};

struct seep_report_build {
    struct seep_report report; /* first: what is given out */
    struct seep_store store;
    struct seep_snapshot snapshot;
    struct seep_clock clock;
    struct seep_sites sites;
    struct seep_symboliser *symboliser; /* its strings are the report's; NULL:
                                           no symbols are wanted */
    struct seep_names *names;           /* while the report is made */
    const struct seep_report_options *options;
    /* What is live of the allocator's blocks, and of the other spaces that lie
     * in RSS, at the end of each bucket of the clock. */
    double heap_live[SEEP_BUCKET_COUNT];
    double beside_live[SEEP_BUCKET_COUNT];
    double beside_variance; /* of it, by sampling: of Python's small blocks */
    struct seep_balance_outside outside;
    struct seep_report_device_live devices[SEEP_DEVICES_MAX];
    struct seep_interval caches[SEEP_DEVICES_MAX]; /* see verdict.h */
    /* What of the report's devices has that ordinal; NULL: was not asked. */
    struct seep_report_device *device_of[SEEP_DEVICES_MAX];
};

/** Each fills its part of the report. @return 0 or -ENOMEM */
int seep_report_add_process(struct seep_report_build *build);
int seep_report_add_counters(struct seep_report_build *build);
int seep_report_add_marks(struct seep_report_build *build);
int seep_report_add_spaces(struct seep_report_build *build);
int seep_report_add_devices(struct seep_report_build *build);
int seep_report_add_memory(struct seep_report_build *build);
int seep_report_add_sites(struct seep_report_build *build);
void seep_report_add_verdict(struct seep_report_build *build);

/** SEEP_LABELS, @given, with what the program said later. NULL: no memory. */
const char *seep_report_labels(struct seep_report_build *build,
                               const char *given);

/** Suppressed, bounded, known? @options may be NULL. */
void seep_report_mark_site(const struct seep_report_options *options,
                           struct seep_report_site *site);

/** Which of @sites are segments of PyTorch's cache, and whose growth that of
 * each cache is; see report_cache.c. They have frames by now. */
void seep_report_mark_caches(struct seep_report_build *build,
                             struct seep_report_site *sites, size_t count);

/** The figures of the end of each bucket up to the end of the run. */
void seep_report_series_of(const struct seep_clock *clock, const double *values,
                           uint32_t first,
                           struct seep_window_series *ret_series);

/** Frames, id and `where` of the first sites. @return 0 or negative errno */
int seep_report_add_frames(struct seep_report_build *build,
                           struct seep_report_site *sites, size_t count);

#endif
