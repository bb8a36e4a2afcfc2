/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the user knows of call sites. Invariant: a file is
 * taken whole or not at all, so a report never rests on half of its rules.
 */
#include "reader/compare/suppress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader/recording/open.h"

#define SEEP_READ_TEXT_BYTES (4U << 20) /* larger is no file of this kind */
/* Each is tried at each frame: 600,000 of them took a report minutes. */
#define RULES_MOST 4096U
#define PATTERN_BYTES_MOST 4096U

/* Up to @capacity bytes of @fd. */
static int read_all(int fd, char *bytes, size_t capacity, size_t *ret_length)
{
    ssize_t got = 1;

    for (*ret_length = 0; got > 0 && *ret_length < capacity;
         *ret_length += (size_t)got) {
        got = TEMP_FAILURE_RETRY(
            read(fd, bytes + *ret_length, capacity - *ret_length));
        if (got < 0) {
            return -errno;
        }
    }
    return 0;
}

/* No more than it had when it was opened and one byte: what grew meanwhile is
 * refused. */
static int read_open(int fd, uint64_t size_bytes, const char *remedy,
                     struct seep_refusal *ret_refusal, char **ret_text,
                     size_t *ret_length)
{
    size_t capacity = (size_t)size_bytes + 1;
    size_t length;
    char *text;
    int error;

    if (size_bytes > SEEP_READ_TEXT_BYTES) {
        return seep_open_refuse(ret_refusal, -EFBIG, "is larger than 4 MiB",
                                remedy);
    }
    text = malloc(capacity + 1);
    error = text == NULL ? -ENOMEM : read_all(fd, text, capacity, &length);
    if (error != 0) {
        seep_open_refuse_errno(ret_refusal, error);
    } else if (length == capacity || memchr(text, '\0', length) != NULL) {
        error = seep_open_refuse(ret_refusal, -EBADMSG,
                                 "is not text, or is being written", remedy);
    }
    if (error != 0) {
        free(text);
        return error;
    }
    text[length] = '\0';
    *ret_text = text;
    *ret_length = length;
    return 0;
}

int seep_read_text(const char *path, const char *remedy,
                   struct seep_refusal *ret_refusal, char **ret_text,
                   size_t *ret_length)
{
    uint64_t size_bytes;
    int fd;
    int error = seep_open_file(path, ret_refusal, &fd, &size_bytes);

    if (error != 0) {
        if (ret_refusal != NULL && error != -EACCES && error != -EPERM) {
            snprintf(ret_refusal->remedy, sizeof(ret_refusal->remedy), "%s",
                     remedy);
        }
        return error;
    }
    error =
        read_open(fd, size_bytes, remedy, ret_refusal, ret_text, ret_length);
    close(fd);
    return error;
}

/* The rules of a file, and the bounds that were named. */

#define KNOWN_ID_LENGTH 4 /* fewer digits may be the beginning of many ids */

/* A pattern that is no leak, or a site and the bound that was named for it. */
struct rule {
    char *text;
    bool is_id; /* the beginning of the site's id */
    uint64_t bound_bytes;
};

/* In the order in which they were given. */
struct seep_rules {
    struct rule *list;
    size_t count;
};

static int add_rule(struct seep_rules *rules, const char *text, size_t length,
                    struct rule rule)
{
    bool is_full = (rules->count & (rules->count - 1)) == 0;
    struct rule *list = rules->list;

    if (is_full) {
        list = realloc(list, (2 * rules->count + 1) * sizeof(*list));
    }
    if (list == NULL) {
        return -ENOMEM;
    }
    rules->list = list;
    rule.text = strndup(text, length);
    if (rule.text == NULL) {
        return -ENOMEM;
    }
    list[rules->count++] = rule;
    return 0;
}

static void drop_from(struct seep_rules *rules, size_t count)
{
    while (rules->count > count) {
        free(rules->list[--rules->count].text);
    }
}

void seep_rules_close(struct seep_rules *rules)
{
    if (rules != NULL) {
        drop_from(rules, 0);
        free(rules->list);
        free(rules);
    }
}

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

static int refuse_line(struct seep_refusal *ret_refusal, size_t number,
                       const char *what)
{
    char reason[96];

    snprintf(reason, sizeof(reason), "line %zu: %s", number, what);
    return seep_open_refuse(
        ret_refusal, -EINVAL, reason,
        "write one rule per line, leak:PATTERN; # begins a line that is a comment");
}

/* One line, without its end. */
static int add_line(struct seep_rules *rules, const char *line, size_t length,
                    size_t number, struct seep_refusal *ret_refusal)
{
    size_t blanks = strspn(line, " \t"); /* none is the end of a line */
    const char *colon;
    int error;

    line += blanks;
    length -= blanks;
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
        return refuse_line(ret_refusal, number, "is not a rule");
    }
    if (length == 5) {
        return refuse_line(ret_refusal, number, "has no pattern after leak:");
    }
    if (length - 5 > PATTERN_BYTES_MOST) {
        return refuse_line(ret_refusal, number, "is longer than 4,096 bytes");
    }
    if (rules->count >= RULES_MOST) {
        return refuse_line(ret_refusal, number, "is one of over 4,096 rules");
    }
    error =
        add_rule(rules, line + 5, length - 5, (struct rule){.is_id = false});
    return error == 0 ? 0 : seep_open_refuse_errno(ret_refusal, error);
}

static int add_lines(struct seep_rules *rules, const char *text,
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

int seep_suppressions_add_file(struct seep_rules **suppressions,
                               const char *path,
                               struct seep_refusal *ret_refusal)
{
    struct seep_rules *made = *suppressions;
    size_t count = made != NULL ? made->count : 0;
    size_t length;
    char *text;
    int error = seep_read_text(path, "give a file with lines leak:PATTERN",
                               ret_refusal, &text, &length);

    if (error != 0) {
        return error;
    }
    if (made == NULL) {
        made = calloc(1, sizeof(*made));
    }
    error = made != NULL ? add_lines(made, text, ret_refusal)
                         : seep_open_refuse_errno(ret_refusal, -ENOMEM);
    free(text);
    if (error == 0) {
        *suppressions = made;
    } else if (*suppressions == NULL) {
        seep_rules_close(made);
    } else {
        drop_from(made, count);
    }
    return error;
}

static bool matches_a_frame(const char *pattern,
                            const struct seep_report_site *site)
{
    for (size_t i = 0; i < site->frame_count; i++) {
        if (seep_match_frame(pattern, site->frames[i])) {
            return true;
        }
    }
    return false;
}

const char *seep_suppressions_find(const struct seep_rules *suppressions,
                                   const struct seep_report_site *site)
{
    for (size_t i = 0; suppressions != NULL && i < suppressions->count; i++) {
        const char *pattern = suppressions->list[i].text;

        if (matches_a_frame(pattern, site)) {
            return pattern;
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

int seep_known_add(struct seep_rules **known, const char *site,
                   uint64_t bound_bytes)
{
    struct rule rule = {.is_id = is_id_beginning(site),
                        .bound_bytes = bound_bytes};

    if (site[0] == '\0' || bound_bytes == 0) {
        return -EINVAL;
    }
    if (*known == NULL) {
        *known = calloc(1, sizeof(**known));
    }
    return *known != NULL ? add_rule(*known, site, strlen(site), rule)
                          : -ENOMEM;
}

static bool is_known_as(const struct rule *rule,
                        const struct seep_report_site *site)
{
    if (rule->is_id) {
        size_t length = strlen(rule->text);

        return strncasecmp(site->id, rule->text, length) == 0 ||
               strncasecmp(site->line_id, rule->text, length) == 0;
    }
    return (site->where != NULL && seep_match_text(rule->text, site->where)) ||
           matches_a_frame(rule->text, site);
}

uint64_t seep_known_find(const struct seep_rules *known,
                         const struct seep_report_site *site)
{
    for (size_t i = 0; known != NULL && i < known->count; i++) {
        if (is_known_as(&known->list[i], site)) {
            return known->list[i].bound_bytes;
        }
    }
    return 0;
}
