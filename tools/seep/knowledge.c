/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the user knows. Invariant: a file that was named and cannot be used
 * ends the command, since a report without it would be another one; only the
 * installed patterns may be missing.
 */
#include "knowledge.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "share.h"
#include "units.h"

bool seep_knowledge_is_option(int option)
{
    return option >= SEEP_KNOWLEDGE_SUPPRESSIONS &&
           option <= SEEP_KNOWLEDGE_NO_PATTERNS;
}

static int add_path(const char ***paths, size_t *count, const char *path)
{
    const char **grown = reallocarray(*paths, *count + 1, sizeof(*grown));

    if (grown == NULL) {
        seep_say(path, strerror(ENOMEM), NULL);
        return SEEP_EXIT_FAILED;
    }
    *paths = grown;
    grown[(*count)++] = path;
    return 0;
}

/* The last = parts them: a function may be called operator==. */
static int add_known(struct seep_knowledge *knowledge, const char *text)
{
    const char *equals = strrchr(text, '=');
    uint64_t bound;

    if (equals == NULL || equals == text) {
        return seep_say_usage(knowledge->verb, text,
                              "is no SITE=SIZE like 3f9a=512MiB");
    }
    if (seep_units_parse_bytes(equals + 1, &bound) < 0 || bound == 0) {
        return seep_say_usage(knowledge->verb, equals + 1,
                              "is no size like 512KiB or 24 MB");
    }
    char *site = strndup(text, (size_t)(equals - text));
    int error =
        site == NULL ? -ENOMEM : seep_known_add(&knowledge->known, site, bound);
    free(site);
    if (error < 0) {
        seep_say(text, strerror(-error), "see `man seep` for SITE=SIZE");
        return error == -EINVAL ? SEEP_EXIT_USAGE : SEEP_EXIT_FAILED;
    }
    return 0;
}

int seep_knowledge_take(int option, const char *value,
                        struct seep_knowledge *knowledge)
{
    switch (option) {
    case SEEP_KNOWLEDGE_SUPPRESSIONS:
        return add_path(&knowledge->suppression_paths,
                        &knowledge->suppression_count, value);
    case SEEP_KNOWLEDGE_KNOWN:
        return add_known(knowledge, value);
    case SEEP_KNOWLEDGE_PATTERNS:
        return add_path(&knowledge->pattern_paths, &knowledge->pattern_count,
                        value);
    default:
        knowledge->no_patterns = true;
        return 0;
    }
}

static int refuse(const char *path, const struct seep_refusal *refusal,
                  int error)
{
    bool said = *refusal->reason != '\0';

    seep_say(path, said ? refusal->reason : strerror(-error),
             said ? refusal->remedy : "see whether it can be read");
    return SEEP_EXIT_FAILED;
}

static int load_suppressions(struct seep_knowledge *knowledge, const char *path)
{
    struct seep_refusal refusal = {0};
    int error =
        seep_suppressions_add_file(&knowledge->suppressions, path, &refusal);

    return error < 0 ? refuse(path, &refusal, error) : 0;
}

static int load_patterns(struct seep_knowledge *knowledge, const char *path)
{
    struct seep_refusal refusal = {0};
    int error = seep_catalogue_add_file(&knowledge->catalogue, path, &refusal);

    return error < 0 ? refuse(path, &refusal, error) : 0;
}

/* A list of files, as PATH is one of folders. */
static int load_environment(struct seep_knowledge *knowledge)
{
    const char *list = getenv("SEEP_SUPPRESSIONS");
    char *copy = list == NULL ? NULL : strdup(list);
    char *rest = copy;
    char *path;
    int code = 0;

    while (code == 0 && copy != NULL && (path = strsep(&rest, ":")) != NULL) {
        code = *path == '\0' ? 0 : load_suppressions(knowledge, path);
    }
    free(copy);
    return code;
}

static int load_installed(struct seep_knowledge *knowledge)
{
    char *path = NULL;
    int code = 0;

    if (!knowledge->no_patterns && seep_share_patterns(&path) == 0) {
        code = load_patterns(knowledge, path);
    }
    free(path);
    return code;
}

int seep_knowledge_load(struct seep_knowledge *knowledge)
{
    int code = load_environment(knowledge);

    for (size_t i = 0; code == 0 && i < knowledge->suppression_count; i++) {
        code = load_suppressions(knowledge, knowledge->suppression_paths[i]);
    }
    code = code == 0 ? load_installed(knowledge) : code;
    for (size_t i = 0; code == 0 && i < knowledge->pattern_count; i++) {
        code = load_patterns(knowledge, knowledge->pattern_paths[i]);
    }
    return code;
}

void seep_knowledge_close(struct seep_knowledge *knowledge)
{
    seep_suppressions_close(knowledge->suppressions);
    seep_known_close(knowledge->known);
    seep_catalogue_close(knowledge->catalogue);
    free(knowledge->suppression_paths);
    free(knowledge->pattern_paths);
}
