/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * How much of mappings and large blocks is there; see pages.c.
 *
 * Threads: only who takes a sample of the timeline.
 */
#ifndef SEEP_RECORD_PAGES_H
#define SEEP_RECORD_PAGES_H

#include <stdint.h>

#include "format/view.h"

/** Forget where it was, in a new recording's process. */
void seep_pages_start(void);

/** Look at the next of them. @return bytes that are there of all mappings, as
 * far as they were looked at, then or before */
uint64_t seep_pages_look(const struct seep_view *view, uint32_t tick);

#endif
