/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The part of the program truth that maps memory itself. Any thread. */
#ifndef SEEP_TEST_TRUTH_MAPS_H
#define SEEP_TEST_TRUTH_MAPS_H

#include <stddef.h>

#include "truth.h"

/** Map, cut, move and unmap, each way once; some of it stays mapped. */
void truth_maps_use(void);

/** Append the sites; @return how many. */
size_t truth_maps_list(struct truth_site **sites);

/** The same of files: truth_files.c. */
void truth_files_use(void);
size_t truth_files_list(struct truth_site **sites);

#endif
