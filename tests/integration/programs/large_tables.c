/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Allocates from some thousand functions of a library with large unwind tables,
 * then goes on for a while, and prints what of all mappings of that library's
 * file that cannot be executed or written to is charged to this process, KiB.
 *
 *     large_tables LIBRARY
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTIONS 50000U
#define FUNCTION_BYTES 16U
#define STEP 11U
#define MS 1000000L

static void allocate(void)
{
    free(malloc(1U << 16));
}

static void call(const char *code)
{
    void (*function)(void (*)(void));

    memcpy(&function, &code, sizeof(function));
    function(allocate);
}

/* So that what is done now and then is done. */
static void go_on(void)
{
    for (int i = 0; i < 300; i++) {
        struct timespec pause = {0, 10 * MS};

        allocate();
        nanosleep(&pause, NULL);
    }
}

static long charged_kib(const char *path)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    char line[4096];
    long sum = 0;
    long one;
    int is_its = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strchr(line, '-') != NULL && strchr(line, ' ') != NULL &&
            strchr("0123456789abcdef", line[0]) != NULL) {
            is_its =
                strstr(line, path) != NULL && strstr(line, " r--p ") != NULL;
        } else if (is_its && sscanf(line, "Rss: %ld", &one) == 1) {
            sum += one;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return sum;
}

int main(int argc, char **argv)
{
    void *handle = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    const char *code =
        handle != NULL ? dlsym(handle, "large_tables_code") : NULL;

    if (code == NULL) {
        return 2;
    }
    for (unsigned int i = 0; i < FUNCTIONS; i += STEP) {
        call(code + (size_t)i * FUNCTION_BYTES);
    }
    go_on();
    printf("%ld\n", charged_kib(argv[1]));
    return 0;
}
