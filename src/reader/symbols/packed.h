/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Names that were looked up when recordings were packed: of each module, by
 * offset, what seep_symboliser_resolve() said there; and lines of source.
 *
 * Hostile input: all of it is checked when it is opened.
 *
 * Errors: 0 or negative errno; ret_* untouched on failure. Threads: one at a
 * time.
 */
#ifndef SEEP_READER_SYMBOLS_PACKED_H
#define SEEP_READER_SYMBOLS_PACKED_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/recording/pack.h"
#include "reader/recording/store.h"
#include "reader/symbols/names.h"
#include "seep/recording.h"

/** A text is a place in the texts, which stand last and end with a 0. */
struct seep_packed_names {
    uint32_t module_count;
    uint32_t answer_count;
    uint32_t frame_count;
    uint32_t text_bytes;
};

struct seep_packed_module {
    uint32_t path;
    uint32_t build_id_bytes; /* 0: none was recorded */
    uint8_t build_id[SEEP_BUILD_ID_MAX];
    int32_t error;   /* why its names were given up; 0: they were not */
    uint32_t is_map; /* 1: it is a JIT's map; offsets are addresses */
    uint32_t first_answer;
    uint32_t answer_count;
};

/** Of a module by ascending offset. */
struct seep_packed_answer {
    uint64_t offset;
    uint32_t first_frame;
    uint32_t frame_count; /* 1 to SEEP_PACKED_FRAMES_MAX */
};

struct seep_packed_frame {
    uint32_t function;
    uint32_t file;
    uint32_t line;
    uint32_t inlined; /* 1: into the next frame */
};

static_assert(sizeof(struct seep_packed_names) == 16, "format");
static_assert(sizeof(struct seep_packed_module) == 56, "format");
static_assert(sizeof(struct seep_packed_answer) == 16, "format");
static_assert(sizeof(struct seep_packed_frame) == 16, "format");

#define SEEP_PACKED_FRAMES_MAX 64U
#define SEEP_PACKED_TEXT_BYTES_MAX 8193U /* with its 0 */

struct seep_sources;
struct seep_symbol_pack;

/** @param bytes  aligned to 8; taken over on success, to be freed */
int seep_symbol_pack_open(void *bytes, size_t size,
                          struct seep_symbol_pack **ret_pack);
/** Those of @from, and its lines of source. */
int seep_symbol_pack_load(const struct seep_pack *from,
                          struct seep_symbol_pack **ret_pack);
/** The same once for all recordings of a pack: they are @memory's.
 * @return -EBADMSG also for the next recording */
int seep_symbol_pack_share(const struct seep_pack *from,
                           struct seep_symbol_memory *memory,
                           struct seep_symbol_pack **ret_pack);
/** NULL is fine. */
void seep_symbol_pack_close(struct seep_symbol_pack *pack);

/** Without any where there are none. */
struct seep_sources *seep_symbol_pack_sources(struct seep_symbol_pack *pack);

/** Its module, whose .path is ""; NULL: nothing is known of it. */
const struct seep_packed_module *
seep_symbol_pack_module(struct seep_symbol_pack *pack,
                        const struct seep_symbol_module *module, bool is_map);

/**
 * @param ret_answer  valid until the next call
 * @return false: it was not looked up, or is not known
 */
bool seep_symbol_pack_find(struct seep_symbol_pack *pack,
                           const struct seep_packed_module *module,
                           uint64_t offset,
                           struct seep_symbol_answer *ret_answer);

/** All that it has, for who writes it out: the next from *@module and *@answer
 * on, both 0 at first. @return false: no more */
struct seep_packed_name {
    const char *path;
    const struct seep_packed_module *module;
    uint64_t offset;
    struct seep_symbol_answer answer;
};
bool seep_symbol_pack_next(struct seep_symbol_pack *pack, uint32_t *module,
                           uint32_t *answer, struct seep_packed_name *ret_name);

/*
 * Lines of source that were packed with recordings: a text of "=FILE" and,
 * below it, "NUMBER LINE" each. What is no such line is left out.
 */

#define SEEP_SOURCE_LINE_BYTES_MAX 400U /* with its 0; longer ones are cut */

struct seep_source_line {
    const char *file;
    const char *text;
    uint32_t line;
};

struct seep_sources {
    char *bytes;
    struct seep_source_line *lines;
    size_t count;
    struct seep_store store; /* of the keys */
    struct seep_store_table by_place;
};

/** Of @text, which ends with a 0 and is taken over on success.
 * @param ret_sources  give it to seep_sources_fini() */
int seep_sources_parse(char *text, struct seep_sources *ret_sources);
void seep_sources_fini(struct seep_sources *sources);

/** What stands there, without what it is indented by; NULL if it is not
 * known. It lives as long as @sources. */
const char *seep_sources_find(struct seep_sources *sources, const char *file,
                              uint32_t line);

#endif
