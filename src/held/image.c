/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which files are mapped, and what was answered of them; see image.h.
 *
 * Invariant: all that is read of files is bounded, and takes of the time that
 * the question has.
 */
#include "held/image.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sorted.h"
#include "reader/recording/open.h"

#define SPENT_BYTES_MOST (UINT64_C(256) << 20)
#define IMAGES_MOST 4096U
#define NAME_BYTES_MOST 4096U

/* What may be asked now. */
static struct seep_wall_request request_for(struct seep_held_images *images,
                                            const char *path)
{
    double left_s = seep_held_memory_left_s(images->memory);

    if (images->wall.read == NULL) {
        images->wall = seep_symbol_tables_wall();
        images->wall.is_absent = images->without_wall;
    }
    return (struct seep_wall_request){
        .path = path,
        .most_bytes = SPENT_BYTES_MOST - images->spent_bytes,
        .most_ns = (uint64_t)(left_s * 1e9),
    };
}

/* The child's time is this process's too. */
static void count_spent(struct seep_held_images *images,
                        const struct seep_wall_spent *spent, uint64_t before_ns)
{
    seep_held_memory_spend(images->memory,
                           (double)(spent->cpu_ns - before_ns) / 1e9);
}

/* What the wall could not answer of a file is told; not what the file lacks. */
static void note_failure(struct seep_held_images *images, const char *path,
                         int error)
{
    struct seep_held_memory *memory = images->memory;

    if ((error == -ECHILD || error == -ETIMEDOUT || error == -ENOMEM ||
         error == -EFBIG || error == -EBADMSG || error == -EAGAIN) &&
        memory->nameless_path == NULL && !seep_held_memory_is_late(memory)) {
        memory->nameless_path = strdup(path);
        memory->nameless_error = error;
    }
}

static void read_symbols(struct seep_held_images *images,
                         struct seep_held_image *image)
{
    char path[PATH_MAX];
    struct seep_wall_request request;
    uint64_t before_ns = image->spent.cpu_ns;
    int result;

    seep_held_path(images->memory, image->path, path, sizeof(path));
    request = request_for(images, path);
    result = seep_symbol_table_ask(&images->wall, &request, &image->spent,
                                   &image->symbols);
    images->spent_bytes += result == 0 ? image->symbols.byte_count : 0;
    count_spent(images, &image->spent, before_ns);
    note_failure(images, image->path, result);
}

/* Is it still the file that the core file is of? */
static bool is_of_core(const struct seep_held_images *images,
                       const struct seep_held_image *image, const char *path)
{
    struct stat status;
    bool agrees;
    int fd;

    if (images->memory->core == NULL) {
        return true;
    }
    fd = seep_open_regular(path, 0, &status);
    agrees = fd >= 0 && seep_held_core_agrees(images->memory, image->path, fd);
    if (fd >= 0) {
        close(fd);
    }
    return agrees;
}

/* Where the file lies in the process, by its segments and its first mapping.
 * @return false: it is none */
static bool open_image(struct seep_held_images *images,
                       struct seep_held_image *image)
{
    char path[PATH_MAX];
    struct seep_wall_request request;
    struct seep_symbol_segments segments;
    uint64_t first = 0;
    int result;

    for (size_t i = 0; i < images->memory->map_count && first == 0; i++) {
        if (strcmp(images->memory->maps[i].path, image->path) == 0) {
            first = images->memory->maps[i].start;
        }
    }
    seep_held_path(images->memory, image->path, path, sizeof(path));
    request = request_for(images, path);
    if (!is_of_core(images, image, path)) {
        return false;
    }
    result = seep_symbol_segments_ask(&images->wall, &request, &image->spent,
                                      &segments);
    count_spent(images, &image->spent, 0);
    note_failure(images, image->path, result);
    if (result != 0) {
        return false;
    }
    image->tls_bytes = segments.tls_bytes;
    if (segments.end > 0) {
        image->bias = first - (segments.lowest & ~(SEEP_HELD_PAGE_BYTES - 1));
        image->end = image->bias + segments.end;
    }
    return true;
}

/* With its headers alone if it is new. NULL: no memory, or no time for one
 * more.
 */
static struct seep_held_image *find_image(struct seep_held_images *images,
                                          const char *path)
{
    struct seep_held_image *image;

    for (size_t i = 0; i < images->count; i++) {
        if (strcmp(images->images[i].path, path) == 0) {
            return &images->images[i];
        }
    }
    if (images->images == NULL) {
        images->images = calloc(IMAGES_MOST, sizeof(*images->images));
    }
    if (images->images == NULL || images->count == IMAGES_MOST ||
        seep_held_memory_is_late(images->memory)) {
        return NULL;
    }
    image = &images->images[images->count];
    image->path = strdup(path);
    if (image->path == NULL) {
        return NULL;
    }
    images->count++;
    image->is_open = open_image(images, image);
    return image;
}

const struct seep_held_image *
seep_held_image_of(struct seep_held_images *images, const char *path)
{
    struct seep_held_image *image = find_image(images, path);

    if (image != NULL && image->is_open && !image->has_symbols) {
        image->has_symbols = true;
        read_symbols(images, image);
    }
    return image;
}

bool seep_held_image_bias(struct seep_held_images *images, const char *path,
                          uint64_t *ret_bias)
{
    const struct seep_held_image *image = find_image(images, path);

    if (image == NULL || !image->is_open) {
        return false;
    }
    *ret_bias = image->bias;
    return true;
}

const struct seep_held_image *
seep_held_image_at(struct seep_held_images *images, uint64_t address)
{
    const struct seep_held_memory *memory = images->memory;
    const struct seep_held_map *map = seep_held_map_at(memory, address);
    const struct seep_held_image *image;

    if (map == NULL || !map->is_writable) {
        return NULL;
    }
    if (*map->path == '/') {
        return seep_held_image_of(images, map->path);
    }
    /* What has no name behind a library's data is its .bss, as far as that
     * goes. */
    if (*map->path != '\0' || map == memory->maps || map[-1].path[0] != '/' ||
        map[-1].end != map->start) {
        return NULL;
    }
    image = seep_held_image_of(images, map[-1].path);
    return image != NULL && address < image->end ? image : NULL;
}

const struct seep_symbol_entry *
seep_held_symbol_find(const struct seep_held_image *image,
                      enum seep_symbol_kind kind, uint64_t address)
{
    const struct seep_symbol_entry *symbols = image->symbols.entries[kind];
    size_t low = SEEP_SORTED_UP_TO(symbols, image->symbols.counts[kind],
                                   address, address);

    for (size_t back = 0; back < 4 && low > back; back++) {
        const struct seep_symbol_entry *symbol = &symbols[low - 1 - back];
        uint64_t bytes = symbol->bytes > 0 ? symbol->bytes : 1;

        if (address - symbol->address < bytes) {
            return symbol;
        }
    }
    return NULL;
}

uint64_t seep_held_symbol_address(const struct seep_held_image *image,
                                  const char *name)
{
    for (size_t i = 0; i < image->symbols.counts[SEEP_SYMBOL_DATA]; i++) {
        const struct seep_symbol_entry *symbol =
            &image->symbols.entries[SEEP_SYMBOL_DATA][i];

        if (strcmp(seep_held_symbol_name(image, symbol), name) == 0) {
            return symbol->address + image->bias;
        }
    }
    return 0;
}

/* What the wall says that @name is; "": nobody can tell. Each has a deadline of
 * its own: all together have the question's. */
static const char *ask_name(struct seep_held_images *images, const char *name)
{
    char text[NAME_BYTES_MOST];
    struct seep_wall_request request = request_for(images, name);
    struct seep_wall_spent spent = {0};
    int result = seep_symbol_name_ask(&images->wall, &request, &spent, text,
                                      sizeof(text));

    count_spent(images, &spent, 0);
    return result == 0 ? seep_store_text(&images->store, text) : "";
}

/* Into @text. Each name is asked for once: many objects are of one class.
 * @return false: it is no mangled name, or nobody can tell */
static bool demangle(struct seep_held_images *images, const char *name,
                     char *text, size_t capacity)
{
    struct seep_store_entry *entry;

    if (strncmp(name, "_Z", 2) != 0 && strncmp(name, "_R", 2) != 0) {
        return false;
    }
    entry = seep_store_find(&images->store, &images->names, name, strlen(name));
    if (entry == NULL) {
        return false;
    }
    if (entry->value == NULL) {
        entry->value = ask_name(images, name);
    }
    if (entry->value == NULL || *(const char *)entry->value == '\0') {
        return false;
    }
    snprintf(text, capacity, "%s", (const char *)entry->value);
    return true;
}

void seep_held_demangle(struct seep_held_images *images, const char *name,
                        char *text, size_t capacity)
{
    if (!demangle(images, name, text, capacity)) {
        snprintf(text, capacity, "%s", name);
    }
}

/* Itanium C++ ABI 2.9.5: before where a table's first entry stands is the
 * class's type information; its second word is the name. */
bool seep_held_class_symbol_of(struct seep_held_images *images, uint64_t vtable,
                               char text[SEEP_HELD_CLASS_BYTES])
{
    struct seep_held_memory *memory = images->memory;
    const struct seep_held_map *map;
    uint64_t information;

    if (vtable % 8 != 0 || vtable < SEEP_HELD_PAGE_BYTES) {
        return false;
    }
    map = seep_held_map_at(memory, vtable);
    if (map == NULL || *map->path != '/') {
        return false;
    }
    information = seep_held_word(memory, vtable - 8);
    map = seep_held_map_at(memory, information);
    if (map == NULL || *map->path != '/' ||
        !seep_held_string(memory, seep_held_word(memory, information + 8), text,
                          SEEP_HELD_CLASS_BYTES)) {
        return false;
    }
    if (*text == '*') {
        memmove(text, text + 1, strlen(text));
    }
    return *text != '\0' && strchr("NS0123456789", *text) != NULL;
}

bool seep_held_class_of(struct seep_held_images *images, uint64_t vtable,
                        char *text, size_t capacity)
{
    char name[4 + SEEP_HELD_CLASS_BYTES] = "_ZTS";
    static const char words[] = "typeinfo name for ";

    if (!seep_held_class_symbol_of(images, vtable, name + 4) ||
        !demangle(images, name, text, capacity)) {
        return false;
    }
    if (strncmp(text, words, sizeof(words) - 1) == 0) {
        memmove(text, text + sizeof(words) - 1,
                strlen(text + sizeof(words) - 1) + 1);
    }
    return true;
}

void seep_held_images_fini(struct seep_held_images *images)
{
    for (size_t i = 0; i < images->count; i++) {
        struct seep_held_image *image = &images->images[i];

        seep_symbol_table_fini(&image->symbols);
        free((void *)(uintptr_t)image->path);
    }
    seep_wall_fini(&images->wall);
    seep_store_table_fini(&images->names);
    seep_store_fini(&images->store);
    free(images->images);
    *images = (struct seep_held_images){0};
}
