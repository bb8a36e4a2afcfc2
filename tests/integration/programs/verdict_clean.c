/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kinds of services that leak nothing, whatever their memory does. */
#include <stdlib.h>

#include "verdict.h"

#define CACHE_KEYS 37500
#define CACHE_ENTRIES 30000
#define CACHE_BYTES 512
#define LRU_ENTRIES 20000
#define LRU_BYTES 1024
#define GARBAGE_BYTES 512
#define GARBAGE_TICKS 500
#define WEIGHT_COUNT 48
#define WEIGHT_BYTES ((size_t)640 << 10)
#define WEIGHTS_AT 0.1
#define POOL_COUNT 400
#define POOL_BYTES ((size_t)64 << 10)
#define POOL_FULL_AT 0.4
#define QUIET_COUNT 512
#define QUIET_BYTES 4096
#define QUIET_TICKS 20

/* A cache of a bounded number of entries: full after a third of the run. */
static void *cache[CACHE_KEYS];
static unsigned cached;

SITE_FUNCTION static void fill_cache(size_t key)
{
    cache[key] = verdict_touch(malloc(CACHE_BYTES), CACHE_BYTES);
    cached++;
}

static void look_up(struct verdict_run *run)
{
    uint64_t random = truth_random(&run->random);
    size_t key = random / 2 % CACHE_KEYS;

    if (random % 2 == 0 && cache[key] == NULL && cached < CACHE_ENTRIES) {
        fill_cache(key);
    }
}

/* The entry that was not used for longest makes room for a new one. */
static void *recent[LRU_ENTRIES];
static size_t oldest;

SITE_FUNCTION static void renew_oldest(struct verdict_run *run)
{
    if (truth_random(&run->random) % 2 == 0) {
        return;
    }
    free(recent[oldest]);
    recent[oldest] = verdict_touch(malloc(LRU_BYTES), LRU_BYTES);
    oldest = (oldest + 1) % LRU_ENTRIES;
}

static void **garbage;

SITE_FUNCTION static void make_garbage(struct verdict_run *run)
{
    void **block = malloc(GARBAGE_BYTES);

    (void)run;
    if (block == NULL) {
        abort();
    }
    *block = garbage;
    garbage = block;
}

static void collect_all(struct verdict_run *run)
{
    if (run->tick % GARBAGE_TICKS != GARBAGE_TICKS - 1) {
        return;
    }
    while (garbage != NULL) {
        void **block = garbage;

        garbage = *block;
        free(block);
    }
}

static void *weights[WEIGHT_COUNT];

SITE_FUNCTION static void load_weights(struct verdict_run *run)
{
    if (weights[0] != NULL || !verdict_past(run, WEIGHTS_AT)) {
        return;
    }
    for (size_t i = 0; i < WEIGHT_COUNT; i++) {
        weights[i] = verdict_touch(malloc(WEIGHT_BYTES), WEIGHT_BYTES);
    }
}

static void *pool[POOL_COUNT];
static size_t pooled;

SITE_FUNCTION static void grow_pool(struct verdict_run *run)
{
    while (pooled < POOL_COUNT &&
           verdict_past(run, POOL_FULL_AT * (double)pooled / POOL_COUNT)) {
        pool[pooled++] = verdict_touch(malloc(POOL_BYTES), POOL_BYTES);
    }
}

static void *first[QUIET_COUNT];

SITE_FUNCTION static void start_up(struct verdict_run *run)
{
    (void)run;
    for (size_t i = 0; i < QUIET_COUNT; i++) {
        first[i] = verdict_touch(malloc(QUIET_BYTES), QUIET_BYTES);
    }
}

static unsigned seldom(const struct verdict_run *run)
{
    return run->tick % QUIET_TICKS == 0;
}

const struct verdict_kind verdict_clean_kinds[] = {
    {.name = "cache", .request = look_up},
    {.name = "lru", .request = renew_oldest},
    {.name = "sawtooth", .request = make_garbage, .tick = collect_all},
    {.name = "model", .tick = load_weights},
    {.name = "pool", .tick = grow_pool},
    {.name = "quiet", .begin = start_up, .load = seldom},
    {.name = NULL},
};
