/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the user knows of call sites; see suppress.h. Invariant: a file is
 * taken whole or not at all, so a report never rests on half of its rules.
 */
#include "reader/suppress.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/match.h"
#include "reader/open.h"
#include "reader/read_text.h"

#define KNOWN_ID_LENGTH 4 /* fewer digits may be the beginning of many ids */

/* Rules in the order in which they were given. */
struct seep_suppressions {
    char **patterns;
    size_t count;
    size_t capacity;
};

struct known_entry {
    char *site;
    bool is_id;
    uint64_t bound_bytes;
};

struct seep_known {
    struct known_entry *entries;
    size_t count;
};

/* What other sanitizers read from the same file, each between two spaces. */
static const char other_types[] =
    " race race_top mutex thread deadlock signal called_from_lib"
    " interceptor_name interceptor_via_fun interceptor_via_lib vptr_check"
    " odr_violation alloc_dealloc_mismatch alignment bool bounds cfi enum"
    " fixed-point-divide-by-zero float-cast-overflow float-divide-by-zero"
    " function implicit-integer-sign-change implicit-signed-integer-truncation"
    " implicit-unsigned-integer-truncation integer-divide-by-zero"
    " invalid-builtin-use local-bounds nonnull-attribute null nullability-arg"
    " nullability-assign nullability-return object-size pointer-overflow return"
    " returns-nonnull-attribute shift-base shift-exponent"
    " signed-integer-overflow undefined unreachable unsigned-integer-overflow"
    " vla-bound vptr ";

static bool is_other_type(const char *line, size_t length)
{
    char word[48];

    if (length == 0 || length + 3 > sizeof(word) ||
        memchr(line, ' ', length) != NULL) {
        return false;
    }
    snprintf(word, sizeof(word), " %.*s ", (int)length, line);
    return strstr(other_types, word) != NULL;
}

static int add_pattern(struct seep_suppressions *rules, const char *pattern,
                       size_t length)
{
    if (rules->count == rules->capacity) {
        size_t capacity = rules->capacity * 2 + 16;
        char **patterns = realloc(rules->patterns, capacity * sizeof(char *));

        if (patterns == NULL) {
            return -ENOMEM;
        }
        rules->patterns = patterns;
        rules->capacity = capacity;
    }
    rules->patterns[rules->count] = strndup(pattern, length);
    if (rules->patterns[rules->count] == NULL) {
        return -ENOMEM;
    }
    rules->count++;
    return 0;
}

static void drop_from(struct seep_suppressions *rules, size_t count)
{
    while (rules->count > count) {
        free(rules->patterns[--rules->count]);
    }
}

static int refuse_line(struct seep_refusal *ret_refusal, size_t number,
                       const char *what)
{
    char reason[96];

    snprintf(reason, sizeof(reason), "line %zu: %s", number, what);
    return seep_open_refuse(ret_refusal, -EINVAL, reason,
                            "write one rule a line, leak:PATTERN; "
                            "# begins a line that is a comment");
}

/* One line, without its end. */
static int add_line(struct seep_suppressions *rules, const char *line,
                    size_t length, size_t number,
                    struct seep_refusal *ret_refusal)
{
    const char *colon;
    int error;

    while (length > 0 && strchr(" \t", line[0]) != NULL) {
        line++;
        length--;
    }
    while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL) {
        length--;
    }
    if (length == 0 || line[0] == '#') {
        return 0;
    }
    colon = memchr(line, ':', length);
    if (colon != NULL && is_other_type(line, (size_t)(colon - line))) {
        return 0;
    }
    if (length < 5 || memcmp(line, "leak:", 5) != 0) {
        return refuse_line(ret_refusal, number, "is no rule");
    }
    if (length == 5) {
        return refuse_line(ret_refusal, number, "has no pattern behind leak:");
    }
    error = add_pattern(rules, line + 5, length - 5);
    return error == 0 ? 0 : seep_open_refuse_errno(ret_refusal, error);
}

static int add_lines(struct seep_suppressions *rules, const char *text,
                     struct seep_refusal *ret_refusal)
{
    size_t number = 1;
    int error = 0;

    /* What Windows' editors begin a file with. */
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
    }
    for (; error == 0 && *text != '\0'; number++) {
        size_t length = strcspn(text, "\n");

        error = add_line(rules, text, length, number, ret_refusal);
        text += length + (text[length] == '\n');
    }
    return error;
}

int seep_suppressions_add_file(struct seep_suppressions **suppressions,
                               const char *path,
                               struct seep_refusal *ret_refusal)
{
    struct seep_suppressions *rules = *suppressions;
    size_t count = rules != NULL ? rules->count : 0;
    size_t length;
    char *text;
    int error = seep_read_text(path, "give a file of lines leak:PATTERN",
                               ret_refusal, &text, &length);

    if (error != 0) {
        return error;
    }
    if (rules == NULL) {
        rules = calloc(1, sizeof(*rules));
    }
    error = rules != NULL ? add_lines(rules, text, ret_refusal)
                          : seep_open_refuse_errno(ret_refusal, -ENOMEM);
    free(text);
    if (error == 0) {
        *suppressions = rules;
    } else if (*suppressions == NULL) {
        seep_suppressions_close(rules);
    } else {
        drop_from(rules, count);
    }
    return error;
}

void seep_suppressions_close(struct seep_suppressions *suppressions)
{
    if (suppressions != NULL) {
        drop_from(suppressions, 0);
        free(suppressions->patterns);
        free(suppressions);
    }
}

static bool matches_a_frame(const char *pattern,
                            const struct seep_report_site *site)
{
    for (size_t i = 0; i < site->frame_count; i++) {
        if (seep_match_frame(pattern, &site->frames[i])) {
            return true;
        }
    }
    return false;
}

const char *seep_suppressions_find(const struct seep_suppressions *suppressions,
                                   const struct seep_report_site *site)
{
    for (size_t i = 0; suppressions != NULL && i < suppressions->count; i++) {
        if (matches_a_frame(suppressions->patterns[i], site)) {
            return suppressions->patterns[i];
        }
    }
    return NULL;
}

static bool is_id_beginning(const char *site)
{
    size_t length = strlen(site);

    return length >= KNOWN_ID_LENGTH &&
           strspn(site, "0123456789abcdefABCDEF") == length;
}

static int append_known(struct seep_known *list, const char *site,
                        uint64_t bound_bytes)
{
    struct known_entry *entries =
        realloc(list->entries, (list->count + 1) * sizeof(*entries));
    char *copy;

    if (entries == NULL) {
        return -ENOMEM;
    }
    list->entries = entries;
    copy = strdup(site);
    if (copy == NULL) {
        return -ENOMEM;
    }
    list->entries[list->count++] = (struct known_entry){
        .site = copy,
        .is_id = is_id_beginning(copy),
        .bound_bytes = bound_bytes,
    };
    return 0;
}

int seep_known_add(struct seep_known **known, const char *site,
                   uint64_t bound_bytes)
{
    struct seep_known *list = *known;
    int error;

    if (site[0] == '\0' || bound_bytes == 0) {
        return -EINVAL;
    }
    if (list == NULL) {
        list = calloc(1, sizeof(*list));
    }
    error = list != NULL ? append_known(list, site, bound_bytes) : -ENOMEM;
    if (error == 0) {
        *known = list;
    } else if (*known == NULL) {
        seep_known_close(list);
    }
    return error;
}

void seep_known_close(struct seep_known *known)
{
    for (size_t i = 0; known != NULL && i < known->count; i++) {
        free(known->entries[i].site);
    }
    if (known != NULL) {
        free(known->entries);
    }
    free(known);
}

static bool is_known_as(const struct known_entry *entry,
                        const struct seep_report_site *site)
{
    if (entry->is_id) {
        size_t length = strlen(entry->site);

        return strncasecmp(site->id, entry->site, length) == 0 ||
               strncasecmp(site->line_id, entry->site, length) == 0;
    }
    return (site->where != NULL && seep_match_text(entry->site, site->where)) ||
           matches_a_frame(entry->site, site);
}

uint64_t seep_known_find(const struct seep_known *known,
                         const struct seep_report_site *site)
{
    for (size_t i = 0; known != NULL && i < known->count; i++) {
        if (is_known_as(&known->entries[i], site)) {
            return known->entries[i].bound_bytes;
        }
    }
    return 0;
}
