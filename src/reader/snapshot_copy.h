/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Bytes from a file that may change or shrink meanwhile into memory.
 */
#ifndef SEEP_READER_SNAPSHOT_COPY_H
#define SEEP_READER_SNAPSHOT_COPY_H

#include <stddef.h>
#include <stdint.h>

/**
 * Read exactly @bytes at @offset.
 * @return 0; -ENODATA when the file ends before; else -errno of pread()
 */
int seep_snapshot_read(int fd, void *to, uint64_t offset, uint64_t bytes);

/** The same into memory that is zero: holes of the file are skipped. */
int seep_snapshot_read_sparse(int fd, void *to, uint64_t offset,
                              uint64_t bytes);

#endif
