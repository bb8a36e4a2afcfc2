/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The driver's own look-up, by name, version and the kind of stream: the door
 * through which the CUDA runtime comes.
 *
 * Invariant: the driver answers first, with unchanged arguments; only the
 * pointer of an answer that succeeded is exchanged, and only where the variant
 * that was given is known beyond doubt.
 */
#ifndef SEEP_CUDA_PROC_ADDRESS_H
#define SEEP_CUDA_PROC_ADDRESS_H

#include <stdint.h>

#include "cuda/resolve.h"

/** Ask the driver for the same name at another version. 0: it has none. */
typedef uintptr_t seep_cuda_ask(const void *driver, const char *name,
                                int version, uint64_t flags);

/**
 * The driver gave @target for @name at @version with @flags.
 *
 * @param ask     asks again, where @version is newer than what is known here
 * @param driver  for @ask
 * @return what the caller is to get
 */
uintptr_t seep_cuda_exchange(const struct seep_cuda_table *table,
                             const char *name, int version, uint64_t flags,
                             uintptr_t target, seep_cuda_ask *ask,
                             const void *driver);

#endif
