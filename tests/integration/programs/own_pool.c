/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library with an allocator of its own, as polars and pyarrow have: it maps
 * CHUNK_BYTES at a time, hands out blocks of one size, and gives nothing back.
 * No hook sees a block. NAME() is what its functions are called, which a
 * stripped build does not tell.
 *
 * Invariant: one thread at a time.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK_BYTES ((size_t)32 << 10)

#define EXPORTED __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden"), noinline))

void *NAME(malloc)(void);
void NAME(free)(void *block);
void *NAME(pages_map)(size_t size_bytes);
void *pool_take(void);
void pool_give(void *block);

struct free_block {
    struct free_block *next;
};

static struct free_block *free_blocks;
static char *next;
static char *end;

HIDDEN void *NAME(pages_map)(size_t size_bytes)
{
    void *chunk = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (chunk == MAP_FAILED) {
        abort();
    }
    return chunk;
}

VISIBILITY void *NAME(malloc)(void)
{
    struct free_block *block = free_blocks;

    if (block != NULL) {
        free_blocks = block->next;
    } else {
        if (next == end) {
            next = NAME(pages_map)(CHUNK_BYTES);
            end = next + CHUNK_BYTES;
        }
        block = (void *)next;
        next += BLOCK_BYTES;
    }
    memset(block, 1, BLOCK_BYTES);
    return block;
}

VISIBILITY void NAME(free)(void *block)
{
    struct free_block *freed = block;

    freed->next = free_blocks;
    free_blocks = freed;
}

EXPORTED void *pool_take(void)
{
    return NAME(malloc)();
}

EXPORTED void pool_give(void *block)
{
    NAME(free)(block);
}
