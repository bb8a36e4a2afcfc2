/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of addresses, over reports; see symbol_memory.h.
 *
 * Invariant: there is always an empty slot, and every answer that is in a slot
 * points into .strings only.
 */
#include "reader/symbol_memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "reader/symbolise_strings.h"

#define SLOTS ((size_t)1 << 18) /* a power of two, well above what is kept */

static_assert(SEEP_SYMBOL_MEMORY_MOST < SLOTS / 2, "slots are kept half empty");

struct answer {
    uint64_t key; /* 0: empty */
    uint64_t offset;
    const struct seep_symbol_frame *frames;
    size_t count;
};

struct seep_symbol_memory {
    struct answer *answers; /* SLOTS */
    size_t count;
    struct seep_symbolise_strings strings;
};

int seep_symbol_memory_open(struct seep_symbol_memory **ret_memory)
{
    struct seep_symbol_memory *memory = calloc(1, sizeof(*memory));

    if (memory != NULL) {
        memory->answers = calloc(SLOTS, sizeof(*memory->answers));
    }
    if (memory == NULL || memory->answers == NULL) {
        free(memory);
        return -ENOMEM;
    }
    *ret_memory = memory;
    return 0;
}

void seep_symbol_memory_close(struct seep_symbol_memory *memory)
{
    if (memory != NULL) {
        seep_symbolise_strings_fini(&memory->strings);
        free(memory->answers);
        free(memory);
    }
}

uint64_t seep_symbol_memory_key(const struct seep_symbol_module *module)
{
    uint64_t key;

    if (module->build_id_bytes == 0) {
        return 0;
    }
    key = seep_hash_bytes(module->build_id, module->build_id_bytes);
    if (module->path != NULL) {
        key = seep_hash_add(
            key, seep_hash_bytes(module->path, strlen(module->path)));
    }
    return key + (key == 0);
}

static struct answer *slot_of(const struct seep_symbol_memory *memory,
                              uint64_t key, uint64_t offset)
{
    size_t at = seep_hash_add(key, offset) & (SLOTS - 1);

    while (memory->answers[at].key != 0 &&
           (memory->answers[at].key != key ||
            memory->answers[at].offset != offset)) {
        at = (at + 1) & (SLOTS - 1);
    }
    return &memory->answers[at];
}

bool seep_symbol_memory_find(const struct seep_symbol_memory *memory,
                             uint64_t key, uint64_t offset,
                             const struct seep_symbol_frame **ret_frames,
                             size_t *ret_count)
{
    const struct answer *answer = slot_of(memory, key, offset);

    if (answer->key == 0) {
        return false;
    }
    *ret_frames = answer->frames;
    *ret_count = answer->count;
    return true;
}

const struct seep_symbol_frame *
seep_symbol_memory_copy(struct seep_symbolise_strings *strings,
                        const struct seep_symbol_frame *frames, size_t count)
{
    struct seep_symbol_frame *copy =
        seep_symbolise_strings_allocate(strings, count * sizeof(*copy));

    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = frames[i];
        copy[i].function = seep_symbolise_strings_keep(
            strings, frames[i].function, strlen(frames[i].function));
        copy[i].file = seep_symbolise_strings_keep(strings, frames[i].file,
                                                   strlen(frames[i].file));
        if (copy[i].function == NULL || copy[i].file == NULL) {
            return NULL;
        }
    }
    return copy;
}

void seep_symbol_memory_put(struct seep_symbol_memory *memory, uint64_t key,
                            uint64_t offset,
                            const struct seep_symbol_frame *frames,
                            size_t count)
{
    const struct seep_symbol_frame *copy;

    if (memory->count >= SEEP_SYMBOL_MEMORY_MOST) {
        seep_symbolise_strings_fini(&memory->strings);
        memory->strings = (struct seep_symbolise_strings){0};
        memset(memory->answers, 0, SLOTS * sizeof(*memory->answers));
        memory->count = 0;
    }
    copy = seep_symbol_memory_copy(&memory->strings, frames, count);
    if (copy != NULL) {
        struct answer *answer = slot_of(memory, key, offset);
        memory->count += answer->key == 0;
        *answer = (struct answer){key, offset, copy, count};
    }
}
