/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The programs and libraries of a process: names of globals, of thread-locals,
 * of functions, and of C++ classes by their type information.
 *
 * A file is opened when something in it is first met. Names are from .symtab
 * and .dynsym; a file that is damaged or replaced has none.
 *
 * They are hostile: they are read behind the wall
 * (reader/symbols/tables.h), and what would take too much has no names.
 *
 * Errors: false or NULL, which cost a name and nothing else.
 * Threads: one at a time.
 */
#ifndef SEEP_HELD_IMAGE_H
#define SEEP_HELD_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "held/memory.h"
#include "reader/recording/store.h"
#include "reader/symbols/tables.h"

struct seep_held_image {
    const char *path;
    uint64_t bias;      /* address in the process less that in the file */
    uint64_t end;       /* in the process: of its .bss */
    uint64_t tls_bytes; /* of its segment, rounded up to its alignment */
    struct seep_symbol_table symbols;
    struct seep_wall_spent spent;
    bool is_open;     /* it is a file of ELF */
    bool has_symbols; /* they were read, if there are any */
};

struct seep_held_images {
    struct seep_held_memory *memory;
    struct seep_held_image *images;
    size_t count;
    uint64_t spent_bytes; /* of symbols and their names, of all */
    bool without_wall;    /* as the question has it */
    struct seep_wall wall;
    struct seep_store store;       /* of names that were asked for, */
    struct seep_store_table names; /* and what they are; "": nobody can tell */
};

/** The image that is mapped as @path; it is opened if it was not. NULL only
 * without memory. */
const struct seep_held_image *
seep_held_image_of(struct seep_held_images *images, const char *path);

/** The image whose data or .bss @address lies in; NULL: none. */
const struct seep_held_image *
seep_held_image_at(struct seep_held_images *images, uint64_t address);

/** The symbol that holds the file's @address; NULL: none. */
const struct seep_symbol_entry *
seep_held_symbol_find(const struct seep_held_image *image,
                      enum seep_symbol_kind kind, uint64_t address);

static inline const char *
seep_held_symbol_name(const struct seep_held_image *image,
                      const struct seep_symbol_entry *symbol)
{
    return image->symbols.texts + symbol->name;
}

/** Where the data symbol @name is in the process; 0: nowhere. */
uint64_t seep_held_symbol_address(const struct seep_held_image *image,
                                  const char *name);

/** The class of a C++ object by the word it begins with. */
bool seep_held_class_of(struct seep_held_images *images, uint64_t vtable,
                        char *text, size_t capacity);

#define SEEP_HELD_CLASS_BYTES 252U

/** The same as its type information has it: "N2ns5CacheE". */
bool seep_held_class_symbol_of(struct seep_held_images *images, uint64_t vtable,
                               char text[SEEP_HELD_CLASS_BYTES]);

/** Where the file that is mapped as @path lies: address in the process less
 * that in the file. Its symbols are not read for it. */
bool seep_held_image_bias(struct seep_held_images *images, const char *path,
                          uint64_t *ret_bias);

/** Demangled into @text, or as it is. */
void seep_held_demangle(struct seep_held_images *images, const char *name,
                        char *text, size_t capacity);

void seep_held_images_fini(struct seep_held_images *images);

#endif
