/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Known patterns: loading them. Invariant: a file is added whole or not at
 * all; ids are unique.
 */
#include "reader/catalogue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/catalogue_parts.h"
#include "reader/open.h"
#include "reader/read_text.h"

#define SCHEMA "seep-patterns/1"
#define PATTERN_LIMIT 10000
#define REMEDY "give a file as seep-patterns(5) describes"

static int refuse(struct seep_refusal *ret_refusal, const char *reason)
{
    return seep_open_refuse(ret_refusal, -EINVAL, reason, REMEDY);
}

static int parse_document(const char *text, size_t length,
                          struct seep_refusal *ret_refusal, json_t **ret_root)
{
    json_error_t fault;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &fault);
    char reason[192];

    if (root == NULL) {
        snprintf(reason, sizeof(reason), "line %d is no JSON: %.120s",
                 fault.line, fault.text);
        return refuse(ret_refusal, reason);
    }
    *ret_root = root;
    return 0;
}

/* "patterns" of a document, a list; NULL with a refusal. */
static const json_t *find_list(const json_t *root,
                               struct seep_refusal *ret_refusal)
{
    static const char *const keys[] = {"schema", "about", "patterns"};
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *list = json_object_get(root, "patterns");
    size_t known = 0;

    if (schema == NULL || strcmp(schema, SCHEMA) != 0) {
        refuse(ret_refusal, "is no catalogue: its schema is not " SCHEMA);
        return NULL;
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        known += json_object_get(root, keys[i]) != NULL;
    }
    if (json_object_size(root) != known) {
        refuse(ret_refusal, "has a key beside schema, about and patterns");
        return NULL;
    }
    if (!json_is_array(list) || json_array_size(list) > PATTERN_LIMIT) {
        refuse(ret_refusal, "has no list of at most 10,000 patterns");
        return NULL;
    }
    return list;
}

static size_t find_id(const struct seep_catalogue *catalogue, const char *id)
{
    size_t i = 0;

    while (i < catalogue->count &&
           strcmp(catalogue->entries[i].pattern.id, id) != 0) {
        i++;
    }
    return i;
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
        int error =
            seep_catalogue_parse_entry(object, fault, sizeof(fault), &entry);

        if (error != 0) {
            snprintf(reason, sizeof(reason), "pattern %zu (%.40s): %s", i + 1,
                     id != NULL ? id : "no id", fault);
            return seep_open_refuse(ret_refusal, error, reason, REMEDY);
        }
        size_t at = find_id(catalogue, entry.pattern.id);
        if (at < catalogue->count) {
            seep_catalogue_entry_fini(&catalogue->entries[at]);
        }
        catalogue->entries[at] = entry;
        catalogue->count += at == catalogue->count;
    }
    return 0;
}

/* All of @from goes to @to, an entry of one id in the place of the older. */
static int merge(struct seep_catalogue *to, struct seep_catalogue *from)
{
    struct seep_catalogue_entry *entries =
        realloc(to->entries, (to->count + from->count + 1) * sizeof(*entries));
    json_t **documents;

    if (entries == NULL) {
        return -ENOMEM;
    }
    to->entries = entries;
    documents =
        realloc(to->documents, (to->document_count + 1) * sizeof(*documents));
    if (documents == NULL) {
        return -ENOMEM;
    }
    to->documents = documents;
    to->documents[to->document_count++] = from->documents[0];
    from->document_count = 0;
    for (size_t i = 0; i < from->count; i++) {
        size_t at = find_id(to, from->entries[i].pattern.id);

        if (at < to->count) {
            seep_catalogue_entry_fini(&to->entries[at]);
        }
        to->entries[at] = from->entries[i];
        to->count += at == to->count;
    }
    from->count = 0;
    return 0;
}

static int parse_text(struct seep_catalogue *catalogue, const char *text,
                      size_t length, struct seep_refusal *ret_refusal)
{
    const json_t *list;
    int error;

    catalogue->documents = calloc(1, sizeof(*catalogue->documents));
    if (catalogue->documents == NULL) {
        return seep_open_refuse_errno(ret_refusal, -ENOMEM);
    }
    error = parse_document(text, length, ret_refusal, &catalogue->documents[0]);
    if (error != 0) {
        return error;
    }
    catalogue->document_count = 1;
    list = find_list(catalogue->documents[0], ret_refusal);
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
        seep_catalogue_entry_fini(&catalogue->entries[i]);
    }
    for (size_t i = 0; i < catalogue->document_count; i++) {
        json_decref(catalogue->documents[i]);
    }
    free(catalogue->documents);
    free(catalogue->entries);
    free(catalogue);
}

size_t seep_catalogue_count(const struct seep_catalogue *catalogue)
{
    return catalogue != NULL ? catalogue->count : 0;
}
