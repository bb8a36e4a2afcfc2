/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads and unloads two libraries in turn, so that the second comes to lie
 * where the first was, and allocates from both.
 *
 *     unload FIRST.so SECOND.so CYCLES OUT.json
 *
 * Invariant: each cycle leaks LEAKED blocks from each library; how often the
 * second lay at the first's address is written out and not printed.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void *(*allocate_function)(size_t bytes);

#define LEAKED 10

static void *use(const char *path, int *ret_wrong)
{
    void *library = dlopen(path, RTLD_NOW);
    allocate_function allocate;
    Dl_info info = {0};

    if (library == NULL) {
        *ret_wrong += 1;
        return NULL;
    }
    *(void **)&allocate = dlsym(library, "unload_allocate");
    for (int i = 0; i < LEAKED; i++) {
        free(allocate(50));
        *ret_wrong += allocate(100) == NULL;
    }
    dladdr(*(void **)&allocate, &info);
    dlclose(library);
    return info.dli_fbase;
}

int main(int argument_count, char **arguments)
{
    int wrong = 0;
    int same = 0;
    char line[64];
    int file;

    if (argument_count != 5) {
        return 2;
    }
    for (int i = 0; i < atoi(arguments[3]); i++) {
        void *first = use(arguments[1], &wrong);
        void *second = use(arguments[2], &wrong);

        same += first == second;
    }
    file = open(arguments[4], O_WRONLY | O_CREAT, 0600);
    write(file, line,
          (size_t)snprintf(line, sizeof(line), "{\"same\":%d}\n", same));
    printf("wrong %d\n", wrong);
    return 0;
}
