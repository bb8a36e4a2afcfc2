/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See snapshot_copy.h. */
#include "reader/snapshot_copy.h"

#include <errno.h>
#include <unistd.h>

#define CHUNK_BYTES (UINT64_C(64) << 20)

int seep_snapshot_read(int fd, void *to, uint64_t offset, uint64_t bytes)
{
    char *at = to;

    while (bytes > 0) {
        size_t want = bytes > CHUNK_BYTES ? CHUNK_BYTES : (size_t)bytes;
        ssize_t got = pread(fd, at, want, (off_t)offset);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got == 0 ? -ENODATA : -errno;
        }
        at += got;
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return 0;
}

/* A file system without SEEK_DATA says that everything is data. */
int seep_snapshot_read_sparse(int fd, void *to, uint64_t offset, uint64_t bytes)
{
    uint64_t end = offset + bytes;
    uint64_t at = offset;

    while (at < end) {
        off_t data = lseek(fd, (off_t)at, SEEK_DATA);
        off_t hole;
        int error;

        if (data < 0) {
            /* ENXIO: no data behind; whether the file still reaches so far
             * is for the caller to look. */
            return errno == ENXIO
                       ? 0
                       : seep_snapshot_read(fd, (char *)to + (at - offset), at,
                                            end - at);
        }
        if ((uint64_t)data >= end) {
            return 0;
        }
        hole = lseek(fd, data, SEEK_HOLE);
        if (hole <= data || (uint64_t)hole > end) {
            hole = (off_t)end;
        }
        error = seep_snapshot_read(fd, (char *)to + ((uint64_t)data - offset),
                                   (uint64_t)data, (uint64_t)(hole - data));
        if (error != 0) {
            return error;
        }
        at = (uint64_t)hole;
    }
    return 0;
}
