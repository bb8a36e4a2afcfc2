/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One pattern of a catalogue, from JSON. Invariant: what is not understood is
 * a fault. A condition that is passed over (a key mistyped, a class unknown)
 * would make the pattern match more than its writer meant.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/catalogue_parts.h"

#define LIST_LIMIT 64    /* of alternatives, frames, sources */
#define TEXT_LIMIT 600   /* bytes of a sentence */
#define NAME_LIMIT 200   /* bytes of a pattern or a name */
#define LITERAL_LENGTH 3 /* shorter ones are in too many names */

struct parser {
    char *fault;
    size_t size;
};

static int fail(const struct parser *parser, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(parser->fault, parser->size, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

static int check_keys(const struct parser *parser, const json_t *object,
                      const char *where, const char *const *known)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object)) {
        return fail(parser, "%s is no object", where);
    }
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t i = 0;

        while (known[i] != NULL && strcmp(known[i], key) != 0) {
            i++;
        }
        if (known[i] == NULL) {
            return fail(parser, "%s has an unknown key, %.40s", where, key);
        }
    }
    return 0;
}

/* Printable, so that no view needs to escape it. */
static bool is_text(const char *text, size_t limit)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) {
            return false;
        }
    }
    return length > 0 && length <= limit;
}

static int take_text(const struct parser *parser, const json_t *object,
                     const char *key, size_t limit, const char **ret_text)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (text == NULL || !is_text(text, limit)) {
        return fail(parser, "%s is no text of 1 to %zu bytes", key, limit);
    }
    *ret_text = text;
    return 0;
}

static int take_id(const struct parser *parser, const json_t *object,
                   const char **ret_id)
{
    const char *id = json_string_value(json_object_get(object, "id"));

    if (id == NULL || id[0] == '\0' || strlen(id) > 64 ||
        strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(id)) {
        return fail(parser, "id is none: lower case letters, digits and -");
    }
    *ret_id = id;
    return 0;
}

static int take_sources(const struct parser *parser, const json_t *object,
                        const char **ret_first)
{
    const json_t *list = json_object_get(object, "source");
    size_t count = json_array_size(list);

    if (count == 0 || count > LIST_LIMIT) {
        return fail(parser, "source is no list of URLs");
    }
    for (size_t i = 0; i < count; i++) {
        const char *url = json_string_value(json_array_get(list, i));

        if (url == NULL || !is_text(url, NAME_LIMIT) ||
            strncmp(url, "https://", 8) != 0) {
            return fail(parser, "source has what is no https:// URL");
        }
    }
    *ret_first = json_string_value(json_array_get(list, 0));
    return 0;
}

/* A pattern that says something: one part of it is long enough. */
static bool is_pattern(const char *text)
{
    if (!is_text(text, NAME_LIMIT)) {
        return false;
    }
    for (const char *part = text; *part != '\0'; part += strcspn(part, "*^$")) {
        part += strspn(part, "*^$");
        if (strcspn(part, "*^$") >= LITERAL_LENGTH) {
            return true;
        }
    }
    return false;
}

static int take_name_part(const struct parser *parser, const json_t *object,
                          const char *key, const char **ret_text)
{
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);

    if (value != NULL && (text == NULL || !is_pattern(text))) {
        return fail(parser, "%s has no pattern of 3 to 200 letters", key);
    }
    *ret_text = text;
    return 0;
}

static int take_name(const struct parser *parser, const json_t *value,
                     const char *where, struct seep_catalogue_name *ret_name)
{
    static const char *const keys[] = {"function", "file", "module", NULL};
    int error;

    if (json_is_string(value)) {
        ret_name->any = json_string_value(value);
        return is_pattern(ret_name->any)
                   ? 0
                   : fail(parser, "%s has no pattern of 3 to 200 letters",
                          where);
    }
    error = check_keys(parser, value, where, keys);
    if (error == 0 && json_object_size(value) == 0) {
        error = fail(parser, "%s has an empty object", where);
    }
    if (error == 0) {
        error = take_name_part(parser, value, "function", &ret_name->function);
    }
    if (error == 0) {
        error = take_name_part(parser, value, "file", &ret_name->file);
    }
    if (error == 0) {
        error = take_name_part(parser, value, "module", &ret_name->module);
    }
    return error;
}

/* A list of alternatives; NULL is an empty one. */
static int take_names(const struct parser *parser, const json_t *list,
                      const char *where, struct seep_catalogue_names *ret_names)
{
    size_t count = json_array_size(list);
    int error = 0;

    if (list == NULL) {
        return 0;
    }
    if (count == 0 || count > LIST_LIMIT) {
        return fail(parser, "%s is no list of 1 to 64 patterns", where);
    }
    ret_names->names = calloc(count, sizeof(*ret_names->names));
    if (ret_names->names == NULL) {
        return -ENOMEM;
    }
    ret_names->count = count;
    for (size_t i = 0; error == 0 && i < count; i++) {
        error = take_name(parser, json_array_get(list, i), where,
                          &ret_names->names[i]);
    }
    return error;
}

static int take_frames(const struct parser *parser, const json_t *list,
                       struct seep_catalogue_entry *entry)
{
    size_t count = json_array_size(list);
    int error = 0;

    if (count == 0 || count > LIST_LIMIT) {
        return fail(parser, "frames is no list of 1 to 64 lists");
    }
    entry->frames = calloc(count, sizeof(*entry->frames));
    if (entry->frames == NULL) {
        return -ENOMEM;
    }
    entry->frame_count = count;
    for (size_t i = 0; error == 0 && i < count; i++) {
        error = take_names(parser, json_array_get(list, i), "frames",
                           &entry->frames[i]);
    }
    return error;
}

/* The bits of names that are in @known, @count of them; NULL is any. */
static int take_set(const struct parser *parser, const json_t *object,
                    const char *key, const char *const *known, size_t count,
                    uint32_t *ret_bits)
{
    const json_t *list = json_object_get(object, key);
    uint32_t bits = 0;

    if (list != NULL && json_array_size(list) == 0) {
        return fail(parser, "%s is no list of names", key);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        size_t which = 0;

        while (name != NULL && which < count &&
               strcmp(name, known[which]) != 0) {
            which++;
        }
        if (name == NULL || which == count) {
            return fail(parser, "%s has no %.40s", key,
                        name != NULL ? name : "name");
        }
        bits |= 1U << which;
    }
    *ret_bits = bits;
    return 0;
}

static int take_count(const struct parser *parser, const json_t *object,
                      const char *key, uint64_t *ret_count)
{
    const json_t *value = json_object_get(object, key);

    if (value == NULL) {
        return 0;
    }
    if (!json_is_integer(value) || json_integer_value(value) <= 0) {
        return fail(parser, "%s is no number above 0", key);
    }
    *ret_count = (uint64_t)json_integer_value(value);
    return 0;
}

static int take_block_bytes(const struct parser *parser, const json_t *match,
                            struct seep_catalogue_entry *entry)
{
    static const char *const keys[] = {"min", "max", NULL};
    const json_t *range = json_object_get(match, "block_bytes");
    int error;

    if (range == NULL) {
        return 0;
    }
    entry->condition_count++;
    error = check_keys(parser, range, "block_bytes", keys);
    if (error == 0) {
        error = take_count(parser, range, "min", &entry->block_bytes_low);
    }
    if (error == 0) {
        error = take_count(parser, range, "max", &entry->block_bytes_high);
    }
    return error;
}

static int take_site(const struct parser *parser, const json_t *match,
                     struct seep_catalogue_entry *entry)
{
    static const char *const keys[] = {"frames", "depth",       "not", "space",
                                       "class",  "block_bytes", NULL};
    static const char *const spaces[] = {
#define SPACE_NAME(symbol, value, name) [value] = (name),
        SEEP_SPACES(SPACE_NAME)
#undef SPACE_NAME
    };
    static const char *const classes[] = {
#define CLASS_NAME(symbol, name) (name),
        SEEP_CLASSES(CLASS_NAME)
#undef CLASS_NAME
    };
    uint64_t depth = 0;
    int error = check_keys(parser, match, "match", keys);

    if (error == 0) {
        error = take_frames(parser, json_object_get(match, "frames"), entry);
    }
    if (error == 0) {
        error = take_count(parser, match, "depth", &depth);
    }
    if (error == 0) {
        error = take_names(parser, json_object_get(match, "not"), "not",
                           &entry->no);
    }
    if (error == 0) {
        error = take_set(parser, match, "space", spaces, SEEP_SPACE_COUNT,
                         &entry->spaces);
    }
    if (error == 0) {
        error = take_set(parser, match, "class", classes, SEEP_CLASS_COUNT,
                         &entry->classes);
    }
    if (error == 0) {
        error = take_block_bytes(parser, match, entry);
    }
    entry->depth = (size_t)depth;
    entry->condition_count += (depth > 0) + (entry->no.count > 0) +
                              (entry->spaces != 0) + (entry->classes != 0);
    return error;
}

static int take_process_names(const struct parser *parser,
                              const json_t *process,
                              struct seep_catalogue_entry *entry)
{
    int error = take_names(parser, json_object_get(process, "executable"),
                           "executable", &entry->executable);

    if (error == 0) {
        error = take_names(parser, json_object_get(process, "loaded"), "loaded",
                           &entry->loaded);
    }
    if (error == 0) {
        error = take_names(parser, json_object_get(process, "mapping"),
                           "mapping", &entry->mapping);
    }
    return error;
}

static int take_process(const struct parser *parser, const json_t *process,
                        struct seep_catalogue_entry *entry)
{
    static const char *const keys[] = {"verdict", "allocator", "executable",
                                       "loaded",  "mapping",   NULL};
    static const char *const verdicts[] = {
#define VERDICT_NAME(symbol, name) (name),
        SEEP_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
    };
    static const char *const allocators[] = {
        [SEEP_ALLOCATOR_UNKNOWN] = "unknown",
        [SEEP_ALLOCATOR_GLIBC] = "glibc",
        [SEEP_ALLOCATOR_JEMALLOC] = "jemalloc",
        [SEEP_ALLOCATOR_TCMALLOC] = "tcmalloc",
        [SEEP_ALLOCATOR_MIMALLOC] = "mimalloc",
    };
    int error = check_keys(parser, process, "process", keys);

    entry->for_process = true;
    if (error == 0) {
        error = take_set(parser, process, "verdict", verdicts,
                         SEEP_VERDICT_COUNT, &entry->verdicts);
    }
    if (error == 0 && entry->verdicts == 0) {
        error = fail(parser, "process has no verdict");
    }
    if (error == 0) {
        error = take_set(parser, process, "allocator", allocators,
                         sizeof(allocators) / sizeof(allocators[0]),
                         &entry->allocators);
    }
    if (error == 0) {
        error = take_process_names(parser, process, entry);
    }
    entry->condition_count +=
        (entry->allocators != 0) + (entry->executable.count > 0) +
        (entry->loaded.count > 0) + (entry->mapping.count > 0);
    return error;
}

static int take_words(const struct parser *parser, const json_t *object,
                      struct seep_pattern *pattern)
{
    int error = take_id(parser, object, &pattern->id);

    if (error == 0) {
        error = take_text(parser, object, "name", NAME_LIMIT, &pattern->name);
    }
    if (error == 0) {
        error = take_text(parser, object, "cause", TEXT_LIMIT, &pattern->cause);
    }
    if (error == 0) {
        error =
            take_text(parser, object, "remedy", TEXT_LIMIT, &pattern->remedy);
    }
    return error == 0 ? take_sources(parser, object, &pattern->source) : error;
}

/* Which kind of pattern: of sites or of the process. */
static int take_conditions(const struct parser *parser, const json_t *object,
                           struct seep_catalogue_entry *entry)
{
    const json_t *match = json_object_get(object, "match");
    const json_t *process = json_object_get(object, "process");

    if ((match == NULL) == (process == NULL)) {
        return fail(parser, "needs either match or process");
    }
    return match != NULL ? take_site(parser, match, entry)
                         : take_process(parser, process, entry);
}

int seep_catalogue_parse_entry(const json_t *object, char *ret_fault,
                               size_t size,
                               struct seep_catalogue_entry *ret_entry)
{
    static const char *const keys[] = {"id",      "name",    "cause",
                                       "remedy",  "source",  "match",
                                       "process", "comment", NULL};
    struct parser parser = {ret_fault, size};
    struct seep_catalogue_entry entry = {.frame_count = 0};
    int error = check_keys(&parser, object, "it", keys);

    if (error == 0) {
        error = take_words(&parser, object, &entry.pattern);
    }
    if (error == 0) {
        error = take_conditions(&parser, object, &entry);
    }
    if (error != 0) {
        seep_catalogue_entry_fini(&entry);
        return error;
    }
    *ret_entry = entry;
    return 0;
}

void seep_catalogue_entry_fini(struct seep_catalogue_entry *entry)
{
    for (size_t i = 0; i < entry->frame_count; i++) {
        free(entry->frames[i].names);
    }
    free(entry->frames);
    free(entry->no.names);
    free(entry->executable.names);
    free(entry->loaded.names);
    free(entry->mapping.names);
}
