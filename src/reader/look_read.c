/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of looks, read. Invariant: nothing of it is believed: what is given
 * out is finite, not negative, in order, and bounded in number and length.
 *
 * A last line without its newline is one that was being written, and is left
 * out; any other fault refuses the file as a whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "reader/look.h"
#include "reader/look_file.h"

#define FILE_BYTES_MAX ((size_t)64 << 20)
/* JSON takes up to thirty times its bytes in memory. */
#define LINE_BYTES_MAX ((size_t)2 << 20)
#define NAME_BYTES_MAX 4096U
#define SIZE_BYTES_MAX ((json_int_t)1 << 55) /* 256 of them are a word */
#define TIME_S_MAX 1e11

struct cursor {
    const char *at;
    const char *end;
};

/* @return false at the end, of whole lines */
static bool next_line(struct cursor *cursor, const char **ret_line,
                      size_t *ret_length)
{
    size_t left = (size_t)(cursor->end - cursor->at);
    const char *newline = memchr(cursor->at, '\n', left);

    if (newline == NULL) {
        return false;
    }
    *ret_line = cursor->at;
    *ret_length = (size_t)(newline - cursor->at);
    cursor->at = newline + 1;
    return true;
}

static json_t *parse(const char *line, size_t length)
{
    json_t *value;

    if (length > LINE_BYTES_MAX) {
        return NULL;
    }
    value = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    if (value != NULL && !json_is_object(value)) {
        json_decref(value);
        return NULL;
    }
    return value;
}

/* A size that is not there is not known: 0. */
static bool take_size(const json_t *object, const char *key,
                      uint64_t *ret_bytes)
{
    const json_t *value = json_object_get(object, key);

    if (value == NULL) {
        return true;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > SIZE_BYTES_MAX) {
        return false;
    }
    *ret_bytes = (uint64_t)json_integer_value(value);
    return true;
}

/* "7f00-7f10", small digits only */
static bool take_range(const json_t *object, struct seep_look_mapping *mapping)
{
    const char *text = json_string_value(json_object_get(object, "range"));
    uint64_t ends[2] = {0, 0};

    for (int i = 0; text != NULL && i < 2; i++) {
        size_t digits = strspn(text, "0123456789abcdef");
        if (digits == 0 || digits > 16 || text[digits] != (i == 0 ? '-' : 0)) {
            return false;
        }
        ends[i] = strtoull(text, NULL, 16);
        text += digits + 1;
    }
    mapping->start = ends[0];
    mapping->end = ends[1];
    return text != NULL && ends[0] < ends[1];
}

static bool take_mapping(const json_t *object,
                         struct seep_look_mapping *mapping)
{
    const char *name = json_string_value(json_object_get(object, "name"));

    if (!json_is_object(object) || name == NULL ||
        strlen(name) > NAME_BYTES_MAX || !take_range(object, mapping) ||
        !take_size(object, "rss_bytes", &mapping->rss_bytes) ||
        !take_size(object, "anonymous_bytes", &mapping->anonymous_bytes) ||
        !take_size(object, "swap_bytes", &mapping->swap_bytes)) {
        return false;
    }
    mapping->name = strdup(name);
    return mapping->name != NULL;
}

static bool take_mappings(const json_t *array, struct seep_look *look)
{
    size_t count = json_array_size(array);

    if (!json_is_array(array) || count > SEEP_LOOK_MAPPINGS) {
        return false;
    }
    look->mappings = calloc(count + 1, sizeof(*look->mappings));
    for (size_t i = 0; look->mappings != NULL && i < count; i++) {
        struct seep_look_mapping *mapping = &look->mappings[i];
        if (!take_mapping(json_array_get(array, i), mapping)) {
            return false;
        }
        look->mapping_count++;
        if (i > 0 && mapping->start < look->mappings[i - 1].end) {
            return false;
        }
    }
    return look->mappings != NULL;
}

static bool take_look(const json_t *object, struct seep_look *look)
{
    const json_t *time = json_object_get(object, "t_s");

    look->t_s = json_number_value(time);
    return json_is_number(time) && look->t_s >= 0 && look->t_s <= TIME_S_MAX &&
           take_size(object, "rss_bytes", &look->rss_bytes) &&
           take_size(object, "anonymous_bytes", &look->anonymous_bytes) &&
           take_size(object, "shared_bytes", &look->shared_bytes) &&
           take_size(object, "swap_bytes", &look->swap_bytes) &&
           take_size(object, "cgroup_bytes", &look->cgroup_bytes) &&
           take_size(object, "cgroup_limit_bytes", &look->cgroup_limit_bytes) &&
           take_size(object, "available_bytes", &look->available_bytes) &&
           take_size(object, "other_rss_bytes", &look->other_rss_bytes) &&
           take_mappings(json_object_get(object, "mappings"), look);
}

static int add_line(const char *line, size_t length, struct seep_looks *looks)
{
    struct seep_look look = {0};
    json_t *object = parse(line, length);
    int error = -EBADMSG;

    if (object != NULL && looks->count < SEEP_LOOK_LIMIT &&
        take_look(object, &look)) {
        error = seep_looks_add(looks, &look);
    }
    seep_look_fini(&look);
    json_decref(object);
    return error == -EINVAL ? -EBADMSG : error;
}

/* -ENOENT: these are of another recording, which had this name before. */
static int check_header(const char *line, size_t length,
                        const char *recording_path)
{
    json_t *object = parse(line, length);
    const char *schema = json_string_value(json_object_get(object, "schema"));
    const char *recorded =
        json_string_value(json_object_get(object, "recording"));
    char id[SEEP_LOOK_ID_BYTES];
    int error = 0;

    if (schema == NULL || strncmp(schema, "seep-looks/", 11) != 0) {
        error = -EBADMSG;
    } else if (strcmp(schema, SEEP_LOOK_SCHEMA) != 0) {
        error = -EPROTO;
    } else if (recorded != NULL && recorded[0] != '\0' &&
               seep_look_file_id(recording_path, id) &&
               strcmp(recorded, id) != 0) {
        error = -ENOENT;
    }
    json_decref(object);
    return error;
}

int seep_look_file_parse(const char *bytes, size_t length,
                         const char *recording_path,
                         struct seep_looks *ret_looks)
{
    struct cursor cursor = {bytes, bytes + length};
    struct seep_looks looks = {0};
    const char *line;
    size_t line_length;
    int error = -EBADMSG;

    if (next_line(&cursor, &line, &line_length)) {
        error = check_header(line, line_length, recording_path);
    }
    while (error == 0 && next_line(&cursor, &line, &line_length)) {
        error = add_line(line, line_length, &looks);
    }
    if (error < 0) {
        seep_looks_fini(&looks);
        return error;
    }
    *ret_looks = looks;
    return 0;
}

/* The whole file, as it is now: it is replaced, never changed. */
static int load(int fd, char **ret_bytes, size_t *ret_length)
{
    struct stat status;
    size_t length = 0;

    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    if (!S_ISREG(status.st_mode) || status.st_size < 0 ||
        (size_t)status.st_size > FILE_BYTES_MAX) {
        return -EBADMSG;
    }
    size_t bytes = (size_t)status.st_size;
    char *text = malloc(bytes + 1);
    if (text == NULL) {
        return -ENOMEM;
    }
    while (length < bytes) {
        ssize_t got = read(fd, text + length, bytes - length);
        if (got < 0 && errno != EINTR) {
            int error = -errno;
            free(text);
            return error;
        }
        if (got == 0) {
            break;
        }
        length += got < 0 ? 0 : (size_t)got;
    }
    *ret_bytes = text;
    *ret_length = length;
    return 0;
}

int seep_looks_read(const char *recording_path, struct seep_looks *ret_looks)
{
    char *path = seep_look_file_path(recording_path);
    char *bytes = NULL;
    size_t length = 0;

    if (path == NULL) {
        return -ENOMEM;
    }
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int error = fd < 0 ? -errno : 0;
    free(path);
    if (error < 0) {
        return error;
    }
    error = load(fd, &bytes, &length);
    close(fd);
    if (error == 0) {
        error = seep_look_file_parse(bytes, length, recording_path, ret_looks);
    }
    free(bytes);
    return error;
}
