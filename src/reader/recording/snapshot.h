/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A private copy of a recording, consistent although a process may be
 * writing to it.
 *
 * Invariant: the file is only read, by pread, so neither a writer nor one who
 * truncates it can harm the reader; what cannot be read as one is counted.
 *
 * How: everything is copied, what refers before what is referred to. A fold
 * changes sites only while it holds its shard, so equal shard locks before
 * and after mean that nothing was folded in between. Shards (with ring and
 * live table) and sites that did change are copied again, a bounded number of
 * times, each time in a shorter span. The rings of those that never came to
 * rest are left out: then each site is whole, and at most a ring older.
 */
#ifndef SEEP_READER_RECORDING_SNAPSHOT_H
#define SEEP_READER_RECORDING_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/view.h"
#include "reader/report/report.h"

struct seep_snapshot {
    struct seep_view view;               /* of the copy */
    struct seep_snapshot_memory *memory; /* that it lies in */
    void *bytes;
    size_t mapped_bytes;
    bool is_dead; /* nobody wrote it any more */
    uint64_t file_bytes;
    uint64_t disk_bytes; /* of these, what the file takes of the disk */
    struct seep_snapshot_series *series; /* memory of .view.series, once
                                            expanded; NULL: a site may be told
                                            by a brief, or its totals */
    struct seep_rec_live *live; /* that of .view, the live blocks alone */
    uint8_t *torn;              /* one a site: 1 if it was being written */
    /* Of each site what was asked for, where what else is told of it was
     * charged (footprint.h); NULL: it was not. */
    struct seep_report_requested *requested;
    enum seep_allocator_kind allocator; /* that it was charged by */
    uint64_t torn_sites;
    uint64_t torn_slots;      /* events that were claimed and never finished */
    uint64_t pending_events;  /* folded here */
    uint32_t restless_shards; /* whose ring was left out */
};

/**
 * Copy the file @fd of @size_bytes, check it, and fold what is pending.
 *
 * @param is_dead  asked once with the checked header: no one writes any more
 * @param ret_snapshot  give it to seep_snapshot_fini()
 */
int seep_snapshot_init(int fd, uint64_t size_bytes,
                       bool (*is_dead)(const struct seep_rec_header *),
                       struct seep_refusal *ret_refusal,
                       struct seep_snapshot *ret_snapshot);
void seep_snapshot_fini(struct seep_snapshot *snapshot);

/** The same as the file has it, with nothing folded: what reads it later comes
 * to what would have been read now. */
int seep_snapshot_copy(int fd, uint64_t size_bytes,
                       bool (*is_dead)(const struct seep_rec_header *),
                       struct seep_refusal *ret_refusal,
                       struct seep_snapshot *ret_snapshot);

/** The last tick that anything in the recording tells of. */
uint64_t seep_sites_last_tick(const struct seep_snapshot *snapshot);

/*
 * expand.c
 */

/** Of very many sites only some have a series: see expand.c. Of others, what
 * they have tells of them (seep_series_source_of()). @return 0 or -ENOMEM */
int seep_snapshot_bound_series(struct seep_snapshot *snapshot);
/** Give each site a series, for who changes them; once. @return 0 or -ENOMEM */
int seep_snapshot_expand(struct seep_snapshot *snapshot);
/** They are gone; the next recording has their room. */
void seep_snapshot_leave_series(struct seep_snapshot *snapshot);

/*
 * copy.c
 */

/** Memory for the recording @fd of @size_bytes, with its first page, which is
 * valid. What lies behind is not for use before one of the next two. */
int seep_snapshot_open_copy(struct seep_snapshot *snapshot, int fd,
                            uint64_t size_bytes,
                            struct seep_refusal *ret_refusal);
/** All of a file that nobody writes any more. @return 0 or negative errno */
int seep_snapshot_copy_data(struct seep_snapshot *snapshot, int fd);
/** Nothing yet: all is zero. */
void seep_snapshot_clear_copy(struct seep_snapshot *snapshot);
/** Bytes of a section to the end of its last that are no hole, of what
 * seep_snapshot_copy_data() has copied. */
uint64_t seep_snapshot_data_end(const struct seep_snapshot *snapshot,
                                enum seep_section which);
/** Whole pages of the copy that nobody reads any more. */
void seep_snapshot_give_back(const struct seep_snapshot *snapshot, void *part,
                             size_t bytes);
/** It is gone; the next recording has its memory. */
void seep_snapshot_leave_copy(struct seep_snapshot *snapshot);

/** Bytes of a file into memory that is zero: its holes are skipped. */
int seep_snapshot_read_sparse(int fd, void *to, uint64_t offset,
                              uint64_t bytes);

#endif
