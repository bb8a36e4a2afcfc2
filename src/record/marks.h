/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the program says of itself: moments with a name, and labels.
 *
 * Invariant: a published mark never changes, but for when a label was last
 * given; what is said twice takes room once, and what finds none is counted.
 * No lock, no wait, no system call.
 */
#ifndef SEEP_RECORD_MARKS_H
#define SEEP_RECORD_MARKS_H

#include <stdint.h>

#include "format/view.h"

/** Of a name or a value so many bytes are kept. */
#define SEEP_MARKS_TEXT_BYTES 96U

/** @name happened at @tick. Of no name, nothing did. */
void seep_marks_moment(const struct seep_view *view, uint32_t tick,
                       const char *name);

/** From @tick on the process's label @key is @value. */
void seep_marks_label(const struct seep_view *view, uint32_t tick,
                      const char *key, const char *value);

#endif
