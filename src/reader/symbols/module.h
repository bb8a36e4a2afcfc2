/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A module's file and its separate debug file, found, checked and opened.
 *
 * Addresses are those of the file itself: it is reported to libdwfl alone and
 * at bias 0, whatever else was loaded in the process.
 */
#ifndef SEEP_READER_SYMBOLS_MODULE_H
#define SEEP_READER_SYMBOLS_MODULE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/symbols/symbolise.h"

struct seep_symbolise_file {
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwfl_Callbacks callbacks;
    const char *sysroot;      /* "" if none; borrowed */
    const char *path;         /* without it; borrowed */
    const char *debug_folder; /* NULL: none; borrowed */
    bool use_debuginfod;
    int debug_error; /* -EFBIG: of a debug file that was left out for it */
};

/** Zero @ret_file first. Strings given must live as long as the file. */
int seep_symbolise_file_init(const struct seep_symbol_module *module,
                             const struct seep_symboliser_options *options,
                             struct seep_symbolise_file *ret_file);

void seep_symbolise_file_fini(struct seep_symbolise_file *file);

/*
 * From an address to the best of the ranges that hold it, in O(log n).
 *
 * Ranges may nest and overlap in any way: adding is unordered, sealing cuts
 * them into segments that do not overlap, each with the range that wins there.
 * Start from an all-zero struct.
 */

struct seep_symbolise_range {
    uint64_t start;
    uint64_t end;   /* not included */
    uint64_t value; /* the user's */
    uint32_t class; /* the lowest wins, then the highest start */
    uint32_t tie;   /* then the lowest of these, then the lowest value */
};

struct seep_symbolise_segment {
    uint64_t start;
    uint64_t end;
    size_t range; /* which one wins here */
};

struct seep_symbolise_index {
    struct seep_symbolise_range *ranges; /* sealed: by ascending start */
    size_t range_count;
    struct seep_symbolise_segment *segments;
    size_t segment_count;
};

/** An empty range is left out. @return 0 or -ENOMEM */
int seep_symbolise_index_add(struct seep_symbolise_index *index,
                             const struct seep_symbolise_range *range);

/** Sort the ranges only. */
void seep_symbolise_index_sort(struct seep_symbolise_index *index);

/** After the last add, before the first find. @return 0 or -ENOMEM */
int seep_symbolise_index_seal(struct seep_symbolise_index *index);

/** The range that wins at @address; NULL if none holds it. */
const struct seep_symbolise_range *
seep_symbolise_index_find(const struct seep_symbolise_index *index,
                          uint64_t address);

void seep_symbolise_index_fini(struct seep_symbolise_index *index);

/*
 * The symbol tables of a module: .symtab of the file or of its debug file,
 * .dynsym, and the compressed table that Fedora calls minidebuginfo.
 *
 * Start from an all-zero struct. Names belong to the module's file.
 */

struct seep_symbolise_elf {
    struct seep_symbolise_index symbols;  /* value: its name's address */
    struct seep_symbolise_index sections; /* what holds code */
};

int seep_symbolise_elf_init(Dwfl_Module *module,
                            struct seep_symbolise_elf *ret_elf);

/** The symbol that holds @address; NULL if none does: the nearest one below
 * would be another function's. */
const char *seep_symbolise_elf_find(const struct seep_symbolise_elf *elf,
                                    uint64_t address);

void seep_symbolise_elf_fini(struct seep_symbolise_elf *elf);

/*
 * Source lines and inlined calls of a module, from its DWARF.
 *
 * Start from an all-zero struct. Units, functions and inlined calls are
 * indexed when an address first falls into them. Strings belong to the
 * module's file.
 */

/** Deeper chains of inlined calls lose their outer ones, never the last. */
#define SEEP_SYMBOLISE_PLACES_MAX 64

/** Of the module its units, of a unit its functions, of a function the inlined
 * calls in it. */
struct seep_symbolise_scope {
    Dwarf_Off entry;
    size_t parent; /* of a call, the one around it */
    bool is_indexed;
    struct seep_symbolise_scope *items;
    size_t item_count;
    struct seep_symbolise_index ranges; /* value: an item's number */
};

struct seep_symbolise_dwarf {
    Dwarf *dwarf; /* NULL: none */
    Dwarf_Addr bias;
    struct seep_symbolise_scope module;
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

/** The unit whose code @address is. @return false: none is known */
bool seep_symbolise_dwarf_unit(const struct seep_symbolise_dwarf *dwarf,
                               uint64_t address, Dwarf_Off *ret_entry);

void seep_symbolise_dwarf_fini(struct seep_symbolise_dwarf *dwarf);

/** @entry becomes the one behind it. @return false: there is none in the same
 * unit, whatever DWARF says */
bool seep_symbolise_next(Dwarf_Die *entry);

#endif
