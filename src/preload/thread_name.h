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

/** From the constructor: what threads inherit from the main one is no name of
 * their own. */
void seep_thread_name_init(void);

/** The calling thread was just named @name, or with NULL another was. Makes no
 * system call: whether one is still allowed is not known here. */
void seep_thread_name_changed(const char *name);

/** In the child of a fork, whose main thread this is. */
void seep_thread_name_after_fork(void);

#endif
