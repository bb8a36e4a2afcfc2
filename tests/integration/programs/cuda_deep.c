/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library that is loaded with RTLD_DEEPBIND allocates on the device.
 *
 *   cuda_deep now|lazy|shallow LIBRARY
 *   cuda_deep storm LIBRARY [LIBRARY]...
 *   cuda_deep reload LIBRARY
 *
 * LIBRARY is a path, or a name that only this program's own run path finds.
 * In a storm threads load and unload them all the time. For a reload the
 * library looks for the driver and unloads it again, and the program loads it
 * elsewhere.
 *
 * Invariant: prints what a recording must not change: what the library was
 * told, and how its pages may be used.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define DRIVER_SPAN_BYTES (64U << 20)

typedef int allocate_function(uint64_t *pointer, size_t bytes);

static void show_pages(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];

    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        if (strstr(line, name) != NULL) {
            printf("%.4s\n", strchr(line, ' ') + 1);
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

static void *load_and_unload(void *paths)
{
    for (int i = 0; i < 400; i++) {
        for (char **path = paths; *path != NULL; path++) {
            void *library =
                dlopen(*path, RTLD_NOW | (i % 4 != 0 ? RTLD_DEEPBIND : 0));

            if (library == NULL || dlsym(library, "seep_deep_inner") == NULL) {
                return *path;
            }
            dlclose(library);
        }
    }
    return NULL;
}

static int storm(char **paths)
{
    pthread_t threads[4];
    int failures = 0;

    for (int i = 0; i < 4; i++) {
        failures += pthread_create(&threads[i], NULL, load_and_unload, paths);
    }
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;

        pthread_join(threads[i], &failed);
        failures += failed != NULL;
    }
    printf("%d failures\n", failures);
    return failures;
}

/* Where the driver was, nothing may be called any more. */
static int reload(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    allocate_function *allocate = NULL;
    int (*probe)(void) = NULL;
    uint64_t pointer = 0;

    if (library == NULL) {
        return 1;
    }
    *(void **)(void *)&probe = dlsym(library, "seep_deep_probe");
    *(void **)(void *)&allocate = dlsym(library, "seep_deep_allocate");
    printf("%d found\n", probe());
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != NULL) {
        return 1;
    }
    for (size_t bytes = DRIVER_SPAN_BYTES; bytes >= 4096; bytes /= 2) {
        mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    printf("%d\n", allocate(&pointer, 1000000));
    return 0;
}

int main(int argc, char **argv)
{
    int flags = argc < 3 || strcmp(argv[1], "lazy") == 0 ? RTLD_LAZY : RTLD_NOW;
    allocate_function *allocate = NULL;
    const char *name;
    void *library;

    if (argc < 3) {
        return 2;
    }
    if (strcmp(argv[1], "storm") == 0) {
        return storm(argv + 2);
    }
    if (strcmp(argv[1], "reload") == 0) {
        return reload(argv[2]);
    }
    flags |= strcmp(argv[1], "shallow") == 0 ? 0 : RTLD_DEEPBIND;
    library = dlopen(argv[2], flags);
    if (library == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    printf("%s\n", dlerror() == NULL ? "no error" : "an error");
    name = strrchr(argv[2], '/');
    show_pages(name != NULL ? name : argv[2]);
    *(void **)(void *)&allocate = dlsym(library, "seep_deep_allocate");
    for (int i = 0; allocate != NULL && i < 4; i++) {
        uint64_t pointer = 0;
        int result = allocate(&pointer, i == 3 ? 0 : 1000000);

        printf("%d %d\n", result, pointer != 0);
    }
    return 0;
}
