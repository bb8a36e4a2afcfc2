/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that map and unmap all the while, as fast as they can. Prints how
 * many bytes each of them kept, all together, as JSON.
 *
 *     maps THREADS TURNS
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "truth.h"

#define THREADS_MOST 64
#define KEPT 32
#define PAGE 4096U

static unsigned long turns;
static _Atomic uint64_t kept_bytes;

SITE_FUNCTION static void *keep_mapped(size_t bytes)
{
    void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (made == MAP_FAILED) {
        exit(1);
    }
    return made;
}

static void *work(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    void *maps[KEPT] = {NULL};
    size_t sizes[KEPT] = {0};

    for (unsigned long i = 0; i < turns; i++) {
        uint64_t drawn = truth_random(&random);
        size_t which = drawn % KEPT;

        if (maps[which] != NULL) {
            munmap(maps[which], sizes[which]);
        }
        sizes[which] = PAGE * (1 + drawn / KEPT % 16);
        maps[which] = keep_mapped(sizes[which]);
    }
    for (size_t i = 0; i < KEPT; i++) {
        atomic_fetch_add_explicit(&kept_bytes, sizes[i], memory_order_relaxed);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MOST];
    int count = argc == 3 ? atoi(argv[1]) : 0;

    if (count < 1 || count > THREADS_MOST) {
        return 2;
    }
    turns = strtoul(argv[2], NULL, 10);
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1));
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("{\"kept_bytes\": %llu}\n", (unsigned long long)kept_bytes);
    return 0;
}
