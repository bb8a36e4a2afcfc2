/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which patterns cannot fit a site, told without looking at each frame for
 * each: of 64 patterns some 60 are out at a glance.
 *
 * Pure; any thread.
 */
#ifndef SEEP_READER_CATALOGUE_FILTER_H
#define SEEP_READER_CATALOGUE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "reader/catalogue_parts.h"

#define SEEP_CATALOGUE_FILTER_BITS 16

/** Every three letters that stand together in a name of the site's frames. */
struct seep_catalogue_filter {
    uint64_t words[(1 << SEEP_CATALOGUE_FILTER_BITS) / 64];
};

void seep_catalogue_filter_fill(struct seep_catalogue_filter *ret_filter,
                                const struct seep_report_site *site);

/** false: @entry does not fit the site. */
bool seep_catalogue_filter_may(const struct seep_catalogue_filter *filter,
                               const struct seep_catalogue_entry *entry);

#endif
