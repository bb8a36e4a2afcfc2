/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Source lines and inlined calls of a module, from its DWARF.
 *
 * Start from an all-zero struct. Units, functions and inlined calls are
 * indexed when an address first falls into them. Strings belong to the
 * module's file.
 */
#ifndef SEEP_READER_SYMBOLISE_DWARF_H
#define SEEP_READER_SYMBOLISE_DWARF_H

#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdwfl.h>

#include "reader/symbolise_index.h"

/** Deeper chains of inlined calls lose their outer ones, never the last. */
#define SEEP_SYMBOLISE_PLACES_MAX 64

struct seep_symbolise_unit;

struct seep_symbolise_dwarf {
    Dwarf *dwarf; /* NULL: none */
    Dwarf_Addr bias;
    struct seep_symbolise_unit *units;
    size_t unit_count;
    struct seep_symbolise_index ranges; /* value: a unit's number */
    uint64_t steps_left; /* entries that walks may still look at */
};

/** One source-level frame; NULL or 0 where not known. */
struct seep_symbolise_place {
    const char *symbol; /* mangled */
    const char *name;   /* as in the source, without its class */
    const char *folder; /* what a relative file is relative to */
    const char *file;
    uint32_t line;
};

int seep_symbolise_dwarf_init(Dwfl_Module *module,
                              struct seep_symbolise_dwarf *ret_dwarf);

/**
 * The places of @address, innermost first: at most SEEP_SYMBOLISE_PLACES_MAX
 * go into @ret_places.
 *
 * @return 0, with @ret_count 0 if DWARF knows nothing; -ENOMEM
 */
int seep_symbolise_dwarf_find(struct seep_symbolise_dwarf *dwarf,
                              uint64_t address,
                              struct seep_symbolise_place *ret_places,
                              size_t *ret_count);

void seep_symbolise_dwarf_fini(struct seep_symbolise_dwarf *dwarf);

#endif
