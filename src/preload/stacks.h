/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * From the caller of a hook to its call site: the capture, the names of what
 * is no machine code, the site.
 *
 * Invariant: one capture is one site; where Python cannot be read the stack is
 * native, and where nothing can be walked it is the hook's caller.
 */
#ifndef SEEP_PRELOAD_STACKS_H
#define SEEP_PRELOAD_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/native.h"
#include "format/view.h"
#include "record/sites.h"

/** From the constructor, after seep_objects_init(). */
void seep_stacks_init(void);

/**
 * The site of @from at @place.
 *
 * @param may_ask  on entry: is it wanted? Then: is this thread outside of the
 *                 allocator, so that the allocator may be asked?
 * @return its index; 0 if there is no room
 */
uint32_t seep_stacks_site(const struct seep_view *view,
                          const struct seep_capture_start *from,
                          struct seep_place place, bool *may_ask);

/** Write into the recording what became of Python. */
void seep_stacks_describe(const struct seep_view *view);

/** In the child of a fork: forget what belongs to threads that are gone. */
void seep_stacks_after_fork(void);

/** System calls are no longer welcome: make none from now on. */
void seep_stacks_restrict(void);

#endif
