/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What takes the place of paths, arguments, hosts, labels, marks and names of
 * threads, in a recording that leaves the house.
 *
 * Invariant: no byte of a string stays that is not written anew here, and what
 * a call site is told by is written as it was.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/word.h"
#include "format/layout.h"
#include "pack/pack.h"
#include "reader/symbols/where.h"

enum kind { FOLDER, ARGUMENT, HOST, BOOT, VALUE, MARK, TITLE, MAPPING };

static const char *const forms[] = {
    [FOLDER] = "d%u",    [ARGUMENT] = "a%u", [HOST] = "host%u",
    [BOOT] = "boot%u",   [VALUE] = "v%u",    [MARK] = "mark %u",
    [TITLE] = "title%u", [MAPPING] = "m%u",
};

void seep_redaction_fini(struct seep_redaction *redaction)
{
    seep_store_table_fini(&redaction->texts);
    seep_store_fini(&redaction->store);
}

/* What stands for the first @length bytes of @text; NULL: no memory. */
static const char *stand_in(struct seep_redaction *redaction, enum kind kind,
                            const char *text, size_t length)
{
    char *key;
    struct seep_store_entry *entry;
    char made[32];

    if (length == 0) {
        return "";
    }
    key = malloc(length + 1);
    if (key == NULL) {
        return NULL;
    }
    key[0] = (char)('0' + kind);
    memcpy(key + 1, text, length);
    entry =
        seep_store_find(&redaction->store, &redaction->texts, key, length + 1);
    free(key);
    if (entry != NULL && entry->value == NULL) {
        unsigned number = ++redaction->counts[kind];
        const char *form = forms[kind];

        snprintf(made, sizeof(made), "%.*s%u", (int)strcspn(form, "%"), form,
                 number);
        entry->value = seep_store_text(&redaction->store, made);
    }
    return entry != NULL ? entry->value : NULL;
}

static const char *stand_in_all(struct seep_redaction *redaction,
                                enum kind kind, const char *text)
{
    return stand_in(redaction, kind, text, strlen(text));
}

/* Takes @text over. */
static const char *keep(struct seep_redaction *redaction, char *text)
{
    const char *kept =
        text != NULL ? seep_store_text(&redaction->store, text) : NULL;

    free(text);
    return kept;
}

__attribute__((format(printf, 2, 3))) static const char *
make(struct seep_redaction *redaction, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) {
        text = NULL;
    }
    va_end(arguments);
    return keep(redaction, text);
}

/* Paths. */

/* Of every machine of that kind. */
static bool is_system(const char *path)
{
    static const char *const folders[] = {
        "/usr/lib/",
        "/usr/lib64/",
        "/usr/bin/",
        "/usr/include/",
        "/lib/",
        "/lib64/",
        "/usr/local/lib/python",
    };

    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        if (strncmp(path, folders[i], strlen(folders[i])) == 0) {
            return strstr(path, "/../") == NULL;
        }
    }
    return false;
}

/* Where of @path that begins what is the same wherever it is installed: its
 * name, and before it what tells whose it is. */
static const char *tail_of(const char *path)
{
    static const char *const roots[] = {"site-packages/", "dist-packages/",
                                        "bin/"};
    const char *name = seep_text_base_name(path);
    const char *tail = seep_where_python_tail(path);
    const char *at;

    tail = tail < name ? tail : name;
    for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
        size_t length = strlen(roots[i]);

        if ((size_t)(tail - path) >= length &&
            memcmp(tail - length, roots[i], length) == 0) {
            return tail - length;
        }
    }
    if (seep_where_python_origin(path) == SEEP_PYTHON_LIBRARY) {
        at = strstr(path, "lib/python");
        for (const char *next = at; next != NULL && next < tail;
             next = strstr(next + 1, "lib/python")) {
            at = next;
        }
        return at != NULL && at < tail ? at : tail;
    }
    return tail;
}

/* What a file is called: how much of @text is that. Behind it may be anything,
 * as the query of an address. */
static size_t name_length(const char *text)
{
    size_t length = 0;

    while (isalnum((unsigned char)text[length]) ||
           (unsigned char)text[length] >= 0x80 ||
           (text[length] != '\0' &&
            strchr("/._-+~,()[] ", text[length]) != NULL)) {
        length++;
    }
    return length;
}

/* What Python itself calls code that is of no file. */
static bool is_pythons_own(const char *path)
{
    static const char *const names[] = {"<string>", "<stdin>", "<unknown>",
                                        "<__array_function__ internals>"};
    static const char frozen[] = "<frozen ";
    size_t length = sizeof(frozen) - 1;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strcmp(path, names[i]) == 0) {
            return true;
        }
    }
    return strncmp(path, frozen, length) == 0 &&
           strcmp(path + length + name_length(path + length), ">") == 0;
}

/* A path of Windows has no other separator. */
static const char *behind_backslashes(const char *tail)
{
    const char *last = strrchr(tail, '\\');

    return last != NULL ? last + 1 : tail;
}

const char *seep_redact_path(struct seep_redaction *redaction, const char *path)
{
    const char *tail = behind_backslashes(tail_of(path));
    size_t length = (size_t)(tail - path);
    size_t named = name_length(tail);
    const char *folder = "";
    const char *rest;

    if (is_pythons_own(path)) {
        return path;
    }
    if (path[0] == '<') {
        rest = stand_in_all(redaction, VALUE, path);
        return rest == NULL ? NULL : make(redaction, "<%s>", rest);
    }
    if (path[0] == '[' && strpbrk(path, "/:") != NULL) { /* [anon:NAME] */
        return stand_in_all(redaction, MAPPING, path);
    }
    if (tail[named] == '\0' && (is_system(path) || length <= 1)) {
        return path;
    }
    rest = stand_in_all(redaction, VALUE, tail + named);
    if (length > 1) {
        char last = tail[-1];

        folder = stand_in(redaction, FOLDER, path,
                          length - (last == '/' || last == '\\'));
    }
    return rest == NULL || folder == NULL
               ? NULL
               : make(redaction, "%s%s%s%.*s%.*s%s", path[0] == '/' ? "/" : "",
                      folder, length > 1 ? "/" : "", (int)named, tail,
                      tail[named] != '\0', tail + named, rest);
}

const char *seep_redact_recording(struct seep_redaction *redaction,
                                  const struct seep_view *view)
{
    const char *executable =
        seep_text_base_name(seep_view_string(view, view->header->executable));

    return make(redaction, "seep.%.100s.%" PRIu32 ".seep",
                executable[0] != '\0' ? executable : "program",
                view->header->pid);
}

/* Strings. */

/* "key=value,key=value" and lines of "NAME=value": the names stay. */
static const char *redact_values(struct seep_redaction *redaction,
                                 const char *text, char separator)
{
    char ends[] = {separator, '\0'};
    size_t bytes = 0;
    char *made = NULL;
    FILE *file = open_memstream(&made, &bytes);
    bool whole = file != NULL;

    while (whole && *text != '\0') {
        size_t length = strcspn(text, ends);
        const char *equals = memchr(text, '=', length);
        const char *value = equals != NULL ? equals + 1 : text;
        const char *stands =
            stand_in(redaction, VALUE, value, (size_t)(text + length - value));

        whole = stands != NULL;
        fprintf(file, "%.*s%s", (int)(value - text), text, whole ? stands : "");
        text += length;
        if (*text != '\0') {
            fputc(*text++, file);
        }
    }
    if (file != NULL && fclose(file) != 0) {
        whole = false;
    }
    if (!whole) {
        free(made);
        return NULL;
    }
    return keep(redaction, made);
}

/* Threads are grouped, and stacks told, by their names without their numbers:
 * what stands for one says what its hash would be. */
static const char *redact_thread(struct seep_redaction *redaction,
                                 const char *name)
{
    return *name == '\0' ? ""
                         : make(redaction, SEEP_WHERE_THREAD "%016" PRIx64,
                                seep_where_thread_hash(name));
}

/* The new STRINGS. */
struct strings {
    struct seep_redaction *redaction;
    const struct seep_view *view;
    struct seep_store_table places;
    char *bytes;
    size_t used;
};

static int put_new(struct strings *strings, const char *text,
                   seep_string *ret_place)
{
    size_t bytes = strlen(text) + 1;

    if (bytes > strings->view->string_bytes - strings->used) {
        return -ENOSPC;
    }
    memcpy(strings->bytes + strings->used, text, bytes);
    *ret_place = (seep_string)strings->used;
    strings->used += bytes;
    return 0;
}

/* @text: NULL: there was no memory for it */
static int put(struct strings *strings, const char *text,
               seep_string *ret_place)
{
    struct seep_store_entry *entry;
    seep_string place = 0;
    int error = 0;

    if (text == NULL) {
        return -ENOMEM;
    }
    if (*text != '\0') {
        entry = seep_store_find(&strings->redaction->store, &strings->places,
                                text, strlen(text));
        if (entry == NULL) {
            return -ENOMEM;
        }
        place = (seep_string)(uintptr_t)entry->value;
        if (place == 0) {
            error = put_new(strings, text, &place);
            entry->value = (const void *)(uintptr_t)place;
        }
    }
    if (error == 0) {
        *ret_place = place;
    }
    return error;
}

static const char *get(const struct strings *strings, seep_string string)
{
    return seep_view_string(strings->view, string);
}

static int put_path(struct strings *strings, seep_string *string)
{
    return put(strings,
               seep_redact_path(strings->redaction, get(strings, *string)),
               string);
}

/* Is @argument the file of Python that is run? It is on the report's stacks. */
static bool is_script(const struct strings *strings, const char *argument)
{
    const struct seep_view *view = strings->view;
    size_t length = strlen(argument);

    if (length < 4 || strcmp(argument + length - 3, ".py") != 0) {
        return false;
    }
    for (uint32_t i = 0; i < view->code_capacity; i++) {
        const char *file = get(strings, view->codes[i].file);

        if (seep_word_load(&view->codes[i].state) == SEEP_PUBLISHED &&
            strcmp(seep_text_base_name(file), seep_text_base_name(argument)) ==
                0) {
            return true;
        }
    }
    return false;
}

/* One behind the other, so each is put anew. */
static int put_arguments(struct strings *strings)
{
    struct seep_rec_header *header = strings->view->header;
    uint64_t at = header->arguments;
    uint32_t count = header->argument_count;
    seep_string first = 0;
    uint32_t done = 0;
    int error = 0;

    while (error == 0 && done < count && at > 0 &&
           at < strings->view->string_bytes) {
        const char *argument = get(strings, (seep_string)at);
        bool stays = done == 0 || is_script(strings, argument);
        const char *text =
            stays ? seep_redact_path(strings->redaction, argument)
                  : stand_in_all(strings->redaction, ARGUMENT, argument);
        seep_string place = 0;

        error = text == NULL ? -ENOMEM : put_new(strings, text, &place);
        first = done == 0 ? place : first;
        at += strlen(argument) + 1;
        done++;
    }
    header->arguments = first;
    header->argument_count = done;
    return error;
}

static int put_header(struct strings *strings)
{
    struct seep_redaction *redaction = strings->redaction;
    struct seep_rec_header *header = strings->view->header;
    seep_string title = seep_word_load(&header->title);
    int error = put_arguments(strings);

    if (error == 0) {
        error = put_path(strings, &header->executable);
    }
    if (error == 0) {
        error = put_path(strings, &header->allocator);
    }
    if (error == 0) {
        error = put(strings, get(strings, header->seep_version),
                    &header->seep_version);
    }
    if (error == 0) {
        error = put(strings,
                    redact_values(redaction, get(strings, header->labels), ','),
                    &header->labels);
    }
    if (error == 0) {
        error = put(strings,
                    redact_values(redaction,
                                  get(strings, header->rejected_options), '\n'),
                    &header->rejected_options);
    }
    if (error == 0) {
        error =
            put(strings, stand_in_all(redaction, TITLE, get(strings, title)),
                &title);
        seep_word_store(&header->title, title);
    }
    return error;
}

static int put_modules(struct strings *strings)
{
    const struct seep_view *view = strings->view;
    int error = 0;

    for (uint32_t i = 0; error == 0 && i < view->module_capacity; i++) {
        error = put_path(strings, &view->modules[i].path);
    }
    return error;
}

static int put_codes(struct strings *strings)
{
    const struct seep_view *view = strings->view;
    int error = 0;

    for (uint32_t i = 0; error == 0 && i < view->code_capacity; i++) {
        struct seep_rec_code *code = &view->codes[i];
        const char *name = get(strings, code->name);

        seep_word_store(&code->key, 0); /* a hash of what is gone */
        error = put_path(strings, &code->file);
        if (error == 0) {
            error = put(strings,
                        code->kind == SEEP_CODE_PYTHON
                            ? name
                            : redact_thread(strings->redaction, name),
                        &code->name);
        }
    }
    return error;
}

/* The one that tells when the work begins stays: the report goes by it. */
static int put_marks(struct strings *strings)
{
    struct seep_redaction *redaction = strings->redaction;
    const struct seep_view *view = strings->view;
    int error = 0;

    for (uint32_t i = 0; error == 0 && i < view->mark_capacity; i++) {
        struct seep_rec_mark *mark = &view->marks[i];
        const char *name = get(strings, mark->name);
        bool stays =
            mark->kind == SEEP_MARK_LABEL || strcmp(name, SEEP_MARK_WARM) == 0;

        error = put(strings, stays ? name : stand_in_all(redaction, MARK, name),
                    &mark->name);
        if (error == 0) {
            error =
                put(strings,
                    stand_in_all(redaction, VALUE, get(strings, mark->text)),
                    &mark->text);
        }
    }
    return error;
}

static int put_host(struct seep_redaction *redaction,
                    struct seep_rec_header *header)
{
    const char *host = stand_in(redaction, HOST, header->host,
                                strnlen(header->host, sizeof(header->host)));
    const char *boot =
        stand_in(redaction, BOOT, header->boot_id,
                 strnlen(header->boot_id, sizeof(header->boot_id)));

    if (host == NULL || boot == NULL) {
        return -ENOMEM;
    }
    memset(header->host, 0, sizeof(header->host));
    memset(header->boot_id, 0, sizeof(header->boot_id));
    memcpy(header->host, host, strlen(host));
    memcpy(header->boot_id, boot, strlen(boot));
    return 0;
}

int seep_redact_view(struct seep_redaction *redaction,
                     const struct seep_view *view)
{
    static int (*const steps[])(struct strings *) = {put_header, put_modules,
                                                     put_codes, put_marks};
    struct seep_rec_header *header = view->header;
    struct strings strings = {
        .redaction = redaction,
        .view = view,
        .bytes = calloc(view->string_bytes, 1),
        .used = 1, /* place 0 is the empty string */
    };
    int error = strings.bytes == NULL ? -ENOMEM : 0;

    for (size_t i = 0; error == 0 && i < sizeof(steps) / sizeof(*steps); i++) {
        error = steps[i](&strings);
    }
    if (error == 0) {
        error = put_host(redaction, header);
    }
    if (error == 0) {
        memcpy(view->strings, strings.bytes, view->string_bytes);
        seep_word_store(&header->string_bytes_used, strings.used);
        header->fixed_hash = seep_layout_fixed_hash(header);
    }
    seep_store_table_fini(&strings.places);
    free(strings.bytes);
    return error;
}

/* "[heap]" and its like say what a mapping is; the name of a file that is no
 * library may be a customer's. */
int seep_redact_samples(struct seep_redaction *redaction,
                        struct seep_external_samples *samples)
{
    for (size_t i = 0; i < samples->count; i++) {
        struct seep_external_sample *sample = &samples->samples[i];
        const char *file = stand_in_all(redaction, MAPPING, sample->open_file);

        if (file == NULL) {
            return -ENOMEM;
        }
        snprintf(sample->open_file, sizeof(sample->open_file), "%s", file);
        for (size_t j = 0; j < sample->mapping_count; j++) {
            char **name = &sample->mappings[j].name;
            bool stays = **name == '\0' || is_system(*name) ||
                         (**name == '[' && strchr(*name, ':') == NULL);
            const char *text = stays ? *name
                               : strstr(*name, ".so") != NULL
                                   ? seep_redact_path(redaction, *name)
                                   : stand_in_all(redaction, MAPPING, *name);
            char *copy = text != NULL ? strdup(text) : NULL;

            if (copy == NULL) {
                return -ENOMEM;
            }
            free(*name);
            *name = copy;
        }
    }
    return 0;
}

/* Names of the program's own are those of its code; what else an attribute is
 * called, somebody set. */
static bool is_identifier(const char *name, const char *also)
{
    for (; *name != '\0'; name++) {
        if (!isalnum((unsigned char)*name) && strchr(also, *name) == NULL) {
            return false;
        }
    }
    return true;
}

/* What C has of it has members: "cells[...].first". */
static bool is_of_c(const struct seep_held_step *step)
{
    return step->kind == SEEP_HELD_KIND_BLOCK ||
           step->kind == SEEP_HELD_KIND_CXX_OBJECT ||
           step->kind == SEEP_HELD_KIND_GLOBAL ||
           step->kind == SEEP_HELD_KIND_THREAD_LOCAL;
}

static int redact_step(struct seep_redaction *redaction,
                       struct seep_held_step *step)
{
    step->file = seep_redact_path(redaction, step->file);
    if (!is_identifier(step->edge_name, is_of_c(step) ? "_.[]" : "_")) {
        step->edge_name = stand_in_all(redaction, VALUE, step->edge_name);
    }
    if (step->kind == SEEP_HELD_KIND_STACK ||
        !is_identifier(step->name, "_.:<>~*&, ()")) {
        step->name = stand_in_all(redaction, VALUE, step->name);
    }
    return step->file == NULL || step->edge_name == NULL || step->name == NULL
               ? -ENOMEM
               : 0;
}

static int redact_answer(struct seep_redaction *redaction,
                         const struct seep_held_answer *answer)
{
    int error = 0;

    for (size_t j = 0; answer != NULL && j < answer->group_count; j++) {
        const struct seep_held_group *group = &answer->groups[j];

        for (size_t k = 0; error == 0 && k < group->step_count; k++) {
            /* of a book that was read, and is nobody else's */
            error = redact_step(
                redaction,
                (struct seep_held_step *)(uintptr_t)&group->steps[k]);
        }
    }
    return error;
}

int seep_redact_held(struct seep_redaction *redaction,
                     struct seep_held_book *book)
{
    const struct seep_held_kept_pins *pins = book->pins;
    int error = pins == NULL ? 0 : redact_answer(redaction, pins->answer);

    /* What is packed with it names the site, too. */
    for (size_t i = 0; pins != NULL && i < pins->site_count; i++) {
        ((struct seep_held_pin_site *)(uintptr_t)&pins->sites[i])->where = "";
    }
    for (size_t i = 0; error == 0 && i < book->count; i++) {
        error = redact_answer(redaction, book->entries[i].answer);
    }
    return error;
}
