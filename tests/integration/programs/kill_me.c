/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Four threads that allocate and free until somebody kills them, and log each
 * step to shared memory before and after it.
 *
 *     kill_me LOG [SECONDS]
 *
 * Invariant: at every instant, for each thread and site, what was done lies
 * between `after` and `before`, which differ by one at most. The log is a file
 * of uint64_t[THREADS][SITES][4]: allocations begun, allocations done, frees
 * begun, frees done.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "truth.h"

#define THREADS 4
#define SITES 6
#define KEPT 512
#define SITE_BYTES(site) ((size_t)16 << (site))

enum step { ALLOC_BEGUN, ALLOC_DONE, FREE_BEGUN, FREE_DONE, STEPS };

typedef _Atomic uint64_t log_row[SITES][STEPS];

static log_row *rows;
static time_t end;

#define HEAP_SITE(number)                                 \
    SITE_FUNCTION static void *site_killed_##number(void) \
    {                                                     \
        return malloc(SITE_BYTES(number));                \
    }

HEAP_SITE(0)
HEAP_SITE(1)
HEAP_SITE(2)
HEAP_SITE(3)
HEAP_SITE(4)
HEAP_SITE(5)

static void *(*const allocate[SITES])(void) = {site_killed_0, site_killed_1,
                                               site_killed_2, site_killed_3,
                                               site_killed_4, site_killed_5};

/* Release: the killer reads the file after we are gone, so only the order in
 * which a thread's own stores reach memory counts; pairs with no load here. */
static void step(_Atomic uint64_t *cell)
{
    atomic_store_explicit(cell,
                          atomic_load_explicit(cell, memory_order_relaxed) + 1,
                          memory_order_release);
}

static void *make(log_row *row, unsigned site)
{
    void *block;

    step(&(*row)[site][ALLOC_BEGUN]);
    block = allocate[site]();
    step(&(*row)[site][ALLOC_DONE]);
    return block;
}

static void drop(log_row *row, unsigned site, void *block)
{
    step(&(*row)[site][FREE_BEGUN]);
    free(block);
    step(&(*row)[site][FREE_DONE]);
}

static void *work(void *argument)
{
    static _Thread_local struct {
        void *block;
        unsigned site;
    } kept[KEPT];
    log_row *row = argument;
    uint64_t random = 88172645463325252ULL + (uint64_t)(row - rows);

    while (time(NULL) < end) {
        for (int i = 0; i < 1000; i++) {
            uint64_t bits = truth_random(&random);
            unsigned slot = (unsigned)(bits % KEPT);
            unsigned site = (unsigned)((bits >> 20) % SITES);

            if (kept[slot].block != NULL) {
                drop(row, kept[slot].site, kept[slot].block);
            }
            kept[slot].block = make(row, site);
            kept[slot].site = site;
            if (bits >> 40 == 0) {
                (void)make(row, site);
            }
        }
    }
    return NULL;
}

int main(int argument_count, char **arguments)
{
    pthread_t threads[THREADS];
    int file;

    if (argument_count < 2) {
        return 2;
    }
    end = time(NULL) + (argument_count > 2 ? atoi(arguments[2]) : 20);
    file = open(arguments[1], O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, THREADS * sizeof(log_row)) < 0) {
        return 3;
    }
    rows = mmap(NULL, THREADS * sizeof(log_row), PROT_READ | PROT_WRITE,
                MAP_SHARED, file, 0);
    close(file);
    if (rows == MAP_FAILED) {
        return 3;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, &rows[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
