/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that knows what it holds: leaks, a bounded cache, churn, blocks
 * that other threads free, and every way of the C heap to get and change one.
 *
 *     truth THREADS ROUNDS OUT.json
 *
 * Invariant: each allocating call stands in a function of its own, whose
 * truth says what a recording in exact mode must say of it.
 */
#include "truth.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "truth_maps.h"

#define CACHE_SLOTS 64
#define KEPT_SLOTS 16
#define MAILBOX_SLOTS 256
#define THREAD_LIMIT 64

#define SITES(X)               \
    X(site_leak)               \
    X(site_cache)              \
    X(site_churn)              \
    X(site_own)                \
    X(site_handover)           \
    X(site_zero_bytes)         \
    X(site_too_large)          \
    X(site_calloc)             \
    X(site_calloc_leak)        \
    X(site_realloc_null)       \
    X(site_realloc_grow)       \
    X(site_realloc_shrink)     \
    X(site_realloc_far)        \
    X(site_realloc_fails)      \
    X(site_realloc_to_zero)    \
    X(site_reallocarray)       \
    X(site_reallocarray_fails) \
    X(site_memalign)           \
    X(site_posix_memalign)     \
    X(site_aligned_alloc)      \
    X(site_valloc)

#define DEFINE_SITE(function)                                             \
    static struct truth_site truth_of_##function = {#function, "heap", 0, \
                                                    0,         0,      0};
SITES(DEFINE_SITE)

struct mailbox {
    pthread_mutex_t lock;
    struct truth_block blocks[MAILBOX_SLOTS];
    size_t count;
};

struct worker {
    pthread_t thread;
    unsigned index;
    uint64_t random;
    struct truth_block cache[CACHE_SLOTS];
    struct truth_block kept[KEPT_SLOTS];
};

static struct mailbox mailboxes[THREAD_LIMIT];
static struct worker workers[THREAD_LIMIT];
static unsigned thread_count;
static unsigned round_count;

/* One malloc, one place: the macro only spares the same five lines. */
#define HEAP_SITE(function, call)                                  \
    SITE_FUNCTION static struct truth_block function(size_t bytes) \
    {                                                              \
        return truth_made(&truth_of_##function, call, bytes);      \
    }

HEAP_SITE(site_leak, malloc(bytes))
HEAP_SITE(site_cache, malloc(bytes))
HEAP_SITE(site_churn, malloc(bytes))
HEAP_SITE(site_own, malloc(bytes))
HEAP_SITE(site_handover, malloc(bytes))
HEAP_SITE(site_zero_bytes, malloc(bytes))
HEAP_SITE(site_too_large, malloc(bytes))
HEAP_SITE(site_calloc, calloc(bytes / 8, 8))
HEAP_SITE(site_calloc_leak, calloc(1, bytes))
HEAP_SITE(site_realloc_null, realloc(NULL, bytes))
HEAP_SITE(site_memalign, memalign(64, bytes))
HEAP_SITE(site_aligned_alloc, aligned_alloc(32, bytes))
HEAP_SITE(site_valloc, valloc(bytes))

SITE_FUNCTION static struct truth_block site_posix_memalign(size_t bytes)
{
    void *address = NULL;

    if (posix_memalign(&address, 128, bytes) != 0) {
        address = NULL;
    }
    return truth_made(&truth_of_site_posix_memalign, address, bytes);
}

/* The old block is gone only if the call gives a new one. */
#define REALLOC_SITE(function, call)                                         \
    SITE_FUNCTION static struct truth_block function(struct truth_block old, \
                                                     size_t bytes)           \
    {                                                                        \
        void *address = call;                                                \
                                                                             \
        if (address == NULL) {                                               \
            return old;                                                      \
        }                                                                    \
        truth_gone(&old);                                                    \
        return truth_made(&truth_of_##function, address, bytes);             \
    }

REALLOC_SITE(site_realloc_grow, realloc(old.address, bytes))
REALLOC_SITE(site_realloc_shrink, realloc(old.address, bytes))
REALLOC_SITE(site_realloc_far, realloc(old.address, bytes))
REALLOC_SITE(site_realloc_fails, realloc(old.address, bytes))
REALLOC_SITE(site_reallocarray, reallocarray(old.address, bytes / 4, 4))
REALLOC_SITE(site_reallocarray_fails,
             reallocarray(old.address, SIZE_MAX / 2, bytes))

SITE_FUNCTION static void site_realloc_to_zero(struct truth_block old)
{
    void *address = realloc(old.address, 0);

    truth_gone(&old);
    (void)truth_made(&truth_of_site_realloc_to_zero, address, 0);
}

static void release(struct truth_block block)
{
    truth_gone(&block);
    free(block.address);
}

static void post(struct mailbox *mailbox, struct truth_block block)
{
    int full;

    pthread_mutex_lock(&mailbox->lock);
    full = mailbox->count == MAILBOX_SLOTS;
    if (!full) {
        mailbox->blocks[mailbox->count++] = block;
    }
    pthread_mutex_unlock(&mailbox->lock);
    if (full) {
        release(block);
    }
}

static void empty(struct mailbox *mailbox)
{
    struct truth_block blocks[MAILBOX_SLOTS];
    size_t count;

    pthread_mutex_lock(&mailbox->lock);
    count = mailbox->count;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = mailbox->blocks[i];
    }
    mailbox->count = 0;
    pthread_mutex_unlock(&mailbox->lock);
    for (size_t i = 0; i < count; i++) {
        release(blocks[i]);
    }
}

static void reallocate(struct worker *worker)
{
    size_t bytes = 16 + truth_random(&worker->random) % 200;
    struct truth_block block = site_realloc_null(bytes);

    block = site_realloc_grow(block, bytes * 3);
    block = site_realloc_shrink(block, bytes);
    block = site_realloc_fails(block, SIZE_MAX / 4);
    block = site_reallocarray(block, (bytes / 4 + 9) * 4);
    block = site_reallocarray_fails(block, 16);
    if (truth_random(&worker->random) % 64 == 0) {
        block = site_realloc_far(block, 300000 + bytes);
    }
    if (truth_random(&worker->random) % 8 == 0) {
        site_realloc_to_zero(block);
    } else {
        release(block);
    }
}

static void align(struct worker *worker)
{
    size_t bytes = 32 * (1 + truth_random(&worker->random) % 20);

    release(site_memalign(bytes));
    release(site_posix_memalign(bytes));
    release(site_aligned_alloc(bytes));
    release(site_calloc(bytes));
    release(site_zero_bytes(0));
    (void)site_too_large(SIZE_MAX / 4);
}

static void serve(struct worker *worker, unsigned round)
{
    uint64_t random = truth_random(&worker->random);
    size_t slot = random % CACHE_SLOTS;
    size_t bytes = 8 + (random >> 8) % 500;
    unsigned neighbour = (worker->index + 1) % thread_count;

    release(worker->cache[slot]);
    worker->cache[slot] = site_cache(bytes);
    release(site_churn(bytes));
    post(&mailboxes[neighbour], site_handover(bytes));
    empty(&mailboxes[worker->index]);
    if (round % 10 == 0) {
        (void)site_leak(100);
        (void)site_calloc_leak(bytes);
        release(worker->kept[round / 10 % KEPT_SLOTS]);
        worker->kept[round / 10 % KEPT_SLOTS] = site_own(bytes);
    }
    if (round % 4 == 0) {
        reallocate(worker);
        align(worker);
    }
    if (round % 100 == 0) {
        release(site_valloc(4096));
        truth_maps_use();
        truth_files_use();
    }
}

static void *work(void *argument)
{
    struct worker *worker = (struct worker *)argument;

    for (unsigned round = 0; round < round_count; round++) {
        serve(worker, round);
    }
    for (size_t i = 0; i < KEPT_SLOTS; i++) {
        release(worker->kept[i]);
    }
    return NULL;
}

static void write_all(const char *path)
{
    static struct truth_site *sites[96];
    size_t count = 0;

#define LIST_SITE(function) sites[count++] = &truth_of_##function;
    SITES(LIST_SITE)
#undef LIST_SITE
    count += truth_maps_list(sites + count);
    count += truth_files_list(sites + count);
    truth_write(path, sites, count);
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 4) {
        return 2;
    }
    thread_count = (unsigned)atoi(arguments[1]);
    round_count = (unsigned)atoi(arguments[2]);
    if (thread_count == 0 || thread_count > THREAD_LIMIT) {
        return 2;
    }
    for (unsigned i = 0; i < thread_count; i++) {
        pthread_mutex_init(&mailboxes[i].lock, NULL);
        workers[i].index = i;
        workers[i].random = 88172645463325252ULL + i;
    }
    for (unsigned i = 1; i < thread_count; i++) {
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            return 3;
        }
    }
    work(&workers[0]);
    for (unsigned i = 1; i < thread_count; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    write_all(arguments[3]);
    return 0;
}
