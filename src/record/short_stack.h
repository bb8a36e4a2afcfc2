/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What is kept of a stack that is met for the first time while the table of
 * sites fills up: a program that has more stacks than there is room for must
 * not fill it before it begins to leak.
 *
 * Invariant: it loses outer frames, in which stacks differ most and which say
 * least; but not the line that is the user's, nor the thread's name. A stack
 * that is in the depot already stays as it is.
 */
#ifndef SEEP_RECORD_SHORT_STACK_H
#define SEEP_RECORD_SHORT_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "format/view.h"

/** From here on each new stack is short, however empty the table is. Before
 * the first one, by the constructor. */
void seep_short_stack_always(bool always);

/** @return how many of the @count frames are left, in place */
uint32_t seep_short_stack_make(const struct seep_view *view, uint64_t *frames,
                               uint32_t count, enum seep_cut cut);

#endif
