/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * See where_python.h. Invariant: nothing here asks the file system, so a
 * recording of another machine reads as one of this.
 */
#include "reader/where_python.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Tails of files, of Python's library and of packages. */
static const char *const dispatchers[] = {
    "asyncio/base_events.py",
    "asyncio/events.py",
    "asyncio/runners.py",
    "concurrent/futures/thread.py",
    "concurrent/futures/process.py",
    "multiprocessing/process.py",
    "multiprocessing/spawn.py",
    "multiprocessing/forkserver.py",
    "socketserver.py",
    "threading.py",
    "trio/_core/_run.py",
    "anyio/_backends/_asyncio.py",
    "gevent/greenlet.py",
    "eventlet/greenpool.py",
};

/* Behind the last "/NAME/" of @path; NULL if there is none. */
static const char *behind_folder(const char *path, const char *name)
{
    size_t length = strlen(name);
    const char *found = NULL;

    for (const char *at = strstr(path, name); at != NULL;
         at = strstr(at + length, name)) {
        if ((at == path || at[-1] == '/') && at[length] == '/') {
            found = at + length + 1;
        }
    }
    return found;
}

static const char *behind_packages(const char *path)
{
    const char *site = behind_folder(path, "site-packages");
    const char *dist = behind_folder(path, "dist-packages");

    return site == NULL || (dist != NULL && dist > site) ? dist : site;
}

/* "python3.11", "python3.13t", "python311.zip"; of Debian's packages
 * "python3". */
static size_t library_folder_length(const char *at)
{
    size_t length = 7;

    if (strncmp(at, "python3", 7) != 0) {
        return 0;
    }
    length += strspn(at + length, ".0123456789");
    length += at[length] == 't';
    length += strncmp(at + length, "zip", 3) == 0 ? 3 : 0;
    return at[length] == '/' ? length + 1 : 0;
}

/* Behind "lib/python3.11/"; NULL if @path has no such folder. */
static const char *behind_library(const char *path)
{
    static const char *const folders[] = {"lib/", "lib64/"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        size_t length = strlen(folders[i]);

        for (const char *at = strstr(path, folders[i]); at != NULL;
             at = strstr(at + length, folders[i])) {
            size_t folder = library_folder_length(at + length);

            if (folder > 0 && (at == path || at[-1] == '/')) {
                return at + length + folder;
            }
        }
    }
    return NULL;
}

static bool is_python_file(const char *base_name)
{
    const char *dot = strrchr(base_name, '.');

    return dot != NULL && strncmp(dot, ".py", 3) == 0;
}

enum seep_python_origin seep_where_python_origin(const char *file)
{
    const char *base_name = seep_text_base_name(file);

    if (file[0] == '\0') {
        return SEEP_PYTHON_NAMELESS;
    }
    if (file[0] == '<') {
        return strncmp(file, "<frozen", 7) == 0 ? SEEP_PYTHON_FROZEN
                                                : SEEP_PYTHON_TEXT;
    }
    if (behind_packages(file) != NULL) {
        return SEEP_PYTHON_PACKAGE;
    }
    if (behind_library(file) != NULL) {
        return SEEP_PYTHON_LIBRARY;
    }
    if (base_name - file >= 4 && strncmp(base_name - 4, "bin/", 4) == 0 &&
        !is_python_file(base_name)) {
        return SEEP_PYTHON_COMMAND;
    }
    return SEEP_PYTHON_USER;
}

const char *seep_where_python_file(const char *file)
{
    const char *name = seep_text_base_name(file);

    if (strcmp(name, "__init__.py") != 0 && strcmp(name, "__main__.py") != 0) {
        return name;
    }
    name -= name > file; /* the slash */
    while (name > file && name[-1] != '/') {
        name--;
    }
    return name;
}

const char *seep_where_python_tail(const char *file)
{
    const char *tail = behind_packages(file);

    if (file[0] == '<') {
        return file;
    }
    tail = tail != NULL ? tail : behind_library(file);
    return tail != NULL && tail[0] != '\0' ? tail
                                           : seep_where_python_file(file);
}

int seep_where_python_module(const char *file, char *text, size_t capacity)
{
    const char *tail = seep_where_python_tail(file);
    size_t length = file[0] == '<' ? strlen(tail) : strcspn(tail, "/");

    return snprintf(text, capacity, "%.*s", (int)(length & 0xffff), tail);
}

bool seep_where_python_dispatches(const char *file)
{
    const char *tail = seep_where_python_tail(file);

    for (size_t i = 0; i < sizeof(dispatchers) / sizeof(dispatchers[0]); i++) {
        if (strcmp(tail, dispatchers[i]) == 0) {
            return seep_where_python_origin(file) != SEEP_PYTHON_USER;
        }
    }
    return false;
}

bool seep_where_python_runs_task(const char *file, const char *function)
{
    /* Its qualified name is known from 3.11 on. */
    return strcmp(seep_where_python_tail(file), "asyncio/events.py") == 0 &&
           (strcmp(function, "Handle._run") == 0 ||
            strcmp(function, "_run") == 0);
}
