/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Symbols of files by libelf; see image.h. */
#include "held/image.h"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sorted.h"
#include "reader/recording/open.h"
#include "reader/symbols/names.h"

#define FILE_BYTES_MOST (UINT64_C(8) << 30)
#define SPENT_BYTES_MOST (UINT64_C(256) << 20)
#define IMAGES_MOST 4096U
#define SECTION_BYTES UINT64_C(320) /* a section in libelf, with its header */
#define SYMBOLS_A_LOOK 65536U       /* at the clock */

static int compare_symbols(const void *one, const void *other)
{
    const struct seep_held_symbol *a = one;
    const struct seep_held_symbol *b = other;

    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static bool kind_of(const GElf_Sym *symbol, enum seep_held_symbol_kind *kind)
{
    if (symbol->st_shndx == SHN_UNDEF) {
        return false;
    }
    switch (GELF_ST_TYPE(symbol->st_info)) {
    case STT_OBJECT:
        *kind = SEEP_HELD_DATA;
        return true;
    case STT_FUNC:
    case STT_GNU_IFUNC:
        *kind = SEEP_HELD_FUNCTION;
        return true;
    case STT_TLS:
        *kind = SEEP_HELD_THREAD_LOCAL;
        return true;
    default:
        return false;
    }
}

/* May it be read, with its names? A list of symbols may be twice as large as
 * they are in the file. */
static bool is_small(struct seep_held_images *images, Elf *elf,
                     const GElf_Shdr *header)
{
    Elf_Scn *names = elf_getscn(elf, header->sh_link);
    GElf_Shdr names_header;
    uint64_t left = SPENT_BYTES_MOST - images->spent_bytes;

    if (names == NULL || gelf_getshdr(names, &names_header) == NULL ||
        (names_header.sh_flags & SHF_COMPRESSED) != 0 ||
        header->sh_size > left / 3 ||
        names_header.sh_size > left - 3 * header->sh_size) {
        return false;
    }
    images->spent_bytes += 3 * header->sh_size + names_header.sh_size;
    return true;
}

/* The names of a table of symbols; NULL if they do not end. elf_strptr() looks
 * for that end anew for each symbol, through all of them. */
static const Elf_Data *names_of(Elf *elf, const GElf_Shdr *header)
{
    const Elf_Data *names = elf_getdata(elf_getscn(elf, header->sh_link), NULL);
    const char *text = names == NULL ? NULL : names->d_buf;

    return text != NULL && names->d_size > 0 && text[names->d_size - 1] == '\0'
               ? names
               : NULL;
}

static void add_symbols(struct seep_held_images *images,
                        struct seep_held_image *image, Elf_Scn *section,
                        const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    const Elf_Data *names = names_of(image->elf, header);
    size_t count = header->sh_entsize == 0
                       ? 0
                       : (size_t)(header->sh_size / header->sh_entsize);

    for (size_t i = 0;
         data != NULL && names != NULL && i < count && i < INT_MAX; i++) {
        enum seep_held_symbol_kind kind;
        struct seep_held_symbol *list;
        GElf_Sym symbol;
        const char *name;
        size_t used;

        if (i % SYMBOLS_A_LOOK == 0 &&
            seep_held_memory_is_late(images->memory)) {
            return;
        }
        if (gelf_getsym(data, (int)i, &symbol) == NULL ||
            !kind_of(&symbol, &kind) || symbol.st_name >= names->d_size) {
            continue;
        }
        name = (const char *)names->d_buf + symbol.st_name;
        used = image->counts[kind];
        list = image->symbols[kind];
        if (*name == '\0') {
            continue;
        }
        if ((used & (used - 1)) == 0) {
            size_t capacity = used < 64 ? 64 : 2 * used;

            list = used < 64 && used != 0
                       ? list
                       : realloc(list, capacity * sizeof(*list));
            if (list == NULL) {
                return;
            }
            image->symbols[kind] = list;
        }
        list[used] =
            (struct seep_held_symbol){symbol.st_value, symbol.st_size, name};
        image->counts[kind]++;
    }
}

static void read_sections(struct seep_held_images *images,
                          struct seep_held_image *image)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(image->elf, section)) != NULL) {
        GElf_Shdr header;

        if (gelf_getshdr(section, &header) != NULL &&
            (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
            (header.sh_flags & SHF_COMPRESSED) == 0 &&
            is_small(images, image->elf, &header)) {
            add_symbols(images, image, section, &header);
        }
    }
    for (int kind = 0; kind < SEEP_HELD_SYMBOL_KINDS; kind++) {
        if (image->counts[kind] > 0) {
            qsort(image->symbols[kind], image->counts[kind],
                  sizeof(**image->symbols), compare_symbols);
        }
    }
}

/* Where the file lies in the process, by its segments and its first mapping. */
static void read_segments(struct seep_held_image *image, uint64_t first)
{
    size_t count = 0;
    uint64_t lowest = UINT64_MAX;
    uint64_t end = 0;

    if (elf_getphdrnum(image->elf, &count) != 0) {
        count = 0;
    }
    for (size_t i = 0; i < count && i < INT_MAX; i++) {
        GElf_Phdr segment;

        if (gelf_getphdr(image->elf, (int)i, &segment) == NULL) {
            continue;
        }
        if (segment.p_type == PT_LOAD) {
            uint64_t stop = segment.p_vaddr + segment.p_memsz;

            lowest = segment.p_vaddr < lowest ? segment.p_vaddr : lowest;
            end = stop > end ? stop : end;
        } else if (segment.p_type == PT_TLS) {
            uint64_t align = segment.p_align > 1 ? segment.p_align : 1;

            image->tls_bytes = (segment.p_memsz + align - 1) / align * align;
        }
    }
    if (end > 0) {
        image->bias = first - (lowest & ~(uint64_t)(SEEP_HELD_PAGE_BYTES - 1));
        image->end = image->bias + end;
    }
}

/* libelf makes room for as many sections and segments as a file says: what says
 * it where only object files of compilers and core files do is not read. */
static bool is_plain(int fd, uint64_t size_bytes, Elf64_Ehdr *ret_header)
{
    Elf64_Ehdr header;

    if (size_bytes > FILE_BYTES_MOST ||
        pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phnum == PN_XNUM ||
        (header.e_shnum == 0 && header.e_shoff != 0)) {
        return false;
    }
    *ret_header = header;
    return true;
}

/* NULL: it is none, or would take more than is left. */
static Elf *open_elf(struct seep_held_images *images, int fd,
                     uint64_t size_bytes)
{
    Elf64_Ehdr header;
    uint64_t bytes;

    if (!is_plain(fd, size_bytes, &header)) {
        return NULL;
    }
    bytes = header.e_shnum * SECTION_BYTES +
            header.e_phnum * (uint64_t)sizeof(Elf64_Phdr);
    if (bytes > SPENT_BYTES_MOST - images->spent_bytes) {
        return NULL;
    }
    images->spent_bytes += bytes;
    return elf_begin(fd, ELF_C_READ, NULL);
}

/* The headers of the file at .path. @return false: it is none */
static bool open_headers(struct seep_held_images *images,
                         struct seep_held_image *image)
{
    char path[PATH_MAX];
    struct stat status;
    uint64_t first = 0;

    for (size_t i = 0; i < images->memory->map_count && first == 0; i++) {
        if (strcmp(images->memory->maps[i].path, image->path) == 0) {
            first = images->memory->maps[i].start;
        }
    }
    seep_held_path(images->memory, image->path, path, sizeof(path));
    image->fd = seep_open_regular(path, 0, &status);
    elf_version(EV_CURRENT);
    if (image->fd >= 0 &&
        (images->memory->core == NULL ||
         seep_held_core_agrees(images->memory, image->path, image->fd))) {
        image->elf = open_elf(images, image->fd, (uint64_t)status.st_size);
    }
    if (image->elf == NULL || elf_kind(image->elf) != ELF_K_ELF) {
        return false;
    }
    read_segments(image, first);
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
    image->fd = -1;
    if (image->path == NULL) {
        return NULL;
    }
    images->count++;
    image->is_open = open_headers(images, image);
    return image;
}

const struct seep_held_image *
seep_held_image_of(struct seep_held_images *images, const char *path)
{
    struct seep_held_image *image = find_image(images, path);

    if (image != NULL && image->is_open && !image->has_symbols) {
        image->has_symbols = true;
        read_sections(images, image);
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

const struct seep_held_symbol *
seep_held_symbol_find(const struct seep_held_image *image,
                      enum seep_held_symbol_kind kind, uint64_t address)
{
    const struct seep_held_symbol *symbols = image->symbols[kind];
    size_t low =
        SEEP_SORTED_UP_TO(symbols, image->counts[kind], address, address);

    for (size_t back = 0; back < 4 && low > back; back++) {
        const struct seep_held_symbol *symbol = &symbols[low - 1 - back];
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
    for (size_t i = 0; i < image->counts[SEEP_HELD_DATA]; i++) {
        const struct seep_held_symbol *symbol =
            &image->symbols[SEEP_HELD_DATA][i];

        if (strcmp(symbol->name, name) == 0) {
            return symbol->address + image->bias;
        }
    }
    return 0;
}

void seep_held_demangle(const char *name, char *text, size_t capacity)
{
    if (!seep_demangle(name, text, capacity)) {
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
        !seep_demangle(name, text, capacity)) {
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

        for (int kind = 0; kind < SEEP_HELD_SYMBOL_KINDS; kind++) {
            free(image->symbols[kind]);
        }
        elf_end(image->elf);
        if (image->fd >= 0) {
            close(image->fd);
        }
        free((void *)(uintptr_t)image->path);
    }
    free(images->images);
    *images = (struct seep_held_images){0};
}
