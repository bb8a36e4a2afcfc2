/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The memory cgroup that a process is in: what it uses and may use.
 *
 * Of the groups around it the one counts that is nearest to its limit: the
 * limit that kills a worker is often its pod's, not its own.
 */
#ifndef SEEP_READER_LOOK_CGROUP_H
#define SEEP_READER_LOOK_CGROUP_H

#include <stdint.h>

/**
 * @param membership  the text of /proc/PID/cgroup
 * @param root        where cgroups are mounted: /sys/fs/cgroup
 * @param ret_*       0: unknown or, of the limit, none
 */
void seep_look_cgroup(const char *membership, const char *root,
                      uint64_t *ret_bytes, uint64_t *ret_limit_bytes);

/**
 * The same group's room: its limit less what it uses, without the page cache
 * that the kernel would give up first (inactive_file, as Kubernetes counts).
 *
 * @param ret_limit_bytes  0: unknown, or none; then there is no room to tell
 */
void seep_look_cgroup_room(const char *membership, const char *root,
                           uint64_t *ret_left_bytes, uint64_t *ret_limit_bytes);

#endif
