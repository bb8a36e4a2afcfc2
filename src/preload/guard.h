/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A thread is inside seep at most once.
 *
 * Invariant: an entry from a deeper frame (a signal handler's) passes through
 * and is counted; an entry from a shallower one knows that the earlier hook was
 * left by a jump, and cleans up after it.
 */
#ifndef SEEP_PRELOAD_GUARD_H
#define SEEP_PRELOAD_GUARD_H

#include <stdint.h>

#include "base/thread.h"

/** @param frame  of the hook. @return NULL if this entry has to pass through */
struct seep_thread *seep_guard_enter(uintptr_t frame);

void seep_guard_leave(struct seep_thread *thread);

#endif
