/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which member of a class or a variable a word is, from DWARF.
 *
 * Start from an all-zero struct. All classes and variables of a module are
 * indexed when one is first asked for; those in functions only where no other
 * variable has the address.
 */
#ifndef SEEP_READER_SYMBOLS_MEMBERS_H
#define SEEP_READER_SYMBOLS_MEMBERS_H

#include <dwarf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/symbols/module.h"

/** A class or a variable, by a hash of what it is found by. */
struct seep_symbolise_entry {
    uint64_t key;
    Dwarf_Die die;
};

/** Where in memory entries lie, both included. */
struct seep_symbolise_extent {
    uint64_t start;
    uint64_t last;
};

struct seep_symbolise_members {
    struct seep_symbolise_entry *entries;
    size_t entry_count;
    struct seep_symbolise_extent *library; /* entries of namespace std */
    size_t library_count;
    bool is_indexed;
    bool is_cut;        /* there is more than it has */
    bool has_functions; /* those in functions are in it, too */
    uint64_t steps_left;
};

/** What is known of one hop. */
struct seep_symbolise_member {
    char path[256]; /* "" if it is not known */
    char type[128]; /* of what it was found in; "" if that is not known */
};

/**
 * @param ret_members  one for each hop
 * @return 0; -ENOMEM
 */
int seep_symbolise_members_find(struct seep_symbolise_members *members,
                                const struct seep_symbolise_dwarf *dwarf,
                                const struct seep_symbol_thing *thing,
                                struct seep_symbolise_member *ret_members);

void seep_symbolise_members_fini(struct seep_symbolise_members *members);

/*
 * classes.c: the index, for members.c.
 */

/** Entries that are looked at for an answer, at most. */
#define SEEP_SYMBOLISE_STEPS_MOST (UINT64_C(1) << 20)
/** Classes of one name, or variables of one address, that are looked at. */
#define SEEP_SYMBOLISE_FOUND_MOST 8U

/** Types around one another. */
#define SEEP_SYMBOLISE_TYPES_MOST 32U

/** Through names of types, const and volatile, and to a unit of its own.
 * @return false: it is void, or has no end */
bool seep_symbolise_peel(Dwarf_Die *type);

/** @return 0; -ENOMEM */
int seep_symbolise_index_all(struct seep_symbolise_members *members,
                             const struct seep_symbolise_dwarf *dwarf);

/** Those that @symbol may be, by its name, or if it is there the one that is
 * of @unit, which may be NULL. @return how many */
size_t
seep_symbolise_find_classes(struct seep_symbolise_members *members,
                            const char *symbol, const Dwarf_Off *unit,
                            Dwarf_Die ret_found[SEEP_SYMBOLISE_FOUND_MOST],
                            bool *ret_is_sure);

/** Those that lie there: what the linker dropped may be said to. @return 0;
 * -ENOMEM */
int seep_symbolise_find_variables(
    struct seep_symbolise_members *members,
    const struct seep_symbolise_dwarf *dwarf, uint64_t address,
    bool is_thread_local, Dwarf_Die ret_found[SEEP_SYMBOLISE_FOUND_MOST],
    size_t *ret_count);

/** Is it the standard library's? */
bool seep_symbolise_is_in_library(const struct seep_symbolise_members *members,
                                  Dwarf_Die *type);

/** @return false: too many entries were looked at */
static inline bool seep_symbolise_step(struct seep_symbolise_members *members)
{
    return members->steps_left > 0 && members->steps_left-- > 0;
}

static inline bool seep_symbolise_is_class(int tag)
{
    return tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
           tag == DW_TAG_union_type;
}

/** Of the entry itself, or of what it completes; "" if it has none. */
static inline const char *seep_symbolise_name(Dwarf_Die *entry)
{
    Dwarf_Attribute attribute;
    const char *name =
        dwarf_formstring(dwarf_attr_integrate(entry, DW_AT_name, &attribute));

    return name != NULL ? name : "";
}

/** Another entry that @entry names. */
static inline bool seep_symbolise_follow(Dwarf_Die *entry, unsigned name,
                                         Dwarf_Die *ret_entry)
{
    Dwarf_Attribute attribute;

    return dwarf_formref_die(dwarf_attr(entry, name, &attribute), ret_entry) !=
           NULL;
}

#endif
