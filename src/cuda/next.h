/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The next definition of a name behind this library, found without dlsym:
 * where dlsym itself is what is looked for.
 *
 * Invariant: reads what the loader wrote of the objects that were there at the
 * start; no lock, no allocation.
 */
#ifndef SEEP_CUDA_NEXT_H
#define SEEP_CUDA_NEXT_H

#include <stdint.h>

/**
 * The function @name of the first object behind this one that has it, in the
 * order in which the loader would look.
 *
 * @return 0 if there is none, or if this library is not relocated yet
 */
uintptr_t seep_cuda_next(const char *name);

#endif
