/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which words of a process point into some ranges: one pass over its memory.
 *
 * A word is held against the span of all ranges, then against a filter of
 * pages, then found by bisection: nearly all words end at the first.
 *
 * Errors: 0 or -ENOMEM. Threads: one at a time.
 */
#ifndef SEEP_HELD_SCAN_H
#define SEEP_HELD_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "held/memory.h"

/** Words that are looked for: those in [start, end). */
struct seep_held_range {
    uint64_t start;
    uint64_t end;
    uint32_t owner; /* the caller's */
};

struct seep_held_hit {
    uint64_t at;    /* of the word */
    uint64_t value; /* what it is */
    uint32_t range; /* in the scan's, by start */
};

/** More hits are counted, and not kept. */
#define SEEP_HELD_HITS_MOST (UINT32_C(1) << 21)

struct seep_held_scan {
    struct seep_held_range *ranges; /* by start; they do not overlap */
    size_t range_count;
    struct seep_held_hit *hits;
    size_t hit_count;
    size_t hit_capacity;
    uint64_t lost_count; /* hits that were not kept */
    /* The rest is scan.c's. */
    uint64_t *filter;
    uint64_t base;
    uint64_t span;
    bool first_pass;
    uint64_t words_from; /* first pass: a page without a word from here */
    uint64_t words_span; /* on so far has no address */
    int error;
};

/** Start from an all-zero struct; ranges may be in any order. */
int seep_held_scan_add(struct seep_held_scan *scan, uint64_t start,
                       uint64_t end, uint32_t owner);

/** Look at all that is written to in @memory. What was found before is
 * forgotten. */
int seep_held_scan_run(struct seep_held_scan *scan,
                       struct seep_held_memory *memory);

/** Ready for words by seep_held_scan_word(). */
int seep_held_scan_prepare(struct seep_held_scan *scan);

/** One word, as a hit if it is one: for those who read by other ways. */
void seep_held_scan_word(struct seep_held_scan *scan, uint64_t at,
                         uint64_t value);

/** No ranges and no hits; memory is kept. */
void seep_held_scan_clear(struct seep_held_scan *scan);
void seep_held_scan_fini(struct seep_held_scan *scan);

#endif
