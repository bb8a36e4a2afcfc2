/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Opening a file that may be a recording, and the words when it is none.
 *
 * Errors: 0 or negative errno; ret_* untouched on failure, save the refusal,
 * which is written on failure only.
 */
#ifndef SEEP_READER_OPEN_H
#define SEEP_READER_OPEN_H

#include <stdint.h>

#include "format/check.h"
#include "reader/report.h"

/**
 * Open the regular file at @path for reading; a FIFO or a device is refused
 * without waiting for it.
 *
 * @param ret_refusal  may be NULL, here and below
 */
int seep_open_file(const char *path, struct seep_refusal *ret_refusal,
                   int *ret_fd, uint64_t *ret_size_bytes);

/** Say why not. @return @error */
int seep_open_refuse(struct seep_refusal *ret_refusal, int error,
                     const char *reason, const char *remedy);

/** The same for a negative errno. @return @error */
int seep_open_refuse_errno(struct seep_refusal *ret_refusal, int error);

/** The same for the answer of seep_check(), which is not "valid". */
int seep_open_refuse_check(struct seep_refusal *ret_refusal,
                           enum seep_check_result result);

#endif
