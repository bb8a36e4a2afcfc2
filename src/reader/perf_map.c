/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading a perf map once, whole, into a sorted index.
 *
 * Invariant: names point into the one text that was read; every one ends
 * inside it.
 */
#include "reader/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/symbolise_index.h"

/* Node writes about 100 bytes a function; a hundred megabytes are no map. */
#define TEXT_BYTES_MAX ((size_t)64 << 20)

struct seep_perf_map {
    char *text;
    struct seep_symbolise_index index;
};

static int open_checked(const char *path, size_t *ret_bytes)
{
    struct stat status;
    int fd =
        open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);

    if (fd < 0) {
        return -errno;
    }
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        (status.st_uid != geteuid() && status.st_uid != 0)) {
        close(fd);
        return -EPERM;
    }
    *ret_bytes = (uint64_t)status.st_size < TEXT_BYTES_MAX
                     ? (size_t)status.st_size
                     : TEXT_BYTES_MAX;
    return fd;
}

/* The file may still grow or be cut: what is there of the size seen first. */
static size_t read_all(int fd, char *text, size_t bytes)
{
    size_t done_bytes = 0;

    while (done_bytes < bytes) {
        ssize_t got = read(fd, text + done_bytes, bytes - done_bytes);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        done_bytes += (size_t)got;
    }
    return done_bytes;
}

static bool parse_number(char **at, uint64_t *ret_number)
{
    char *end;
    int saved_errno = errno;
    bool is_hexadecimal = strspn(*at, "0123456789abcdefABCDEF") > 0;

    errno = 0;
    *ret_number = is_hexadecimal ? strtoull(*at, &end, 16) : 0;
    is_hexadecimal = is_hexadecimal && errno == 0 && *end == ' ';
    errno = saved_errno;
    if (is_hexadecimal) {
        *at = end + strspn(end, " ");
    }
    return is_hexadecimal;
}

/* @sequence: a later line has the lower class and so wins. */
static int parse_line(struct seep_perf_map *map, char *line, uint32_t sequence)
{
    struct seep_symbolise_range range = {.class = UINT32_MAX - sequence};
    uint64_t size_bytes;
    char *at = line;

    if (!parse_number(&at, &range.start) || !parse_number(&at, &size_bytes) ||
        *at == '\0' ||
        __builtin_add_overflow(range.start, size_bytes, &range.end)) {
        return 0;
    }
    range.value = (uint64_t)(at - map->text);
    return seep_symbolise_index_add(&map->index, &range);
}

static int parse(struct seep_perf_map *map, size_t bytes)
{
    char *end = map->text + bytes;
    uint32_t sequence = 0;
    int result = 0;

    for (char *line = map->text; line < end && result == 0;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));

        if (stop == NULL) {
            stop = end;
        }
        *stop = '\0';
        result = parse_line(map, line, sequence++);
        line = stop + 1;
    }
    return result != 0 ? result : seep_symbolise_index_seal(&map->index);
}

int seep_perf_map_open(const char *path, struct seep_perf_map **ret_map)
{
    size_t bytes = 0;
    int fd = open_checked(path, &bytes);
    struct seep_perf_map *map;
    int result;

    if (fd < 0) {
        return fd;
    }
    map = calloc(1, sizeof(*map));
    if (map != NULL) {
        map->text = malloc(bytes + 1);
    }
    if (map == NULL || map->text == NULL) {
        close(fd);
        seep_perf_map_close(map);
        return -ENOMEM;
    }
    bytes = read_all(fd, map->text, bytes);
    close(fd);
    result = parse(map, bytes);
    if (result != 0) {
        seep_perf_map_close(map);
        return result;
    }
    *ret_map = map;
    return 0;
}

const char *seep_perf_map_find(const struct seep_perf_map *map,
                               uint64_t address)
{
    const struct seep_symbolise_range *range =
        seep_symbolise_index_find(&map->index, address);

    return range != NULL ? map->text + range->value : NULL;
}

void seep_perf_map_close(struct seep_perf_map *map)
{
    if (map != NULL) {
        seep_symbolise_index_fini(&map->index);
        free(map->text);
        free(map);
    }
}
