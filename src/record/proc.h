/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Small files of the kernel's, and how long a question took.
 *
 * Invariant: one thread at a time, by raw system calls, and no descriptor stays
 * open: if the reader is left by a jump, whoever cleans up closes it.
 */
#ifndef SEEP_RECORD_PROC_H
#define SEEP_RECORD_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Read a file of /proc or /sys as a string. @return bytes, 0 if unreadable */
size_t seep_proc_read(const char *path, char *bytes, size_t size);

/** Take a decimal number, and the blanks before it, from a string. */
uint64_t seep_proc_number(const char **at);

/** After a jump out of seep_proc_read(). */
void seep_proc_close(void);

/** What a dear question took: without what went to others of a busy machine,
 * which a second question would not take again. */
struct seep_proc_watch {
    uint64_t start_ns;
    uint64_t wait_ns;
};
struct seep_proc_watch seep_proc_watch_start(void);

/** Over a millisecond. */
bool seep_proc_was_slow(const struct seep_proc_watch *watch);

#endif
