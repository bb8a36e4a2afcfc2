/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which sites of a recording are one row of its report.
 *
 * Invariant: a row's id depends on the space, on the device where there is one,
 * and on what its stacks have in common: of a stack on module names and
 * offsets, of Python on files, names and lines; not on where code lay, in which
 * folder it was installed, nor, but for rows by function and thread, on which
 * symbols could be had.
 *
 * Errors: 0 or -ENOMEM. Threads: one at a time.
 */
#ifndef SEEP_READER_REPORT_GROUP_H
#define SEEP_READER_REPORT_GROUP_H

#include <stdint.h>

#include "reader/sites.h"

struct seep_report_build;

/**
 * The row of each used site of the recording, by its index in SITES.
 *
 * @param ret_keys  to be freed
 */
int seep_group_keys(struct seep_report_build *build,
                    struct seep_site_key **ret_keys);

#endif
