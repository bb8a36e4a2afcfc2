/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * How a recorded process is, now and cheaply: what it holds, how fast that
 * grows, what is left to it, and when it was last heard of.
 *
 * For who must answer at once and again and again (seep probe, a live view).
 * Nothing is symbolised and no call site is judged; stacks, frames and strings
 * are not read, and of the series those of devices only. All is read by pread,
 * so who truncates the file harms nobody. A figure is true of a moment close
 * by, not all of the same one.
 *
 * Sizes are bytes, times seconds. Errors: 0 or negative errno; ret_* untouched
 * on failure. Threads: any. No file but the recording and those of /proc and
 * the cgroup are opened. Links libc and libm only.
 */
#ifndef SEEP_READER_PROCESS_VITALS_H
#define SEEP_READER_PROCESS_VITALS_H

#include <stdbool.h>
#include <stdint.h>

#include "reader/report/report.h"

/** Growth is told of so much at least: as long as a verdict needs. */
#define SEEP_VITALS_GROWTH_S 30.0
#define SEEP_VITALS_NAME_BYTES 256

struct seep_vitals_growth {
    bool known; /* false: too little was seen */
    struct seep_interval bytes_per_s;
};

/** One GPU. Calls of the process changed it since the driver was asked: what
 * they took and gave back is counted. Other processes are seen when it is. */
struct seep_vitals_device {
    bool reported; /* the driver did report what it has left */
    uint64_t free_bytes;
    uint64_t total_bytes;
    double reported_age_s;            /* since it did */
    uint64_t live_bytes;              /* that calls of the process hold of it */
    struct seep_vitals_growth growth; /* of these */
};

enum seep_vitals_room_kind {
    SEEP_ROOM_UNKNOWN,
    SEEP_ROOM_CGROUP,  /* of the control group that is nearest to its limit */
    SEEP_ROOM_MACHINE, /* of the machine: MemAvailable */
};

/** What may still be asked for before something is killed. Page cache that the
 * kernel would give up first counts as room. */
struct seep_vitals_room {
    enum seep_vitals_room_kind kind;
    uint64_t left_bytes;
    uint64_t limit_bytes;
    bool recorded; /* what the recording knew last, not what is now */
};

struct seep_vitals {
    uint32_t pid;
    enum seep_process_state state;
    bool stopped; /* by a signal or a debugger: it does nothing now */
    enum seep_inert_reason inert;
    char executable[SEEP_VITALS_NAME_BYTES]; /* as recorded: not cleaned */
    uint64_t start_realtime_ns;
    double duration_s;
    double age_s; /* since anything was written; NAN if it cannot be told */
    uint64_t sample_bytes;
    uint64_t live_bytes[SEEP_SPACE_COUNT];
    uint64_t host_bytes;                   /* of these, in memory of the host */
    struct seep_vitals_growth host_growth; /* of these */
    /* Of what is resident and private, or in swap; known where it grows, by the
     * test that a report's verdict passes. */
    struct seep_vitals_growth private_growth;
    struct seep_vitals_room room;
    struct seep_vitals_device devices[SEEP_DEVICES_MAX]; /* by ordinal */
    uint64_t lost_events;  /* that are missing from these figures */
    uint64_t room_refused; /* times that the disk had no room for more */
};

/**
 * Of the recording at @path.
 *
 * @param only_alive   of a process that has ended only .pid, .state, .inert,
 *                     .executable and .start_realtime_ns are filled: a folder
 *                     may hold thousands of such
 * @param ret_refusal  may be NULL
 */
int seep_vitals_open(const char *path, bool only_alive,
                     struct seep_refusal *ret_refusal,
                     struct seep_vitals *ret_vitals);

/** Of the open file @fd of @size_bytes, which stays open. */
int seep_vitals_read(int fd, uint64_t size_bytes, bool only_alive,
                     struct seep_refusal *ret_refusal,
                     struct seep_vitals *ret_vitals);

/** May a process in @state still run? */
bool seep_vitals_is_alive(enum seep_process_state state);

#endif
