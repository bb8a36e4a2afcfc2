/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The life of one entry of the ledger: how it is told of, held and let go.
 *
 * Invariant: an entry that goes from LIVE to OUT, or back, is BUSY while the
 * recorder is told; so no two threads tell of one entry at once, and OUT means
 * that the end was told.
 */
#ifndef SEEP_CUDA_ENTRY_H
#define SEEP_CUDA_ENTRY_H

#include "cuda/slots.h"

/** The recorder, or NULL: then the ledger does nothing. */
const struct seep_cuda_events *seep_cuda_entry_events(void);

/** The key of events of a thing that has no other of its value. */
uint64_t seep_cuda_entry_key(enum seep_cuda_kind kind, uint64_t value);

/** A phase among several. */
#define SEEP_CUDA_IN(phase) (1U << SEEP_CUDA_PHASE_##phase)

/** An entry of @value in one of @phases; 0: none. @held: if it is LIVE, one
 * that has references. */
seep_cuda_reference seep_cuda_entry_find(enum seep_cuda_kind kind,
                                         uint64_t value, unsigned phases,
                                         bool held);

/** The LIVE entry of @value, of several one with references; 0: none. */
seep_cuda_reference seep_cuda_entry_holder(enum seep_cuda_kind kind,
                                           uint64_t value);

/** What seep_cuda_ledger_mark() gives next. */
uint32_t seep_cuda_entry_mark(void);

/**
 * Fill a slot that was claimed, hold its holder, tell, and publish.
 *
 * @param block      .holder is a reference here
 * @param state      that of the claim
 * @param other_key  the common key may be in use
 */
void seep_cuda_entry_begin(const struct seep_cuda_events *events,
                           const struct seep_capture_start *from,
                           const struct seep_cuda_block *block, uint32_t slot,
                           uint64_t state, bool other_key);

/**
 * One of @unit less; with the last one the entry goes OUT, before the driver
 * is asked.
 *
 * @return false: it is not LIVE in that life, or has none of @unit
 */
bool seep_cuda_entry_lower(const struct seep_cuda_events *events,
                           seep_cuda_reference reference, uint64_t unit);

/** One of @unit more; from OUT it comes back, for the driver refused. */
bool seep_cuda_entry_raise(const struct seep_cuda_events *events,
                           seep_cuda_reference reference, uint64_t unit);

/** One reference more of what is LIVE. @return false: it is not */
bool seep_cuda_entry_again(seep_cuda_reference reference);

/** The driver took it: an entry that is OUT is no more, nor its holder if
 * that is OUT too. @return false: it is not OUT, or not by this thread */
bool seep_cuda_entry_end(seep_cuda_reference reference);

/**
 * The driver took it, that is certain: whatever phase it is in, it is no more.
 *
 * @return the phase that it was found in
 */
enum seep_cuda_phase seep_cuda_entry_gone(const struct seep_cuda_events *events,
                                          seep_cuda_reference reference);

#endif
