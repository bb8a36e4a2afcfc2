/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of frames, and two private caches before them; see codes.h. */
#include "record/codes.h"

#include <string.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "record/claim.h"
#include "record/modules.h"

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

static void clear(_Atomic uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        /* A page of zeros that is only read costs no memory. */
        if (atomic_load_explicit(&words[i], memory_order_relaxed) != 0) {
            atomic_store_explicit(&words[i], 0, memory_order_relaxed);
        }
    }
}

void seep_codes_forget(void)
{
    clear(cache, CACHE_SLOTS);
    clear(files, FILE_SLOTS);
}

bool seep_codes_find(uint64_t identity, uint32_t *ret_code)
{
    uint64_t seen = atomic_load_explicit(&cache[identity % CACHE_SLOTS],
                                         memory_order_relaxed);

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
    atomic_store_explicit(&cache[identity % CACHE_SLOTS],
                          (identity & ~CACHE_INDEX_MASK) | index,
                          memory_order_relaxed);
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

uint32_t seep_codes_intern(const struct seep_view *view, uint64_t identity,
                           const struct seep_codes_code *code)
{
    uint32_t index = 0;
    bool is_new = false;
    struct seep_rec_code *entry;

    if (!seep_claim_key(&view->codes[0].key, sizeof(view->codes[0]),
                        view->code_capacity - 1, key_of(code), &index,
                        &is_new)) {
        seep_view_count(view, SEEP_COUNT_CODES_FULL, 1);
        remember(identity, CACHE_REFUSED);
        return SEEP_CODE_NONE;
    }
    if (is_new) {
        entry = &view->codes[index];
        entry->kind = code->kind;
        entry->file = file_string(view, code->file);
        entry->name = seep_modules_string(view, code->name);
        entry->first_line = code->first_line;
        /* Release: the fields above; pairs with the acquire load of state in
         * who reads the recording. */
        atomic_store_explicit(&entry->state, SEEP_PUBLISHED,
                              memory_order_release);
        atomic_fetch_add_explicit(&view->header->code_count, 1,
                                  memory_order_relaxed);
    }
    remember(identity, index);
    return index;
}

bool seep_codes_is_users(const struct seep_view *view, uint64_t frame)
{
    static const char *const libraries[] = {
        "/lib/python", "/lib64/python", "/site-packages/", "/dist-packages/"};
    uint64_t code = (frame & ~SEEP_FRAME_IS_CODE) >> SEEP_FRAME_LINE_BITS;
    const char *file;

    if (code == SEEP_CODE_NONE || code >= view->code_capacity) {
        return false;
    }
    file = seep_view_string(view, view->codes[code].file);
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        if (strstr(file, libraries[i]) != NULL) {
            return false;
        }
    }
    return file[0] != '\0' && file[0] != '<';
}
