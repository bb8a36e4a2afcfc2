/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Looks at a process from outside: its mappings and what the kernel counts of
 * it, taken from /proc while it lives by whoever watches it (seep run, top,
 * metrics), and kept beside its recording for after its death.
 *
 * The file is RECORDING.looks: text, one JSON object a line, the first line
 * {"schema":"seep-looks/1", ...}. Bounded: SEEP_LOOK_LIMIT looks, neighbours
 * thinned when full (the first and the last always stay), and of each at most
 * SEEP_LOOK_MAPPINGS mappings, the largest, with a sum for the rest. Written
 * new and renamed, 0600, never through a link.
 *
 * Sizes are bytes, times seconds since the recording's start_monotonic_ns.
 * Errors: 0 or negative errno; ret_* untouched on failure. The file is hostile
 * input. Ownership: what is given out is the caller's. Threads: one at a time.
 */
#ifndef SEEP_READER_LOOK_H
#define SEEP_READER_LOOK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SEEP_LOOK_LIMIT 48
#define SEEP_LOOK_MAPPINGS 256
#define SEEP_LOOK_SUFFIX ".looks"
/** Name of the mapping of the recording itself, which is no growth. */
#define SEEP_LOOK_OWN "[seep]"

struct seep_look_mapping {
    uint64_t start;
    uint64_t end;
    uint64_t rss_bytes;
    uint64_t anonymous_bytes;
    uint64_t swap_bytes;
    uint64_t inode; /* only of a look just taken; 0: of no file */
    char *name;     /* path, "[heap]", "[stack]", SEEP_LOOK_OWN, or "" if
                       anonymous */
};

struct seep_look {
    double t_s;
    uint64_t rss_bytes;
    uint64_t anonymous_bytes;
    uint64_t shared_bytes; /* files and shared memory */
    uint64_t swap_bytes;
    uint64_t cgroup_bytes; /* 0: unknown, as the next ones */
    uint64_t cgroup_limit_bytes;
    uint64_t available_bytes; /* MemAvailable of the machine */
    uint64_t other_rss_bytes; /* of the mappings that are not listed */
    struct seep_look_mapping *mappings; /* by address */
    size_t mapping_count;
};

struct seep_looks {
    struct seep_look *looks; /* by time */
    size_t count;
};

/**
 * Look at @pid now.
 *
 * @param start_monotonic_ns  of its recording
 * @return -ESRCH if it is gone, -EACCES if it may not be looked at
 */
int seep_look_take(pid_t pid, uint64_t start_monotonic_ns,
                   struct seep_look *ret_look);
void seep_look_fini(struct seep_look *look);

/** Name the mapping of that file SEEP_LOOK_OWN. */
void seep_look_name_own(struct seep_look *look, uint64_t inode);

/** Add @look, which then belongs to @looks, and thin them when full. */
int seep_looks_add(struct seep_looks *looks, struct seep_look *look);
void seep_looks_fini(struct seep_looks *looks);

/** Read, or write, the file beside @recording_path. -ENOENT: there is none. */
int seep_looks_read(const char *recording_path, struct seep_looks *ret_looks);
int seep_looks_write(const char *recording_path,
                     const struct seep_looks *looks);

#endif
