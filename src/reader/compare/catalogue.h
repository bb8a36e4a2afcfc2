/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A catalogue in memory, between its parser and its matcher.
 *
 * Texts belong to the JSON documents that the catalogue keeps; lists belong to
 * the entry. Sets of names are bits by enum value; 0 means any.
 */
#ifndef SEEP_READER_COMPARE_CATALOGUE_H
#define SEEP_READER_COMPARE_CATALOGUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/compare/patterns.h"

/** What one frame must be; each that is not NULL must match. */
struct seep_catalogue_name {
    const char *any; /* function, file or module */
    const char *function;
    const char *file;
    const char *module;
};

/** Alternatives: one of them is enough. */
struct seep_catalogue_names {
    struct seep_catalogue_name *names;
    size_t count;
};

struct seep_catalogue_entry {
    struct seep_pattern pattern;
    /* A site: each of these at some frame, innermost first. */
    struct seep_catalogue_names *frames;
    size_t frame_count;             /* 0: the pattern is not for sites */
    uint64_t depth;                 /* user's frames for the first; 0: all */
    struct seep_catalogue_names no; /* at no frame */
    uint32_t spaces;
    uint32_t classes;
    uint64_t block_bytes_low;  /* of the mean block */
    uint64_t block_bytes_high; /* 0: any */
    /* A process. */
    bool for_process;
    uint32_t verdicts;
    uint32_t allocators;
    struct seep_catalogue_names executable;
    struct seep_catalogue_names loaded;  /* at some frame of some site */
    struct seep_catalogue_names mapping; /* name of one that grows */
    int condition_count; /* that are given, for who is more specific */
};

struct seep_catalogue {
    json_t *documents; /* an array */
    struct seep_catalogue_entry *entries;
    size_t count;
};

/** seep_catalogue_add_file() with what is in the file. */
int seep_catalogue_add_text(struct seep_catalogue **catalogue, const char *text,
                            size_t length, struct seep_refusal *ret_refusal);

#endif
