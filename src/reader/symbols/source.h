/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Lines of source that were packed with recordings: a text of "=FILE" and,
 * below it, "NUMBER LINE" each.
 *
 * Hostile input: what is no such line is left out.
 *
 * Errors: 0 or negative errno; ret_* untouched on failure. Threads: one at a
 * time.
 */
#ifndef SEEP_READER_SYMBOLS_SOURCE_H
#define SEEP_READER_SYMBOLS_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "reader/recording/pack.h"
#include "reader/recording/store.h"

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

/** @param ret_sources  all zero where the pack has none; give it to
 * seep_sources_fini() */
int seep_sources_load(const struct seep_pack *pack,
                      struct seep_sources *ret_sources);
/** The same of @text, which ends with a 0 and is taken over. */
int seep_sources_parse(char *text, struct seep_sources *ret_sources);
void seep_sources_fini(struct seep_sources *sources);

/** What stands there, without what it is indented by; NULL if it is not
 * known. It lives as long as @sources. */
const char *seep_sources_find(struct seep_sources *sources, const char *file,
                              uint32_t line);

#endif
