/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Memory of who reads: an arena that is given back at once, tables of what was
 * found before, and lists that grow.
 *
 * Start each from an all-zero struct. Without memory the answer is NULL, and
 * what was there stays. Threads: one at a time.
 */
#ifndef SEEP_READER_RECORDING_STORE_H
#define SEEP_READER_RECORDING_STORE_H

#include <stddef.h>
#include <stdint.h>

struct seep_store_chunk;

/** Nothing in it moves, and nothing is freed before all is. */
struct seep_store {
    struct seep_store_chunk *chunks;
};

/** Zeroed memory for @count entries of @bytes. */
void *seep_store_take(struct seep_store *store, size_t count, size_t bytes);

/** A copy of @text. */
const char *seep_store_text(struct seep_store *store, const char *text);

/** A copy of its first @most bytes: many names of a damaged file may be one
 * that is as long as the file. */
const char *seep_store_text_most(struct seep_store *store, const char *text,
                                 size_t most);

void seep_store_fini(struct seep_store *store);

struct seep_store_entry {
    uint64_t hash;   /* 0: empty */
    const char *key; /* a copy, and a 0 behind it */
    size_t key_bytes;
    const void *value; /* the user's; NULL: nothing was set yet */
};

struct seep_store_table {
    struct seep_store_entry *entries;
    size_t capacity; /* a power of two */
    size_t count;
};

/**
 * The entry of @key; if there was none it is new, and its key in @store.
 *
 * @param store  NULL: none is made, then the answer is NULL
 * @return valid until the next call
 */
struct seep_store_entry *seep_store_find(struct seep_store *store,
                                         struct seep_store_table *table,
                                         const void *key, size_t key_bytes);

/** Back to an all-zero struct; the keys are the store's. */
void seep_store_table_fini(struct seep_store_table *table);

/**
 * Room for one more than @count items: the capacity is the power of two that is
 * not below the count, so that nobody keeps it.
 *
 * @return the items, which may have moved
 */
void *seep_list_grow(void *items, size_t count, size_t item_bytes);

#endif
