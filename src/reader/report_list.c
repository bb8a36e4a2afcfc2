/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which recordings a path means. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "reader/open.h"
#include "reader/report.h"

struct list {
    char **paths; /* NULL-terminated */
    size_t count;
    size_t capacity;
};

static int add(struct list *list, char *path)
{
    if (path == NULL) {
        return -ENOMEM;
    }
    if (list->count + 1 >= list->capacity) {
        size_t capacity = list->capacity * 2 + 16;
        char **paths = realloc(list->paths, capacity * sizeof(*paths));

        if (paths == NULL) {
            free(path);
            return -ENOMEM;
        }
        list->paths = paths;
        list->capacity = capacity;
    }
    list->paths[list->count++] = path;
    list->paths[list->count] = NULL;
    return 0;
}

static bool is_recording_name(const char *name)
{
    size_t length = strlen(name);
    const char *number = strrchr(name, '.');

    /* "x.seep.1": the name was taken and the pattern has no %n */
    if (number != NULL && number[1] != '\0' &&
        number[1 + strspn(number + 1, "0123456789")] == '\0') {
        length = (size_t)(number - name);
    }
    return name[0] != '.' && length > 5 &&
           strncmp(name + length - 5, ".seep", 5) == 0;
}

static char *join(const char *folder, const char *name)
{
    size_t length = strlen(folder);
    size_t bytes = length + strlen(name) + 2;
    char *path = malloc(bytes);

    if (path != NULL) {
        snprintf(path, bytes, "%s%s%s", folder,
                 length > 0 && folder[length - 1] == '/' ? "" : "/", name);
    }
    return path;
}

static int compare(const void *a, const void *b)
{
    char *const *left = a;
    char *const *right = b;

    return strcmp(*left, *right);
}

static int add_folder(struct list *list, const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    int error = 0;

    if (folder == NULL) {
        return -errno;
    }
    errno = 0;
    while (error == 0 && (entry = readdir(folder)) != NULL) {
        if (is_recording_name(entry->d_name)) {
            error = add(list, join(path, entry->d_name));
        }
        errno = 0;
    }
    if (error == 0) {
        error = -errno;
    }
    closedir(folder);
    if (error == 0 && list->count > 0) {
        qsort(list->paths, list->count, sizeof(*list->paths), compare);
    }
    return error;
}

int seep_report_list(const char *path, struct seep_refusal *ret_refusal,
                     char ***ret_paths)
{
    struct list list = {.paths = NULL};
    struct stat status;
    int error;

    if (stat(path, &status) != 0) {
        return seep_open_refuse_errno(ret_refusal, -errno);
    }
    error = S_ISDIR(status.st_mode) ? add_folder(&list, path)
                                    : add(&list, strdup(path));
    if (error != 0) {
        seep_report_list_free(list.paths);
        return seep_open_refuse_errno(ret_refusal, error);
    }
    if (list.count == 0) {
        return seep_open_refuse(
            ret_refusal, -ENOENT, "is a directory without recordings",
            "give the directory that SEEP_OUT or `seep run -o` wrote to: "
            "recordings end in .seep");
    }
    *ret_paths = list.paths;
    return 0;
}

void seep_report_list_free(char **paths)
{
    for (size_t i = 0; paths != NULL && paths[i] != NULL; i++) {
        free(paths[i]);
    }
    free(paths);
}
