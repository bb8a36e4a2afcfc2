/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which mappings of a look are kept: seep_smaps_select(). Invariant: what
 * is joined keeps its bytes, and nothing that goes is larger than what stays.
 *
 * A program that maps 64 KiB at a time has ten thousand mappings, of which none
 * is large: were they not joined before the largest are taken, its growth would
 * be in no mapping at all.
 */
#include <stdlib.h>
#include <string.h>

#include "reader/look_smaps.h"

#define SMALL_BYTES ((uint64_t)4 << 20)
#define GAP_BYTES ((uint64_t)64 << 20)

static uint64_t bytes_of(const struct seep_look_mapping *mapping)
{
    return mapping->rss_bytes + mapping->swap_bytes;
}

/* A large anonymous one stays alone: it may be an allocator's, and what lies
 * beside it the program's own. */
static bool is_small(const struct seep_look_mapping *mapping)
{
    return mapping->name[0] != '\0' || bytes_of(mapping) <= SMALL_BYTES;
}

static size_t join(struct seep_look_mapping *mappings, size_t count)
{
    size_t kept = 0;
    bool small_before = false;

    for (size_t i = 0; i < count; i++) {
        struct seep_look_mapping *now = &mappings[i];
        struct seep_look_mapping *last = kept == 0 ? NULL : &mappings[kept - 1];
        bool small = is_small(now);

        if (small && small_before && now->start - last->end <= GAP_BYTES &&
            strcmp(now->name, last->name) == 0) {
            last->end = now->end;
            last->rss_bytes += now->rss_bytes;
            last->anonymous_bytes += now->anonymous_bytes;
            last->swap_bytes += now->swap_bytes;
            free(now->name);
        } else {
            mappings[kept++] = *now;
        }
        small_before = small;
    }
    return kept;
}

static int compare_sizes(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return left < right ? 1 : -(left > right);
}

/* The size that the @limit-th largest has, and how many are larger. */
static bool find_least(const struct seep_look_mapping *mappings, size_t count,
                       size_t limit, uint64_t *ret_bytes, size_t *ret_larger)
{
    uint64_t *sizes = malloc(count * sizeof(*sizes));

    if (sizes == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        sizes[i] = bytes_of(&mappings[i]);
    }
    qsort(sizes, count, sizeof(*sizes), compare_sizes);
    *ret_bytes = sizes[limit - 1];
    *ret_larger = 0;
    while (sizes[*ret_larger] > *ret_bytes) {
        ++*ret_larger;
    }
    free(sizes);
    return true;
}

size_t seep_smaps_drop_empty(struct seep_look_mapping *mappings, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (bytes_of(&mappings[i]) > 0) {
            mappings[kept++] = mappings[i];
        } else {
            free(mappings[i].name);
        }
    }
    return kept;
}

size_t seep_smaps_select(struct seep_look_mapping *mappings, size_t count,
                         size_t limit)
{
    uint64_t least = 0;
    size_t larger = 0;
    size_t kept = 0;

    count = count > limit ? join(mappings, count) : count;
    if (count > limit && !find_least(mappings, count, limit, &least, &larger)) {
        larger = 0; /* no memory: the first ones will have to do */
    }
    size_t equal = limit - larger; /* that may stay of those that are just so */
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = bytes_of(&mappings[i]);
        bool stays = count <= limit || bytes > least;

        if (!stays && bytes == least && equal > 0) {
            equal--;
            stays = true;
        }
        if (stays && kept < limit) {
            mappings[kept++] = mappings[i];
        } else {
            free(mappings[i].name);
        }
    }
    return kept;
}
