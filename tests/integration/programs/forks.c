/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Children that allocate, of a process whose threads do. Prints how many pages
 * all of them together touched for the first time, as JSON.
 *
 *     forks short|long CHILDREN
 *
 * A short one ends at once. A long one frees 0.2 s later what it allocated at
 * first, and keeps other blocks.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

#define THREADS 3
#define PARENT_BLOCKS 4000
#define CHILD_BLOCKS 200
#define BLOCK_BYTES 4000
#define KEPT_BYTES 60000

static void *blocks[CHILD_BLOCKS];
static void *kept[CHILD_BLOCKS];
static atomic_bool stop;

SITE_FUNCTION static void *take(size_t bytes)
{
    char *block = malloc(bytes);

    if (block == NULL) {
        _exit(1);
    }
    memset(block, 1, bytes);
    return block;
}

SITE_FUNCTION static void *keep_in_child(void)
{
    return take(KEPT_BYTES);
}

static void *churn(void *argument)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        free(take(BLOCK_BYTES));
        usleep(1000);
    }
    return argument;
}

static void child(const char *kind)
{
    for (int i = 0; i < CHILD_BLOCKS; i++) {
        blocks[i] = take(BLOCK_BYTES);
    }
    if (strcmp(kind, "long") == 0) {
        usleep(200000);
        for (int i = 0; i < CHILD_BLOCKS; i++) {
            free(blocks[i]);
            kept[i] = keep_in_child();
        }
        exit(0);
    }
    _exit(0);
}

static bool run_children(const char *kind, int count)
{
    for (int i = 0; i < count; i++) {
        int status = 1;
        pid_t pid = fork();

        if (pid == 0) {
            child(kind);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    struct rusage usage;
    bool good;

    if (argc != 3) {
        return 2;
    }
    for (int i = 0; i < PARENT_BLOCKS; i++) {
        take(BLOCK_BYTES);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, churn, NULL);
    }
    good = run_children(argv[1], atoi(argv[2]));
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    getrusage(RUSAGE_CHILDREN, &usage);
    printf("{\"faults\": %ld}\n", usage.ru_minflt);
    return good ? 0 : 1;
}
