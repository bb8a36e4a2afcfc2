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
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "reader/symbols/members.h"
#include "reader/symbols/module.h"
#include "reader/symbols/names.h"
#include "reader/symbols/packed.h"
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

/* The function that stands in the machine code. */
static const char *name_outermost(struct seep_symbol_memory *memory,
                                  const struct seep_symbolise_elf *elf,
                                  uint64_t offset,
                                  const struct seep_symbolise_place *place)
{
    const char *name = choose_name(place);
    const char *symbol = seep_symbolise_elf_find(elf, offset);

    return name_function(
        memory, symbol != NULL && is_better(symbol, name) ? symbol : name);
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
 * The house of the files: opened when first asked about, behind the wall, in a
 * child that has a copy of all this.
 *
 * Invariant: the reader has no more of it than the wall, so that a file that
 * many recordings name is opened once.
 */

static_assert(SEEP_SYMBOLISE_PLACES_MAX <= SEEP_WALL_FRAMES_MAX,
              "an answer fits through the wall");

struct opened {
    struct seep_symbol_module source; /* its texts are the house's */
    bool is_map;
    bool has_symbols; /* which members are told without */
    int error;        /* why it is without names */
    struct seep_symbolise_file file;
    struct seep_symbolise_elf elf;
    struct seep_symbolise_dwarf dwarf;
    struct seep_symbolise_members members;
    struct seep_perf_map *perf_map;
};

struct seep_symbol_house {
    struct seep_symboliser_options options;
    struct seep_wall wall;
    struct opened **opened;
    size_t count;
    struct seep_symbol_memory names;
};

static const struct seep_symbol_frame unknown_frame = {
    .function = "", .file = "", .line = 0, .inlined = false};

/* What is below runs behind the wall. */

static int open_symbols(struct opened *module)
{
    module->has_symbols = true;
    return seep_symbolise_elf_init(module->file.module, &module->elf);
}

static int open_module(const struct seep_symbol_house *house,
                       struct opened *module, bool with_symbols)
{
    int result = seep_symbolise_file_init(&module->source, &house->options,
                                          &module->file);

    if (result == 0 && with_symbols) {
        result = open_symbols(module);
    }
    if (result == 0) {
        result = seep_symbolise_dwarf_init(module->file.module, &module->dwarf);
    }
    return result == 0 ? module->file.debug_error : result;
}

static int find_in_module(struct seep_symbol_house *house,
                          struct opened *module, uint64_t offset,
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
        make_frames(&house->names, &module->elf, offset, places, count);
    return answer->frames != NULL ? 0 : -ENOMEM;
}

static int find_in_map(struct seep_symbol_house *house,
                       const struct seep_perf_map *map, uint64_t offset,
                       struct seep_symbol_answer *answer)
{
    const char *name = seep_perf_map_find(map, offset);
    struct seep_symbol_frame *frame;

    *answer = (struct seep_symbol_answer){&unknown_frame, 1};
    if (name == NULL) {
        return 0;
    }
    frame = seep_store_take(&house->names.store, 1, sizeof(*frame));
    name = name_function(&house->names, name);
    if (frame == NULL || name == NULL) {
        return -ENOMEM;
    }
    *frame = unknown_frame;
    frame->function = name;
    answer->frames = frame;
    return 0;
}

/* One frame a hop. */
static int find_members(struct seep_symbol_house *house, struct opened *module,
                        const struct seep_symbol_thing *thing,
                        struct seep_symbol_answer *answer)
{
    struct seep_symbolise_member members[SEEP_SYMBOL_HOPS_MOST];
    struct seep_symbol_frame *frames;
    int result;

    if (module->dwarf.dwarf == NULL ||
        thing->hop_count > SEEP_SYMBOL_HOPS_MOST) {
        return -ENOENT;
    }
    result = seep_symbolise_members_find(&module->members, &module->dwarf,
                                         thing, members);
    frames = result != 0 ? NULL
                         : seep_store_take(&house->names.store,
                                           thing->hop_count, sizeof(*frames));
    for (size_t i = 0; frames != NULL && i < thing->hop_count; i++) {
        frames[i] = unknown_frame;
        frames[i].function =
            seep_symbol_memory_text(&house->names, members[i].path);
        frames[i].file =
            seep_symbol_memory_text(&house->names, members[i].type);
        if (frames[i].function == NULL || frames[i].file == NULL) {
            return -ENOMEM;
        }
    }
    *answer = (struct seep_symbol_answer){frames, thing->hop_count};
    return frames != NULL ? 0 : -ENOMEM;
}

static bool is_same(const struct opened *module,
                    const struct seep_wall_question *question)
{
    const struct seep_symbol_module *asked = question->source;

    return module->is_map == question->is_map &&
           module->source.build_id_bytes == asked->build_id_bytes &&
           (asked->build_id_bytes == 0 ||
            memcmp(module->source.build_id, asked->build_id,
                   asked->build_id_bytes) == 0) &&
           strcmp(module->source.path, asked->path) == 0;
}

/* NULL: there is no memory. */
static struct opened *open_asked(struct seep_symbol_house *house,
                                 const struct seep_wall_question *question)
{
    const struct seep_symbol_module *asked = question->source;
    struct opened **list =
        seep_list_grow(house->opened, house->count, sizeof(*list));
    struct opened *module = calloc(1, sizeof(*module));
    char *path = strdup(asked->path);
    uint8_t *build_id = malloc(asked->build_id_bytes + 1);

    house->opened = list != NULL ? list : house->opened;
    if (list == NULL || module == NULL || path == NULL || build_id == NULL) {
        free(module);
        free(path);
        free(build_id);
        return NULL;
    }
    if (asked->build_id_bytes > 0) {
        memcpy(build_id, asked->build_id, asked->build_id_bytes);
    }
    module->source =
        (struct seep_symbol_module){path, build_id, asked->build_id_bytes};
    module->is_map = question->is_map;
    list[house->count++] = module;
    module->error = question->is_map
                        ? seep_perf_map_open(path, &module->perf_map)
                        : open_module(house, module, question->thing == NULL);
    return module;
}

static int answer_behind(void *context,
                         const struct seep_wall_question *question,
                         struct seep_symbol_answer *ret_answer)
{
    struct seep_symbol_house *house = context;
    struct opened *module = NULL;

    for (size_t i = house->count; i > 0 && module == NULL; i--) {
        module = is_same(house->opened[i - 1], question) ? house->opened[i - 1]
                                                         : NULL;
    }
    if (module == NULL) {
        module = open_asked(house, question);
    }
    if (module == NULL || module->error != 0) {
        return module == NULL ? -ENOMEM : module->error;
    }
    if (question->thing != NULL) {
        return find_members(house, module, question->thing, ret_answer);
    }
    if (!question->is_map && !module->has_symbols) {
        module->error = open_symbols(module);
        if (module->error != 0) {
            return module->error;
        }
    }
    return question->is_map
               ? find_in_map(house, module->perf_map, question->offset,
                             ret_answer)
               : find_in_module(house, module, question->offset, ret_answer);
}

/* Before it. */

static struct seep_symbol_house *
open_house(const struct seep_symboliser_options *options)
{
    struct seep_symbol_house *house = calloc(1, sizeof(*house));

    if (house != NULL) {
        house->options = *options;
        house->wall = (struct seep_wall){
            .answer = answer_behind,
            .context = house,
            .asks_servers = options->use_debuginfod,
        };
    }
    return house;
}

static void close_opened(struct opened *module)
{
    seep_symbolise_members_fini(&module->members);
    seep_symbolise_dwarf_fini(&module->dwarf);
    seep_symbolise_elf_fini(&module->elf);
    seep_symbolise_file_fini(&module->file);
    seep_perf_map_close(module->perf_map);
    free((void *)(uintptr_t)module->source.path);
    free((void *)(uintptr_t)module->source.build_id);
    free(module);
}

void seep_symbol_house_close(struct seep_symbol_house *house)
{
    if (house == NULL) {
        return;
    }
    seep_wall_fini(&house->wall);
    for (size_t i = 0; i < house->count; i++) { /* where there is no wall */
        close_opened(house->opened[i]);
    }
    free(house->opened);
    seep_symbol_memory_fini(&house->names);
    free(house);
}

void seep_symbol_memory_rest(struct seep_symbol_memory *memory)
{
    if (memory != NULL && memory->house != NULL) {
        seep_wall_rest(&memory->house->wall);
    }
}

/*
 * The modules of one recording.
 *
 * Invariant: each address is asked for once, of the reader's memory first.
 */

struct module {
    struct seep_symbol_module source;
    uint64_t memory_key; /* of its answers; 0: not to be remembered */
    uint64_t failure_key;
    bool without_names;
    int error; /* why; 0: it was not asked in time */
    struct seep_wall_spent spent;
};

struct seep_symboliser {
    struct seep_symboliser_options options;
    struct module *modules; /* and behind them the JIT's map */
    size_t module_count;
    char *map_path;                  /* NULL: none is wanted */
    struct seep_symbol_house *house; /* NULL: the memory has one */
    struct seep_symbol_memory own;   /* answers by the index of the module */
};

static void init_module(const struct seep_symboliser *symboliser,
                        const struct seep_symbol_module *source,
                        struct module *module)
{
    struct seep_symbol_memory *memory =
        symboliser->options.pack == NULL ? symboliser->options.memory : NULL;

    module->source = *source;
    if (source->path == NULL) {
        module->source.path = "";
    }
    if (memory != NULL) {
        module->memory_key = seep_symbol_memory_key(source);
        module->failure_key =
            module->memory_key != 0
                ? module->memory_key
                : seep_hash_bytes(module->source.path,
                                  strlen(module->source.path));
        module->error = seep_symbol_memory_failure(memory, module->failure_key);
        module->without_names = module->error != 0;
    }
}

/* Whose wall it is: of all who share a memory there is one. */
static struct seep_symbol_house *house_of(struct seep_symboliser *symboliser)
{
    struct seep_symbol_memory *memory = symboliser->options.memory;
    struct seep_symbol_house **at =
        memory != NULL && !symboliser->options.without_wall
            ? &memory->house
            : &symboliser->house;

    if (*at == NULL) {
        *at = open_house(&symboliser->options);
    }
    return *at;
}

int seep_symboliser_open(const struct seep_symbol_module *modules,
                         size_t module_count,
                         const struct seep_symboliser_options *options,
                         struct seep_symboliser **ret_symboliser)
{
    struct seep_symboliser *symboliser = calloc(1, sizeof(*symboliser));
    struct seep_symbol_module map = {.path = NULL};

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
        init_module(symboliser, &modules[i], &symboliser->modules[i]);
    }
    if (symboliser->options.perf_map != NULL) {
        symboliser->map_path = strdup(options->perf_map);
        symboliser->options.perf_map = NULL; /* it is the caller's */
    }
    map.path = symboliser->map_path;
    init_module(symboliser, &map, &symboliser->modules[module_count]);
    *ret_symboliser = symboliser;
    return 0;
}

void seep_symboliser_settle(struct seep_symboliser *symboliser)
{
    if (symboliser == NULL) {
        return;
    }
    for (size_t i = 0; i <= symboliser->module_count; i++) {
        symboliser->modules[i].without_names = true;
    }
    seep_symbol_house_close(symboliser->house);
    symboliser->house = NULL;
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

/* What is not there, or is another file by now, is nothing new. */
static bool is_failure(int error)
{
    static const int quiet[] = {0,       -ENOENT, -ENOTDIR, -ESTALE,
                                -EACCES, -EPERM,  -ENOEXEC};

    for (size_t i = 0; i < sizeof(quiet) / sizeof(*quiet); i++) {
        if (error == quiet[i]) {
            return false;
        }
    }
    return true;
}

static void fail(struct seep_symboliser *symboliser, struct module *module,
                 int error)
{
    module->without_names = true;
    module->error = error;
    /* That no process could be started is nothing that it did. */
    if (symboliser->options.memory != NULL &&
        symboliser->options.pack == NULL && is_failure(error) &&
        error != -EAGAIN) {
        seep_symbol_memory_fail(symboliser->options.memory, module->failure_key,
                                error);
    }
}

/* @answer: unknown, and stays so where nothing is found
 * @into: has what it points to */
static void ask(struct seep_symboliser *symboliser, struct module *module,
                uint64_t offset, struct seep_symbol_memory *into,
                struct seep_symbol_answer *answer)
{
    struct seep_symbol_house *house = house_of(symboliser);
    struct seep_wall_question question = {
        &module->source,
        module == &symboliser->modules[symboliser->module_count], offset, NULL};
    int error = -ENOMEM;

    if (house != NULL) {
        error = symboliser->options.without_wall
                    ? answer_behind(house, &question, answer)
                    : seep_wall_ask(&house->wall, &question, &module->spent,
                                    into, answer);
    }
    if (error == 0 && symboliser->options.without_wall) {
        answer->frames = seep_symbol_memory_copy(into, answer);
        error = answer->frames == NULL ? -ENOMEM : 0;
    }
    if (error != 0) {
        *answer = (struct seep_symbol_answer){&unknown_frame, 1};
        fail(symboliser, module, error);
    } else if (module->memory_key != 0 && into == &symboliser->own) {
        seep_symbol_memory_put(symboliser->options.memory, module->memory_key,
                               offset, *answer);
    }
}

/* What was found when it was packed. @answer: as above */
static void unpack(struct seep_symboliser *symboliser, struct module *module,
                   uint64_t offset, struct seep_symbol_answer *answer)
{
    struct seep_symbol_pack *pack = symboliser->options.pack;
    bool is_map = module == &symboliser->modules[symboliser->module_count];
    const struct seep_packed_module *packed =
        seep_symbol_pack_module(pack, &module->source, is_map);
    struct seep_symbol_answer found;
    const struct seep_symbol_frame *copy;

    if (packed == NULL || packed->error != 0) {
        fail(symboliser, module, packed == NULL ? -ENOENT : packed->error);
    }
    /* There may be some from before it failed. */
    if (packed != NULL && seep_symbol_pack_find(pack, packed, offset, &found)) {
        copy = seep_symbol_memory_copy(&symboliser->own, &found);
        if (copy != NULL) {
            *answer = (struct seep_symbol_answer){copy, found.count};
        }
    }
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

bool seep_symboliser_failure(const struct seep_symboliser *symboliser,
                             size_t *at, struct seep_symbol_failure *ret)
{
    while (*at <= symboliser->module_count) {
        const struct module *module = &symboliser->modules[(*at)++];

        if (is_failure(module->error)) {
            *ret = (struct seep_symbol_failure){module->source.path,
                                                module->error};
            return true;
        }
    }
    return false;
}

/* NULL: of none. */
static struct module *module_of(struct seep_symboliser *symboliser,
                                size_t index)
{
    if (index == SIZE_MAX && symboliser->map_path != NULL) {
        index = symboliser->module_count;
    } else if (index >= symboliser->module_count) {
        return NULL;
    }
    return &symboliser->modules[index];
}

int seep_symboliser_resolve(struct seep_symboliser *symboliser, size_t index,
                            uint64_t offset,
                            const struct seep_symbol_frame **ret_frames,
                            size_t *ret_count)
{
    struct seep_symbol_memory *memory = &symboliser->own;
    struct module *module = module_of(symboliser, index);
    struct seep_symbol_answer answer = {&unknown_frame, 1};
    const struct seep_symbol_answer *known;
    uint64_t key = index;
    int result = 0;

    if (module != NULL && module->memory_key != 0 &&
        symboliser->options.memory->keeps) {
        memory = symboliser->options.memory;
        key = module->memory_key;
    }
    known = seep_symbol_memory_find(memory, key, offset);
    if (known != NULL) {
        answer = *known;
    } else {
        if (module != NULL && symboliser->options.pack != NULL) {
            unpack(symboliser, module, offset, &answer);
        } else if (module != NULL && !module->without_names &&
                   (memory != &symboliser->own ||
                    !is_remembered(symboliser, module, offset, &answer))) {
            ask(symboliser, module, offset, memory, &answer);
        }
        result = seep_symbol_memory_set(memory, key, offset, answer);
    }
    if (result == 0) {
        *ret_frames = answer.frames;
        *ret_count = answer.count;
    }
    return result;
}

bool seep_symboliser_members(struct seep_symboliser *symboliser, size_t index,
                             const struct seep_symbol_thing *thing,
                             const struct seep_symbol_frame **ret_frames)
{
    struct seep_symbol_house *house = house_of(symboliser);
    struct module *module = module_of(symboliser, index);
    struct seep_wall_question question = {.thing = thing};
    struct seep_symbol_answer answer = {NULL, 0};
    int error;

    if (house == NULL || module == NULL || module->without_names ||
        thing->hop_count == 0 || symboliser->options.pack != NULL) {
        return false;
    }
    question.source = &module->source;
    error = symboliser->options.without_wall
                ? answer_behind(house, &question, &answer)
                : seep_wall_ask(&house->wall, &question, &module->spent,
                                &symboliser->own, &answer);
    module->without_names = error != 0;
    *ret_frames = answer.frames;
    return error == 0 && answer.count == thing->hop_count;
}
