/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files beside a recording: see beside.h.
 */
#include "reader/process/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/recording/open.h"
#include "seep/recording.h"

#define ID_BYTES 17

/* RECORDING, the suffix of @kind, and @more. To be freed; NULL: no memory. */
static char *path_of(const struct seep_beside_kind *kind,
                     const char *recording_path, const char *more)
{
    char *path = NULL;

    return asprintf(&path, "%s%s%s", recording_path, kind->suffix, more) < 0
               ? NULL
               : path;
}

/*
 * What tells a recording from another one of that name: the hash of its fixed
 * part, in hexadecimal. @return false, and "", if it cannot be read
 */
static bool recording_id(const char *recording_path, char id[ID_BYTES])
{
    uint64_t hash = 0;
    uint64_t size_bytes;
    int fd;
    bool known;

    id[0] = '\0';
    if (seep_open_file(recording_path, NULL, &fd, &size_bytes) != 0) {
        return false;
    }
    known = seep_snapshot_read(fd, &hash,
                               offsetof(struct seep_rec_header, fixed_hash),
                               sizeof(hash)) == 0;
    close(fd);
    if (known) {
        snprintf(id, ID_BYTES, "%016" PRIx64, hash);
    }
    return known;
}

json_t *seep_beside_header(const struct seep_beside_kind *kind,
                           const char *recording_path)
{
    char id[ID_BYTES];

    recording_id(recording_path, id);
    return json_pack("{s:s, s:s}", "schema", kind->schema, "recording", id);
}

json_t *seep_beside_text(const char *text)
{
    json_t *value = json_string(text);
    char *plain;

    if (value != NULL || (plain = strdup(text)) == NULL) {
        return value;
    }
    for (char *at = plain; *at != '\0'; at++) {
        *at = (unsigned char)*at < 0x80 ? *at : '?';
    }
    value = json_string(plain);
    free(plain);
    return value;
}

int seep_beside_put_line(FILE *file, json_t *value)
{
    int error = value == NULL ? -ENOMEM : 0;

    if (error == 0 && (json_dumpf(value, file, JSON_COMPACT) < 0 ||
                       fputc('\n', file) == EOF)) {
        error = -EIO;
    }
    json_decref(value);
    return error;
}

static int write_and_rename(const char *path, char *beside,
                            const char *recording_path,
                            int (*print)(FILE *file, const char *recording_path,
                                         const void *what),
                            const void *what)
{
    int fd = mkostemp(beside, O_CLOEXEC); /* O_EXCL, 0600 */
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    int error = file == NULL ? -errno : 0;

    if (fd < 0) {
        return error;
    }
    if (file == NULL) {
        close(fd);
    } else {
        error = print(file, recording_path, what);
        if (fclose(file) != 0 && error == 0) {
            error = -errno;
        }
    }
    if (error == 0 && rename(beside, path) != 0) {
        error = -errno;
    }
    if (error < 0) {
        unlink(beside);
    }
    return error;
}

int seep_beside_write(const struct seep_beside_kind *kind,
                      const char *recording_path,
                      int (*print)(FILE *file, const char *recording_path,
                                   const void *what),
                      const void *what)
{
    char *path = path_of(kind, recording_path, "");
    char *beside = path_of(kind, recording_path, ".XXXXXX");
    int error = -ENOMEM;

    if (path != NULL && beside != NULL) {
        error = write_and_rename(path, beside, recording_path, print, what);
    }
    free(beside);
    free(path);
    return error;
}

/* As it is now: it is replaced, never changed. */
static int read_all(int fd, size_t most_bytes, char **ret_bytes,
                    size_t *ret_length)
{
    struct stat status;
    char *bytes;
    ssize_t length;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size > most_bytes) {
        return -EBADMSG;
    }
    bytes = malloc((size_t)status.st_size + 1);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    length = seep_open_read(fd, bytes, 0, (uint64_t)status.st_size);
    if (length < 0) {
        free(bytes);
        return (int)length;
    }
    *ret_bytes = bytes;
    *ret_length = (size_t)length;
    return 0;
}

int seep_beside_read(const struct seep_beside_kind *kind,
                     const char *recording_path, char **ret_bytes,
                     size_t *ret_length)
{
    char *path = path_of(kind, recording_path, "");
    int error = -ENOMEM;

    if (path != NULL) {
        struct stat status;
        int fd = seep_open_regular(path, O_NOFOLLOW, &status);

        error =
            fd < 0 ? fd
                   : read_all(fd, kind->file_bytes_most, ret_bytes, ret_length);
        if (fd >= 0) {
            close(fd);
        }
    }
    free(path);
    return error;
}

int seep_beside_next(const struct seep_beside_kind *kind,
                     struct seep_beside_lines *lines, json_t **ret_value)
{
    const char *line = lines->next;
    const char *newline = memchr(line, '\n', (size_t)(lines->end - line));
    json_t *value;

    if (newline == NULL) {
        return 0;
    }
    lines->next = newline + 1;
    value = (size_t)(newline - line) > kind->line_bytes_most
                ? NULL
                : json_loadb(line, (size_t)(newline - line),
                             JSON_REJECT_DUPLICATES, NULL);
    if (value == NULL) {
        return -EBADMSG;
    }
    *ret_value = value;
    return 1;
}

/* "seep-looks/1" and "seep-looks/2" are files of one kind. */
static bool is_of_kind(const char *schema, const struct seep_beside_kind *kind)
{
    const char *slash = strchr(kind->schema, '/');

    return schema != NULL && strncmp(schema, kind->schema,
                                     (size_t)(slash + 1 - kind->schema)) == 0;
}

int seep_beside_check(const struct seep_beside_kind *kind,
                      struct seep_beside_lines *lines,
                      const char *recording_path)
{
    json_t *object = NULL;
    const char *schema;
    const char *recorded;
    char id[ID_BYTES];
    int error = seep_beside_next(kind, lines, &object) > 0 ? 0 : -EBADMSG;

    schema = json_string_value(json_object_get(object, "schema"));
    recorded = json_string_value(json_object_get(object, "recording"));
    if (error == 0 && !is_of_kind(schema, kind)) {
        error = -EBADMSG;
    } else if (error == 0 && strcmp(schema, kind->schema) != 0) {
        error = -EPROTO;
    } else if (error == 0 && recorded != NULL && recorded[0] != '\0' &&
               recording_id(recording_path, id) && strcmp(recorded, id) != 0) {
        error = -ENOENT;
    }
    json_decref(object);
    return error;
}
