/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Files beside a recording, RECORDING.SUFFIX, of what was seen of its process
 * from outside: text, one JSON object a line, the first a header with "schema"
 * and "recording", the id of the recording.
 *
 * Under such a name there is always a whole file, of ours: it is made beside
 * and renamed, 0600, and what stood there, a link as well, is replaced and
 * never written to. Who reads one believes nothing of it.
 *
 * Errors: 0 or negative errno; ret_* untouched on failure. Threads: any.
 */
#ifndef SEEP_READER_PROCESS_BESIDE_H
#define SEEP_READER_PROCESS_BESIDE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct seep_beside_kind {
    const char *suffix;     /* ".looks" */
    const char *schema;     /* "seep-looks/1" */
    size_t file_bytes_most; /* of a file that is read */
    size_t line_bytes_most; /* JSON takes up to thirty times that in memory */
};

/** Write the file of @kind beside @recording_path, by @print. */
int seep_beside_write(const struct seep_beside_kind *kind,
                      const char *recording_path,
                      int (*print)(FILE *file, const char *recording_path,
                                   const void *what),
                      const void *what);

/** The whole file, as it is now. -ENOENT: there is none; -ENOTSUP: it is no
 * regular file; -EBADMSG: it is too large. @param ret_bytes  to be freed */
int seep_beside_read(const struct seep_beside_kind *kind,
                     const char *recording_path, char **ret_bytes,
                     size_t *ret_length);

/** The header, to which a writer adds; NULL without memory. */
json_t *seep_beside_header(const struct seep_beside_kind *kind,
                           const char *recording_path);

/** Takes @value over. @return 0; -ENOMEM: it is NULL; -EIO */
int seep_beside_put_line(FILE *file, json_t *value);

/** A text that need not be UTF-8, as JSON; NULL without memory. */
json_t *seep_beside_text(const char *text);

/** The lines of such a file; start from its bytes. A last line without its
 * newline is one that was being written, and is left out. */
struct seep_beside_lines {
    const char *next;
    const char *end;
};

/** The next line as JSON, to be given back. @return 1; 0: there is none;
 * -EBADMSG */
int seep_beside_next(const struct seep_beside_kind *kind,
                     struct seep_beside_lines *lines, json_t **ret_value);

/** Take the header. @return -EBADMSG; -EPROTO: of another version; -ENOENT: of
 * another recording, which had this name before */
int seep_beside_check(const struct seep_beside_kind *kind,
                      struct seep_beside_lines *lines,
                      const char *recording_path);

#endif
