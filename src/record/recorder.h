/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The recorder: what the hooks call. One a process, in private memory, with
 * the recording that it writes.
 *
 * Invariant: after any call the recording is valid, and what was refused is
 * counted. Nothing allocates, prints or fails; the only wait is that of the
 * exact mode for a full ring, 20 ms in sum a call.
 *
 * Threads: any number, each inside its own guard (preload/life.c).
 */
#ifndef SEEP_RECORD_RECORDER_H
#define SEEP_RECORD_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "format/view.h"
#include "record/sites.h"

/** Begin to write to @mapping, a recording that was just created. */
void seep_recorder_start(void *mapping);

/** In a forked child: let go of the parent's recording. */
void seep_recorder_drop(void);

/** The run is over: who comes finds no view. */
void seep_recorder_end(void);

/** The recording, NULL while there is none. */
const struct seep_view *seep_recorder_view(void);

/** Ticks since the recording began. */
uint32_t seep_recorder_tick(void);

/** No system call from now on: a full ring is not waited for. */
void seep_recorder_restrict(void);

/** Is this still the process that the recording is of? Set before start. */
void seep_recorder_set_identity(bool (*still_ours)(void));

/** A block was allocated at @site; by the sampling of @thread, or whole if
 * @address is a key (SEEP_ADDRESS_IS_KEY). @return the tick of the event */
uint32_t seep_recorder_allocated(struct seep_thread *thread, uint32_t site,
                                 uint64_t address, uint64_t size_bytes);

/** The same of one that was chosen under a mean of 2^@sample_log2 bytes. */
uint32_t seep_recorder_sampled(struct seep_thread *thread, unsigned sample_log2,
                               uint32_t site, uint64_t address,
                               uint64_t size_bytes);

/**
 * A block is about to be freed, or taken out by a realloc (@kind).
 * @return the tick of the event, for a restore
 */
uint32_t seep_recorder_freed(struct seep_thread *thread, uint64_t address,
                             enum seep_event_kind kind);

/** The realloc failed: the block taken out at @tick is still there. */
void seep_recorder_restored(struct seep_thread *thread, uint64_t address,
                            uint32_t tick);

/** MAP, UNMAP, REMAP_OUT and its RESTORE. @return as freed */
uint32_t seep_recorder_range(struct seep_thread *thread,
                             enum seep_event_kind kind, uint32_t site,
                             uint64_t address, uint64_t size_bytes);

/**
 * Is any part of this range recorded as mapped? If in doubt, yes.
 *
 * @param ret_space  of that part; in doubt it is memory (SEEP_SPACE_MAPPED)
 * @param ret_bytes  what of that part is behind @address; in doubt 0
 */
bool seep_recorder_knows_range(struct seep_thread *thread, uint64_t address,
                               uint64_t size_bytes, enum seep_space *ret_space,
                               uint64_t *ret_bytes);

/** The mremap failed: what it took out at @tick is still there. */
void seep_recorder_range_restored(struct seep_thread *thread, uint64_t address,
                                  uint32_t tick);

/** Fold what is pending, as far as nobody else is at it. */
void seep_recorder_settle(struct seep_thread *thread);

/** Release what @thread held when its hook was abandoned. */
void seep_recorder_recover(struct seep_thread *thread);

#endif
