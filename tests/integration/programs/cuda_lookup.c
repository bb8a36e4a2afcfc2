/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What dlsym and dlvsym answer, from the program and from libraries of every
 * kind, one line each: a line must be the same with and without seep.
 *
 *   cuda_lookup FOLDER [DRIVER]
 *
 * FOLDER has the libraries that cuda_lookup_library.c is built to. With DRIVER
 * the names are looked up in that too.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef const char *chain_function(void);
typedef void *look_function(const char *);

static const char *const names[] = {"cuInit",
                                    "cuMemAlloc_v2",
                                    "cuMemFree_v2",
                                    "cuGetProcAddress_v2",
                                    "cuMemCreate",
                                    "cudnnCreate",
                                    "cuda",
                                    "cu",
                                    "cuFunctionOf",
                                    "ompt_start_tool",
                                    "cfree",
                                    "free",
                                    "free_sized",
                                    "free_aligned_sized",
                                    "frexp",
                                    "qsort",
                                    "c",
                                    "",
                                    "seep_lookup_chain"};

static const char *error_now(void)
{
    const char *error = dlerror();

    return error != NULL ? error : "no error";
}

static void show(const char *where, const char *name, const void *found)
{
    printf("%s \"%s\": %s, %s\n", where, name, found != NULL ? "found" : "none",
           error_now());
}

static void *load(const char *path, int flags)
{
    void *handle = dlopen(path, flags);

    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return handle;
}

static void *load_from(const char *folder, const char *name, int flags)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return load(path, flags);
}

static void look_everywhere(const char *title, void *handle)
{
    void *self = dlopen(NULL, RTLD_LAZY);

    printf("-- %s\n", title);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        show("default", names[i], dlsym(RTLD_DEFAULT, names[i]));
        show("next", names[i], dlsym(RTLD_NEXT, names[i]));
        show("program", names[i], dlsym(self, names[i]));
        if (handle != NULL) {
            show("handle", names[i], dlsym(handle, names[i]));
            show("version", names[i], dlvsym(handle, names[i], "NO_SUCH"));
        }
    }
}

static void look_by_version(void)
{
    const char *const version =
#if defined(__x86_64__)
        "GLIBC_2.2.5";
#else
        "GLIBC_2.17";
#endif

    printf("-- versions\n");
    show("right", "qsort", dlvsym(RTLD_DEFAULT, "qsort", version));
    show("wrong", "qsort", dlvsym(RTLD_DEFAULT, "qsort", "GLIBC_9"));
    show("next", "qsort", dlvsym(RTLD_NEXT, "qsort", version));
    show("old", "cfree", dlvsym(RTLD_DEFAULT, "cfree", version));
}

/* A message stays until the next call of the loader, and no longer. */
static void look_at_errors(void)
{
    printf("-- errors\n");
    dlsym(RTLD_DEFAULT, "no_such_name");
    printf("%s\n", error_now());
    printf("%s\n", error_now());
    dlsym(RTLD_DEFAULT, "no_such_name");
    dlsym(RTLD_DEFAULT, "qsort");
    printf("%s\n", error_now());
    dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    dlsym(RTLD_DEFAULT, "qsort");
    printf("%s\n", error_now());
    dlsym(RTLD_DEFAULT, "qsort");
    dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    printf("%s\n", error_now());
}

static void look_from_libraries(const char *folder)
{
    void *first = load_from(folder, "libcuda_lookup_first.so", RTLD_NOW);
    void *plugin =
        load_from(folder, "libcuda_lookup_plugin.so", RTLD_NOW | RTLD_LOCAL);
    chain_function *chain =
        (chain_function *)(uintptr_t)dlsym(first, "seep_lookup_chain");
    look_function *look =
        (look_function *)(uintptr_t)dlsym(plugin, "seep_lookup_default");
    look_function *next =
        (look_function *)(uintptr_t)dlsym(plugin, "seep_lookup_next");

    printf("-- libraries\n");
    printf("next of first: %s\n", chain());
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        show("plugin", names[i], look(names[i]));
        show("plugin's next", names[i], next(names[i]));
    }
    show("plugin", "seep_lookup_private", look("seep_lookup_private"));
    show("program", "seep_lookup_private",
         dlsym(RTLD_DEFAULT, "seep_lookup_private"));
    printf("own name: %s\n", dlsym(plugin, "cudnnCreate") == look("cudnnCreate")
                                 ? "its own"
                                 : "another");
}

/* A plugin that nobody told us of, with a driver that it alone sees. */
static void look_from_its_driver(const char *folder)
{
    void *plugin =
        load_from(folder, "libcuda_lookup_driver.so", RTLD_NOW | RTLD_LOCAL);
    look_function *look =
        (look_function *)(uintptr_t)dlsym(plugin, "seep_lookup_default");

    printf("-- driver of a plugin\n");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        show("plugin", names[i], look(names[i]));
        show("handle", names[i], dlsym(plugin, names[i]));
        show("program", names[i], dlsym(RTLD_DEFAULT, names[i]));
    }
    dlclose(plugin);
}

/* By the scope of all, where somebody may stand before the driver. */
static void use_default(void)
{
    int (*allocate)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))(
        uintptr_t)dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    uint64_t pointer = 0;

    if (allocate != NULL) {
        printf("default %d\n", allocate(&pointer, 4096));
    }
}

static void use(void *driver)
{
    int (*init)(unsigned int) =
        (int (*)(unsigned int))(uintptr_t)dlsym(driver, "cuInit");
    int (*create)(void **, unsigned int, int) =
        (int (*)(void **, unsigned int, int))(uintptr_t)dlsym(driver,
                                                              "cuCtxCreate_v2");
    int (*allocate)(uint64_t *, size_t) =
        (int (*)(uint64_t *, size_t))(uintptr_t)dlsym(driver, "cuMemAlloc_v2");
    int (*release)(uint64_t) =
        (int (*)(uint64_t))(uintptr_t)dlsym(driver, "cuMemFree_v2");
    uint64_t pointer = 0;
    void *context = NULL;

    printf("before: %d\n", allocate(&pointer, 4096));
    printf("init %d\n", init(0));
    printf("context %d\n", create(&context, 0, 0));
    printf("allocate %d\n", allocate(&pointer, 4096));
    printf("release %d\n", release(pointer));
    printf("again %d\n", release(pointer));
    printf("nothing %d\n", allocate(&pointer, 0));
    printf("none %d\n", release(0));
}

int main(int argc, char **argv)
{
    void *driver;

    if (argc < 2) {
        return 2;
    }
    look_everywhere("no driver", NULL);
    look_by_version();
    look_at_errors();
    if (argc < 3) {
        look_from_libraries(argv[1]);
        return 0;
    }
    look_from_its_driver(argv[1]);
    use_default();
    driver = load(argv[2], RTLD_NOW | RTLD_LOCAL);
    use_default();
    look_everywhere("driver of one's own", driver);
    look_from_libraries(argv[1]);
    use(driver);
    dlclose(driver);
    look_everywhere("driver gone, if it goes", NULL);
    driver = load(argv[2], RTLD_NOW | RTLD_GLOBAL);
    look_everywhere("driver of all", driver);
    use(driver);
    use_default();
    return 0;
}
