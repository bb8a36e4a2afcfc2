/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A small text file that a user wrote, read whole.
 *
 * Errors: 0 or negative errno; ret_* untouched on failure, save the refusal,
 * which is written on failure only.
 */
#ifndef SEEP_READER_READ_TEXT_H
#define SEEP_READER_READ_TEXT_H

#include <stddef.h>

#include "reader/report.h"

#define SEEP_READ_TEXT_BYTES (4U << 20) /* larger is no file of this kind */

/**
 * @param remedy    what to give instead when it is no such file
 * @param ret_text  NUL-terminated, without another NUL; free() it
 * @return -EFBIG; -EBADMSG for bytes that are no text, and for
 *         a file that grows; an error of open or read
 */
int seep_read_text(const char *path, const char *remedy,
                   struct seep_refusal *ret_refusal, char **ret_text,
                   size_t *ret_length);

#endif
