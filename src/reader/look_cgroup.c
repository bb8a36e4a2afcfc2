/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The memory cgroup of a process, in either version; see look_cgroup.h. */
#include "reader/look_cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/proc_text.h"

/* Version 1 writes "none" as the largest multiple of a page. */
#define NO_LIMIT_BYTES ((uint64_t)1 << 60)
#define STAT_BYTES 16384

struct version {
    const char *mount; /* below the root */
    const char *usage;
    const char *limit;
};

static const struct version unified = {"", "memory.current", "memory.max"};
static const struct version hybrid = {"/unified", "memory.current",
                                      "memory.max"};
static const struct version first = {"/memory", "memory.usage_in_bytes",
                                     "memory.limit_in_bytes"};

/* @return false if there is no such file, or no number in it ("max") */
static bool read_number(const char *folder, const char *name,
                        uint64_t *ret_number)
{
    char path[PATH_MAX];
    char text[32];
    char *end;
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);

    if (length >= (int)sizeof(path) ||
        seep_proc_text(path, text, sizeof(text)) <= 0) {
        return false;
    }
    unsigned long long number = strtoull(text, &end, 10);
    if (end == text || text[0] == '-') {
        return false;
    }
    *ret_number = number;
    return true;
}

/* The path of the line whose controllers are @controllers: "4:memory:/a/b". */
static bool find_path(const char *membership, const char *controllers,
                      char path[PATH_MAX])
{
    for (const char *line = membership; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *name = memchr(line, ':', length);
        const char *end =
            name == NULL
                ? NULL
                : memchr(name + 1, ':', (size_t)(line + length - name - 1));

        if (end != NULL && (size_t)(end - name - 1) == strlen(controllers) &&
            strncmp(name + 1, controllers, strlen(controllers)) == 0 &&
            line + length - end - 1 < PATH_MAX) {
            snprintf(path, PATH_MAX, "%.*s", (int)(line + length - end - 1),
                     end + 1);
            return true;
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

/* "inactive_file 4096", or of version 1 with all groups below. */
static uint64_t read_cache(const char *folder)
{
    static const char *const keys[] = {"\ntotal_inactive_file ",
                                       "\ninactive_file "};
    char path[PATH_MAX];
    char text[STAT_BYTES];
    int length = snprintf(path, sizeof(path), "%s/memory.stat", folder);

    if (length >= (int)sizeof(path) ||
        seep_proc_text(path, text, sizeof(text)) <= 0) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *at = strstr(text, keys[i]);
        if (at != NULL) {
            return strtoull(at + strlen(keys[i]), NULL, 10);
        }
    }
    return 0;
}

struct finding {
    bool cache_is_room;
    uint64_t bytes;
    uint64_t limit_bytes;
    uint64_t left_bytes; /* to the limit */
};

static void look_at(const struct version *version, const char *folder,
                    struct finding *finding)
{
    uint64_t bytes;
    uint64_t limit;
    uint64_t left;

    if (!read_number(folder, version->usage, &bytes)) {
        return;
    }
    if (finding->bytes == 0) {
        finding->bytes = bytes; /* its own, should nothing be limited */
    }
    if (!read_number(folder, version->limit, &limit) || limit == 0 ||
        limit >= NO_LIMIT_BYTES) {
        return;
    }
    left = limit > bytes ? limit - bytes : 0;
    if (finding->cache_is_room) {
        uint64_t cache = read_cache(folder);
        left += cache < bytes ? cache : bytes;
        left = left < limit ? left : limit;
    }
    if (finding->limit_bytes == 0 || left < finding->left_bytes) {
        finding->bytes = bytes;
        finding->limit_bytes = limit;
        finding->left_bytes = left;
    }
}

/* From the group itself up to the mount. In a container the path may be the
 * host's, of which nothing is mounted but what lies at the root. */
static bool climb(const struct version *version, const char *root,
                  const char *path, struct finding *finding)
{
    char folder[2 * PATH_MAX];
    size_t bottom =
        (size_t)snprintf(folder, sizeof(folder), "%s%s", root, version->mount);

    if (bottom >= PATH_MAX || strstr(path, "/..") != NULL) {
        return false; /* outside of the namespace that we see */
    }
    snprintf(folder + bottom, sizeof(folder) - bottom, "%s",
             strcmp(path, "/") == 0 ? "" : path);
    for (;;) {
        look_at(version, folder, finding);
        char *slash = strrchr(folder + bottom, '/');
        if (slash == NULL) {
            return finding->bytes != 0;
        }
        *slash = '\0';
    }
}

static void find(const char *membership, const char *root,
                 struct finding *finding)
{
    char path[PATH_MAX];
    bool found = false;

    if (find_path(membership, "memory", path)) {
        found = climb(&first, root, path, finding);
    }
    if (!found && find_path(membership, "", path) &&
        !climb(&unified, root, path, finding)) {
        climb(&hybrid, root, path, finding);
    }
}

void seep_look_cgroup(const char *membership, const char *root,
                      uint64_t *ret_bytes, uint64_t *ret_limit_bytes)
{
    struct finding finding = {0};

    find(membership, root, &finding);
    *ret_bytes = finding.bytes;
    *ret_limit_bytes = finding.limit_bytes;
}

void seep_look_cgroup_room(const char *membership, const char *root,
                           uint64_t *ret_left_bytes, uint64_t *ret_limit_bytes)
{
    struct finding finding = {.cache_is_room = true};

    find(membership, root, &finding);
    *ret_left_bytes = finding.left_bytes;
    *ret_limit_bytes = finding.limit_bytes;
}
