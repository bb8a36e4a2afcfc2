/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The name that a thread was given, as the last frame of its stacks.
 *
 * Invariant: the kernel is asked once a thread and name, and not at all once
 * the process restricts itself. A thread without a name of its own (it
 * inherits its parent's) and the main thread have none here.
 */
#ifndef SEEP_PRELOAD_THREAD_NAME_H
#define SEEP_PRELOAD_THREAD_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "format/view.h"

/**
 * The calling thread's name in CODES; digits at its end are told as '*', for
 * the threads of a pool do the same.
 *
 * @param is_new  its first capture: what is known belongs to another
 * @return SEEP_CODE_NONE: it has none
 */
uint32_t seep_thread_name_code(const struct seep_view *view, bool is_new);

/** A thread was named, or the recording is another: ask again. */
void seep_thread_name_forget(void);

/** From the constructor: what threads inherit from the main one is no name of
 * their own. */
void seep_thread_name_init(void);

/** Some thread was just named. */
void seep_thread_name_changed(void);

#endif
