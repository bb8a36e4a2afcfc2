/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What small files of the kernel say of a process: whether it still runs, and
 * what the memory cgroup that it is in uses and may use.
 *
 * Units: bytes. Nothing is kept; any thread.
 *
 * Of the groups around it the one counts that is nearest to its limit: the
 * limit that kills a process is often its pod's, not its own.
 */
#ifndef SEEP_READER_PROCESS_CGROUP_H
#define SEEP_READER_PROCESS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "reader/report/report.h"
#include "seep/recording.h"

/**
 * @param membership  the text of /proc/PID/cgroup
 * @param root        where cgroups are mounted: /sys/fs/cgroup
 * @param ret_*       0: unknown or, of the limit, none
 */
void seep_cgroup_usage(const char *membership, const char *root,
                       uint64_t *ret_bytes, uint64_t *ret_limit_bytes);

/** What a group uses, in its parts. */
struct seep_cgroup_use {
    uint64_t bytes; /* 0: unknown, as all of it */
    uint64_t limit_bytes;
    uint64_t held_bytes;  /* without what can be given back, as page cache; of a
                             tmpfs and of shared memory it cannot. Of version 1
                             without the kernel's own; 0: unknown */
    uint64_t shmem_bytes; /* of that: files in a tmpfs, and shared memory */
};

/** The same with the parts that its memory.stat tells. */
void seep_cgroup_use_of(const char *membership, const char *root,
                        struct seep_cgroup_use *ret_use);

/**
 * The same group's room: its limit less what it uses, without the page cache
 * that the kernel would give up first (inactive_file, as Kubernetes counts).
 *
 * @param ret_limit_bytes  0: unknown, or none; then there is no room to tell
 */
void seep_cgroup_room(const char *membership, const char *root,
                      uint64_t *ret_left_bytes, uint64_t *ret_limit_bytes);

/* A small file that the kernel writes: of /proc, of a cgroup. */

/**
 * Its beginning as a string, of one read: what the kernel tells at one time.
 *
 * @param bytes  of @text, at least 1; it is "" on failure
 * @return its length, or negative errno
 */
ssize_t seep_proc_text(const char *path, char *text, size_t bytes);

/** The same of /proc/@pid/@name. */
ssize_t seep_proc_text_of(pid_t pid, const char *name, char *text,
                          size_t bytes);

/** Bytes of "KEY  12 kB" in such a text. @return false: it has no @key */
bool seep_proc_find_bytes(const char *text, const char *key,
                          uint64_t *ret_bytes);

/*
 * A process as it is seen from here. A number is not a process: it is known by
 * when it started, and an image of it by where its code and its stack begin.
 */

/** Of /proc/PID/stat. */
struct seep_target {
    pid_t pid; /* in our namespace */
    char state;
    uint64_t start_clock; /* field 22 */
    uint64_t start_code;  /* 26 and 28; not told to everybody, then equal */
    uint64_t start_stack;
};

/** @return -ESRCH if there is none; @ret_target->pid is @pid */
int seep_target_read(pid_t pid, struct seep_target *ret_target);

/** Is it more than what nobody has waited for yet? */
bool seep_target_is_alive(const struct seep_target *target);

/** Is it the image that was recorded, in the process that was? What is not
 * known of either is no other; clocks of another time namespace say nothing. */
bool seep_target_is_of(const struct seep_target *target,
                       const struct seep_rec_header *header);

/** The pid namespace of @process, a number or "self"; 0: not known. */
uint64_t seep_process_namespace(const char *process);

/*
 * Does the process that a recording is of still run?
 *
 * Asked of /proc/PID/stat alone, and only where the recorded boot and pid
 * namespace are ours: elsewhere the same number is another process.
 */

enum seep_process_presence {
    SEEP_PRESENCE_UNKNOWN,
    SEEP_PRESENCE_HERE,
    SEEP_PRESENCE_AWAY,
};

/** @param ret_stopped  of one that is here: whether it was stopped (SIGSTOP, a
 *                     debugger); may be NULL */
enum seep_process_presence
seep_process_presence_of(const struct seep_rec_header *header,
                         bool *ret_stopped);

/** Was it recorded since this machine was booted? Then clocks agree.
 * @return 1: it was; -1: it was not; 0: nobody knows */
int seep_process_boot_of(const struct seep_rec_header *header);

/** What the header's changing part and @presence say together. */
enum seep_process_state
seep_process_state_of(struct seep_rec_header *header,
                      enum seep_process_presence presence);

/** Ticks since the start of the recording, by this machine's clock. */
uint64_t seep_process_now_tick(const struct seep_rec_header *header);

/**
 * The tick at which the run ended, as far as anyone can know.
 *
 * @param now_tick   of one that runs
 * @param last_tick  of anything that was written, or seen of it from outside
 */
uint64_t seep_process_end_tick(const struct seep_rec_header *header,
                               enum seep_process_state state, uint64_t now_tick,
                               uint64_t last_tick);

#endif
