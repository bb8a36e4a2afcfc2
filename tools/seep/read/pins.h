/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What keeps free memory of a process apart, asked of it where that grows: the
 * blocks between free pieces (held/pins.h), where those that were recorded were
 * allocated, and who holds the others.
 *
 * Errors: 0 or negative errno. Threads: one at a time.
 */
#ifndef SEEP_TOOL_READ_PINS_H
#define SEEP_TOOL_READ_PINS_H

#include <stdbool.h>

#include "held/kept.h"
#include "read/ask.h"
#include "reader/report/report.h"

/** Is there more to be learnt of @report than @pins, which may be NULL? */
bool seep_pins_are_due(const struct seep_report *report,
                       const struct seep_held_kept_pins *pins);

/**
 * Ask the process of the recording at @path.
 *
 * @param ret_answer  is in @ret_pins; to be closed when that is done with
 * @return as seep_held_ask()
 */
int seep_pins_ask(const struct seep_ask *ask, const char *path,
                  struct seep_store *store,
                  struct seep_held_kept_pins *ret_pins,
                  struct seep_held_answer **ret_answer);

#endif
