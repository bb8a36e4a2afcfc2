/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A check from recordings to an exit code: for `seep check` and for
 * `seep run --check`.
 */
#ifndef SEEP_TOOL_GATE_H
#define SEEP_TOOL_GATE_H

#include <stdio.h>

#include "check_options.h"

/**
 * Read @paths, hold them against the limits, print and write what is asked
 * for.
 *
 * @param file  where text, JSON and annotations go
 * @return the exit code
 */
int seep_gate(char *const *paths, size_t count,
              struct seep_check_arguments *arguments, FILE *file);

#endif
