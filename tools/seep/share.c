/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where data files lie; see share.h. Invariant: an installation that was moved
 * as a whole, and a build, find their own file before any other. Where a build
 * has it is looked last: from /usr/local/bin that is /usr/share.
 */
#include "share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beside.h"

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

static int take_beside(const char *name, char **ret_path)
{
    char path[PATH_MAX];
    int error = seep_beside_path(name, path);

    return error != 0 ? error : take(path, ret_path);
}

int seep_share_patterns(char **ret_path)
{
    static const char *const beside[] = {
        "../" SEEP_DATADIR_NAME "/seep/patterns.json",
        "../share/seep/patterns.json",
        "../../share/seep/patterns.json", /* in a build */
    };
    const char *named = getenv("SEEP_PATTERNS");

    if (named != NULL && *named != '\0') {
        char *copy = strdup(named);

        if (copy == NULL) {
            return -ENOMEM;
        }
        *ret_path = copy;
        return 0;
    }
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        if (take_beside(beside[i], ret_path) == 0) {
            return 0;
        }
    }
    return take(SEEP_DATADIR "/seep/patterns.json", ret_path) == 0 ? 0
                                                                   : -ENOENT;
}
