/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * C++ and Rust names as their authors wrote them.
 *
 * Names come from files of strangers: an input may be any string. Work is
 * bounded by a cap on the input's length and one on the output's.
 */
#ifndef SEEP_READER_SYMBOLS_NAMES_H
#define SEEP_READER_SYMBOLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/recording/store.h"
#include "reader/symbols/symbolise.h"

/** A longer mangled name is not tried. */
#define SEEP_DEMANGLE_INPUT_MAX 4096
/** Room for any result that is not cut. */
#define SEEP_DEMANGLE_TEXT_MAX 4096

/**
 * Demangle @mangled into @ret_text, which has room for @text_bytes; what does
 * not fit is cut off. Rust's hash of a legacy name is left out.
 *
 * @return false if it is no mangled name, or too long; @ret_text untouched
 */
bool seep_demangle(const char *mangled, char *ret_text, size_t text_bytes);

/*
 * The perf map of a JIT: /tmp/perf-PID.map, lines "START SIZE name" in
 * hexadecimal, later ones replacing earlier ones.
 *
 * Anyone can write into /tmp: only a regular file of ours or of root is read,
 * and a line that makes no sense is passed over.
 */

struct seep_perf_map;

/** @return 0; -EPERM for a stranger's file or a special one; else -errno */
int seep_perf_map_open(const char *path, struct seep_perf_map **ret_map);

/** The name of the code at @address; NULL if unknown. Lives with the map. */
const char *seep_perf_map_find(const struct seep_perf_map *map,
                               uint64_t address);

/** NULL is fine. */
void seep_perf_map_close(struct seep_perf_map *map);

/*
 * Names of addresses, remembered from one report to the next: for who reads the
 * same recordings, or others of the same programs, again and again.
 *
 * An address is known by its module's build-id and path, and its offset. What
 * is kept is copied in and copied out, so nothing else depends on how long it
 * lives. Bounded: when it is full it forgets everything.
 *
 * Threads: one at a time.
 */

#define SEEP_SYMBOL_MEMORY_MOST 100000U /* addresses */
#define SEEP_SYMBOL_STACKS_MOST 65536U  /* of half a kilobyte */

/** Start from an all-zero struct. A symboliser has one of its own, of which it
 * forgets nothing. */
struct seep_symbol_memory {
    bool keeps;  /* it forgets nothing: reports point into it, */
    bool shares; /* more than one: what is in many is there once */
    struct seep_symbol_house *house; /* of the modules; symbolise.c's */
    struct seep_store store;
    struct seep_store_table texts;     /* every text once, */
    struct seep_store_table runs;      /* and every run of frames */
    struct seep_store_table functions; /* symbols to names */
    struct seep_store_table answers;   /* by module and offset */
    struct seep_store_table failures;  /* of modules: why they have no names */
    struct seep_store_table modules;   /* numbers by path and build-id, */
    struct seep_store_table codes;     /* and of Python by name and file */
    struct seep_store_table stacks;    /* what reports found of each */
    struct seep_symbol_pack *pack; /* that was read last; NULL: it failed, */
    uint64_t pack_hash;            /* and of which it is */
};

int seep_symbol_memory_open(struct seep_symbol_memory **ret_memory);
/** NULL is fine. */
void seep_symbol_memory_close(struct seep_symbol_memory *memory);
/** Until more is asked: no files are kept open. NULL is fine. */
void seep_symbol_memory_rest(struct seep_symbol_memory *memory);
void seep_symbol_memory_fini(struct seep_symbol_memory *memory);

/** What tells @module from all others; 0: nothing does, do not remember it. */
uint64_t seep_symbol_memory_key(const struct seep_symbol_module *module);

/** The frames of one address. */
struct seep_symbol_answer {
    const struct seep_symbol_frame *frames;
    size_t count;
};

/** That of @offset in the module of @key: valid until something is put; NULL if
 * it is not known. */
const struct seep_symbol_answer *
seep_symbol_memory_find(struct seep_symbol_memory *memory, uint64_t key,
                        uint64_t offset);

/** Remember a copy; where there is no memory for it, nothing is. */
void seep_symbol_memory_put(struct seep_symbol_memory *memory, uint64_t key,
                            uint64_t offset, struct seep_symbol_answer answer);

/** Remember one whose frames lie in @memory. @return 0 or -ENOMEM */
int seep_symbol_memory_set(struct seep_symbol_memory *memory, uint64_t key,
                           uint64_t offset, struct seep_symbol_answer answer);

/** Remember that the module of @key has no names. */
void seep_symbol_memory_fail(struct seep_symbol_memory *memory, uint64_t key,
                             int error);
/** @return 0 if nothing is known */
int seep_symbol_memory_failure(struct seep_symbol_memory *memory, uint64_t key);

/** Copies of the frames, in @memory; NULL: no memory, as below. */
const struct seep_symbol_frame *
seep_symbol_memory_copy(struct seep_symbol_memory *memory,
                        const struct seep_symbol_answer *answer);

/** The one copy of @text. */
const char *seep_symbol_memory_text(struct seep_symbol_memory *memory,
                                    const char *text);

/** Of its first @most bytes: in @memory if it shares, else in @store.
 * NULL: no memory, as below. */
const char *seep_symbol_memory_keep(struct seep_symbol_memory *memory,
                                    struct seep_store *store, const char *text,
                                    size_t most);

/** The same of @bytes bytes of frames, whose texts are kept so: those of many
 * recordings of a program are the same. */
const void *seep_symbol_memory_keep_run(struct seep_symbol_memory *memory,
                                        struct seep_store *store,
                                        const void *frames, size_t bytes);

/** The number of a pair of texts that @memory has, from 1 on, in @table of it;
 * 0: no memory. */
uint64_t seep_symbol_memory_number(struct seep_symbol_memory *memory,
                                   struct seep_store_table *table,
                                   const char *const pair[2]);

#endif
