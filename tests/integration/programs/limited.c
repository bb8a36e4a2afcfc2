/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that needs as much as it is told, and says how much it got.
 *
 *   limited MIB [as|data MIB]
 *
 * Four threads, then blocks of 1 MiB until it has MIB of them; with `as` or
 * `data` it sets itself that limit, after some blocks that come and go.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define BLOCK_BYTES ((size_t)1 << 20)
#define STACK_BYTES ((size_t)256 << 10)
#define SMALL_COUNT 400

static int come_and_go(void)
{
    for (int i = 0; i < SMALL_COUNT; i++) {
        char *volatile block = malloc(4096);

        if (block == NULL) {
            return 1;
        }
        memset(block, 1, 4096);
        free(block);
    }
    return 0;
}

static void *work(void *argument)
{
    (void)argument;
    return come_and_go() == 0 ? NULL : (void *)1;
}

static int run_threads(void)
{
    pthread_t threads[4];
    pthread_attr_t attributes;
    int failed = 0;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (int i = 0; i < 4; i++) {
        if (pthread_create(&threads[i], &attributes, work, NULL) != 0) {
            puts("a thread was refused");
            return 1;
        }
    }
    for (int i = 0; i < 4; i++) {
        void *result = NULL;

        pthread_join(threads[i], &result);
        failed += result != NULL;
    }
    if (failed != 0) {
        puts("a thread's block was refused");
    }
    return failed;
}

static int limit(const char *what, const char *mib)
{
    const rlim_t bytes = (rlim_t)atol(mib) << 20;
    const struct rlimit to = {bytes, bytes};

    return setrlimit(strcmp(what, "as") == 0 ? RLIMIT_AS : RLIMIT_DATA, &to);
}

int main(int argc, char **argv)
{
    long wanted = argc > 1 ? atol(argv[1]) : 6;
    long got = 0;

    /* Of arenas there would be as many as threads that happen to meet. */
    mallopt(M_ARENA_MAX, 1);
    if (come_and_go() != 0 || (argc > 3 && limit(argv[2], argv[3]) != 0)) {
        puts("no beginning");
        return 2;
    }
    if (run_threads() != 0) {
        return 1;
    }
    while (got < wanted) {
        char *volatile block = malloc(BLOCK_BYTES);

        if (block == NULL) {
            break;
        }
        block[0] = 1;
        got++;
    }
    printf("%s\n", got == wanted ? "all of it" : "not all of it");
    return got == wanted ? 0 : 1;
}
