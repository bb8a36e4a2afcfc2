/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From (module, offset) to functions, files and lines, each asked for once.
 *
 * Invariant: an answer has at least one frame and no NULL in it; a module
 * whose file is missing, not the recorded one, or damaged gives empty names,
 * never an error.
 */
#include "reader/symbols/symbolise.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/symbols/module.h"
#include "reader/symbols/names.h"
#include "reader/symbols/wall.h"

/*
 * From what the symbol tables and DWARF say of an address to its frames.
 *
 * Invariant: a frame has no NULL in it; what is not known is empty. NULL is the
 * answer of those below where there is no memory.
 */

/* The name of a function for people: without its symbol version, demangled. */
static const char *name_function(struct seep_symbol_memory *memory,
                                 const char *symbol)
{
    char text[SEEP_DEMANGLE_TEXT_MAX];
    struct seep_store_entry *entry;
    const char *version;
    size_t symbol_bytes;

    if (symbol == NULL) {
        return "";
    }
    symbol_bytes = strnlen(symbol, SEEP_DEMANGLE_INPUT_MAX);
    version = memchr(symbol, '@', symbol_bytes);
    if (version != NULL && version > symbol) {
        symbol_bytes = (size_t)(version - symbol);
    }
    entry = seep_store_find(&memory->store, &memory->functions, symbol,
                            symbol_bytes);
    if (entry != NULL && entry->value == NULL) {
        entry->value = seep_demangle(entry->key, text, sizeof(text))
                           ? seep_symbol_memory_text(memory, text)
                           : entry->key;
    }
    return entry != NULL ? entry->value : NULL;
}

static const char *name_file(struct seep_symbol_memory *memory,
                             const struct seep_symbolise_place *place)
{
    char path[PATH_MAX];
    const char *file = place->file != NULL ? place->file : "";
    bool relative = file[0] != '\0' && file[0] != '/' && place->folder != NULL;
    int used =
        snprintf(path, sizeof(path), "%s%s%s", relative ? place->folder : "",
                 relative ? "/" : "", file);

    return used <= 0 || (size_t)used >= sizeof(path)
               ? ""
               : seep_symbol_memory_text(memory, path);
}

static bool is_mangled(const char *symbol)
{
    return symbol != NULL && symbol[0] == '_' &&
           (symbol[1] == 'Z' || symbol[1] == 'R');
}

/*
 * DWARF also has what an assembler name was changed to, which no one would
 * look for: only a mangled name says more than the source's own.
 */
static const char *choose_name(const struct seep_symbolise_place *place)
{
    return is_mangled(place->symbol) || place->name == NULL ? place->symbol
                                                            : place->name;
}

/*
 * Is the symbol table's name better than DWARF's? It is where DWARF has lost
 * the class (-g1), and where libc exports under a plain name, strdup, what it
 * calls __strdup itself. Otherwise DWARF's, for a symbol may be a local part.
 */
static bool is_better(const char *symbol, const char *name)
{
    return name == NULL || (is_mangled(symbol) && !is_mangled(name)) ||
           (name[0] == '_' && symbol[0] != '_');
}

/*
 * The function that stands in the machine code. "name+0x40" is not inside
 * name: it is the nearest symbol that a stripped file still has.
 */
static const char *name_outermost(struct seep_symbol_memory *memory,
                                  const struct seep_symbolise_elf *elf,
                                  uint64_t offset,
                                  const struct seep_symbolise_place *place)
{
    char text[SEEP_DEMANGLE_TEXT_MAX + 32];
    uint64_t distance_bytes = 0;
    const char *name = choose_name(place);
    const char *symbol = seep_symbolise_elf_find(elf, offset, &distance_bytes);

    if (symbol != NULL && distance_bytes == 0 && is_better(symbol, name)) {
        name = symbol;
    }
    if (name != NULL || symbol == NULL) {
        return name_function(memory, name);
    }
    symbol = name_function(memory, symbol);
    if (symbol == NULL) {
        return NULL;
    }
    snprintf(text, sizeof(text), "%s+0x%" PRIx64, symbol, distance_bytes);
    return seep_symbol_memory_text(memory, text);
}

/* Frames of @offset from its @places, of which there is at least one (empty
 * where DWARF knows nothing); the last one also gets the symbol table's name.
 */
static const struct seep_symbol_frame *
make_frames(struct seep_symbol_memory *memory,
            const struct seep_symbolise_elf *elf, uint64_t offset,
            const struct seep_symbolise_place *places, size_t count)
{
    struct seep_symbol_frame *frames =
        seep_store_take(&memory->store, count, sizeof(*frames));

    for (size_t i = 0; i < count && frames != NULL; i++) {
        bool inlined = i + 1 < count;

        frames[i] = (struct seep_symbol_frame){
            .function = inlined
                            ? name_function(memory, choose_name(&places[i]))
                            : name_outermost(memory, elf, offset, &places[i]),
            .file = name_file(memory, &places[i]),
            .line = places[i].line,
            .inlined = inlined,
        };
        if (frames[i].function == NULL || frames[i].file == NULL) {
            return NULL;
        }
    }
    return frames;
}

/*
 * Modules opened when first asked about, and answers kept for ever.
 *
 * Invariant: what is opened is opened in the wall's child, which has a copy of
 * all this. Of the modules the reader has no more than whether to ask.
 */

static_assert(SEEP_SYMBOLISE_PLACES_MAX <= SEEP_WALL_FRAMES_MAX,
              "an answer fits through the wall");

enum module_state { MODULE_UNSEEN, MODULE_OPEN, MODULE_WITHOUT_NAMES };

struct module {
    struct seep_symbol_module source;
    uint64_t memory_key;     /* 0: not to be remembered */
    enum module_state state; /* in the reader: UNSEEN while it may be asked */
    int error; /* why it is without names; 0: a debug file was missing */
    uint64_t spent_ns; /* waiting for the child */
    struct seep_symbolise_file file;
    struct seep_symbolise_elf elf;
    struct seep_symbolise_dwarf dwarf;
};

struct seep_symboliser {
    struct seep_symboliser_options options;
    struct module *modules; /* and behind them the JIT's map */
    size_t module_count;
    char *map_path; /* NULL: none is wanted */
    struct seep_perf_map *perf_map;
    struct seep_wall wall;
    struct seep_symbol_memory own; /* answers by the index of the module */
};

static const struct seep_symbol_frame unknown_frame = {
    .function = "", .file = "", .line = 0, .inlined = false};

/* What is below runs behind the wall. */

static int open_module(const struct seep_symboliser *symboliser,
                       struct module *module)
{
    int result = seep_symbolise_file_init(&module->source, &symboliser->options,
                                          &module->file);

    if (result == 0) {
        result = seep_symbolise_elf_init(module->file.module, &module->elf);
    }
    if (result == 0) {
        result = seep_symbolise_dwarf_init(module->file.module, &module->dwarf);
    }
    return result == 0 ? module->file.debug_error : result;
}

static int find_in_module(struct seep_symboliser *symboliser,
                          struct module *module, uint64_t offset,
                          struct seep_symbol_answer *answer)
{
    struct seep_symbolise_place places[SEEP_SYMBOLISE_PLACES_MAX];
    size_t count = 0;

    if (module->dwarf.dwarf != NULL &&
        seep_symbolise_dwarf_find(&module->dwarf, offset, places, &count) !=
            0) {
        return -ENOMEM;
    }
    if (count == 0) {
        places[0] = (struct seep_symbolise_place){0};
        count = 1;
    }
    answer->count = count;
    answer->frames =
        make_frames(&symboliser->own, &module->elf, offset, places, count);
    return answer->frames != NULL ? 0 : -ENOMEM;
}

static int find_in_map(struct seep_symboliser *symboliser, uint64_t offset,
                       struct seep_symbol_answer *answer)
{
    const char *name = seep_perf_map_find(symboliser->perf_map, offset);
    struct seep_symbol_frame *frame;

    *answer = (struct seep_symbol_answer){&unknown_frame, 1};
    if (name == NULL) {
        return 0;
    }
    frame = seep_store_take(&symboliser->own.store, 1, sizeof(*frame));
    name = name_function(&symboliser->own, name);
    if (frame == NULL || name == NULL) {
        return -ENOMEM;
    }
    *frame = unknown_frame;
    frame->function = name;
    answer->frames = frame;
    return 0;
}

/* Its tables are opened when first asked for. */
static int answer_behind(void *context, size_t index, uint64_t offset,
                         struct seep_symbol_answer *ret_answer)
{
    struct seep_symboliser *symboliser = context;
    struct module *module = &symboliser->modules[index];
    bool is_map = index == symboliser->module_count;

    if (module->state == MODULE_UNSEEN) {
        module->state = MODULE_OPEN;
        module->error = is_map ? seep_perf_map_open(module->source.path,
                                                    &symboliser->perf_map)
                               : open_module(symboliser, module);
    }
    if (module->error != 0) {
        return module->error;
    }
    return is_map ? find_in_map(symboliser, offset, ret_answer)
                  : find_in_module(symboliser, module, offset, ret_answer);
}

/* Before it. */

int seep_symboliser_open(const struct seep_symbol_module *modules,
                         size_t module_count,
                         const struct seep_symboliser_options *options,
                         struct seep_symboliser **ret_symboliser)
{
    struct seep_symboliser *symboliser = calloc(1, sizeof(*symboliser));

    if (symboliser == NULL) {
        return -ENOMEM;
    }
    symboliser->modules =
        calloc(module_count + 1, sizeof(*symboliser->modules));
    if (symboliser->modules == NULL) {
        free(symboliser);
        return -ENOMEM;
    }
    if (options != NULL) {
        symboliser->options = *options;
    }
    symboliser->module_count = module_count;
    for (size_t i = 0; i < module_count; i++) {
        struct module *module = &symboliser->modules[i];

        module->source = modules[i];
        if (module->source.path == NULL) {
            module->source.path = "";
        }
        if (symboliser->options.memory != NULL) {
            module->memory_key = seep_symbol_memory_key(&modules[i]);
        }
    }
    if (symboliser->options.perf_map != NULL) {
        symboliser->map_path = strdup(options->perf_map);
        symboliser->options.perf_map = NULL; /* it is the caller's */
    }
    symboliser->modules[module_count].source.path = symboliser->map_path;
    symboliser->wall = (struct seep_wall){
        .answer = answer_behind,
        .context = symboliser,
        .asks_servers = symboliser->options.use_debuginfod,
    };
    *ret_symboliser = symboliser;
    return 0;
}

void seep_symboliser_settle(struct seep_symboliser *symboliser)
{
    if (symboliser == NULL) {
        return;
    }
    for (size_t i = 0; i <= symboliser->module_count; i++) {
        struct module *module = &symboliser->modules[i];

        if (symboliser->options.without_wall) {
            seep_symbolise_dwarf_fini(&module->dwarf);
            seep_symbolise_elf_fini(&module->elf);
            seep_symbolise_file_fini(&module->file);
        }
        module->state = MODULE_WITHOUT_NAMES;
    }
    seep_perf_map_close(symboliser->perf_map);
    symboliser->perf_map = NULL;
    seep_wall_fini(&symboliser->wall);
}

void seep_symboliser_close(struct seep_symboliser *symboliser)
{
    if (symboliser == NULL) {
        return;
    }
    seep_symboliser_settle(symboliser);
    seep_symbol_memory_fini(&symboliser->own);
    free(symboliser->modules);
    free(symboliser->map_path);
    free(symboliser);
}

/* Without opening its file. */
static bool is_remembered(struct seep_symboliser *symboliser,
                          const struct module *module, uint64_t offset,
                          struct seep_symbol_answer *answer)
{
    const struct seep_symbol_answer *known =
        module->memory_key != 0
            ? seep_symbol_memory_find(symboliser->options.memory,
                                      module->memory_key, offset)
            : NULL;
    const struct seep_symbol_frame *frames =
        known != NULL ? seep_symbol_memory_copy(&symboliser->own, known) : NULL;

    if (frames == NULL) {
        return false;
    }
    *answer = (struct seep_symbol_answer){frames, known->count};
    return true;
}

/* @answer: unknown, and stays so where nothing is found */
static void ask(struct seep_symboliser *symboliser, size_t index,
                uint64_t offset, struct seep_symbol_answer *answer)
{
    struct module *module = &symboliser->modules[index];
    int error =
        symboliser->options.without_wall
            ? answer_behind(symboliser, index, offset, answer)
            : seep_wall_ask(&symboliser->wall, index, offset, &module->spent_ns,
                            &symboliser->own, answer);

    if (error != 0) {
        module->state = MODULE_WITHOUT_NAMES;
        module->error = error;
    } else if (module->memory_key != 0) {
        seep_symbol_memory_put(symboliser->options.memory, module->memory_key,
                               offset, *answer);
    }
}

static void resolve(struct seep_symboliser *symboliser, size_t index,
                    uint64_t offset, struct seep_symbol_answer *answer)
{
    struct module *module;

    if (index == SIZE_MAX && symboliser->map_path != NULL) {
        index = symboliser->module_count;
    } else if (index >= symboliser->module_count) {
        return;
    }
    module = &symboliser->modules[index];
    if (module->state != MODULE_WITHOUT_NAMES &&
        !is_remembered(symboliser, module, offset, answer)) {
        ask(symboliser, index, offset, answer);
    }
}

bool seep_symboliser_failure(const struct seep_symboliser *symboliser,
                             size_t *at, struct seep_symbol_failure *ret)
{
    /* What is not there, or is another file by now, is nothing new. */
    static const int quiet[] = {0,       -ENOENT, -ENOTDIR, -ESTALE,
                                -EACCES, -EPERM,  -ENOEXEC};

    while (*at <= symboliser->module_count) {
        const struct module *module = &symboliser->modules[(*at)++];
        size_t i = 0;

        while (i < sizeof(quiet) / sizeof(*quiet) &&
               module->error != quiet[i]) {
            i++;
        }
        if (i == sizeof(quiet) / sizeof(*quiet)) {
            *ret = (struct seep_symbol_failure){module->source.path,
                                                module->error};
            return true;
        }
    }
    return false;
}

int seep_symboliser_resolve(struct seep_symboliser *symboliser, size_t module,
                            uint64_t offset,
                            const struct seep_symbol_frame **ret_frames,
                            size_t *ret_count)
{
    struct seep_symbol_answer answer = {&unknown_frame, 1};
    const struct seep_symbol_answer *known =
        seep_symbol_memory_find(&symboliser->own, module, offset);
    int result = 0;

    if (known != NULL) {
        answer = *known;
    } else {
        resolve(symboliser, module, offset, &answer);
        result =
            seep_symbol_memory_set(&symboliser->own, module, offset, answer);
    }
    if (result == 0) {
        *ret_frames = answer.frames;
        *ret_count = answer.count;
    }
    return result;
}
