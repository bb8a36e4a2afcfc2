/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks of CPython's pools of small objects.
 *
 * Invariant: a pool is one by its head alone, which proves itself: what it says
 * of its size and of its blocks fits together.
 */
#include "held/memory.h"

#include <assert.h>
#include <string.h>

/* The head of a pool of CPython's small objects proves itself. */
struct pool {
    uint32_t used;
    uint64_t free_block;
    uint64_t links[2];
    uint32_t arena;
    uint32_t size_class;
    uint32_t next_offset;
    uint32_t last_offset;
};

#define POOL_HEAD_BYTES 48U
#define POOL_CLASSES 32U

static bool is_pool(const struct pool *pool, uint64_t pool_bytes,
                    uint64_t block_bytes)
{
    return pool->size_class < POOL_CLASSES &&
           pool->last_offset == pool_bytes - block_bytes &&
           pool->next_offset >= POOL_HEAD_BYTES &&
           pool->next_offset <= pool_bytes && pool->used > 0 &&
           pool->used <= pool_bytes / block_bytes;
}

static bool is_on_free_list(struct seep_held_memory *memory, uint64_t block,
                            uint64_t at, uint64_t pool, uint64_t pool_bytes)
{
    for (uint64_t i = 0; at != 0 && i < pool_bytes / 16; i++) {
        if (at == block) {
            return true;
        }
        if ((at & ~(pool_bytes - 1)) != pool) {
            break;
        }
        at = seep_held_word(memory, at);
    }
    return false;
}

enum seep_held_place seep_held_pool_at(struct seep_held_blocks *blocks,
                                       uint64_t address, uint64_t *ret_start,
                                       uint64_t *ret_end)
{
    uint64_t at = address & ~(blocks->pool_bytes - 1);
    uint64_t offset = address - at;
    struct pool pool;
    uint64_t bytes;

    static_assert(sizeof(struct pool) == POOL_HEAD_BYTES, "as CPython's");
    if (!seep_held_read(blocks->memory, at, &pool, sizeof(pool))) {
        return SEEP_HELD_NO_BLOCK;
    }
    bytes = ((uint64_t)pool.size_class + 1) * 16;
    if (!is_pool(&pool, blocks->pool_bytes, bytes)) {
        return SEEP_HELD_NO_BLOCK;
    }
    if (offset < POOL_HEAD_BYTES) {
        return SEEP_HELD_FREE;
    }
    offset = POOL_HEAD_BYTES + (offset - POOL_HEAD_BYTES) / bytes * bytes;
    *ret_start = at + offset;
    *ret_end = *ret_start + bytes;
    return offset >= pool.next_offset ||
                   is_on_free_list(blocks->memory, *ret_start, pool.free_block,
                                   at, blocks->pool_bytes)
               ? SEEP_HELD_FREE
               : SEEP_HELD_POOL;
}

struct pool_visit {
    const struct seep_held_blocks *blocks;
    const struct seep_held_shape *shapes;
    size_t shape_count;
    struct seep_held_scan *scan;
};

#define POOL_BYTES_MOST 16384U

/* Pages of it that are not there have no blocks yet. */
static void read_pool(struct seep_held_memory *memory, uint64_t address,
                      uint64_t bytes, uint8_t *to)
{
    for (uint64_t at = 0; at < bytes; at += SEEP_HELD_PAGE_BYTES) {
        if (!seep_held_read(memory, address + at, to + at,
                            SEEP_HELD_PAGE_BYTES)) {
            memset(to + at, 0, SEEP_HELD_PAGE_BYTES);
        }
    }
}

static void show_pool(const struct pool_visit *visit, const uint8_t *head,
                      uint64_t address)
{
    uint64_t pool_bytes = visit->blocks->pool_bytes;
    uint8_t bytes[POOL_BYTES_MOST];
    struct pool pool;
    uint64_t block_bytes;
    bool is_read = false;

    memcpy(&pool, head, sizeof(pool));
    block_bytes = ((uint64_t)pool.size_class + 1) * 16;
    if (!is_pool(&pool, pool_bytes, block_bytes)) {
        return;
    }
    for (size_t i = 0; i < visit->shape_count; i++) {
        uint64_t offset = visit->shapes[i].offset;

        if (visit->shapes[i].bytes != block_bytes || offset + 8 > block_bytes) {
            continue;
        }
        if (!is_read) {
            read_pool(visit->blocks->memory, address, pool_bytes, bytes);
            is_read = true;
        }
        for (uint64_t at = POOL_HEAD_BYTES;
             at + block_bytes <= pool_bytes && at < pool.next_offset;
             at += block_bytes) {
            uint64_t word;

            memcpy(&word, bytes + at + offset, sizeof(word));
            seep_held_scan_word(visit->scan, address + at + offset, word);
        }
    }
}

/* By the page that its head is on: of the others some may not be there. */
static void visit_pools(void *context, struct seep_held_map *map,
                        const uint64_t *words, uint64_t address,
                        size_t word_count)
{
    const struct pool_visit *visit = context;
    uint64_t pool_bytes = visit->blocks->pool_bytes;
    uint64_t bytes = 8 * (uint64_t)word_count;

    (void)map;
    for (uint64_t at = -address & (pool_bytes - 1);
         at + SEEP_HELD_PAGE_BYTES <= bytes; at += pool_bytes) {
        show_pool(visit, (const uint8_t *)words + at, address + at);
    }
}

void seep_held_pools_scan(struct seep_held_blocks *blocks,
                          const struct seep_held_shape *shapes,
                          size_t shape_count, struct seep_held_scan *scan)
{
    struct pool_visit visit = {blocks, shapes, shape_count, scan};

    for (size_t i = 0; blocks->pool_bytes != 0 && i < blocks->memory->map_count;
         i++) {
        struct seep_held_map *map = &blocks->memory->maps[i];

        if (seep_held_map_is_searched(map) && *map->path == '\0') {
            seep_held_each_page(blocks->memory, map, NULL, visit_pools, &visit);
        }
    }
}
