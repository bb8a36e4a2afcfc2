/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Small files of the kernel's, and how long a question took.
 *
 * Invariant: one thread at a time, by raw system calls, and no descriptor stays
 * open: if the reader is left by a jump, whoever cleans up closes it.
 */
#ifndef SEEP_BASE_PROC_H
#define SEEP_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Read a file of /proc or /sys as a string. @return bytes, 0 if unreadable */
size_t seep_proc_read(const char *path, char *bytes, size_t size);

/** In parts: until seep_proc_close_file() a jump finds it, as with the above.
 * @return a negative errno if it cannot be read */
long seep_proc_open(const char *path);
/** @return bytes, 0 at the end or if unreadable */
size_t seep_proc_read_at(long fd, void *bytes, size_t size, uint64_t offset);
void seep_proc_close_file(long fd);

/** Take a decimal number, and the blanks before it, from a string. */
uint64_t seep_proc_number(const char **at);

#define SEEP_PROC_PATH_BYTES 48U

/** @before, @number, @after into @path, of SEEP_PROC_PATH_BYTES; @return it */
const char *seep_proc_path(char *path, const char *before, uint64_t number,
                           const char *after);

/** What tells a process and its image apart from others. */
struct seep_proc_start {
    uint64_t clock; /* field 22 of /proc/PID/stat; 0: there is none */
    uint64_t stack; /* 28: another after an exec; 0: not told */
};
struct seep_proc_start seep_proc_start_of(const char *path);

/** The inode of this process's; 0: not known. */
uint64_t seep_proc_pid_namespace(void);

/** Of the machine since it was started; "" if it is not known. */
void seep_proc_boot_id(char *id, size_t size);

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
