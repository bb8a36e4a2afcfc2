/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The process that a recording is of, as it is seen from here.
 *
 * A number is not a process: it is known by when it started, and an image of
 * it by where its code and its stack begin, so that after an exec what is seen
 * is not taken for what was recorded.
 */
#ifndef SEEP_TOOL_TARGET_H
#define SEEP_TOOL_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "seep/recording.h"

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

/**
 * The process of the recording with @header, also in a namespace below ours.
 *
 * @return -ESRCH if it has ended, or cannot be told: another machine, or boot
 */
int seep_target_find(const struct seep_rec_header *header,
                     struct seep_target *ret_target);

/** Does it live, as that image? */
bool seep_target_is_there(const struct seep_target *target);

#endif
