/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * All symbols of a file, where its segments are, and names as their authors
 * wrote them: for who asks a process, which needs what holds an address, and
 * not the lines of code.
 *
 * libelf and the demangler run behind the wall. What they answer is checked.
 *
 * Errors: 0 or negative errno, as of the wall; ret_* untouched on failure.
 * Threads: one at a time.
 */
#ifndef SEEP_READER_SYMBOLS_TABLES_H
#define SEEP_READER_SYMBOLS_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "reader/symbols/wall.h"

enum seep_symbol_kind {
    SEEP_SYMBOL_DATA,
    SEEP_SYMBOL_FUNCTION,
    SEEP_SYMBOL_THREAD_LOCAL, /* its address is an offset in the segment */
    SEEP_SYMBOL_KINDS
};

struct seep_symbol_entry {
    uint64_t address; /* in the file */
    uint64_t bytes;
    uint64_t name; /* mangled; a place in .texts */
};

/** Of .symtab and .dynsym, each kind by ascending address. */
struct seep_symbol_table {
    void *bytes; /* in which all the rest is */
    uint64_t byte_count;
    const struct seep_symbol_entry *entries[SEEP_SYMBOL_KINDS];
    size_t counts[SEEP_SYMBOL_KINDS];
    const char *texts;
};

struct seep_symbol_segments {
    uint64_t lowest;    /* address that is loaded */
    uint64_t end;       /* 0: nothing is loaded */
    uint64_t tls_bytes; /* rounded up to their alignment */
};

/** A wall that answers what is below; give it to seep_wall_fini(). */
struct seep_wall seep_symbol_tables_wall(void);

/** @param request  its .what is not looked at
 * @param ret_table  give it to seep_symbol_table_fini() */
int seep_symbol_table_ask(struct seep_wall *wall,
                          const struct seep_wall_request *request,
                          struct seep_wall_spent *spent,
                          struct seep_symbol_table *ret_table);

void seep_symbol_table_fini(struct seep_symbol_table *table);

/** @return also -ENOEXEC: the file is none of ELF */
int seep_symbol_segments_ask(struct seep_wall *wall,
                             const struct seep_wall_request *request,
                             struct seep_wall_spent *spent,
                             struct seep_symbol_segments *ret_segments);

/** Demangle .path of @request into @ret_text, cut to its @capacity.
 * @return also -ENOENT: it is no mangled name */
int seep_symbol_name_ask(struct seep_wall *wall,
                         const struct seep_wall_request *request,
                         struct seep_wall_spent *spent, char *ret_text,
                         size_t capacity);

#endif
