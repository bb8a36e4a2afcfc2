/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Looking at processes while they live, and keeping the looks beside their
 * recordings.
 *
 * Nothing is printed, no process is touched, and what cannot be looked at is
 * silently left out. A look takes the lock of the address space, so of a
 * processor at most 1 % is spent on one process, and 5 % on all. One thread,
 * which calls when it has time.
 */
#ifndef SEEP_TOOL_WATCH_H
#define SEEP_TOOL_WATCH_H

#include <stdint.h>

/** So many processes at a time; others wait until some have ended. */
#define SEEP_WATCH_LIMIT 64

struct seep_watch;

int seep_watch_open(struct seep_watch **ret_watch);
void seep_watch_close(struct seep_watch *watch);

/**
 * Watch the process of the recording at @path from now on, after the looks
 * that are there already. What is known is not asked again.
 *
 * @return 0, also when it is no recording or its process is not to be seen;
 *         -ENOMEM
 */
int seep_watch_add(struct seep_watch *watch, const char *path);

/**
 * Look at the process that has waited longest, if one is due.
 *
 * @return nanoseconds until the next one is; UINT64_MAX: none is watched
 */
uint64_t seep_watch_attend(struct seep_watch *watch);

#endif
