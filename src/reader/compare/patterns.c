/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Known patterns: a catalogue from files. Invariant: a file is added whole or
 * not at all; ids are unique.
 */
#include "reader/compare/patterns.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/compare/catalogue.h"
#include "reader/compare/suppress.h"
#include "reader/recording/open.h"

/*
 * One pattern of a catalogue, from JSON. Invariant: what is not understood is
 * a fault. A condition that is passed over (a key mistyped, a class unknown)
 * would make the pattern match more than its writer meant.
 */

#define LIST_LIMIT 64    /* of alternatives, frames, sources */
#define TEXT_LIMIT 600   /* bytes of a sentence */
#define NAME_LIMIT 200   /* bytes of a pattern or a name */
#define LITERAL_LENGTH 3 /* shorter ones are in too many names */

struct parser {
    char *fault;
    size_t size;
    int error; /* the first one, which ends it */
};

/* A key of an object, and what is done with what stands there; the last of a
 * list has none. */
struct field {
    const char *key;
    /* Called with NULL where the key is missing. NULL: read by the caller. */
    void (*take)(struct parser *parser, const struct field *field,
                 const json_t *value, void *ret_target);
    size_t offset;            /* of what is filled, in what the object is */
    size_t limit;             /* bytes of a text, or names of a set */
    const char *const *names; /* of a set: what its bits are called */
    bool is_required;
};

static void fail(struct parser *parser, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(parser->fault, parser->size, format, arguments);
    va_end(arguments);
    parser->error = -EINVAL;
}

static bool is_known(const struct field *fields, const char *key)
{
    while (fields->key != NULL && strcmp(fields->key, key) != 0) {
        fields++;
    }
    return fields->key != NULL;
}

/* Every key first: of a mistyped one nothing else tells. */
static void take_object(struct parser *parser, const json_t *object,
                        const char *where, const struct field *fields,
                        void *ret_target)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object)) {
        fail(parser, "%s is not an object", where);
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!is_known(fields, key)) {
            fail(parser, "%s has an unknown key, %.40s", where, key);
            return;
        }
    }
    for (const struct field *field = fields;
         field->key != NULL && parser->error == 0; field++) {
        value = json_object_get(object, field->key);
        if (field->is_required && value == NULL) {
            fail(parser, "%s has no %s", where, field->key);
        } else if (field->take != NULL) {
            field->take(parser, field, value,
                        (char *)ret_target + field->offset);
        }
    }
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

static void take_text(struct parser *parser, const struct field *field,
                      const json_t *value, void *ret_text)
{
    const char *text = json_string_value(value);

    if (text == NULL || !is_text(text, field->limit)) {
        fail(parser, "%s is not a string of 1 to %zu bytes", field->key,
             field->limit);
    }
    *(const char **)ret_text = text;
}

static void take_id(struct parser *parser, const struct field *field,
                    const json_t *value, void *ret_id)
{
    const char *id = json_string_value(value);

    if (id == NULL || id[0] == '\0' || strlen(id) > field->limit ||
        strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(id)) {
        fail(parser,
             "id is invalid: expected lower-case letters, digits and -");
    }
    *(const char **)ret_id = id;
}

/* The first of them is shown. */
static void take_sources(struct parser *parser, const struct field *field,
                         const json_t *list, void *ret_first)
{
    size_t count = json_array_size(list);

    if (count == 0 || count > LIST_LIMIT) {
        fail(parser, "source is not a list of URLs");
    }
    for (size_t i = 0; parser->error == 0 && i < count; i++) {
        const char *url = json_string_value(json_array_get(list, i));

        if (url == NULL || !is_text(url, field->limit) ||
            strncmp(url, "https://", 8) != 0) {
            fail(parser, "source has an entry that is not an https:// URL");
        }
    }
    *(const char **)ret_first = json_string_value(json_array_get(list, 0));
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

static void take_pattern(struct parser *parser, const struct field *field,
                         const json_t *value, void *ret_pattern)
{
    const char *text = json_string_value(value);

    if (value != NULL && (text == NULL || !is_pattern(text))) {
        fail(parser, "%s has no pattern of 3 to 200 letters", field->key);
    }
    *(const char **)ret_pattern = text;
}

#define NAME(field) .offset = offsetof(struct seep_catalogue_name, field)

static const struct field name_fields[] = {
    {"function", take_pattern, NAME(function)},
    {"file", take_pattern, NAME(file)},
    {"module", take_pattern, NAME(module)},
    {.key = NULL},
};

static void take_name(struct parser *parser, const struct field *field,
                      const json_t *value, struct seep_catalogue_name *ret_name)
{
    if (json_is_string(value)) {
        take_pattern(parser, field, value, &ret_name->any);
        return;
    }
    take_object(parser, value, field->key, name_fields, ret_name);
    if (parser->error == 0 && json_object_size(value) == 0) {
        fail(parser, "%s has an empty object", field->key);
    }
}

/* @count of @bytes for a list that may have so many; NULL where it failed. */
static void *take_room(struct parser *parser, const struct field *field,
                       const char *of, size_t count, size_t bytes)
{
    void *room;

    if (count == 0 || count > LIST_LIMIT) {
        fail(parser, "%s is not a list of 1 to 64 %s", field->key, of);
        return NULL;
    }
    room = calloc(count, bytes);
    parser->error = room == NULL ? -ENOMEM : 0;
    return room;
}

/* A list of alternatives; NULL is an empty one. */
static void take_names(struct parser *parser, const struct field *field,
                       const json_t *list, void *ret_target)
{
    struct seep_catalogue_names *names = ret_target;
    size_t count = json_array_size(list);

    if (list == NULL) {
        return;
    }
    names->names =
        take_room(parser, field, "patterns", count, sizeof(*names->names));
    names->count = names->names == NULL ? 0 : count;
    for (size_t i = 0; parser->error == 0 && i < count; i++) {
        take_name(parser, field, json_array_get(list, i), &names->names[i]);
    }
}

static void take_frames(struct parser *parser, const struct field *field,
                        const json_t *list, void *ret_target)
{
    struct seep_catalogue_entry *entry = ret_target;
    size_t count = json_array_size(list);

    entry->frames =
        take_room(parser, field, "lists", count, sizeof(*entry->frames));
    entry->frame_count = entry->frames == NULL ? 0 : count;
    for (size_t i = 0; parser->error == 0 && i < count; i++) {
        take_names(parser, field, json_array_get(list, i), &entry->frames[i]);
    }
}

/* The bits of names that are in a list; none is any. */
static void take_set(struct parser *parser, const struct field *field,
                     const json_t *list, void *ret_bits)
{
    uint32_t bits = 0;

    if (list != NULL && json_array_size(list) == 0) {
        fail(parser, "%s is not a list of names", field->key);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        size_t which = 0;

        while (name != NULL && which < field->limit &&
               strcmp(name, field->names[which]) != 0) {
            which++;
        }
        if (name == NULL || which == field->limit) {
            fail(parser, "%s has no %.40s", field->key,
                 name != NULL ? name : "name");
            return;
        }
        bits |= 1U << which;
    }
    *(uint32_t *)ret_bits = bits;
}

static void take_count(struct parser *parser, const struct field *field,
                       const json_t *value, void *ret_count)
{
    if (value == NULL) {
        return;
    }
    if (!json_is_integer(value) || json_integer_value(value) <= 0) {
        fail(parser, "%s is not a number above 0", field->key);
    }
    *(uint64_t *)ret_count = (uint64_t)json_integer_value(value);
}

#define ENTRY(field) .offset = offsetof(struct seep_catalogue_entry, field)
#define NAMES(array) .limit = sizeof(array) / sizeof((array)[0]), .names = array

static const struct field range_fields[] = {
    {"min", take_count, ENTRY(block_bytes_low)},
    {"max", take_count, ENTRY(block_bytes_high)},
    {.key = NULL},
};

static void take_block_bytes(struct parser *parser, const struct field *field,
                             const json_t *range, void *ret_target)
{
    struct seep_catalogue_entry *entry = ret_target;

    if (range != NULL) {
        entry->condition_count++;
        take_object(parser, range, field->key, range_fields, entry);
    }
}

#define VALUE_NAME(symbol, value, name) [value] = (name),

static const char *const spaces[] = {SEEP_SPACES(VALUE_NAME)};
static const char *const classes[] = {SEEP_CLASSES(SEEP_NAME_ALONE)};
static const char *const verdicts[] = {SEEP_VERDICTS(SEEP_NAME_ALONE)};
static const char *const allocators[] = {SEEP_ALLOCATORS(SEEP_NAME_ALONE)};

static const struct field match_fields[] = {
    {"frames", .take = take_frames},
    {"depth", take_count, ENTRY(depth)},
    {"not", take_names, ENTRY(no)},
    {"space", take_set, ENTRY(spaces), NAMES(spaces)},
    {"class", take_set, ENTRY(classes), NAMES(classes)},
    {"block_bytes", .take = take_block_bytes},
    {.key = NULL},
};

static const struct field process_fields[] = {
    {"verdict", take_set, ENTRY(verdicts), NAMES(verdicts),
     .is_required = true},
    {"allocator", take_set, ENTRY(allocators), NAMES(allocators)},
    {"executable", take_names, ENTRY(executable)},
    {"loaded", take_names, ENTRY(loaded)},
    {"mapping", take_names, ENTRY(mapping)},
    {.key = NULL},
};

static const struct field entry_fields[] = {
    {"id", take_id, ENTRY(pattern.id), .limit = 64},
    {"name", take_text, ENTRY(pattern.name), .limit = NAME_LIMIT},
    {"cause", take_text, ENTRY(pattern.cause), .limit = TEXT_LIMIT},
    {"remedy", take_text, ENTRY(pattern.remedy), .limit = TEXT_LIMIT},
    {"source", take_sources, ENTRY(pattern.source), .limit = NAME_LIMIT},
    {.key = "match"},
    {.key = "process"},
    {.key = "comment"},
    {.key = NULL},
};

/* Which kind of pattern: of sites or of the process. */
static void take_conditions(struct parser *parser, const json_t *object,
                            struct seep_catalogue_entry *entry)
{
    const json_t *match = json_object_get(object, "match");
    const json_t *process = json_object_get(object, "process");

    entry->for_process = process != NULL;
    if ((match == NULL) == (process == NULL)) {
        fail(parser, "needs either match or process");
    } else if (match != NULL) {
        take_object(parser, match, "match", match_fields, entry);
    } else {
        take_object(parser, process, "process", process_fields, entry);
    }
    entry->condition_count +=
        (entry->depth > 0) + (entry->no.count > 0) + (entry->spaces != 0) +
        (entry->classes != 0) + (entry->allocators != 0) +
        (entry->executable.count > 0) + (entry->loaded.count > 0) +
        (entry->mapping.count > 0);
}

static void entry_fini(struct seep_catalogue_entry *entry)
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

/*
 * Take one element of "patterns" apart. Its texts are borrowed.
 *
 * @param ret_fault  what is wrong with it, a phrase of at most @size bytes
 * @param ret_entry  to be given to entry_fini(), on success
 */
static int parse_entry(const json_t *object, char *ret_fault, size_t size,
                       struct seep_catalogue_entry *ret_entry)
{
    struct parser parser = {ret_fault, size, 0};
    struct seep_catalogue_entry entry = {.frame_count = 0};

    take_object(&parser, object, "it", entry_fields, &entry);
    if (parser.error == 0) {
        take_conditions(&parser, object, &entry);
    }
    if (parser.error != 0) {
        entry_fini(&entry);
        return parser.error;
    }
    *ret_entry = entry;
    return 0;
}

/* A file of patterns, and catalogues put together. */

#define SCHEMA "seep-patterns/1"
#define PATTERN_LIMIT 10000
#define REMEDY "give a file as seep-patterns(5) describes"

static int refuse(struct seep_refusal *ret_refusal, const char *reason)
{
    return seep_open_refuse(ret_refusal, -EINVAL, reason, REMEDY);
}

/* "patterns" of a document, a list; NULL with a refusal. */
static const json_t *find_list(const json_t *root,
                               struct seep_refusal *ret_refusal)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *about = json_object_get(root, "about");
    const json_t *list = json_object_get(root, "patterns");

    if (schema == NULL || strcmp(schema, SCHEMA) != 0) {
        refuse(ret_refusal, "is not a catalogue: its schema is not " SCHEMA);
        return NULL;
    }
    if (json_object_size(root) !=
        1U + (about != NULL ? 1 : 0) + (list != NULL ? 1 : 0)) {
        refuse(ret_refusal, "has a key other than schema, about and patterns");
        return NULL;
    }
    if (!json_is_array(list) || json_array_size(list) > PATTERN_LIMIT) {
        refuse(ret_refusal, "has no list of at most 10,000 patterns");
        return NULL;
    }
    return list;
}

/* In the place of an older one with its id; there is room for one more. */
static void put_entry(struct seep_catalogue *catalogue,
                      const struct seep_catalogue_entry *entry)
{
    size_t at = 0;

    while (at < catalogue->count &&
           strcmp(catalogue->entries[at].pattern.id, entry->pattern.id) != 0) {
        at++;
    }
    if (at < catalogue->count) {
        entry_fini(&catalogue->entries[at]);
    } else {
        catalogue->count++;
    }
    catalogue->entries[at] = *entry;
}

static int parse_list(struct seep_catalogue *catalogue, const json_t *list,
                      struct seep_refusal *ret_refusal)
{
    size_t count = json_array_size(list);

    catalogue->entries = calloc(count + 1, sizeof(*catalogue->entries));
    if (catalogue->entries == NULL) {
        return seep_open_refuse_errno(ret_refusal, -ENOMEM);
    }
    for (size_t i = 0; i < count; i++) {
        struct seep_catalogue_entry entry;
        const json_t *object = json_array_get(list, i);
        const char *id = json_string_value(json_object_get(object, "id"));
        char fault[100] = "does not fit into memory";
        char reason[192];
        int error = parse_entry(object, fault, sizeof(fault), &entry);

        if (error != 0) {
            snprintf(reason, sizeof(reason), "pattern %zu (%.40s): %s", i + 1,
                     id != NULL ? id : "no id", fault);
            return seep_open_refuse(ret_refusal, error, reason, REMEDY);
        }
        put_entry(catalogue, &entry);
    }
    return 0;
}

/* All of @from goes to @to. */
static int merge(struct seep_catalogue *to, struct seep_catalogue *from)
{
    struct seep_catalogue_entry *entries =
        realloc(to->entries, (to->count + from->count + 1) * sizeof(*entries));

    if (entries == NULL) {
        return -ENOMEM;
    }
    to->entries = entries;
    if (json_array_extend(to->documents, from->documents) != 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < from->count; i++) {
        put_entry(to, &from->entries[i]);
    }
    from->count = 0;
    return 0;
}

static int parse_text(struct seep_catalogue *catalogue, const char *text,
                      size_t length, struct seep_refusal *ret_refusal)
{
    json_error_t fault;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &fault);
    const json_t *list;
    char reason[192];

    if (root == NULL && json_error_code(&fault) == json_error_out_of_memory) {
        return seep_open_refuse_errno(ret_refusal, -ENOMEM);
    }
    if (root == NULL) {
        snprintf(reason, sizeof(reason), "line %d is not JSON: %.120s",
                 fault.line, fault.text);
        return refuse(ret_refusal, reason);
    }
    catalogue->documents = json_array();
    if (json_array_append_new(catalogue->documents, root) != 0) {
        return seep_open_refuse_errno(ret_refusal, -ENOMEM);
    }
    list = find_list(root, ret_refusal);
    return list != NULL ? parse_list(catalogue, list, ret_refusal) : -EINVAL;
}

int seep_catalogue_add_text(struct seep_catalogue **catalogue, const char *text,
                            size_t length, struct seep_refusal *ret_refusal)
{
    struct seep_catalogue *added = calloc(1, sizeof(*added));
    int error;

    if (added == NULL) {
        return seep_open_refuse_errno(ret_refusal, -ENOMEM);
    }
    error = parse_text(added, text, length, ret_refusal);
    if (error == 0 && *catalogue == NULL) {
        *catalogue = added;
        return 0;
    }
    if (error == 0) {
        error = merge(*catalogue, added);
        if (error != 0) {
            seep_open_refuse_errno(ret_refusal, error);
        }
    }
    seep_catalogue_close(added);
    return error;
}

int seep_catalogue_add_file(struct seep_catalogue **catalogue, const char *path,
                            struct seep_refusal *ret_refusal)
{
    size_t length;
    char *text;
    int error = seep_read_text(path, REMEDY, ret_refusal, &text, &length);

    if (error == 0) {
        error = seep_catalogue_add_text(catalogue, text, length, ret_refusal);
        free(text);
    }
    return error;
}

void seep_catalogue_close(struct seep_catalogue *catalogue)
{
    if (catalogue == NULL) {
        return;
    }
    for (size_t i = 0; i < catalogue->count; i++) {
        entry_fini(&catalogue->entries[i]);
    }
    json_decref(catalogue->documents);
    free(catalogue->entries);
    free(catalogue);
}
