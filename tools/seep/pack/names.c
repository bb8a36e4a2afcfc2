/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a pack tells of the stacks in its recordings: the lines of source that
 * they name, and the names of their addresses. Invariant: what is packed is
 * what a report would have been told here.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/word.h"
#include "pack/pack.h"

/*
 * Lines of source: those that stacks name, read once.
 *
 * Invariant: a recording is hostile, and names what it likes: only of a regular
 * file whose name ends as that of source does a line is packed.
 */

#define FILE_BYTES_MAX ((off_t)16 << 20) /* longer ones are no source */

static bool is_source(const char *path)
{
    static const char *const endings[] = {
        "py", "pyx", "pxd", "pyi", "c",   "h",  "cc",  "hh", "cpp", "hpp",
        "cu", "cuh", "cxx", "hxx", "inl", "rs", "tcc", "go", "ipp"};
    const char *name = seep_text_base_name(path);
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot != NULL && i < sizeof(endings) / sizeof(*endings);
         i++) {
        if (strcmp(dot + 1, endings[i]) == 0) {
            return strchr(path, '\n') == NULL;
        }
    }
    return false;
}

int seep_sourcing_add(struct seep_sourcing *sourcing, const char *file,
                      uint32_t line, const char *text)
{
    struct seep_sourced *lines;

    if (line == 0 || !is_source(file)) {
        return 0;
    }
    lines = seep_list_grow(sourcing->lines, sourcing->count, sizeof(*lines));
    if (lines == NULL) {
        return -ENOMEM;
    }
    sourcing->lines = lines;
    file = seep_store_text(&sourcing->store, file);
    text = text == NULL ? NULL : seep_store_text(&sourcing->store, text);
    lines[sourcing->count] = (struct seep_sourced){file, text, line};
    sourcing->count += file != NULL;
    return file == NULL ? -ENOMEM : 0;
}

int seep_sourcing_add_all(struct seep_sourcing *sourcing,
                          const struct seep_sources *sources)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < sources->count; i++) {
        const struct seep_source_line *line = &sources->lines[i];

        error = seep_sourcing_add(sourcing, line->file, line->line, line->text);
    }
    return error;
}

/* By file and line; what is known already before what is to be read. */
static int compare_sourced(const void *a, const void *b)
{
    const struct seep_sourced *left = a;
    const struct seep_sourced *right = b;
    int order = strcmp(left->file, right->file);

    if (order == 0) {
        order = (left->line > right->line) - (left->line < right->line);
    }
    return order != 0 ? order : (left->text == NULL) - (right->text == NULL);
}

static FILE *open_source(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    FILE *file = NULL;

    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size <= FILE_BYTES_MAX) {
        file = fdopen(fd, "r");
    }
    if (fd >= 0 && file == NULL) {
        close(fd);
    }
    return file;
}

/* Without what it is indented by, and what is no text. */
static void put_line(FILE *to, uint32_t number, char *text)
{
    while (isspace((unsigned char)*text)) {
        text++;
    }
    text[strcspn(text, "\r\n")] = '\0';
    if (strlen(text) >= SEEP_SOURCE_LINE_BYTES_MAX) {
        text[SEEP_SOURCE_LINE_BYTES_MAX - 1] = '\0';
    }
    if (*text != '\0') {
        fprintf(to, "%u %s\n", number, text);
    }
}

/* The lines [@first, @end) are of one file. */
static void put_source_file(FILE *to, const struct seep_sourced *first,
                            const struct seep_sourced *end)
{
    FILE *file = open_source(first->file);
    char *text = NULL;
    size_t capacity = 0;
    uint32_t at = 0;
    uint32_t last = 0;

    fprintf(to, "=%s\n", first->file);
    for (const struct seep_sourced *line = first; line < end; line++) {
        if (line->line == last) {
            continue; /* it is there */
        }
        if (line->text != NULL) {
            fprintf(to, "%u %s\n", line->line, line->text);
            last = line->line;
            continue;
        }
        while (file != NULL && at < line->line &&
               getline(&text, &capacity, file) >= 0) {
            at++;
        }
        if (at == line->line) {
            put_line(to, line->line, text);
            last = line->line;
        }
    }
    free(text);
    if (file != NULL) {
        fclose(file);
    }
}

int seep_sourcing_finish(struct seep_sourcing *sourcing, char **ret_text,
                         size_t *ret_bytes)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    struct seep_sourced *lines = sourcing->lines;
    size_t end;

    if (to == NULL) {
        return -ENOMEM;
    }
    if (sourcing->count > 0) {
        qsort(lines, sourcing->count, sizeof(*lines), compare_sourced);
    }
    for (size_t i = 0; i < sourcing->count; i = end) {
        end = i + 1;
        while (end < sourcing->count &&
               strcmp(lines[i].file, lines[end].file) == 0) {
            end++;
        }
        put_source_file(to, &lines[i], &lines[end]);
    }
    if (fclose(to) != 0) {
        free(text);
        return -ENOMEM;
    }
    *ret_text = text;
    *ret_bytes = bytes;
    return 0;
}

void seep_sourcing_fini(struct seep_sourcing *sourcing)
{
    free(sourcing->lines);
    seep_store_fini(&sourcing->store);
}

/*
 * Names: every address of every stack, looked up once.
 */

#define PATH_MOST 4096U /* as a report reads it */

struct list {
    void *items;
    size_t count;
};

struct named_module {
    struct seep_packed_module packed;
    struct list answers; /* struct seep_packed_answer */
};

struct seep_naming {
    struct seep_redaction *redaction;
    struct seep_sourcing *sourcing;
    struct seep_store store;
    struct seep_store_table by_text;
    struct seep_store_table by_module;
    struct seep_store_table by_address;
    struct list modules; /* struct named_module */
    struct list frames;  /* struct seep_packed_frame */
    char *texts;
    size_t text_bytes;
    size_t text_capacity;
};

int seep_naming_open(struct seep_redaction *redaction,
                     struct seep_sourcing *sourcing,
                     struct seep_naming **ret_naming)
{
    struct seep_naming *naming = calloc(1, sizeof(*naming));

    if (naming == NULL) {
        return -ENOMEM;
    }
    naming->redaction = redaction;
    naming->sourcing = sourcing;
    *ret_naming = naming;
    return 0;
}

void seep_naming_close(struct seep_naming *naming)
{
    if (naming == NULL) {
        return;
    }
    for (size_t i = 0; i < naming->modules.count; i++) {
        free(((struct named_module *)naming->modules.items)[i].answers.items);
    }
    free(naming->modules.items);
    free(naming->frames.items);
    free(naming->texts);
    seep_store_table_fini(&naming->by_text);
    seep_store_table_fini(&naming->by_module);
    seep_store_table_fini(&naming->by_address);
    seep_store_fini(&naming->store);
    free(naming);
}

/* Room for one more; NULL: no memory. */
static void *add(struct list *list, size_t bytes)
{
    void *items = seep_list_grow(list->items, list->count, bytes);

    if (items == NULL) {
        return NULL;
    }
    list->items = items;
    memset((char *)items + list->count * bytes, 0, bytes);
    return (char *)items + list->count++ * bytes;
}

/* The place of @text, once for all who have it. */
static int add_text(struct seep_naming *naming, const char *text,
                    uint32_t *ret_place)
{
    size_t length = strnlen(text, SEEP_PACKED_TEXT_BYTES_MAX - 1);
    struct seep_store_entry *entry =
        seep_store_find(&naming->store, &naming->by_text, text, length);

    if (entry == NULL) {
        return -ENOMEM;
    }
    if (entry->value == NULL) {
        size_t needed = naming->text_bytes + length + 1;

        if (needed > UINT32_MAX) {
            return -EFBIG;
        }
        if (needed > naming->text_capacity) {
            size_t capacity = 2 * needed + 4096;
            char *texts = realloc(naming->texts, capacity);

            if (texts == NULL) {
                return -ENOMEM;
            }
            naming->texts = texts;
            naming->text_capacity = capacity;
        }
        memcpy(naming->texts + naming->text_bytes, text, length);
        naming->texts[needed - 1] = '\0';
        /* the key is the store's, so that its place can stand there */
        entry->value = (const void *)(naming->text_bytes + 1);
        naming->text_bytes = needed;
    }
    *ret_place = (uint32_t)((uintptr_t)entry->value - 1);
    return 0;
}

static int add_path(struct seep_naming *naming, const char *path,
                    uint32_t *ret_place)
{
    if (naming->redaction != NULL) {
        path = seep_redact_path(naming->redaction, path);
    }
    return path == NULL ? -ENOMEM : add_text(naming, path, ret_place);
}

/* The number of @module in the pack. */
static int add_module(struct seep_naming *naming,
                      const struct seep_symbol_module *module, bool is_map,
                      uint32_t *ret_number)
{
    char key[PATH_MOST + SEEP_BUILD_ID_MAX + 2];
    size_t id_bytes = module->build_id_bytes;
    size_t path_bytes = strnlen(module->path, PATH_MOST);
    struct seep_store_entry *entry;
    struct named_module *named;
    int error = 0;

    key[0] = (char)(is_map ? 'm' : (char)id_bytes);
    if (id_bytes > 0) {
        memcpy(key + 1, module->build_id, id_bytes);
    }
    memcpy(key + 1 + id_bytes, module->path, path_bytes);
    entry = seep_store_find(&naming->store, &naming->by_module, key,
                            1 + id_bytes + path_bytes);
    if (entry == NULL) {
        return -ENOMEM;
    }
    if (entry->value == NULL) {
        entry->value = (const void *)(naming->modules.count + 1);
        named = add(&naming->modules, sizeof(*named));
        if (named == NULL) {
            return -ENOMEM;
        }
        named->packed.is_map = is_map;
        named->packed.build_id_bytes = (uint32_t)id_bytes;
        if (id_bytes > 0) {
            memcpy(named->packed.build_id, module->build_id, id_bytes);
        }
        /* who reads it makes the name of a map himself */
        error = is_map ? add_text(naming, module->path, &named->packed.path)
                       : add_path(naming, module->path, &named->packed.path);
    }
    *ret_number = (uint32_t)((uintptr_t)entry->value - 1);
    return error;
}

static struct named_module *module_at(struct seep_naming *naming,
                                      uint32_t number)
{
    return (struct named_module *)naming->modules.items + number;
}

static int add_answer(struct seep_naming *naming, uint32_t number,
                      uint64_t offset, const struct seep_symbol_frame *frames,
                      size_t count)
{
    struct seep_packed_answer *answer =
        add(&module_at(naming, number)->answers, sizeof(*answer));
    int error = answer == NULL ? -ENOMEM : 0;

    if (answer != NULL) {
        *answer = (struct seep_packed_answer){
            offset, (uint32_t)naming->frames.count, (uint32_t)count};
    }
    for (size_t i = 0; error == 0 && i < count; i++) {
        struct seep_packed_frame *frame = add(&naming->frames, sizeof(*frame));

        if (frame == NULL) {
            return -ENOMEM;
        }
        frame->line = frames[i].line;
        frame->inlined = frames[i].inlined;
        error = add_text(naming, frames[i].function, &frame->function);
        if (error == 0) {
            error = add_path(naming, frames[i].file, &frame->file);
        }
        if (error == 0 && naming->sourcing != NULL) {
            error = seep_sourcing_add(naming->sourcing, frames[i].file,
                                      frames[i].line, NULL);
        }
    }
    return error;
}

/* One recording. */
struct recording {
    struct seep_naming *naming;
    const struct seep_view *view;
    struct seep_symboliser *symboliser;
    struct seep_symbol_module *modules; /* and behind them the JIT's map */
    uint32_t *numbers;                  /* of each in the pack */
    size_t count;
    struct seep_store store; /* of what lines were seen */
    struct seep_store_table seen;
};

static int add_address(struct recording *recording, uint64_t word)
{
    struct seep_naming *naming = recording->naming;
    uint64_t id = word >> SEEP_FRAME_OFFSET_BITS;
    uint64_t offset = word & SEEP_FRAME_OFFSET_MASK;
    bool of_one = id != SEEP_MODULE_NONE && id <= recording->count;
    size_t index = of_one ? (size_t)id - 1 : recording->count;
    const uint64_t key[] = {recording->numbers[index], offset};
    struct seep_store_entry *entry =
        seep_store_find(&naming->store, &naming->by_address, key, sizeof(key));
    const struct seep_symbol_frame *frames;
    size_t count;
    int error;

    if (entry == NULL) {
        return -ENOMEM;
    }
    if (entry->value != NULL) {
        return 0;
    }
    entry->value = naming;
    error = seep_symboliser_resolve(recording->symboliser,
                                    of_one ? index : SIZE_MAX, offset, &frames,
                                    &count);
    if (error != 0 || (count == 1 && frames[0].function[0] == '\0' &&
                       frames[0].file[0] == '\0')) {
        return error;
    }
    count = count < SEEP_PACKED_FRAMES_MAX ? count : SEEP_PACKED_FRAMES_MAX;
    return add_answer(naming, (uint32_t)key[0], offset, frames, count);
}

/* A line of Python: its name is in the recording. */
static int add_code(struct recording *recording, uint64_t word)
{
    const struct seep_view *view = recording->view;
    struct seep_naming *naming = recording->naming;
    uint64_t index = (word & ~SEEP_FRAME_IS_CODE) >> SEEP_FRAME_LINE_BITS;
    struct seep_store_entry *entry;

    if (naming->sourcing == NULL || index >= view->code_capacity ||
        seep_word_load(&view->codes[index].state) != SEEP_PUBLISHED ||
        view->codes[index].kind != SEEP_CODE_PYTHON) {
        return 0;
    }
    entry = seep_store_find(&recording->store, &recording->seen, &word,
                            sizeof(word));
    if (entry == NULL || entry->value != NULL) {
        return entry == NULL ? -ENOMEM : 0;
    }
    entry->value = naming;
    return seep_sourcing_add(naming->sourcing,
                             seep_view_string(view, view->codes[index].file),
                             (uint32_t)(word & SEEP_FRAME_LINE_MASK), NULL);
}

static int add_stacks(struct recording *recording)
{
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
    int error = 0;

    for (uint32_t i = 0; error == 0 && i < recording->view->stack_capacity;
         i++) {
        uint32_t count = seep_view_frames(recording->view, i, frames);

        for (uint32_t j = 0; error == 0 && j < count; j++) {
            error = (frames[j] & SEEP_FRAME_IS_CODE) != 0
                        ? add_code(recording, frames[j])
                        : add_address(recording, frames[j]);
        }
    }
    return error;
}

/* The errors of modules, for who reads the pack and who packs it. */
static int add_failures(struct recording *recording,
                        void (*nameless)(const struct seep_report_nameless *))
{
    struct seep_symbol_failure failure;
    int error = 0;

    for (size_t at = 0;
         error == 0 &&
         seep_symboliser_failure(recording->symboliser, &at, &failure);) {
        struct named_module *named =
            module_at(recording->naming, recording->numbers[at - 1]);
        struct seep_report_nameless told = {failure.path, failure.error};

        if (named->packed.error == 0 && nameless != NULL) {
            nameless(&told);
        }
        named->packed.error = failure.error;
    }
    return error;
}

static int list_modules(struct recording *recording, const char *perf_map)
{
    const struct seep_view *view = recording->view;
    struct seep_symbol_module map = {.path = perf_map};
    int error = 0;

    for (size_t i = 0; error == 0 && i < recording->count; i++) {
        struct seep_rec_module *module = &view->modules[i];
        struct seep_symbol_module *named = &recording->modules[i];

        named->path = "";
        if (seep_word_load(&module->state) == SEEP_PUBLISHED) {
            if (module->build_id_bytes <= SEEP_BUILD_ID_MAX) {
                named->build_id = module->build_id;
                named->build_id_bytes = module->build_id_bytes;
            }
            named->path = seep_store_text_most(
                &recording->naming->store, seep_view_string(view, module->path),
                PATH_MOST);
        }
        error = named->path == NULL ? -ENOMEM
                                    : add_module(recording->naming, named,
                                                 false, &recording->numbers[i]);
    }
    return error != 0 ? error
                      : add_module(recording->naming, &map, true,
                                   &recording->numbers[recording->count]);
}

static int fill(struct recording *recording,
                const struct seep_symboliser_options *options)
{
    struct seep_symboliser_options wanted = *options;
    char perf_map[64];
    int error;

    snprintf(perf_map, sizeof(perf_map), "/tmp/perf-%u.map",
             recording->view->header->pid);
    wanted.perf_map = perf_map;
    error = list_modules(recording, perf_map);
    if (error == 0) {
        error = seep_symboliser_open(recording->modules, recording->count,
                                     &wanted, &recording->symboliser);
    }
    return error != 0 ? error : add_stacks(recording);
}

int seep_naming_add(struct seep_naming *naming, const struct seep_view *view,
                    const struct seep_symboliser_options *options,
                    void (*nameless)(const struct seep_report_nameless *))
{
    size_t said = seep_word_load(&view->header->module_count);
    struct recording recording = {
        .naming = naming,
        .view = view,
        .count = said < view->module_capacity ? said : view->module_capacity,
    };
    int error = -ENOMEM;

    recording.modules = calloc(recording.count + 1, sizeof(*recording.modules));
    recording.numbers = calloc(recording.count + 1, sizeof(*recording.numbers));
    if (recording.modules != NULL && recording.numbers != NULL) {
        error = fill(&recording, options);
    }
    if (error == 0) {
        error = add_failures(&recording, nameless);
    }
    seep_symboliser_close(recording.symboliser);
    seep_store_table_fini(&recording.seen);
    seep_store_fini(&recording.store);
    free(recording.modules);
    free(recording.numbers);
    return error;
}

static int compare_answers(const void *a, const void *b)
{
    const struct seep_packed_answer *left = a;
    const struct seep_packed_answer *right = b;

    return (left->offset > right->offset) - (left->offset < right->offset);
}

static char *append(char *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
    return to + bytes;
}

int seep_naming_finish(struct seep_naming *naming, void **ret_bytes,
                       size_t *ret_size)
{
    struct seep_packed_names counts = {
        .module_count = (uint32_t)naming->modules.count,
        .frame_count = (uint32_t)naming->frames.count,
    };
    uint32_t none;
    size_t size;
    char *bytes;
    char *at;
    int error = add_text(naming, "", &none);

    for (uint32_t i = 0; i < counts.module_count; i++) {
        struct named_module *named = module_at(naming, i);

        named->packed.first_answer = counts.answer_count;
        named->packed.answer_count = (uint32_t)named->answers.count;
        counts.answer_count += (uint32_t)named->answers.count;
        if (named->answers.count > 1) {
            qsort(named->answers.items, named->answers.count,
                  sizeof(struct seep_packed_answer), compare_answers);
        }
    }
    counts.text_bytes = (uint32_t)naming->text_bytes;
    size = sizeof(counts) +
           counts.module_count * sizeof(struct seep_packed_module) +
           counts.answer_count * sizeof(struct seep_packed_answer) +
           counts.frame_count * sizeof(struct seep_packed_frame) +
           counts.text_bytes;
    bytes = error == 0 ? malloc(size) : NULL;
    if (bytes == NULL) {
        return error == 0 ? -ENOMEM : error;
    }
    at = append(bytes, &counts, sizeof(counts));
    for (uint32_t i = 0; i < counts.module_count; i++) {
        at = append(at, &module_at(naming, i)->packed,
                    sizeof(struct seep_packed_module));
    }
    for (uint32_t i = 0; i < counts.module_count; i++) {
        const struct list *answers = &module_at(naming, i)->answers;

        at = append(at, answers->items,
                    answers->count * sizeof(struct seep_packed_answer));
    }
    at = append(at, naming->frames.items,
                counts.frame_count * sizeof(struct seep_packed_frame));
    append(at, naming->texts, counts.text_bytes);
    *ret_bytes = bytes;
    *ret_size = size;
    return 0;
}
