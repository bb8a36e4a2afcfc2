/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What frames name: strings, modules, codes, in this order. */
#include "record/modules.h"

#include <stdbool.h>
#include <string.h>

#include "base/clear.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/word.h"
#include "record/sites.h"

#define CLAIMED 1U

seep_string seep_modules_string(const struct seep_view *view,
                                const char *string)
{
    size_t length = strlen(string);
    uint64_t at;

    if (length == 0) {
        return 0;
    }
    at = seep_word_load(&view->header->string_bytes_used);
    do {
        /* One byte, the last, is never written: the end of every string. */
        if (at + length + 1 >= view->string_bytes ||
            !seep_view_reserve(view, view->strings, view->string_bytes,
                               view->strings + at, length + 1)) {
            seep_view_count(view, SEEP_COUNT_STRINGS_FULL, 1);
            return 0;
        }
    } while (!seep_word_replace(&view->header->string_bytes_used, &at,
                                at + length + 1));
    memcpy(view->strings + at, string, length + 1);
    return (seep_string)at;
}

static bool same(const struct seep_view *view,
                 const struct seep_rec_module *module,
                 const struct seep_modules_object *object)
{
    size_t id_bytes = object->build_id_bytes;

    return module->start == object->start && module->end == object->end &&
           module->build_id_bytes == id_bytes &&
           (id_bytes != 0
                ? memcmp(module->build_id, object->build_id, id_bytes) == 0
                : strcmp(view->strings + module->path, object->path) == 0);
}

static uint32_t find(const struct seep_view *view,
                     const struct seep_modules_object *object)
{
    uint32_t count = seep_word_load(&view->header->module_count);

    if (count > view->module_capacity) {
        count = view->module_capacity;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct seep_rec_module *module = &view->modules[i];

        /* Acquire: the module's fields; pairs with the release in publish. */
        if (atomic_load_explicit(&module->state, memory_order_acquire) ==
                SEEP_PUBLISHED &&
            same(view, module, object)) {
            return i + 1;
        }
    }
    return SEEP_MODULE_NONE;
}

static void publish(const struct seep_view *view,
                    struct seep_rec_module *module,
                    const struct seep_modules_object *object)
{
    seep_word_store(&module->state, CLAIMED);
    module->start = object->start;
    module->end = object->end;
    module->bias = object->bias;
    module->path = seep_modules_string(view, object->path);
    if (object->build_id_bytes != 0) {
        memcpy(module->build_id, object->build_id, object->build_id_bytes);
    }
    module->build_id_bytes = (uint32_t)object->build_id_bytes;
    /* Release: the fields above; pairs with the acquire in find() and in
     * reader/recording/snapshot.c. */
    atomic_store_explicit(&module->state, SEEP_PUBLISHED, memory_order_release);
}

uint32_t seep_modules_intern(const struct seep_view *view,
                             const struct seep_modules_object *object)
{
    struct seep_modules_object known = *object;
    uint32_t id;
    uint32_t index;

    if (known.build_id == NULL) {
        known.build_id_bytes = 0;
    } else if (known.build_id_bytes > SEEP_BUILD_ID_MAX) {
        known.build_id_bytes = SEEP_BUILD_ID_MAX;
    }
    id = find(view, &known);
    if (id != SEEP_MODULE_NONE) {
        return id;
    }
    /* Two threads that meet an object at once may both add it: one name twice
     * costs an entry, waiting for each other costs the process. Readers
     * match modules by build-id and path, not by number. */
    if (!seep_view_take(view, SEEP_SECTION_MODULES, &view->header->module_count,
                        view->module_capacity, &index)) {
        seep_view_count(view, SEEP_COUNT_MODULES_FULL, 1);
        return SEEP_MODULE_NONE;
    }
    publish(view, &view->modules[index], &known);
    return index + 1;
}

uint64_t seep_modules_frame(const struct seep_view *view, uint32_t id,
                            uint64_t address)
{
    uint64_t bias = id == SEEP_MODULE_NONE ? 0 : view->modules[id - 1].bias;

    return (uint64_t)id << SEEP_FRAME_OFFSET_BITS |
           ((address - bias) & SEEP_FRAME_OFFSET_MASK);
}

/*
 * Codes, and two private caches before them.
 */

#define CACHE_SLOTS 16384U
#define CACHE_INDEX_BITS 20U
#define CACHE_INDEX_MASK ((UINT64_C(1) << CACHE_INDEX_BITS) - 1)
/* In place of an index: the table had no room for it. */
#define CACHE_REFUSED CACHE_INDEX_MASK
#define FILE_SLOTS 4096U

/*
 * Identity -> index. One word an entry, so that it is never read half written:
 * 44 bits of the hash above the index; 0 is empty.
 */
static _Atomic uint64_t cache[CACHE_SLOTS];

/* Upper half of a file name's hash | its offset in STRINGS: most of the code
 * of a file names the same one. */
static _Atomic uint64_t files[FILE_SLOTS];

void seep_codes_forget(void)
{
    seep_clear_pages(cache, CACHE_SLOTS);
    seep_clear_pages(files, FILE_SLOTS);
}

bool seep_codes_find(uint64_t identity, uint32_t *ret_code)
{
    uint64_t seen = seep_word_load(&cache[identity % CACHE_SLOTS]);

    if (seep_unlikely(seen == 0 ||
                      ((seen ^ identity) & ~CACHE_INDEX_MASK) != 0)) {
        return false;
    }
    seen &= CACHE_INDEX_MASK;
    *ret_code = seen != CACHE_REFUSED ? (uint32_t)seen : SEEP_CODE_NONE;
    return true;
}

static void remember(uint64_t identity, uint64_t index)
{
    seep_word_store(&cache[identity % CACHE_SLOTS],
                    (identity & ~CACHE_INDEX_MASK) | index);
}

/* The offset of a file's name, which is written once. */
static seep_string file_string(const struct seep_view *view, const char *file)
{
    uint64_t hash = seep_hash_bytes(file, strlen(file));
    _Atomic uint64_t *entry = &files[hash % FILE_SLOTS];
    /* Acquire: the string; pairs with the release below. */
    uint64_t seen = atomic_load_explicit(entry, memory_order_acquire);
    seep_string string = (seep_string)seen;

    if (seen != 0 && (seen ^ hash) >> 32 == 0 &&
        strcmp(seep_view_string(view, string), file) == 0) {
        return string;
    }
    string = seep_modules_string(view, file);
    if (string != 0) {
        /* Release: pairs with the acquire above. */
        atomic_store_explicit(entry, (hash & ~UINT64_C(0xffffffff)) | string,
                              memory_order_release);
    }
    return string;
}

static uint64_t key_of(const struct seep_codes_code *code)
{
    uint64_t words[4] = {
        (uint64_t)code->kind,
        seep_hash_bytes(code->file, strlen(code->file)),
        seep_hash_bytes(code->name, strlen(code->name)),
        code->first_line,
    };

    return seep_hash_words(0, words, sizeof(words) / sizeof(words[0]));
}

/* Does @file belong to no library of Python's? As the report asks, too
 * (reader/symbols/where.c); here it is only a guess. */
static bool is_users(const char *file)
{
    static const char *const libraries[] = {
        "/lib/python", "/lib64/python", "/site-packages/", "/dist-packages/"};

    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        if (strstr(file, libraries[i]) != NULL) {
            return false;
        }
    }
    return file[0] != '\0' && file[0] != '<';
}

static uint32_t traits_of(const struct seep_codes_code *code)
{
    static const char importer[] = "<frozen importlib._bootstrap";
    uint32_t traits = 0;

    if (code->kind != SEEP_CODE_PYTHON) {
        return 0;
    }
    traits |= is_users(code->file) ? SEEP_CODE_IS_USERS : 0U;
    traits |= strncmp(code->file, importer, sizeof(importer) - 1) == 0
                  ? SEEP_CODE_IS_IMPORTER
                  : 0U;
    traits |= strcmp(code->name, "<module>") == 0 ? SEEP_CODE_IS_MODULE : 0U;
    return traits;
}

uint32_t seep_codes_intern(const struct seep_view *view, uint64_t identity,
                           const struct seep_codes_code *code)
{
    uint32_t index = 0;
    enum seep_index_answer answer =
        seep_index_claim(view, SEEP_INDEX_CODES, key_of(code), &index);
    struct seep_rec_code *entry;

    if (answer == SEEP_INDEX_FULL || answer == SEEP_INDEX_NO_ROOM) {
        seep_view_count(view, SEEP_COUNT_CODES_FULL, 1);
        if (answer == SEEP_INDEX_FULL) {
            remember(identity, CACHE_REFUSED);
        }
        return SEEP_CODE_NONE;
    }
    if (answer == SEEP_INDEX_NEW) {
        entry = &view->codes[index];
        entry->kind = code->kind;
        entry->file = file_string(view, code->file);
        entry->name = seep_modules_string(view, code->name);
        entry->first_line = code->first_line;
        entry->traits = traits_of(code);
        /* Release: the fields above; pairs with the acquire load of state in
         * who reads the recording. */
        atomic_store_explicit(&entry->state, SEEP_PUBLISHED,
                              memory_order_release);
        seep_word_fetch_add(&view->header->code_count, 1);
    }
    remember(identity, index);
    return index;
}

uint32_t seep_codes_traits(const struct seep_view *view, uint64_t frame)
{
    uint64_t code = (frame & ~SEEP_FRAME_IS_CODE) >> SEEP_FRAME_LINE_BITS;

    return (frame & SEEP_FRAME_IS_CODE) != 0 && code < view->code_capacity
               ? view->codes[code].traits
               : 0;
}
