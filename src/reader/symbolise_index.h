/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From an address to the best of the ranges that hold it, in O(log n).
 *
 * Ranges may nest and overlap in any way: adding is unordered, sealing cuts
 * them into segments that do not overlap, each with the range that wins there.
 * Start from an all-zero struct.
 */
#ifndef SEEP_READER_SYMBOLISE_INDEX_H
#define SEEP_READER_SYMBOLISE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seep_symbolise_range {
    uint64_t start;
    uint64_t end;   /* not included */
    uint64_t value; /* the user's */
    uint32_t class; /* the lowest wins, then the highest start */
    uint32_t tie;   /* then the lowest of these, then the lowest value */
};

struct seep_symbolise_segment {
    uint64_t start;
    uint64_t end;
    size_t range; /* which one wins here */
};

struct seep_symbolise_index {
    struct seep_symbolise_range *ranges; /* sealed: by ascending start */
    size_t range_count;
    size_t range_capacity;
    struct seep_symbolise_segment *segments;
    size_t segment_count;
};

/** An empty range is left out. @return 0 or -ENOMEM */
int seep_symbolise_index_add(struct seep_symbolise_index *index,
                             const struct seep_symbolise_range *range);

/** Sort the ranges only: enough for seep_symbolise_index_below(). */
void seep_symbolise_index_sort(struct seep_symbolise_index *index);

/** After the last add, before the first find. @return 0 or -ENOMEM */
int seep_symbolise_index_seal(struct seep_symbolise_index *index);

/** The range that wins at @address; NULL if none holds it. */
const struct seep_symbolise_range *
seep_symbolise_index_find(const struct seep_symbolise_index *index,
                          uint64_t address);

/** The range with the highest start that is not above @address; or NULL. */
const struct seep_symbolise_range *
seep_symbolise_index_below(const struct seep_symbolise_index *index,
                           uint64_t address);

void seep_symbolise_index_fini(struct seep_symbolise_index *index);

#endif
