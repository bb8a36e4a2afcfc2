/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of /proc/PID/smaps, or maps. Invariant: a mapping is kept when the
 * line that opens the next one was read, so one that was cut short has what was
 * read.
 */
#include "reader/look_smaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024U
/* A model of 140 GB, mapped read-only, is no leak, and costs a second. */
#define READ_ONLY_BYTES_MAX ((uint64_t)64 << 20)
/* What is larger is address space that was set aside. */
#define BYTES_MAX ((uint64_t)1 << 40)

void seep_smaps_init(struct seep_smaps *smaps, enum seep_smaps_kind kind)
{
    memset(smaps, 0, offsetof(struct seep_smaps, name));
    smaps->kind = kind;
    smaps->carried_length = 0;
}

void seep_smaps_fini(struct seep_smaps *smaps)
{
    for (size_t i = 0; i < smaps->count; i++) {
        free(smaps->mappings[i].name);
    }
    free(smaps->mappings);
    seep_smaps_init(smaps, smaps->kind);
}

static int make_room(struct seep_smaps *smaps)
{
    size_t capacity = smaps->capacity * 2 + 64;
    struct seep_look_mapping *mappings;

    if (smaps->count < smaps->capacity) {
        return 0;
    }
    mappings = realloc(smaps->mappings, capacity * sizeof(*mappings));
    if (mappings == NULL) {
        return -ENOMEM;
    }
    smaps->mappings = mappings;
    smaps->capacity = capacity;
    return 0;
}

static int close_mapping(struct seep_smaps *smaps)
{
    struct seep_look_mapping *open = &smaps->open;
    int error;

    if (!smaps->is_open) {
        return 0;
    }
    smaps->is_open = false;
    bool kept = smaps->kind == SEEP_MAPS
                    ? smaps->is_worth
                    : open->rss_bytes > 0 || open->swap_bytes > 0;
    if (!kept || smaps->count == SEEP_SMAPS_LIMIT) {
        return 0;
    }
    error = make_room(smaps);
    if (error == 0) {
        open->name = strdup(smaps->name);
        error = open->name == NULL ? -ENOMEM : 0;
    }
    if (error == 0) {
        smaps->mappings[smaps->count++] = *open;
    }
    return error;
}

static int digit_of(char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* @return past the digits, NULL if there are none */
static const char *read_address(const char *at, const char *end,
                                uint64_t *ret_address)
{
    const char *first = at;
    uint64_t address = 0;

    while (at < end && at - first < 16 && digit_of(*at) >= 0) {
        address = address << 4 | (uint64_t)digit_of(*at);
        at++;
    }
    *ret_address = address;
    return at == first ? NULL : at;
}

static const char *skip(const char *at, const char *end, bool blanks)
{
    while (at < end && (*at == ' ') == blanks) {
        at++;
    }
    return at;
}

static const char *read_number(const char *at, const char *end,
                               uint64_t *ret_number)
{
    uint64_t number = 0;

    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (uint64_t)(*at - '0');
    }
    *ret_number = number;
    return at;
}

/* After permissions, offset and device: inode and name. */
static void take_file(struct seep_smaps *smaps, const char *at, const char *end)
{
    for (int field = 0; field < 3; field++) {
        at = skip(skip(at, end, true), end, false);
    }
    at = read_number(skip(at, end, true), end, &smaps->open.inode);
    at = skip(at, end, true);
    size_t length = (size_t)(end - at);
    length = length < sizeof(smaps->name) ? length : sizeof(smaps->name) - 1;
    memcpy(smaps->name, at, length);
    smaps->name[length] = '\0';
}

/* @permissions: "rw-p". Memory of a device is not the process's. */
static bool can_grow(const struct seep_smaps *smaps, const char *permissions)
{
    uint64_t bytes = smaps->open.end - smaps->open.start;

    if (strncmp(permissions, "---", 3) == 0 || bytes > BYTES_MAX) {
        return false;
    }
    if (permissions[1] != 'w' && smaps->open.inode != 0 &&
        bytes > READ_ONLY_BYTES_MAX) {
        return false;
    }
    return strncmp(smaps->name, "/dev/", 5) != 0 ||
           strncmp(smaps->name, "/dev/shm/", 9) == 0 ||
           strncmp(smaps->name, "/dev/zero", 9) == 0;
}

/* "55d0-55e0 r--p 00000000 fe:00 247498    /usr/bin/head" */
static bool open_mapping(struct seep_smaps *smaps, const char *line,
                         const char *end, int *ret_error)
{
    uint64_t start;
    uint64_t stop;
    const char *at = read_address(line, end, &start);

    if (at == NULL || at == end || *at != '-') {
        return false;
    }
    at = read_address(at + 1, end, &stop);
    if (at == NULL || end - at < 5 || *at != ' ' || stop <= start) {
        return false;
    }
    *ret_error = close_mapping(smaps);
    smaps->open = (struct seep_look_mapping){.start = start, .end = stop};
    smaps->is_open = true;
    take_file(smaps, at, end);
    smaps->is_worth = can_grow(smaps, at + 1);
    return true;
}

static void take_value(const char *line, const char *end, const char *key,
                       uint64_t *ret_bytes)
{
    size_t length = strlen(key);
    uint64_t value;

    if ((size_t)(end - line) > length && memcmp(line, key, length) == 0) {
        read_number(skip(line + length, end, true), end, &value);
        *ret_bytes = value * KIB;
    }
}

static int take_line(struct seep_smaps *smaps, const char *line, size_t length)
{
    const char *end = line + length;
    int error = 0;

    if (length == 0 || open_mapping(smaps, line, end, &error) ||
        !smaps->is_open) {
        return error;
    }
    switch (line[0]) {
    case 'R':
        take_value(line, end, "Rss:", &smaps->open.rss_bytes);
        break;
    case 'A':
        take_value(line, end, "Anonymous:", &smaps->open.anonymous_bytes);
        break;
    case 'S':
        take_value(line, end, "Swap:", &smaps->open.swap_bytes);
        break;
    default:
        break;
    }
    return 0;
}

/* Keep what stands before the newline, as far as there is room. */
static void carry(struct seep_smaps *smaps, const char *text, size_t length)
{
    size_t room = sizeof(smaps->carried) - 1 - smaps->carried_length;

    length = length < room ? length : room;
    memcpy(smaps->carried + smaps->carried_length, text, length);
    smaps->carried_length += length;
}

int seep_smaps_feed(struct seep_smaps *smaps, const char *text, size_t length)
{
    int error = 0;

    while (error == 0 && length > 0) {
        const char *newline = memchr(text, '\n', length);
        size_t line = newline == NULL ? length : (size_t)(newline - text);

        if (newline == NULL) {
            carry(smaps, text, line);
            return 0;
        }
        if (smaps->carried_length > 0 || line >= sizeof(smaps->carried)) {
            carry(smaps, text, line);
            error = take_line(smaps, smaps->carried, smaps->carried_length);
            smaps->carried_length = 0;
        } else {
            error = take_line(smaps, text, line);
        }
        text += line + 1;
        length -= line + 1;
    }
    return error;
}

int seep_smaps_finish(struct seep_smaps *smaps)
{
    smaps->carried_length = 0; /* half a line says nothing */
    return close_mapping(smaps);
}
