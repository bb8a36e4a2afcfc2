/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The loaded objects that stacks pass through, and the recording's strings.
 *
 * Invariant: a published module never changes, but for the time it was seen
 * to go; a string, once written, stays.
 */
#ifndef SEEP_RECORD_MODULES_H
#define SEEP_RECORD_MODULES_H

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

#endif
