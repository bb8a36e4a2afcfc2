/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Thread-locals: those of the program by their names, and whose the others are.
 *
 * Invariant: what an allocator has there are free blocks, and hold nothing.
 */
#include <string.h>

#include "held/search.h"

static const struct seep_held_threads_of *
threads_of(struct seep_held_search *search, const struct seep_held_map *map)
{
    struct seep_held_threads_of *found;

    for (size_t i = 0; i < search->threads_count; i++) {
        if (search->threads[i].map == map->start) {
            return &search->threads[i];
        }
    }
    if (search->threads_count == SEEP_HELD_CACHED_MAPS) {
        return NULL;
    }
    found = &search->threads[search->threads_count++];
    found->map = map->start;
    found->count =
        *map->path != '\0' && *map->path != '['
            ? 0
            : seep_held_thread_blocks(search->memory, map, found->blocks, 8);
    return found;
}

const char *seep_held_program_path(const struct seep_held_memory *memory)
{
    for (size_t i = 0; i < memory->map_count; i++) {
        if (memory->maps[i].is_code && *memory->maps[i].path == '/') {
            return memory->maps[i].path;
        }
    }
    return "";
}

static const struct seep_held_image *
program_image(struct seep_held_search *search)
{
    return seep_held_image_of(&search->images,
                              seep_held_program_path(search->memory));
}

/* The program's own thread-locals end where the control block begins. */
static const struct seep_symbol_entry *
thread_local_at(struct seep_held_search *search, uint64_t before)
{
    const struct seep_held_image *image = program_image(search);

    return image == NULL || before > image->tls_bytes
               ? NULL
               : seep_held_symbol_find(image, SEEP_SYMBOL_THREAD_LOCAL,
                                       image->tls_bytes - before);
}

/* What an allocator has by itself are free blocks, and how it finds them. */
bool seep_held_is_allocator(const char *path)
{
    static const char *const names[] = {"libjemalloc", "libtcmalloc",
                                        "libmimalloc", "libtbbmalloc"};
    const char *name = seep_held_file_name(path);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

#define MODULES_MOST 512U
#define DISTINCT_BYTES                                     \
    512U /* thread-locals of a library that are told by it \
          */

/* How many bytes of thread-locals the library has that @at is of, and a little
 * more: by the vector of a thread's blocks, which its control block has. */
static uint64_t thread_locals_around(struct seep_held_search *search,
                                     uint64_t block, uint64_t at)
{
    uint64_t vector = seep_held_word(search->memory, block + 8);
    uint64_t count = seep_held_word(search->memory, vector - 16);
    uint64_t start = 0;
    uint64_t end = block;

    for (uint64_t i = 1; i <= count && i < MODULES_MOST; i++) {
        uint64_t address = seep_held_word(search->memory, vector + 16 * i);

        if (address <= at && address > start) {
            start = address;
        } else if (address > at && address < end) {
            end = address;
        }
    }
    return start == 0 ? 0 : end - start;
}

#define HEAP_WORDS 512U
#define OWN_LEAST 8U

/*
 * Does what begins at @start have several addresses of an allocator's own data?
 * mimalloc's heap of a thread does, for each size that it has no page of, and
 * its few thread-locals have no size to be known by.
 */
static bool is_heap(struct seep_held_search *search, uint64_t start)
{
    size_t own = 0;

    if (start % sizeof(uint64_t) != 0 ||
        seep_held_map_at(search->memory, start) == NULL) {
        return false;
    }
    for (size_t i = 0; i < HEAP_WORDS && own < OWN_LEAST; i++) {
        const struct seep_held_map *map = seep_held_map_at(
            search->memory, seep_held_word(search->memory, start + 8 * i));

        own +=
            map != NULL && !map->is_code && seep_held_is_allocator(map->path);
    }
    return own == OWN_LEAST;
}

static bool is_of_allocator(struct seep_held_search *search, uint64_t block,
                            uint64_t at)
{
    const struct seep_held_memory *memory = search->memory;
    uint64_t bytes = 0;

    for (size_t i = 0; i < memory->map_count; i++) {
        const struct seep_held_map *map = &memory->maps[i];
        const struct seep_held_image *image;

        if (!map->is_code || !seep_held_is_allocator(map->path)) {
            continue;
        }
        image = seep_held_image_of(&search->images, map->path);
        bytes = bytes == 0 ? thread_locals_around(search, block, at) : bytes;
        if (image != NULL && image->tls_bytes >= DISTINCT_BYTES &&
            bytes >= image->tls_bytes &&
            bytes - image->tls_bytes < DISTINCT_BYTES / 4) {
            return true;
        }
        if (is_heap(search, seep_held_word(search->memory, at))) {
            return true;
        }
    }
    return false;
}

#define CONTROL_BLOCK_BYTES 2304U
/* Where glibc (2.26 to 2.41, x86-64) has what pthread_setspecific() keeps: 32
 * of {sequence, value}, then the addresses of as many again. */
#define KEYS_AT 784U
#define KEYS_END (KEYS_AT + 32 * 16 + 32 * 8)

static bool is_of_a_key(uint64_t offset)
{
    return offset >= KEYS_AT && offset < KEYS_END;
}

uint32_t seep_held_resolve_thread(struct seep_held_search *search,
                                  const struct seep_held_map *map, uint64_t at)
{
    const struct seep_held_threads_of *threads = threads_of(search, map);

    for (size_t i = 0; threads != NULL && i < threads->count; i++) {
        uint64_t block = threads->blocks[i];
        const struct seep_symbol_entry *symbol = NULL;
        struct seep_held_node root = {
            .start = at,
            .words = SEEP_HELD_KIND_THREAD_LOCAL,
            .rank = SEEP_HELD_RANK_RUNTIME,
            .name = "",
            .function = "",
            .file = "",
        };
        char name[256];

        if (at < block && block - at <= search->thread_local_bytes) {
            symbol = thread_local_at(search, block - at);
            if (symbol == NULL && is_of_allocator(search, block, at)) {
                return SEEP_HELD_ALLOCATOR;
            }
            root.rank =
                symbol != NULL ? SEEP_HELD_RANK_NAMELESS : SEEP_HELD_RANK_FRAME;
        } else if (at < block || at - block >= CONTROL_BLOCK_BYTES) {
            continue;
        } else if (is_of_a_key(at - block)) {
            root.rank = SEEP_HELD_RANK_FRAME;
        }
        if (symbol != NULL) {
            seep_held_demangle(
                &search->images,
                seep_held_symbol_name(program_image(search), symbol), name,
                sizeof(name));
            root.name = seep_held_text(search, name);
            root.start =
                block - program_image(search)->tls_bytes + symbol->address;
            root.end = root.start + symbol->bytes;
            root.type = symbol->address + 1;
        }
        return seep_held_root_add(
            search,
            symbol != NULL
                ? seep_held_node_key(SEEP_HELD_TAG_THREAD, block,
                                     symbol->address)
                : seep_held_node_key(SEEP_HELD_TAG_THREAD, block, at),
            &root);
    }
    return SEEP_HELD_NOTHING;
}
