/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines of source out of a pack: see source.h.
 *
 * Invariant: each line that is kept has a file, a number and a text within the
 * bytes that were given.
 */
#include "reader/symbols/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES 4096U

/* @return how much of @key it takes */
static size_t key_of(const char *file, uint32_t line, char key[KEY_BYTES])
{
    size_t bytes = strnlen(file, KEY_BYTES - sizeof(line));

    memcpy(key, &line, sizeof(line));
    memcpy(key + sizeof(line), file, bytes);
    return sizeof(line) + bytes;
}

static int add(struct seep_sources *sources, const char *file, uint32_t line,
               const char *text)
{
    char key[KEY_BYTES];
    struct seep_store_entry *entry = seep_store_find(
        &sources->store, &sources->by_place, key, key_of(file, line, key));
    struct seep_source_line *lines =
        seep_list_grow(sources->lines, sources->count, sizeof(*lines));

    if (lines != NULL) {
        sources->lines = lines;
    }
    if (entry == NULL || lines == NULL) {
        return -ENOMEM;
    }
    if (entry->value == NULL) {
        entry->value = text;
        lines[sources->count++] = (struct seep_source_line){file, text, line};
    }
    return 0;
}

static int add_line(struct seep_sources *sources, const char *file, char *text)
{
    char *end;
    unsigned long line = strtoul(text, &end, 10);

    if (file == NULL || end == text || *end != ' ' || line == 0 ||
        line > UINT32_MAX || strlen(end + 1) >= SEEP_SOURCE_LINE_BYTES_MAX) {
        return 0;
    }
    return add(sources, file, (uint32_t)line, end + 1);
}

int seep_sources_parse(char *text, struct seep_sources *ret_sources)
{
    struct seep_sources sources = {.bytes = text};
    const char *file = NULL;
    char *rest = text;
    char *line;
    int error = 0;

    while (error == 0 && (line = strsep(&rest, "\n")) != NULL) {
        if (line[0] == '=') {
            file = line + 1;
        } else {
            error = add_line(&sources, file, line);
        }
    }
    if (error != 0) {
        sources.bytes = NULL; /* the caller's */
        seep_sources_fini(&sources);
        return error;
    }
    *ret_sources = sources;
    return 0;
}

int seep_sources_load(const struct seep_pack *pack,
                      struct seep_sources *ret_sources)
{
    const struct seep_pack_part *part =
        seep_pack_find(pack, SEEP_PACK_SOURCE, UINT32_MAX);
    void *text;
    int error = part == NULL ? 0 : seep_pack_inflate(pack, part, &text);

    if (part == NULL || error != 0) {
        return error;
    }
    error = seep_sources_parse(text, ret_sources);
    if (error != 0) {
        free(text);
    }
    return error;
}

void seep_sources_fini(struct seep_sources *sources)
{
    seep_store_table_fini(&sources->by_place);
    seep_store_fini(&sources->store);
    free(sources->lines);
    free(sources->bytes);
    *sources = (struct seep_sources){.bytes = NULL};
}

const char *seep_sources_find(struct seep_sources *sources, const char *file,
                              uint32_t line)
{
    char key[KEY_BYTES];
    const struct seep_store_entry *entry =
        sources->count == 0 || line == 0
            ? NULL
            : seep_store_find(NULL, &sources->by_place, key,
                              key_of(file, line, key));

    return entry != NULL ? entry->value : NULL;
}
