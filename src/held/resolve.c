/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What contains a word: a global, a block, a stack, a frame, a thread-local.
 *
 * Invariant: what is free, or seep's own, or part of an allocator, contains
 * nothing: a word there holds no block.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "held/search.h"

const char *seep_held_text(struct seep_held_search *search, const char *text)
{
    const char *copy = seep_store_text(search->store, text);

    return copy == NULL ? "" : copy;
}

const char *seep_held_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static bool is_python(const char *path)
{
    const char *name = seep_held_file_name(path);

    return strncmp(name, "libpython3", 10) == 0 ||
           strncmp(name, "python3", 7) == 0 || strcmp(name, "python") == 0;
}

/* Where PyType_Type is: in libpython, in the program, in whatever embeds it. */
static uint64_t find_type_type(struct seep_held_search *search)
{
    const struct seep_held_memory *memory = search->memory;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < memory->map_count; i++) {
            const struct seep_held_map *map = &memory->maps[i];
            const struct seep_held_image *image;
            uint64_t address;

            if (!map->is_code || *map->path != '/' ||
                is_python(map->path) != (pass == 0)) {
                continue;
            }
            image = seep_held_image_of(&search->images, map->path);
            address = image == NULL
                          ? 0
                          : seep_held_symbol_address(image, "PyType_Type");
            if (address != 0) {
                return address;
            }
        }
    }
    return 0;
}

static void find_python(struct seep_held_search *search)
{
    uint32_t version = search->question->python_version;
    uint64_t type_type = version >> 24 == 3 ? find_type_type(search) : 0;

    search->has_python =
        type_type != 0 &&
        seep_held_python_init(&search->python, search->memory, search->store,
                              type_type, version >> 16 & 0xff);
    search->blocks.pool_bytes =
        search->has_python ? search->python.pool_bytes : 0;
}

#define SEGMENTS_MOST 64U

/* Of the object that is mapped at @start, by its headers in memory. */
static uint64_t thread_locals_of(struct seep_held_memory *memory,
                                 uint64_t start)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment;

    if (!seep_held_read(memory, start, &header, sizeof(header)) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_phentsize != sizeof(segment)) {
        return 0;
    }
    for (unsigned i = 0; i < header.e_phnum && i < SEGMENTS_MOST; i++) {
        if (!seep_held_read(memory,
                            start + header.e_phoff + i * sizeof(segment),
                            &segment, sizeof(segment))) {
            break;
        }
        if (segment.p_type == PT_TLS && segment.p_memsz < 1U << 20 &&
            segment.p_align <= SEEP_HELD_PAGE_BYTES) {
            return segment.p_memsz + segment.p_align;
        }
    }
    return 0;
}

/* A thread's stack ends where its thread-locals begin. */
static void add_thread_locals(struct seep_held_search *search)
{
    const struct seep_held_memory *memory = search->memory;

    for (size_t i = 0; i < memory->map_count; i++) {
        const struct seep_held_map *map = &memory->maps[i];

        if (map->file_offset == 0 && *map->path == '/' && map->is_readable) {
            search->thread_local_bytes +=
                thread_locals_of(search->memory, map->start);
        }
    }
}

#define RUNTIME_WORDS 32U
#define INTERPRETER_BYTES_LEAST 32768U

/* Of 3.10 alone the interpreter is a block and has tables of free objects, with
 * slots that still point at what has been used since. */
static void find_interpreter(struct seep_held_search *search)
{
    const struct seep_held_image *image =
        !search->has_python || search->python.minor != 10
            ? NULL
            : seep_held_image_at(&search->images, search->python.type_type);
    uint64_t runtime =
        image == NULL ? 0 : seep_held_symbol_address(image, "_PyRuntime");

    for (uint64_t i = 0; runtime != 0 && i < RUNTIME_WORDS; i++) {
        uint64_t value = seep_held_word(search->memory, runtime + 8 * i);
        uint64_t start;
        uint64_t end;

        if (seep_held_chunk_at(&search->blocks, value, &start, &end) ==
                SEEP_HELD_CHUNK &&
            start == value && end - start >= INTERPRETER_BYTES_LEAST) {
            search->interpreter = start;
            return;
        }
    }
}

static void find_jemalloc(struct seep_held_search *search)
{
    for (size_t i = 0; i < search->memory->map_count; i++) {
        const char *name = seep_held_file_name(search->memory->maps[i].path);

        search->has_jemalloc |= strncmp(name, "libjemalloc", 11) == 0;
    }
}

int seep_held_resolve_init(struct seep_held_search *search)
{
    int error;

    search->images.memory = search->memory;
    search->images.without_wall = search->question->without_wall;
    search->blocks.memory = search->memory;
    search->blocks.known = search->question->known;
    search->blocks.known_count = search->question->known_count;
    search->threads = calloc(SEEP_HELD_CACHED_MAPS, sizeof(*search->threads));
    error = search->threads == NULL ? -ENOMEM : seep_held_find_stacks(search);
    if (error == 0) {
        add_thread_locals(search);
        find_jemalloc(search);
        find_python(search);
        error = seep_held_blocks_init(&search->blocks);
        find_interpreter(search);
    }
    if (error == 0 && search->question->is_of_driver) {
        seep_held_find_books(search);
    }
    return error;
}

void seep_held_resolve_fini(struct seep_held_search *search)
{
    free(search->stacks);
    free(search->threads);
    free(search->books.values);
    seep_held_blocks_fini(&search->blocks);
    seep_held_images_fini(&search->images);
    seep_held_python_fini(&search->python);
}

uint32_t seep_held_root_add(struct seep_held_search *search, uint64_t key,
                            const struct seep_held_node *root)
{
    uint32_t found = seep_held_node_find(search, key);
    struct seep_held_node node = *root;

    if (found != SEEP_HELD_NOTHING) {
        return found;
    }
    node.key = key;
    node.kind = SEEP_HELD_ROOT;
    node.end = node.end == 0 ? node.start + 8 : node.end;
    node.address = node.start;
    return seep_held_node_add(search, &node);
}

static bool is_runtime(const char *path)
{
    const char *name = seep_held_file_name(path);

    return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-", 5) == 0 ||
           strncmp(name, "ld-linux", 8) == 0 || is_python(path);
}

/* Up to 3.10 a table of the interpreter: objects that wait for the next use,
 * and behind them slots that still point at what has been used since. */
static bool is_free_list(const struct seep_held_image *image,
                         const struct seep_symbol_entry *symbol)
{
    return symbol != NULL && is_python(image->path) &&
           strstr(seep_held_symbol_name(image, symbol), "free_list") != NULL;
}

/* In the cache of what types were asked for, of {version, name, value}: it
 * borrows, many times over. */
static bool is_asked_attribute(struct seep_held_search *search, uint64_t at)
{
    uint64_t version = seep_held_word(search->memory, at - 16);
    uint64_t name = seep_held_word(search->memory, at - 8);

    return version != 0 && version <= UINT32_MAX &&
           (seep_held_type_of(&search->python, name)->flags &
            SEEP_HELD_FLAG_STRING) != 0;
}

static uint64_t type_word(struct seep_held_search *search, uint64_t at)
{
    return seep_held_word(search->memory,
                          seep_held_word(search->memory, at) + 8);
}

/* In a row of objects of one type: of those that wait for the next use, behind
 * which slots still point at what has been used since. */
static bool is_free_slot(struct seep_held_search *search, uint64_t at)
{
    uint64_t type = type_word(search, at);
    unsigned same = 0;

    for (uint64_t i = 1; i <= 2; i++) {
        same += type_word(search, at - 8 * i) == type;
        same += type_word(search, at + 8 * i) == type;
    }
    return same >= 2 && seep_held_type_at(&search->python, type)->is_type;
}

/* The interpreter's own, which holds nothing. */
static bool is_cached(struct seep_held_search *search, uint64_t at)
{
    return is_asked_attribute(search, at) || is_free_slot(search, at);
}

#define NAMELESS_BYTES (UINT64_C(64) << 10)

/* Without symbols each word of a table were one of its own. What is near
 * another that holds some of the same blocks is the same. @return
 * SEEP_HELD_NOTHING */
static uint32_t nameless_near(struct seep_held_search *search, uint64_t at)
{
    for (size_t i = 0; i < search->nameless_count; i++) {
        struct seep_held_node *node = &search->nodes[search->nameless[i]];

        if (at + NAMELESS_BYTES >= node->start &&
            at < node->end + NAMELESS_BYTES) {
            node->start = at < node->start ? at : node->start;
            node->end = at + 8 > node->end ? at + 8 : node->end;
            return search->nameless[i];
        }
    }
    return SEEP_HELD_NOTHING;
}

static uint32_t add_nameless(struct seep_held_search *search, uint64_t key,
                             const struct seep_held_node *root)
{
    uint32_t found = nameless_near(search, root->start);

    if (found == SEEP_HELD_NOTHING) {
        found = seep_held_root_add(search, key, root);
        if (found != SEEP_HELD_NOTHING &&
            search->nameless_count < SEEP_HELD_NAMELESS_MOST) {
            search->nameless[search->nameless_count++] = found;
        }
    }
    return found;
}

static uint32_t resolve_global(struct seep_held_search *search,
                               const struct seep_held_image *image, uint64_t at)
{
    const struct seep_symbol_entry *symbol =
        seep_held_symbol_find(image, SEEP_SYMBOL_DATA, at - image->bias);
    uint64_t start = symbol == NULL ? at : symbol->address + image->bias;
    uint64_t key = seep_held_node_key(SEEP_HELD_TAG_GLOBAL, start, 0);
    struct seep_held_node root = {.start = start,
                                  .words = SEEP_HELD_KIND_GLOBAL};
    char name[256] = "";

    if (is_free_list(image, symbol) ||
        (search->has_python && is_python(image->path) &&
         is_cached(search, at))) {
        return SEEP_HELD_NOTHING;
    }
    if (seep_held_node_find(search, key) == SEEP_HELD_NOTHING) {
        if (symbol != NULL) {
            seep_held_demangle(&search->images,
                               seep_held_symbol_name(image, symbol), name,
                               sizeof(name));
        }
        root.name = seep_held_text(search, name);
        root.function = "";
        root.file = seep_held_text(search, seep_held_file_name(image->path));
        root.end = symbol == NULL ? at + 8 : start + symbol->bytes;
        root.rank = is_runtime(image->path) ? SEEP_HELD_RANK_RUNTIME
                    : symbol != NULL        ? SEEP_HELD_RANK_NAMED
                                            : SEEP_HELD_RANK_NAMELESS;
    }
    return symbol == NULL && root.rank == SEEP_HELD_RANK_NAMELESS
               ? add_nameless(search, key, &root)
               : seep_held_root_add(search, key, &root);
}

/* What of an object has a name that an answer may end with. */
static void rank_object(struct seep_held_search *search,
                        struct seep_held_node *node,
                        const struct seep_held_type *type)
{
    struct seep_held_python *python = &search->python;
    char name[2 * SEEP_HELD_NAME_BYTES];
    char file[SEEP_HELD_NAME_BYTES];

    if (type->species == SEEP_HELD_IS_DICT) {
        uint64_t path;

        if (!seep_held_module_of(python, node->address, name, sizeof(name))) {
            return;
        }
        path = strcmp(name, "__main__") != 0
                   ? 0
                   : seep_held_dict_get(python, node->address, "__file__", 40);
        if (path != 0 &&
            seep_held_python_text(python, path, file, sizeof(file))) {
            node->file = seep_held_text(search, seep_held_file_name(file));
        }
        node->words = SEEP_HELD_KIND_MODULE;
    } else if ((type->flags & SEEP_HELD_FLAG_TYPE) != 0) {
        seep_held_type_text(python, node->address, name, sizeof(name));
        node->words = SEEP_HELD_KIND_CLASS;
    } else if (type->species == SEEP_HELD_IS_MODULE) {
        if (!seep_held_python_text(
                python,
                seep_held_word(search->memory,
                               node->address + python->module_name_offset),
                name, sizeof(name))) {
            return;
        }
        node->words = SEEP_HELD_KIND_MODULE;
    } else {
        return;
    }
    node->name = seep_held_text(search, name);
    node->rank = SEEP_HELD_RANK_NAMED;
}

/* Of glibc's chunk it has the first word of the next, too, and there may be 16
 * bytes more of it than were asked for: what is left of a free one is no chunk
 * below 32. */
static uint64_t object_of_block(struct seep_held_search *search, uint64_t start,
                                uint64_t end, enum seep_held_place place)
{
    struct seep_held_python *python = &search->python;
    uint64_t object;

    if (place != SEEP_HELD_CHUNK && place != SEEP_HELD_KNOWN) {
        return seep_held_object_in(python, start, end);
    }
    object = seep_held_object_in(python, start, end + 8);
    return object != 0 ? object : seep_held_object_in(python, start, end - 8);
}

uint32_t seep_held_block_node(struct seep_held_search *search, uint64_t start,
                              uint64_t end, enum seep_held_place place)
{
    uint64_t key = seep_held_node_key(SEEP_HELD_TAG_BLOCK, start, 0);
    uint32_t found = seep_held_node_find(search, key);
    struct seep_held_node node = {
        .key = key,
        .address = start,
        .start = start,
        .end = end,
        .kind = SEEP_HELD_RAW,
        .place = (uint8_t)place,
        .rank = SEEP_HELD_NO_RANK,
        .child = SEEP_HELD_NOTHING,
        .name = "",
        .function = "",
        .file = "",
    };

    if (found != SEEP_HELD_NOTHING) {
        return found;
    }
    if (search->has_python && place != SEEP_HELD_OF_DRIVER) {
        uint64_t object = object_of_block(search, start, end, place);

        if (object != 0) {
            const struct seep_held_type *type =
                seep_held_type_of(&search->python, object);

            node.kind = SEEP_HELD_OBJECT;
            node.address = object;
            node.type = type->address;
            rank_object(search, &node, type);
        }
    }
    if (search->question->is_of_driver) {
        seep_held_mark_allocator(search, &node);
    }
    return seep_held_node_add(search, &node);
}

#define EXTENT_BYTES 128U
#define EXTENT_FLAGS_END (UINT64_C(1) << 44)
#define EXTENT_BYTES_MOST (UINT64_C(1) << 40)

/* Flags, a page's address, bytes in pages and a number: as jemalloc (5.0 to
 * 5.3) has what it knows of its pages. */
static bool looks_like_extent(struct seep_held_search *search, uint64_t start)
{
    uint64_t words[3];

    return seep_held_read(search->memory, start, words, sizeof(words)) &&
           words[0] != 0 && words[0] < EXTENT_FLAGS_END && words[1] != 0 &&
           words[1] % SEEP_HELD_PAGE_BYTES == 0 &&
           words[2] >= SEEP_HELD_PAGE_BYTES && words[2] < EXTENT_BYTES_MOST &&
           seep_held_map_at(search->memory, words[1]) != NULL;
}

/* Is the word the address in one of these? They lie side by side. */
static bool is_of_extent(struct seep_held_search *search, uint64_t at)
{
    uint64_t start = at - 8;
    unsigned like = 0;

    if (!search->has_jemalloc || start % EXTENT_BYTES != 0 ||
        !looks_like_extent(search, start)) {
        return false;
    }
    for (uint64_t i = 1; i <= 2; i++) {
        like += looks_like_extent(search, start - i * EXTENT_BYTES);
        like += looks_like_extent(search, start + i * EXTENT_BYTES);
    }
    return like >= 2;
}

static uint32_t resolve_rest(struct seep_held_search *search,
                             const struct seep_held_map *map, uint64_t at)
{
    struct seep_held_node root = {
        .start = map->start,
        .end = map->end,
        .words = SEEP_HELD_KIND_MAPPING,
        .rank = SEEP_HELD_RANK_MAPPING,
        .name = "",
        .function = "",
        .file = "",
    };
    uint32_t found;
    bool is_frame = false;

    if (is_of_extent(search, at)) {
        return SEEP_HELD_NOTHING;
    }
    if (search->has_python && search->python.minor >= 11) {
        found = seep_held_resolve_frame(search, map, at, &is_frame);
        if (is_frame) {
            return found;
        }
    }
    found = seep_held_resolve_thread(search, map, at);
    return found != SEEP_HELD_NOTHING
               ? found
               : seep_held_root_add(
                     search,
                     seep_held_node_key(SEEP_HELD_TAG_MAP, map->start, 0),
                     &root);
}

static uint32_t resolve_interpreter(struct seep_held_search *search,
                                    uint64_t start, uint64_t end, uint64_t at)
{
    const struct seep_held_node root = {
        .start = start,
        .end = end,
        .words = SEEP_HELD_KIND_GLOBAL,
        .rank = SEEP_HELD_RANK_RUNTIME,
        .name = "PyInterpreterState",
        .function = "",
        .file = "",
    };

    return is_cached(search, at)
               ? SEEP_HELD_NOTHING
               : seep_held_root_add(
                     search, seep_held_node_key(SEEP_HELD_TAG_GLOBAL, start, 0),
                     &root);
}

uint32_t seep_held_resolve(struct seep_held_search *search, uint64_t at)
{
    const struct seep_held_map *map = seep_held_map_at(search->memory, at);
    const struct seep_held_image *image;
    enum seep_held_place place;
    uint64_t start = 0;
    uint64_t end;
    uint32_t found;
    bool is_stack;

    if (map == NULL || map->is_own) {
        return SEEP_HELD_NOTHING;
    }
    image = seep_held_image_at(&search->images, at);
    if (image != NULL) {
        return strncmp(seep_held_file_name(image->path), "libseep", 7) == 0
                   ? SEEP_HELD_NOTHING
               : seep_held_is_allocator(image->path) ? SEEP_HELD_ALLOCATOR
               : search->question->is_of_driver &&
                       seep_held_is_of_device_allocator(image->path)
                   ? seep_held_resolve_book(search, image->path)
                   : resolve_global(search, image, at);
    }
    place = seep_held_chunk_at(&search->blocks, at, &start, &end);
    if (place == SEEP_HELD_NO_BLOCK) {
        found = seep_held_resolve_stack(search, map, at, &is_stack);
        if (is_stack) {
            return found;
        }
        place = seep_held_block_at(&search->blocks, at, &start, &end);
    }
    if (place == SEEP_HELD_FREE) {
        return SEEP_HELD_NOTHING;
    }
    if (place != SEEP_HELD_NO_BLOCK &&
        seep_held_addresses_has(&search->books, start)) {
        return seep_held_resolve_book(search, NULL);
    }
    if (search->interpreter != 0 && start == search->interpreter) {
        return resolve_interpreter(search, start, end, at);
    }
    return place == SEEP_HELD_NO_BLOCK
               ? resolve_rest(search, map, at)
               : seep_held_block_node(search, start, end, place);
}

/* Words before an object: links of the collector hold nothing, its dict or its
 * values do. */
static bool is_weak_head(const struct seep_held_search *search,
                         const struct seep_held_type *type, uint64_t before)
{
    return type->head_bytes == 16 || search->python.minor < 11 ||
           (before != 24 && before != 32);
}

/* Digits of an int are no pointers, nor is what lies behind them in its block,
 * which was a dict's address under PYTHONMALLOC=malloc; of a class made of int
 * one that has a dict has it. */
static bool is_weak_number(struct seep_held_search *search,
                           const struct seep_held_type *type, uint64_t at)
{
    uint64_t value = seep_held_word(search->memory, at);

    return (type->flags & SEEP_HELD_FLAG_HEAP_TYPE) == 0 ||
           seep_held_type_of(&search->python, value)->species !=
               SEEP_HELD_IS_DICT;
}

/* str and bytes themselves: they have characters, which refer to nothing. */
static bool is_text(const struct seep_held_type *type)
{
    return (type->flags & (SEEP_HELD_FLAG_STRING | SEEP_HELD_FLAG_BYTES)) !=
               0 &&
           (type->flags & SEEP_HELD_FLAG_HEAP_TYPE) == 0;
}

/* To 3.10: numbers, and blocks of try and with, up to the first local. */
#define FRAME_BLOCKS_AT 104U

/* Beyond what its type says that it has; of a guess, what lies behind it. */
static bool is_beyond(struct seep_held_python *python,
                      const struct seep_held_node *node,
                      const struct seep_held_type *type, uint64_t offset)
{
    uint64_t bytes;

    if (!node->is_guessed && ((type->flags & SEEP_HELD_FLAG_COLLECTED) == 0 ||
                              (type->flags & SEEP_HELD_FLAG_TYPE) != 0)) {
        return false;
    }
    bytes = seep_held_object_bytes(python, node->address, type);
    bytes = bytes != 0 && bytes < type->basic_bytes ? type->basic_bytes : bytes;
    return bytes != 0 && offset >= bytes &&
           (python->minor < 13 ||
            (type->flags & SEEP_HELD_FLAG_INLINE_VALUES) == 0);
}

bool seep_held_is_weak(struct seep_held_search *search,
                       const struct seep_held_node *node, uint64_t at)
{
    struct seep_held_python *python = &search->python;
    const struct seep_held_type *type;
    struct seep_held_frame frame;
    uint64_t offset = at - node->address;

    if (node->kind != SEEP_HELD_OBJECT) {
        return false;
    }
    type = seep_held_type_at(python, node->type);
    if (at < node->address) {
        return is_weak_head(search, type, node->address - at);
    }
    if (offset < 16) {
        return true;
    }
    if (type->is_weak) {
        return offset == 16 || offset == 32 || offset == 40 || offset == 48 ||
               offset == 56;
    }
    if (is_text(type)) {
        return !seep_held_is_other_text(python, node->address, type, offset);
    }
    if (python->minor <= 10 && type->species == SEEP_HELD_IS_FRAME &&
        offset >= FRAME_BLOCKS_AT && offset + 8 < type->basic_bytes) {
        return true;
    }
    if (seep_held_has_frame(type)) {
        return seep_held_frame_in_object(python, node->address, type, at,
                                         &frame) &&
               !seep_held_frame_is_used(python, &frame, at);
    }
    switch (type->species) {
    case SEEP_HELD_IS_LIST:
        return offset != 24;
    case SEEP_HELD_IS_TUPLE:
        return (offset - python->tuple_items_offset) / 8 >=
               seep_held_word(search->memory, node->address + 16);
    case SEEP_HELD_IS_DICT:
    case SEEP_HELD_IS_FROZENDICT:
        return offset != 32 && offset != 40;
    case SEEP_HELD_IS_CODE:
        /* Its constants; the rest are caches, which borrow. */
        return offset != (python->minor >= 11 ? 24 : 56);
    default:
        break;
    }
    return (type->flags & SEEP_HELD_FLAG_LONG) != 0
               ? is_weak_number(search, type, at)
               : is_beyond(python, node, type, offset);
}

/*
 * Tables of what Python wraps. pybind11 has two: {next, address of a C++
 * object, wrapper}, and {next, wrapper, begin, end, end of room} of what a
 * wrapper keeps alive. All of a process's are below one global, a short way
 * that keeps nothing.
 */

/* Of a wrapper the first word behind its head is the address of what it wraps;
 * nanobind has that in the object itself. */
#define WRAPPED_AT 16U

/* Classes of both have a class of their own. */
static const struct seep_held_type *
wrapper_type(struct seep_held_search *search, uint64_t object)
{
    const struct seep_held_type *type;
    const struct seep_held_type *meta;

    if (object == 0 || object % 8 != 0) {
        return NULL;
    }
    type = seep_held_type_of(&search->python, object);
    if (!type->is_type || (type->flags & SEEP_HELD_FLAG_HEAP_TYPE) == 0) {
        return NULL;
    }
    meta = seep_held_type_of(&search->python, type->address);
    return strstr(meta->name, "pybind11_type") != NULL ||
                   strstr(meta->name, "nb_type") != NULL
               ? type
               : NULL;
}

static bool wraps(struct seep_held_search *search, uint64_t object,
                  uint64_t address)
{
    const struct seep_held_type *type = wrapper_type(search, object);

    return type != NULL && address != 0 &&
           (seep_held_word(search->memory, object + WRAPPED_AT) == address ||
            (address > object && address < object + type->basic_bytes));
}

/* A vector's three words at @at: of objects, and not empty. */
static bool has_objects(struct seep_held_search *search, uint64_t at)
{
    uint64_t begin = seep_held_word(search->memory, at);
    uint64_t end = seep_held_word(search->memory, at + 8);
    uint64_t room = seep_held_word(search->memory, at + 16);

    return begin != 0 && begin < end && end <= room && (end - begin) % 8 == 0 &&
           seep_held_type_of(&search->python,
                             seep_held_word(search->memory, begin))
               ->is_type;
}

bool seep_held_is_entry(struct seep_held_search *search, uint32_t child,
                        uint32_t holder, const struct seep_held_hit *hit)
{
    const struct seep_held_node *below = &search->nodes[child];
    uint64_t before;

    if (!search->has_python || search->nodes[holder].kind != SEEP_HELD_RAW) {
        return false;
    }
    before = seep_held_word(search->memory, hit->at - 8);
    if (below->kind != SEEP_HELD_OBJECT) {
        return wraps(search, seep_held_word(search->memory, hit->at + 8),
                     hit->value) ||
               (wrapper_type(search, before) != NULL &&
                has_objects(search, hit->at));
    }
    return hit->value == below->address &&
           (wraps(search, hit->value, before) ||
            (wrapper_type(search, hit->value) != NULL &&
             has_objects(search, hit->at + 8)));
}

void seep_held_read_class(struct seep_held_search *search,
                          struct seep_held_node *node)
{
    uint64_t vtable;
    char text[512];

    if (node->kind != SEEP_HELD_RAW || node->type_is_read) {
        return;
    }
    node->type_is_read = true;
    vtable = seep_held_word(search->memory, node->start);
    if (seep_held_class_of(&search->images, vtable, text, sizeof(text))) {
        node->type = vtable;
        node->name = seep_held_text(search, text);
    }
}
