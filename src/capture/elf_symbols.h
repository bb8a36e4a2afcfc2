/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Names in the dynamic symbol table of a loaded object, without the loader.
 *
 * Invariant: nothing outside the readable segments of the image is read. A
 * damaged table is answered as "not there".
 */
#ifndef SEEP_CAPTURE_ELF_SYMBOLS_H
#define SEEP_CAPTURE_ELF_SYMBOLS_H

#include "capture/elf_image.h"

/** The tables of one object; zero them to say that there are none. */
struct seep_elf_symbols {
    const struct seep_elf_image *image;
    uintptr_t symbols;
    uintptr_t strings;
    size_t strings_bytes;
    uintptr_t gnu_hash; /* 0: none */
    uintptr_t hash;     /* 0: none */
};

/** Find the tables of @image, which must outlive them. */
bool seep_elf_symbols_open(const struct seep_elf_image *image,
                           struct seep_elf_symbols *ret_symbols);

/**
 * A function or an object that the image itself defines.
 *
 * @return false, and ret_* untouched, if it defines no such name
 */
bool seep_elf_symbols_find(const struct seep_elf_symbols *symbols,
                           const char *name, uintptr_t *ret_address,
                           size_t *ret_bytes);

#endif
