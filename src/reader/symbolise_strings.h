/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The memory of a symboliser's answers: one arena, every string once.
 *
 * Start from an all-zero struct. What is handed out lives until fini.
 */
#ifndef SEEP_READER_SYMBOLISE_STRINGS_H
#define SEEP_READER_SYMBOLISE_STRINGS_H

#include <stddef.h>
#include <stdint.h>

struct seep_symbolise_chunk;

struct seep_symbolise_entry {
    uint64_t hash; /* 0: empty */
    const char *key;
    size_t key_bytes;
    const char *value;
};

struct seep_symbolise_table {
    struct seep_symbolise_entry *entries;
    size_t capacity;
    size_t count;
};

struct seep_symbolise_strings {
    struct seep_symbolise_chunk *chunks;
    struct seep_symbolise_table texts;     /* to themselves */
    struct seep_symbolise_table functions; /* symbols to names */
};

/** Zeroed memory; NULL if there is none. */
void *seep_symbolise_strings_allocate(struct seep_symbolise_strings *strings,
                                      size_t bytes);

/** The one copy of @text, which ends after @text_bytes; NULL: no memory. */
const char *seep_symbolise_strings_keep(struct seep_symbolise_strings *strings,
                                        const char *text, size_t text_bytes);

/**
 * The name of a function for people: without its symbol version, demangled.
 *
 * @return NULL: no memory
 */
const char *
seep_symbolise_strings_function(struct seep_symbolise_strings *strings,
                                const char *symbol);

void seep_symbolise_strings_fini(struct seep_symbolise_strings *strings);

#endif
