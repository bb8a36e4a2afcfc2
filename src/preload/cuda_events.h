/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From the CUDA part into the recorder: its events, its counters, and what the
 * devices have left.
 *
 * Invariant: an event of the driver's is recorded whole, whatever the sampling
 * of its thread; the recording's counters are those of the CUDA part.
 */
#ifndef SEEP_PRELOAD_CUDA_EVENTS_H
#define SEEP_PRELOAD_CUDA_EVENTS_H

#include "format/view.h"

/** From the constructor, when the options are read. */
void seep_cuda_events_init(void);

/** Write the counters of the CUDA part into the recording. */
void seep_cuda_events_tell(const struct seep_view *view);

/** In the child of a fork. */
void seep_cuda_events_after_fork(void);

/** System calls are no longer welcome: the driver is asked nothing more. */
void seep_cuda_events_restrict(void);

#endif
