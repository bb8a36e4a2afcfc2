/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * When the run ends, before the process does.
 *
 * CPython frees nearly everything when it finalises: a recording that went on
 * through that would show a program that leaked all day and holds nothing. So
 * it ends where the interpreter begins to finalise. (What a C or C++ program
 * frees between exit() and its end is recorded: nothing tells us of it.)
 */
#ifndef SEEP_PRELOAD_ENDING_H
#define SEEP_PRELOAD_ENDING_H

#include <stdbool.h>

/** From the constructor: is this program an interpreter? */
void seep_ending_init(void);

/** Has it begun to finalise? One call and one load where there is one. */
bool seep_ending_has_begun(void);

#endif
