/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which block of memory an address lies in: of glibc's malloc, of CPython's
 * small objects, of a mapping that malloc made, of what the recording knows.
 *
 * Invariant: a block is found by what lies in memory alone, so it is a guess,
 * which is checked as far as its allocator left something to check.
 *
 * Units: bytes. Errors: 0 or -ENOMEM. Threads: one at a time.
 */
#ifndef SEEP_HELD_BLOCKS_H
#define SEEP_HELD_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "held/held.h"
#include "held/memory.h"
#include "held/scan.h"

/** A piece of an arena: [start, end), its first chunk, and by page where its
 * first chunk header lies: by parts, of which there are those with a header. */
struct seep_held_arena {
    uint64_t start;
    uint64_t end;
    uint64_t first;
    uint16_t **crossings;
};

struct seep_held_addresses {
    uint64_t *values; /* open addressing; 0: empty */
    size_t capacity;  /* a power of two */
    size_t count;
};

struct seep_held_blocks {
    struct seep_held_memory *memory;
    struct seep_held_arena *arenas; /* by start */
    size_t arena_count;
    struct seep_held_addresses idle; /* free, though they look used */
    uint64_t chunk_count;
    uint32_t wait_count;                 /* for walks that failed */
    uint64_t pool_bytes;                 /* of CPython's; 0: there is none */
    const struct seep_held_block *known; /* by address; of the recording */
    size_t known_count;
};

enum seep_held_place {
    SEEP_HELD_NO_BLOCK,
    SEEP_HELD_FREE, /* part of the allocator, or of a block that is free */
    SEEP_HELD_CHUNK,
    SEEP_HELD_POOL,
    SEEP_HELD_KNOWN,
    SEEP_HELD_MMAPPED,
};

/** Find the arenas of glibc, and what in them is free and does not look it. */
int seep_held_blocks_init(struct seep_held_blocks *blocks);
/** The same once more: it went on meanwhile. */
int seep_held_blocks_again(struct seep_held_blocks *blocks);
void seep_held_blocks_fini(struct seep_held_blocks *blocks);

/** The block that @address lies in. */
enum seep_held_place seep_held_block_at(struct seep_held_blocks *blocks,
                                        uint64_t address, uint64_t *ret_start,
                                        uint64_t *ret_end);

/** Of glibc's alone. */
enum seep_held_place seep_held_chunk_at(struct seep_held_blocks *blocks,
                                        uint64_t address, uint64_t *ret_start,
                                        uint64_t *ret_end);

/** Blocks of one size, and a word in them. */
struct seep_held_shape {
    uint64_t bytes; /* of the block, as found */
    uint64_t offset;
};

/** Every word at one of @shapes, of chunks and of pools, is shown to @scan. */
void seep_held_blocks_scan(struct seep_held_blocks *blocks,
                           const struct seep_held_shape *shapes,
                           size_t shape_count, struct seep_held_scan *scan);

/** Thread control blocks in @map: words that point to themselves, twice.
 * @return how many, at most @capacity */
size_t seep_held_thread_blocks(struct seep_held_memory *memory,
                               const struct seep_held_map *map,
                               uint64_t *ret_addresses, size_t capacity);

#endif
