/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * How much of each mapping is there, from /proc/PID/pagemap.
 *
 * Why not from smaps, which has it ready: for that the kernel walks a whole
 * mapping under the lock of the address space. 4 GiB in one mapping kept a
 * process from mapping anything for up to 501 ms on a busy machine; the page
 * map is read under the lock 2 MiB at a time (20 ms at worst, where the reader
 * lost its processor), and costs half. Where there is none, smaps it is.
 */
#ifndef SEEP_READER_LOOK_PAGES_H
#define SEEP_READER_LOOK_PAGES_H

#include <sys/types.h>

#include "reader/look.h"

/**
 * Fill in the bytes of @mappings, which are by address; those that are gone
 * meanwhile have none.
 *
 * @return -ENOENT, -EACCES, ... if the page map cannot be read
 */
int seep_look_pages(pid_t pid, struct seep_look_mapping *mappings,
                    size_t count);

#endif
