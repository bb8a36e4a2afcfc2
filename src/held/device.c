/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who holds what a driver gave: tensors of a GPU, memory of a device, pinned
 * memory. What is there is not looked at; who has its address has it.
 *
 * Invariant: what the allocators of a device have by themselves are books, in
 * which each block stands, and hold nothing: a way that ends there is none.
 */
#include <stdlib.h>
#include <string.h>

#include "held/search.h"

/* Libraries whose data are books. What the driver has is told to nobody; and
 * what those above it seem to have is mostly the driver's, whose objects they
 * point to (seen on a GPU: cuBLAS and NVRTC, of three quarters of all). */
static const struct library {
    const char *file;   /* begins so */
    const char *holder; /* what keeps what nobody else has; NULL: nobody */
    bool has_books;     /* tables of blocks that hold nothing, either */
} libraries[] = {
    {"libc10_cuda", "c10::cuda::CUDACachingAllocator", true},
    {"libc10_hip", "c10::hip::HIPCachingAllocator", true},
    {"libcublas", "a library of CUDA", false},
    {"libcudnn", "a library of CUDA", false},
    {"libcufft", "a library of CUDA", false},
    {"libcurand", "a library of CUDA", false},
    {"libcusolver", "a library of CUDA", false},
    {"libcusparse", "a library of CUDA", false},
    {"libnccl", "a library of CUDA", false},
    {"libnvJitLink", "a library of CUDA", false},
    {"libnvrtc", "a library of CUDA", false},
    {"libcuda.so", NULL, false},
    {"libcudart", NULL, false},
    {"libnvidia-", NULL, false},
};

/* Allocators by their class. */
static const char *const cxx_classes[] = {
    "CachingAllocator", "CachingHostAllocator", "BFCAllocator"};
static const char *const python_classes[] = {"SingleDeviceMemoryPool",
                                             "PinnedMemoryPool"};

#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

static const struct library *library_of(const char *path)
{
    const char *name = seep_held_file_name(path);

    for (size_t i = 0; i < COUNT_OF(libraries); i++) {
        if (strncmp(name, libraries[i].file, strlen(libraries[i].file)) == 0) {
            return &libraries[i];
        }
    }
    return NULL;
}

bool seep_held_is_of_device_allocator(const char *path)
{
    return library_of(path) != NULL;
}

/* What a cache has from the driver it keeps, if nobody else does: it comes last
 * of all. What it gave out from there is lost, then. */
uint32_t seep_held_resolve_book(struct seep_held_search *search,
                                const char *path)
{
    const struct library *library =
        path == NULL ? &libraries[0] : library_of(path);
    struct seep_held_node root = {
        .words = SEEP_HELD_KIND_GLOBAL,
        .rank = SEEP_HELD_RANK_MAPPING,
        .function = "",
        .file = "",
    };

    if (search->question->is_cached || library->holder == NULL) {
        return SEEP_HELD_NOTHING;
    }
    root.name = library->holder;
    return seep_held_root_add(
        search,
        seep_held_node_key(SEEP_HELD_TAG_GLOBAL, 0,
                           seep_held_hash_text(0, library->holder)),
        &root);
}

static bool has_one_of(const char *name, const char *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(name, parts[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_allocator(struct seep_held_search *search,
                         struct seep_held_node *node)
{
    char name[2 * SEEP_HELD_NAME_BYTES];

    if (node->kind == SEEP_HELD_OBJECT) {
        seep_held_type_text(&search->python, node->type, name, sizeof(name));
        if (!has_one_of(name, python_classes, COUNT_OF(python_classes))) {
            return false;
        }
        node->name = seep_held_text(search, name);
        return true;
    }
    seep_held_read_class(search, node);
    return node->type != 0 &&
           has_one_of(node->name, cxx_classes, COUNT_OF(cxx_classes));
}

void seep_held_mark_allocator(struct seep_held_search *search,
                              struct seep_held_node *node)
{
    if (node->place == SEEP_HELD_OF_DRIVER) {
        node->type_is_read = true;
    } else if (!is_allocator(search, node)) {
        return;
    } else if (search->question->is_cached) {
        node->is_of_allocator = true;
    } else {
        node->rank = SEEP_HELD_RANK_MAPPING;
        node->words = SEEP_HELD_KIND_GLOBAL;
    }
}

bool seep_held_keeps_books(const struct seep_held_node *node)
{
    return node->kind != SEEP_HELD_ROOT && node->rank == SEEP_HELD_RANK_MAPPING;
}

/*
 * The books of PyTorch's cache: tables that its library's data point to, and
 * what they list, {address, a block of its}; two steps down, and one for those
 * that hang on each other.
 */

#define BOOKS_DEPTH 3U
#define BOOKS_MOST 400000U
#define BOOK_BYTES_MOST (UINT64_C(64) << 20)

struct book {
    uint64_t start;
    uint64_t end;
    unsigned depth;
};

struct books {
    struct book *items;
    size_t count;
    size_t capacity;
};

/* @return false: no memory */
static bool push(struct books *books, struct book book)
{
    if (books->count == books->capacity) {
        size_t capacity = books->capacity == 0 ? 1024 : 2 * books->capacity;
        struct book *items = realloc(books->items, capacity * sizeof(*items));

        if (items == NULL) {
            return false;
        }
        books->items = items;
        books->capacity = capacity;
    }
    books->items[books->count++] = book;
    return true;
}

/* The block that begins at @address, if it may be a book: no object that has a
 * class. */
static bool find_book(struct seep_held_search *search, uint64_t address,
                      struct book *ret_book)
{
    char symbol[SEEP_HELD_CLASS_BYTES];
    struct seep_held_blocks *blocks = &search->blocks;
    uint64_t start = 0;
    uint64_t end = 0;
    enum seep_held_place place;

    if (address % 16 != 0 ||
        seep_held_map_at(search->memory, address) == NULL) {
        return false;
    }
    place = address % SEEP_HELD_PAGE_BYTES == 16
                ? seep_held_block_at(blocks, address, &start, &end)
                : seep_held_chunk_at(blocks, address, &start, &end);
    if ((place != SEEP_HELD_CHUNK && place != SEEP_HELD_MMAPPED) ||
        start != address ||
        (search->has_python &&
         seep_held_object_in(&search->python, start, end) != 0) ||
        seep_held_class_symbol_of(
            &search->images, seep_held_word(search->memory, start), symbol)) {
        return false;
    }
    *ret_book = (struct book){start, end, 0};
    return true;
}

/* All that the words in [start, end) point to. */
static void add_books(struct seep_held_search *search, struct books *books,
                      const struct book *from)
{
    uint64_t words[SEEP_HELD_PAGE_BYTES / sizeof(uint64_t)];
    uint64_t end = from->end - from->start > BOOK_BYTES_MOST
                       ? from->start + BOOK_BYTES_MOST
                       : from->end;
    uint64_t bytes;

    for (uint64_t at = from->start; at < end; at += bytes) {
        bytes = SEEP_HELD_PAGE_BYTES - at % SEEP_HELD_PAGE_BYTES;
        bytes = end - at < bytes ? end - at : bytes;
        if (seep_held_memory_is_late(search->memory)) {
            return;
        }
        if (!seep_held_read(search->memory, at, words, bytes)) {
            continue;
        }
        for (size_t i = 0; i < bytes / sizeof(words[0]); i++) {
            struct book book;

            if (books->count < BOOKS_MOST &&
                find_book(search, words[i], &book) &&
                seep_held_addresses_add(&search->books, book.start)) {
                book.depth = from->depth + 1;
                push(books, book);
            }
        }
    }
}

/* Is @map, or what it lies behind without a name of its own, of a library that
 * keeps books? */
static bool has_books(const struct seep_held_memory *memory,
                      const struct seep_held_map *map)
{
    const char *path =
        *map->path == '\0' && map > memory->maps && map[-1].end == map->start
            ? map[-1].path
            : map->path;
    const struct library *library = *path == '/' ? library_of(path) : NULL;

    return library != NULL && library->has_books &&
           seep_held_map_is_searched(map);
}

void seep_held_find_books(struct seep_held_search *search)
{
    const struct seep_held_memory *memory = search->memory;
    struct books books = {0};

    for (size_t i = 0; i < memory->map_count; i++) {
        const struct seep_held_map *map = &memory->maps[i];
        const struct seep_held_image *image =
            has_books(memory, map)
                ? seep_held_image_at(&search->images, map->start)
                : NULL;

        if (image != NULL) {
            push(&books,
                 (struct book){map->start,
                               image->end < map->end && image->end > map->start
                                   ? image->end
                                   : map->end,
                               0});
        }
    }
    for (size_t i = 0; i < books.count; i++) {
        const struct book from = books.items[i];

        if (from.depth < BOOKS_DEPTH) {
            add_books(search, &books, &from);
        }
    }
    free(books.items);
}

/*
 * An address that is an int: two digits of 30 bits side by side, behind the
 * head (CPython 3.8 to 3.15).
 */

#define DIGIT_BITS 30U
#define DIGITS_AT 24U

/* 0: it has no such word. */
static uint64_t number_of(const struct seep_held_search *search,
                          const struct seep_held_node *node)
{
    uint64_t low = node->address & ((UINT64_C(1) << DIGIT_BITS) - 1);
    uint64_t high = node->address >> DIGIT_BITS;

    return search->has_python && node->place == SEEP_HELD_OF_DRIVER &&
                   high != 0 && high >> DIGIT_BITS == 0
               ? high << 32 | low
               : 0;
}

int seep_held_add_number(struct seep_held_search *search, uint32_t number)
{
    uint64_t word = number_of(search, &search->nodes[number]);

    for (size_t i = 0; word != 0 && i < search->asked_count; i++) {
        const struct seep_held_node *asked = &search->nodes[search->asked[i]];

        word = word >= asked->start && word < asked->end ? 0 : word;
    }
    return word == 0
               ? 0
               : seep_held_scan_add(&search->scan, word, word + 1, number);
}

bool seep_held_is_number(struct seep_held_search *search,
                         const struct seep_held_node *holder, uint64_t at)
{
    return holder->kind == SEEP_HELD_OBJECT &&
           at == holder->address + DIGITS_AT &&
           (seep_held_type_at(&search->python, holder->type)->flags &
            SEEP_HELD_FLAG_LONG) != 0;
}
