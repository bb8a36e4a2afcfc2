/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** A small file that the kernel writes: of /proc, of a cgroup. */
#ifndef SEEP_READER_PROC_TEXT_H
#define SEEP_READER_PROC_TEXT_H

#include <stddef.h>
#include <sys/types.h>

/**
 * Its beginning as a string, of one read: what the kernel tells at one time.
 *
 * @param bytes  of @text, at least 1; it is "" on failure
 * @return its length, or negative errno
 */
ssize_t seep_proc_text(const char *path, char *text, size_t bytes);

#endif
