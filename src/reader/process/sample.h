/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * External samples of a process: its mappings and what the kernel counts of it,
 * taken from /proc while it lives by whoever watches it (seep run, top,
 * metrics), and kept beside its recording for after its death.
 *
 * The file is RECORDING.looks: text, one JSON object a line, the first line
 * {"schema":"seep-looks/1", ...}. Bounded: SEEP_EXTERNAL_SAMPLES_MAX
 * samples, neighbours thinned when full (the first and the last always stay),
 * and of each at most SEEP_EXTERNAL_MAPPINGS_MAX mappings, the largest, with a
 * sum for the rest. Written new and renamed, 0600, never through a link.
 *
 * Sizes are bytes, times seconds since the recording's start_monotonic_ns.
 * Errors: 0 or negative errno; ret_* untouched on failure. The file is hostile
 * input. Ownership: what is given out is the caller's. Threads: one at a time.
 */
#ifndef SEEP_READER_PROCESS_SAMPLE_H
#define SEEP_READER_PROCESS_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "reader/report/report.h"
#include "reader/statistics/window.h"

#define SEEP_EXTERNAL_MAPPINGS_MAX 256
/** Name of the mapping of the recording itself, which is no growth. */
#define SEEP_EXTERNAL_OWN "[seep]"

struct seep_packed;

struct seep_external_mapping {
    uint64_t start;
    uint64_t end;
    uint64_t rss_bytes;
    uint64_t anonymous_bytes;
    uint64_t swap_bytes;
    uint64_t forked_bytes; /* of anonymous: another process has them as well,
                              since a fork; only of a sample just taken */
    uint64_t inode;        /* only of a sample just taken; 0: of no file */
    char *name; /* path, "[heap]", "[stack]", SEEP_EXTERNAL_OWN, or "" if
                   anonymous */
};

/** Of the name of an open file; what does not fit is cut. */
#define SEEP_EXTERNAL_FILE_BYTES 80U

struct seep_external_sample {
    double t_s;
    uint64_t rss_bytes;
    uint64_t anonymous_bytes;
    uint64_t shared_bytes; /* files and shared memory */
    uint64_t swap_bytes;
    uint64_t cgroup_bytes; /* 0: unknown, as the next ones */
    uint64_t cgroup_limit_bytes;
    uint64_t cgroup_held_bytes; /* see seep_cgroup_use */
    uint64_t cgroup_shmem_bytes;
    uint64_t available_bytes; /* MemAvailable of the machine */
    uint64_t other_rss_bytes; /* of the mappings that are not listed */
    uint64_t forked_bytes;    /* as of a mapping, of all; 0: none, or unknown */
    uint64_t thread_count;    /* 0: unknown */
    uint64_t open_file_bytes; /* in memfds, and unlinked files of a tmpfs, that
                                 it has open; 0: none, or unknown */
    char open_file[SEEP_EXTERNAL_FILE_BYTES]; /* the largest of these; "" */
    struct seep_external_mapping *mappings;   /* by address */
    size_t mapping_count;
};

struct seep_external_samples {
    struct seep_external_sample *samples; /* by time */
    size_t count;
};

/**
 * Sample @pid now.
 *
 * @param start_monotonic_ns  of its recording
 * @return -ESRCH if it is gone, -EACCES if it may not be looked at
 */
int seep_external_sample_take(pid_t pid, uint64_t start_monotonic_ns,
                              struct seep_external_sample *ret_sample);
void seep_external_sample_fini(struct seep_external_sample *sample);

/** Name the mapping of that file SEEP_EXTERNAL_OWN. */
void seep_external_sample_name_own(struct seep_external_sample *sample,
                                   uint64_t inode);

/** Add @sample, which then belongs to @samples, and thin them when full. */
int seep_external_samples_add(struct seep_external_samples *samples,
                              struct seep_external_sample *sample);
void seep_external_samples_fini(struct seep_external_samples *samples);

/** Read, or write, the file beside @recording_path. -ENOENT: there is none;
 * -ENOTSUP: it is no regular file. */
int seep_external_samples_read(const char *recording_path,
                               struct seep_external_samples *ret_samples);
/** The same of a recording that may be of a pack. */
int seep_external_samples_read_of(const char *recording_path,
                                  const struct seep_packed *packed,
                                  struct seep_external_samples *ret_samples);
int seep_external_samples_write(const char *recording_path,
                                const struct seep_external_samples *samples);

/** Its text, into @file. */
int seep_external_samples_print(FILE *file, const char *recording_path,
                                const struct seep_external_samples *samples);

/** The text of such a file; -ENOENT: of another recording. */
int seep_external_samples_parse(const char *bytes, size_t length,
                                const char *recording_path,
                                struct seep_external_samples *ret_samples);

/*
 * The text of /proc/PID/smaps or /proc/PID/maps.
 *
 * Of smaps only what has bytes, resident or in swap, is kept: a large process
 * has thousands of mappings that never had any. Keys that are not known are
 * skipped, missing ones count as 0: kernels differ. Of maps, which does not
 * say, what cannot grow is left out.
 */

enum seep_smaps_kind { SEEP_SMAPS, SEEP_MAPS };

struct seep_smaps {
    struct seep_external_mapping *mappings; /* by address */
    size_t count;
};

int seep_smaps_read(FILE *file, enum seep_smaps_kind kind,
                    struct seep_smaps *ret_smaps);
void seep_smaps_fini(struct seep_smaps *smaps);

/**
 * Make at most @limit of @count mappings. Those without bytes are left out.
 * Small anonymous neighbours, and neighbours of one file, are joined into one;
 * then the largest stay.
 *
 * @return how many stay, in front and by address; the rest is freed
 */
size_t seep_smaps_select(struct seep_external_mapping *mappings, size_t count,
                         size_t limit);

/*
 * How much of each mapping is there, from /proc/PID/pagemap.
 *
 * Why not from smaps, which has it ready: for that the kernel walks a whole
 * mapping under the lock of the address space. 4 GiB in one mapping kept a
 * process from mapping anything for up to 501 ms on a busy machine; the page
 * map is read under the lock 2 MiB at a time (20 ms at worst, where the reader
 * lost its processor), and costs half. Where there is none, smaps it is.
 */

/**
 * Fill in the bytes of @mappings, which are by address; those that are gone
 * meanwhile have none.
 *
 * @return -ENOENT, -EACCES, ... if the page map cannot be read
 */
int seep_external_pages(pid_t pid, struct seep_external_mapping *mappings,
                        size_t count);

/**
 * What @pid has in memfds and in unlinked files of a tmpfs that it has open.
 *
 * @param ret_largest  the name of the largest; "": there is none
 * @return -E2BIG: it has more descriptors, or such files, than are looked at
 */
int seep_external_files_take(pid_t pid, uint64_t *ret_bytes,
                             char ret_largest[SEEP_EXTERNAL_FILE_BYTES]);

/*
 * Which mappings grew, from external samples.
 *
 * A mapping has no name that lasts: anonymous neighbours are merged by the
 * kernel, split, and grow at either end. So what is followed is a piece of the
 * address space: mappings of one name that overlap in any two samples are
 * one, and what a sample does not list was not there. Many small ones that are
 * new, not tracked, and less than 64 MiB apart are told as one.
 *
 * Sizes are anonymous bytes, resident or in swap: pages of a file are not the
 * process's. Pure: no input or output.
 */

/** What a mapping grew by at least to be told of. */
#define SEEP_EXTERNAL_GROWTH_LEAST_BYTES (64 * 1024)

/**
 * The mappings that grew, most first, over the samples at or after @from_s.
 *
 * @param is_tracked    do blocks or ranges that seep knows lie in these
 *                      addresses? Asked of parts of what is new in a mapping,
 *                      since an anonymous one can be the program's own and,
 *                      beside it, an allocator's; NULL: of none
 * @param ret_mappings  room for @limit; names point into @samples
 * @return 0, also when nothing grew or fewer than two samples are left;
 *         -ENOMEM, with ret_* untouched
 */
int seep_external_growth(
    const struct seep_external_samples *samples, double from_s,
    bool (*is_tracked)(void *context, uint64_t start, uint64_t end),
    void *context, struct seep_report_mapping *ret_mappings, size_t limit,
    size_t *ret_count);

#endif
