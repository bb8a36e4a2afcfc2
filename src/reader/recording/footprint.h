/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a block takes of memory: its header, and what its allocator rounds it
 * up to. A block of 24 bytes takes 32 of glibc's: a rate of what was asked for
 * is a quarter less than what the process grows by.
 *
 * A recording has what was asked for. Its copy is charged once, when nothing
 * else will be undone in it: from there on all bytes of a call site are what
 * its blocks take, and .requested has what was asked for.
 *
 * Invariant: what is allocated less what is freed is what is live, as before,
 * but for a byte or two of rounding where a site has blocks of several sizes.
 *
 * Pure, but for the copy; any thread.
 */
#ifndef SEEP_READER_RECORDING_FOOTPRINT_H
#define SEEP_READER_RECORDING_FOOTPRINT_H

#include <stdint.h>

#include "reader/recording/snapshot.h"
#include "reader/report/report.h"

/** A block of @space; what is not known to be rounded takes what was asked for.
 * @address: of the block, 0 if it is not known */
uint64_t seep_footprint_of(enum seep_allocator_kind allocator,
                           enum seep_space space, uint64_t address,
                           uint64_t size_bytes);

/** Charge the copy.
 *
 * @param ret_rate  what all that lives takes, over what was asked for
 * @return 0 or -ENOMEM */
int seep_footprint_charge(struct seep_snapshot *snapshot,
                          enum seep_allocator_kind allocator, double *ret_rate);

#endif
