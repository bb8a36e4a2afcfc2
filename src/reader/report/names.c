/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the words of a stack to frames with names.
 *
 * Invariant: whatever a word says, it is at least one frame, and no index of
 * the recording is followed unchecked. What goes wrong with one name costs that
 * name only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/report/build.h"
#include "reader/symbols/names.h"
#include "reader/symbols/packed.h"
#include "reader/symbols/symbolise.h"

/* More than a recorder writes of a path, and of a name of Python. */
#define PATH_MOST 4096U
#define CODE_TEXT_MOST 1024U
#define INLINED_MAX 1024U /* calls at one address */

/* What a code object is called; .name is NULL until it was asked for. */
struct code_name {
    const char *name;
    const char *file;
    uint64_t number; /* in the memory that reports share; 0: not yet */
};

struct module_name {
    const char *path;
    const char *build_id;
    uint64_t number; /* ditto */
};

/* What one word of a stack is, for all stacks that it is in. */
struct word_frames {
    size_t count;
    const struct seep_report_frame *frames; /* the report's */
};

struct seep_names {
    struct module_name *modules; /* by module id - 1 */
    size_t module_capacity;
    struct code_name *codes;
    size_t code_capacity;
    struct seep_symbol_pack *pack;  /* NULL: of none, or the memory's */
    struct seep_symbol_pack *asked; /* that one, or the memory's */
    struct seep_store store;
    struct seep_store_table words;              /* to their frames */
    struct seep_report_frame made[INLINED_MAX]; /* those at hand */
};

static const char *keep(struct seep_report_build *build, const char *text,
                        size_t most)
{
    return seep_symbol_memory_keep(
        build->options == NULL ? NULL : build->options->memory, &build->store,
        text, most);
}

static const char *hexadecimal(struct seep_report_build *build,
                               const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * SEEP_BUILD_ID_MAX + 1];

    for (size_t i = 0; i < count; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    return keep(build, text, 2 * count);
}

static int name_module(struct seep_report_build *build, uint32_t index,
                       struct seep_symbol_module *ret_named)
{
    const struct seep_view *view = &build->snapshot.view;
    struct seep_rec_module *module = &view->modules[index];
    struct module_name *name = &build->names->modules[index];

    *name = (struct module_name){"", "", 0};
    ret_named->path = "";
    if (seep_word_load(&module->state) != SEEP_PUBLISHED) {
        return 0;
    }
    if (module->build_id_bytes <= SEEP_BUILD_ID_MAX) {
        ret_named->build_id = module->build_id;
        ret_named->build_id_bytes = module->build_id_bytes;
    }
    name->path = keep(build, seep_view_string(view, module->path), PATH_MOST);
    name->build_id =
        hexadecimal(build, ret_named->build_id, ret_named->build_id_bytes);
    ret_named->path = name->path;
    return name->path == NULL || name->build_id == NULL ? -ENOMEM : 0;
}

/* For who asks what was loaded, whatever sites are listed. */
static int list_modules(struct seep_report_build *build)
{
    const struct seep_names *names = build->names;
    const char **modules = seep_store_take(
        &build->store, names->module_capacity + 1, sizeof(*modules));
    size_t count = 0;

    if (modules == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < names->module_capacity; i++) {
        if (*names->modules[i].path != '\0') {
            modules[count++] = names->modules[i].path;
        }
    }
    build->report.modules = modules;
    build->report.module_count = count;
    return 0;
}

/* The names of a pack, which all of its recordings share. */
static int open_pack(struct seep_report_build *build,
                     struct seep_symbol_pack **ret_pack)
{
    struct seep_symbol_memory *memory = build->options->memory;
    const struct seep_pack *pack = build->packed.pack;
    int error;

    if (memory != NULL) {
        return seep_symbol_pack_share(pack, memory, ret_pack);
    }
    error = seep_symbol_pack_load(pack, ret_pack);
    build->names->pack = error == 0 ? *ret_pack : NULL;
    return error;
}

static int open_symboliser(struct seep_report_build *build,
                           const struct seep_symbol_module *modules)
{
    const struct seep_report_options *options = build->options;
    struct seep_symboliser_options wanted = {.sysroot = NULL};
    char perf_map[64];

    if (options == NULL || !options->symbols) {
        return 0;
    }
    snprintf(perf_map, sizeof(perf_map), "/tmp/perf-%u.map", build->report.pid);
    wanted.sysroot = options->sysroot;
    wanted.debug_folder = options->debug_folder;
    wanted.use_debuginfod = options->use_debuginfod;
    wanted.perf_map = perf_map;
    wanted.memory = options->memory;
    if (build->packed.pack != NULL) {
        int error = open_pack(build, &wanted.pack);

        if (error != 0) {
            return error;
        }
    }
    build->names->asked = wanted.pack;
    return seep_symboliser_open(modules, build->names->module_capacity, &wanted,
                                &build->symboliser);
}

static int fill(struct seep_report_build *build,
                struct seep_symbol_module *modules)
{
    int error = 0;

    for (uint32_t i = 0; error == 0 && i < build->names->module_capacity; i++) {
        error = name_module(build, i, &modules[i]);
    }
    if (error == 0) {
        error = list_modules(build);
    }
    return error == 0 ? open_symboliser(build, modules) : error;
}

int seep_names_open(struct seep_report_build *build)
{
    const struct seep_view *view = &build->snapshot.view;
    size_t named_count = seep_word_load(&view->header->module_count);
    size_t modules = named_count < view->module_capacity
                         ? named_count
                         : view->module_capacity;
    struct seep_names *names = calloc(1, sizeof(*names));
    struct seep_symbol_module *named = calloc(modules + 1, sizeof(*named));
    int error = -ENOMEM;

    build->names = names;
    if (names != NULL && named != NULL) {
        names->module_capacity = modules;
        names->code_capacity = view->code_capacity;
        names->modules = calloc(modules + 1, sizeof(*names->modules));
        names->codes = calloc(names->code_capacity + 1, sizeof(*names->codes));
        if (names->modules != NULL && names->codes != NULL) {
            error = fill(build, named);
        }
    }
    free(named);
    return error;
}

int seep_names_failures(struct seep_report_build *build)
{
    struct seep_report_nameless *list = NULL;
    struct seep_symbol_failure failure;
    size_t count = 0;

    for (size_t at = 0;
         build->symboliser != NULL &&
         seep_symboliser_failure(build->symboliser, &at, &failure);) {
        struct seep_report_nameless *more =
            seep_list_grow(list, count, sizeof(*list));
        const char *path = seep_store_text(&build->store, failure.path);

        if (more == NULL || path == NULL) {
            free(more != NULL ? more : list);
            return -ENOMEM;
        }
        list = more;
        list[count++] = (struct seep_report_nameless){path, failure.error};
    }
    build->report.nameless = list;
    build->report.nameless_count = count;
    return 0;
}

const char *seep_nameless_reason(int error)
{
    static const struct {
        int error;
        const char *reason;
    } reasons[] = {
        {-ECHILD, "is damaged: reading it ended the reader of symbols"},
        {-ETIMEDOUT, "took too long to read"},
        {-ENOMEM, "takes more memory than a reader of symbols is given"},
        {-EFBIG, "is too large, or says that it inflates to more than 512 MiB"},
        {-EBADMSG, "is damaged: its names made no sense"},
        {-EAGAIN, "could not be read: no process could be started for it"},
        {-ESPIPE, "is a FIFO, not a file"},
        {-ENXIO, "is a socket or a device, not a file"},
        {-EISDIR, "is a directory"},
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
        if (reasons[i].error == error) {
            return reasons[i].reason;
        }
    }
    return "could not be read";
}

void seep_names_close(struct seep_report_build *build)
{
    if (build->names != NULL) {
        free(build->names->modules);
        free(build->names->codes);
        seep_symbol_pack_close(build->names->pack);
        seep_store_table_fini(&build->names->words);
        seep_store_fini(&build->names->store);
        free(build->names);
        build->names = NULL;
    }
}

/* The entry that @word names, which has SEEP_FRAME_IS_CODE; NULL if none. */
static struct seep_rec_code *code_of(const struct seep_view *view,
                                     uint64_t word)
{
    uint64_t index = (word & ~SEEP_FRAME_IS_CODE) >> SEEP_FRAME_LINE_BITS;

    if (index == SEEP_CODE_NONE || index >= view->code_capacity ||
        seep_word_load(&view->codes[index].state) != SEEP_PUBLISHED) {
        return NULL;
    }
    return &view->codes[index];
}

/* Copied once for all stacks that it is in. */
static const struct code_name *name_code(struct seep_report_build *build,
                                         const struct seep_rec_code *code)
{
    static const struct code_name nameless = {"", "", 0};
    const struct seep_view *view = &build->snapshot.view;
    struct code_name *named = &build->names->codes[code - view->codes];

    if (named->name == NULL) {
        const char *name =
            keep(build, seep_view_string(view, code->name), CODE_TEXT_MOST);

        named->file =
            keep(build, seep_view_string(view, code->file), CODE_TEXT_MOST);
        named->name = named->file != NULL ? name : NULL;
    }
    return named->name != NULL ? named : &nameless;
}

static bool take_thread(struct seep_report_build *build, uint64_t word,
                        struct seep_names_stack *stack)
{
    const struct seep_rec_code *code;

    if ((word & SEEP_FRAME_IS_CODE) == 0) {
        return false;
    }
    code = code_of(&build->snapshot.view, word);
    if (code == NULL || code->kind != SEEP_CODE_THREAD) {
        return false;
    }
    stack->thread = name_code(build, code)->name;
    return true;
}

void seep_names_stack(struct seep_report_build *build, uint32_t site,
                      struct seep_names_stack *ret_stack)
{
    const struct seep_view *view = &build->snapshot.view;
    struct seep_rec_stack *stack;
    uint32_t index = view->sites[site].stack;
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
    uint32_t count;

    ret_stack->count = 0;
    ret_stack->cut = SEEP_CUT_NONE;
    ret_stack->thread = "";
    if (site == 0 || index >= view->stack_capacity) {
        return;
    }
    stack = &view->stacks[index];
    count = seep_view_frames(view, index, frames);
    if (count == 0) {
        return;
    }
    ret_stack->cut =
        stack->cut < SEEP_CUT_COUNT ? (enum seep_cut)stack->cut : SEEP_CUT_NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (i + 1 < count || !take_thread(build, frames[i], ret_stack)) {
            ret_stack->words[ret_stack->count++] = frames[i];
        }
    }
}

/* What stands in a line; NULL: it is not known. */
static const char *source_of(struct seep_report_build *build, const char *file,
                             uint32_t line)
{
    const char *text =
        build->names->asked == NULL
            ? NULL
            : seep_sources_find(seep_symbol_pack_sources(build->names->asked),
                                file, line);

    return text == NULL ? NULL : keep(build, text, SEEP_SOURCE_LINE_BYTES_MAX);
}

/* Whatever is no code object of Python has lost its name. */
static void fill_python(struct seep_report_build *build, uint64_t word,
                        struct seep_report_frame *frame)
{
    const struct seep_rec_code *code = code_of(&build->snapshot.view, word);

    frame->python = true;
    if (code != NULL && code->kind == SEEP_CODE_PYTHON) {
        const struct code_name *named = name_code(build, code);

        frame->function = named->name;
        frame->file = named->file;
        frame->line = (uint32_t)(word & SEEP_FRAME_LINE_MASK);
        frame->source = source_of(build, frame->file, frame->line);
    }
}

/* SIZE_MAX: of no module. */
static size_t module_of(const struct seep_names *names, uint64_t word)
{
    uint64_t module = word >> SEEP_FRAME_OFFSET_BITS;

    return module != SEEP_MODULE_NONE && module <= names->module_capacity
               ? (size_t)module - 1
               : SIZE_MAX;
}

const char *seep_names_module(const struct seep_names *names, uint64_t word)
{
    size_t module = module_of(names, word);

    return module != SIZE_MAX ? names->modules[module].path : "";
}

/* Into .made. @return how many, at least 1 */
static size_t make_native(struct seep_report_build *build, uint64_t word)
{
    static const struct seep_symbol_frame nameless = {"", "", 0, false};
    const struct seep_symbol_frame *symbols = &nameless;
    struct seep_names *names = build->names;
    struct seep_report_frame *frame = &names->made[0];
    size_t module = module_of(names, word);
    size_t count = 1;

    frame->offset = word & SEEP_FRAME_OFFSET_MASK;
    if (module != SIZE_MAX) {
        frame->module = names->modules[module].path;
        frame->build_id = names->modules[module].build_id;
    }
    if (build->symboliser != NULL &&
        (seep_symboliser_resolve(build->symboliser, module, frame->offset,
                                 &symbols, &count) != 0 ||
         count == 0)) {
        symbols = &nameless;
        count = 1;
    }
    count = count < INLINED_MAX ? count : INLINED_MAX;
    for (size_t i = 0; i < count; i++) {
        names->made[i] = *frame;
        names->made[i].function = symbols[i].function;
        names->made[i].file = symbols[i].file;
        names->made[i].line = symbols[i].line;
        names->made[i].inlined = symbols[i].inlined;
        names->made[i].source =
            source_of(build, symbols[i].file, symbols[i].line);
    }
    return count;
}

/* NULL: no memory. */
static const struct word_frames *make_frames(struct seep_report_build *build,
                                             uint64_t word)
{
    struct seep_names *names = build->names;
    struct word_frames *made = seep_store_take(&names->store, 1, sizeof(*made));
    size_t count = 1;

    if (made == NULL) {
        return NULL;
    }
    /* What is kept once is told by all its bytes. */
    memset(&names->made[0], 0, sizeof(names->made[0]));
    names->made[0].function = names->made[0].file = "";
    names->made[0].module = names->made[0].build_id = "";
    if ((word & SEEP_FRAME_IS_CODE) != 0) {
        fill_python(build, word, &names->made[0]);
    } else {
        count = make_native(build, word);
    }
    made->count = count;
    made->frames = seep_symbol_memory_keep_run(
        build->options == NULL ? NULL : build->options->memory, &build->store,
        names->made, count * sizeof(*names->made));
    return made->frames != NULL ? made : NULL;
}

size_t seep_names_frames(struct seep_report_build *build, uint64_t word,
                         const struct seep_report_frame **frames,
                         size_t capacity)
{
    static const struct seep_report_frame nameless = {
        .function = "", .file = "", .module = "", .build_id = ""};
    static const struct word_frames none = {1, &nameless};
    struct seep_names *names = build->names;
    struct seep_store_entry *entry =
        seep_store_find(&names->store, &names->words, &word, sizeof(word));
    const struct word_frames *found;

    if (entry != NULL && entry->value == NULL) {
        entry->value = make_frames(build, word);
    }
    found = entry == NULL || entry->value == NULL ? &none : entry->value;
    capacity = found->count < capacity ? found->count : capacity;
    for (size_t i = 0; i < capacity; i++) {
        frames[i] = &found->frames[i];
    }
    return capacity;
}

/*
 * What was found of a stack in one recording, for all others of the same
 * programs: with a thousand of them names, ids and whose line it is were a
 * third of what their reports took.
 *
 * Invariant: what is known is what would be found again. A stack is told by
 * all that its answers hang on: space, device, what a row is, its thread, and
 * of each frame build-id, path and offset, or name, file and line. One of which
 * something else tells as well (a map of a JIT, a pack, a file without a
 * build-id) is not known.
 */

/* 0: nothing tells it. */
static uint64_t tell_code(struct seep_report_build *build, uint64_t word)
{
    struct seep_symbol_memory *memory = build->options->memory;
    const struct seep_view *view = &build->snapshot.view;
    const struct seep_rec_code *code = code_of(view, word);
    struct code_name *named;

    if (code == NULL || code->kind != SEEP_CODE_PYTHON) {
        return SEEP_FRAME_IS_CODE; /* a frame that lost its name */
    }
    if (name_code(build, code)->name[0] == '\0') {
        return 0;
    }
    named = &build->names->codes[code - view->codes];
    if (named->number == 0) {
        const char *const pair[] = {named->name, named->file};

        named->number = seep_symbol_memory_number(memory, &memory->codes, pair);
    }
    return named->number == 0
               ? 0
               : SEEP_FRAME_IS_CODE | named->number << SEEP_FRAME_LINE_BITS |
                     (word & SEEP_FRAME_LINE_MASK);
}

/* A file without a build-id may be another one by the next recording. */
static uint64_t tell_native(struct seep_report_build *build, uint64_t word)
{
    struct seep_symbol_memory *memory = build->options->memory;
    size_t module = module_of(build->names, word);
    struct module_name *named;

    if (module == SIZE_MAX || *build->names->modules[module].build_id == '\0') {
        return 0;
    }
    named = &build->names->modules[module];
    if (named->number == 0) {
        const char *const pair[] = {named->path, named->build_id};

        named->number =
            seep_symbol_memory_number(memory, &memory->modules, pair);
    }
    return named->number >= SEEP_FRAME_IS_CODE >> SEEP_FRAME_OFFSET_BITS
               ? 0
               : named->number << SEEP_FRAME_OFFSET_BITS |
                     (word & SEEP_FRAME_OFFSET_MASK);
}

/* A word for each of its own. @return false: nothing tells it */
static bool tell(struct seep_report_build *build,
                 const struct seep_names_stack *stack, uint64_t *ret_words)
{
    for (uint32_t i = 0; i < stack->count; i++) {
        uint64_t word = stack->words[i];

        ret_words[i] = (word & SEEP_FRAME_IS_CODE) != 0
                           ? tell_code(build, word)
                           : tell_native(build, word);
        if (ret_words[i] == 0) {
            return false;
        }
    }
    return true;
}

#define KEY_WORDS 2U /* before those of the frames */

struct seep_alike *seep_names_alike(const struct seep_report_build *build,
                                    uint32_t site)
{
    return build->known != NULL ? build->known[site] : NULL;
}

static struct seep_alike *find(struct seep_symbol_memory *memory,
                               const uint64_t *words, size_t count)
{
    bool is_full = memory->stacks.count >= SEEP_SYMBOL_STACKS_MOST;
    struct seep_store_entry *entry =
        seep_store_find(is_full ? NULL : &memory->store, &memory->stacks, words,
                        count * sizeof(*words));

    if (entry != NULL && entry->value == NULL) {
        entry->value =
            seep_store_take(&memory->store, 1, sizeof(struct seep_alike));
    }
    return entry != NULL ? (struct seep_alike *)(uintptr_t)entry->value : NULL;
}

/* NULL: it cannot be known. */
static struct seep_alike *find_of(struct seep_report_build *build,
                                  uint32_t site)
{
    const struct seep_rec_site *from = &build->snapshot.view.sites[site];
    struct seep_names_stack stack;
    uint64_t words[KEY_WORDS + SEEP_STACK_FRAMES_MAX];

    seep_names_stack(build, site, &stack);
    if (stack.count == 0 || !tell(build, &stack, words + KEY_WORDS)) {
        return NULL;
    }
    words[0] = (uint64_t)build->report.by << 48 | (uint64_t)from->space << 32 |
               (uint32_t)seep_sites_device_of(from);
    words[1] = *stack.thread != '\0' ? (uintptr_t)stack.thread : 0;
    return find(build->options->memory, words, KEY_WORDS + stack.count);
}

int seep_names_find_alike(struct seep_report_build *build)
{
    const struct seep_view *view = &build->snapshot.view;

    if (build->options == NULL || build->options->memory == NULL ||
        !build->options->memory->shares || build->packed.pack != NULL) {
        return 0;
    }
    build->known =
        calloc((size_t)view->site_capacity + 1, sizeof(*build->known));
    if (build->known == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (seep_sites_is_used(&view->sites[i], i)) {
            build->known[i] = find_of(build, i);
        }
    }
    return 0;
}
