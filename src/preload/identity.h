/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Who this process is: asked by every recorded event, and written into the
 * head of its recording.
 *
 * Invariant: in the child of a fork, also of a raw clone(), is_ours() is false
 * from its first instruction until it has adopted its own identity: the answer
 * lies in a page that the kernel wipes.
 */
#ifndef SEEP_PRELOAD_IDENTITY_H
#define SEEP_PRELOAD_IDENTITY_H

#include <stdbool.h>

#include "seep/recording.h"

/** From the constructor. @return 0 or negative errno */
int seep_identity_init(void);

/** Is this the process that the recording in memory is of? */
bool seep_identity_is_ours(void);

/** False in a child that shares this memory (vfork): asks the kernel. */
bool seep_identity_is_this_process(void);

/**
 * The locks of this process are as the C library's fork leaves them: said by
 * the constructor, and in each child that such a fork made. After a raw clone()
 * those of other threads stay locked for ever, and nobody says so; the number
 * of that child can be its parent's, in a namespace of its own.
 */
void seep_identity_note_sound(void);
bool seep_identity_is_sound(void);

/** A forked child becomes a process of its own. */
void seep_identity_adopt(void);

/** Path of the program, "" if it cannot be known. */
const char *seep_identity_executable(void);

/** Path of the object that defines malloc. */
void seep_identity_set_allocator(const char *path);

/** Create this process's recording, or one that only says why nothing is
 * recorded. @return 0 or negative errno */
int seep_identity_create(enum seep_inert_reason reason, void **ret_mapping);

/** Limits of memory left no room: said by one of the latter kind. @return why,
 * NONE if it was something else */
enum seep_inert_reason seep_identity_tell_lacking(void);

/** The latter, for whoever reads it: it is not kept mapped. */
void seep_identity_create_inert(enum seep_inert_reason reason);

#endif
