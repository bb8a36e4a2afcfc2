/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where data files lie; see share.h. Invariant: an installation that was moved
 * as a whole, and a build, find their own file before any other. Where a build
 * has it is looked last: from /usr/local/bin that is /usr/share.
 */
#include "share.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int take(const char *path, char **ret_path)
{
    char *copy;

    if (access(path, R_OK) != 0) {
        return -errno;
    }
    copy = strdup(path);
    if (copy == NULL) {
        return -ENOMEM;
    }
    *ret_path = copy;
    return 0;
}

static int take_beside(const char *folder, const char *name, char **ret_path)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);

    return length < 0 || (size_t)length >= sizeof(path) ? -ENAMETOOLONG
                                                        : take(path, ret_path);
}

int seep_share_patterns(char **ret_path)
{
    static const char *const beside[] = {
        "../" SEEP_DATADIR_NAME "/seep/patterns.json",
        "../share/seep/patterns.json",
        "../../share/seep/patterns.json", /* in a build */
    };
    const char *named = getenv("SEEP_PATTERNS");
    char folder[PATH_MAX];
    ssize_t length;

    if (named != NULL && *named != '\0') {
        char *copy = strdup(named);

        if (copy == NULL) {
            return -ENOMEM;
        }
        *ret_path = copy;
        return 0;
    }
    length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    if (length > 0 && memrchr(folder, '/', (size_t)length) != NULL) {
        *(char *)memrchr(folder, '/', (size_t)length) = '\0';
        for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
            if (take_beside(folder, beside[i], ret_path) == 0) {
                return 0;
            }
        }
    }
    return take(SEEP_DATADIR "/seep/patterns.json", ret_path) == 0 ? 0
                                                                   : -ENOENT;
}
