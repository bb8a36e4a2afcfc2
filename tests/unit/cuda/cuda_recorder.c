/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the CUDA part told, key by key; see cuda_recorder.h. */
#include "cuda_recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SHARDS 64U
#define SLOTS 8192U

struct block {
    uint64_t key;
    uint64_t size_bytes;
    enum seep_space space;
    int device;
    bool live;
    uint32_t tick;
};

struct shard {
    pthread_mutex_t lock;
    struct block blocks[SLOTS];
    uint64_t faults;
    uint64_t allocations;
    uint64_t frees;
    uint64_t restores;
};

static struct shard shards[SHARDS];
static void (*during_restore)(void);

/* Blocks stay when they are freed: a restore wants them back. */
static struct block *find(struct shard *shard, uint64_t key)
{
    uint32_t i = (uint32_t)(seep_hash_mix(key) >> 32) % SLOTS;

    for (uint32_t step = 0; step < SLOTS; step++, i = (i + 1) % SLOTS) {
        if (shard->blocks[i].key == key || shard->blocks[i].key == 0) {
            return &shard->blocks[i];
        }
    }
    abort();
}

static struct shard *lock(uint64_t key)
{
    struct shard *shard = &shards[seep_hash_mix(key) % SHARDS];

    pthread_mutex_lock(&shard->lock);
    return shard;
}

static void allocated(const struct seep_capture_start *from,
                      enum seep_space space, int device, uint64_t key,
                      uint64_t size_bytes)
{
    struct shard *shard = lock(key);
    struct block *block = find(shard, key);

    (void)from;
    shard->allocations++;
    shard->faults += block->live || key >> 56 == 0;
    *block = (struct block){key, size_bytes, space, device, true, block->tick};
    pthread_mutex_unlock(&shard->lock);
}

static struct seep_cuda_out freed(uint64_t key)
{
    struct shard *shard = lock(key);
    struct block *block = find(shard, key);
    struct seep_cuda_out out;

    shard->frees++;
    shard->faults += !block->live;
    block->live = false;
    out = (struct seep_cuda_out){true, ++block->tick};
    pthread_mutex_unlock(&shard->lock);
    return out;
}

static void restored(uint64_t key, struct seep_cuda_out out)
{
    struct shard *shard = lock(key);
    struct block *block = find(shard, key);

    shard->restores++;
    shard->faults += block->live || !out.recorded || out.tick != block->tick;
    block->live = true;
    pthread_mutex_unlock(&shard->lock);
    if (during_restore != NULL) {
        void (*act)(void) = during_restore;

        during_restore = NULL;
        act();
    }
}

static const struct seep_cuda_events events = {
    .allocated = allocated,
    .freed = freed,
    .restored = restored,
};

void cuda_recorder_start(void)
{
    memset(shards, 0, sizeof(shards));
    for (uint32_t i = 0; i < SHARDS; i++) {
        pthread_mutex_init(&shards[i].lock, NULL);
    }
    seep_cuda_events_set(&events);
}

uint64_t cuda_recorder_bytes(enum seep_space space, int device)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < SHARDS * SLOTS; i++) {
        const struct block *block = &shards[i / SLOTS].blocks[i % SLOTS];

        if (block->live && block->space == space &&
            (device < 0 || block->device == device)) {
            bytes += block->size_bytes;
        }
    }
    return bytes;
}

uint64_t cuda_recorder_count(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < SHARDS * SLOTS; i++) {
        count += shards[i / SLOTS].blocks[i % SLOTS].live;
    }
    return count;
}

uint64_t cuda_recorder_faults(void)
{
    uint64_t faults = 0;

    for (uint32_t i = 0; i < SHARDS; i++) {
        faults += shards[i].faults;
    }
    return faults;
}

uint64_t cuda_recorder_allocations(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < SHARDS; i++) {
        count += shards[i].allocations;
    }
    return count;
}

uint64_t cuda_recorder_frees(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < SHARDS; i++) {
        count += shards[i].frees;
    }
    return count;
}

uint64_t cuda_recorder_restores(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < SHARDS; i++) {
        count += shards[i].restores;
    }
    return count;
}

void cuda_recorder_during_restore(void (*act)(void))
{
    during_restore = act;
}
