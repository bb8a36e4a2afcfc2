/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Work that may hang, in a child that is left behind when the time is over.
 *
 * A thread would not do: a process does not end before all its threads have,
 * and one that waits for a file system in the kernel does not.
 */
#ifndef SEEP_TOOL_DEADLINE_H
#define SEEP_TOOL_DEADLINE_H

#include <stdint.h>

enum seep_deadline_result {
    SEEP_DEADLINE_DONE,
    SEEP_DEADLINE_LATE, /* it was told to end, and not waited for */
    SEEP_DEADLINE_DIED, /* of a signal, or it left by itself */
};

/**
 * Call @work in a child until it returns, or until @until_ns of
 * CLOCK_MONOTONIC. What it is to say it says in memory that both share.
 *
 * @param ret_signal  that ended it; 0. NULL: nobody asks
 * @return a result, or negative errno where no child could be made
 */
int seep_deadline_run(void (*work)(void *context), void *context,
                      uint64_t until_ns, int *ret_signal);

/** For @work: close all that was inherited, so that nobody who waits for the
 * end of our output waits for a child that hangs. */
void seep_deadline_let_go(void);

#endif
