/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks of glibc's malloc (2.26 to 2.43), and what others say of an address.
 *
 * Invariant: a walk over chunks ends where a header makes no sense, so that
 * garbage makes no blocks; what lies behind is found by other rules.
 */
#include "held/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/sorted.h"
#include "held/held.h"

#define HEAP_BYTES_MOST (UINT64_C(64) << 20) /* HEAP_MAX_SIZE of glibc */
#define NO_CHUNK UINT8_MAX
#define CHUNK_ALIGNMENT 16U
#define CELL_BYTES 512U /* of an arena: where its first header is, is noted */
#define CHUNK_BYTES_LEAST 32U
#define CHUNK_HEAD_BYTES 16U
#define SIZE_FLAGS UINT64_C(7)
#define IS_MMAPPED UINT64_C(2)
#define CACHE_LISTS_MOST 76U
#define LIST_MOST 70000U
#define ARENAS_MOST 65536U
#define ARENA_BYTES_MOST (UINT64_C(4) << 40)
#define PART_CELLS 8192U
#define IDLE_MOST 2000000U
#define WINDOW_BYTES (UINT64_C(256) << 10)
#define STEP_BYTES ((uint64_t)SEEP_HELD_HEADS_MOST * SEEP_HELD_PAGE_BYTES)
#define WALK_BYTES_MOST (UINT64_C(1) << 30)

static size_t slot_of(const struct seep_held_addresses *set, uint64_t address)
{
    size_t slot = seep_hash_mix(address) & (set->capacity - 1);

    while (set->values[slot] != 0 && set->values[slot] != address) {
        slot = (slot + 1) & (set->capacity - 1);
    }
    return slot;
}

bool seep_held_addresses_has(const struct seep_held_addresses *set,
                             uint64_t address)
{
    return set->count > 0 && set->values[slot_of(set, address)] == address;
}

static bool addresses_grow(struct seep_held_addresses *set)
{
    struct seep_held_addresses larger = {
        .capacity = set->capacity == 0 ? 1024 : 2 * set->capacity,
    };

    larger.values = calloc(larger.capacity, sizeof(*larger.values));
    if (larger.values == NULL) {
        return false;
    }
    for (size_t i = 0; i < set->capacity; i++) {
        if (set->values[i] != 0) {
            seep_held_addresses_add(&larger, set->values[i]);
        }
    }
    free(set->values);
    *set = larger;
    return true;
}

bool seep_held_addresses_add(struct seep_held_addresses *set, uint64_t address)
{
    size_t slot;

    if (set->count >= IDLE_MOST) {
        return false;
    }
    if (2 * set->count >= set->capacity && !addresses_grow(set)) {
        return false;
    }
    slot = slot_of(set, address);
    if (set->values[slot] == address) {
        return false;
    }
    set->values[slot] = address;
    set->count++;
    return true;
}

static uint64_t chunk_bytes(struct seep_held_memory *memory, uint64_t chunk)
{
    return seep_held_word(memory, chunk + 8) & ~SIZE_FLAGS;
}

static bool is_chunk_size(uint64_t bytes)
{
    return bytes >= CHUNK_BYTES_LEAST && bytes % 16 == 0;
}

/* Does a row of chunks begin here? */
static bool is_row(struct seep_held_memory *memory, uint64_t at, uint64_t end)
{
    for (int i = 0; i < 6; i++) {
        uint64_t bytes = chunk_bytes(memory, at);

        if (!is_chunk_size(bytes) || bytes > end - at) {
            return false;
        }
        at += bytes;
        if (end - at < CHUNK_HEAD_BYTES) {
            break;
        }
    }
    return true;
}

static size_t parts_of(const struct seep_held_arena *arena)
{
    return (size_t)((arena->end - arena->start) / CELL_BYTES) / PART_CELLS + 1;
}

static void forget_crossings(struct seep_held_arena *arena)
{
    for (size_t i = 0; i < parts_of(arena); i++) {
        if (arena->crossings[i] != NULL) {
            free(arena->crossings[i]);
            arena->crossings[i] = NULL;
        }
    }
}

/* The first header of a cell counts. */
static void note_crossing(struct seep_held_arena *arena, uint64_t header)
{
    size_t cell = (size_t)((header - arena->start) / CELL_BYTES);
    uint8_t **part = &arena->crossings[cell / PART_CELLS];

    if (*part == NULL) {
        *part = malloc(PART_CELLS);
        if (*part == NULL) {
            return;
        }
        memset(*part, NO_CHUNK, PART_CELLS);
    }
    if ((*part)[cell % PART_CELLS] == NO_CHUNK) {
        (*part)[cell % PART_CELLS] =
            (uint8_t)((header - arena->start) % CELL_BYTES / CHUNK_ALIGNMENT);
    }
}

static int add_arena(struct seep_held_blocks *blocks, uint64_t start,
                     uint64_t end, uint64_t first)
{
    struct seep_held_arena *arena = &blocks->arenas[blocks->arena_count];

    if (blocks->arena_count == ARENAS_MOST) {
        return 0;
    }
    if (end - start > ARENA_BYTES_MOST) {
        end = start + ARENA_BYTES_MOST;
    }
    *arena =
        (struct seep_held_arena){.start = start, .end = end, .first = first};
    arena->crossings = calloc(parts_of(arena), sizeof(*arena->crossings));
    if (arena->crossings == NULL) {
        return -ENOMEM;
    }
    blocks->arena_count++;
    return 0;
}

/* How far @map goes on, up to @limit at the most: what a child adds after a
 * fork the kernel does not join with what it has from its parent. */
static uint64_t joined_end(const struct seep_held_memory *memory,
                           const struct seep_held_map *map, uint64_t limit)
{
    const struct seep_held_map *next = map + 1;

    while (next < memory->maps + memory->map_count &&
           next->start == next[-1].end && next->start < limit &&
           seep_held_map_is_searched(next) &&
           strcmp(next->path, map->path) == 0) {
        next++;
    }
    return next[-1].end < limit ? next[-1].end : limit;
}

static int find_main_arena(struct seep_held_blocks *blocks,
                           const struct seep_held_map *map)
{
    uint64_t end = joined_end(blocks->memory, map, SEEP_HELD_ADDRESS_END);

    if (blocks->arena_count > 0 &&
        blocks->arenas[blocks->arena_count - 1].end > map->start) {
        return 0; /* part of the one before */
    }
    for (uint64_t at = map->start;
         at < map->start + SEEP_HELD_PAGE_BYTES && at < map->end; at += 16) {
        if (is_row(blocks->memory, at, end)) {
            return add_arena(blocks, map->start, end, at);
        }
    }
    return 0;
}

/* Where an arena has its fastbins: 2.43 has none, and its top chunk before
 * them; older ones say there whether one is in use. */
#define TOP_AT 8U
#define FASTBINS_AT 16U

static bool has_fastbins(struct seep_held_memory *memory, uint64_t arena)
{
    return seep_held_word(memory, arena + TOP_AT) < SEEP_HELD_PAGE_BYTES;
}

/*
 * A heap of another arena, at a multiple of 64 MiB: {its arena, the heap
 * before, bytes, bytes that may be used, ...}. In the first heap of an arena
 * the arena itself, of 2,112 bytes or some 2,200, lies before the chunks.
 */
static int find_heap(struct seep_held_blocks *blocks,
                     const struct seep_held_map *map, uint64_t at)
{
    struct seep_held_memory *memory = blocks->memory;
    uint64_t arena = seep_held_word(memory, at);
    uint64_t bytes = seep_held_word(memory, at + 16);
    uint64_t offset = arena % HEAP_BYTES_MOST;
    uint64_t first = at + offset;
    uint64_t last = first + 64;

    if (arena == 0 || (offset != 0x20 && offset != 0x30) || bytes == 0 ||
        bytes > HEAP_BYTES_MOST || bytes % SEEP_HELD_PAGE_BYTES != 0) {
        return 0;
    }
    bytes = joined_end(memory, map, at + bytes) - at;
    if (arena - offset == at) {
        first += has_fastbins(memory, arena) ? 2160 : 2112;
        last = first + 128;
    }
    for (first &= ~UINT64_C(15); first < last; first += 16) {
        if (is_row(memory, first, at + bytes)) {
            return add_arena(blocks, at, at + bytes, first);
        }
    }
    return 0;
}

static int find_arenas(struct seep_held_blocks *blocks)
{
    struct seep_held_memory *memory = blocks->memory;
    int error = 0;

    for (size_t i = 0; error == 0 && i < memory->map_count; i++) {
        const struct seep_held_map *map = &memory->maps[i];

        if (!seep_held_map_is_searched(map)) {
            continue;
        }
        if (strcmp(map->path, "[heap]") == 0) {
            error = find_main_arena(blocks, map);
        } else if (*map->path == '\0') {
            uint64_t at =
                (map->start + HEAP_BYTES_MOST - 1) & ~(HEAP_BYTES_MOST - 1);

            for (; error == 0 && at < map->end; at += HEAP_BYTES_MOST) {
                error = find_heap(blocks, map, at);
            }
        }
    }
    return error;
}

/* A window over an arena: one read for many headers. */
struct window {
    struct seep_held_memory *memory;
    uint8_t *bytes;
    uint64_t start;
    uint64_t end;
};

static const uint64_t *window_words(struct window *window, uint64_t at,
                                    size_t bytes, uint64_t limit)
{
    if (at < window->start || at + bytes > window->end) {
        uint64_t wanted = limit - at < WINDOW_BYTES ? limit - at : WINDOW_BYTES;

        if (seep_held_memory_is_late(window->memory)) {
            return NULL;
        }
        while (wanted >= bytes &&
               !seep_held_read(window->memory, at, window->bytes,
                               (size_t)wanted)) {
            wanted /= 2;
        }
        window->start = at;
        window->end = wanted >= bytes ? at + wanted : at;
    }
    return window->end - window->start < bytes || at + bytes > window->end
               ? NULL
               : (const uint64_t *)(const void *)(window->bytes +
                                                  (at - window->start));
}

/* Called for each chunk; @size_word is the second word of its head. */
typedef void head_visitor(void *context, struct window *window, uint64_t chunk,
                          uint64_t size_word);

struct shown {
    const struct seep_held_shape *shapes;
    size_t count;
    struct seep_held_scan *scan;
    uint64_t limit;
};
/* A block is what its chunk has behind the head. */
static void show_shapes(void *context, struct window *window, uint64_t chunk,
                        uint64_t size_word)
{
    const struct shown *shown = context;
    uint64_t bytes = (size_word & ~SIZE_FLAGS) - CHUNK_HEAD_BYTES;

    for (size_t i = 0; i < shown->count; i++) {
        uint64_t at = chunk + CHUNK_HEAD_BYTES + shown->shapes[i].offset;
        const uint64_t *word =
            shown->shapes[i].bytes == bytes
                ? window_words(window, at, sizeof(*word), shown->limit)
                : NULL;

        if (word != NULL) {
            seep_held_scan_word(shown->scan, at, *word);
        }
    }
}

static void note_head(void *context, struct window *window, uint64_t chunk,
                      uint64_t size_word)
{
    (void)window;
    (void)size_word;
    note_crossing(context, chunk);
}

/* Over all chunks of @arena; @return where it ended */
static uint64_t walk(const struct seep_held_blocks *blocks,
                     const struct seep_held_arena *arena, head_visitor *visit,
                     void *context)
{
    struct window window = {
        .memory = blocks->memory,
        .bytes = malloc(WINDOW_BYTES),
    };
    uint64_t at = arena->first;

    while (window.bytes != NULL && arena->end - at >= CHUNK_HEAD_BYTES) {
        const uint64_t *head =
            window_words(&window, at, CHUNK_HEAD_BYTES, arena->end);
        uint64_t size_word = head == NULL ? 0 : head[1];
        uint64_t bytes = size_word & ~SIZE_FLAGS;

        if (!is_chunk_size(bytes) || bytes > arena->end - at) {
            break;
        }
        visit(context, &window, at, size_word);
        at += bytes;
    }
    free(window.bytes);
    return at;
}

/* Whether a chunk is in use is told by the one behind it. */
struct told_chunks {
    const struct seep_held_blocks *blocks;
    seep_held_chunk_visitor *visit;
    void *context;
    uint64_t start; /* of the block before; 0: none */
};

static void tell_chunk(void *context, struct window *window, uint64_t chunk,
                       uint64_t size_word)
{
    struct told_chunks *told = context;

    (void)window;
    if (told->start != 0) {
        told->visit(
            told->context, told->start, chunk,
            (size_word & 1) != 0 &&
                !seep_held_addresses_has(&told->blocks->idle, told->start));
    }
    told->start = chunk + CHUNK_HEAD_BYTES;
}

void seep_held_blocks_each(const struct seep_held_blocks *blocks,
                           const struct seep_held_arena *arena,
                           seep_held_chunk_visitor *visit, void *context)
{
    struct told_chunks told = {blocks, visit, context, 0};

    walk(blocks, arena, tell_chunk, &told);
}

#define WALKS_MOST 4
#define WAITS_MOST 500U
#define END_BYTES 300000U /* what a top chunk may be cut short by meanwhile */

/* It moves while it is walked: some tries. */
static void walk_arena(struct seep_held_blocks *blocks,
                       struct seep_held_arena *arena)
{
    for (int i = 0; i < WALKS_MOST; i++) {
        forget_crossings(arena);
        if (walk(blocks, arena, note_head, arena) + END_BYTES >= arena->end ||
            blocks->memory->core != NULL || blocks->wait_count >= WAITS_MOST ||
            seep_held_memory_is_late(blocks->memory)) {
            break;
        }
        blocks->wait_count++;
        usleep(1000);
    }
}

static const struct seep_held_arena *
arena_at(const struct seep_held_blocks *blocks, uint64_t address)
{
    size_t low =
        SEEP_SORTED_UP_TO(blocks->arenas, blocks->arena_count, start, address);

    if (low == 0 || address >= blocks->arenas[low - 1].end ||
        address < blocks->arenas[low - 1].first) {
        return NULL;
    }
    return &blocks->arenas[low - 1];
}

/* The first known header in or before the cell of @address. */
static uint64_t header_before(const struct seep_held_arena *arena,
                              uint64_t address)
{
    size_t cell = (size_t)((address - arena->start) / CELL_BYTES);
    size_t last = cell % PART_CELLS;

    for (size_t part = cell / PART_CELLS + 1; part-- > 0;) {
        const uint8_t *crossings = arena->crossings[part];

        for (size_t i = last + 1; crossings != NULL && i-- > 0;) {
            uint64_t header = arena->start +
                              (part * PART_CELLS + i) * (uint64_t)CELL_BYTES +
                              (uint64_t)crossings[i] * CHUNK_ALIGNMENT;

            if (crossings[i] != NO_CHUNK && header <= address) {
                return header;
            }
        }
        last = PART_CELLS - 1;
    }
    return 0;
}

/* From a header that is known: behind the last of them lies what was allocated
 * since the walk. */
#define STEPS_MOST 8192U

enum seep_held_place seep_held_chunk_at(struct seep_held_blocks *blocks,
                                        uint64_t address, uint64_t *ret_start,
                                        uint64_t *ret_end)
{
    const struct seep_held_arena *arena = arena_at(blocks, address);
    /* The first word of a chunk's head belongs to the block before it. */
    uint64_t word = address - 8;
    uint64_t at;

    if (arena == NULL) {
        return SEEP_HELD_NO_BLOCK;
    }
    word = word > arena->first ? word : arena->first;
    at = header_before(arena, word);
    for (uint32_t i = 0; at != 0 && i < STEPS_MOST; i++) {
        uint64_t bytes = chunk_bytes(blocks->memory, at);

        if (!is_chunk_size(bytes) || bytes > arena->end - at) {
            return SEEP_HELD_NO_BLOCK;
        }
        if (word < at + bytes) {
            bool is_used =
                (seep_held_word(blocks->memory, at + bytes + 8) & 1) != 0;

            *ret_start = at + CHUNK_HEAD_BYTES;
            *ret_end = at + bytes;
            return !is_used || address < *ret_start ||
                           seep_held_addresses_has(&blocks->idle, *ret_start)
                       ? SEEP_HELD_FREE
                       : SEEP_HELD_CHUNK;
        }
        at += bytes;
    }
    return SEEP_HELD_NO_BLOCK;
}

#define BLOCKS_A_MAP 64U
#define THREAD_MAP_BYTES_MOST (UINT64_C(16) << 20)
#define THREAD_PART_BYTES (UINT64_C(4) << 20)

#define THREAD_TOP_BYTES (UINT64_C(256) << 10) /* where no stack is */

/* Does a thread have its stack in it, or may one that was not to be had? */
static bool may_be_stack(const struct seep_held_memory *memory,
                         const struct seep_held_map *map)
{
    bool may = false;

    for (size_t i = 0; i < memory->thread_count; i++) {
        uint64_t pointer = memory->threads[i].stack_pointer;

        may |= pointer == 0 || (pointer >= map->start && pointer < map->end);
    }
    return may;
}

/* Words that point to themselves, twice: a control block lies in one page. */
static size_t find_control_blocks(const uint64_t *words, uint64_t address,
                                  uint64_t *ret_addresses, size_t capacity)
{
    size_t count = 0;

    for (size_t i = 0; i + 2 < SEEP_HELD_PAGE_BYTES / 8 && count < capacity;
         i++) {
        if (words[i] == address + 8 * i && words[i + 2] == words[i]) {
            ret_addresses[count++] = words[i];
        }
    }
    return count;
}

/* Most of a stack was never touched, and of hundreds of threads that is what
 * there is most of: a page that is not there is not asked for. */
size_t seep_held_thread_blocks(struct seep_held_memory *memory,
                               const struct seep_held_map *map,
                               uint64_t *ret_addresses, size_t capacity)
{
    uint64_t words[SEEP_HELD_PAGE_BYTES / 8];
    bool there[SEEP_HELD_THERE_MOST];
    uint64_t bytes = map->end - map->start;
    uint64_t most =
        may_be_stack(memory, map) ? THREAD_PART_BYTES : THREAD_TOP_BYTES;
    size_t count = 0;

    /* At the top of a stack, or of a mapping that others have grown below. */
    bytes = bytes < most ? bytes : most;
    for (uint64_t at = map->end - bytes;
         at < map->end && !seep_held_memory_is_late(memory);) {
        size_t pages = seep_held_pages_there(
            memory, at, (map->end - at) / SEEP_HELD_PAGE_BYTES, there);

        for (size_t i = 0; i < pages; i++, at += SEEP_HELD_PAGE_BYTES) {
            if (there[i] && seep_held_read(memory, at, words, sizeof(words))) {
                count += find_control_blocks(words, at, ret_addresses + count,
                                             capacity - count);
            }
        }
    }
    return count;
}

/* Links of these lists are mangled since 2.32 by where they stand. */
static uint64_t next_of(struct seep_held_memory *memory, uint64_t block)
{
    uint64_t word = 0;

    return seep_held_read(memory, block, &word, sizeof(word))
               ? word ^ block >> 12
               : 0;
}

static void add_list(struct seep_held_blocks *blocks, uint64_t block)
{
    for (uint32_t i = 0; i < LIST_MOST && block != 0 && block % 16 == 0; i++) {
        if (!seep_held_addresses_add(&blocks->idle, block)) {
            return;
        }
        block = next_of(blocks->memory, block);
    }
}

/* What one thread has set aside: counts of two bytes, then as many heads of
 * lists; to 2.41, and since. How many is known by the size of its chunk. */
static const struct cache_layout {
    uint64_t chunk_bytes;
    size_t list_count;
} cache_layouts[] = {{0x290, 64}, {0x300, CACHE_LISTS_MOST}};

static size_t count_lists(uint64_t bytes)
{
    size_t count = sizeof(cache_layouts) / sizeof(cache_layouts[0]);

    for (size_t i = 0; i < count; i++) {
        if (cache_layouts[i].chunk_bytes == bytes) {
            return cache_layouts[i].list_count;
        }
    }
    return 0;
}

static void add_cache(struct seep_held_blocks *blocks, uint64_t cache,
                      size_t list_count)
{
    uint64_t heads[CACHE_LISTS_MOST];

    if (!seep_held_addresses_add(&blocks->idle, cache) ||
        !seep_held_read(blocks->memory, cache + 2 * list_count, heads,
                        list_count * sizeof(*heads))) {
        return;
    }
    for (size_t i = 0; i < list_count; i++) {
        add_list(blocks, heads[i]);
    }
}

#define THREAD_LOCAL_WORDS 1024U

/* It is a chunk that a thread-local of libc points to. */
static void find_cache(struct seep_held_blocks *blocks, uint64_t thread)
{
    struct seep_held_memory *memory = blocks->memory;

    for (uint64_t word = 1; word <= THREAD_LOCAL_WORDS; word++) {
        uint64_t block = seep_held_word(memory, thread - 8 * word);
        size_t list_count =
            block % 16 == 0 && block != 0
                ? count_lists(chunk_bytes(memory, block - CHUNK_HEAD_BYTES))
                : 0;
        uint64_t start;
        uint64_t end;

        if (list_count > 0 && seep_held_chunk_at(blocks, block, &start, &end) !=
                                  SEEP_HELD_NO_BLOCK) {
            add_cache(blocks, block, list_count);
        }
    }
}

static void find_caches(struct seep_held_blocks *blocks)
{
    struct seep_held_memory *memory = blocks->memory;

    for (size_t i = 0; i < memory->map_count; i++) {
        const struct seep_held_map *map = &memory->maps[i];
        uint64_t threads[BLOCKS_A_MAP];
        size_t count;

        if (!seep_held_map_is_searched(map) || *map->path != '\0' ||
            map->end - map->start > THREAD_MAP_BYTES_MOST) {
            continue;
        }
        count = seep_held_thread_blocks(memory, map, threads, BLOCKS_A_MAP);
        for (size_t k = 0; k < count; k++) {
            find_cache(blocks, threads[k]);
        }
    }
}

#define FASTBINS 10U

static void find_fastbins(struct seep_held_blocks *blocks)
{
    struct seep_held_memory *memory = blocks->memory;

    for (size_t i = 0; i < blocks->arena_count; i++) {
        uint64_t start = blocks->arenas[i].start;
        uint64_t arena = seep_held_word(memory, start);

        if (start % HEAP_BYTES_MOST != 0 ||
            (arena & ~(HEAP_BYTES_MOST - 1)) != start ||
            !has_fastbins(memory, arena)) {
            continue;
        }
        for (uint64_t bin = 0; bin < FASTBINS; bin++) {
            uint64_t chunk =
                seep_held_word(memory, arena + FASTBINS_AT + 8 * bin);

            for (uint32_t k = 0;
                 k < LIST_MOST && chunk != 0 && chunk % 16 == 0 &&
                 seep_held_addresses_add(&blocks->idle,
                                         chunk + CHUNK_HEAD_BYTES);
                 k++) {
                chunk = next_of(memory, chunk + CHUNK_HEAD_BYTES);
            }
        }
    }
}

int seep_held_blocks_init(struct seep_held_blocks *blocks)
{
    int error;

    blocks->arenas = calloc(ARENAS_MOST, sizeof(*blocks->arenas));
    error = blocks->arenas == NULL ? -ENOMEM : find_arenas(blocks);
    if (error < 0) {
        return error;
    }
    for (size_t i = 0; i < blocks->arena_count; i++) {
        walk_arena(blocks, &blocks->arenas[i]);
    }
    find_caches(blocks);
    find_fastbins(blocks);
    return 0;
}

void seep_held_blocks_fini(struct seep_held_blocks *blocks)
{
    for (size_t i = 0; i < blocks->arena_count; i++) {
        forget_crossings(&blocks->arenas[i]);
        free(blocks->arenas[i].crossings);
    }
    for (size_t i = 0; i < SEEP_HELD_MAPPED_MAPS; i++) {
        free(blocks->mapped[i].items);
        blocks->mapped[i] = (struct seep_held_mapped_of){0};
    }
    free(blocks->arenas);
    free(blocks->idle.values);
    blocks->arenas = NULL;
    blocks->arena_count = 0;
    blocks->idle = (struct seep_held_addresses){0};
}

int seep_held_blocks_again(struct seep_held_blocks *blocks)
{
    seep_held_blocks_fini(blocks);
    return seep_held_blocks_init(blocks);
}

/* What was found of @map since the last forget; another's place, if need be. */
static struct seep_held_mapped_of *mapped_of(struct seep_held_blocks *blocks,
                                             const struct seep_held_map *map,
                                             uint64_t page)
{
    struct seep_held_mapped_of *found =
        &blocks->mapped[seep_hash_mix(map->start) % SEEP_HELD_MAPPED_MAPS];

    if (found->map != map->start || found->from > found->to ||
        found->generation != blocks->memory->generation ||
        page + WALK_BYTES_MOST < found->from ||
        page > found->to + WALK_BYTES_MOST) {
        found->map = map->start;
        found->generation = blocks->memory->generation;
        found->from = page;
        found->to = page;
        found->count = 0;
    }
    return found;
}

static int compare_mapped(const void *one, const void *other)
{
    const struct seep_held_mapped *a = one;
    const struct seep_held_mapped *b = other;

    return (a->start > b->start) - (a->start < b->start);
}

/* Look at the pages from @from up to @to: few enough for one read. */
static void find_mapped(struct seep_held_blocks *blocks,
                        const struct seep_held_map *map,
                        struct seep_held_mapped_of *of, uint64_t from,
                        uint64_t to)
{
    uint64_t heads[SEEP_HELD_HEADS_MOST][2];
    size_t pages = (size_t)((to - from) / SEEP_HELD_PAGE_BYTES);
    size_t before = of->count;

    seep_held_read_heads(blocks->memory, from, pages, heads);
    for (size_t i = 0; i < pages; i++) {
        uint64_t at = from + i * SEEP_HELD_PAGE_BYTES;
        uint64_t bytes = heads[i][1] & ~SIZE_FLAGS;

        if ((heads[i][1] & SIZE_FLAGS) != IS_MMAPPED || heads[i][0] != 0 ||
            bytes <= SEEP_HELD_PAGE_BYTES ||
            bytes % SEEP_HELD_PAGE_BYTES != 0 || bytes > map->end - at) {
            continue;
        }
        if ((of->count & (of->count - 1)) == 0) {
            size_t capacity = of->count == 0 ? 1 : 2 * of->count;
            struct seep_held_mapped *items =
                realloc(of->items, capacity * sizeof(*items));

            if (items == NULL) {
                break;
            }
            of->items = items;
        }
        of->items[of->count++] = (struct seep_held_mapped){at, at + bytes};
    }
    if (of->count > before) {
        qsort(of->items, of->count, sizeof(*of->items), compare_mapped);
    }
    of->from = from < of->from ? from : of->from;
    of->to = to > of->to ? to : of->to;
}

#define COVERS_MOST 64U /* heads below that do not reach so far */

static bool is_in_mapped(const struct seep_held_mapped_of *of, uint64_t address,
                         uint64_t *ret_start, uint64_t *ret_end)
{
    size_t low = SEEP_SORTED_UP_TO(of->items, of->count, start, address);

    for (size_t i = 0; i < COVERS_MOST && low-- > 0; i++) {
        if (address < of->items[low].end) {
            *ret_start = of->items[low].start + CHUNK_HEAD_BYTES;
            *ret_end = of->items[low].end;
            return true;
        }
    }
    return false;
}

/* A block that malloc mapped begins a page, says so, and has the rest: upwards
 * to the page of @address, and downwards until one has it. */
static bool mmapped_at(struct seep_held_blocks *blocks, uint64_t address,
                       uint64_t *ret_start, uint64_t *ret_end)
{
    const struct seep_held_map *map = seep_held_map_at(blocks->memory, address);
    uint64_t page = address & ~(uint64_t)(SEEP_HELD_PAGE_BYTES - 1);
    struct seep_held_mapped_of *of;
    uint64_t walked = 0;

    if (map == NULL) {
        return false;
    }
    of = mapped_of(blocks, map, page);
    while (of->to <= page && !seep_held_memory_is_late(blocks->memory)) {
        uint64_t left = page + SEEP_HELD_PAGE_BYTES - of->to;

        find_mapped(blocks, map, of, of->to,
                    of->to + (left < STEP_BYTES ? left : STEP_BYTES));
    }
    while (!is_in_mapped(of, address, ret_start, ret_end)) {
        uint64_t left = of->from - map->start;

        if (left == 0 || walked >= WALK_BYTES_MOST ||
            seep_held_memory_is_late(blocks->memory)) {
            return false;
        }
        left = left < STEP_BYTES ? left : STEP_BYTES;
        find_mapped(blocks, map, of, of->from - left, of->from);
        walked += of->from < page ? left : 0;
    }
    return address >= *ret_start;
}

static bool known_at(const struct seep_held_blocks *blocks, uint64_t address,
                     uint64_t *ret_start, uint64_t *ret_end)
{
    size_t low =
        SEEP_SORTED_UP_TO(blocks->known, blocks->known_count, address, address);

    if (low == 0 || address - blocks->known[low - 1].address >=
                        blocks->known[low - 1].bytes) {
        return false;
    }
    *ret_start = blocks->known[low - 1].address;
    *ret_end = *ret_start + blocks->known[low - 1].bytes;
    return true;
}

enum seep_held_place seep_held_block_at(struct seep_held_blocks *blocks,
                                        uint64_t address, uint64_t *ret_start,
                                        uint64_t *ret_end)
{
    enum seep_held_place place =
        seep_held_chunk_at(blocks, address, ret_start, ret_end);

    if (place != SEEP_HELD_NO_BLOCK) {
        return place;
    }
    if (blocks->pool_bytes != 0) {
        place = seep_held_pool_at(blocks, address, ret_start, ret_end);
        if (place != SEEP_HELD_NO_BLOCK) {
            return place;
        }
    }
    if (known_at(blocks, address, ret_start, ret_end)) {
        return SEEP_HELD_KNOWN;
    }
    return mmapped_at(blocks, address, ret_start, ret_end) ? SEEP_HELD_MMAPPED
                                                           : SEEP_HELD_NO_BLOCK;
}

void seep_held_blocks_scan(struct seep_held_blocks *blocks,
                           const struct seep_held_shape *shapes,
                           size_t shape_count, struct seep_held_scan *scan)
{
    for (size_t i = 0; i < blocks->arena_count; i++) {
        struct shown shown = {shapes, shape_count, scan, blocks->arenas[i].end};

        walk(blocks, &blocks->arenas[i], show_shapes, &shown);
    }
    seep_held_pools_scan(blocks, shapes, shape_count, scan);
}
