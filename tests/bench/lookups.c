/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time of a look-up in a process without a CUDA driver.
 *
 *     lookups COUNT
 *
 * Prints nanoseconds a dlsym of a name that is found, of one that is not, of
 * one that begins as the driver's do, and a dlopen with its dlclose of what is
 * loaded; the least disturbed of some rounds.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 15

static const char *const names[] = {"qsort", "no_such_name", "cuMemAlloc_v2"};

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double look_up(const char *name, long count)
{
    double start = now_ns();

    for (long i = 0; i < count; i++) {
        void *volatile found = dlsym(RTLD_DEFAULT, name);

        (void)found;
    }
    return (now_ns() - start) / (double)count;
}

static double load(long count)
{
    double start = now_ns();

    for (long i = 0; i < count; i++) {
        void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

        if (library == NULL) {
            exit(1);
        }
        dlclose(library);
    }
    return (now_ns() - start) / (double)count;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 20000;
    double least[4] = {1e9, 1e9, 1e9, 1e9};

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 4; i++) {
            double took = i < 3 ? look_up(names[i], count) : load(count);

            least[i] = took < least[i] ? took : least[i];
        }
    }
    printf("%.2f %.2f %.2f %.2f\n", least[0], least[1], least[2], least[3]);
    return 0;
}
