/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See beside.h. */
#include "beside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int seep_beside_path(const char *name, char ret_path[PATH_MAX])
{
    char folder[PATH_MAX];
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    int printed;

    if (length < 0) {
        return -errno;
    }
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        return -ENOENT; /* of a file that is no longer there it can be so */
    }
    *slash = '\0';
    printed = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (printed < 0 || (size_t)printed >= sizeof(path)) {
        return -ENAMETOOLONG;
    }
    memcpy(ret_path, path, (size_t)printed + 1);
    return 0;
}
