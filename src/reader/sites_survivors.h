/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The blocks of the live table, each to its row; between sites.c and this. */
#ifndef SEEP_READER_SITES_SURVIVORS_H
#define SEEP_READER_SITES_SURVIVORS_H

#include <stdint.h>

#include "reader/sites.h"

/**
 * Fill survivors and loose blocks of @sites, whose rows are listed.
 *
 * @param work_of_site  index in SITES -> row + 1; 0: none
 * @return 0 or -ENOMEM
 */
int seep_sites_add_survivors(const struct seep_snapshot *snapshot,
                             const struct seep_clock *clock,
                             const uint32_t *work_of_site,
                             struct seep_sites *sites);

#endif
