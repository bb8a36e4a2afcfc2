/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What is nearest first.
 *
 * Errors: false without memory; then what was there stays.
 * Threads: one at a time.
 */
#ifndef SEEP_HELD_HEAP_H
#define SEEP_HELD_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seep_held_entry {
    uint32_t distance;
    uint32_t node;
};

struct seep_held_heap {
    struct seep_held_entry *items;
    size_t count;
    size_t capacity;
};

/** Start from an all-zero struct; .items is the caller's to free. */
bool seep_held_heap_push(struct seep_held_heap *heap,
                         struct seep_held_entry entry);

/** The nearest, of one at least. */
struct seep_held_entry seep_held_heap_pop(struct seep_held_heap *heap);

#endif
