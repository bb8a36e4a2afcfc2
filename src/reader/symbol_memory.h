/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Names of addresses, remembered from one report to the next: for who reads the
 * same recordings, or others of the same programs, again and again.
 *
 * An address is known by its module's build-id and path, and its offset. What
 * is kept is copied in and copied out, so nothing else depends on how long it
 * lives. Bounded: when it is full it forgets everything.
 *
 * Threads: one at a time.
 */
#ifndef SEEP_READER_SYMBOL_MEMORY_H
#define SEEP_READER_SYMBOL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/symbolise.h"

#define SEEP_SYMBOL_MEMORY_MOST 100000U /* addresses */

struct seep_symbolise_strings;

int seep_symbol_memory_open(struct seep_symbol_memory **ret_memory);
/** NULL is fine. */
void seep_symbol_memory_close(struct seep_symbol_memory *memory);

/** What tells @module from all others; 0: nothing does, do not remember it. */
uint64_t seep_symbol_memory_key(const struct seep_symbol_module *module);

/**
 * The frames of @offset in the module of @key, which is not 0.
 *
 * @param ret_frames  valid until the next call
 * @return false if they are not known
 */
bool seep_symbol_memory_find(const struct seep_symbol_memory *memory,
                             uint64_t key, uint64_t offset,
                             const struct seep_symbol_frame **ret_frames,
                             size_t *ret_count);

/** Remember a copy; where there is no memory for it, nothing is. */
void seep_symbol_memory_put(struct seep_symbol_memory *memory, uint64_t key,
                            uint64_t offset,
                            const struct seep_symbol_frame *frames,
                            size_t count);

/**
 * A copy of @frames in @strings.
 *
 * @return NULL without memory
 */
const struct seep_symbol_frame *
seep_symbol_memory_copy(struct seep_symbolise_strings *strings,
                        const struct seep_symbol_frame *frames, size_t count);

#endif
