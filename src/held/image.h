/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The programs and libraries of a process: names of globals, of thread-locals,
 * of functions, and of C++ classes by their type information.
 *
 * A file is opened when something in it is first met. Names are from .symtab
 * and .dynsym; a file that is damaged or replaced has none.
 *
 * They are hostile: what would take too much has no names. libelf reads them in
 * the process of who asks, not behind the wall (docs/decisions/0039).
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

enum seep_held_symbol_kind {
    SEEP_HELD_DATA,
    SEEP_HELD_FUNCTION,
    SEEP_HELD_THREAD_LOCAL, /* its address is an offset in the segment */
    SEEP_HELD_SYMBOL_KINDS
};

struct seep_held_symbol {
    uint64_t address; /* in the file */
    uint64_t bytes;
    const char *name; /* mangled */
};

struct seep_held_image {
    const char *path;
    uint64_t bias;      /* address in the process less that in the file */
    uint64_t end;       /* in the process: of its .bss */
    uint64_t tls_bytes; /* of its segment, rounded up to its alignment */
    struct seep_held_symbol *symbols[SEEP_HELD_SYMBOL_KINDS]; /* by address */
    size_t counts[SEEP_HELD_SYMBOL_KINDS];
    struct Elf *elf;
    int fd;
    bool is_open;     /* it is a file of ELF */
    bool has_symbols; /* they were read, if there are any */
};

struct seep_held_images {
    struct seep_held_memory *memory;
    struct seep_held_image *images;
    size_t count;
    uint64_t spent_bytes; /* of headers, symbols and their names, of all */
};

/** The image that is mapped as @path; it is opened if it was not. NULL only
 * without memory. */
const struct seep_held_image *
seep_held_image_of(struct seep_held_images *images, const char *path);

/** The image whose data or .bss @address lies in; NULL: none. */
const struct seep_held_image *
seep_held_image_at(struct seep_held_images *images, uint64_t address);

/** The symbol that holds the file's @address; NULL: none. */
const struct seep_held_symbol *
seep_held_symbol_find(const struct seep_held_image *image,
                      enum seep_held_symbol_kind kind, uint64_t address);

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
void seep_held_demangle(const char *name, char *text, size_t capacity);

void seep_held_images_fini(struct seep_held_images *images);

#endif
