/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From (module, offset) to functions, files and lines.
 *
 * Behind a wall, in a child (symbols/wall.h). By libdw: symbol tables, DWARF
 * lines and inlined calls, separate debug files by build-id and debug link,
 * debuginfod when the user has configured it (DEBUGINFOD_URLS). C++ and Rust
 * names are demangled. Code of no module is looked up in the JIT's perf map
 * (/tmp/perf-PID.map) if there is one.
 *
 * A module's file is used only when its build-id is the recorded one: the
 * file at that path may have been replaced since. Paths come from a recording
 * and are hostile: only regular files are opened, read-only and without
 * blocking, and what is wrong with one costs its names, nothing else.
 *
 * Errors: 0 or negative errno; ret_* untouched on failure.
 * Ownership: frames and strings belong to the symboliser and live as long.
 * Threads: one at a time.
 */
#ifndef SEEP_READER_SYMBOLS_SYMBOLISE_H
#define SEEP_READER_SYMBOLS_SYMBOLISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct seep_symboliser;
struct seep_symbol_memory;
struct seep_symbol_pack;

/** A module as the recording names it. What it points to must live until the
 * symboliser is settled, as the sysroot. */
struct seep_symbol_module {
    const char *path;
    const uint8_t *build_id;
    size_t build_id_bytes; /* 0: none was recorded */
};

/** One source-level frame. Strings are "" or 0 where not known. */
struct seep_symbol_frame {
    const char *function; /* demangled; "" if there is no symbol */
    const char *file;     /* as DWARF has it, made absolute by its directory */
    uint32_t line;
    bool inlined; /* into the next frame of the same answer */
};

struct seep_symboliser_options {
    const char *sysroot;      /* before every path; NULL: none */
    const char *debug_folder; /* looked into for debug files first, by id and
                                 by name, as GDB does; NULL: none */
    const char *perf_map;     /* the JIT's map; NULL: none */
    bool use_debuginfod;      /* ask servers (slow); else only local files */
    bool without_wall; /* for tests that try many files: in this process */
    struct seep_symbol_memory *memory; /* of earlier answers; NULL: none */
    struct seep_symbol_pack *pack;     /* names that were packed, and no others;
                                          must live until it is settled; NULL:
                                          files are asked */
};

int seep_symboliser_open(const struct seep_symbol_module *modules,
                         size_t module_count,
                         const struct seep_symboliser_options *options,
                         struct seep_symboliser **ret_symboliser);

/**
 * Close the modules' files, which take more memory than all the rest. What was
 * answered stays; what was not has no names from now on. NULL is fine.
 */
void seep_symboliser_settle(struct seep_symboliser *symboliser);

/** NULL is fine. */
void seep_symboliser_close(struct seep_symboliser *symboliser);

/**
 * Resolve one address: the innermost inlined call first, the function that
 * stands in the machine code last. At least one frame, whatever is missing.
 * Answers are cached by (module, offset).
 *
 * @param module  index given to open, or SIZE_MAX for code of no module; then
 *                @offset is the absolute address
 */
int seep_symboliser_resolve(struct seep_symboliser *symboliser, size_t module,
                            uint64_t offset,
                            const struct seep_symbol_frame **ret_frames,
                            size_t *ret_count);

/** One thing that leads to another: from where it was pointed to. */
struct seep_symbol_hop {
    uint64_t offset; /* to the word that leads on */
    uint64_t bytes;  /* that there are of it, at most; 0: not known */
};

#define SEEP_SYMBOL_HOPS_MOST 8U

/** A variable or an object of a class, and what its words lead down to. */
struct seep_symbol_thing {
    const char *class_symbol; /* of its type information: "N2ns5CacheE"; "": it
                                 is a variable */
    uint64_t address;     /* of the variable; of code of the class, 0: none */
    bool is_thread_local; /* the variable: .address is one in its segment */
    struct seep_symbol_hop hops[SEEP_SYMBOL_HOPS_MOST]; /* itself first */
    size_t hop_count;
};

/**
 * Which member each hop is by, as DWARF has it: "items_", "cells[...].first".
 * Containers of the standard library are one word. Nothing is remembered.
 *
 * @param ret_frames  one for each hop: .function is the member, .file the type
 *                    that it is a member of; "" where it is not known
 * @return false: nothing is known
 */
bool seep_symboliser_members(struct seep_symboliser *symboliser, size_t module,
                             const struct seep_symbol_thing *thing,
                             const struct seep_symbol_frame **ret_frames);

/** What a memory has of the files that names were looked up in. NULL is fine.
 */
struct seep_symbol_house;
void seep_symbol_house_close(struct seep_symbol_house *house);

/** A module whose names were given up. */
struct seep_symbol_failure {
    const char *path; /* as long as the module's */
    int error;        /* as of the wall, or -errno of its file */
};

/** The next from @at on, which is 0 at first. @return false: no more */
bool seep_symboliser_failure(const struct seep_symboliser *symboliser,
                             size_t *at, struct seep_symbol_failure *ret);

#endif
