/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which mappings grew, from looks at a process from outside.
 *
 * A mapping has no name that lasts: anonymous neighbours are merged by the
 * kernel, split, and grow at either end. So what is followed is a piece of the
 * address space: mappings of one name that overlap in any two looks are one,
 * and what a look does not list was not there. Many small ones that are new,
 * not tracked, and less than 64 MiB apart are told as one.
 *
 * Sizes are anonymous bytes, resident or in swap: pages of a file are not the
 * process's. Pure: no input or output.
 */
#ifndef SEEP_READER_LOOK_GROWTH_H
#define SEEP_READER_LOOK_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/look.h"
#include "reader/report.h"

/** What a mapping grew by at least to be told of. */
#define SEEP_LOOK_GROWTH_LEAST_BYTES (64 * 1024)

/**
 * The mappings that grew, most first, over the looks at or after @from_s.
 *
 * @param is_tracked    do blocks or ranges that seep knows lie in these
 *                      addresses? Asked of parts of what is new in a mapping,
 *                      since an anonymous one can be the program's own and,
 *                      beside it, an allocator's; NULL: of none
 * @param ret_mappings  room for @limit; names point into @looks
 * @return 0, also when nothing grew or fewer than two looks are left;
 *         -ENOMEM, with ret_* untouched
 */
int seep_look_growth(const struct seep_looks *looks, double from_s,
                     bool (*is_tracked)(void *context, uint64_t start,
                                        uint64_t end),
                     void *context, struct seep_report_mapping *ret_mappings,
                     size_t limit, size_t *ret_count);

#endif
