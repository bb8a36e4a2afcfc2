/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arena and interned strings of a symboliser.
 *
 * Invariant: nothing moves and nothing is freed before fini, so an answer may
 * point anywhere into it.
 */
#include "reader/symbolise_strings.h"

#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "reader/demangle.h"

#define CHUNK_BYTES ((size_t)1 << 18)

struct seep_symbolise_chunk {
    struct seep_symbolise_chunk *next;
    size_t used_bytes;
    size_t capacity_bytes;
    alignas(max_align_t) unsigned char bytes[];
};

void *seep_symbolise_strings_allocate(struct seep_symbolise_strings *strings,
                                      size_t bytes)
{
    struct seep_symbolise_chunk *chunk = strings->chunks;
    size_t rounded_bytes = (bytes + 15) & ~(size_t)15;

    if (chunk == NULL ||
        chunk->capacity_bytes - chunk->used_bytes < rounded_bytes) {
        size_t capacity_bytes =
            rounded_bytes > CHUNK_BYTES ? rounded_bytes : CHUNK_BYTES;

        chunk = calloc(1, sizeof(*chunk) + capacity_bytes);
        if (chunk == NULL) {
            return NULL;
        }
        chunk->capacity_bytes = capacity_bytes;
        chunk->next = strings->chunks;
        strings->chunks = chunk;
    }
    chunk->used_bytes += rounded_bytes;
    return chunk->bytes + chunk->used_bytes - rounded_bytes;
}

/* The entry of @key, or the empty one where it belongs. */
static struct seep_symbolise_entry *find(struct seep_symbolise_table *table,
                                         uint64_t hash, const char *key,
                                         size_t key_bytes)
{
    size_t mask = table->capacity - 1;

    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        struct seep_symbolise_entry *entry = &table->entries[at];

        if (entry->hash == 0 ||
            (entry->hash == hash && entry->key_bytes == key_bytes &&
             memcmp(entry->key, key, key_bytes) == 0)) {
            return entry;
        }
    }
}

/* Room for one more: afterwards there is always an empty entry. */
static int reserve(struct seep_symbolise_table *table)
{
    struct seep_symbolise_table grown = {.count = table->count};

    if (table->count * 4 < table->capacity * 3) {
        return 0;
    }
    grown.capacity = table->capacity == 0 ? 1024 : table->capacity * 2;
    grown.entries = calloc(grown.capacity, sizeof(*grown.entries));
    if (grown.entries == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        const struct seep_symbolise_entry *old = &table->entries[i];

        if (old->hash != 0) {
            *find(&grown, old->hash, old->key, old->key_bytes) = *old;
        }
    }
    free(table->entries);
    *table = grown;
    return 0;
}

const char *seep_symbolise_strings_keep(struct seep_symbolise_strings *strings,
                                        const char *text, size_t text_bytes)
{
    uint64_t hash = seep_hash_bytes(text, text_bytes);
    struct seep_symbolise_entry *entry;
    char *copy;

    if (reserve(&strings->texts) != 0) {
        return NULL;
    }
    entry = find(&strings->texts, hash, text, text_bytes);
    if (entry->hash != 0) {
        return entry->value;
    }
    copy = seep_symbolise_strings_allocate(strings, text_bytes + 1);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, text, text_bytes);
    *entry = (struct seep_symbolise_entry){hash, copy, text_bytes, copy};
    strings->texts.count++;
    return copy;
}

const char *
seep_symbolise_strings_function(struct seep_symbolise_strings *strings,
                                const char *symbol)
{
    size_t symbol_bytes = strnlen(symbol, SEEP_DEMANGLE_INPUT_MAX);
    const char *version = memchr(symbol, '@', symbol_bytes);
    char text[SEEP_DEMANGLE_TEXT_MAX];
    struct seep_symbolise_entry *entry;
    const char *key;
    uint64_t hash;

    if (version != NULL && version > symbol) {
        symbol_bytes = (size_t)(version - symbol);
    }
    hash = seep_hash_bytes(symbol, symbol_bytes);
    if (reserve(&strings->functions) != 0) {
        return NULL;
    }
    entry = find(&strings->functions, hash, symbol, symbol_bytes);
    if (entry->hash != 0) {
        return entry->value;
    }
    key = seep_symbolise_strings_keep(strings, symbol, symbol_bytes);
    if (key == NULL) {
        return NULL;
    }

    const char *name = key;

    if (seep_demangle(key, text, sizeof(text))) {
        name = seep_symbolise_strings_keep(strings, text, strlen(text));
    }
    if (name != NULL) {
        *entry = (struct seep_symbolise_entry){hash, key, symbol_bytes, name};
        strings->functions.count++;
    }
    return name;
}

void seep_symbolise_strings_fini(struct seep_symbolise_strings *strings)
{
    while (strings->chunks != NULL) {
        struct seep_symbolise_chunk *next = strings->chunks->next;

        free(strings->chunks);
        strings->chunks = next;
    }
    free(strings->texts.entries);
    free(strings->functions.entries);
    *strings = (struct seep_symbolise_strings){0};
}
