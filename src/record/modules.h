/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The loaded objects that stacks pass through, and the recording's strings.
 *
 * Invariant: a published module never changes, but for the time it was seen
 * to go; a string, once written, stays.
 */
#ifndef SEEP_RECORD_MODULES_H
#define SEEP_RECORD_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/view.h"

/** A loaded object as whoever found it describes it. */
struct seep_modules_object {
    uint64_t start;
    uint64_t end;
    uint64_t bias;
    const char *path;
    const uint8_t *build_id; /* NULL: none */
    size_t build_id_bytes;
};

/** Copy @string. @return its offset; 0, the empty string, if there is no room
 */
seep_string seep_modules_string(const struct seep_view *view,
                                const char *string);

/** @return id of the module, from 1; SEEP_MODULE_NONE if the table is full */
uint32_t seep_modules_intern(const struct seep_view *view,
                             const struct seep_modules_object *object);

/** The frame of @address in module @id; with SEEP_MODULE_NONE as it is. */
uint64_t seep_modules_frame(const struct seep_view *view, uint32_t id,
                            uint64_t address);

/*
 * What frames name that are no machine code: Python's code objects, and
 * threads. Two with the same names are one entry, wherever they lie.
 *
 * Invariant: a published entry never changes; nothing is evicted. A full table
 * refuses, and the frame has no name.
 *
 * Threads: any number; lock-free, bounded steps, nobody waits.
 */

struct seep_codes_code {
    enum seep_code_kind kind;
    const char *file;
    const char *name;
    uint32_t first_line; /* 0: not known */
};

/**
 * Ask the private cache, by a hash of whatever tells this code from others in
 * this process.
 *
 * @return false: not known, intern it. *ret_code may be SEEP_CODE_NONE: it was
 *         refused before
 */
bool seep_codes_find(uint64_t identity, uint32_t *ret_code);

/** Add @code, and remember it by @identity. @return index; SEEP_CODE_NONE */
uint32_t seep_codes_intern(const struct seep_view *view, uint64_t identity,
                           const struct seep_codes_code *code);

/** The frame of @line in @code; a line that does not fit is not known. */
static inline uint64_t seep_codes_frame(uint32_t code, int64_t line)
{
    if (line < 0 || (uint64_t)line > SEEP_FRAME_LINE_MASK) {
        line = 0;
    }
    return SEEP_FRAME_IS_CODE | (uint64_t)code << SEEP_FRAME_LINE_BITS |
           (uint64_t)line;
}

/** @return enum seep_code_trait of a frame; 0: none, or no code */
uint32_t seep_codes_traits(const struct seep_view *view, uint64_t frame);

/** Forget the cache: in a forked child, before its own recording begins. */
void seep_codes_forget(void);

#endif
