/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The place of a number in a sorted array of structures, of which a uint64_t
 * is what they are sorted by: addresses of ranges, blocks and symbols.
 *
 * Invariant: nothing is written, and no entry is read that is not there.
 */
#ifndef SEEP_BASE_SORTED_H
#define SEEP_BASE_SORTED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/**
 * How many of @count entries have a key of at most @most: the last of these,
 * if any, is the one in which @most can lie.
 * @param entries     sorted by the key, ascending
 * @param entry_bytes of each
 * @param key_bytes   from the beginning of an entry to its key, a uint64_t
 */
static inline size_t seep_sorted_up_to(const void *entries, size_t count,
                                       size_t entry_bytes, size_t key_bytes,
                                       uint64_t most)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;
        uint64_t key;

        memcpy(&key, (const char *)entries + middle * entry_bytes + key_bytes,
               sizeof(key));
        if (key <= most) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

/** How many of @count in @array, sorted by @field, have at most @most there. */
#define SEEP_SORTED_UP_TO(array, count, field, most)      \
    seep_sorted_up_to((array), (count), sizeof(*(array)), \
                      offsetof(__typeof__(*(array)), field), (most))

/** How many have less than @limit there. */
#define SEEP_SORTED_BELOW(array, count, field, limit) \
    ((limit) == 0 ? 0 : SEEP_SORTED_UP_TO(array, count, field, (limit)-1))

#endif
