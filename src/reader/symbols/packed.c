/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names and lines of source out of a pack: see packed.h.
 *
 * Invariant: of what was opened every place and count stays inside of it, and
 * no text is longer than one that the wall lets through.
 */
#include "reader/symbols/packed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "reader/recording/store.h"

/*
 * Lines of source.
 *
 * Invariant: each line that is kept has a file, a number and a text within the
 * bytes that were given.
 */

#define LINE_KEY_BYTES 4096U

/* @return how much of @key it takes */
static size_t line_key_of(const char *file, uint32_t line,
                          char key[LINE_KEY_BYTES])
{
    size_t bytes = strnlen(file, LINE_KEY_BYTES - sizeof(line));

    memcpy(key, &line, sizeof(line));
    memcpy(key + sizeof(line), file, bytes);
    return sizeof(line) + bytes;
}

static int add_source(struct seep_sources *sources, const char *file,
                      uint32_t line, const char *text)
{
    char key[LINE_KEY_BYTES];
    struct seep_store_entry *entry = seep_store_find(
        &sources->store, &sources->by_place, key, line_key_of(file, line, key));
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
    return add_source(sources, file, (uint32_t)line, end + 1);
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

/* @param ret_sources  all zero where the pack has none */
static int load_sources(const struct seep_pack *pack,
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
    char key[LINE_KEY_BYTES];
    const struct seep_store_entry *entry =
        sources->count == 0 || line == 0
            ? NULL
            : seep_store_find(NULL, &sources->by_place, key,
                              line_key_of(file, line, key));

    return entry != NULL ? entry->value : NULL;
}

/* Names. */

struct seep_symbol_pack {
    void *bytes;
    const struct seep_packed_module *modules;
    const struct seep_packed_answer *answers;
    const struct seep_packed_frame *frames;
    const char *texts;
    struct seep_packed_names counts;
    struct seep_store store;
    struct seep_store_table by_module;
    struct seep_symbol_frame found[SEEP_PACKED_FRAMES_MAX];
    struct seep_sources sources;
};

/* Where each table stands, if they fill @size. */
static bool place(struct seep_symbol_pack *pack, size_t size)
{
    const struct seep_packed_names *counts = &pack->counts;
    const char *at = pack->bytes;
    uint64_t modules;
    uint64_t answers;
    uint64_t frames;

    if (size < sizeof(*counts)) {
        return false;
    }
    memcpy(&pack->counts, at, sizeof(*counts));
    modules = counts->module_count * (uint64_t)sizeof(*pack->modules);
    answers = counts->answer_count * (uint64_t)sizeof(*pack->answers);
    frames = counts->frame_count * (uint64_t)sizeof(*pack->frames);
    if (sizeof(*counts) + modules + answers + frames + counts->text_bytes !=
        size) {
        return false;
    }
    at += sizeof(*counts);
    pack->modules = (const void *)at;
    pack->answers = (const void *)(at + modules);
    pack->frames = (const void *)(at + modules + answers);
    pack->texts = at + modules + answers + frames;
    return true;
}

static bool check_texts(const struct seep_symbol_pack *pack)
{
    const char *at = pack->texts;
    const char *end = at + pack->counts.text_bytes;

    if (at == end || end[-1] != '\0') {
        return false;
    }
    while (at < end) {
        size_t length = strlen(at);

        if (length >= SEEP_PACKED_TEXT_BYTES_MAX) {
            return false;
        }
        at += length + 1;
    }
    return true;
}

static bool fits(uint32_t first, uint32_t count, uint32_t of)
{
    return first <= of && count <= of - first;
}

static bool check_tables(const struct seep_symbol_pack *pack)
{
    const struct seep_packed_names *counts = &pack->counts;

    for (uint32_t i = 0; i < counts->module_count; i++) {
        const struct seep_packed_module *module = &pack->modules[i];

        if (module->path >= counts->text_bytes ||
            module->build_id_bytes > SEEP_BUILD_ID_MAX || module->error > 0 ||
            module->error < -4095 || module->is_map > 1 ||
            !fits(module->first_answer, module->answer_count,
                  counts->answer_count)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < counts->answer_count; i++) {
        const struct seep_packed_answer *answer = &pack->answers[i];

        if (answer->frame_count == 0 ||
            answer->frame_count > SEEP_PACKED_FRAMES_MAX ||
            !fits(answer->first_frame, answer->frame_count,
                  counts->frame_count)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < counts->frame_count; i++) {
        if (pack->frames[i].function >= counts->text_bytes ||
            pack->frames[i].file >= counts->text_bytes) {
            return false;
        }
    }
    return true;
}

/* What tells a module from others: @return how much of @key it takes. */
#define KEY_BYTES (SEEP_PACKED_TEXT_BYTES_MAX + SEEP_BUILD_ID_MAX + 1)
static size_t key_of(const struct seep_symbol_module *module, bool is_map,
                     char key[KEY_BYTES])
{
    size_t id_bytes = module->build_id_bytes <= SEEP_BUILD_ID_MAX
                          ? module->build_id_bytes
                          : 0;
    size_t path_bytes = strnlen(module->path, SEEP_PACKED_TEXT_BYTES_MAX - 1);

    key[0] = (char)(is_map ? 'm' : (char)id_bytes);
    if (id_bytes > 0) {
        memcpy(key + 1, module->build_id, id_bytes);
    }
    memcpy(key + 1 + id_bytes, module->path, path_bytes);
    return 1 + id_bytes + path_bytes;
}

static int index_modules(struct seep_symbol_pack *pack)
{
    char key[KEY_BYTES];

    for (uint32_t i = 0; i < pack->counts.module_count; i++) {
        const struct seep_packed_module *module = &pack->modules[i];
        struct seep_symbol_module named = {pack->texts + module->path,
                                           module->build_id,
                                           module->build_id_bytes};
        struct seep_store_entry *entry =
            seep_store_find(&pack->store, &pack->by_module, key,
                            key_of(&named, module->is_map != 0, key));

        if (entry == NULL) {
            return -ENOMEM;
        }
        entry->value = entry->value == NULL ? module : entry->value;
    }
    return 0;
}

int seep_symbol_pack_open(void *bytes, size_t size,
                          struct seep_symbol_pack **ret_pack)
{
    struct seep_symbol_pack *pack = calloc(1, sizeof(*pack));
    int error = -ENOMEM;

    if (pack == NULL) {
        return error;
    }
    pack->bytes = bytes;
    error = place(pack, size) && check_texts(pack) && check_tables(pack)
                ? index_modules(pack)
                : -EBADMSG;
    if (error != 0) {
        pack->bytes = NULL; /* the caller's */
        seep_symbol_pack_close(pack);
        return error;
    }
    *ret_pack = pack;
    return 0;
}

int seep_symbol_pack_load(const struct seep_pack *from,
                          struct seep_symbol_pack **ret_pack)
{
    const struct seep_pack_part *part =
        seep_pack_find(from, SEEP_PACK_NAMES, UINT32_MAX);
    struct seep_symbol_pack *pack;
    void *bytes;
    int error = part == NULL ? -EBADMSG : seep_pack_inflate(from, part, &bytes);

    if (error != 0) {
        return error;
    }
    error = seep_symbol_pack_open(bytes, part->bytes, &pack);
    if (error != 0) {
        free(bytes);
        return error;
    }
    error = load_sources(from, &pack->sources);
    if (error != 0) {
        seep_symbol_pack_close(pack);
        return error;
    }
    *ret_pack = pack;
    return 0;
}

int seep_symbol_pack_share(const struct seep_pack *from,
                           struct seep_symbol_memory *memory,
                           struct seep_symbol_pack **ret_pack)
{
    struct seep_symbol_pack *opened = NULL;
    int error;

    if (memory->pack_hash == from->header.hash) {
        *ret_pack = memory->pack;
        return memory->pack == NULL ? -EBADMSG : 0;
    }
    error = seep_symbol_pack_load(from, &opened);
    if (error == 0 || error == -EBADMSG) {
        seep_symbol_pack_close(memory->pack);
        memory->pack = opened;
        memory->pack_hash = from->header.hash;
    }
    if (error == 0) {
        *ret_pack = opened;
    }
    return error;
}

struct seep_sources *seep_symbol_pack_sources(struct seep_symbol_pack *pack)
{
    return &pack->sources;
}

void seep_symbol_pack_close(struct seep_symbol_pack *pack)
{
    if (pack != NULL) {
        seep_sources_fini(&pack->sources);
        seep_store_table_fini(&pack->by_module);
        seep_store_fini(&pack->store);
        free(pack->bytes);
        free(pack);
    }
}

const struct seep_packed_module *
seep_symbol_pack_module(struct seep_symbol_pack *pack,
                        const struct seep_symbol_module *module, bool is_map)
{
    char key[KEY_BYTES];
    const struct seep_store_entry *entry = seep_store_find(
        NULL, &pack->by_module, key, key_of(module, is_map, key));

    return entry != NULL ? entry->value : NULL;
}

static struct seep_symbol_answer
answer_of(struct seep_symbol_pack *pack,
          const struct seep_packed_answer *answer)
{
    for (uint32_t i = 0; i < answer->frame_count; i++) {
        const struct seep_packed_frame *frame =
            &pack->frames[answer->first_frame + i];

        pack->found[i] = (struct seep_symbol_frame){
            .function = pack->texts + frame->function,
            .file = pack->texts + frame->file,
            .line = frame->line,
            .inlined = frame->inlined != 0,
        };
    }
    return (struct seep_symbol_answer){pack->found, answer->frame_count};
}

bool seep_symbol_pack_find(struct seep_symbol_pack *pack,
                           const struct seep_packed_module *module,
                           uint64_t offset,
                           struct seep_symbol_answer *ret_answer)
{
    const struct seep_packed_answer *first =
        &pack->answers[module->first_answer];
    size_t low = SEEP_SORTED_BELOW(first, module->answer_count, offset, offset);

    if (low == module->answer_count || first[low].offset != offset) {
        return false;
    }
    *ret_answer = answer_of(pack, &first[low]);
    return true;
}

bool seep_symbol_pack_next(struct seep_symbol_pack *pack, uint32_t *module,
                           uint32_t *answer, struct seep_packed_name *ret_name)
{
    while (*module < pack->counts.module_count) {
        const struct seep_packed_module *of = &pack->modules[*module];

        if (*answer < of->answer_count) {
            const struct seep_packed_answer *at =
                &pack->answers[of->first_answer + (*answer)++];

            *ret_name = (struct seep_packed_name){
                pack->texts + of->path, of, at->offset, answer_of(pack, at)};
            return true;
        }
        (*module)++;
        *answer = 0;
    }
    return false;
}
