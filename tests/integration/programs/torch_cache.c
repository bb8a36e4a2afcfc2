/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A test double of PyTorch's cache of device memory, in two libraries as there:
 * the one that defines the report of memory and, with CACHE, the allocator that
 * makes it. Its rules are those of the real one as far as a report shows them:
 * tensors are parts of segments, segments are asked of the driver and kept, a
 * large tensor has one of its own, and of a free one only what fits is used.
 *
 * Invariant: the blocks of a segment are neighbours in the list, in order, so
 * two free ones are never beside each other. One thread.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct device {
    int8_t type;
    int8_t index;
};

void report(void *block, int64_t size_bytes, uint64_t allocated_bytes,
            uint64_t reserved_bytes,
            struct device device) __asm__("_ZN3c1027reportMemoryUsageToProfiler"
                                          "EPvlmmNS_6DeviceE");

#ifdef CACHE
#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define LEAST_BYTES 512U
#define SMALL_BYTES MIB        /* up to here from segments of 2 MiB */
#define LARGE_BYTES (10 * MIB) /* and up to here from those of 20 */
#define ROUND_BYTES (64 * KIB) /* of larger ones */
#define TYPE_CUDA 1

struct block {
    struct block *next;
    uint64_t address;
    uint64_t size_bytes;
    int segment; /* its number */
    int used;
};

static struct block *blocks;
static uint64_t allocated_bytes;
static uint64_t reserved_bytes;
static int segment_count;

uint64_t tensor_make(uint64_t size_bytes);
void tensor_drop(uint64_t address);

static int ask_driver(uint64_t *ret_address, uint64_t size_bytes)
{
    static int (*allocate)(uint64_t *, size_t);

    if (allocate == NULL) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        void *symbol = driver != NULL ? dlsym(driver, "cuMemAlloc_v2") : NULL;

        if (symbol == NULL) {
            abort();
        }
        memcpy(&allocate, &symbol, sizeof(allocate));
    }
    return allocate(ret_address, size_bytes);
}

static uint64_t segment_bytes(uint64_t size_bytes)
{
    if (size_bytes <= SMALL_BYTES) {
        return 2 * MIB;
    }
    return size_bytes <= LARGE_BYTES
               ? 20 * MIB
               : (size_bytes + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
}

static struct block *make_block(struct block *next, uint64_t address,
                                uint64_t size_bytes, int segment)
{
    struct block *block = malloc(sizeof(*block));

    if (block == NULL) {
        abort();
    }
    *block = (struct block){next, address, size_bytes, segment, 0};
    return block;
}

/* The cache missed: a segment more. */
static struct block *take_segment(uint64_t size_bytes)
{
    uint64_t bytes = segment_bytes(size_bytes);
    uint64_t address;

    if (ask_driver(&address, bytes) != 0) {
        abort();
    }
    blocks = make_block(blocks, address, bytes, segment_count++);
    reserved_bytes += bytes;
    return blocks;
}

uint64_t tensor_make(uint64_t size_bytes)
{
    uint64_t bytes = (size_bytes + LEAST_BYTES - 1) / LEAST_BYTES * LEAST_BYTES;
    struct block *block = blocks;

    while (block != NULL && (block->used || block->size_bytes < bytes)) {
        block = block->next;
    }
    if (block == NULL) {
        block = take_segment(bytes);
    }
    if (block->size_bytes > bytes) {
        block->next = make_block(block->next, block->address + bytes,
                                 block->size_bytes - bytes, block->segment);
        block->size_bytes = bytes;
    }
    block->used = 1;
    allocated_bytes += bytes;
    report((void *)(uintptr_t)block->address, (int64_t)bytes, allocated_bytes,
           reserved_bytes, (struct device){TYPE_CUDA, 0});
    return block->address;
}

static void merge(struct block *block)
{
    struct block *next = block->next;

    if (next != NULL && !next->used && next->segment == block->segment) {
        block->size_bytes += next->size_bytes;
        block->next = next->next;
        free(next);
    }
}

void tensor_drop(uint64_t address)
{
    struct block *before = NULL;
    struct block *block = blocks;
    int64_t bytes;

    while (block->address != address || !block->used) {
        before = block;
        block = block->next;
    }
    bytes = (int64_t)block->size_bytes;
    block->used = 0;
    merge(block);
    if (before != NULL && !before->used) {
        merge(before);
    }
    allocated_bytes -= (uint64_t)bytes;
    report((void *)(uintptr_t)address, -bytes, allocated_bytes, reserved_bytes,
           (struct device){TYPE_CUDA, 0});
}
#else
/* A profiler that is off. */
void report(void *block, int64_t size_bytes, uint64_t allocated_bytes,
            uint64_t reserved_bytes, struct device device)
{
    (void)block;
    (void)size_bytes;
    (void)allocated_bytes;
    (void)reserved_bytes;
    (void)device;
}
#endif
