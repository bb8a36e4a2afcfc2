/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Run a command as if we were not there.
 *
 * The child stays in our process group and on our terminal, with the signal
 * mask, the ignored signals and the files that we were started with. We do
 * not die of the terminal's signals, stop and go on when it does, and forward
 * what is sent to us alone.
 */
#ifndef SEEP_TOOL_CHILD_H
#define SEEP_TOOL_CHILD_H

#include <stdint.h>
#include <sys/types.h>

struct seep_child {
    pid_t pid;
    int status;           /* as wait() gives it */
    uint64_t start_clock; /* field 22 of /proc/PID/stat; 0 unknown */
};

/** What is done while the child runs, between two signals. */
struct seep_child_pastime {
    /** @return nanoseconds until it is to be called again; UINT64_MAX: never */
    uint64_t (*call)(void *context);
    void *context;
};

/**
 * Start @argv and wait until it has ended. One thread only.
 *
 * @param pastime  may be NULL. While it is called signals wait: let it be short
 * @return 0; negative errno of fork or, when nothing was started, of exec
 */
int seep_child_run(char *const *argv, const struct seep_child_pastime *pastime,
                   struct seep_child *ret_child);

#endif
