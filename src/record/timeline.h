/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The process over time: resident memory, cgroup, progress, one moment a
 * bucket of the common grid.
 *
 * Invariant: whoever takes a moment is alone in it (try, never wait), makes
 * few system calls, keeps no descriptor, and never makes one again once the
 * process has restricted itself.
 */
#ifndef SEEP_RECORD_TIMELINE_H
#define SEEP_RECORD_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/view.h"

/** Forget everything, in a new recording's process. */
void seep_timeline_start(void);

/** Is a moment due at @tick? One load and one compare. */
bool seep_timeline_due(uint32_t tick);

/** Take it, unless another thread is taking it. */
void seep_timeline_take(const struct seep_view *view, uint32_t thread,
                        uint32_t tick);

/** @thread left a moment by a jump: let others take the next. */
void seep_timeline_recover(uint32_t thread);

/** No system call from here on. */
void seep_timeline_restrict(void);

#endif
