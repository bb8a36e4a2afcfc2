/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of looks, written. Invariant: under its name there is always a
 * whole one, of ours: it is made beside and renamed, and what stood there, a
 * link as well, is replaced and never written to.
 */
#include "reader/look_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "reader/look.h"
#include "seep/recording.h"

static char *append(const char *path, const char *suffix)
{
    size_t bytes = strlen(path) + strlen(suffix) + 1;
    char *text = malloc(bytes);

    if (text != NULL) {
        snprintf(text, bytes, "%s%s", path, suffix);
    }
    return text;
}

char *seep_look_file_path(const char *recording_path)
{
    return append(recording_path, SEEP_LOOK_SUFFIX);
}

bool seep_look_file_id(const char *recording_path, char id[SEEP_LOOK_ID_BYTES])
{
    uint64_t hash = 0;
    struct stat status;
    int fd = open(recording_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    id[0] = '\0';
    if (fd < 0) {
        return false;
    }
    bool known = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                 pread(fd, &hash, sizeof(hash),
                       offsetof(struct seep_rec_header, fixed_hash)) ==
                     (ssize_t)sizeof(hash);
    close(fd);
    if (known) {
        snprintf(id, SEEP_LOOK_ID_BYTES, "%016" PRIx64, hash);
    }
    return known;
}

/* A path need not be UTF-8. */
static json_t *make_name(const char *name)
{
    json_t *value = json_string(name);
    char *plain;

    if (value != NULL || (plain = strdup(name)) == NULL) {
        return value;
    }
    for (char *at = plain; *at != '\0'; at++) {
        *at = (unsigned char)*at < 0x80 ? *at : '?';
    }
    value = json_string(plain);
    free(plain);
    return value;
}

static json_t *make_mapping(const struct seep_look_mapping *mapping)
{
    char range[40];

    snprintf(range, sizeof(range), "%" PRIx64 "-%" PRIx64, mapping->start,
             mapping->end);
    return json_pack("{s:s, s:I, s:I, s:I, s:o}", "range", range, "rss_bytes",
                     (json_int_t)mapping->rss_bytes, "anonymous_bytes",
                     (json_int_t)mapping->anonymous_bytes, "swap_bytes",
                     (json_int_t)mapping->swap_bytes, "name",
                     make_name(mapping->name));
}

static json_t *make_look(const struct seep_look *look)
{
    json_t *mappings = json_array();

    for (size_t i = 0; i < look->mapping_count; i++) {
        json_array_append_new(mappings, make_mapping(&look->mappings[i]));
    }
    return json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
                     "t_s", look->t_s, "rss_bytes", (json_int_t)look->rss_bytes,
                     "anonymous_bytes", (json_int_t)look->anonymous_bytes,
                     "shared_bytes", (json_int_t)look->shared_bytes,
                     "swap_bytes", (json_int_t)look->swap_bytes, "cgroup_bytes",
                     (json_int_t)look->cgroup_bytes, "cgroup_limit_bytes",
                     (json_int_t)look->cgroup_limit_bytes, "available_bytes",
                     (json_int_t)look->available_bytes, "other_rss_bytes",
                     (json_int_t)look->other_rss_bytes, "mappings", mappings);
}

/* Takes @value over. */
static int put_line(FILE *file, json_t *value)
{
    int error = value == NULL ? -ENOMEM : 0;

    if (error == 0 && (json_dumpf(value, file, JSON_COMPACT) < 0 ||
                       fputc('\n', file) == EOF)) {
        error = -EIO;
    }
    json_decref(value);
    return error;
}

static int put_all(FILE *file, const char *recording_path,
                   const struct seep_looks *looks)
{
    char id[SEEP_LOOK_ID_BYTES];
    double last_s = looks->count > 0 ? looks->looks[looks->count - 1].t_s : 0;

    seep_look_file_id(recording_path, id);
    int error =
        put_line(file, json_pack("{s:s, s:s, s:I, s:f}", "schema",
                                 SEEP_LOOK_SCHEMA, "recording", id, "looks",
                                 (json_int_t)looks->count, "last_s", last_s));
    for (size_t i = 0; error == 0 && i < looks->count; i++) {
        error = put_line(file, make_look(&looks->looks[i]));
    }
    return error;
}

static int write_beside(const char *path, char *beside,
                        const char *recording_path,
                        const struct seep_looks *looks)
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
        error = put_all(file, recording_path, looks);
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

int seep_looks_write(const char *recording_path, const struct seep_looks *looks)
{
    char *path = seep_look_file_path(recording_path);
    char *beside = path == NULL ? NULL : append(path, ".XXXXXX");
    int error = -ENOMEM;

    if (beside != NULL) {
        error = write_beside(path, beside, recording_path, looks);
    }
    free(beside);
    free(path);
    return error;
}
