/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An arena, tables and lists; see store.h.
 *
 * Invariant: a table always has an empty entry, where a search ends.
 */
#include "reader/recording/store.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Each is an eighth of what there is, and what is large has one of its own:
 * many small reports have little for nothing. */
#define CHUNK_LEAST_BYTES ((size_t)2 << 10)
#define CHUNK_MOST_BYTES ((size_t)256 << 10)

struct seep_store_chunk {
    struct seep_store_chunk *next;
    size_t used_bytes;
    size_t capacity_bytes;
    size_t all_bytes; /* of it and those before it */
    alignas(max_align_t) unsigned char bytes[];
};

static struct seep_store_chunk *add_chunk(struct seep_store *store,
                                          size_t bytes)
{
    struct seep_store_chunk *first = store->chunks;
    size_t all_bytes = first == NULL ? 0 : first->all_bytes;
    size_t capacity_bytes = all_bytes / 8;
    bool is_large;
    struct seep_store_chunk *chunk;

    if (capacity_bytes > CHUNK_MOST_BYTES) {
        capacity_bytes = CHUNK_MOST_BYTES;
    }
    if (capacity_bytes < CHUNK_LEAST_BYTES) {
        capacity_bytes = CHUNK_LEAST_BYTES;
    }
    is_large = bytes >= capacity_bytes / 4;
    capacity_bytes = is_large ? bytes : capacity_bytes;
    chunk = calloc(1, sizeof(*chunk) + capacity_bytes);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->capacity_bytes = capacity_bytes;
    chunk->all_bytes = all_bytes + capacity_bytes;
    if (is_large && first != NULL) {
        /* What is left of the first is still there for what is small. */
        first->all_bytes = chunk->all_bytes;
        chunk->next = first->next;
        first->next = chunk;
    } else {
        chunk->next = first;
        store->chunks = chunk;
    }
    return chunk;
}

void *seep_store_take(struct seep_store *store, size_t count, size_t bytes)
{
    struct seep_store_chunk *chunk = store->chunks;
    size_t align_bytes = alignof(max_align_t);
    size_t size;

    if (bytes != 0 && count > (SIZE_MAX / 4) / bytes) {
        return NULL;
    }
    size = (count * bytes + align_bytes - 1) / align_bytes * align_bytes;
    if (chunk == NULL || chunk->capacity_bytes - chunk->used_bytes < size) {
        chunk = add_chunk(store, size);
        if (chunk == NULL) {
            return NULL;
        }
    }
    chunk->used_bytes += size;
    return chunk->bytes + chunk->used_bytes - size;
}

const char *seep_store_text_most(struct seep_store *store, const char *text,
                                 size_t most)
{
    size_t length = strnlen(text, most);
    char *copy = seep_store_take(store, length + 1, 1);

    return copy != NULL ? memcpy(copy, text, length) : NULL; /* zeroed */
}

const char *seep_store_text(struct seep_store *store, const char *text)
{
    return seep_store_text_most(store, text, SIZE_MAX);
}

void seep_store_fini(struct seep_store *store)
{
    while (store->chunks != NULL) {
        struct seep_store_chunk *next = store->chunks->next;

        free(store->chunks);
        store->chunks = next;
    }
}

/* The entry of @key, or the empty one where it belongs. */
static struct seep_store_entry *probe(const struct seep_store_table *table,
                                      uint64_t hash, const void *key,
                                      size_t key_bytes)
{
    size_t mask = table->capacity - 1;

    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        struct seep_store_entry *entry = &table->entries[at];

        if (entry->hash == 0 ||
            (entry->hash == hash && entry->key_bytes == key_bytes &&
             memcmp(entry->key, key, key_bytes) == 0)) {
            return entry;
        }
    }
}

/* Room for one more: afterwards there is always an empty entry. */
static bool reserve(struct seep_store_table *table)
{
    struct seep_store_table grown = {.count = table->count};

    if (table->count * 4 < table->capacity * 3) {
        return true;
    }
    grown.capacity = table->capacity == 0 ? 64 : table->capacity * 2;
    grown.entries = calloc(grown.capacity, sizeof(*grown.entries));
    if (grown.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        const struct seep_store_entry *old = &table->entries[i];

        if (old->hash != 0) {
            *probe(&grown, old->hash, old->key, old->key_bytes) = *old;
        }
    }
    free(table->entries);
    *table = grown;
    return true;
}

struct seep_store_entry *seep_store_find(struct seep_store *store,
                                         struct seep_store_table *table,
                                         const void *key, size_t key_bytes)
{
    uint64_t hash = seep_hash_bytes(key, key_bytes);
    struct seep_store_entry *entry;
    char *copy;

    if (!reserve(table)) {
        return NULL;
    }
    entry = probe(table, hash, key, key_bytes);
    if (entry->hash == 0) {
        copy = store == NULL ? NULL : seep_store_take(store, key_bytes + 1, 1);
        if (copy == NULL) {
            return NULL;
        }
        memcpy(copy, key, key_bytes);
        *entry = (struct seep_store_entry){hash, copy, key_bytes, NULL};
        table->count++;
    }
    return entry;
}

void seep_store_table_fini(struct seep_store_table *table)
{
    free(table->entries);
    *table = (struct seep_store_table){.count = 0};
}

void *seep_list_grow(void *items, size_t count, size_t item_bytes)
{
    if (count != 0 && (count & (count - 1)) != 0) {
        return items;
    }
    return reallocarray(items, count == 0 ? 1 : 2 * count, item_bytes);
}
