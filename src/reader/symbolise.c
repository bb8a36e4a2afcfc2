/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Symboliser: modules opened when first asked about, answers kept for ever.
 *
 * Invariant: an answer has at least one frame and no NULL in it; a module
 * whose file is missing, not the recorded one, or damaged gives empty names,
 * never an error.
 */
#include "reader/symbolise.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "reader/perf_map.h"
#include "reader/symbol_memory.h"
#include "reader/symbolise_dwarf.h"
#include "reader/symbolise_elf.h"
#include "reader/symbolise_file.h"
#include "reader/symbolise_frames.h"
#include "reader/symbolise_strings.h"

enum module_state { MODULE_UNSEEN, MODULE_OPEN, MODULE_WITHOUT_NAMES };

struct module {
    struct seep_symbol_module source;
    uint64_t memory_key; /* 0: not to be remembered */
    enum module_state state;
    struct seep_symbolise_file file;
    struct seep_symbolise_elf elf;
    struct seep_symbolise_dwarf dwarf;
};

struct answer {
    uint64_t hash; /* 0: empty */
    size_t module;
    uint64_t offset;
    const struct seep_symbol_frame *frames;
    size_t frame_count;
};

struct seep_symboliser {
    struct seep_symboliser_options options;
    struct module *modules;
    size_t module_count;
    struct seep_perf_map *perf_map;
    struct answer *answers;
    size_t answer_capacity; /* a power of two */
    size_t answer_count;
    struct seep_symbolise_strings strings;
};

static const struct seep_symbol_frame unknown_frame = {
    .function = "", .file = "", .line = 0, .inlined = false};

static const char *copy_text(struct seep_symboliser *symboliser,
                             const char *text)
{
    return seep_symbolise_strings_keep(&symboliser->strings, text,
                                       strlen(text));
}

static int copy_module(struct seep_symboliser *symboliser,
                       const struct seep_symbol_module *source,
                       struct module *ret_module)
{
    uint8_t *build_id = NULL;

    ret_module->source.path =
        copy_text(symboliser, source->path != NULL ? source->path : "");
    if (source->build_id_bytes > 0) {
        build_id = seep_symbolise_strings_allocate(&symboliser->strings,
                                                   source->build_id_bytes);
        if (build_id == NULL) {
            return -ENOMEM;
        }
        memcpy(build_id, source->build_id, source->build_id_bytes);
    }
    ret_module->source.build_id = build_id;
    ret_module->source.build_id_bytes = source->build_id_bytes;
    if (symboliser->options.memory != NULL) {
        ret_module->memory_key = seep_symbol_memory_key(source);
    }
    return ret_module->source.path != NULL ? 0 : -ENOMEM;
}

static int copy_input(struct seep_symboliser *symboliser,
                      const struct seep_symbol_module *modules,
                      const struct seep_symboliser_options *options)
{
    int result = 0;

    if (options != NULL) {
        symboliser->options.use_debuginfod = options->use_debuginfod;
        symboliser->options.memory = options->memory;
        if (options->sysroot != NULL) {
            symboliser->options.sysroot =
                copy_text(symboliser, options->sysroot);
            result = symboliser->options.sysroot != NULL ? 0 : -ENOMEM;
        }
    }
    for (size_t i = 0; i < symboliser->module_count && result == 0; i++) {
        result = copy_module(symboliser, &modules[i], &symboliser->modules[i]);
    }
    return result;
}

int seep_symboliser_open(const struct seep_symbol_module *modules,
                         size_t module_count,
                         const struct seep_symboliser_options *options,
                         struct seep_symboliser **ret_symboliser)
{
    struct seep_symboliser *symboliser = calloc(1, sizeof(*symboliser));
    int result;

    if (symboliser == NULL) {
        return -ENOMEM;
    }
    symboliser->modules =
        calloc(module_count + 1, sizeof(*symboliser->modules));
    symboliser->module_count = module_count;
    result = symboliser->modules != NULL
                 ? copy_input(symboliser, modules, options)
                 : -ENOMEM;
    if (result != 0) {
        seep_symboliser_close(symboliser);
        return result;
    }
    if (options != NULL && options->perf_map != NULL) {
        /* A map that is not there or not to be trusted costs its names. */
        (void)seep_perf_map_open(options->perf_map, &symboliser->perf_map);
    }
    *ret_symboliser = symboliser;
    return 0;
}

static void close_module(struct module *module)
{
    seep_symbolise_dwarf_fini(&module->dwarf);
    seep_symbolise_elf_fini(&module->elf);
    seep_symbolise_file_fini(&module->file);
}

void seep_symboliser_settle(struct seep_symboliser *symboliser)
{
    for (size_t i = 0; symboliser != NULL && symboliser->modules != NULL &&
                       i < symboliser->module_count;
         i++) {
        close_module(&symboliser->modules[i]);
        symboliser->modules[i] = (struct module){
            .source = symboliser->modules[i].source,
            .memory_key = symboliser->modules[i].memory_key,
            .state = MODULE_WITHOUT_NAMES,
        };
    }
    if (symboliser != NULL) {
        seep_perf_map_close(symboliser->perf_map);
        symboliser->perf_map = NULL;
    }
}

void seep_symboliser_close(struct seep_symboliser *symboliser)
{
    if (symboliser == NULL) {
        return;
    }
    seep_symboliser_settle(symboliser);
    seep_symbolise_strings_fini(&symboliser->strings);
    free(symboliser->modules);
    free(symboliser->answers);
    free(symboliser);
}

/* The module with its tables; NULL if it has no names, now and later. */
static struct module *get_module(struct seep_symboliser *symboliser,
                                 size_t number)
{
    struct module *module = &symboliser->modules[number];

    if (module->state == MODULE_UNSEEN) {
        module->state = MODULE_OPEN;
        if (seep_symbolise_file_init(&module->source, &symboliser->options,
                                     &module->file) != 0 ||
            seep_symbolise_elf_init(module->file.module, &module->elf) != 0 ||
            seep_symbolise_dwarf_init(module->file.module, &module->dwarf) !=
                0) {
            module->state = MODULE_WITHOUT_NAMES;
        }
    }
    return module->state == MODULE_OPEN ? module : NULL;
}

static int resolve_in_module(struct seep_symboliser *symboliser,
                             struct module *module, struct answer *answer)
{
    struct seep_symbolise_place places[SEEP_SYMBOLISE_PLACES_MAX];
    size_t count = 0;
    int result = 0;

    if (module->dwarf.dwarf != NULL) {
        result = seep_symbolise_dwarf_find(&module->dwarf, answer->offset,
                                           places, &count);
    }
    if (count == 0) {
        places[0] = (struct seep_symbolise_place){0};
        count = 1;
    }
    answer->frame_count = count;
    return result != 0
               ? result
               : seep_symbolise_frames_make(&symboliser->strings, &module->elf,
                                            answer->offset, places, count,
                                            &answer->frames);
}

static int resolve_in_map(struct seep_symboliser *symboliser,
                          struct answer *answer)
{
    const char *name = seep_perf_map_find(symboliser->perf_map, answer->offset);
    struct seep_symbol_frame *frame;

    if (name == NULL) {
        return 0;
    }
    frame =
        seep_symbolise_strings_allocate(&symboliser->strings, sizeof(*frame));
    if (frame == NULL) {
        return -ENOMEM;
    }
    *frame = unknown_frame;
    answer->frames = frame;
    frame->function =
        seep_symbolise_strings_function(&symboliser->strings, name);
    return frame->function != NULL ? 0 : -ENOMEM;
}

/* Without opening its file. */
static bool is_remembered(struct seep_symboliser *symboliser,
                          struct answer *answer)
{
    uint64_t key = answer->module < symboliser->module_count
                       ? symboliser->modules[answer->module].memory_key
                       : 0;
    const struct seep_symbol_frame *frames;
    size_t count;

    if (key == 0 || !seep_symbol_memory_find(symboliser->options.memory, key,
                                             answer->offset, &frames, &count)) {
        return false;
    }
    frames = seep_symbol_memory_copy(&symboliser->strings, frames, count);
    if (frames == NULL) {
        return false;
    }
    answer->frames = frames;
    answer->frame_count = count;
    return true;
}

static int resolve_new(struct seep_symboliser *symboliser,
                       struct module *module, struct answer *answer)
{
    int result = resolve_in_module(symboliser, module, answer);

    if (result == 0 && module->memory_key != 0) {
        seep_symbol_memory_put(symboliser->options.memory, module->memory_key,
                               answer->offset, answer->frames,
                               answer->frame_count);
    }
    return result;
}

static int resolve(struct seep_symboliser *symboliser, struct answer *answer)
{
    struct module *module;

    answer->frames = &unknown_frame;
    answer->frame_count = 1;
    if (answer->module == SIZE_MAX) {
        return symboliser->perf_map != NULL ? resolve_in_map(symboliser, answer)
                                            : 0;
    }
    if (is_remembered(symboliser, answer)) {
        return 0;
    }
    module = answer->module < symboliser->module_count
                 ? get_module(symboliser, answer->module)
                 : NULL;
    return module != NULL ? resolve_new(symboliser, module, answer) : 0;
}

/* The answer of this key, or the empty one where it belongs. */
static struct answer *find_answer(struct answer *answers, size_t capacity,
                                  const struct answer *key)
{
    size_t mask = capacity - 1;

    for (size_t at = key->hash & mask;; at = (at + 1) & mask) {
        struct answer *answer = &answers[at];

        if (answer->hash == 0 ||
            (answer->hash == key->hash && answer->module == key->module &&
             answer->offset == key->offset)) {
            return answer;
        }
    }
}

/* Room for one more: afterwards there is always an empty answer. */
static int reserve_answer(struct seep_symboliser *symboliser)
{
    size_t capacity = symboliser->answer_capacity;
    size_t grown_capacity = capacity == 0 ? 1024 : capacity * 2;
    struct answer *grown;

    if (symboliser->answer_count * 4 < capacity * 3) {
        return 0;
    }
    grown = calloc(grown_capacity, sizeof(*grown));
    if (grown == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < capacity; i++) {
        const struct answer *old = &symboliser->answers[i];

        if (old->hash != 0) {
            *find_answer(grown, grown_capacity, old) = *old;
        }
    }
    free(symboliser->answers);
    symboliser->answers = grown;
    symboliser->answer_capacity = grown_capacity;
    return 0;
}

int seep_symboliser_resolve(struct seep_symboliser *symboliser, size_t module,
                            uint64_t offset,
                            const struct seep_symbol_frame **ret_frames,
                            size_t *ret_count)
{
    uint64_t words[] = {module, offset};
    struct answer key = {
        .hash = seep_hash_words(SEEP_HASH_SEED, words, 2),
        .module = module,
        .offset = offset,
    };
    struct answer *answer;
    int result = reserve_answer(symboliser);

    if (result != 0) {
        return result;
    }
    answer =
        find_answer(symboliser->answers, symboliser->answer_capacity, &key);
    if (answer->hash == 0) {
        result = resolve(symboliser, &key);
        if (result != 0) {
            return result;
        }
        *answer = key;
        symboliser->answer_count++;
    }
    *ret_frames = answer->frames;
    *ret_count = answer->frame_count;
    return 0;
}
