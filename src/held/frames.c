/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose variable a word is: of a function by its thread's stack, or of one of
 * Python's by the interpreter's stack of frames (3.11 on).
 *
 * Invariant: what lies beyond the top of a stack holds nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "held/search.h"

static int compare_stacks(const void *one, const void *other)
{
    const struct seep_held_stack *a = one;
    const struct seep_held_stack *b = other;

    return (a->pointer > b->pointer) - (a->pointer < b->pointer);
}

int seep_held_find_stacks(struct seep_held_search *search)
{
    const struct seep_held_memory *memory = search->memory;

    search->stacks = calloc(memory->thread_count + 1, sizeof(*search->stacks));
    if (search->stacks == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < memory->thread_count; i++) {
        uint64_t pointer = memory->threads[i].stack_pointer;
        const struct seep_held_map *map = seep_held_map_at(memory, pointer);

        if (map != NULL) {
            search->stacks[search->stack_count++] = (struct seep_held_stack){
                map->start, map->end, pointer,
                seep_held_text(search, memory->threads[i].name)};
        }
    }
    qsort(search->stacks, search->stack_count, sizeof(*search->stacks),
          compare_stacks);
    return 0;
}

#define CALLER_BYTES 65536U
#define CALL_BYTES_MOST 7U

/* Does a call end where @code is? It is one of E8 and four bytes, or of FF /2,
 * which is two to seven long. */
static bool follows_call(struct seep_held_search *search, uint64_t code)
{
    uint8_t bytes[CALL_BYTES_MOST];

#ifndef __x86_64__
    return true;
#endif
    if (!seep_held_read(search->memory, code - sizeof(bytes), bytes,
                        sizeof(bytes))) {
        return false;
    }
    for (size_t i = 0; i + 2 <= sizeof(bytes); i++) {
        if (bytes[i] == 0xff && (bytes[i + 1] >> 3 & 7) == 2) {
            return true;
        }
    }
    return bytes[sizeof(bytes) - 5] == 0xe8;
}

/* The function whose frame @at is in, by the nearest return address below. */
static const char *function_at(struct seep_held_search *search, uint64_t at,
                               uint64_t pointer)
{
    char name[256];
    uint64_t lowest = pointer + CALLER_BYTES < at ? at - CALLER_BYTES : pointer;

    for (at &= ~UINT64_C(7); at >= lowest; at -= 8) {
        uint64_t code = seep_held_word(search->memory, at);
        const struct seep_held_map *map =
            seep_held_map_at(search->memory, code);
        const struct seep_held_image *image;
        const struct seep_symbol_entry *symbol;

        if (map == NULL || !map->is_code || map->is_own || *map->path != '/' ||
            (search->memory->core == NULL && !follows_call(search, code))) {
            continue;
        }
        image = seep_held_image_of(&search->images, map->path);
        symbol = image == NULL
                     ? NULL
                     : seep_held_symbol_find(image, SEEP_SYMBOL_FUNCTION,
                                             code - image->bias - 1);
        if (symbol != NULL) {
            seep_held_demangle(&search->images,
                               seep_held_symbol_name(image, symbol), name,
                               sizeof(name));
            return seep_held_text(search, name);
        }
    }
    return "";
}

static const struct seep_held_stack *
stack_at(const struct seep_held_search *search, uint64_t at, bool *is_stack)
{
    const struct seep_held_stack *best = NULL;

    *is_stack = false;
    for (size_t i = 0; i < search->stack_count; i++) {
        const struct seep_held_stack *stack = &search->stacks[i];

        if (at >= stack->start && at < stack->end) {
            *is_stack = true;
            if (stack->pointer <= at) {
                best = stack; /* by ascending pointer */
            }
        }
    }
    return best;
}

uint32_t seep_held_resolve_stack(struct seep_held_search *search,
                                 const struct seep_held_map *map, uint64_t at,
                                 bool *ret_is_stack)
{
    const struct seep_held_stack *stack = stack_at(search, at, ret_is_stack);
    struct seep_held_node root = {
        .start = at,
        .words = SEEP_HELD_KIND_STACK,
        .rank = SEEP_HELD_RANK_RUNTIME,
        .name = "",
        .function = "",
        .file = "",
    };
    uint32_t found;

    if (!*ret_is_stack && strcmp(map->path, "[stack]") == 0) {
        *ret_is_stack = true;
        return seep_held_root_add(
            search, seep_held_node_key(SEEP_HELD_TAG_STACK, 0, at), &root);
    }
    if (stack == NULL) {
        return SEEP_HELD_NOTHING; /* below what is in use, or no stack */
    }
    found = strcmp(map->path, "[stack]") == 0
                ? SEEP_HELD_NOTHING
                : seep_held_resolve_thread(search, map, at);
    if (found != SEEP_HELD_NOTHING) {
        return found;
    }
    root.name = stack->thread;
    root.function = function_at(search, at, stack->pointer);
    return seep_held_root_add(
        search,
        seep_held_node_key(SEEP_HELD_TAG_STACK, stack->pointer,
                           seep_held_hash_text(SEEP_HASH_SEED, root.function)),
        &root);
}

#define CHUNK_BYTES_LEAST 16384U
#define CHUNK_PAGES_MOST 64U /* a call's variables are not more */

/* Into @ret_chunk what of Python's stack of frames the page @page is in. */
static void find_chunk(struct seep_held_search *search,
                       const struct seep_held_map *map, uint64_t page,
                       struct seep_held_stack_chunk *ret_chunk)
{
    uint64_t heads[CHUNK_PAGES_MOST][2];
    size_t pages = (size_t)((page - map->start) / SEEP_HELD_PAGE_BYTES) + 1;
    uint64_t from;

    pages = pages < CHUNK_PAGES_MOST ? pages : CHUNK_PAGES_MOST;
    from = page - (pages - 1) * SEEP_HELD_PAGE_BYTES;
    seep_held_read_heads(search->memory, from, pages, heads);
    *ret_chunk = (struct seep_held_stack_chunk){
        .page = page, .generation = search->memory->generation};
    for (size_t i = pages; i-- > 0;) {
        uint64_t start = from + i * SEEP_HELD_PAGE_BYTES;
        uint64_t bytes = heads[i][1];

        if (heads[i][0] % SEEP_HELD_PAGE_BYTES == 0 &&
            bytes >= CHUNK_BYTES_LEAST && bytes % SEEP_HELD_PAGE_BYTES == 0 &&
            bytes > page - start && bytes <= map->end - start) {
            ret_chunk->start = start;
            ret_chunk->bytes = bytes;
            break;
        }
    }
}

/* The chunk of Python's stack of frames that @at lies in: {previous, size, top,
 * data}; .start is 0 if it is in none. */
static const struct seep_held_stack_chunk *
chunk_of(struct seep_held_search *search, const struct seep_held_map *map,
         uint64_t at)
{
    uint64_t page = at & ~(uint64_t)(SEEP_HELD_PAGE_BYTES - 1);
    struct seep_held_stack_chunk *chunk =
        &search->chunks[seep_hash_mix(page) % SEEP_HELD_STACK_CHUNKS];

    if (chunk->page != page ||
        chunk->generation != search->memory->generation) {
        find_chunk(search, map, page, chunk);
    }
    return chunk;
}

/* Where the frames in it end: of the chunk in use the thread has {chunk, top,
 * limit} side by side. */
static uint64_t stack_top(struct seep_held_search *search, uint64_t chunk,
                          uint64_t bytes)
{
    struct seep_held_memory *memory = search->memory;
    struct seep_held_top *top;

    for (size_t i = 0; i < search->top_count; i++) {
        if (search->tops[i].chunk == chunk) {
            return search->tops[i].top;
        }
    }
    if (search->top_count == sizeof(search->tops) / sizeof(search->tops[0])) {
        return chunk + bytes;
    }
    top = &search->tops[search->top_count++];
    *top = (struct seep_held_top){
        .chunk = chunk, .top = chunk + 8 * seep_held_word(memory, chunk + 16)};
    seep_held_scan_clear(&search->side);
    if (seep_held_scan_add(&search->side, chunk, chunk + 1, 0) == 0 &&
        seep_held_scan_run(&search->side, memory) == 0) {
        for (size_t i = 0; i < search->side.hit_count; i++) {
            uint64_t words[3];

            if (seep_held_read(memory, search->side.hits[i].at, words,
                               sizeof(words)) &&
                words[2] == chunk + bytes && words[1] >= chunk &&
                words[1] <= chunk + bytes) {
                top->top = words[1];
                break;
            }
        }
    }
    if (top->top <= chunk || top->top > chunk + bytes) {
        top->top = chunk + bytes;
    }
    return top->top;
}

uint32_t seep_held_resolve_frame(struct seep_held_search *search,
                                 const struct seep_held_map *map, uint64_t at,
                                 bool *ret_is_frame)
{
    struct seep_held_python *python = &search->python;
    const struct seep_held_stack_chunk *chunk = chunk_of(search, map, at);
    struct seep_held_frame frame;
    struct seep_held_code code;
    struct seep_held_node root = {
        .words = SEEP_HELD_KIND_FRAME,
        .rank = SEEP_HELD_RANK_FRAME,
        .name = "",
    };
    char name[SEEP_HELD_NAME_BYTES] = "";

    *ret_is_frame = chunk->start != 0 &&
                    seep_held_frame_at(python, at, chunk->start, &frame) &&
                    seep_held_code_read(python, frame.code, &code);
    if (!*ret_is_frame || !seep_held_frame_is_used(python, &frame, at) ||
        frame.address >= stack_top(search, chunk->start, chunk->bytes)) {
        return SEEP_HELD_NOTHING;
    }
    if (frame.index < code.local_count &&
        seep_held_local_text(python, &code, frame.index, name, sizeof(name))) {
        root.name = seep_held_text(search, name);
    }
    root.start = at;
    root.function = seep_held_text(search, code.function);
    root.file = seep_held_text(search, code.file);
    return seep_held_root_add(
        search,
        seep_held_node_key(SEEP_HELD_TAG_FRAME, frame.address, frame.index),
        &root);
}
