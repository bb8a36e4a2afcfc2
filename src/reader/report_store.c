/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See report_store.h. */
#include "reader/report_store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)1 << 20)

struct seep_store_chunk {
    struct seep_store_chunk *next;
    size_t used;
    size_t capacity;
    max_align_t bytes[];
};

static struct seep_store_chunk *add_chunk(struct seep_store *store,
                                          size_t bytes)
{
    size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    struct seep_store_chunk *chunk = calloc(1, sizeof(*chunk) + capacity);

    if (chunk != NULL) {
        chunk->capacity = capacity;
        chunk->next = store->chunks;
        store->chunks = chunk;
    }
    return chunk;
}

void *seep_store_take(struct seep_store *store, size_t count, size_t bytes)
{
    struct seep_store_chunk *chunk = store->chunks;
    size_t size;
    void *taken;

    if (bytes != 0 && count > (SIZE_MAX / 4) / bytes) {
        return NULL;
    }
    size = (count * bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) *
           sizeof(max_align_t);
    if (chunk == NULL || chunk->capacity - chunk->used < size) {
        chunk = add_chunk(store, size);
        if (chunk == NULL) {
            return NULL;
        }
    }
    taken = (char *)chunk->bytes + chunk->used;
    chunk->used += size;
    return taken;
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
