/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Where live blocks lie: which addresses seep knows of, and which mappings are
 * an allocator's.
 *
 * Addresses come from a recording and may overlap, or wrap around; a range that
 * wraps is cut at the top.
 */
#ifndef SEEP_READER_REPORT_RANGES_H
#define SEEP_READER_REPORT_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/view.h"
#include "reader/look.h"

struct seep_range {
    uint64_t start;
    uint64_t end;
    uint64_t reach; /* the highest end up to this one */
};

struct seep_ranges {
    struct seep_range *ranges; /* by start */
    size_t count;
};

/**
 * The live blocks and ranges of a snapshot.
 *
 * @param looks      their mappings that are the allocator's count too; NULL
 * @param heap_only  blocks of the allocator only
 * @return 0 or -ENOMEM; give it to seep_ranges_fini() in either case
 */
int seep_ranges_init(struct seep_ranges *ret_ranges,
                     const struct seep_view *view,
                     const struct seep_looks *looks, bool heap_only,
                     bool glibc);
void seep_ranges_fini(struct seep_ranges *ranges);

/** Does anything lie in [@start, @end)? */
bool seep_ranges_meet(const struct seep_ranges *ranges, uint64_t start,
                      uint64_t end);

/**
 * Whatever lies in it: [heap], and where malloc is glibc's its arenas, which
 * are told by where they begin in all of @looks.
 */
bool seep_ranges_is_allocator(const struct seep_look_mapping *mapping,
                              const struct seep_looks *looks, bool glibc);

/** Bytes of the pages that live heap blocks touch; 0 without memory. */
double seep_ranges_pages(const struct seep_view *view);

#endif
