/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Opening a file that may be a recording, and the words when it is none.
 *
 * Errors: 0 or negative errno; ret_* untouched on failure, save the refusal,
 * which is written on failure only.
 */
#ifndef SEEP_READER_RECORDING_OPEN_H
#define SEEP_READER_RECORDING_OPEN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "format/layout.h"
#include "reader/report/report.h"
#include "seep/recording.h"

/**
 * Open @path for reading if it is a regular file, and look at nothing else.
 *
 * @param flags  O_NOFOLLOW or 0
 * @return the descriptor, -ENOTSUP with @ret_status for what is no regular
 * file, or negative errno
 */
int seep_open_regular(const char *path, int flags, struct stat *ret_status);

/**
 * Open the regular file at @path for reading; a FIFO or a device is refused
 * without waiting for it.
 *
 * @param ret_refusal  may be NULL, here and below
 */
int seep_open_file(const char *path, struct seep_refusal *ret_refusal,
                   int *ret_fd, uint64_t *ret_size_bytes);

bool seep_open_is_folder(const char *path);

/** Paths, all 0 at first; give them to seep_report_list_free(). */
struct seep_open_list {
    char **paths; /* NULL-terminated, where there are any */
    size_t count;
};

/** Takes @path over, which may be NULL. @return 0 or -ENOMEM */
int seep_open_list_add(struct seep_open_list *list, char *path);

/** Say why not. @return @error */
int seep_open_refuse(struct seep_refusal *ret_refusal, int error,
                     const char *reason, const char *remedy);

/** The same for a negative errno. @return @error */
int seep_open_refuse_errno(struct seep_refusal *ret_refusal, int error);

/** The same for one of reading: -ENODATA is a recording that was cut short. */
int seep_open_refuse_read(struct seep_refusal *ret_refusal, int error);

/** The same for the answer of seep_check(), which is not "valid". */
int seep_open_refuse_check(struct seep_refusal *ret_refusal,
                           enum seep_recording_check result);

/*
 * Bytes from a file that may change or shrink meanwhile into memory.
 */

/**
 * Private memory for the recording @fd of @size_bytes, zero but for its first
 * page, which is there and valid.
 *
 * @param ret_bytes  to be given to munmap()
 */
int seep_open_copy(int fd, uint64_t size_bytes,
                   struct seep_refusal *ret_refusal, void **ret_bytes,
                   size_t *ret_mapped_bytes);

/** Only its first page, into the first of @mapped_bytes that are there. */
int seep_open_header(int fd, uint64_t size_bytes,
                     struct seep_refusal *ret_refusal, void *bytes,
                     size_t mapped_bytes);

/** Up to @bytes, as many as there are. @return how many, or negative errno */
ssize_t seep_open_read(int fd, void *to, uint64_t offset, uint64_t bytes);

/**
 * Read exactly @bytes at @offset.
 * @return 0; -ENODATA when the file ends before; else -errno of pread()
 */
int seep_open_read_whole(int fd, void *to, uint64_t offset, uint64_t bytes);

/** The same of a file that is being written: what is read next is not older. */
static inline int seep_snapshot_read(int fd, void *to, uint64_t offset,
                                     uint64_t bytes)
{
    int error = seep_open_read_whole(fd, to, offset, bytes);

    /* Acquire: pairs with the release of seep_fold_try_lock(),
     * seep_fold_unlock() and seep_ring_push(). */
    atomic_thread_fence(memory_order_acquire);
    return error;
}

/** Write all of @bytes at @offset. @return 0 or -errno */
int seep_open_write(int fd, const void *from, uint64_t offset, uint64_t bytes);

#endif
