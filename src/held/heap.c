/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A binary heap. Invariant: no item is nearer than the one above it. */
#include "held/heap.h"

#include <stdlib.h>

bool seep_held_heap_push(struct seep_held_heap *heap,
                         struct seep_held_entry entry)
{
    size_t at = heap->count;

    if (at == heap->capacity) {
        size_t capacity = at == 0 ? 1024 : 2 * at;
        struct seep_held_entry *items =
            realloc(heap->items, capacity * sizeof(*items));

        if (items == NULL) {
            return false;
        }
        heap->items = items;
        heap->capacity = capacity;
    }
    heap->count++;
    while (at > 0 && heap->items[(at - 1) / 2].distance > entry.distance) {
        heap->items[at] = heap->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->items[at] = entry;
    return true;
}

struct seep_held_entry seep_held_heap_pop(struct seep_held_heap *heap)
{
    struct seep_held_entry first = heap->items[0];
    struct seep_held_entry last = heap->items[--heap->count];
    size_t at = 0;

    for (;;) {
        size_t below = 2 * at + 1;

        if (below >= heap->count) {
            break;
        }
        below += below + 1 < heap->count &&
                 heap->items[below + 1].distance < heap->items[below].distance;
        if (heap->items[below].distance >= last.distance) {
            break;
        }
        heap->items[at] = heap->items[below];
        at = below;
    }
    heap->items[at] = last;
    return first;
}
