/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where libraries lie. Invariant: what is returned is an absolute path of a
 * file that can be read now, so the loader does not search and does not warn.
 */
#include "locate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beside.h"

/* The loader splits LD_PRELOAD at these and expands $ORIGIN. */
#define FORBIDDEN " :\t\n$"

static int take(const char *path, char **ret_path)
{
    char *real = realpath(path, NULL);

    if (real == NULL) {
        return -errno;
    }
    if (access(real, R_OK) < 0) {
        free(real);
        return -EACCES;
    }
    if (strpbrk(real, FORBIDDEN) != NULL) {
        free(real);
        return -EINVAL;
    }
    *ret_path = real;
    return 0;
}

static int take_beside(const char *name, char **ret_path)
{
    char path[PATH_MAX];
    int error = seep_beside_path(name, path);

    return error != 0 ? error : take(path, ret_path);
}

int seep_locate_preload(char **ret_path)
{
    static const char *const beside[] = {
        "../../src/preload/libseep.so", /* in a build */
        "../" SEEP_LIBDIR_NAME "/seep/libseep.so",
        "../lib/seep/libseep.so",
        "../lib64/seep/libseep.so",
    };
    const char *named = getenv("SEEP_PRELOAD");

    if (named != NULL && *named != '\0') {
        return take(named, ret_path);
    }
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        int error = take_beside(beside[i], ret_path);
        if (error == 0 || error == -EINVAL) {
            return error;
        }
    }
    return take(SEEP_LIBDIR "/seep/libseep.so", ret_path);
}

static const char *const *sonames_of(const char *name)
{
    static const char *const jemalloc[] = {"libjemalloc.so.2",
                                           "libjemalloc.so.1", NULL};
    static const char *const tcmalloc[] = {"libtcmalloc.so.4",
                                           "libtcmalloc_minimal.so.4", NULL};
    static const char *const mimalloc[] = {"libmimalloc.so.2",
                                           "libmimalloc.so.3", NULL};

    return strcmp(name, "jemalloc") == 0   ? jemalloc
           : strcmp(name, "tcmalloc") == 0 ? tcmalloc
           : strcmp(name, "mimalloc") == 0 ? mimalloc
                                           : NULL;
}

/* Each folder of a list that the loader would search, too. */
static int take_from_list(const char *folders, const char *soname,
                          char **ret_path)
{
    char path[PATH_MAX];

    while (*folders != '\0') {
        size_t length = strcspn(folders, ":");
        if (length > 0) {
            snprintf(path, sizeof(path), "%.*s/%s", (int)length, folders,
                     soname);
            if (take(path, ret_path) == 0) {
                return 0;
            }
        }
        folders += length;
        folders += *folders == ':';
    }
    return -ENOENT;
}

int seep_locate_allocator(const char *name, char **ret_path)
{
    const char *const *sonames = sonames_of(name);
    const char *path = getenv("LD_LIBRARY_PATH");

    if (sonames == NULL) {
        return -EINVAL;
    }
    for (; *sonames != NULL; sonames++) {
        if (path != NULL && take_from_list(path, *sonames, ret_path) == 0) {
            return 0;
        }
        if (take_from_list(SEEP_LIBDIR ":/usr/local/lib:/usr/lib/" SEEP_TRIPLET
                                       ":/usr/lib64:/usr/lib:/lib/" SEEP_TRIPLET
                                       ":/lib64:/lib",
                           *sonames, ret_path) == 0) {
            return 0;
        }
    }
    return -ENOENT;
}
