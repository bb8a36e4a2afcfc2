/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The symbol tables of a module: .symtab of the file or of its debug file,
 * .dynsym, and the compressed table that Fedora calls minidebuginfo.
 *
 * Start from an all-zero struct. Names belong to the module's file.
 */
#ifndef SEEP_READER_SYMBOLISE_ELF_H
#define SEEP_READER_SYMBOLISE_ELF_H

#include <stdint.h>

#include <elfutils/libdwfl.h>

#include "reader/symbolise_index.h"

struct seep_symbolise_elf {
    struct seep_symbolise_index symbols;  /* value: its name's address */
    struct seep_symbolise_index sections; /* what holds code */
};

int seep_symbolise_elf_init(Dwfl_Module *module,
                            struct seep_symbolise_elf *ret_elf);

/**
 * The symbol of @address; NULL if there is none.
 *
 * @param ret_distance_bytes  0 if the symbol holds the address; else it only
 *                            is the nearest one below, so far away
 */
const char *seep_symbolise_elf_find(const struct seep_symbolise_elf *elf,
                                    uint64_t address,
                                    uint64_t *ret_distance_bytes);

void seep_symbolise_elf_fini(struct seep_symbolise_elf *elf);

#endif
